/* The parts of the transformer's update (core/rl/update.h): forwards that score tokens, and
 * backwards from their coefficients, in micro-batches of bounded packed tokens.
 *
 * The model's backward receives dlogp = -c. A response with all coefficients 0 has no gradient and
 * is skipped. If one micro-batch holds a whole view, the activations of its forward are stored for
 * the backward.
 *
 * Responses of a group begin with the same prompt, and those of a policy that knows the answer have
 * longer common prefixes. A common prefix is run once (packed_tokens.h): a token at the same place
 * in several of them has one log-probability, whose gradient is weighted by the sum of their
 * coefficients. */
#include "core/base/array.h"
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- laying batches out --- */

static gl_status foreign(const batch *b, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "batch %llu was sampled in another world than it is trained in",
                 (unsigned long long)b->id);
}

/* Checks that every token is in its kept set (the tokens that top-k, top-p and min-p left), if this
 * learner's samplers record them. A batch from a checkpoint of an older program may lack kept sets
 * that only metrics need. */
static int holds_sets(const llm_learner *l, const batch *b) {
  const kept_shape *shape = &l->spec.kept;
  if (l->spec.kept_for_metrics && b->kept_words == 0) return 1;
  if (b->kept_words != shape->words || b->cache_bytes > 0 || b->n_dist > 0) return 0;
  for (size_t k = 0; k < b->n_tokens && shape->words > 0; ++k) {
    const uint32_t *set = b->kept + k * shape->words;
    if (shape->listed && set[0] >= shape->words) return 0;
    if (kept_count(shape, set) > 0 && !kept_has(shape, set, (size_t)b->token[k])) return 0;
  }
  return 1;
}

/* Checks that the batch can be one of this learner's: complete, and with prompts and tokens that
 * exist. */
static gl_status check_batch(const llm_learner *l, const batch *b, gl_error *err) {
  if (!batch_is_consistent(b) || b->n_groups == 0) return foreign(b, err);
  for (size_t g = 0; g < b->n_groups; ++g)
    if (b->group_start[g] == b->group_start[g + 1] || b->prompt[g] < 0 ||
        (uint64_t)b->prompt[g] >= task_size(l->spec.task, TASK_TRAIN))
      return foreign(b, err);
  for (size_t i = 0; i < b->n_responses; ++i) {
    size_t n = b->token_start[i + 1] - b->token_start[i];
    if (n == 0 || n > l->spec.max_tokens) return foreign(b, err);
  }
  for (size_t k = 0; k < b->n_tokens; ++k)
    if (b->token[k] < 0 || (size_t)b->token[k] >= l->spec.model.vocabulary) return foreign(b, err);
  return holds_sets(l, b) ? GL_OK : foreign(b, err);
}

/* Allocates the columns that the table of core/rl does not have. */
static gl_status reserve_llm_columns(llm_learner *l, size_t tokens, gl_error *err) {
  const size_t words = l->kept_shape.words;
  if (words == 0) return GL_OK;
  if (tokens > SIZE_MAX / words / 3 || !ARRAY_FIT(l->kept, l->cap_kept, tokens * words) ||
      !ARRAY_FIT(l->part[0], l->cap_part, 3 * tokens))
    return gl_fail_memory(err, "the batches of an update");
  for (size_t of = 1; of < 3; ++of) l->part[of] = l->part[0] + of * tokens;
  return GL_OK;
}

/* Tokenizes the prompts of the table's groups. */
static gl_status gather_prompts(llm_learner *l, gl_error *err) {
  const update_table *t = &l->update.table;
  const size_t n = t->n_groups + t->n_replayed;
  uint64_t *number = calloc(n + 1, sizeof *number);
  if (number == NULL) return gl_fail_memory(err, "the prompts of an update");
  for (size_t g = 0; g < n; ++g) number[g] = t->prompt[g];
  problem_set_fini(&l->prompts);
  gl_status status = problem_set_init(&l->prompts, &l->spec, TASK_TRAIN, number, n, err);
  free(number);
  return status;
}

gl_status llm_learner_gather(llm_learner *l, batch *const *batches, size_t n, gl_error *err) {
  update_loop *u = &l->update;
  for (size_t j = 0; j < n; ++j) {
    gl_status status = check_batch(l, batches[j], err);
    if (status != GL_OK) return status;
  }
  if (n == 0) return gl_fail(err, GL_EINTERNAL, "an update of no batch");
  l->kept_shape = l->spec.kept;
  for (size_t j = 0; j < n && l->spec.kept_for_metrics; ++j)
    if (batches[j]->kept_words == 0) l->kept_shape = (kept_shape){0};
  gl_status status =
      update_table_gather(&u->table, batches, n, l->spec.sampling.weights, u->version, err);
  const size_t responses = u->table.n_responses + u->table.n_replayed;
  if (status == GL_OK) status = reserve_llm_columns(l, u->table.token_start[responses], err);
  if (status == GL_OK) status = gather_prompts(l, err);
  if (status != GL_OK) return status;
  double mass = 0;
  uint32_t *kept = l->kept;
  for (size_t j = 0; j < n; ++j) {
    const batch *b = batches[j];
    const size_t words = b->n_tokens * l->kept_shape.words;
    for (size_t k = 0; k < b->n_tokens && b->replay == 0; ++k)
      mass += exp(b->logq[k] - b->logq_trunc[k]);
    if (words > 0) memcpy(kept, b->kept, words * sizeof *kept);
    kept += words;
  }
  l->kept_mass_q = mass / (double)u->table.n_tokens;
  return GL_OK;
}

/* --- micro-batches --- */

/* The responses that a pass includes: all, or those with a coefficient other than 0. PASS_KEPT_SETS
 * includes all, and also computes the mass and the entropies of the kept sets of the samplers. */
typedef enum pass { PASS_ALL, PASS_KEPT_SETS, PASS_WITH_GRADIENT } pass;

/* A pass over responses, divided among the replicas. */
typedef struct set_pass {
  llm_learner *l;
  const response_list *list;
  pass which;
  score_policy policy;         /* whose parameters a score uses */
  double temperature;          /* temperature of a score's policy */
  double *logp, *entropy;      /* results of a score, one per token; entropy NULL: not wanted */
  double *const *part;         /* [3] PASS_KEPT_SETS: results of model_kept_parts() per token */
  const double *coefficient;   /* input of a backward, one per token */
  int keep;                    /* score: store the activations; backward: use them */
  double lr;                   /* learning rate of the step after a backward */
  const struct set_pass *more; /* backward: a pass whose gradient is added, divided by the number of
                                  responses; NULL: none */
} set_pass;

/* An iterator over a contiguous range of a list's responses: index of the next one, end of the
 * range. */
typedef struct walk {
  size_t at, end;
} walk;

/* The index of the first token of the list's response j. */
static size_t first_token(const response_list *s, size_t j) {
  return s->start[s->response[j]];
}

static size_t response_tokens(const response_list *s, size_t j) {
  const size_t i = s->response[j];
  return s->length != NULL ? s->length[i] : s->start[i + 1] - s->start[i];
}

/* True if the pass includes the list's response j. */
static bool takes(const set_pass *p, size_t j) {
  const size_t first = first_token(p->list, j), n = response_tokens(p->list, j);
  if (p->which != PASS_WITH_GRADIENT) return true;
  for (size_t k = first; k < first + n; ++k)
    if (p->coefficient[k] != 0) return true;
  return false;
}

/* 1 if the next micro-batch is to be packed with each prompt once. */
static int packs_shared(const set_pass *p, const model *m, walk at) {
  const response_list *s = p->list;
  size_t group = SIZE_MAX, packed = 0, saved = 0;
  if (model_shares(m, 0, 0)) return 1; /* sharing costs nothing */
  for (; at.at < at.end && packed < p->l->spec.micro_batch; ++at.at) {
    if (!takes(p, at.at)) continue;
    const size_t g = s->group_of[s->response[at.at]];
    const size_t prompt = s->prompts->start[g + 1] - s->prompts->start[g];
    *(g == group ? &saved : &packed) += prompt;
    packed += response_tokens(s, at.at) - 1;
    group = g;
  }
  return model_shares(m, saved, packed + saved);
}

/* Packs the next micro-batch: responses up to `most` tokens, at least one response. The pack is
 * empty at the end of the walk. rows[j] (NULL: not wanted): the rows that the list's response j
 * added. */
static gl_status pack_next(const set_pass *p, replica *r, size_t most, walk *at, size_t *rows,
                           gl_error *err) {
  const response_list *s = p->list;
  const int with_sets = p->which == PASS_KEPT_SETS && s->shape.words > 0;
  size_t group = SIZE_MAX; /* the group whose prompt is being packed */
  token_pack_clear(&r->pack, packs_shared(p, r->model, *at));
  if (s->replays) token_pack_keep(&r->pack, &s->shape);
  if (with_sets) token_pack_watch(&r->pack, &s->shape);
  for (; at->at < at->end; ++at->at) {
    const size_t j = at->at, before = r->pack.n_tokens, g = s->group_of[s->response[j]];
    const size_t k = first_token(s, j), from = s->prompts->start[g];
    int added;
    if (rows != NULL) rows[j] = 0;
    if (!takes(p, j)) continue;
    if (g != group)
      token_pack_prompt(&r->pack, s->prompts->token + from, s->prompts->start[g + 1] - from);
    group = g;
    const uint32_t *kept = s->replays || with_sets ? s->kept + k * s->shape.words : NULL;
    gl_status status =
        token_pack_add_kept(&r->pack, s->token + k, kept, response_tokens(s, j), most, &added, err);
    if (status != GL_OK) return status;
    if (!added) break;
    if (rows != NULL) rows[j] = r->pack.n_tokens - before;
  }
  return token_pack_finish(&r->pack, err);
}

/* --- shares --- */

static size_t rows_of_response(const void *context, size_t i) {
  return ((const set_pass *)context)->l->rows[i];
}

/* Divides the rows of the pass among the replicas. *all: their number if packed as one micro-batch.
 */
static gl_status divide(const set_pass *p, size_t *all, gl_error *err) {
  llm_learner *l = p->l;
  const size_t n = p->list->n;
  walk at = {.end = n};
  if (!ARRAY_FIT(l->rows, l->cap_rows, n)) return gl_fail_memory(err, "an update");
  gl_status status = pack_next(p, &l->replica[0], SIZE_MAX, &at, l->rows, err);
  *all = l->replica[0].pack.n_tokens;
  if (status == GL_OK) llm_learner_divide(l, rows_of_response, p, n);
  return status;
}

static walk walk_of_rank(const set_pass *p, size_t rank) {
  return (walk){p->l->share[rank], p->l->share[rank + 1]};
}

/* Sets *fit to 1 if every replica's part is one micro-batch. */
static gl_status shares_fit(const set_pass *p, int *fit, gl_error *err) {
  const llm_learner *l = p->l;
  gl_status status = GL_OK;
  *fit = 1;
  for (size_t rank = 0; rank < l->spec.devices && status == GL_OK; ++rank) {
    walk at = walk_of_rank(p, rank);
    status = pack_next(p, &l->replica[0], l->spec.micro_batch, &at, NULL, err);
    *fit &= at.at == at.end;
  }
  return status;
}

/* --- scoring --- */

/* Copies results of a forward to the tokens of the list's responses [first, end): their k-th token
 * gets found[at[k]]. */
static void scatter_scores(const response_list *s, size_t first, size_t end, const double *found,
                           const size_t *at, double *to) {
  for (size_t j = first; j < end; ++j) {
    const size_t from = s->first != NULL ? s->first[s->response[j]] : 0, n = response_tokens(s, j);
    for (size_t t = from; t < n; ++t) to[first_token(s, j) + t] = found[at[t]];
    at += n;
  }
}

/* Computes the kept sets' masses and entropies for the pack whose forward has just run, and writes
 * them to p->part at the tokens' indices. */
static gl_status score_parts(const set_pass *p, replica *r, size_t first, size_t end,
                             gl_error *err) {
  const token_pack *pack = &r->pack;
  const size_t n = pack->n_watched;
  if (n == 0) return GL_OK;
  gl_status status = replica_scratch(r, 3 * n, err);
  double *const found[] = {r->scratch, r->scratch + n, r->scratch + 2 * n};
  if (status == GL_OK) status = token_pack_parts(pack, r->model, found, err);
  for (size_t of = 0; of < 3 && status == GL_OK; ++of)
    scatter_scores(p->list, first, end, found[of], pack->watched_of, p->part[of]);
  return status;
}

static gl_status score_walk(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  for (;;) {
    const size_t first = at.at;
    gl_status status = pack_next(p, r, spec->micro_batch, &at, NULL, err);
    const size_t n = r->pack.n_targets;
    if (status != GL_OK || n == 0) return status;
    status = replica_scratch(r, 2 * n, err);
    if (status != GL_OK) return status;
    double *logp = r->scratch, *entropy = p->entropy != NULL ? r->scratch + n : NULL;
    status = token_pack_forward(&r->pack, r->model, p->temperature, p->keep, logp, entropy, err);
    if (status != GL_OK) return status;
    scatter_scores(p->list, first, at.at, logp, r->pack.target_of, p->logp);
    if (entropy != NULL)
      scatter_scores(p->list, first, at.at, entropy, r->pack.target_of, p->entropy);
    if (p->which == PASS_KEPT_SETS) status = score_parts(p, r, first, at.at, err);
    if (status != GL_OK) return status;
  }
}

static gl_status score_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  if (p->policy == SCORE_REFERENCE) model_use(r->model, r->reference);
  if (p->policy == SCORE_INITIAL) model_use(r->model, r->initial);
  gl_status status = score_walk(p, r, walk_of_rank(p, rank), err);
  if (p->policy != SCORE_IN_USE) model_use(r->model, NULL);
  return status;
}

/* Each replica scores its share of the responses with the parameters in use, the reference's or the
 * initial ones. */
gl_status llm_learner_log_probs(llm_learner *l, const response_list *s, score_policy policy,
                                double temperature, double *logp, gl_error *err) {
  set_pass p = {.l = l,
                .list = s,
                .which = PASS_ALL,
                .policy = policy,
                .temperature = temperature,
                .logp = logp};
  size_t all; /* not needed here */
  gl_status status = divide(&p, &all, err);
  return status == GL_OK ? rank_threads_run(l->threads, score_share, &p, err) : status;
}

static double mean_over_tokens(const double *x, size_t n) {
  double sum = 0;
  for (size_t k = 0; k < n; ++k) sum += x[k];
  return sum / (double)n;
}

/* The responses of a view of the update's table. */
static response_list view_list(const llm_learner *l, const token_view *view) {
  const update_table *t = &l->update.table;
  return (response_list){.n = view->n_responses,
                         .response = view->response,
                         .start = t->token_start,
                         .group_of = t->group_of,
                         .prompts = &l->prompts,
                         .token = t->token,
                         .shape = l->kept_shape,
                         .kept = l->kept,
                         .replays = l->spec.sampling.weights == SAMPLING_REPLAY};
}

/* Scores the tokens of a view. If a backward over all of them may follow, records whether the
 * activations of the whole forward were stored. */
static gl_status llm_score(void *self, const token_view *view, update_score which, bool *defined,
                           gl_error *err) {
  llm_learner *l = self;
  const update_table *t = &l->update.table;
  const response_list list = view_list(l, view);
  const double temperature = l->spec.sampling.temperature;
  const bool whole = which == UPDATE_WHOLE;
  set_pass p = {.l = l,
                .list = &list,
                .which = whole ? PASS_KEPT_SETS : PASS_ALL,
                .temperature = temperature,
                .logp = t->logp,
                .entropy = whole || update_wants_entropies(&l->update) ? t->entropy : NULL,
                .part = l->part};
  size_t all;
  gl_status status = GL_OK;
  if (whole && l->update.has_reference) /* before the score whose activations are stored */
    status = llm_learner_log_probs(l, &list, SCORE_REFERENCE, temperature, t->logref, err);
  if (status == GL_OK) status = divide(&p, &all, err);
  if (status == GL_OK && !(whole && l->update.minibatches > 1))
    status = shares_fit(&p, &p.keep, err);
  l->forward_kept = p.keep;
  if (status == GL_OK) status = rank_threads_run(l->threads, score_share, &p, err);
  *defined = status == GL_OK;
  for (size_t j = 0; j < list.n && *defined; ++j)
    for (size_t k = first_token(&list, j), n = response_tokens(&list, j); n > 0 && *defined;
         ++k, --n)
      *defined = isfinite(t->logp[k]) && isfinite(t->logq[k]);
  return status;
}

/* --- the gradient and the step --- */

/* The gradient with respect to the log-probabilities of the pack's targets: for each target, minus
 * the sum of the coefficients of its tokens in the list's responses [first, end). */
static void take_coefficients(const set_pass *p, const token_pack *pack, size_t first, size_t end,
                              double *dlogp) {
  size_t k = 0;
  memset(dlogp, 0, pack->n_targets * sizeof *dlogp);
  for (size_t j = first; j < end; ++j)
    for (size_t t = 0; takes(p, j) && t < response_tokens(p->list, j); ++t)
      dlogp[pack->target_of[k++]] -= p->coefficient[first_token(p->list, j) + t];
}

/* Runs the backward, one micro-batch after the other, each with its forward unless the activations
 * are stored. */
static gl_status backward_walk(const set_pass *p, replica *r, walk at, gl_error *err) {
  const run_spec *spec = &p->l->spec;
  for (;;) {
    const size_t first = at.at;
    gl_status status = pack_next(p, r, spec->micro_batch, &at, NULL, err);
    const size_t n = r->pack.n_targets;
    if (status != GL_OK || n == 0) return status;
    status = replica_scratch(r, 2 * n, err);
    double *dlogp = r->scratch, *logp = r->scratch + n;
    if (status == GL_OK && !p->keep)
      status =
          token_pack_forward(&r->pack, r->model, spec->sampling.temperature, 1, logp, NULL, err);
    if (status != GL_OK) return status;
    take_coefficients(p, &r->pack, first, at.at, dlogp);
    status = model_backward(r->model, dlogp, err);
    if (status != GL_OK) return status;
  }
}

/* The rank's part of a pass if responses are divided by their number. */
static walk equal_walk(const set_pass *p, size_t rank) {
  const size_t n = p->list->n, ranks = p->l->spec.devices;
  return (walk){n * rank / ranks, n * (rank + 1) / ranks};
}

/* Computes d loss / d theta from the coefficients of the replica's part into the replica's
 * gradient. */
static gl_status gradient_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  gl_status status = model_zero_gradient(r->model, err);
  if (status == GL_OK) status = backward_walk(p, r, walk_of_rank(p, rank), err);
  if (status != GL_OK || p->more == NULL) return status;
  return backward_walk(p->more, r, equal_walk(p->more, rank), err);
}

/* gradient_share(), then the optimiser step that all replicas make. The first replica also stores
 * its sample of the gradient. */
static gl_status step_share(void *context, size_t rank, gl_error *err) {
  const set_pass *p = context;
  replica *r = &p->l->replica[rank];
  gl_status status = gradient_share(context, rank, err);
  if (status == GL_OK) status = llm_learner_step(p->l, rank, p->lr, &p->l->norm[rank], err);
  if (status != GL_OK || rank > 0) return status;
  return model_gradient_sample(r->model, p->l->update.trail.now, err);
}

/* One optimiser step, in the cheaper of two ways. With the stored activations of the scoring
 * forward, a backward over all tokens costs about two forwards. Without them, responses with only
 * zero coefficients are skipped, and the others cost three forwards. The stored forward included
 * all responses when it was divided among the replicas, so its backward must be divided in the
 * same way. */
static gl_status llm_step(void *self, const token_view *view, double lr, double *norm,
                          gl_error *err) {
  llm_learner *l = self;
  const double *coefficient = l->update.table.coefficient;
  const token_view replayed = update_view_replayed(&l->update);
  const response_list list = view_list(l, view), extra = view_list(l, &replayed);
  const set_pass more = {.l = l, .list = &extra, .which = PASS_ALL, .coefficient = coefficient};
  set_pass p = {.l = l,
                .list = &list,
                .which = PASS_ALL,
                .coefficient = coefficient,
                .lr = lr,
                .more = extra.n > 0 ? &more : NULL};
  size_t all = 0, some = 0;
  gl_status status = divide(&p, &all, err);
  p.which = PASS_WITH_GRADIENT;
  if (status == GL_OK) status = divide(&p, &some, err);
  p.keep = l->forward_kept && 3 * some > 2 * all;
  if (p.keep) p.which = PASS_ALL;
  if (p.keep && status == GL_OK) status = divide(&p, &all, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, step_share, &p, err);
  return status == GL_OK ? llm_learner_norm(l, norm, err) : status;
}

gl_status llm_learner_differentiate(llm_learner *l, const policy_algorithm *algorithm,
                                    double *metrics, gl_error *err) {
  update_table *t = &l->update.table;
  token_view view;
  gl_status status = update_view_all(&l->update, &view, err);
  if (status != GL_OK) return status;
  const response_list list = view_list(l, &view);
  set_pass score = {.l = l,
                    .list = &list,
                    .which = PASS_ALL,
                    .temperature = l->spec.sampling.temperature,
                    .logp = t->logp,
                    .entropy = t->entropy};
  set_pass gradient = {
      .l = l, .list = &list, .which = PASS_WITH_GRADIENT, .coefficient = t->coefficient};
  size_t rows;
  status = divide(&score, &rows, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, score_share, &score, err);
  for (size_t k = 0; k < t->n_tokens && status == GL_OK; ++k)
    if (!isfinite(t->logp[k]) || !isfinite(t->logq[k]))
      status =
          gl_fail(err, GL_EINPUT, "log-probabilities of sampled tokens are not finite numbers");
  if (status == GL_OK) status = update_evaluate(&l->update, algorithm, metrics, err);
  if (status != GL_OK) return status;
  metrics[METRIC_REWARD_MEAN] = mean_over_tokens(t->reward, t->n_responses);
  batch_weigh(t->loss_weight, t->token_start, t->n_responses, t->coefficient);
  status = divide(&gradient, &rows, err);
  return status == GL_OK ? rank_threads_run(l->threads, gradient_share, &gradient, err) : status;
}

/* --- metrics --- */

/* Measures the samplers' kept sets: their probability under the sampler and, if sets are recorded,
 * under the learner. If `logq` is the learner's, weights are raw and no sets are recorded, the
 * truncated log-probabilities are unknown, and nothing is reported. */
static void measure_kept_sets(const llm_learner *l, double *metrics) {
  const sampling_spec *dist = &l->spec.sampling;
  const size_t n = l->update.table.n_tokens;
  const int sets = l->kept_shape.words > 0;
  if (!sampling_truncates(dist, l->spec.model.vocabulary)) return;
  if (sets || dist->weights != SAMPLING_RAW || dist->logq != LOGQ_LEARNER)
    metrics[METRIC_KEPT_MASS_Q] = l->kept_mass_q;
  if (!sets) return;
  double tail = 0, with_tail = 0;
  for (size_t k = 0; k < n; ++k) {
    if (isnan(l->part[2][k])) continue;
    tail += l->part[2][k];
    with_tail += 1;
  }
  metrics[METRIC_KEPT_MASS] = mean_over_tokens(l->part[0], n);
  metrics[METRIC_ENTROPY_KEPT] = mean_over_tokens(l->part[1], n);
  if (with_tail > 0) metrics[METRIC_ENTROPY_TAIL] = tail / with_tail;
}

static void llm_measure(void *self, double metrics[METRIC_COUNT]) {
  const llm_learner *l = self;
  metrics[METRIC_ENTROPY] = mean_over_tokens(l->update.table.entropy, l->update.table.n_tokens);
  measure_kept_sets(l, metrics);
}

gl_status llm_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err) {
  static const update_ops ops = {.score = llm_score, .measure = llm_measure, .step = llm_step};
  llm_learner *l = self;
  metrics_clear(metrics);
  gl_status status = llm_learner_gather(l, batches, n, err);
  return status == GL_OK ? update_run(&l->update, &ops, l, metrics, err) : status;
}
