/* Learning rates over a run: warm-up and decay. */
#include "core/rl/optimizer_settings.h"

#include "core/config/fields.h"

#include <math.h>
#include <stdio.h>

/* A field of the section for fields_default(). */
static const char *optimizer_stated(const void *section, const char *path, int *stated) {
  static const char own[] = "optimizer.";
  *stated = 0;
  return cfg_path_is_inside(path, "optimizer") ? cfg_stated(section, path + sizeof own - 1, stated)
                                               : NULL;
}

/* Refuses a field that this kind of optimiser does not have: those have a default. */
static gl_status optimizer_refuse_unused(const optimizer_spec *spec, const cfg_node *section,
                                         gl_error *err) {
  char path[160], room[FIELD_TEXT_SIZE];
  for (size_t i = 0; i < cfg_size(section); ++i) {
    const cfg_node *value = cfg_at(section, i);
    snprintf(path, sizeof path, "optimizer.%s", cfg_key_at(section, i));
    if (!cfg_is_null(value) && fields_default(path, optimizer_stated, section, room) == NULL)
      return cfg_fail(value, err,
                      "%s (%s) has no effect with kind: %s; give another kind, or leave it out "
                      "(%s=null)",
                      path, fields_named(path)->about, field_word("optimizer.kind", spec->kind),
                      path);
  }
  return GL_OK;
}

gl_status optimizer_parse(optimizer_spec *spec, const cfg_node *section, const char *world,
                          gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, section, "optimizer", err);
  cfg_of(&r, "world.kind", world);
  spec->kind = (optimizer_kind)field_choice(&r, "kind");
  spec->lr = field_real(&r, "lr");
  spec->momentum = field_real(&r, "momentum");
  spec->beta1 = field_real(&r, "beta1");
  spec->beta2 = field_real(&r, "beta2");
  spec->eps = field_real(&r, "eps");
  spec->weight_decay = field_real(&r, "weight_decay");
  spec->clip_grad_norm = field_real(&r, "clip_grad_norm");
  spec->warmup = field_count(&r, "warmup");
  spec->decay = (lr_decay)field_choice(&r, "decay");
  spec->ess_scaling = (ess_scaling)field_choice(&r, "ess_scaling");
  gl_status status = cfg_end(&r);
  return status == GL_OK && section != NULL ? optimizer_refuse_unused(spec, section, err) : status;
}

double optimizer_lr(const optimizer_spec *spec, uint64_t step, uint64_t steps) {
  if (step < spec->warmup) return spec->lr * (double)(step + 1) / (double)spec->warmup;
  if (spec->decay == LR_CONSTANT || steps == 0) return spec->lr;
  if (step >= steps) return 0;
  double u = (double)(step - spec->warmup) / (double)(steps - spec->warmup);
  return spec->decay == LR_LINEAR ? spec->lr * (1 - u)
                                  : spec->lr * 0.5 * (1 + cos(3.14159265358979323846 * u));
}

double optimizer_ess(const double *logp, const double *logq, const size_t *token_start, size_t n) {
  double top = -INFINITY, sum = 0, squares = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (size_t i = 0; i < n; ++i) {
      double x = 0;
      for (size_t k = token_start[i]; k < token_start[i + 1]; ++k) x += logp[k] - logq[k];
      if (pass == 0) {
        top = fmax(top, x);
      } else {
        const double w = exp(x - top);
        sum += w;
        squares += w * w;
      }
    }
  return sum * sum / ((double)n * squares);
}

double optimizer_ess_factor(const optimizer_spec *spec, double ess) {
  switch (spec->ess_scaling) {
  case ESS_NONE:
    return 1;
  case ESS_SQRT:
    return isnan(ess) ? 1 : sqrt(ess);
  case ESS_LINEAR:
    return isnan(ess) ? 1 : ess;
  }
  return 1;
}
