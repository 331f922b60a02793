/* Gradients of algorithms at given parameters, on batches that other parameters may have drawn, and
 * no step: what `gepolab llm bias` is made of. */
#include "llm/learner/learner.h"

size_t llm_learner_size(const learner *of) {
  return model_parameters(((const llm_learner *)of->self)->model);
}

gl_status llm_learner_parameters(const learner *of, double *theta, gl_error *err) {
  return model_get(((const llm_learner *)of->self)->model, theta, err);
}

/* Parameters for every replica. */
typedef struct placing {
  llm_learner *l;
  const double *theta;
} placing;

static gl_status place(void *context, size_t rank, gl_error *err) {
  const placing *p = context;
  return model_set(p->l->replica[rank].model, p->theta, err);
}

gl_status llm_learner_stand_at(learner *of, const double *theta, int64_t version, gl_error *err) {
  placing p = {of->self, theta};
  gl_status status = rank_threads_run(p.l->threads, place, &p, err);
  if (status == GL_OK) p.l->update.version = version;
  return status;
}

/* --- the learner's own distribution --- */

/* What a recipe says of sampling, put aside. */
typedef struct said {
  sampling_spec sampling;
  kept_shape kept;
} said;

static said enter(llm_learner *l, llm_dist dist) {
  const said was = {l->spec.sampling, l->spec.kept};
  if (dist == LLM_OWN_DIST) {
    l->spec.sampling = (sampling_spec){.temperature = was.sampling.temperature, .top_p = 1};
    l->spec.kept = (kept_shape){0};
  }
  return was;
}

static void leave(llm_learner *l, said was) {
  l->spec.sampling = was.sampling;
  l->spec.kept = was.kept;
}

gl_status llm_learner_draw_by(learner *of, llm_dist dist, const draw_request *r, batch *b,
                              gl_error *err) {
  llm_learner *l = of->self;
  const said was = enter(l, dist);
  gl_status status = llm_learner_draw(l, r, b, err);
  leave(l, was);
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
  const said was = enter(l, dist);
  gl_status status = differentiate(l, b, algorithm, gradient, metrics, err);
  leave(l, was);
  return status;
}
