/* What an answer is taken for, part by part. The order of the questions is that of answer_same().
 */
#include "llm/answer/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Numbers and formulas: 1 if s is one. */
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

/* Rows with their entries. */
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

/* What has a sign between sides, or is a matrix: 1 if s is such a thing. */
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

/* Takes brackets away that stand around one thing: whether there were any. */
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
