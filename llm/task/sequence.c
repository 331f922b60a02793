/* Sorting and parity: tasks over a row of symbols. Each symbol is uniform, and so is the row's
 * length between its bounds. */
#include "llm/task/internal.h"

#include <string.h>

enum { MAX_SORTED = 200, MAX_VALUES = 1000, MAX_BITS = 500 };

static size_t draw_length(const task *t, task_source *s) {
  size_t least = t->as.sequence.min_length;
  return least + task_below(s, t->as.sequence.length - least + 1);
}

/* --- sorting -------------------------------------------------------------------------------------
 */

/* Values of one digit need nothing between them. */
static void put_values(const task *t, task_text *to, const int *value, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (i != 0 && t->as.sequence.values > 10) task_put_char(to, ',');
    task_put_number(to, value[i]);
  }
}

static int draw_sorting(const task *t, task_source *s, task_sample *out) {
  int value[MAX_SORTED], sorted[MAX_SORTED];
  size_t n = draw_length(t, s);
  for (size_t i = 0; i < n; ++i) {
    value[i] = (int)task_below(s, t->as.sequence.values);
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
  task_read_length(r, 5, MAX_SORTED, &t->as.sequence.length, &t->as.sequence.min_length);
  t->as.sequence.values = cfg_count(r, "values", 10, 2, MAX_VALUES);
  size_t digits = task_digits(t->as.sequence.values - 1),
         each = digits + (t->as.sequence.values > 10);
  t->max_answer = t->as.sequence.length * each - (each - digits);
  t->max_prompt = t->max_answer + 1;
  task_use(t, t->as.sequence.values > 10 ? ",=" : "=");
  task_use_digits(t, t->as.sequence.values - 1);
  return r->status;
}

const task_rules task_sorting = {"sorting",
                                 "a row of numbers in ascending order",
                                 read_sorting,
                                 draw_sorting,
                                 task_score_positions,
                                 1};

/* --- parity --------------------------------------------------------------------------------------
 */

/* The answer is whether the number of ones is odd, or with chain that of every beginning. */
static int draw_parity(const task *t, task_source *s, task_sample *out) {
  size_t n = draw_length(t, s);
  uint64_t odd = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bit = task_below(s, 2);
    odd ^= bit;
    task_put_char(&out->prompt, (char)('0' + bit));
    if (t->as.sequence.chain || i + 1 == n) task_put_char(&out->answer, (char)('0' + odd));
  }
  task_put_char(&out->prompt, '=');
  return 1;
}

static gl_status read_parity(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, 8, MAX_BITS, &t->as.sequence.length, &t->as.sequence.min_length);
  t->as.sequence.chain = cfg_bool(r, "chain", 0);
  t->max_prompt = t->as.sequence.length + 1;
  t->max_answer = t->as.sequence.chain ? t->as.sequence.length : 1;
  task_use(t, "01=");
  const cfg_node *reward = cfg_child(r, "reward");
  if (r->status == GL_OK && t->graded && !t->as.sequence.chain)
    r->status = cfg_fail(reward, r->err, "parity has a graded reward only with chain: true");
  return r->status;
}

const task_rules task_parity = {"parity",
                                "whether a row of bits holds an odd number of ones",
                                read_parity,
                                draw_parity,
                                task_score_positions,
                                1};
