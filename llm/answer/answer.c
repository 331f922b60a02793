/* Comparing two answers. In every function the reference is a, the response b. */
#include "llm/answer/internal.h"

#include <string.h>

enum { MAX_DEPTH = 6, MAX_PARTS = 32 };

static int same(answer_span a, answer_span b, int depth);

/* --- taking apart --------------------------------------------------------------------------------
 */

/* How the nesting changes at s, and how many characters that takes. */
static int nesting(answer_span s, size_t *length) {
  *length = 1;
  if (*s.at == '\\') {
    size_t n = answer_command(s);
    *length = n > 0 ? n + 1 : s.n > 1 ? 2 : 1;
    if (answer_starts(s, "\\{") || (n == 5 && answer_starts(s, "\\begin"))) return 1;
    if (answer_starts(s, "\\}") || (n == 3 && answer_starts(s, "\\end"))) return -1;
    return 0;
  }
  return answer_is_any(*s.at, "([{") ? 1 : answer_is_any(*s.at, ")]}") ? -1 : 0;
}

/* Cuts s at the separators outside of all brackets: the number of parts, 0 if there are more than
 * MAX_PARTS or brackets do not match. A separator is a character of `at`, or the command `at`. */
static size_t split(answer_span s, const char *at, answer_span part[MAX_PARTS]) {
  size_t n = 0, begin = 0, depth = 0, length;
  for (size_t i = 0; i < s.n; i += length) {
    answer_span rest = {s.at + i, s.n - i};
    int change = nesting(rest, &length);
    if (change < 0 && depth == 0) return 0;
    depth += (size_t)change;
    if (depth > 0 || change < 0) continue;
    int cuts =
        *at == '\\' ? answer_starts(rest, at) && length == strlen(at) : answer_is_any(*rest.at, at);
    if (!cuts) continue;
    if (n + 1 == MAX_PARTS) return 0;
    part[n++] = answer_trim((answer_span){s.at + begin, i - begin});
    begin = i + length;
  }
  part[n++] = answer_trim((answer_span){s.at + begin, s.n - begin});
  return depth == 0 ? n : 0;
}

static int same_in_order(const answer_span *a, const answer_span *b, size_t n, int depth) {
  for (size_t i = 0; i < n; ++i)
    if (!same(a[i], b[i], depth + 1)) return 0;
  return 1;
}

static int same_in_any_order(const answer_span *a, const answer_span *b, size_t n, int depth) {
  int used[MAX_PARTS] = {0};
  for (size_t i = 0; i < n; ++i) {
    size_t k = 0;
    while (k < n && (used[k] || !same(a[i], b[k], depth + 1))) ++k;
    if (k == n) return 0;
    used[k] = 1;
  }
  return 1;
}

/* --- equations -----------------------------------------------------------------------------------
 */

/* The sides of an equation, or of a chain of them; s alone if there is no = outside of brackets, 0
 * if brackets do not match. */
static size_t sides(answer_span s, answer_span side[MAX_PARTS]) {
  return split(s, "=", side);
}

/* What stands left of an = that only gives the right side a name: x, x_1, f(2), (x, y), \theta. */
static int is_name(answer_span s) {
  size_t depth = 0;
  if (s.n == 0 || s.n > 40 || answer_is_digit(*s.at)) return 0;
  for (size_t i = 0; i < s.n; ++i) {
    char c = s.at[i];
    if (answer_is_any(c, "({")) ++depth;
    if (answer_is_any(c, ")}") && depth > 0) --depth;
    if (answer_is_digit(c) && (depth > 0 || (i > 0 && s.at[i - 1] == '_'))) continue;
    if (!answer_is_letter(c) && !answer_is_any(c, " \\(){}_,'|:")) return 0;
  }
  return 1;
}

/* Whether l = r and m = s say the same: l - r and m - s differ by a constant factor. */
static int proportional(const answer_span l[2], const answer_span m[2]) {
  double ratio = 0;
  int agreed = 0;
  for (int point = 0; point < ANSWER_POINTS; ++point) {
    answer_value a, b, c, d;
    int known = answer_evaluate(&a, l[0], point) && answer_evaluate(&b, l[1], point) &&
                answer_evaluate(&c, m[0], point) && answer_evaluate(&d, m[1], point);
    if (!known && point == ANSWER_NEGATIVE_POINT) continue;
    if (!known) return 0;
    double x = a.x - b.x, y = c.x - d.x;
    if (x == 0 || y == 0 || !(a.has_variables || b.has_variables)) return 0;
    if (agreed > 0 && !answer_nearly(x / y, ratio, 1e-9)) return 0;
    ratio = x / y;
    ++agreed;
  }
  return 1;
}

/* Of a chain a = b = c the name is what stands first, the value what stands last. */
static int same_equation(answer_span a, answer_span b, int depth) {
  answer_span l[MAX_PARTS], r[MAX_PARTS];
  size_t n = sides(a, l), m = sides(b, r);
  if (n == 0 || m == 0 || (n == 1 && m == 1)) return 0;
  if (n == 1) return same(a, r[m - 1], depth + 1);
  if (m == 1) return is_name(l[0]) && same(l[n - 1], b, depth + 1);
  if (same(l[0], r[0], depth + 1) && same(l[n - 1], r[m - 1], depth + 1))
    return is_name(l[0]) || (n == 2 && m == 2);
  if (n != 2 || m != 2) return 0;
  return (same(l[0], r[1], depth + 1) && same(l[1], r[0], depth + 1)) || proportional(l, r);
}

/* The sides of a relation, the smaller one first: its sign without the backslash, or NULL if s has
 * none or several. */
static const char *relation(answer_span s, answer_span side[2]) {
  static const struct {
    const char *sign, *name;
    int turns;
  } signs[] = {
      {"<", "<", 0}, {">", "<", 1}, {"\\le", "le", 0}, {"\\ge", "le", 1}, {"\\ne", "ne", 0}};
  answer_span part[MAX_PARTS];
  const char *name = NULL;
  for (size_t k = 0; k < sizeof signs / sizeof *signs; ++k) {
    size_t n = split(s, signs[k].sign, part);
    if (n < 2) continue;
    if (n > 2 || name != NULL) return NULL;
    name = signs[k].name;
    side[signs[k].turns] = part[0];
    side[!signs[k].turns] = part[1];
  }
  return name;
}

/* x > 3 is 3 < x; it is not an interval, nor 2x > 6. */
static int same_relation(answer_span a, answer_span b, int depth) {
  answer_span l[2], r[2];
  const char *x = relation(a, l), *y = relation(b, r);
  if (x == NULL || y == NULL || strcmp(x, y) != 0) return 0;
  if (same(l[0], r[0], depth + 1) && same(l[1], r[1], depth + 1)) return 1;
  return *x == 'n' && same(l[0], r[1], depth + 1) && same(l[1], r[0], depth + 1);
}

/* --- brackets ------------------------------------------------------------------------------------
 */

typedef enum enclosure { BARE, TUPLE, SQUARE, OPEN_LEFT, OPEN_RIGHT, SET, MATRIX } enclosure;

/* What brackets enclose all of s, and what is inside. Braces with commas are a set whose
 * backslashes were forgotten. */
static enclosure enclosed(answer_span s, answer_span *inside) {
  size_t length, closing = 0, depth = 0, first = 0;
  *inside = s;
  for (size_t i = 0; i < s.n; i += length) {
    int change = nesting((answer_span){s.at + i, s.n - i}, &length);
    if (i == 0) first = length;
    if ((i == 0 && change <= 0) || (change < 0 && depth == 0)) return BARE;
    depth += (size_t)change;
    closing = length;
    if (depth == 0 && i + length < s.n) return BARE;
  }
  if (depth != 0 || s.n < first + closing) return BARE;
  *inside = answer_trim((answer_span){s.at + first, s.n - first - closing});
  char opens = s.at[first - 1], closes = s.at[s.n - 1];
  if (*s.at == '\\') return opens != '{' ? MATRIX : closing == 2 ? SET : BARE;
  if (opens == '{') return closes == '}' ? SET : BARE;
  if (opens == '(') return closes == ')' ? TUPLE : closes == ']' ? OPEN_LEFT : BARE;
  return closes == ']' ? SQUARE : closes == ')' ? OPEN_RIGHT : BARE;
}

static int same_matrix(answer_span a, answer_span b, int depth) {
  answer_span rows_a[MAX_PARTS], rows_b[MAX_PARTS], x[MAX_PARTS], y[MAX_PARTS];
  size_t n = split(a, ";", rows_a), m = split(b, ";", rows_b);
  while (n > 1 && rows_a[n - 1].n == 0) --n;
  while (m > 1 && rows_b[m - 1].n == 0) --m;
  if (n != m || n == 0) return 0;
  for (size_t i = 0; i < n; ++i) {
    size_t k = split(rows_a[i], ",", x);
    if (k == 0 || k != split(rows_b[i], ",", y) || !same_in_order(x, y, k, depth)) return 0;
  }
  return 1;
}

static int same_union(answer_span a, answer_span b, int depth) {
  answer_span x[MAX_PARTS], y[MAX_PARTS];
  size_t n = split(a, "\\cup", x);
  return n > 1 && n == split(b, "\\cup", y) && same_in_any_order(x, y, n, depth);
}

/* Brackets around one thing mean nothing, but two kinds of them are not the same. */
static int same_inside(answer_span a, enclosure kind_a, answer_span in_a, answer_span b,
                       enclosure kind_b, answer_span in_b, int depth) {
  int wraps_a = kind_a != BARE && kind_a != MATRIX, wraps_b = kind_b != BARE && kind_b != MATRIX;
  if (wraps_a && wraps_b && kind_a != kind_b) return 0;
  return (wraps_a || wraps_b) && same(wraps_a ? in_a : a, wraps_b ? in_b : b, depth + 1);
}

static int same_parts(answer_span a, answer_span b, int depth) {
  answer_span in_a, in_b, x[MAX_PARTS], y[MAX_PARTS];
  enclosure kind_a = enclosed(a, &in_a), kind_b = enclosed(b, &in_b);
  if (kind_a == MATRIX && kind_b == MATRIX) return same_matrix(in_a, in_b, depth);
  size_t n = kind_a == MATRIX ? 1 : split(in_a, ",;", x),
         m = kind_b == MATRIX ? 1 : split(in_b, ",;", y);
  if (n == 1 && m == 1) return same_inside(a, kind_a, in_a, b, kind_b, in_b, depth);
  if (n != m || n < 2) return 0;
  if (kind_a != kind_b && !(kind_a == BARE && (kind_b == SET || kind_b == TUPLE)) &&
      !(kind_b == BARE && (kind_a == SET || kind_a == TUPLE)))
    return 0; /* a list without brackets may be a set's or a tuple's, not an interval */
  int ordered = (kind_a != SET && kind_a != BARE) || (kind_b != SET && kind_b != BARE);
  return ordered ? same_in_order(x, y, n, depth) : same_in_any_order(x, y, n, depth);
}

/* --- all together --------------------------------------------------------------------------------
 */

static int same(answer_span a, answer_span b, int depth) {
  a = answer_trim(a);
  b = answer_trim(b);
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (answer_same_text(a, b) || answer_same_value(a, b)) return 1;
  if (depth == MAX_DEPTH) return 0;
  return same_equation(a, b, depth) || same_relation(a, b, depth) || same_union(a, b, depth) ||
         same_parts(a, b, depth);
}

/* (A), A, A) A. A: and what follows: the letter, '\0' if it is none from A to J. */
static char choice(answer_span s) {
  int opened = s.n > 0 && *s.at == '(';
  if (opened) s = answer_trim((answer_span){s.at + 1, s.n - 1});
  if (s.n == 0 || *s.at < 'A' || *s.at > 'J') return '\0';
  if (opened) return s.n > 1 && s.at[1] == ')' ? *s.at : '\0';
  return s.n == 1 || answer_is_any(s.at[1], ").:") ? *s.at : '\0';
}

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
  answer_span part[MAX_PARTS], all = {text->data, text->n};
  answer_text out = {.n = 0};
  size_t at = 0, n = count_signs(all, &at) == 0 ? 0 : split(all, ",;", part);
  for (size_t i = 0; i < n; ++i) {
    int both = count_signs(part[i], &at) == 1;
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

static int same_span(answer_span a, answer_span b) {
  return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

int answer_equal(const char *reference, size_t n, const char *response, size_t m) {
  answer_span a = answer_trim((answer_span){reference, n}),
              b = answer_trim((answer_span){response, m});
  answer_text x, y;
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (same_span(a, b)) return 1;
  if (a.n > ANSWER_MAX || b.n > ANSWER_MAX) return 0;
  if (!answer_clean(&x, a.at, a.n) || !answer_clean(&y, b.at, b.n)) return 0;
  expand_signs(&x);
  expand_signs(&y);
  a = answer_trim((answer_span){x.data, x.n});
  b = answer_trim((answer_span){y.data, y.n});
  if (a.n == 0 || b.n == 0) return 0;
  return same(a, b, 0) || (choice(a) != '\0' && choice(a) == choice(b));
}
