/* Finds the nearest of some names to a mistyped one: "did you mean". */
#include "core/config/internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 64 };

/* A letter without its case; a hyphen is an underscore. */
static int plain_letter(char c) {
  return c == '-' ? '_' : tolower((unsigned char)c);
}

/* Edit distance in which swapping neighbours counts as one (optimal string alignment). */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
  size_t before[LONGEST_WORD + 1], last[LONGEST_WORD + 1], row[LONGEST_WORD + 1];
  for (size_t j = 0; j <= m; ++j) before[j] = last[j] = j;
  for (size_t i = 1; i <= n; ++i) {
    row[0] = i;
    for (size_t j = 1; j <= m; ++j) {
      size_t best = last[j - 1] + (plain_letter(a[i - 1]) != plain_letter(b[j - 1]));
      if (last[j] + 1 < best) best = last[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      row[j] = best;
    }
    memcpy(before, last, sizeof before);
    memcpy(last, row, sizeof last);
  }
  return last[m];
}

const char *cfg_nearest_within(size_t most, const char *word, const char *const *names, size_t n) {
  size_t length = strlen(word), best = SIZE_MAX;
  const char *nearest = NULL;
  if (length == 0 || length > LONGEST_WORD) return NULL;
  for (size_t i = 0; i < n; ++i) {
    size_t other = strlen(names[i]);
    if (other == 0 || other > LONGEST_WORD) continue;
    size_t d = distance(word, length, names[i], other), shorter = length < other ? length : other;
    const bool goes_on = length > shorter && word[shorter] == '.'; /* a field of a section */
    if (d > 1 && shorter >= 3 && !goes_on && strncmp(word, names[i], shorter) == 0) d = 1;
    if (d < best && d <= most) best = d, nearest = names[i];
  }
  return nearest;
}

const char *cfg_nearest(const char *word, const char *const *names, size_t n) {
  return cfg_nearest_within((strlen(word) + 2) / 3, word, names, n);
}

const char *cfg_listed(const char *const *names, size_t n, char *text, size_t size) {
  *text = '\0';
  for (size_t i = 0, used = 0; i < n && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
  return text;
}

const char *cfg_hint(const char *word, const char *const *names, size_t n,
                     char text[CFG_HINT_SIZE]) {
  const char *near = cfg_nearest(word, names, n);
  *text = '\0';
  if (near != NULL) snprintf(text, CFG_HINT_SIZE, " (did you mean '%s'?)", near);
  return text;
}
