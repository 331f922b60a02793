/* A model measured on the held-out problems of its task, and pass@k. Prefixes: llm_eval_,
 * llm_pass_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_EVAL_H
#define GEPOLAB_EXPERIMENTS_LLM_EVAL_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/random/rng.h"
#include "llm/learner/run_spec.h"

#include <stddef.h>

typedef struct llm_eval {
  size_t problems, samples; /* samples 1 where greedy */
  size_t *correct;          /* [problems] responses of reward 1 */
  double reward;            /* mean over responses */
  double tokens, cut_off;   /* tokens of a response, fraction cut off at the length limit: means */
} llm_eval;

/* What is evaluated. Every response has its own address in the random streams of `seed` and of
 * `set` (which evaluation set it is, from 0), so that the first ones are the same however many are
 * sampled. */
typedef struct llm_eval_request {
  model *model;
  const run_spec *spec; /* the first spec->eval.prompts held-out problems */
  uint64_t seed;
  size_t set;
  size_t samples; /* responses to each problem; 0: the greedy one */
  progress *bar;  /* NULL: none; counts problems */
  size_t *done;   /* problems so far */
} llm_eval_request;

/* GL_EINTERRUPTED for a Ctrl-C between two parts of the work. Release with llm_eval_fini() in any
 * case. */
gl_status llm_eval_init(llm_eval *out, const llm_eval_request *r, gl_error *err);
void llm_eval_fini(llm_eval *e);

/* --- pass@k --- */
/* pass@k: the chance that at least one of k responses to a problem is right, estimated from n
 * responses of which c are right without bias (Chen et al. 2021, arXiv 2107.03374, eq. 1):
 *
 *   1 - C(n - c, k) / C(n, k)
 *
 * averaged over problems. Problems are the independent units: standard errors and intervals are
 * over them. */

typedef struct llm_pass {
  size_t k;
  double value, standard_error; /* standard error NaN for a single problem */
  double low, high;             /* 95 % */
  const char *interval;         /* how: "wilson" or "bootstrap" */
} llm_pass;

/* Of one problem; k <= n, c <= n. */
double llm_pass_problem(size_t n, size_t c, size_t k);
/* Of n_problems >= 1 with correct[i] right ones among n each. The interval is Wilson's where every
 * problem's estimate is 0 or 1, else a percentile bootstrap over problems drawn from stream. */
void llm_pass_at(llm_pass *out, const size_t *correct, size_t n_problems, size_t n, size_t k,
                 rng_stream stream);
/* Wilson's 95 % score interval (1927) for a fraction p of n trials. */
void llm_pass_wilson(double p, size_t n, double *low, double *high);

#endif
