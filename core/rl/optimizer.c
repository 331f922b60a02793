/* Learning rates over a run: warm-up and decay. */
#include "core/rl/optimizer.h"

#include <math.h>

gl_status optimizer_parse(optimizer_spec *spec, const cfg_node *section, double default_lr,
                          gl_error *err) {
  static const char *const kinds[] = {"sgd", "adam", "adamw"};
  static const char *const scalings[] = {"none", "sqrt", "linear"};
  static const char *const decays[] = {"none", "linear", "cosine"};
  const double below_one = nextafter(1, 0);
  cfg_reader r;
  cfg_begin(&r, section, "optimizer", err);
  spec->kind = (optimizer_kind)cfg_choice(&r, "kind", OPTIMIZER_ADAM, kinds, 3);
  spec->lr = cfg_double(&r, "lr", default_lr, 0, 1e6);
  spec->momentum = cfg_double(&r, "momentum", 0, 0, below_one);
  spec->beta1 = cfg_double(&r, "beta1", 0.9, 0, below_one);
  spec->beta2 = cfg_double(&r, "beta2", 0.999, 0, below_one);
  spec->eps = cfg_positive(&r, "eps", 1e-8);
  spec->weight_decay = cfg_double(&r, "weight_decay", 0, 0, 1e6);
  spec->clip_grad_norm = cfg_double(&r, "clip_grad_norm", 0, 0, 1e300);
  spec->warmup = cfg_count(&r, "warmup", 0, 0, (size_t)1 << 40);
  spec->decay = (lr_decay)cfg_choice(&r, "decay", LR_CONSTANT, decays, 3);
  spec->ess_scaling = (ess_scaling)cfg_choice(&r, "ess_scaling", ESS_NONE, scalings, 3);
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
