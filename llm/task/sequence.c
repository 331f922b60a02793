/* Sorting and parity: tasks over a sequence of symbols. Each symbol is uniform, and so is the
 * sequence's length between its bounds. */
#include "llm/task/internal.h"

#include "core/config/fields.h"

#include <string.h>

typedef struct sequence { /* sorting has no chain, parity no values */
  size_t length, min_length, values;
  int chain;
} sequence;

static sequence *sequence_of(const task *t) {
  return t->parameters;
}

static size_t draw_length(const task *t, task_source *s) {
  size_t least = sequence_of(t)->min_length;
  return least + task_below(s, sequence_of(t)->length - least + 1);
}

/* --- sorting --- */

/* Values of one digit need nothing between them. */
static void put_values(const task *t, task_text *to, const int *value, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (i != 0 && sequence_of(t)->values > 10) task_put_char(to, ',');
    task_put_number(to, value[i]);
  }
}

static int draw_sorting(const task *t, task_source *s, task_sample *out) {
  int value[TASK_MAX_SORTED], sorted[TASK_MAX_SORTED];
  size_t n = draw_length(t, s);
  for (size_t i = 0; i < n; ++i) {
    value[i] = (int)task_below(s, sequence_of(t)->values);
    size_t at = i;
    for (; at > 0 && sorted[at - 1] > value[i]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = value[i];
  }
  put_values(t, &out->prompt, value, n);
  task_put_char(&out->prompt, '=');
  put_values(t, &out->answer, sorted, n);
  return 1;
}

static gl_status read_sorting(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &sequence_of(t)->length, &sequence_of(t)->min_length);
  sequence_of(t)->values = field_count(r, "values");
  size_t digits = task_digits(sequence_of(t)->values - 1),
         each = digits + (sequence_of(t)->values > 10);
  t->max_answer = sequence_of(t)->length * each - (each - digits);
  t->max_prompt = t->max_answer + 1;
  task_use(t, sequence_of(t)->values > 10 ? ",=" : "=");
  task_use_digits(t, sequence_of(t)->values - 1);
  return r->status;
}

static const task_field sorting_fields[] = {
    {"length", "1 to 200", "5", "numbers of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "numbers of a prompt, at least", 0},
    {"values", "2 to 1000", "10",
     "numbers are uniform below it; with more than 10, commas stand between", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_sorting = {
    .name = "sorting",
    .about = "a list of numbers in ascending order",
    .example = {"31524=", "12345"},
    .field = sorting_fields,
    .parameters_size = sizeof(sequence),
    .read = read_sorting,
    .score = task_score_positions,
    .has_graded = 1,
    .draw = draw_sorting,
};

/* --- parity --- */

/* The answer is whether the number of ones is odd; with chain, one such digit for every prefix. */
static int draw_parity(const task *t, task_source *s, task_sample *out) {
  size_t n = draw_length(t, s);
  uint64_t odd = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bit = task_below(s, 2);
    odd ^= bit;
    task_put_char(&out->prompt, (char)('0' + bit));
    if (sequence_of(t)->chain || i + 1 == n) task_put_char(&out->answer, (char)('0' + odd));
  }
  task_put_char(&out->prompt, '=');
  return 1;
}

static gl_status read_parity(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &sequence_of(t)->length, &sequence_of(t)->min_length);
  sequence_of(t)->chain = field_flag(r, "chain");
  t->max_prompt = sequence_of(t)->length + 1;
  t->max_answer = sequence_of(t)->chain ? sequence_of(t)->length : 1;
  task_use(t, "01=");
  const cfg_node *reward = cfg_child(r, "reward");
  if (r->status == GL_OK && t->graded && !sequence_of(t)->chain)
    r->status = cfg_fail(reward, r->err, "parity has a graded reward only with chain: true");
  return r->status;
}

static const task_field parity_fields[] = {
    {"length", "1 to 500", "8", "bits of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "bits of a prompt, at least", 0},
    {"chain", "true, false", "false", "the answer is the parity of every beginning", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_parity = {
    .name = "parity",
    .about = "whether a string of bits holds an odd number of ones",
    .example = {"10110=", "1"},
    .field = parity_fields,
    .parameters_size = sizeof(sequence),
    .read = read_parity,
    .score = task_score_positions,
    .has_graded = 1,
    .draw = draw_parity,
};
