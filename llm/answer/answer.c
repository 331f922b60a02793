/* The checker's interface: finding a response's answer, and comparing two answers. Also choices,
 * and the expansion of \pm into two answers. */
#include "llm/answer/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The work allowed for one pair of answers, in the units of answer_budget. */
enum { ANSWER_WORK = 10000 };

/* --- boxes --- */

/* Number of boxes to try, from the end of the text. The last closed one is used. */
enum { TRIED_BOXES = 64 };

/* Length of the group at the beginning of s, including braces; 0 if it is not closed. */
static size_t closed_group(answer_span s) {
  size_t depth = 0;
  for (size_t i = 0; i < s.n; ++i) {
    if (s.at[i] == '\\')
      ++i; /* \{ and \} are printed braces, which do not group */
    else if (s.at[i] == '{')
      ++depth;
    else if (s.at[i] == '}' && --depth == 0)
      return i + 1;
  }
  return 0;
}

/* The contents of the box whose command name ends where s begins: {...}, or without braces the text
 * up to white space or a dollar sign. */
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

/* The contents of the last box that is closed. */
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

/* The length of a number such as 12, 1,234, 1.5 or .5 at the beginning of s; 0 if there is none. */
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

/* Length of a decimal with its exponent, divisor or percent sign. */
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

/* True for a plus or minus that is a sign and not an operation: no operand precedes it. */
static bool is_sign(answer_span text, size_t at) {
  if (text.at[at] != '-' && text.at[at] != '+') return false;
  return at == 0 || !(answer_is_digit(text.at[at - 1]) || answer_is_letter(text.at[at - 1]) ||
                      answer_is_any(text.at[at - 1], ")]}"));
}

/* The last number of the text, with its sign. */
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

/* Returns the letter of a choice such as "(A)", "A", "A) 12", "A. 12" or "A: 12"; '\0' if s is not
 * a choice from A to J. *rest is the text after the letter, *mark the character between the two,
 * '\0' if there is no text. */
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

/* True if s is one letter A to J, perhaps in parentheses or with text after ) or . or : */
static bool answer_is_choice(answer_span s) {
  answer_span rest;
  char mark;
  return choice_letter(s, &rest, &mark) != '\0' && (mark != ':' || rest.n == 0);
}

/* True for the same letter; if both have text after it, the texts must be equal, too. A reference
 * "J: 4 hr" is not a choice but a value with a label. */
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

/* Replaces each part that has one \pm by two parts, with + and -. The text does not change if the
 * result would not fit. */
static void expand_signs(answer_text *text) {
  answer_span part[ANSWER_PARTS], all = {text->data, text->n};
  answer_text out = {.n = 0, .unit_powers = text->unit_powers};
  size_t at = 0, n = count_signs(all, &at) == 0 ? 0 : answer_split(all, ",;", part);
  for (size_t i = 0; i < n; ++i) {
    bool both = count_signs(part[i], &at) == 1;
    for (int copy = 0; copy <= both; ++copy) {
      if (out.n + part[i].n + 2 > sizeof out.data) return;
      if (out.n > 0) {
        memcpy(out.data + out.n, ", ",
               2); /* a space, because a comma without one could separate thousands */
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

/* Cleans an answer and expands each \pm into two parts. Returns 0 if it is empty, longer than
 * ANSWER_MAX bytes, or the result does not fit. */
static bool answer_prepare(answer_text *out, answer_span text) {
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

/* --- how an answer is read --- */

/* Determines the kind of an answer and of its parts. The tests have the same order as in
 * answer_same(). */

typedef struct reader {
  answer_reading *out;
  answer_budget budget;
} reader;

static void note_part(reader *r, answer_span s, answer_span name, size_t depth);

static const answer_span no_name = {"", 0};

const char *answer_kind_name(answer_kind kind) {
  static const char *const names[ANSWER_KINDS] = {
      "number", "formula",  "equation", "relation", "labelled value", "list",   "tuple",
      "vector", "interval", "set",      "union",    "matrix",         "choice", "text"};
  assert(kind >= 0 && kind < ANSWER_KINDS);
  return names[kind];
}

/* --- nodes --- */

static answer_node *add_answer_node(reader *r, answer_kind kind, answer_span s, answer_span name,
                                    size_t depth) {
  answer_reading *out = r->out;
  if (out->nodes == ANSWER_NODES) {
    out->is_cut_off = 1;
    return NULL;
  }
  answer_node *node = &out->node[out->nodes++];
  *node = (answer_node){.kind = kind, .depth = depth, .n = s.n};
  node->begin = s.n > 0 ? (size_t)(s.at - out->text) : 0;
  if (name.n > 0) {
    node->name_begin = (size_t)(name.at - out->text);
    node->name_n = name.n;
  }
  return node;
}

static void note_parts(reader *r, const answer_span *part, size_t n, size_t depth) {
  for (size_t i = 0; i < n; ++i) note_part(r, part[i], no_name, depth);
}

/* Records the number's value and its text in the node, if a double can hold it. */
static void note_number(answer_node *node, const answer_value *x) {
  ball value = answer_ball(x);
  node->value = ball_may_be_zero(value) ? 0 : ball_to_double(value);
  node->has_value = isfinite(node->value) && (node->value != 0 || ball_may_be_zero(value));
  if (!node->has_value) return;
  if (x->exact && x->q.den == 1)
    snprintf(node->written, sizeof node->written, "%" PRId64, x->q.num);
  else if (x->exact)
    snprintf(node->written, sizeof node->written, "%" PRId64 "/%" PRId64, x->q.num, x->q.den);
  else
    snprintf(node->written, sizeof node->written, "%.15g", node->value);
}

/* --- kinds --- */

/* Records s if it is a number or a formula, and returns whether it is. */
static bool note_value(reader *r, answer_span s, answer_span name, size_t depth) {
  answer_value x;
  answer_span number = s;
  bool percent = answer_take_percent(&number);
  answer_known known = answer_evaluate(&x, number, 0, &r->budget);
  if (known == ANSWER_NO_EXPRESSION || (percent && x.has_variables)) return false;
  answer_node *node =
      add_answer_node(r, x.has_variables ? ANSWER_FORMULA : ANSWER_NUMBER, s, name, depth);
  if (node == NULL || x.has_variables || known != ANSWER_KNOWN) return true;
  if (percent) x = answer_apply('/', x, answer_of_int(100));
  note_number(node, &x);
  return true;
}

static void note_list(reader *r, const answer_list *l, answer_span s, size_t depth) {
  static const answer_kind kinds[] = {
      [ANSWER_NO_BRACKETS] = ANSWER_LIST,   [ANSWER_ROUND] = ANSWER_TUPLE,
      [ANSWER_ANGLE] = ANSWER_VECTOR,       [ANSWER_SQUARE] = ANSWER_INTERVAL,
      [ANSWER_OPEN_LEFT] = ANSWER_INTERVAL, [ANSWER_OPEN_RIGHT] = ANSWER_INTERVAL,
      [ANSWER_BRACES] = ANSWER_SET,         [ANSWER_ARRAY] = ANSWER_MATRIX};
  add_answer_node(r, kinds[l->kind], s, no_name, depth);
  for (size_t i = 0; i < l->n; ++i)
    note_part(r, l->part[i].text, l->part[i].has_sign ? no_name : l->part[i].name, depth + 1);
}

/* Records the entries of a matrix, row by row. */
static void note_matrix(reader *r, answer_span s, answer_span in, size_t depth) {
  answer_span row[ANSWER_PARTS], entry[ANSWER_PARTS];
  add_answer_node(r, ANSWER_MATRIX, s, no_name, depth);
  size_t n = answer_split(in, ";", row);
  for (size_t i = 0; i < n; ++i) {
    if (i + 1 == n && row[i].n == 0) break;
    add_answer_node(r, ANSWER_LIST, row[i], no_name, depth + 1);
    note_parts(r, entry, answer_split(row[i], ",", entry), depth + 2);
  }
}

/* Records s and its parts if it is an equation, relation, label, union or matrix, and returns
 * whether it is. */
static bool note_single(reader *r, answer_span s, answer_span name, size_t depth) {
  answer_span side[ANSWER_PARTS], in;
  size_t n = answer_sides(s, side, NULL);
  if (n > 1) {
    add_answer_node(r, ANSWER_EQUATION, s, name, depth);
    note_parts(r, side, n, depth + 1);
    return true;
  }
  if (answer_relation(s, side) != NULL) {
    add_answer_node(r, ANSWER_RELATION, s, name, depth);
    note_parts(r, side, 2, depth + 1);
    return true;
  }
  if (answer_label(s, side)) {
    add_answer_node(r, ANSWER_LABELLED, s, name, depth);
    note_parts(r, side, 2, depth + 1);
    return true;
  }
  n = answer_split(s, "\\cup", side);
  if (n > 1) {
    add_answer_node(r, ANSWER_UNION, s, name, depth);
    note_parts(r, side, n, depth + 1);
    return true;
  }
  if (answer_enclosed(s, &in) != ANSWER_ARRAY) return false;
  note_matrix(r, s, in, depth);
  return true;
}

/* Removes brackets around a single part; returns whether there were any. */
static bool unwrap_brackets(answer_span *s) {
  answer_span in;
  answer_enclosure kind = answer_enclosed(*s, &in);
  if (kind == ANSWER_NO_BRACKETS || kind == ANSWER_ARRAY || in.n == 0) return false;
  *s = in;
  return true;
}

static void note_part(reader *r, answer_span s, answer_span name, size_t depth) {
  enum { MAX_DEPTH = 12, MAX_BRACKETS = 12 };
  answer_list l;
  int left = depth < MAX_DEPTH && !r->out->is_cut_off ? MAX_BRACKETS : 0;
  s = answer_trim(s);
  answer_span whole = s;
  for (; s.n > 0 && left > 0; --left) {
    if (note_value(r, s, name, depth)) return;
    if (answer_list_read(&l, s, 1) && l.n > 1) {
      note_list(r, &l, s, depth);
      return;
    }
    if (note_single(r, s, name, depth)) return;
    if (!unwrap_brackets(&s)) break;
  }
  add_answer_node(r, ANSWER_TEXT, whole, name, depth);
}

_Static_assert((int)ANSWER_READING_SIZE >= (int)ANSWER_TEXT_SIZE, "a cleaned answer fits");

void answer_read(answer_reading *out, const char *text, size_t size) {
  answer_text cleaned;
  reader r = {out, {ANSWER_WORK, 0}};
  out->n = out->nodes = 0;
  out->is_cut_off = 0;
  if (answer_prepare(&cleaned, (answer_span){text, size})) {
    memcpy(out->text, cleaned.data, cleaned.n);
    out->n = cleaned.n;
  }
  out->text[out->n] = '\0';
  answer_span all = answer_trim((answer_span){out->text, out->n});
  if (answer_is_choice(all))
    add_answer_node(&r, ANSWER_CHOICE, all, no_name, 0);
  else
    note_part(&r, all, no_name, 0);
  answer_release_scratch();
}
