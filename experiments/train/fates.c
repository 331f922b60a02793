/* Keeps the fates of responses, and counts them by what the responses were. */
#include "experiments/train/fates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fates_fini(fates_log *l) {
  free(l->all);
  *l = (fates_log){0};
}

gl_status fates_add(fates_log *l, const batch *b, unit_fate fate, gl_error *err) {
  if (b->n_responses > l->capacity - l->n) {
    if (l->capacity > SIZE_MAX / sizeof *l->all / 4 ||
        b->n_responses > SIZE_MAX / sizeof *l->all / 4)
      return gl_fail_memory(err, "what became of responses");
    const size_t capacity = 2 * l->capacity + b->n_responses;
    response_fate *more = realloc(l->all, capacity * sizeof *more);
    if (more == NULL) return gl_fail_memory(err, "what became of responses");
    l->all = more;
    l->capacity = capacity;
  }
  for (size_t g = 0; g < b->n_groups; ++g)
    for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i)
      l->all[l->n++] =
          (response_fate){.prompt = b->prompt[g],
                          .reward = b->reward[i],
                          .tokens = (uint32_t)(b->token_start[i + 1] - b->token_start[i]),
                          .fate = (uint32_t)fate};
  return GL_OK;
}

/* --- quarters of prompts --- */

typedef struct prompt_score {
  int64_t prompt;
  double sum, mean;
  size_t n;
  int32_t quarter;
} prompt_score;

static int by_prompt(const void *a, const void *b) {
  const int64_t x = ((const prompt_score *)a)->prompt, y = ((const prompt_score *)b)->prompt;
  return (x > y) - (x < y);
}

static int by_reward(const void *a, const void *b) {
  const prompt_score *x = a, *y = b;
  return x->mean != y->mean ? (x->mean > y->mean) - (x->mean < y->mean) : by_prompt(a, b);
}

/* By all there is, so that sums have the same bits whatever order responses came in. */
static int fates_by_prompt(const void *a, const void *b) {
  const response_fate *x = a, *y = b;
  if (x->prompt != y->prompt) return (x->prompt > y->prompt) - (x->prompt < y->prompt);
  if (x->fate != y->fate) return (x->fate > y->fate) - (x->fate < y->fate);
  if (x->tokens != y->tokens) return (x->tokens > y->tokens) - (x->tokens < y->tokens);
  return (x->reward > y->reward) - (x->reward < y->reward);
}

/* The prompts of the log, which stands in their order, each with its quarter and in the order of
 * their numbers; returns how many. */
static size_t rank_prompts(const response_fate *all, size_t n, prompt_score *prompt) {
  size_t prompts = 0;
  for (size_t i = 0; i < n; ++i) {
    if (prompts == 0 || prompt[prompts - 1].prompt != all[i].prompt)
      prompt[prompts++] = (prompt_score){.prompt = all[i].prompt};
    prompt[prompts - 1].sum += all[i].reward;
    ++prompt[prompts - 1].n;
  }
  for (size_t k = 0; k < prompts; ++k) prompt[k].mean = prompt[k].sum / (double)prompt[k].n;
  qsort(prompt, prompts, sizeof *prompt, by_reward);
  for (size_t k = 0; k < prompts; ++k)
    prompt[k].quarter = 1 + (int32_t)(k * STORE_QUARTERS / prompts);
  qsort(prompt, prompts, sizeof *prompt, by_prompt);
  return prompts;
}

/* --- the table --- */

enum { CELLS = FATES * STORE_QUARTERS * LENGTH_CLASSES };

static size_t cell_of(const response_fate *r, int32_t quarter) {
  const int length = ilogb((double)r->tokens); /* at most 31, which is below LENGTH_CLASSES */
  return ((size_t)r->fate * STORE_QUARTERS + (size_t)quarter - 1) * LENGTH_CLASSES +
         (size_t)(length > 0 ? length : 0);
}

static void fill(fate_record *cell, const response_fate *all, size_t n,
                 const prompt_score *prompt) {
  for (size_t i = 0, k = 0; i < n; ++i) {
    while (prompt[k].prompt != all[i].prompt) ++k;
    fate_record *to = &cell[cell_of(&all[i], prompt[k].quarter)];
    ++to->responses;
    to->tokens += all[i].tokens;
    to->reward += all[i].reward;
  }
}

/* Leaves the cells that hold something, with their names. */
static size_t keep_filled(fate_record *cell) {
  size_t kept = 0;
  for (size_t c = 0; c < CELLS; ++c) {
    if (cell[c].responses == 0) continue;
    fate_record one = cell[c];
    snprintf(one.fate, sizeof one.fate, "%s",
             unit_fate_name((unit_fate)(c / LENGTH_CLASSES / STORE_QUARTERS)));
    one.quarter = 1 + (int32_t)(c / LENGTH_CLASSES % STORE_QUARTERS);
    one.tokens_from = (int64_t)1 << c % LENGTH_CLASSES;
    cell[kept++] = one;
  }
  return kept;
}

gl_status fates_count(const fates_log *l, fate_record **out, size_t *n, gl_error *err) {
  fate_record *cell = calloc(CELLS, sizeof *cell);
  response_fate *all = calloc(l->n + 1, sizeof *all); /* the log is as large */
  prompt_score *prompt = l->n < SIZE_MAX / sizeof *prompt ? calloc(l->n + 1, sizeof *prompt) : NULL;
  *out = NULL;
  *n = 0;
  if (cell == NULL || all == NULL || prompt == NULL) {
    free(cell), free(all), free(prompt);
    return gl_fail_memory(err, "what became of responses");
  }
  if (l->n > 0) memcpy(all, l->all, l->n * sizeof *all);
  qsort(all, l->n, sizeof *all, fates_by_prompt);
  rank_prompts(all, l->n, prompt);
  fill(cell, all, l->n, prompt);
  *n = keep_filled(cell);
  *out = cell;
  free(all), free(prompt);
  return GL_OK;
}
