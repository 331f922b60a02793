/* The transformer as a learner: construction, generation for its own use. Drawing is in draw.c,
 * evaluation in evaluate.c, updating in update.c, warming up in warmup.c, files in checkpoint.c. */
#include "llm/learner/learner.h"

#include "llm/learner/memory_need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What reinforcement learning of a model that can already do something usually takes. */
static const double default_lr = 1e-5;

/* --- generation --- */

/* What every replica needs of a request for responses. */
typedef struct drawing {
  llm_learner *l;
  const generate_request *all;
  generate_result *result;
} drawing;

/* The work of item i of a division of generation: the tokens that a response may still draw. */
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

/* The distribution of greedy responses: that of training, but scores know nothing of samplers'
 * behaviour. */
static sampling_spec undistorted(const run_spec *spec) {
  sampling_spec dist = spec->sampling;
  dist.behaviour = (sampling_behaviour){.with = OTHER_NONE};
  return dist;
}

static gl_status draw_all(llm_learner *l, const drawing_request *r, const sampling_spec *dist,
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

gl_status llm_learner_generate(llm_learner *l, const drawing_request *r, const sampling_spec *dist,
                               generate_result *result, gl_error *err) {
  return draw_all(l, r, dist, l->spec.max_tokens, result, err);
}

gl_status llm_learner_answer(llm_learner *l, const problem_set *problems, size_t each,
                             rng_stream stream, const sampling_spec *dist, size_t max_tokens,
                             generate_result *result, gl_error *err) {
  const drawing_request r = {
      .problems = problems, .each = each, .up_to = max_tokens, .stream = stream};
  return draw_all(l, &r, dist, max_tokens, result, err);
}

/* --- held versions --- */

/* Whether enough memory for a step stays free if one more version is held in the device's memory.
 * What the model has already allocated for its passes is part of what the step takes. */
static int fits_on_device(const replica *r) {
  size_t total = 0, available = 0;
  const size_t kept = model_kept_bytes(r->model);
  const size_t step = r->step_bytes > kept ? r->step_bytes - kept : 0;
  r->backend->ops->memory(r->backend, &total, &available);
  return available > step && available - step >= model_values_bytes(r->model);
}

gl_status replica_add_held(replica *r, int64_t version, gl_error *err) {
  const backend_ops *ops = r->backend->ops;
  const int apart = ops->allocate_aside !=
                    ops->allocate; /* the backend has memory elsewhere to put values aside */
  if (r->n_held == r->cap_held) {
    size_t wanted = 2 * r->cap_held + 4;
    held_version *larger = realloc(r->held, wanted * sizeof *larger);
    if (larger == NULL) return gl_fail_memory(err, "a held version");
    r->held = larger;
    r->cap_held = wanted;
  }
  model_values *values = NULL;
  gl_status status = !apart || fits_on_device(r) ? model_values_copy(&values, r->model, err)
                                                 : model_values_put_aside(&values, r->model, err);
  if (status == GL_OK) r->held[r->n_held++] = (held_version){version, values};
  return status;
}

static gl_status hold(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = context;
  return replica_add_held(&l->replica[rank], l->update.version, err);
}

gl_status llm_learner_hold(void *self, gl_error *err) {
  llm_learner *l = self;
  return rank_threads_run(l->threads, hold, l, err);
}

static void release(replica *r, int64_t version) {
  size_t i = 0;
  while (i < r->n_held && r->held[i].version != version) ++i;
  if (i == r->n_held) return;
  model_values_free(r->held[i].values, r->model);
  memmove(&r->held[i], &r->held[i + 1], (r->n_held - i - 1) * sizeof *r->held);
  --r->n_held;
}

typedef struct releasing {
  llm_learner *l;
  int64_t version;
} releasing;

static gl_status release_one(void *context, size_t rank, gl_error *err) {
  const releasing *what = context;
  (void)err;
  release(&what->l->replica[rank], what->version);
  return GL_OK;
}

void llm_learner_release(void *self, int64_t version) {
  releasing what = {self, version};
  (void)rank_threads_run(what.l->threads, release_one, &what, NULL);
}

void replica_release_all(replica *r) {
  while (r->n_held > 0) release(r, r->held[0].version);
}

/* --- construction --- */

static void learner_free(void *self) {
  llm_learner *l = self;
  if (l == NULL) return;
  llm_learner_close(l);
  llm_learner_free_problems(l);
  update_loop_fini(&l->update);
  problem_set_fini(&l->prompts);
  free(l->kept);
  free(l->part[0]);
  free(l->rows);
  run_spec_fini(&l->spec);
  free(l);
}

/* The checks of a setup that do not need its world. */
static gl_status check_setup(const learner_setup *s, gl_error *err) {
  optimizer_spec optimizer;
  const policy_algorithm *algorithm = s->algorithm;
  gl_status status = learner_setup_check(s, err);
  if (status == GL_OK) status = optimizer_parse(&optimizer, s->optimizer, default_lr, err);
  if (status != GL_OK) return status;
  if (!policy_needs_exact_denominator(algorithm)) return GL_OK;
  const cfg_node *at = s->algorithm_at != NULL ? cfg_find(s->algorithm_at, "denominator") : NULL;
  return cfg_fail(at != NULL ? at : s->algorithm_at, err,
                  "algorithm %s: denominator: exact sums over all responses, which a transformer "
                  "has too many of; use self_normalised or mean, or a bandit or sequence world",
                  algorithm->name);
}

static int wants_reference(const llm_learner *l) {
  return l->update.algorithm.ref_kl_coef != 0 || l->spec.has_reference;
}

/* Fills in everything of a learner but its model. */
static gl_status read_setup(llm_learner *l, const learner_setup *setup, gl_error *err) {
  gl_status status = check_setup(setup, err);
  if (status == GL_OK)
    status = run_spec_init(&l->spec, setup->world, setup->sampling, setup->seed, err);
  if (status == GL_OK) status = update_loop_init(&l->update, setup, err);
  if (status == GL_OK)
    status = optimizer_parse(&l->update.optimizer, setup->optimizer, default_lr, err);
  l->update.has_reference = wants_reference(l);
  l->update.longest = l->spec.max_tokens;
  l->rewards = setup->rewards;
  return status;
}

/* What a replica is made from. */
typedef struct making {
  llm_learner *l;
  const learner_setup *setup;
} making;

/* A model that does not fit is refused before any of it is allocated. */
static gl_status check_memory(void *context, size_t rank, gl_error *err) {
  const making *m = context;
  const llm_learner *l = m->l;
  replica *r = &l->replica[rank];
  memory_need need;
  const learner_setup *setup = m->setup;
  const size_t groups =
      setup->drawn_groups > setup->n_groups ? setup->drawn_groups : setup->n_groups;
  gl_status status = memory_need_of(&need, &l->spec, r->backend, groups * setup->group_size, 1,
                                    wants_reference(l), err);
  r->step_bytes = need.step;
  return status == GL_OK ? memory_need_check(&need, &l->spec, r->backend, err) : status;
}

static gl_status take_backends(llm_learner *l, const learner_setup *setup, gl_error *err) {
  making m = {l, setup};
  gl_status status = llm_learner_open(l, setup->threads, err);
  /* A device that writes sets cannot run ahead of the host: not for metrics alone. */
  if (status == GL_OK && l->spec.kept_for_metrics && l->backend->kind != BACKEND_CPU)
    l->spec.kept = (kept_shape){0};
  return status == GL_OK ? rank_threads_run(l->threads, check_memory, &m, err) : status;
}

/* Sets the parameters before the warm-up. A reference from a folder is loaded into the model first
 * and copied from there, because model_load() reads into a model only. */
static gl_status start_model(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = ((const making *)context)->l;
  replica *r = &l->replica[rank];
  gl_status status = GL_OK;
  if (l->spec.reference != NULL) {
    status = model_load(r->model, l->spec.reference, err);
    if (status == GL_OK) status = model_values_copy(&r->reference, r->model, err);
  }
  if (status == GL_OK && rank == 0) status = run_spec_check_start(&l->spec, err);
  if (status != GL_OK) return status;
  return l->spec.folder != NULL ? model_load(r->model, l->spec.folder, err)
                                : model_initialise(r->model, l->update.seed, err);
}

/* Copies the policy before the first update, where that is the reference. */
static gl_status keep_reference(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = ((const making *)context)->l;
  replica *r = &l->replica[rank];
  if (!wants_reference(l) || r->reference != NULL) return GL_OK;
  return model_values_copy(&r->reference, r->model, err);
}

/* Copies it where a share of the responses is drawn from it. */
static gl_status keep_initial(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = ((const making *)context)->l;
  replica *r = &l->replica[rank];
  if (l->spec.sampling.behaviour.with != OTHER_INITIAL) return GL_OK;
  return model_values_copy(&r->initial, r->model, err);
}

static gl_status build(llm_learner *l, const learner_setup *setup, gl_error *err) {
  making m = {l, setup};
  gl_status status = read_setup(l, setup, err);
  if (status == GL_OK) status = llm_learner_take_problems(l, err);
  if (status == GL_OK) status = take_backends(l, setup, err);
  if (status == GL_OK) status = llm_learner_models(l, err);
  if (status == GL_OK)
    status = gradient_trail_init(&l->update.trail, model_gradient_sample_size(l->model), err);
  if (status == GL_OK) status = rank_threads_run(l->threads, start_model, &m, err);
  if (status == GL_OK) status = llm_learner_warm_up(l, setup, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, keep_reference, &m, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, keep_initial, &m, err);
  if (status == GL_OK) status = llm_learner_optimizer(l, &l->update.optimizer, err);
  for (size_t rank = 0; rank < l->spec.devices && status == GL_OK; ++rank)
    if (l->spec.rounds_stochastically)
      model_optimizer_round(l->replica[rank].optimizer, l->update.seed);
  return status;
}

gl_status llm_learner_new(learner *out, const learner_setup *setup, gl_error *err) {
  return llm_learner_new_watched(out, setup, NULL, err);
}

model *llm_learner_model(const learner *l) {
  return ((const llm_learner *)l->self)->model;
}

gl_status llm_learner_new_watched(learner *out, const learner_setup *setup, const llm_watch *watch,
                                  gl_error *err) {
  static const learner_ops ops = {
      .kind = "llm",
      .draw = llm_learner_draw,
      .join = llm_learner_join,
      .adopt = llm_learner_adopt,
      .longest = llm_learner_longest,
      .update = llm_learner_update,
      .evaluate = llm_learner_evaluate,
      .parts = llm_learner_parts,
      .evaluate_parts = llm_learner_evaluate_parts,
      .save = llm_learner_save,
      .load = llm_learner_load,
      .hold = llm_learner_hold,
      .release = llm_learner_release,
      .keep_cache = llm_learner_keep_cache,
      .free = learner_free,
  };
  *out = (learner){0};
  llm_learner *l = calloc(1, sizeof *l);
  if (l == NULL) return gl_fail_memory(err, "a learner");
  l->watch = watch;
  gl_status status = build(l, setup, err);
  l->watch = NULL;
  if (status != GL_OK) {
    learner_free(l);
    return status;
  }
  *out = (learner){&ops, l};
  return GL_OK;
}

gl_status llm_check_sections(const learner_setup *setup, gl_error *err) {
  return check_setup(setup, err);
}

static gl_status check_with(const learner_setup *setup,
                            gl_status (*more)(llm_learner *, const learner_setup *, gl_error *),
                            gl_error *err) {
  llm_learner *l = calloc(1, sizeof *l);
  if (l == NULL) return gl_fail_memory(err, "a learner");
  gl_status status = read_setup(l, setup, err);
  if (status == GL_OK && more != NULL) status = more(l, setup, err);
  learner_free(l);
  return status;
}

static gl_status take_set_problems(llm_learner *l, const learner_setup *setup, gl_error *err) {
  (void)setup;
  return llm_learner_take_set_problems(l, err);
}

gl_status llm_check(const learner_setup *setup, gl_error *err) {
  return check_with(setup, take_set_problems, err);
}

gl_status llm_check_machine(const learner_setup *setup, gl_error *err) {
  return check_with(setup, take_backends, err);
}

int llm_is_kind(const char *kind) {
  return kind != NULL && strcmp(kind, "llm") == 0;
}
