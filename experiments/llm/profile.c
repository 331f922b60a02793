/* Measures the time of prompts, batches and updates, and fits delay distributions. */
#include "experiments/llm/profile.h"

#include "experiments/base/memory.h"
#include "experiments/base/program.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* --- distributions --- */

/* Mean and standard deviation (divisor n - 1; 0 for a single value) of f(seconds). */
static void moments(const double *x, size_t n, double (*f)(double), double *mean, double *sd) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) sum += f(x[i]) / (double)n;
  for (size_t i = 0; i < n; ++i) squares += pow(f(x[i]) - sum, 2);
  *mean = sum;
  *sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

static double itself(double x) {
  return x;
}

static void fit(llm_timing *t, size_t n) {
  moments(t->seconds, n, itself, &t->mean, &t->sd);
  moments(t->seconds, n, log, &t->mu, &t->sigma);
  t->smallest = t->largest = t->seconds[0];
  for (size_t i = 1; i < n; ++i) {
    t->smallest = fmin(t->smallest, t->seconds[i]);
    t->largest = fmax(t->largest, t->seconds[i]);
  }
}

double llm_profile_makespan(const double *lengths, size_t n, double *slots, size_t n_slots) {
  assert(n_slots > 0);
  double last = 0;
  for (size_t s = 0; s < n_slots; ++s) slots[s] = 0;
  for (size_t i = 0; i < n; ++i) {
    size_t first = 0;
    for (size_t s = 1; s < n_slots; ++s)
      if (slots[s] < slots[first]) first = s;
    slots[first] += lengths[i];
    last = fmax(last, slots[first]);
  }
  return last;
}

/* Sets decode_per_s to decoding steps per second, over all batches and after the prompts. */
static void fit_decoding(llm_profile *p) {
  double *slots = MUST_ARRAY(double, p->concurrency, "a profile"), steps = 0, seconds = 0;
  for (size_t k = 0; k < p->repetitions; ++k) {
    steps +=
        llm_profile_makespan(p->lengths + k * p->responses, p->responses, slots, p->concurrency);
    seconds += fmax(0, p->generation.seconds[k] - p->prompt.mean);
  }
  /* A lower bound for the divisor: if responses have one or two tokens, the decode time is only
   * noise around zero. */
  p->decode_per_s = steps / fmax(seconds, 1e-6 * p->generation.mean * (double)p->repetitions);
  free(slots);
}

/* --- measuring --- */

typedef struct one_batch {
  double prompt, generation, step;
} one_batch;

static draw_request request_of(const recipe *r, uint64_t id, double to) {
  return (draw_request){
      .batch_id = id, .n_groups = r->groups, .group_size = r->group_size, .from = 0, .to = to};
}

/* Each repetition uses another version, because an update increments it. */
static gl_status time_batch(one_batch *t, batch *b, learner *l, const recipe *r, uint64_t k,
                            gl_error *err) {
  double metrics[METRIC_COUNT];
  batch started = {0};
  draw_request q = request_of(r, k, DBL_MIN); /* only the first token of each response */
  q.version = (int64_t)k;
  double begun = seconds_now();
  gl_status status = l->ops->draw(l->self, &q, &started, err);
  t->prompt = seconds_now() - begun;
  batch_fini(&started);
  if (status != GL_OK) return status;
  q.to = 1;
  begun = seconds_now();
  status = l->ops->draw(l->self, &q, b, err);
  t->generation = seconds_now() - begun;
  if (status != GL_OK) return status;
  batch *const batches[] = {b};
  begun = seconds_now();
  status = l->ops->update(l->self, batches, 1, metrics, err);
  t->step = seconds_now() - begun;
  return status;
}

static void record_times(llm_profile *p, size_t k, const one_batch *t, const batch *b) {
  p->prompt.seconds[k] = t->prompt;
  p->generation.seconds[k] = t->generation;
  p->step.seconds[k] = t->step;
  for (size_t i = 0; i < p->responses; ++i)
    p->lengths[k * p->responses + i] = (double)(b->token_start[i + 1] - b->token_start[i]);
}

/* Fits the timings' distributions, and computes mean length and speeds. */
static void summarise(llm_profile *p) {
  const size_t n = p->repetitions * p->responses;
  double tokens = 0;
  fit(&p->prompt, p->repetitions);
  fit(&p->generation, p->repetitions);
  fit(&p->step, p->repetitions);
  for (size_t i = 0; i < n; ++i) tokens += p->lengths[i];
  p->tokens = tokens / (double)n;
  p->tokens_per_s = tokens / (p->generation.mean * (double)p->repetitions);
  p->trained_per_s = tokens / (p->step.mean * (double)p->repetitions);
  fit_decoding(p);
}

gl_status llm_profile_init(llm_profile *out, const llm_profile_request *q, gl_error *err) {
  const size_t responses = q->recipe->groups * q->recipe->group_size, n = q->repetitions;
  *out = (llm_profile){.repetitions = n,
                       .responses = responses,
                       .concurrency = q->slots == 0 || q->slots > responses ? responses : q->slots,
                       .prompt.seconds = MUST_ARRAY(double, n, "a profile"),
                       .generation.seconds = MUST_ARRAY(double, n, "a profile"),
                       .step.seconds = MUST_ARRAY(double, n, "a profile"),
                       .lengths = must_alloc(n, responses * sizeof(double), "a profile")};
  gl_status status = GL_OK;
  for (size_t k = 0; k <= n && status == GL_OK; ++k) {
    one_batch t;
    batch b = {0};
    status = time_batch(&t, &b, q->learner, q->recipe, k, err);
    if (status == GL_OK && k > 0) record_times(out, k - 1, &t, &b);
    batch_fini(&b);
    if (status == GL_OK && q->after != NULL && q->after(q->self, k))
      status = gl_fail(err, GL_EINTERRUPTED, "stopped after %zu of %zu repetitions", k, n);
  }
  if (status == GL_OK) summarise(out);
  return status;
}

void llm_profile_fini(llm_profile *p) {
  free(p->prompt.seconds);
  free(p->generation.seconds);
  free(p->step.seconds);
  free(p->lengths);
  *p = (llm_profile){0};
}
