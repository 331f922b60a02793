/* Evaluates a model on the held-out problems of its task, and computes pass@k. Prefixes: llm_eval_,
 * llm_pass_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_EVAL_H
#define GEPOLAB_EXPERIMENTS_LLM_EVAL_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/random/rng.h"
#include "llm/learner/run_spec.h"

#include <stddef.h>

typedef struct llm_eval {
  size_t problems, samples; /* samples: responses per problem, 1 if greedy */
  size_t *correct;          /* [problems] number of responses with reward 1 */
  double reward;            /* mean over responses */
  double tokens, cut_off;   /* means over responses: tokens; fraction cut off at the length limit */
} llm_eval;

/* An evaluation to run. Every response has its own address in the random streams of `seed` and
 * `set` (index of the evaluation set, from 0). So the first responses are the same for every number
 * of samples. */
typedef struct llm_eval_request {
  model *model;
  const run_spec *spec; /* the first spec->eval.prompts held-out problems */
  uint64_t seed;
  size_t set;
  size_t samples; /* responses per problem; 0: one greedy response */
  progress *bar;  /* counts problems; NULL: none */
  size_t *done;   /* problems evaluated so far */
} llm_eval_request;

/* Runs the evaluation. Release with llm_eval_fini() in any case. Errors: GL_EINTERRUPTED (Ctrl-C
 * between two parts of the work). */
gl_status llm_eval_init(llm_eval *out, const llm_eval_request *r, gl_error *err);
void llm_eval_fini(llm_eval *e);

/* --- pass@k --- */
/* pass@k: the probability that at least one of k responses to a problem is correct. The unbiased
 * estimate from n responses, c of them correct (Chen et al. 2021, arXiv 2107.03374, eq. 1), is
 *
 *   1 - C(n - c, k) / C(n, k)
 *
 * averaged over problems. Problems are the independent units: standard errors and intervals are
 * over problems. */

typedef struct llm_pass {
  size_t k;
  double value, standard_error; /* standard_error: NaN for a single problem */
  double low, high;             /* 95 % interval */
  const char *interval;         /* its method: "wilson" or "bootstrap" */
} llm_pass;

/* pass@k of one problem; k <= n, c <= n. */
double llm_pass_problem(size_t n, size_t c, size_t k);
/* pass@k of n_problems >= 1, with correct[i] correct responses of n each. The interval is Wilson's
 * if every problem's estimate is 0 or 1, else a percentile bootstrap over problems with random
 * numbers from stream. */
void llm_pass_at(llm_pass *out, const size_t *correct, size_t n_problems, size_t n, size_t k,
                 rng_stream stream);

#endif
