/* The policy classes of a toy world: how parameters become logits.
 *
 * tabular:    one logit for each prompt, prefix and token.
 * templates:  log-linear in one-hot features of (prompt, prefix), each with one weight per token:
 *             z(x, n, a) = sum_k theta[f_k(x, n) * vocabulary + a]. A template is a conjunction of
 *             attributes, such as "position*last". A template without `prompt` is shared by all
 *             prompts.
 * dense:      log-linear in real features of (prompt, token): z(x, a) = <theta, phi(x, a)>. */
#ifndef GEPOLAB_TOY_WORLD_FEATURES_H
#define GEPOLAB_TOY_WORLD_FEATURES_H

#include "core/config/config.h"
#include "core/rl/sequence_task.h"

typedef enum toy_features_kind { TOY_TABULAR, TOY_TEMPLATES, TOY_DENSE } toy_features_kind;

typedef struct toy_features {
  toy_features_kind kind;
  size_t vocabulary, n_nodes, n_prompts;
  size_t n_parameters;
  size_t width;   /* templates: number of active features per node; dense: dimension */
  int32_t *index; /* templates: [n_prompts * n_nodes * width] active features */
  double *value;  /* dense: [n_prompts * n_nodes * vocabulary * width] phi(x, a) */
  /* Decision processes with random transitions (toy/world/process.c): tokens a * branches + k, for
   * every k < branches, share the weights of action a, and offset[n_nodes * vocabulary] is added
   * to the logits. Other worlds: offset is NULL. */
  size_t branches;
  double *offset;
} toy_features;

/* Inputs of the features. */
typedef struct toy_features_context {
  const response_tree *tree;
  size_t n_prompts;
  size_t modulus; /* modulus of the attributes `sum` and `remainder` */
  uint64_t seed;
  const cfg_node *place; /* node of the recipe that errors about size refer to */
  int bigram;            /* 1: only templates of bias, prompt and last are allowed */
} toy_features_context;

gl_status toy_features_tabular(toy_features *f, const toy_features_context *in, gl_error *err);
/* names: the recipe's list of templates. NULL: the default [position, last, prompt*position,
 * prompt*last, prompt*sum], or [last, prompt*last] for a bigram policy. hash > 0: all features are
 * hashed into that many buckets. */
gl_status toy_features_templates(toy_features *f, const toy_features_context *in,
                                 const cfg_node *names, size_t hash, gl_error *err);
/* Independent N(0, 1/dimension) features for each prompt and token, sampled at RNG_WORLD. */
gl_status toy_features_random(toy_features *f, const toy_features_context *in, size_t dimension,
                              gl_error *err);
/* rows: a list of `vocabulary` lists of equal length, used for all prompts. */
gl_status toy_features_explicit(toy_features *f, const toy_features_context *in,
                                const cfg_node *rows, gl_error *err);
void toy_features_fini(toy_features *f);

/* Writes the logits of every edge of prompt x to z[n_nodes * vocabulary]. */
void toy_features_logits(const toy_features *f, const double *theta, size_t x, double *z);
/* grad += sum_a dz[a] * d z(x, node, a) / d theta. */
void toy_features_backward(const toy_features *f, size_t x, size_t node, const double *dz,
                           double *grad);

#endif
