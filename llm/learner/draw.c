/* Drawing a batch, or a part of one.
 *
 * While a batch is incomplete each response has room for max_tokens tokens, and those not drawn yet
 * hold the value not_drawn; the request that completes it sets rewards and cuts responses to their
 * length. Responses are generated into the batch's own columns. Token t of response i of batch id
 * is drawn at block rng_token_index(i, t) of the stream (seed, RNG_ROLLOUT, id), so that it depends
 * neither on slots, nor on threads, nor on the other responses. */
#include "core/base/hash.h"
#include "llm/learner/learner.h"

#include <stdlib.h>
#include <string.h>

enum { not_drawn = -1 };

/* The batch's memory of keys and values, and how much of it each response has; nothing where they
 * are not kept. All replicas have the same model. */
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

static gl_status check_request(const llm_learner *l, const draw_request *r, const batch *b,
                               gl_error *err) {
  gl_status status = draw_request_check(r, b, l->spec.max_tokens, err);
  if (status != GL_OK || r->from == 0) return status;
  for (size_t g = 0; g < b->n_groups; ++g)
    if (b->prompt[g] < 0 || (uint64_t)b->prompt[g] >= task_size(l->spec.task, TASK_TRAIN))
      return gl_fail(err, GL_EINPUT, "a batch to continue holds prompt %lld, which the task lacks",
                     (long long)b->prompt[g]);
  return GL_OK;
}

static gl_status begin_batch(llm_learner *l, const draw_request *r, batch *b, gl_error *err) {
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

/* The batch under way as a result that generate() continues in place. Its lengths and ends are the
 * caller's to release. */
static gl_status view_result(const llm_learner *l, batch *b, generate_result *r, gl_error *err) {
  const size_t width = l->spec.max_tokens;
  *r = (generate_result){.length = calloc(b->n_responses + 1, sizeof *r->length),
                         .finished = calloc(b->n_responses + 1, sizeof *r->finished),
                         .token = b->token,
                         .logq = b->logq,
                         .logq_truncated = b->logq_trunc,
                         .kept = b->kept};
  if (b->kept != NULL) r->shape = l->spec.kept;
  if (r->length == NULL || r->finished == NULL) return gl_fail_memory(err, "the responses");
  for (size_t i = 0; i < b->n_responses; ++i) {
    size_t n = 0;
    while (n < width && b->token[i * width + n] != not_drawn) ++n;
    r->length[i] = n;
    r->finished[i] = n > 0 && run_spec_is_stop(&l->spec, b->token[i * width + n - 1]);
  }
  return GL_OK;
}

/* Sets rewards and cuts every response to its length. */
static gl_status finish_batch(const llm_learner *l, batch *b, const generate_result *r,
                              const problem_set *problems, const draw_request *asked,
                              gl_error *err) {
  const size_t group_size = asked->group_size, first = draw_number(asked, 0);
  for (size_t i = 0; i < b->n_responses; ++i) {
    const problem *p = &problems->problem[i / group_size];
    double reward = 0;
    gl_status status = run_spec_score(&l->spec, p, b->token + b->token_start[i], r->length[i],
                                      r->finished[i], &reward, err);
    if (status != GL_OK) return status;
    /* a prompt may have several numbers, but it has one text */
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

/* The parameters of a version: the learner's own or those held for it. */
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

/* Forgets what is to be drawn anew, and says up to where each response is drawn: limit[i]. */
static void take_spans(const llm_learner *l, const draw_request *r, batch *b, size_t *limit) {
  const size_t width = l->spec.max_tokens;
  for (size_t i = 0; i < b->n_responses; ++i) {
    limit[i] = r->span[i].from < r->span[i].to ? r->span[i].to : 0;
    for (size_t t = r->span[i].from; limit[i] > 0 && t < width; ++t)
      b->token[i * width + t] = not_drawn;
  }
}

/* Draws what is asked for into `result`, which is the batch. */
static gl_status sample(llm_learner *l, const draw_request *r, const batch *b,
                        const problem_set *problems, const size_t *limit, generate_result *result,
                        gl_error *err) {
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
  size_t *limit = NULL, *before = NULL; /* tokens of each response: at most, and before the draw */
  gl_status status = check_request(l, r, b, err);
  if (status == GL_OK && r->from == 0) status = begin_batch(l, r, b, err);
  if (status == GL_OK) status = problems_of(l, b, &problems, err);
  if (status == GL_OK) status = take_cache(l, r, b, &problems, &cache, err);
  if (status == GL_OK) {
    before = calloc(2 * b->n_responses + 1, sizeof *before);
    if (before == NULL) status = gl_fail_memory(err, "a batch");
  }
  if (status == GL_OK && r->span != NULL) {
    limit = before + b->n_responses;
    take_spans(l, r, b, limit);
  }
  if (status == GL_OK) status = view_result(l, b, &result, err);
  if (cache.kept != NULL) result.cache = &cache;
  if (status == GL_OK) {
    memcpy(before, result.length, b->n_responses * sizeof *before);
    status = sample(l, r, b, &problems, limit, &result, err);
  }
  if (status == GL_OK) {
    for (size_t i = 0; i < b->n_responses; ++i)
      for (size_t t = before[i]; t < result.length[i]; ++t) b->version[i * width + t] = r->version;
    if (r->length != NULL) memcpy(r->length, result.length, b->n_responses * sizeof *r->length);
    if (r->to == 1) status = finish_batch(l, b, &result, &problems, r, err);
  }
  free(before);
  free(result.length);
  free(result.finished);
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
  return batch_name_records(b, ((const llm_learner *)self)->spec.kept.words, 0, err);
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
    return gl_fail(err, GL_EINPUT,
                   "sampling.logq: learner records what a forward of one version says of a token, "
                   "and with kv_cache: keep tokens are drawn with keys and values of several; give "
                   "logq: sampler, or kv_cache: recompute");
  l->keeps_cache = 1;
  return GL_OK;
}
