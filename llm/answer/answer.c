/* Comparing two answers: as a whole, as lists, as what brackets enclose, and as choices. In every
 * function the reference is a, the response b. */
#include "llm/answer/internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_DEPTH = 12 };

/* --- lists --- */

/* The sides of part i of a list in which every part has a name. */
static size_t sides_of(const answer_list *l, size_t i, answer_span side[ANSWER_PARTS]) {
  if (l->part[i].has_sign) return answer_sides(l->part[i].text, side, NULL);
  side[0] = l->part[i].name;
  side[1] = l->part[i].text;
  return 2;
}

/* The value of part i, without its name if it has one. */
static answer_span value_of(const answer_list *l, size_t i) {
  answer_span side[ANSWER_PARTS];
  if (l->part[i].name.n == 0 || !l->part[i].has_sign) return l->part[i].text;
  size_t n = answer_sides(l->part[i].text, side, NULL);
  return n > 0 ? side[n - 1] : l->part[i].text;
}

/* How part i of one list is compared with part k of another. */
typedef enum comparison {
  WHOLE,  /* as they are written */
  NAMED,  /* names and values */
  VALUES, /* values, whatever the names */
} comparison;

static int same_part(const answer_list *a, size_t i, const answer_list *b, size_t k, comparison how,
                     answer_budget *budget) {
  if (how == WHOLE) return answer_same(a->part[i].text, b->part[k].text, budget);
  if (how == VALUES) return answer_same(value_of(a, i), value_of(b, k), budget);
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  size_t n = sides_of(a, i, l), m = sides_of(b, k, r);
  if (a->part[i].has_sign && b->part[k].has_sign)
    return answer_same(a->part[i].text, b->part[k].text, budget);
  return n >= 2 && m >= 2 && answer_same_sides(l, n, r, m, budget);
}

static int same_in_order(const answer_list *a, const answer_list *b, comparison how,
                         answer_budget *budget) {
  for (size_t i = 0; i < a->n; ++i)
    if (!same_part(a, i, b, i, how, budget)) return 0;
  return 1;
}

static int same_in_any_order(const answer_list *a, const answer_list *b, comparison how,
                             answer_budget *budget) {
  int used[ANSWER_PARTS] = {0};
  for (size_t i = 0; i < a->n; ++i) {
    size_t k = 0;
    while (k < b->n && (used[k] || !same_part(a, i, b, k, how, budget))) ++k;
    if (k == b->n) return 0;
    used[k] = 1;
  }
  return 1;
}

/* Whether all parts are values of one name: x = 1, x = 2. */
static int has_one_name(const answer_list *l) {
  for (size_t i = 1; i < l->n; ++i)
    if (!answer_same_text(l->part[0].name, l->part[i].name)) return 0;
  return 1;
}

static int is_ordered(const answer_list *l) {
  return l->kind != ANSWER_NO_BRACKETS && l->kind != ANSWER_BRACES;
}

/* A list without brackets may be a set's or a tuple's, not an interval. */
static int kinds_agree(answer_enclosure a, answer_enclosure b) {
  if (a == b) return 1;
  if (a != ANSWER_NO_BRACKETS && b != ANSWER_NO_BRACKETS) return 0;
  answer_enclosure other = a == ANSWER_NO_BRACKETS ? b : a;
  return other == ANSWER_BRACES || other == ANSWER_ROUND;
}

static int same_list(const answer_list *a, const answer_list *b, answer_budget *budget) {
  assert(a->n >= 2 && b->n >= 2);
  if (a->n != b->n || !kinds_agree(a->kind, b->kind)) return 0;
  if (a->named && b->named) return same_in_any_order(a, b, NAMED, budget);
  int one_named = (a->named && b->nameless) || (a->nameless && b->named);
  comparison how = one_named ? VALUES : WHOLE;
  /* a = 1, b = 2 is not the set {1, 2}; without names only the order tells which is which */
  int names_count = one_named && a->named && !has_one_name(a);
  if (names_count && b->kind == ANSWER_BRACES) return 0;
  return names_count || is_ordered(a) || is_ordered(b) ? same_in_order(a, b, how, budget)
                                                       : same_in_any_order(a, b, how, budget);
}

/* --- brackets --- */

static int same_matrix(answer_span a, answer_span b, answer_budget *budget) {
  answer_span rows_a[ANSWER_PARTS], rows_b[ANSWER_PARTS], x[ANSWER_PARTS], y[ANSWER_PARTS];
  size_t n = answer_split(a, ";", rows_a), m = answer_split(b, ";", rows_b);
  while (n > 1 && rows_a[n - 1].n == 0) --n;
  while (m > 1 && rows_b[m - 1].n == 0) --m;
  if (n != m || n == 0) return 0;
  for (size_t i = 0; i < n; ++i) {
    size_t k = answer_split(rows_a[i], ",", x);
    if (k == 0 || k != answer_split(rows_b[i], ",", y)) return 0;
    for (size_t j = 0; j < k; ++j)
      if (!answer_same(x[j], y[j], budget)) return 0;
  }
  return 1;
}

static int same_union(answer_span a, answer_span b, answer_budget *budget) {
  answer_span x[ANSWER_PARTS], y[ANSWER_PARTS];
  answer_list l = {.n = answer_split(a, "\\cup", x)}, m = {.n = answer_split(b, "\\cup", y)};
  if (l.n < 2 || l.n != m.n) return 0;
  for (size_t i = 0; i < l.n; ++i) {
    l.part[i].text = x[i];
    m.part[i].text = y[i];
  }
  return same_in_any_order(&l, &m, WHOLE, budget);
}

/* Brackets around one thing mean nothing, but two kinds of them are not the same. */
static int same_inside(answer_span a, answer_span b, answer_budget *budget) {
  answer_span in_a, in_b;
  answer_enclosure kind_a = answer_enclosed(a, &in_a), kind_b = answer_enclosed(b, &in_b);
  if (kind_a == ANSWER_ARRAY && kind_b == ANSWER_ARRAY) return same_matrix(in_a, in_b, budget);
  int wraps_a = kind_a != ANSWER_NO_BRACKETS && kind_a != ANSWER_ARRAY,
      wraps_b = kind_b != ANSWER_NO_BRACKETS && kind_b != ANSWER_ARRAY;
  if (wraps_a && wraps_b && kind_a != kind_b) return 0;
  return (wraps_a || wraps_b) && answer_same(wraps_a ? in_a : a, wraps_b ? in_b : b, budget);
}

/* --- all together --- */

/* Both are one thing, no list. */
static int same_single(answer_span a, answer_span b, answer_budget *budget) {
  return answer_same_equation(a, b, budget) || answer_same_relation(a, b, budget) ||
         answer_same_label(a, b, budget) || same_union(a, b, budget) || same_inside(a, b, budget);
}

/* Both taken apart, with commas between thousands (or not) on each side. */
static int same_taken_apart(answer_span a, int thousands_a, answer_span b, int thousands_b,
                            answer_budget *budget) {
  answer_list l, m;
  if (!answer_list_read(&l, a, thousands_a) || !answer_list_read(&m, b, thousands_b)) return 0;
  if (l.n >= 2 && m.n >= 2) return same_list(&l, &m, budget);
  if (l.n == 1 && m.n == 1) return same_single(a, b, budget);
  return answer_same_equation(a, b, budget); /* x \in \{1, 2\} and 1, 2 */
}

static int has_thousands(answer_span s) {
  answer_list apart, joined;
  return answer_list_read(&apart, s, 0) && answer_list_read(&joined, s, 1) && apart.n != joined.n;
}

int answer_same(answer_span a, answer_span b, answer_budget *budget) {
  a = answer_trim(a);
  b = answer_trim(b);
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (answer_same_text(a, b)) return 1;
  if (budget->left < 0 || budget->depth == MAX_DEPTH) return 0;
  budget->left -= 1 + (long)(a.n + b.n) / 64;
  ++budget->depth;
  int same = answer_same_value(a, b, budget);
  int most_a = !same && has_thousands(a), most_b = !same && has_thousands(b);
  for (int i = 0; i <= most_a && !same; ++i)
    for (int k = 0; k <= most_b && !same; ++k) same = same_taken_apart(a, i, b, k, budget);
  --budget->depth;
  return same;
}

/* --- choices --- */

/* (A), A, A) 12, A. 12, A: 12: the letter, '\0' if it is none from A to J. *rest is what follows,
 * and *mark what stands between, '\0' if nothing does. */
static char choice(answer_span s, answer_span *rest, char *mark) {
  int opened = s.n > 0 && *s.at == '(';
  if (opened) s = answer_trim((answer_span){s.at + 1, s.n - 1});
  if (s.n == 0 || *s.at < 'A' || *s.at > 'J') return '\0';
  *mark = s.n > 1 ? s.at[1] : '\0';
  if (opened && *mark != ')') return '\0';
  if (s.n > 1 && !answer_is_any(*mark, ").:")) return '\0';
  *rest = s.n > 2 ? answer_trim((answer_span){s.at + 2, s.n - 2}) : (answer_span){s.at, 0};
  return *s.at;
}

int answer_is_choice(answer_span s) {
  answer_span rest;
  char mark;
  return choice(s, &rest, &mark) != '\0' && (mark != ':' || rest.n == 0);
}

/* The same letter; what follows it counts where both have it. A reference "J: 4 hr" is no choice
 * but a value with a label. */
static int same_choice(answer_span a, answer_span b, answer_budget *budget) {
  answer_span rest_a, rest_b;
  char mark_a, mark_b, letter = choice(a, &rest_a, &mark_a);
  if (letter == '\0' || letter != choice(b, &rest_b, &mark_b)) return 0;
  if (rest_a.n == 0) return 1;
  if (mark_a == ':') return 0;
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

/* --- the whole --- */

static int same_span(answer_span a, answer_span b) {
  return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

int answer_prepare(answer_text *out, answer_span text) {
  text = answer_trim(text);
  if (text.n == 0 || text.n > ANSWER_MAX || !answer_clean(out, text.at, text.n)) return 0;
  expand_signs(out);
  return answer_trim((answer_span){out->data, out->n}).n > 0;
}

int answer_equal(const char *reference, size_t n, const char *response, size_t m) {
  answer_span a = answer_trim((answer_span){reference, n}),
              b = answer_trim((answer_span){response, m});
  answer_text x, y;
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (same_span(a, b)) return 1;
  if (!answer_prepare(&x, a) || !answer_prepare(&y, b)) return 0;
  a = answer_trim((answer_span){x.data, x.n});
  b = answer_trim((answer_span){y.data, y.n});
  if (x.unit_powers != 0 && y.unit_powers != 0 && x.unit_powers != y.unit_powers) return 0;
  answer_budget budget = {ANSWER_WORK, 0};
  return answer_same(a, b, &budget) || same_choice(a, b, &budget);
}
