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

/* --- forwards over what was drawn --- */

/* Some responses of a result as a set that can be scored. */
typedef struct drawn_set {
  rollout_set set;
  size_t *of;   /* [set.n_responses] their numbers in the result */
  double *logp; /* [set.n_tokens] */
} drawn_set;

static void drawn_set_fini(drawn_set *d) {
  rollout_set_fini(&d->set);
  free(d->of);
  free(d->logp);
}

/* Lays out the responses that have tokens and for which chosen[i] is `which` (chosen NULL: all),
 * with the sets of kept tokens if `keeps`. */
static gl_status drawn_set_init(drawn_set *d, const llm_learner *l, const drawing_request *r,
                                const generate_result *result, const unsigned char *chosen,
                                int which, int keeps, gl_error *err) {
  const problem_set *problems = r->problems;
  const size_t n = problems->n * r->each, width = l->spec.max_tokens;
  size_t responses = 0, tokens = 0;
  *d = (drawn_set){.of = calloc(n + 1, sizeof *d->of)};
  if (d->of == NULL) return gl_fail_memory(err, "a batch's log-probabilities");
  for (size_t i = 0; i < n; ++i) {
    if (result->length[i] == 0 || (chosen != NULL && chosen[i] != which)) continue;
    d->of[responses++] = i;
    tokens += result->length[i];
  }
  rollout_set *s = &d->set;
  if (keeps) s->shape = result->shape;
  s->replays = keeps;
  gl_status status =
      rollout_set_resize(s, problems->n, responses, tokens, problems->start[problems->n], err);
  d->logp = calloc(tokens + 1, sizeof *d->logp);
  if (status == GL_OK && d->logp == NULL)
    status = gl_fail_memory(err, "a batch's log-probabilities");
  if (status != GL_OK || responses == 0) return status;
  memcpy(s->prompt, problems->token, problems->start[problems->n] * sizeof *s->prompt);
  memcpy(s->prompt_start, problems->start, (problems->n + 1) * sizeof *s->prompt_start);
  const size_t words = s->shape.words;
  size_t k = 0, g = 0;
  s->group_start[0] = 0;
  for (size_t j = 0; j < responses; k += result->length[d->of[j++]]) {
    const size_t from = d->of[j] * width, length = result->length[d->of[j]];
    while (g < d->of[j] / r->each) s->group_start[++g] = j;
    s->token_start[j] = k;
    memcpy(s->token + k, result->token + from, length * sizeof *s->token);
    if (words > 0)
      memcpy(s->kept + k * words, result->kept + from * words, length * words * sizeof *s->kept);
  }
  while (g < problems->n) s->group_start[++g] = responses;
  s->token_start[responses] = k;
  return GL_OK;
}

/* Copies log-probabilities of the set's tokens from place first[i] of response i on (first NULL: of
 * all) to `to`, laid out as the result is. */
static void drawn_set_put(const drawn_set *d, const llm_learner *l, const size_t *first,
                          double *to) {
  const rollout_set *s = &d->set;
  for (size_t j = 0; j < s->n_responses; ++j) {
    const size_t i = d->of[j], n = s->token_start[j + 1] - s->token_start[j];
    for (size_t t = first != NULL ? first[i] : 0; t < n; ++t)
      to[i * l->spec.max_tokens + t] = d->logp[s->token_start[j] + t];
  }
}

/* Log-probabilities of the tokens of the chosen responses under such parameters, to `to`. */
static gl_status put_scores(llm_learner *l, const drawing_request *r, const generate_result *result,
                            const unsigned char *chosen, int which, score_policy policy,
                            double temperature, double *to, gl_error *err) {
  drawn_set d;
  gl_status status = drawn_set_init(&d, l, r, result, chosen, which, 0, err);
  if (status == GL_OK && d.set.n_responses > 0)
    status = llm_learner_log_probs(l, &d.set, policy, temperature, d.logp, err);
  if (status == GL_OK) drawn_set_put(&d, l, NULL, to);
  drawn_set_fini(&d);
  return status;
}

/* --- logq: learner --- */

/* The tokens from place first[i] of response i on get the log-probabilities that the learner's
 * forward computes from the parameters in use, the sampler's: of the whole distribution, and where
 * sets are recorded of the distribution over them. */
static gl_status record_by_learner(llm_learner *l, const drawing_request *r, const size_t *first,
                                   generate_result *result, gl_error *err) {
  const double temperature = l->spec.sampling.temperature;
  double *const to[] = {result->logq, result->logq_truncated};
  const int truncates = sampling_truncates(&l->spec.sampling, l->spec.model.vocabulary);
  gl_status status = GL_OK;
  for (int dist = 0; dist < 2 && status == GL_OK; ++dist) {
    if (dist == 1 && truncates && result->kept == NULL)
      break; /* nobody can tell it: weights: raw */
    drawn_set d;
    status = drawn_set_init(&d, l, r, result, NULL, 0, dist == 1 && truncates, err);
    if (status == GL_OK && d.set.n_responses > 0)
      status = llm_learner_log_probs(l, &d.set, SCORE_IN_USE, temperature, d.logp, err);
    if (status == GL_OK) drawn_set_put(&d, l, first, to[dist]);
    if (status == GL_OK && dist == 0 && !truncates) {
      drawn_set_put(&d, l, first, to[1]);
      dist = 1;
    }
    drawn_set_fini(&d);
  }
  return status;
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
  const rng_stream stream = rng_stream_at(l->seed, RNG_BEHAVIOUR, r->stream.entity);
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
    status = put_scores(l, r, result, chosen, 1, SCORE_IN_USE, temperature, mine, err);
  if (status == GL_OK && initial)
    status = put_scores(l, r, result, chosen, 0, SCORE_INITIAL, spec->temperature, theirs, err);
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
