/* Sampling a batch, or a part of one.
 *
 * While a batch is incomplete each response has room for max_tokens tokens; positions not sampled
 * yet hold not_drawn. The request that completes the batch computes rewards and cuts responses to
 * their length. Responses are generated directly into the batch's columns. Token t of response i of
 * batch id is sampled with block rng_token_index(i, t) of the stream (seed, RNG_ROLLOUT, id). So it
 * does not depend on slots, threads or other responses. */
#include "core/base/hash.h"
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- responses of all replicas --- */

/* The arguments of a request that every replica needs. */
typedef struct drawing {
  llm_learner *l;
  const generate_request *all;
  generate_result *result;
} drawing;

/* Work of item i when generation is divided among replicas: the tokens that a response may still
 * sample. */
static size_t tokens_to_draw(const void *context, size_t i) {
  const drawing *d = context;
  const size_t n = d->result->length[i], up_to = d->all->limit ? d->all->limit[i] : d->all->up_to;
  return d->result->finished[i] || n >= up_to ? 0 : up_to - n;
}

/* Generates the rank's part of the responses into its part of the common result. */
static gl_status draw_share(void *context, size_t rank, gl_error *err) {
  const drawing *d = context;
  const size_t first = d->l->share[rank], last = d->l->share[rank + 1];
  const size_t at = first * d->all->max_tokens;
  const backend *b = d->l->replica[rank].backend;
  generate_request q = *d->all;
  q.n_responses = last - first;
  q.prompt_of += first;
  q.number += first;
  q.limit = q.limit != NULL ? q.limit + first : NULL;
  q.sharing = b->kind == BACKEND_CPU ? d->l->spec.devices : 1;
  generate_result r = {
      .length = d->result->length + first,
      .finished = d->result->finished + first,
      .token = d->result->token + at,
      .logq = d->result->logq + at,
      .logq_truncated = d->result->logq_truncated + at,
      .shape = d->result->shape,
      .kept = d->result->kept != NULL ? d->result->kept + at * d->result->shape.words : NULL};
  generate_cache cache;
  if (d->result->cache != NULL) {
    cache = *d->result->cache;
    cache.kept += first * cache.bytes;
    r.cache = &cache;
  }
  return generate(d->l->replica[rank].model, &q, &r, err);
}

/* The distribution of greedy responses: that of training, without the samplers' behaviour, which
 * evaluations ignore. */
static sampling_spec undistorted(const run_spec *spec) {
  sampling_spec dist = spec->sampling;
  dist.behaviour = (sampling_behaviour){.with = OTHER_NONE};
  return dist;
}

gl_status generate_on_replicas(llm_learner *l, const drawing_request *r, const sampling_spec *dist,
                               size_t max_tokens, generate_result *result, gl_error *err) {
  const problem_set *problems = r->problems;
  const size_t n = problems->n * r->each;
  size_t *prompt_of = calloc(n + 1, 2 * sizeof *prompt_of), *number = prompt_of + n;
  if (prompt_of == NULL) return gl_fail_memory(err, "a request for responses");
  for (size_t i = 0; i < n; ++i) {
    prompt_of[i] = i / r->each;
    number[i] = r->first + i;
  }
  const generate_request request = {.n_prompts = problems->n,
                                    .prompt_start = problems->start,
                                    .prompt = problems->token,
                                    .n_responses = n,
                                    .prompt_of = prompt_of,
                                    .number = number,
                                    .stream = r->stream,
                                    .sampling = dist != NULL ? *dist : undistorted(&l->spec),
                                    .greedy = dist == NULL,
                                    .max_tokens = max_tokens,
                                    .up_to = r->up_to,
                                    .limit = r->limit,
                                    .stop = l->spec.stop,
                                    .n_stop = l->spec.n_stop,
                                    .slots = l->spec.slots};
  drawing d = {l, &request, result};
  llm_learner_divide(l, tokens_to_draw, &d, n);
  gl_status status = rank_threads_run(l->threads, draw_share, &d, err);
  free(prompt_of);
  return status;
}

static gl_status llm_learner_generate(llm_learner *l, const drawing_request *r,
                                      const sampling_spec *dist, generate_result *result,
                                      gl_error *err) {
  return generate_on_replicas(l, r, dist, l->spec.max_tokens, result, err);
}

/* --- the samplers' distribution --- */
/* How samplers differ from the learner (paper/methods.md §1.3): a fraction of their responses comes
 * from another policy, and `logq` determines which forward computes the recorded log-probabilities.
 * Logits are distorted in llm/model/generate.c.
 *
 * A response comes entirely from the sampler's distribution or entirely from the other policy. It
 * is recorded with the mixture's probability, so its tokens need log-probabilities under both.
 * Sampling gives each policy's log-probabilities of its own responses; a forward gives those of the
 * other's responses. The uniform policy needs neither: its log-probabilities are constant. */

/* --- forwards over sampled responses --- */

/* Which responses to score, and how; see score_result(). */
typedef struct sampled_score {
  const unsigned char *chosen; /* NULL: all */
  int which;
  score_policy policy;
  double temperature;
  const size_t *first;
  bool replays;
} sampled_score;

/* Writes the log-probabilities of the responses with chosen[i] == `which` (chosen NULL: all) to
 * `to`, in the result's layout. They are computed under the requested policy's parameters, from
 * token first[i] on (first NULL: from the first), and renormalised over the kept tokens if
 * `replays`. */
static gl_status score_result(llm_learner *l, const drawing_request *r,
                              const generate_result *result, const sampled_score *what, double *to,
                              gl_error *err) {
  const size_t n = r->problems->n * r->each;
  size_t *response = calloc(3 * n + 1, sizeof *response); /* space for three lists */
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

/* Records the log-probabilities of the tokens of response i from first[i] on as the learner's
 * forward computes them with the sampler's parameters, which are in use: of the whole distribution
 * and, if sets are recorded, of the distribution renormalised over them. */
static gl_status record_by_learner(llm_learner *l, const drawing_request *r, const size_t *first,
                                   generate_result *result, gl_error *err) {
  const int truncates = sampling_truncates(&l->spec.sampling, l->spec.model.vocabulary);
  sampled_score what = {.temperature = l->spec.sampling.temperature, .first = first};
  gl_status status = score_result(l, r, result, &what, result->logq, err);
  for (size_t i = 0; status == GL_OK && !truncates && i < r->problems->n * r->each; ++i)
    for (size_t t = first[i], at = i * l->spec.max_tokens; t < result->length[i]; ++t)
      result->logq_truncated[at + t] = result->logq[at + t];
  if (status != GL_OK || !truncates || result->kept == NULL)
    return status; /* without sets the truncated log-probability is unknown; weights are raw then */
  what.replays = true;
  return score_result(l, r, result, &what, result->logq_truncated, err);
}

/* --- a mixture --- */

/* Sets chosen[i] to 1 if response i comes from the other policy. */
static void choose_mixture(const llm_learner *l, const drawing_request *r, size_t n,
                           unsigned char *chosen) {
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_BEHAVIOUR, r->stream.entity);
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(stream, r->first + i);
    chosen[i] = rng_u01_53(w.v[0], w.v[1]) < l->spec.sampling.behaviour.share;
  }
}

/* Samples the responses with chosen[i] == `which` from the parameters in use. Generation skips
 * finished responses, so the others are marked finished meanwhile. */
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

/* Samples uniform tokens. A token has the same random-stream address under every distribution. */
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

/* Records every token's conditional log-probability under the mixture: log M_t - log M_(t-1), where
 * M_t is the mixture's probability of a response's first t tokens. own_logp and other_logp have the
 * result's layout. */
static void record_mixture(const llm_learner *l, const drawing_request *r, const double *own_logp,
                           const double *other_logp, generate_result *result) {
  const double share = l->spec.sampling.behaviour.share;
  for (size_t i = 0; i < r->problems->n * r->each; ++i) {
    double reach = log1p(-share), other = log(share), before = 0;
    for (size_t t = 0; t < result->length[i]; ++t) {
      const size_t at = i * l->spec.max_tokens + t;
      reach += own_logp[at];
      other += other_logp[at];
      const double both = sampling_log_add(reach, other);
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

/* Samples the other policy's responses and scores them under the version's parameters, and the
 * reverse. own_logp and other_logp receive the log-probabilities of all responses. */
static gl_status draw_both(llm_learner *l, const drawing_request *r, const unsigned char *chosen,
                           double *own_logp, double *other_logp, generate_result *result,
                           gl_error *err) {
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
    memcpy(other_logp, result->logq, n * width * sizeof *other_logp);
    if (status == GL_OK) status = rank_threads_run(l->threads, r->use_version, r->use_context, err);
  } else {
    draw_uniform(l, r, chosen, result);
  }
  if (status == GL_OK) status = draw_chosen(l, r, &own, chosen, 0, result, err);
  memcpy(own_logp, result->logq, n * width * sizeof *own_logp);
  const double temperature = spec->temperature * (1 + spec->behaviour.temperature_error);
  if (status == GL_OK)
    status = score_result(l, r, result,
                          &(sampled_score){chosen, 1, SCORE_IN_USE, temperature, NULL, false},
                          own_logp, err);
  if (status == GL_OK && initial)
    status = score_result(
        l, r, result, &(sampled_score){chosen, 0, SCORE_INITIAL, spec->temperature, NULL, false},
        other_logp, err);
  for (size_t k = 0; k < n * width && !initial; ++k)
    other_logp[k] = -log((double)l->spec.model.vocabulary);
  return status;
}

/* Samples complete responses of a mixture of the version's policy and another one. */
static gl_status sample_mixture(llm_learner *l, const drawing_request *r, generate_result *result,
                                gl_error *err) {
  const size_t n = r->problems->n * r->each, width = l->spec.max_tokens;
  for (size_t i = 0; i < n; ++i)
    if (result->length[i] > 0 || r->up_to < width || r->limit != NULL)
      return gl_fail(err, GL_EINPUT,
                     "sampling.behaviour_mixture mixes whole responses, and this batch is sampled "
                     "from several versions; take the cluster's in-flight updates away (in_flight, "
                     "or partial: continue)");
  arena a = {0};
  unsigned char *chosen = ARENA_ARRAY(&a, unsigned char, n);
  double *own_logp = ARENA_GRID(&a, double, n, width),
         *other_logp = ARENA_GRID(&a, double, n, width);
  gl_status status = arena_check(&a, "a batch's log-probabilities", err);
  if (status == GL_OK) {
    choose_mixture(l, r, n, chosen);
    status = draw_both(l, r, chosen, own_logp, other_logp, result, err);
  }
  if (status == GL_OK) record_mixture(l, r, own_logp, other_logp, result);
  arena_fini(&a);
  return status;
}

/* --- all of it --- */

static gl_status llm_learner_sample(llm_learner *l, const drawing_request *r,
                                    generate_result *result, gl_error *err) {
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

/* --- a batch --- */

enum { not_drawn = -1 };

/* Sets up the batch's memory of keys and values and each response's size in it; nothing if the
 * learner does not keep them between calls. All replicas have the same model. */
static gl_status take_cache(const llm_learner *l, const draw_request *r, batch *b,
                            const problem_set *problems, generate_cache *c, gl_error *err) {
  size_t longest = 0, all = 0;
  *c = (generate_cache){0};
  if (l->keeps_cache) {
    for (size_t g = 0; g < b->n_groups; ++g)
      if (problems->start[g + 1] - problems->start[g] > longest)
        longest = problems->start[g + 1] - problems->start[g];
    c->capacity = longest + l->spec.max_tokens;
    c->bytes = generate_cache_bytes(l->model, c->capacity);
    if (c->bytes > SIZE_MAX / 4 / (b->n_responses + 1))
      return gl_fail_memory(err, "keys and values");
    c->bytes = (c->bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    all = b->n_responses * c->bytes;
  }
  gl_status status = GL_OK;
  if (r->from == 0 && all > 0) status = batch_reserve_cache(b, all, err);
  if (status == GL_OK && (b->cache_bytes != all || b->kept_words != l->spec.kept.words))
    return gl_fail(err, GL_EINTERNAL, "a draw that continues a batch of another world");
  c->kept = b->cache;
  return status;
}

static gl_status check_llm_draw(const llm_learner *l, const draw_request *r, const batch *b,
                                gl_error *err) {
  gl_status status = draw_request_check(r, b, l->spec.max_tokens, err);
  if (status != GL_OK || r->from == 0) return status;
  for (size_t g = 0; g < b->n_groups; ++g)
    if (b->prompt[g] < 0 || (uint64_t)b->prompt[g] >= task_size(l->spec.task, TASK_TRAIN))
      return gl_fail(err, GL_EINPUT, "a batch to continue holds prompt %lld, which the task lacks",
                     (long long)b->prompt[g]);
  return GL_OK;
}

/* Allocates a batch, samples its prompts, and marks all tokens as not sampled. */
static gl_status begin_llm_batch(llm_learner *l, const draw_request *r, batch *b, gl_error *err) {
  const size_t n = r->n_groups * r->group_size;
  size_t *lengths = calloc(n, sizeof *lengths);
  if (lengths == NULL) return gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < n; ++i) lengths[i] = l->spec.max_tokens;
  gl_status status = batch_init(b, r->batch_id, r->n_groups, r->group_size, lengths, err);
  free(lengths);
  if (status == GL_OK) status = batch_reserve_kept(b, l->spec.kept.words, err);
  if (status != GL_OK) return status;
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_PROMPT, r->batch_id);
  for (size_t g = 0; g < r->n_groups; ++g) {
    rng_words w = rng_block(stream, r->first_group + g);
    b->prompt[g] = (int64_t)run_spec_pick(&l->spec, rng_u01_53(w.v[0], w.v[1]));
  }
  for (size_t k = 0; k < b->n_tokens; ++k) b->token[k] = not_drawn;
  return GL_OK;
}

static gl_status problems_of(const llm_learner *l, const batch *b, problem_set *set,
                             gl_error *err) {
  uint64_t *number = calloc(b->n_groups, sizeof *number);
  if (number == NULL) return gl_fail_memory(err, "a batch's prompts");
  for (size_t g = 0; g < b->n_groups; ++g) number[g] = (uint64_t)b->prompt[g];
  gl_status status = problem_set_init(set, &l->spec, TASK_TRAIN, number, b->n_groups, err);
  free(number);
  return status;
}

/* The incomplete batch as a result that generate() resumes in place. The result owns its arrays
 * length and finished. */
static gl_status view_result(const llm_learner *l, batch *b, generate_result *r, gl_error *err) {
  const size_t width = l->spec.max_tokens;
  r->length = ARENA_ARRAY(&r->memory, size_t, b->n_responses);
  r->finished = ARENA_ARRAY(&r->memory, int, b->n_responses);
  r->token = b->token;
  r->logq = b->logq;
  r->logq_truncated = b->logq_trunc;
  r->kept = b->kept;
  if (b->kept != NULL) r->shape = l->spec.kept;
  const gl_status status = arena_check(&r->memory, "the responses", err);
  for (size_t i = 0; i < b->n_responses && status == GL_OK; ++i) {
    size_t n = 0;
    while (n < width && b->token[i * width + n] != not_drawn) ++n;
    r->length[i] = n;
    r->finished[i] = n > 0 && run_spec_is_stop(&l->spec, b->token[i * width + n - 1]);
  }
  return status;
}

/* Computes rewards and cuts every response to its length. */
static gl_status reward_and_cut(const llm_learner *l, batch *b, const generate_result *r,
                                const problem_set *problems, const draw_request *asked,
                                gl_error *err) {
  const size_t group_size = asked->group_size, first = draw_number(asked, 0);
  for (size_t i = 0; i < b->n_responses; ++i) {
    const problem *p = &problems->problem[i / group_size];
    double reward = 0;
    gl_status status = run_spec_score(&l->spec, p, b->token + b->token_start[i], r->length[i],
                                      r->finished[i], &reward, err);
    if (status != GL_OK) return status;
    /* the hash of the text, because one prompt may have several numbers */
    const uint64_t prompt = hash_64(HASH_64_START, p->prompt, strlen(p->prompt));
    b->reward[i] =
        training_reward_of(&l->rewards, l->update.seed, b->id, first + i, prompt, reward);
  }
  batch_cut(b, r->length);
  return GL_OK;
}

typedef struct version_choice {
  llm_learner *l;
  int64_t version;
} version_choice;

/* Makes a replica use a version's parameters: the learner's own, or those held for the version. */
static gl_status use_version(void *context, size_t rank, gl_error *err) {
  const version_choice *c = context;
  const llm_learner *l = c->l;
  const replica *r = &l->replica[rank];
  model_values *values = NULL;
  for (size_t i = 0; i < r->n_held; ++i)
    if (r->held[i].version == c->version) values = r->held[i].values;
  if (values == NULL && c->version != l->update.version)
    return gl_fail(err, GL_EINTERNAL,
                   "a draw at version %lld, which is neither the learner's (%lld) nor held",
                   (long long)c->version, (long long)l->update.version);
  model_use(r->model, c->version != l->update.version ? values : NULL);
  return GL_OK;
}

/* Erases the tokens that are to be sampled again, and sets the limit up to which each response is
 * sampled: limit[i]. */
static void clear_spans(const llm_learner *l, const draw_request *r, batch *b, size_t *limit) {
  const size_t width = l->spec.max_tokens;
  for (size_t i = 0; i < b->n_responses; ++i) {
    limit[i] = r->span[i].from < r->span[i].to ? r->span[i].to : 0;
    for (size_t t = r->span[i].from; limit[i] > 0 && t < width; ++t)
      b->token[i * width + t] = not_drawn;
  }
}

/* Samples the requested tokens into `result`, a view of the batch. */
static gl_status draw_at_version(llm_learner *l, const draw_request *r, const batch *b,
                                 const problem_set *problems, const size_t *limit,
                                 generate_result *result, gl_error *err) {
  version_choice drawn = {l, r->version}, own = {l, l->update.version};
  gl_status status = rank_threads_run(l->threads, use_version, &drawn, err);
  if (status != GL_OK) return status;
  const drawing_request asked = {.problems = problems,
                                 .each = r->group_size,
                                 .up_to = limit != NULL ? l->spec.max_tokens
                                                        : draw_boundary(r->to, l->spec.max_tokens),
                                 .limit = limit,
                                 .first = draw_number(r, 0),
                                 .stream = rng_stream_at(l->update.seed, RNG_ROLLOUT, b->id),
                                 .use_version = use_version,
                                 .use_context = &drawn};
  status = llm_learner_sample(l, &asked, result, err);
  (void)rank_threads_run(l->threads, use_version, &own, NULL);
  return status;
}

gl_status llm_learner_draw(void *self, const draw_request *r, batch *b, gl_error *err) {
  llm_learner *l = self;
  const size_t width = l->spec.max_tokens;
  problem_set problems = {0};
  generate_result result = {0};
  generate_cache cache = {0};
  size_t *limit = NULL,
         *before = NULL; /* tokens of each response: maximum, and number before sampling */
  gl_status status = check_llm_draw(l, r, b, err);
  if (status == GL_OK && r->from == 0) status = begin_llm_batch(l, r, b, err);
  if (status == GL_OK) status = problems_of(l, b, &problems, err);
  if (status == GL_OK) status = take_cache(l, r, b, &problems, &cache, err);
  if (status == GL_OK) {
    before = ARENA_ARRAY(&result.memory, size_t, b->n_responses);
    if (r->span != NULL) limit = ARENA_ARRAY(&result.memory, size_t, b->n_responses);
    status = arena_check(&result.memory, "a batch", err);
  }
  if (status == GL_OK && limit != NULL) clear_spans(l, r, b, limit);
  if (status == GL_OK) status = view_result(l, b, &result, err);
  if (cache.kept != NULL) result.cache = &cache;
  if (status == GL_OK) {
    memcpy(before, result.length, b->n_responses * sizeof *before);
    status = draw_at_version(l, r, b, &problems, limit, &result, err);
  }
  if (status == GL_OK) {
    for (size_t i = 0; i < b->n_responses; ++i)
      for (size_t t = before[i]; t < result.length[i]; ++t) b->version[i * width + t] = r->version;
    if (r->length != NULL) memcpy(r->length, result.length, b->n_responses * sizeof *r->length);
    if (r->to == 1) status = reward_and_cut(l, b, &result, &problems, r, err);
  }
  generate_result_fini(&result);
  problem_set_fini(&problems);
  return status;
}

gl_status llm_learner_join(void *self, batch *b, const batch_group *group, size_t n,
                           gl_error *err) {
  (void)self;
  gl_status status = batch_take_groups(b, group[0].from->id, group, n, err);
  if (status != GL_OK) batch_fini(b);
  return status;
}

gl_status llm_learner_adopt(const void *self, batch *b, gl_error *err) {
  return batch_assign_optional(b, ((const llm_learner *)self)->spec.kept.words, 0, err);
}

size_t llm_learner_longest(const void *self) {
  return ((const llm_learner *)self)->spec.max_tokens;
}

gl_status llm_learner_keep_cache(void *self, gl_error *err) {
  llm_learner *l = self;
  if (l->backend->kind != BACKEND_CPU)
    return gl_fail(err, GL_EINPUT,
                   "kv_cache: keep carries keys and values from one version to the next, which the "
                   "CPU backend does and the one in use does not; give world.backend: cpu, or "
                   "kv_cache: recompute");
  if (l->spec.sampling.logq == LOGQ_LEARNER)
    return gl_fail(
        err, GL_EINPUT,
        "sampling.logq: learner records what a forward of one version says of a token, "
        "and with kv_cache: keep tokens are sampled with keys and values of several; give "
        "logq: sampler, or kv_cache: recompute");
  l->keeps_cache = 1;
  return GL_OK;
}
