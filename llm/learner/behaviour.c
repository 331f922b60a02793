/* What samplers do otherwise than the learner (paper/methods.md §1.3): a share of their responses
 * comes from another policy, and what is recorded of a token is computed by whom `logq` says. What
 * distorts a sampler's logits is done where they are made (llm/model/generate.c).
 *
 * A response comes whole from the sampler's distribution or from the other policy, and is recorded
 * with the mixture's probability. So its tokens need log-probabilities of both. Each policy tells
 * those of its own responses as it draws them, and a forward tells the others. */
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- forwards over what was sampled --- */

typedef struct sampled_score {
  const unsigned char *chosen; /* NULL: all */
  int which;
  score_policy policy;
  double temperature;
  const size_t *first;
  bool replays;
} sampled_score;

/* Log-probabilities of the tokens of the responses for which chosen[i] is `which` (chosen NULL:
 * all) under such parameters, from token first[i] on (first NULL: of all), to `to`, laid out as the
 * result is; renormalised over the kept tokens if `replays`. */
static gl_status score_result(llm_learner *l, const drawing_request *r,
                              const generate_result *result, const sampled_score *what, double *to,
                              gl_error *err) {
  const size_t n = r->problems->n * r->each;
  size_t *response = calloc(3 * n + 1, sizeof *response); /* three lists */
  if (response == NULL) return gl_fail_memory(err, "a batch's log-probabilities");
  response_list list = {.response = response,
                        .start = response + n,
                        .length = result->length,
                        .group_of = response + 2 * n,
                        .first = what->first,
                        .prompts = r->problems,
                        .token = result->token,
                        .replays = what->replays};
  if (what->replays) {
    list.shape = result->shape;
    list.kept = result->kept;
  }
  for (size_t i = 0; i < n; ++i) {
    response[n + i] = i * l->spec.max_tokens;
    response[2 * n + i] = i / r->each;
    if (result->length[i] > 0 && (what->chosen == NULL || what->chosen[i] == what->which))
      response[list.n++] = i;
  }
  gl_status status = GL_OK;
  if (list.n > 0)
    status = llm_learner_log_probs(l, &list, what->policy, what->temperature, to, err);
  free(response);
  return status;
}

/* --- logq: learner --- */

/* The tokens from place first[i] of response i on get the log-probabilities that the learner's
 * forward computes from the parameters in use, the sampler's: of the whole distribution, and where
 * sets are recorded of the distribution over them. */
static gl_status record_by_learner(llm_learner *l, const drawing_request *r, const size_t *first,
                                   generate_result *result, gl_error *err) {
  const int truncates = sampling_truncates(&l->spec.sampling, l->spec.model.vocabulary);
  sampled_score what = {.temperature = l->spec.sampling.temperature, .first = first};
  gl_status status = score_result(l, r, result, &what, result->logq, err);
  for (size_t i = 0; status == GL_OK && !truncates && i < r->problems->n * r->each; ++i)
    for (size_t t = first[i], at = i * l->spec.max_tokens; t < result->length[i]; ++t)
      result->logq_truncated[at + t] = result->logq[at + t];
  if (status != GL_OK || !truncates || result->kept == NULL)
    return status; /* without sets nobody can tell the truncated one: weights: raw */
  what.replays = true;
  return score_result(l, r, result, &what, result->logq_truncated, err);
}

/* --- a mixture --- */

/* log(e^x + e^y). */
static double log_add(double x, double y) {
  const double top = x > y ? x : y;
  return isinf(top) ? top : top + log(exp(x - top) + exp(y - top));
}

/* chosen[i] = 1: response i comes from the other policy. */
static void choose(const llm_learner *l, const drawing_request *r, size_t n,
                   unsigned char *chosen) {
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_BEHAVIOUR, r->stream.entity);
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(stream, r->first + i);
    chosen[i] = rng_u01_53(w.v[0], w.v[1]) < l->spec.sampling.behaviour.share;
  }
}

/* Draws the responses for which chosen[i] is `which` by the parameters in use. A response that is
 * said to be finished is left alone, so the others are said to be that meanwhile. */
static gl_status draw_chosen(llm_learner *l, const drawing_request *r, const sampling_spec *dist,
                             const unsigned char *chosen, int which, generate_result *result,
                             gl_error *err) {
  const size_t n = r->problems->n * r->each;
  int *finished = calloc(n + 1, sizeof *finished);
  if (finished == NULL) return gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < n; ++i) {
    finished[i] = result->finished[i];
    if (chosen[i] != which) result->finished[i] = 1;
  }
  gl_status status = llm_learner_generate(l, r, dist, result, err);
  for (size_t i = 0; i < n; ++i)
    if (chosen[i] != which) result->finished[i] = finished[i];
  free(finished);
  return status;
}

/* Uniform tokens, each at the address that it has under every distribution. */
static void draw_uniform(const llm_learner *l, const drawing_request *r,
                         const unsigned char *chosen, generate_result *result) {
  const double vocabulary = (double)l->spec.model.vocabulary;
  for (size_t i = 0; i < r->problems->n * r->each; ++i)
    while (chosen[i] && !result->finished[i] && result->length[i] < r->up_to) {
      const rng_words w = rng_block(r->stream, rng_token_index(r->first + i, result->length[i]));
      const int32_t token = (int32_t)(rng_u01_53(w.v[0], w.v[1]) * vocabulary);
      result->token[i * l->spec.max_tokens + result->length[i]++] = token;
      result->finished[i] = run_spec_is_stop(&l->spec, token);
    }
}

/* Every token's conditional log-probability under the mixture: log M_t - log M_(t-1), where M_t is
 * the mixture's probability of a response's first t tokens. mine and theirs are laid out as the
 * result is. */
static void record_mixture(const llm_learner *l, const drawing_request *r, const double *mine,
                           const double *theirs, generate_result *result) {
  const double share = l->spec.sampling.behaviour.share;
  for (size_t i = 0; i < r->problems->n * r->each; ++i) {
    double reach = log1p(-share), other = log(share), before = 0;
    for (size_t t = 0; t < result->length[i]; ++t) {
      const size_t at = i * l->spec.max_tokens + t;
      reach += mine[at];
      other += theirs[at];
      const double both = log_add(reach, other);
      result->logq[at] = result->logq_truncated[at] = both - before;
      before = both;
    }
  }
}

static gl_status use_initial(void *context, size_t rank, gl_error *err) {
  const replica *r = &((const llm_learner *)context)->replica[rank];
  (void)err;
  model_use(r->model, r->initial);
  return GL_OK;
}

/* The other policy's responses, by the version's parameters scored, and the reverse; mine and
 * theirs get the log-probabilities of all. */
static gl_status draw_both(llm_learner *l, const drawing_request *r, const unsigned char *chosen,
                           double *mine, double *theirs, generate_result *result, gl_error *err) {
  const sampling_spec *spec = &l->spec.sampling;
  const size_t n = r->problems->n * r->each, width = l->spec.max_tokens;
  const int initial = spec->behaviour.with == OTHER_INITIAL;
  sampling_spec plain = *spec, own = *spec;
  plain.behaviour = (sampling_behaviour){.with = OTHER_NONE};
  own.behaviour.with = OTHER_NONE;
  gl_status status = GL_OK;
  if (initial) {
    status = rank_threads_run(l->threads, use_initial, l, err);
    if (status == GL_OK) status = draw_chosen(l, r, &plain, chosen, 1, result, err);
    memcpy(theirs, result->logq, n * width * sizeof *theirs);
    if (status == GL_OK) status = rank_threads_run(l->threads, r->use_version, r->use_context, err);
  } else {
    draw_uniform(l, r, chosen, result);
  }
  if (status == GL_OK) status = draw_chosen(l, r, &own, chosen, 0, result, err);
  memcpy(mine, result->logq, n * width * sizeof *mine);
  const double temperature = spec->temperature * (1 + spec->behaviour.temperature_error);
  if (status == GL_OK)
    status = score_result(l, r, result,
                          &(sampled_score){chosen, 1, SCORE_IN_USE, temperature, NULL, false}, mine,
                          err);
  if (status == GL_OK && initial)
    status = score_result(
        l, r, result, &(sampled_score){chosen, 0, SCORE_INITIAL, spec->temperature, NULL, false},
        theirs, err);
  for (size_t k = 0; k < n * width && !initial; ++k)
    theirs[k] = -log((double)l->spec.model.vocabulary);
  return status;
}

static gl_status sample_mixture(llm_learner *l, const drawing_request *r, generate_result *result,
                                gl_error *err) {
  const size_t n = r->problems->n * r->each, width = l->spec.max_tokens;
  for (size_t i = 0; i < n; ++i)
    if (result->length[i] > 0 || r->up_to < width || r->limit != NULL)
      return gl_fail(err, GL_EINPUT,
                     "sampling.behaviour_mixture mixes whole responses, and this batch is drawn "
                     "from several versions; take the cluster's in-flight updates away (in_flight, "
                     "or partial: continue)");
  unsigned char *chosen = calloc(n + 1, 1);
  double *mine = calloc(n * width + 1, sizeof *mine); /* generate_result_init() checked this size */
  double *theirs = calloc(n * width + 1, sizeof *theirs);
  gl_status status = chosen != NULL && mine != NULL && theirs != NULL
                         ? GL_OK
                         : gl_fail_memory(err, "a batch's log-probabilities");
  if (status == GL_OK) {
    choose(l, r, n, chosen);
    status = draw_both(l, r, chosen, mine, theirs, result, err);
  }
  if (status == GL_OK) record_mixture(l, r, mine, theirs, result);
  free(chosen);
  free(mine);
  free(theirs);
  return status;
}

/* --- all of it --- */

gl_status llm_learner_sample(llm_learner *l, const drawing_request *r, generate_result *result,
                             gl_error *err) {
  const sampling_spec *dist = &l->spec.sampling;
  if (dist->behaviour.with != OTHER_NONE) return sample_mixture(l, r, result, err);
  size_t *first = NULL;
  if (dist->logq == LOGQ_LEARNER) {
    const size_t n = r->problems->n * r->each;
    first = calloc(n + 1, sizeof *first);
    if (first == NULL) return gl_fail_memory(err, "a batch");
    memcpy(first, result->length, n * sizeof *first);
  }
  gl_status status = llm_learner_generate(l, r, dist, result, err);
  if (status == GL_OK && first != NULL) status = record_by_learner(l, r, first, result, err);
  free(first);
  return status;
}
