/* The checker's interface: where a response's answer is, and whether two answers are equal.
 * Choices, and the two answers that a \pm makes of one. */
#include "llm/answer/internal.h"

#include <string.h>

/* --- boxes --- */

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
static bool box_contents(answer_span s, answer_span *out) {
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

static bool last_box(answer_span text, answer_span *out) {
  static const char *const names[] = {"\\boxed", "\\fbox"};
  size_t tried = 0;
  for (size_t i = text.n; i-- > 0 && tried < TRIED_BOXES;) {
    answer_span rest = {text.at + i, text.n - i};
    for (size_t k = 0; k < 2; ++k) {
      size_t n = strlen(names[k]);
      if (!answer_starts(rest, names[k])) continue;
      ++tried;
      if (box_contents((answer_span){rest.at + n, rest.n - n}, out)) return true;
    }
  }
  return false;
}

/* --- numbers --- */

/* 12, 1,234, 1.5, .5: the length of what s begins with, 0 if that is no number. */
static size_t decimal_length(answer_span s) {
  size_t n = answer_count_digits(s, 0);
  if (n > 0 && n <= 3)
    while (n < s.n && s.at[n] == ',' && answer_count_digits(s, n + 1) == 3) n += 4;
  if (n < s.n && s.at[n] == '.') {
    size_t places = answer_count_digits(s, n + 1);
    if (places > 0) n += 1 + places;
  }
  return n;
}

/* A decimal with what belongs to it: an exponent, a divisor, a percent sign. */
static size_t number_length(answer_span s) {
  size_t n = decimal_length(s);
  if (n == 0) return 0;
  answer_span rest = {s.at + n, s.n - n};
  if (rest.n > 1 && (*rest.at == 'e' || *rest.at == 'E')) {
    size_t sign = rest.at[1] == '-' || rest.at[1] == '+',
           places = answer_count_digits(rest, 1 + sign);
    if (places > 0) n += 1 + sign + places;
  } else if (rest.n > 1 && *rest.at == '/') {
    size_t divisor = decimal_length((answer_span){rest.at + 1, rest.n - 1});
    if (divisor > 0) n += 1 + divisor;
  }
  if (n < s.n && s.at[n] == '%')
    ++n;
  else if (n + 1 < s.n && s.at[n] == '\\' && s.at[n + 1] == '%')
    n += 2;
  return n;
}

/* A minus is a sign where nothing stands before it that it could be taken from. */
static bool is_sign(answer_span text, size_t at) {
  if (text.at[at] != '-' && text.at[at] != '+') return false;
  return at == 0 || !(answer_is_digit(text.at[at - 1]) || answer_is_letter(text.at[at - 1]) ||
                      answer_is_any(text.at[at - 1], ")]}"));
}

static bool last_number(answer_span text, answer_span *out) {
  bool found = 0;
  for (size_t i = 0; i < text.n;) {
    size_t n = number_length((answer_span){text.at + i, text.n - i});
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

/* --- the answer of a response --- */

bool answer_find(const char *text, size_t size, answer_pattern pattern, const char **found,
                 size_t *n) {
  answer_span out = {text, 0}, all = {text, size};
  if (!last_box(all, &out) && (pattern != ANSWER_LAST_NUMBER || !last_number(all, &out)))
    return false;
  *found = out.at;
  *n = out.n;
  return true;
}

/* --- choices --- */

/* (A), A, A) 12, A. 12, A: 12: the letter, '\0' if it is none from A to J. *rest is what follows,
 * and *mark what stands between, '\0' if nothing does. */
static char choice_letter(answer_span s, answer_span *rest, char *mark) {
  bool opened = s.n > 0 && *s.at == '(';
  if (opened) s = answer_trim((answer_span){s.at + 1, s.n - 1});
  if (s.n == 0 || *s.at < 'A' || *s.at > 'J') return '\0';
  *mark = s.n > 1 ? s.at[1] : '\0';
  if (opened && *mark != ')') return '\0';
  if (s.n > 1 && !answer_is_any(*mark, ").:")) return '\0';
  *rest = s.n > 2 ? answer_trim((answer_span){s.at + 2, s.n - 2}) : (answer_span){s.at, 0};
  return *s.at;
}

bool answer_is_choice(answer_span s) {
  answer_span rest;
  char mark;
  return choice_letter(s, &rest, &mark) != '\0' && (mark != ':' || rest.n == 0);
}

/* The same letter; what follows it counts where both have it. A reference "J: 4 hr" is no choice
 * but a value with a label. */
static bool same_choice(answer_span a, answer_span b, answer_budget *budget) {
  answer_span rest_a, rest_b;
  char mark_a, mark_b, letter = choice_letter(a, &rest_a, &mark_a);
  if (letter == '\0' || letter != choice_letter(b, &rest_b, &mark_b)) return false;
  if (rest_a.n == 0) return true;
  if (mark_a == ':') return false;
  return rest_b.n == 0 || answer_same(rest_a, rest_b, budget);
}

/* --- two values in one --- */

static size_t count_signs(answer_span s, size_t *at) {
  size_t count = 0;
  for (size_t k = 0; k < s.n; ++k) {
    answer_span rest = {s.at + k, s.n - k};
    if (!answer_starts(rest, "\\pm") || answer_command(rest) != 2) continue;
    *at = k;
    ++count;
  }
  return count;
}

/* Each part with one \pm becomes two, with + and -. Left as it is where that does not fit. */
static void expand_signs(answer_text *text) {
  answer_span part[ANSWER_PARTS], all = {text->data, text->n};
  answer_text out = {.n = 0, .unit_powers = text->unit_powers};
  size_t at = 0, n = count_signs(all, &at) == 0 ? 0 : answer_split(all, ",;", part);
  for (size_t i = 0; i < n; ++i) {
    bool both = count_signs(part[i], &at) == 1;
    for (int copy = 0; copy <= both; ++copy) {
      if (out.n + part[i].n + 2 > sizeof out.data) return;
      if (out.n > 0) {
        memcpy(out.data + out.n, ", ", 2); /* with a space: not between thousands */
        out.n += 2;
      }
      memcpy(out.data + out.n, part[i].at, part[i].n);
      if (both) memcpy(out.data + out.n + at, copy == 0 ? "+  " : "-  ", 3);
      out.n += part[i].n;
    }
  }
  if (n > 0) *text = out;
}

/* --- the whole --- */

static bool same_span(answer_span a, answer_span b) {
  return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

bool answer_prepare(answer_text *out, answer_span text) {
  text = answer_trim(text);
  if (text.n == 0 || text.n > ANSWER_MAX || !answer_clean(out, text.at, text.n)) return false;
  expand_signs(out);
  return answer_trim((answer_span){out->data, out->n}).n > 0;
}

bool answer_equal(const char *reference, size_t n, const char *response, size_t m) {
  answer_span a = answer_trim((answer_span){reference, n}),
              b = answer_trim((answer_span){response, m});
  answer_text x, y;
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (same_span(a, b)) return true;
  if (!answer_prepare(&x, a) || !answer_prepare(&y, b)) return false;
  a = answer_trim((answer_span){x.data, x.n});
  b = answer_trim((answer_span){y.data, y.n});
  if (x.unit_powers != 0 && y.unit_powers != 0 && x.unit_powers != y.unit_powers) return false;
  answer_budget budget = {ANSWER_WORK, 0};
  bool same = answer_same(a, b, &budget) || same_choice(a, b, &budget);
  answer_release_scratch();
  return same;
}
