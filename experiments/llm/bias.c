/* Gradients of algorithms and of the truth, batch by batch, into sums over blocks. */
#include "experiments/llm/bias.h"

#include "experiments/base/process.h"
#include "llm/llm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- batches --- */

enum { OF_ALGORITHMS, OF_TRUTH };

/* Addresses beyond those of any training: its batches are numbered from 0 on. */
static uint64_t batch_id(const llm_bias_spec *s, int kind, size_t i) {
  assert(s->seed < (UINT64_C(1) << 29) && i < (UINT64_C(1) << 31));
  return UINT64_C(1) << 62 | s->seed << 32 | (uint64_t)kind << 31 | (uint64_t)i;
}

/* Draws with the parameters that the learner stands at. */
static gl_status draw(batch *b, learner *l, llm_dist dist, const llm_bias_spec *s, int kind,
                      size_t i, int64_t version, gl_error *err) {
  const draw_request r = {
      batch_id(s, kind, i), version, s->groups, s->group_size, 0, 1, 0, NULL, NULL, 0};
  *b = (batch){0};
  return llm_learner_draw_by(l, dist, &r, b, err);
}

static gl_status step_on(const llm_bias_watch *watch, gl_error *err) {
  progress_at(watch->bar, ++*watch->done, NULL);
  return signals_caught() ? gl_fail(err, GL_EINTERRUPTED, "stopped; nothing was measured") : GL_OK;
}

uint64_t llm_bias_reference_work(const llm_bias_spec *s) {
  return s->references;
}

uint64_t llm_bias_work(const llm_bias_spec *s) {
  return (uint64_t)s->batches * s->n_algorithms;
}

/* --- the truth --- */

gl_status llm_bias_reference(gradient_sample *out, double *reward, learner *l,
                             const llm_bias_pair *pair, const llm_bias_spec *s,
                             const llm_bias_watch *watch, gl_error *err) {
  const policy_algorithm *truth = policy_algorithms_find("reinforce");
  double metrics[METRIC_COUNT], sum = 0;
  double *gradient = calloc(out->n + 1, sizeof *gradient);
  if (gradient == NULL) return gl_fail_memory(err, "a gradient");
  gl_status status = llm_learner_stand_at(l, pair->learner, pair->version, err);
  gradient_sample_clear(out);
  for (size_t i = 0; i < s->references && status == GL_OK; ++i) {
    batch b;
    status = draw(&b, l, LLM_OWN_DIST, s, OF_TRUTH, i, pair->version, err);
    if (status == GL_OK)
      status = llm_learner_gradient(l, LLM_OWN_DIST, &b, truth, gradient, metrics, err);
    if (status == GL_OK) {
      gradient_sample_add(out, i % GRADIENT_BLOCKS, gradient);
      sum += metrics[METRIC_REWARD_MEAN];
      status = step_on(watch, err);
    }
    batch_fini(&b);
  }
  *reward = sum / (double)s->references;
  free(gradient);
  return status;
}

/* --- the algorithms --- */

/* Where the means of a result's metrics stand, and what they are means of. */
static const struct {
  metric of;
  size_t at;
} means[] = {{METRIC_KL_K3_SEQ, offsetof(llm_bias_result, kl)},
             {METRIC_IW_MEAN, offsetof(llm_bias_result, iw_mean)},
             {METRIC_IW_VARIANCE, offsetof(llm_bias_result, iw_variance)},
             {METRIC_AW_VARIANCE, offsetof(llm_bias_result, aw_variance)},
             {METRIC_ESS, offsetof(llm_bias_result, ess)},
             {METRIC_CLIP_FRACTION, offsetof(llm_bias_result, clip_fraction)}};

static double *mean_at(llm_bias_result *r, size_t i) {
  return (double *)(void *)((char *)r + means[i].at);
}

/* A rule that the algorithm breaks is its result, and the others are measured. */
static gl_status not_applicable(llm_bias_result *out, const gl_error *why) {
  *out = (llm_bias_result){0};
  snprintf(out->why, sizeof out->why, "%.199s", why->text);
  return GL_OK;
}

static gl_status measure_one(llm_bias_result *out, learner *l, const policy_algorithm *algorithm,
                             batch *batches, const llm_bias_spec *s,
                             const gradient_sample *reference, gradient_sample *sample,
                             double *gradient, const llm_bias_watch *watch, gl_error *err) {
  double metrics[METRIC_COUNT];
  *out = (llm_bias_result){.applicable = 1};
  gradient_sample_clear(sample);
  for (size_t i = 0; i < s->batches; ++i) {
    gl_error why = {0};
    gl_status status =
        llm_learner_gradient(l, LLM_SAMPLERS_DIST, &batches[i], algorithm, gradient, metrics, &why);
    if (status == GL_EINPUT && i == 0) {
      *watch->done += s->batches;
      return not_applicable(out, &why);
    }
    if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
    gradient_sample_add(sample, i % GRADIENT_BLOCKS, gradient);
    for (size_t k = 0; k < sizeof means / sizeof *means; ++k)
      *mean_at(out, k) += metrics[means[k].of] / (double)s->batches;
    status = step_on(watch, err);
    if (status != GL_OK) return status;
  }
  return gradient_moments(out->number, sample, reference, s->confidence, err);
}

gl_status llm_bias_measure(llm_bias_result *out, learner *l, const llm_bias_pair *pair,
                           const llm_bias_spec *s, const gradient_sample *reference,
                           gradient_sample *scratch, const llm_bias_watch *watch, gl_error *err) {
  double *gradient = calloc(reference->n + 1, sizeof *gradient);
  batch *batches = calloc(s->batches, sizeof *batches);
  gl_status status = gradient != NULL && batches != NULL ? GL_OK : gl_fail_memory(err, "batches");
  if (status == GL_OK) status = llm_learner_stand_at(l, pair->sampler, pair->sampler_version, err);
  for (size_t i = 0; i < s->batches && status == GL_OK; ++i)
    status =
        draw(&batches[i], l, LLM_SAMPLERS_DIST, s, OF_ALGORITHMS, i, pair->sampler_version, err);
  if (status == GL_OK) status = llm_learner_stand_at(l, pair->learner, pair->version, err);
  for (size_t a = 0; a < s->n_algorithms && status == GL_OK; ++a)
    status = measure_one(&out[a], l, &s->algorithms[a], batches, s, reference, scratch, gradient,
                         watch, err);
  for (size_t i = 0; batches != NULL && i < s->batches; ++i) batch_fini(&batches[i]);
  free(batches);
  free(gradient);
  return status;
}
