/* The transformer as a learner: construction, and gradients without steps. Sampling is in draw.c,
 * updates in update.c, evaluation in evaluate.c, warm-up in warmup.c; replicas, held versions and
 * checkpoints are in data_parallel.c. */
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- construction --- */

static void llm_learner_free(void *self) {
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

/* Checks the parts of a setup that do not need its world. */
static gl_status check_setup(const learner_setup *s, gl_error *err) {
  optimizer_spec optimizer;
  const policy_algorithm *algorithm = s->algorithm;
  gl_status status = learner_setup_check(s, err);
  if (status == GL_OK) status = optimizer_parse(&optimizer, s->optimizer, "llm", err);
  if (status != GL_OK) return status;
  if (algorithm->proximal_decay > 0)
    return cfg_fail(
        s->algorithm_at, err,
        "algorithm %s: proximal_decay averages parameters, which a transformer's learner "
        "does not keep; set proximal_decay: 0, or use a toy world",
        algorithm->name);
  if (!policy_needs_exact_denominator(algorithm)) return GL_OK;
  const cfg_node *at = s->algorithm_at != NULL ? cfg_find(s->algorithm_at, "denominator") : NULL;
  return cfg_fail(at != NULL ? at : s->algorithm_at, err,
                  "algorithm %s: denominator: exact sums over all responses, which a transformer "
                  "has too many of; use self_normalised or mean, or a bandit or sequence world",
                  algorithm->name);
}

static int wants_reference(const llm_learner *l) {
  return policy_needs_reference(&l->update.algorithm) || l->spec.has_reference;
}

/* Fills in everything of a learner except its model. */
static gl_status read_setup(llm_learner *l, const learner_setup *setup, gl_error *err) {
  gl_status status = check_setup(setup, err);
  if (status == GL_OK)
    status = run_spec_init(&l->spec, setup->world, setup->sampling, setup->seed, err);
  if (status == GL_OK) status = update_loop_init(&l->update, setup, err);
  if (status == GL_OK) status = optimizer_parse(&l->update.optimizer, setup->optimizer, "llm", err);
  l->update.has_reference = wants_reference(l);
  l->update.longest = l->spec.max_tokens;
  l->rewards = setup->rewards;
  return status;
}

/* The arguments for making a replica. */
typedef struct making {
  llm_learner *l;
  const learner_setup *setup;
} making;

/* Refuses a model that does not fit before any memory is allocated. */
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
  r->stores = need.stores;
  return status == GL_OK ? memory_need_check(&need, &l->spec, r->backend, err) : status;
}

static gl_status take_backends(llm_learner *l, const learner_setup *setup, gl_error *err) {
  making m = {l, setup};
  gl_status status = llm_learner_open(l, setup->threads, err);
  /* On a GPU the record of the tokens that top-k and top-p keep takes time in every step, so it is
   * left out if only metrics need it. */
  if (status == GL_OK && l->spec.kept_for_metrics && l->backend->kind != BACKEND_CPU)
    l->spec.kept = (kept_shape){0};
  return status == GL_OK ? rank_threads_run(l->threads, check_memory, &m, err) : status;
}

/* Sets the parameters before the warm-up. A reference from a folder is loaded into the model first
 * and copied from there, because model_load() can only read into a model. */
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

/* Copies the parameters before the first update, if they are the reference policy. */
static gl_status keep_reference(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = ((const making *)context)->l;
  replica *r = &l->replica[rank];
  if (!wants_reference(l) || r->reference != NULL) return GL_OK;
  return model_values_copy(&r->reference, r->model, err);
}

/* Copies the parameters before the first update, if a fraction of the responses is sampled from
 * them. */
static gl_status keep_initial(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = ((const making *)context)->l;
  replica *r = &l->replica[rank];
  if (l->spec.sampling.behaviour.with != OTHER_INITIAL) return GL_OK;
  return model_values_copy(&r->initial, r->model, err);
}

/* Makes the learner in the order in which its parts need each other; the warm-up is one of the
 * steps. */
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
      .free = llm_learner_free,
  };
  *out = (learner){0};
  llm_learner *l = calloc(1, sizeof *l);
  if (l == NULL) return gl_fail_memory(err, "a learner");
  l->watch = watch;
  gl_status status = build(l, setup, err);
  l->watch = NULL;
  if (status != GL_OK) {
    llm_learner_free(l);
    return status;
  }
  *out = (learner){&ops, l};
  return GL_OK;
}

gl_status llm_check_sections(const learner_setup *setup, gl_error *err) {
  return check_setup(setup, err);
}

/* Reads the setup without making a model, then runs the further check (NULL: none). */
static gl_status check_with(const learner_setup *setup,
                            gl_status (*more)(llm_learner *, const learner_setup *, gl_error *),
                            gl_error *err) {
  llm_learner *l = calloc(1, sizeof *l);
  if (l == NULL) return gl_fail_memory(err, "a learner");
  gl_status status = read_setup(l, setup, err);
  if (status == GL_OK && more != NULL) status = more(l, setup, err);
  llm_learner_free(l);
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

/* --- gradients without steps --- */
/* Gradients of algorithms at given parameters, on batches that may have been sampled with other
 * parameters. Used by `gepolab llm bias`. */

size_t llm_learner_size(const learner *of) {
  return model_parameters(((const llm_learner *)of->self)->model);
}

gl_status llm_learner_parameters(const learner *of, double *theta, gl_error *err) {
  return model_get(((const llm_learner *)of->self)->model, theta, err);
}

/* The arguments for setting the parameters of every replica. */
typedef struct placing {
  llm_learner *l;
  const double *theta;
} placing;

static gl_status set_on_rank(void *context, size_t rank, gl_error *err) {
  const placing *p = context;
  return model_set(p->l->replica[rank].model, p->theta, err);
}

gl_status llm_learner_stand_at(learner *of, const double *theta, int64_t version, gl_error *err) {
  placing p = {of->self, theta};
  gl_status status = rank_threads_run(p.l->threads, set_on_rank, &p, err);
  if (status == GL_OK) p.l->update.version = version;
  return status;
}

/* --- the learner's own distribution --- */

/* The recipe's sampling settings, saved while others are in use. */
typedef struct said {
  sampling_spec sampling;
  kept_shape kept;
} said;

/* Replaces the recipe's sampling settings if dist is the learner's own distribution. Returns the
 * previous ones. */
static said use_distribution(llm_learner *l, llm_dist dist) {
  const said was = {l->spec.sampling, l->spec.kept};
  if (dist == LLM_OWN_DIST) {
    l->spec.sampling = (sampling_spec){.temperature = was.sampling.temperature, .top_p = 1};
    l->spec.kept = (kept_shape){0};
  }
  return was;
}

static void restore_distribution(llm_learner *l, said was) {
  l->spec.sampling = was.sampling;
  l->spec.kept = was.kept;
}

gl_status llm_learner_draw_by(learner *of, llm_dist dist, const draw_request *r, batch *b,
                              gl_error *err) {
  llm_learner *l = of->self;
  const said was = use_distribution(l, dist);
  gl_status status = llm_learner_draw(l, r, b, err);
  restore_distribution(l, was);
  return status;
}

/* --- gradients --- */

static gl_status differentiate(llm_learner *l, batch *b, const policy_algorithm *algorithm,
                               double *gradient, double metrics[METRIC_COUNT], gl_error *err) {
  const size_t n = model_parameters(l->model);
  metrics_clear(metrics);
  gl_status status = llm_learner_gather(l, &b, 1, err);
  if (status == GL_OK) status = llm_learner_differentiate(l, algorithm, metrics, err);
  if (status == GL_OK) status = model_gradient_get(l->model, gradient, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) gradient[i] = -gradient[i];
  return status;
}

gl_status llm_learner_gradient(learner *of, llm_dist dist, batch *b,
                               const policy_algorithm *algorithm, double *gradient,
                               double metrics[METRIC_COUNT], gl_error *err) {
  llm_learner *l = of->self;
  if (l->spec.devices > 1)
    return gl_fail(err, GL_EINPUT, "gradients are read from one device; set world.devices: 1");
  const said was = use_distribution(l, dist);
  gl_status status = differentiate(l, b, algorithm, gradient, metrics, err);
  restore_distribution(l, was);
  return status;
}
