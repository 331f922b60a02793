/* Samples responses to held-out problems in parts, counts correct ones, and computes pass@k with
 * its standard error and interval. */
#include "experiments/llm/eval.h"

#include "analysis/statistics.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "llm/learner/packed_tokens.h"
#include "llm/model/generate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
  PART_RESPONSES = 1024, /* responses per call of generate(); small, so that progress is shown and
                            Ctrl-C is noticed */
  PART_TOKENS = 1 << 22, /* maximum tokens of one call's results */
  MOST_SAMPLES = 1 << 12
};
/* Entity of the random-stream addresses, different from those of evaluations during a run. */
static const uint64_t own_stream = UINT64_C(1) << 62;

static size_t responses_to_each(const llm_eval_request *r) {
  return r->samples > 0 ? r->samples : 1;
}

/* Sums over responses. */
typedef struct sums {
  double reward, tokens, cut_off;
} sums;

/* A part of an evaluation: consecutive problems of the held-out split and their responses. */
typedef struct part {
  problem_set problems;
  generate_result responses;
  size_t *prompt_of, *number;
} part;

static void part_fini(part *p) {
  problem_set_fini(&p->problems);
  generate_result_fini(&p->responses);
  free(p->prompt_of);
  free(p->number);
}

static gl_status part_problems(part *p, const run_spec *spec, size_t first, size_t n,
                               gl_error *err) {
  uint64_t *which = MUST_ARRAY(uint64_t, n, "an evaluation");
  for (size_t i = 0; i < n; ++i) which[i] = first + i;
  gl_status status = problem_set_init(&p->problems, spec, TASK_HELD_OUT, which, n, err);
  free(which);
  return status;
}

/* Samples responses to the part's problems. `first`: index of its first problem in the held-out
 * split. */
static gl_status part_draw(part *p, const llm_eval_request *r, size_t first, gl_error *err) {
  const run_spec *spec = r->spec;
  const size_t each = responses_to_each(r), n = p->problems.n * each;
  p->prompt_of = MUST_ARRAY(size_t, n, "an evaluation");
  p->number = MUST_ARRAY(size_t, n, "an evaluation");
  for (size_t i = 0; i < n; ++i) {
    p->prompt_of[i] = i / each;
    p->number[i] = (first + i / each) * MOST_SAMPLES + i % each;
  }
  gl_status status = generate_result_init(&p->responses, n, spec->max_tokens, err);
  generate_request q = {.n_prompts = p->problems.n,
                        .prompt_start = p->problems.start,
                        .prompt = p->problems.token,
                        .n_responses = n,
                        .prompt_of = p->prompt_of,
                        .number = p->number,
                        .stream = rng_stream_at(r->seed, RNG_EVAL, own_stream + (uint64_t)r->set),
                        .sampling = spec->eval.how.dist,
                        .greedy = r->samples == 0,
                        .max_tokens = spec->max_tokens,
                        .up_to = spec->max_tokens,
                        .stop = spec->stop,
                        .n_stop = spec->n_stop,
                        .slots = spec->slots,
                        .must_be_finite = 1,
                        .first_prompt = first};
  return status == GL_OK ? generate(r->model, &q, &p->responses, err) : status;
}

static gl_status part_score(part *p, const run_spec *spec, size_t each, size_t *correct,
                            sums *total, gl_error *err) {
  const generate_result *r = &p->responses;
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->problems.n * each && status == GL_OK; ++i) {
    double score = 0;
    status = run_spec_score(spec, &p->problems.problem[i / each], r->token + i * spec->max_tokens,
                            r->length[i], r->finished[i], &score, err);
    correct[i / each] += score >= 1;
    total->reward += score;
    total->tokens += (double)r->length[i];
    total->cut_off += !r->finished[i];
  }
  return status;
}

static size_t part_size(size_t each, size_t max_tokens) {
  size_t most = PART_TOKENS / max_tokens;
  if (most > PART_RESPONSES) most = PART_RESPONSES;
  return most > each ? most / each : 1;
}

gl_status llm_eval_init(llm_eval *out, const llm_eval_request *r, gl_error *err) {
  const run_spec *spec = r->spec;
  const size_t each = responses_to_each(r), step = part_size(each, spec->max_tokens);
  *out = (llm_eval){.problems = spec->eval.prompts, .samples = each};
  out->correct = MUST_ARRAY(size_t, out->problems, "an evaluation");
  gl_status status = GL_OK;
  sums total = {0};
  for (size_t first = 0, n = 0; first < out->problems && status == GL_OK; first += n) {
    part p = {0};
    n = out->problems - first < step ? out->problems - first : step;
    status = part_problems(&p, spec, first, n, err);
    if (status == GL_OK) status = part_draw(&p, r, first, err);
    if (status == GL_OK) status = part_score(&p, spec, each, out->correct + first, &total, err);
    part_fini(&p);
    progress_at(r->bar, *r->done += n, NULL);
    if (status == GL_OK && signals_caught())
      status = gl_fail(err, GL_EINTERRUPTED, "stopped after %zu of %zu problems", first + n,
                       out->problems);
  }
  const double responses = (double)(out->problems * each);
  out->reward = total.reward / responses;
  out->tokens = total.tokens / responses;
  out->cut_off = total.cut_off / responses;
  return status;
}

void llm_eval_fini(llm_eval *e) {
  free(e->correct);
  *e = (llm_eval){0};
}

/* --- pass@k --- */

static const double z = 1.959963984540054; /* normal quantile at 97.5 % */

double llm_pass_problem(size_t n, size_t c, size_t k) {
  assert(c <= n && k >= 1 && k <= n);
  if (n - c < k) return 1;
  double none = 1; /* the product over i of 1 - k / i, which equals C(n - c, k) / C(n, k) */
  for (size_t i = n - c + 1; i <= n; ++i) none *= 1 - (double)k / (double)i;
  return 1 - none;
}

/* Wilson's 95 % score interval (1927) for a fraction p of n trials. */
static void llm_pass_wilson(double p, size_t n, double *low, double *high) {
  double m = (double)n, centre = p + z * z / (2 * m);
  double half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
  *low = fmax(0, (centre - half) / (1 + z * z / m));
  *high = fmin(1, (centre + half) / (1 + z * z / m));
}

static void bootstrap(llm_pass *out, const double *value, size_t n, rng_stream stream) {
  double *mean = MUST_ARRAY(double, BOOTSTRAP_REPLICATES, "a bootstrap");
  for (size_t r = 0; r < BOOTSTRAP_REPLICATES; ++r) {
    for (size_t i = 0; i < n; ++i) {
      rng_words w = rng_block(stream, r * n + i);
      mean[r] += value[(size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n)] / (double)n;
    }
  }
  sample_sort(mean, BOOTSTRAP_REPLICATES);
  out->low = sample_quantile(mean, BOOTSTRAP_REPLICATES, 0.025);
  out->high = sample_quantile(mean, BOOTSTRAP_REPLICATES, 0.975);
  out->interval = "bootstrap";
  free(mean);
}

void llm_pass_at(llm_pass *out, const size_t *correct, size_t n_problems, size_t n, size_t k,
                 rng_stream stream) {
  double *value = MUST_ARRAY(double, n_problems, "an evaluation");
  *out = (llm_pass){.k = k, .standard_error = NAN, .interval = "wilson"};
  double squares = 0;
  int between = 0;
  for (size_t i = 0; i < n_problems; ++i) {
    value[i] = llm_pass_problem(n, correct[i], k);
    out->value += value[i] / (double)n_problems;
    between |= value[i] > 0 && value[i] < 1;
  }
  for (size_t i = 0; i < n_problems; ++i) squares += pow(value[i] - out->value, 2);
  if (n_problems > 1)
    out->standard_error = sqrt(squares / (double)(n_problems - 1) / (double)n_problems);
  llm_pass_wilson(out->value, n_problems, &out->low, &out->high);
  if (between) bootstrap(out, value, n_problems, stream);
  free(value);
}
