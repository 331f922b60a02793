/* Widths of text in the figures' font, computed from the advance widths of DejaVu Sans 2.37. */
#include "analysis/plot/text.h"

#include "core/base/utf8.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Widths in units of 1/2048 em: characters from space to tilde, and others that figures use. */
static const uint16_t ascii[] = {
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,  690,  799,  1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186, 569,  1995, 1298, 1253,
    1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716};
static const struct {
  uint32_t first, last;
  uint16_t width;
} others[] = {{0xb2, 0xb3, 821},      {0xb7, 0xb7, 651},      {0xb9, 0xb9, 821},
              {0xa0, 0x24f, 1303},    {0x370, 0x3ff, 1300},   {0x2013, 0x2013, 1024},
              {0x2016, 0x2016, 1024}, {0x2026, 0x2026, 2048}, {0x207b, 0x207b, 1081},
              {0x2070, 0x2089, 821},  {0x1d40, 0x1d40, 788},  {0x2207, 0x2207, 1370},
              {0x2190, 0x22ff, 1716}};
/* Other characters are assumed to be 1 em wide. */
enum { EM = 2048, UNKNOWN = 2048 };

/* Ranges of characters that DejaVu Sans 2.37 has. The list is not complete: most of Latin, Greek,
 * Cyrillic, Armenian, Hebrew and Arabic, parts of N'Ko and Lao, and most symbols. */
static const struct {
  uint32_t first, last;
} in_font[] = {
    {0x20, 0x7e},     {0xa0, 0x2e9},    {0x300, 0x34f},   {0x35c, 0x362},   {0x370, 0x377},
    {0x37a, 0x37f},   {0x384, 0x38a},   {0x38e, 0x3a1},   {0x3a3, 0x525},   {0x531, 0x556},
    {0x559, 0x55f},   {0x561, 0x587},   {0x5b0, 0x5c3},   {0x5d0, 0x5ea},   {0x621, 0x63a},
    {0x640, 0x655},   {0x660, 0x670},   {0x679, 0x6bf},   {0x6f0, 0x6f9},   {0x7c0, 0x7e7},
    {0x7eb, 0x7f5},   {0xe99, 0xe9f},   {0xead, 0xeb9},   {0xec8, 0xecd},   {0xed0, 0xed9},
    {0x1d2c, 0x1d2e}, {0x1d30, 0x1d5b}, {0x1d5d, 0x1d6a}, {0x1e00, 0x1efb}, {0x1f00, 0x1f15},
    {0x1f18, 0x1f1d}, {0x1f20, 0x1f45}, {0x1f48, 0x1f4d}, {0x1f50, 0x1f57}, {0x1f5f, 0x1f7d},
    {0x1f80, 0x1fb4}, {0x1fb6, 0x1fc4}, {0x1fc6, 0x1fd3}, {0x1fd6, 0x1fdb}, {0x1fdd, 0x1fef},
    {0x1ff6, 0x1ffe}, {0x2000, 0x2064}, {0x206a, 0x2071}, {0x2074, 0x208e}, {0x2090, 0x209c},
    {0x20a0, 0x20b5}, {0x2100, 0x2109}, {0x210b, 0x2149}, {0x2150, 0x2185}, {0x2190, 0x2311},
    {0x231c, 0x2321}, {0x239b, 0x23ae}, {0x2460, 0x2469}, {0x2500, 0x269c}, {0x269e, 0x26b8},
    {0x270c, 0x2727}, {0x2729, 0x274b}, {0x2758, 0x275e}, {0x2761, 0x2794}, {0x2798, 0x27af},
    {0x27b1, 0x27be}, {0x27e6, 0x27eb}, {0x27f0, 0x28ff}, {0x29ce, 0x29d5}, {0x2a0c, 0x2a1c},
    {0x2a7d, 0x2aa0}, {0x2aae, 0x2aba}, {0x2b00, 0x2b1a}, {0x2b1f, 0x2b24}};

bool text_in_font(uint32_t character) {
  for (size_t i = 0; i < sizeof in_font / sizeof *in_font; i++)
    if (character >= in_font[i].first && character <= in_font[i].last) return true;
  return false;
}

static double character_width(uint32_t c) {
  if (c >= ' ' && c <= '~') return ascii[c - ' '];
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (c >= others[i].first && c <= others[i].last) return others[i].width;
  if (text_in_font(c)) return UNKNOWN;
  char escape[16];
  double sum = 0;
  const int n = snprintf(escape, sizeof escape, TEXT_ESCAPE, (unsigned)c);
  for (int i = 0; i < n; i++) sum += ascii[escape[i] - ' '];
  return sum;
}

static const double EM_CM = FIGURE_POINTS * 2.54 / 72;

/* Returns the width of the character at *text and advances *text. */
static double next_cm(const char **text) {
  uint32_t c;
  *text += utf8_read(*text, strlen(*text), &c);
  return character_width(c) / EM * EM_CM;
}

double text_cm(const char *text) {
  double sum = 0;
  while (*text) sum += next_cm(&text);
  return sum;
}

size_t text_line(const char *text, double most) {
  size_t item = 0, word = 0, part = 0, character = 0;
  double sum = 0;
  const char *at = text;
  while (*at) {
    const char *from = at;
    sum += next_cm(&at);
    if (sum > most && *from != ' ') break;
    character = (size_t)(at - text);
    if (*from == ' ') word = character;
    if (*from == ' ' && from > text && (from[-1] == ';' || from[-1] == ',')) item = character;
    if (*from == '/' || *from == '_' || *from == '-') part = character;
    if (!*at) return character;
  }
  if (character == 0) character = (size_t)(at - text);
  return item ? item : word ? word : part ? part : character;
}

size_t text_break(const char *text, double most, size_t lines, size_t *starts, size_t *lengths,
                  int *cut) {
  size_t n = 0;
  *cut = 0;
  for (const char *rest = text; *rest && n < lines; n++) {
    size_t length = text_line(rest, most);
    *cut = n + 1 == lines && rest[length] != 0;
    if (*cut) length = text_line(rest, most - text_cm("…"));
    starts[n] = (size_t)(rest - text);
    lengths[n] = length;
    rest += length;
    while (lengths[n] > 0 && text[starts[n] + lengths[n] - 1] == ' ') lengths[n]--;
  }
  return n;
}
