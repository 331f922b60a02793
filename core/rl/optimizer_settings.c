/* Learning rates over a run: warm-up and decay. */
#include "core/rl/optimizer_settings.h"

#include "core/config/fields.h"

#include <math.h>

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
  return cfg_end(&r);
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
