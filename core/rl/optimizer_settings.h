/* The `optimizer` section of a recipe and its learning-rate schedule, shared by toy and transformer
 * learners. Each learner implements the optimiser step for its own storage. */
#ifndef GEPOLAB_CORE_RL_OPTIMIZER_SETTINGS_H
#define GEPOLAB_CORE_RL_OPTIMIZER_SETTINGS_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

typedef enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW } optimizer_kind;
typedef enum ess_scaling { ESS_NONE, ESS_SQRT, ESS_LINEAR } ess_scaling;
typedef enum lr_decay { LR_CONSTANT, LR_LINEAR, LR_COSINE } lr_decay;

typedef struct optimizer_spec {
  optimizer_kind kind;
  double lr;             /* >= 0 */
  double momentum;       /* sgd only, in [0, 1) */
  double beta1, beta2;   /* adam, adamw, in [0, 1) */
  double eps;            /* adam, adamw */
  double weight_decay;   /* adamw: decoupled; sgd, adam: added to the gradient */
  double clip_grad_norm; /* 0: off */
  uint64_t warmup;       /* learner steps of linear increase to lr */
  lr_decay decay;        /* from the end of warm-up to the last step */
  ess_scaling ess_scaling;
} optimizer_spec;

/* Reads the section (NULL: defaults) of a recipe whose world has the kind `world`. */
gl_status optimizer_parse(optimizer_spec *spec, const cfg_node *section, const char *world,
                          gl_error *err);

/* Learning rate of learner step `step` (0-based) of `steps`. It increases as (step + 1) / warmup,
 * then decays as 1 - u (linear) or (1 + cos(pi u)) / 2, with u = (step - warmup) / (steps -
 * warmup). The first step after the warm-up has the full rate and no step has rate 0. After `steps`
 * the decayed rate is 0; `steps` 0 means unknown: no decay. */
double optimizer_lr(const optimizer_spec *spec, uint64_t step, uint64_t steps);

/* Relative effective sample size (sum w)^2 / (n sum w^2) of the sequence ratios w = P/Q of n
 * responses: 1 if all are equal, 1 / n if one dominates. Response i has tokens token_start[i] ..
 * token_start[i + 1] - 1 of logp and logq. NaN for no responses. */
double optimizer_ess(const double *logp, const double *logq, const size_t *token_start, size_t n);
/* The factor that multiplies an update's learning rate at relative effective sample size `ess`: ess
 * (linear) or its square root (VCPO, 2602.17616); 1 if spec has no scaling. */
double optimizer_ess_factor(const optimizer_spec *spec, double ess);

#endif
