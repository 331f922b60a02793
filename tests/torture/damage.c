/* Studies in which bits, bytes or pages are not what they were. */
#include "tests/torture/families.h"
#include "tests/torture/files.h"
#include "tests/torture/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

typedef struct damaged {
  unsigned char *bytes; /* with room for one more page */
  size_t size;
  char how[160];
} damaged;

static void one_bit(trial *t, damaged *d) {
  const size_t at = draw_below(t, d->size), bit = draw_below(t, 8);
  d->bytes[at] = (unsigned char)(d->bytes[at] ^ (1u << bit));
  snprintf(d->how, sizeof d->how, "bit %zu of byte %zu flipped", bit, at);
}

static void some_bits(trial *t, damaged *d) {
  const size_t n = 2 + draw_below(t, 30);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = draw_below(t, d->size);
    d->bytes[at] = (unsigned char)(d->bytes[at] ^ (1u << draw_below(t, 8)));
  }
  snprintf(d->how, sizeof d->how, "%zu bits flipped", n);
}

static void some_bytes(trial *t, damaged *d) {
  const size_t n = 1 + draw_below(t, 40), at = draw_below(t, d->size - n);
  for (size_t i = 0; i < n; ++i) d->bytes[at + i] = (unsigned char)draw(t);
  snprintf(d->how, sizeof d->how, "%zu random bytes from byte %zu", n, at);
}

static void same_bytes(trial *t, damaged *d) {
  static const unsigned char values[] = {0, 0xff, 0x80, 0x7f, '0', ' '};
  const size_t n = 1 + draw_below(t, 600), at = draw_below(t, d->size - n), v = draw_below(t, 6);
  memset(d->bytes + at, values[v], n);
  snprintf(d->how, sizeof d->how, "%zu bytes 0x%02x from byte %zu", n, values[v], at);
}

static void truncated(trial *t, damaged *d) {
  d->size = draw_below(t, 2) == 0 ? draw_below(t, d->size) : PAGE * draw_below(t, d->size / PAGE);
  snprintf(d->how, sizeof d->how, "cut to %zu bytes", d->size);
}

static void swapped(trial *t, damaged *d) {
  unsigned char page[PAGE];
  const size_t n = d->size / PAGE, a = draw_below(t, n), b = draw_below(t, n);
  memcpy(page, d->bytes + a * PAGE, PAGE);
  memcpy(d->bytes + a * PAGE, d->bytes + b * PAGE, PAGE);
  memcpy(d->bytes + b * PAGE, page, PAGE);
  snprintf(d->how, sizeof d->how, "pages %zu and %zu swapped", a, b);
}

static void repeated(trial *t, damaged *d) {
  const size_t n = d->size / PAGE, a = draw_below(t, n), b = draw_below(t, n);
  if (a != b) memcpy(d->bytes + b * PAGE, d->bytes + a * PAGE, PAGE);
  snprintf(d->how, sizeof d->how, "page %zu in the place of page %zu", a, b);
}

static void longer(trial *t, damaged *d) {
  const size_t n = 1 + draw_below(t, PAGE);
  for (size_t i = 0; i < n; ++i) d->bytes[d->size + i] = (unsigned char)draw(t);
  d->size += n;
  snprintf(d->how, sizeof d->how, "%zu random bytes at its end", n);
}

static void head_byte(trial *t, damaged *d) {
  const size_t at = draw_below(t, 108);
  d->bytes[at] = (unsigned char)draw(t);
  snprintf(d->how, sizeof d->how, "byte %zu of its head is %u", at, d->bytes[at]);
}

/* The first bytes of a page tell SQLite how to read all of it. */
static void page_head(trial *t, damaged *d) {
  const size_t page = draw_below(t, d->size / PAGE), at = draw_below(t, 40);
  d->bytes[page * PAGE + at] = (unsigned char)draw(t);
  snprintf(d->how, sizeof d->how, "byte %zu of page %zu is %u", at, page,
           d->bytes[page * PAGE + at]);
}

static const struct {
  const char *name;
  void (*damage)(trial *t, damaged *d);
} damages[] = {{"one bit", one_bit},       {"some bits", some_bits}, {"some bytes", some_bytes},
               {"same bytes", same_bytes}, {"truncated", truncated}, {"swapped", swapped},
               {"repeated", repeated},     {"longer", longer},       {"head", head_byte},
               {"page head", page_head}};

void family_damage(trial *t) {
  const size_t c =
      draw_case(t, &damages[0].name, sizeof *damages, sizeof damages / sizeof *damages);
  char path[TORTURE_PATH];
  damaged d = {0};
  if (c == SIZE_MAX) return;
  char *whole = file_read(join(path, t->session->root, "inputs/full.db"), &d.size);
  d.bytes = calloc(d.size + 2 * PAGE, 1);
  if (whole == NULL || d.bytes == NULL) abort();
  memcpy(d.bytes, whole, d.size);
  damages[c].damage(t, &d);
  if (file_write(join(path, t->work, "study.db"), (const char *)d.bytes, d.size) != 0)
    trial_fail(t, "the damaged study cannot be written");
  free(whole);
  free(d.bytes);
  if (trial_good(t)) hostile_read(t, d.how, NOT_AT_ALL);
}
