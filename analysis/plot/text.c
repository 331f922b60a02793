/* Widths of text in the figures' font, from the advance widths of DejaVu Sans 2.37. */
#include "analysis/plot/text.h"

#include "core/base/utf8.h"

#include <stdint.h>
#include <string.h>

/* In units of 1/2048 em: of the characters from space to tilde, and of others that figures use. */
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
              {0x2070, 0x2089, 821},  {0x2207, 0x2207, 1370}, {0x2190, 0x22ff, 1716}};
/* What no table knows is likely to be a wide character of another script. */
enum { EM = 2048, UNKNOWN = 2048 };

static double width_of(uint32_t c) {
  if (c >= ' ' && c <= '~') return ascii[c - ' '];
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (c >= others[i].first && c <= others[i].last) return others[i].width;
  return UNKNOWN;
}

static const double EM_CM = FIGURE_POINTS * 2.54 / 72;

/* The width of the character at *text, which moves behind it. */
static double next_cm(const char **text) {
  uint32_t c;
  *text += utf8_read(*text, strlen(*text), &c);
  return width_of(c) / EM * EM_CM;
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
