/* Where the final answer stands in a response. */
#include "llm/answer/internal.h"

#include <string.h>

/* Of so many boxes at the end the last that is closed is taken. */
enum { TRIED_BOXES = 64 };

/* Length of the group that s begins with, braces included; 0 if it does not end. */
static size_t closed_group(answer_span s) {
  size_t depth = 0;
  for (size_t i = 0; i < s.n; ++i) {
    if (s.at[i] == '\\')
      ++i; /* \{ and \} are shown, they group nothing */
    else if (s.at[i] == '{')
      ++depth;
    else if (s.at[i] == '}' && --depth == 0)
      return i + 1;
  }
  return 0;
}

/* The contents of the box whose name ends where s begins: {...}, or without braces the text up to
 * white space or a dollar sign. */
static int box_contents(answer_span s, answer_span *out) {
  while (s.n > 0 && (*s.at == ' ' || *s.at == '\t')) ++s.at, --s.n;
  if (s.n > 0 && *s.at == '{') {
    size_t n = closed_group(s);
    if (n > 0) *out = answer_trim((answer_span){s.at + 1, n - 2});
    return n > 0;
  }
  size_t n = 0;
  while (n < s.n && !answer_is_space(s.at[n]) && s.at[n] != '$') ++n;
  *out = (answer_span){s.at, n};
  return n > 0 && !answer_is_letter(*s.at); /* \boxedfoo is another command */
}

static int last_box(answer_span text, answer_span *out) {
  static const char *const names[] = {"\\boxed", "\\fbox"};
  size_t tried = 0;
  for (size_t i = text.n; i-- > 0 && tried < TRIED_BOXES;) {
    answer_span rest = {text.at + i, text.n - i};
    for (size_t k = 0; k < 2; ++k) {
      size_t n = strlen(names[k]);
      if (!answer_starts(rest, names[k])) continue;
      ++tried;
      if (box_contents((answer_span){rest.at + n, rest.n - n}, out)) return 1;
    }
  }
  return 0;
}

/* --- numbers --- */

static size_t digits_at(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_digit(s.at[from + n])) ++n;
  return n;
}

/* 12, 1,234, 1.5, .5: the length of what s begins with, 0 if that is no number. */
static size_t decimal(answer_span s) {
  size_t n = digits_at(s, 0);
  if (n > 0 && n <= 3)
    while (n < s.n && s.at[n] == ',' && digits_at(s, n + 1) == 3) n += 4;
  if (n < s.n && s.at[n] == '.') {
    size_t places = digits_at(s, n + 1);
    if (places > 0) n += 1 + places;
  }
  return n;
}

/* A decimal with what belongs to it: an exponent, a divisor, a percent sign. */
static size_t number(answer_span s) {
  size_t n = decimal(s);
  if (n == 0) return 0;
  answer_span rest = {s.at + n, s.n - n};
  if (rest.n > 1 && (*rest.at == 'e' || *rest.at == 'E')) {
    size_t sign = rest.at[1] == '-' || rest.at[1] == '+', places = digits_at(rest, 1 + sign);
    if (places > 0) n += 1 + sign + places;
  } else if (rest.n > 1 && *rest.at == '/') {
    size_t divisor = decimal((answer_span){rest.at + 1, rest.n - 1});
    if (divisor > 0) n += 1 + divisor;
  }
  if (n < s.n && s.at[n] == '%')
    ++n;
  else if (n + 1 < s.n && s.at[n] == '\\' && s.at[n + 1] == '%')
    n += 2;
  return n;
}

/* A minus is a sign where nothing stands before it that it could be taken from. */
static int is_sign(answer_span text, size_t at) {
  if (text.at[at] != '-' && text.at[at] != '+') return 0;
  return at == 0 || !(answer_is_digit(text.at[at - 1]) || answer_is_letter(text.at[at - 1]) ||
                      answer_is_any(text.at[at - 1], ")]}"));
}

static int last_number(answer_span text, answer_span *out) {
  int found = 0;
  for (size_t i = 0; i < text.n;) {
    size_t n = number((answer_span){text.at + i, text.n - i});
    if (n == 0) {
      ++i;
      continue;
    }
    size_t before = i > 0 && is_sign(text, i - 1);
    *out = (answer_span){text.at + i - before, n + before};
    found = 1;
    i += n;
  }
  return found;
}

int answer_find(const char *text, size_t size, answer_pattern pattern, const char **found,
                size_t *n) {
  answer_span out = {text, 0}, all = {text, size};
  if (!last_box(all, &out) && (pattern != ANSWER_LAST_NUMBER || !last_number(all, &out))) return 0;
  *found = out.at;
  *n = out.n;
  return 1;
}
