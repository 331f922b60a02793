/* Computes logits from parameters: tabular policies, templates of one-hot features, real-valued
 * features. */
#include "toy/world/features.h"

#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Entities of the features at RNG_WORLD. */
enum { FEATURES_ENTITY = 1 };
/* Upper bound on the size of a feature table; a recipe beyond it is most likely mistyped. */
static const size_t max_numbers = (size_t)1 << 26;

static gl_status features_begin(toy_features *f, toy_features_kind kind,
                                const toy_features_context *in, gl_error *err) {
  *f = (toy_features){.kind = kind,
                      .vocabulary = in->tree->vocabulary,
                      .n_nodes = in->tree->n_nodes,
                      .n_prompts = in->n_prompts};
  if (in->n_prompts > max_numbers / in->tree->n_edges)
    return cfg_fail(in->place, err,
                    "%zu prompts with %zu log-probabilities each are more than a toy world holds "
                    "(%zu); use fewer prompts, a smaller vocabulary or a shorter horizon",
                    in->n_prompts, in->tree->n_edges, max_numbers);
  return GL_OK;
}

static gl_status too_large(const toy_features_context *in, gl_error *err) {
  return cfg_fail(in->place, err,
                  "these features need more than the %zu numbers that a toy policy holds; use "
                  "fewer or smaller ones, or a smaller world",
                  max_numbers);
}

gl_status toy_features_tabular(toy_features *f, const toy_features_context *in, gl_error *err) {
  gl_status status = features_begin(f, TOY_TABULAR, in, err);
  f->n_parameters = in->n_prompts * in->tree->n_edges;
  return status;
}

/* --- templates --- */

typedef enum attribute {
  ATTRIBUTE_BIAS,
  ATTRIBUTE_PROMPT,
  ATTRIBUTE_POSITION,
  ATTRIBUTE_LAST,
  ATTRIBUTE_SECOND_LAST,
  ATTRIBUTE_SUM,
  ATTRIBUTE_REMAINDER,
  N_ATTRIBUTES
} attribute;

static const char *const attribute_names[N_ATTRIBUTES] = {
    "bias", "prompt", "position", "last", "second_last", "sum", "remainder"};

enum { TEMPLATE_MAX_ATTRIBUTES = 8 };
/* A template: the conjunction of its n attributes. */
typedef struct template_spec {
  size_t n;
  attribute attribute[TEMPLATE_MAX_ATTRIBUTES];
  size_t offset; /* index of the template's first feature */
} template_spec;

/* The values from which attributes of a node are computed. */
typedef struct node_state {
  size_t position, last, second_last, sum; /* tokens are counted from 1; 0: before the start */
} node_state;

/* The number of values of an attribute. */
static size_t attribute_size(const toy_features_context *in, attribute a) {
  switch (a) {
  case ATTRIBUTE_PROMPT:
    return in->n_prompts;
  case ATTRIBUTE_POSITION:
    return in->tree->horizon;
  case ATTRIBUTE_LAST:
  case ATTRIBUTE_SECOND_LAST:
    return in->tree->vocabulary + 1;
  case ATTRIBUTE_SUM:
  case ATTRIBUTE_REMAINDER:
    return in->modulus;
  case ATTRIBUTE_BIAS:
  case N_ATTRIBUTES:
    break;
  }
  return 1;
}

static size_t attribute_value(const toy_features_context *in, attribute a, size_t x,
                              const node_state *s) {
  switch (a) {
  case ATTRIBUTE_PROMPT:
    return x;
  case ATTRIBUTE_POSITION:
    return s->position;
  case ATTRIBUTE_LAST:
    return s->last;
  case ATTRIBUTE_SECOND_LAST:
    return s->second_last;
  case ATTRIBUTE_SUM:
    return s->sum;
  case ATTRIBUTE_REMAINDER:
    return (x % in->modulus + in->modulus - s->sum) % in->modulus;
  case ATTRIBUTE_BIAS:
  case N_ATTRIBUTES:
    break;
  }
  return 0;
}

/* Returns 1 if a bigram policy (prompt and last letter only) may use the attribute. */
static int bigram_has(attribute a) {
  return a == ATTRIBUTE_BIAS || a == ATTRIBUTE_PROMPT || a == ATTRIBUTE_LAST;
}

static gl_status parse_template(template_spec *t, int bigram, const cfg_node *node,
                                const char *text, gl_error *err) {
  t->n = 0;
  for (const char *p = text; p != NULL; p = strchr(p, '*') ? strchr(p, '*') + 1 : NULL) {
    size_t length = strcspn(p, "*");
    size_t a = 0;
    while (a < N_ATTRIBUTES &&
           (strncmp(attribute_names[a], p, length) != 0 || attribute_names[a][length] != '\0'))
      ++a;
    if (a == N_ATTRIBUTES || t->n == TEMPLATE_MAX_ATTRIBUTES) {
      char word[64], near[CFG_HINT_SIZE];
      snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), p);
      return cfg_fail(node, err,
                      "'%s' is no feature; a feature is bias, prompt, position, last, "
                      "second_last, sum or remainder, or up to %d of them joined by *%s",
                      word, TEMPLATE_MAX_ATTRIBUTES,
                      cfg_hint(word, attribute_names, N_ATTRIBUTES, near));
    }
    if (bigram && !bigram_has((attribute)a))
      return cfg_fail(node, err,
                      "the policy of an automaton sees prompt and last letter only, not '%s'; its "
                      "features are bias, prompt, last and prompt*last",
                      attribute_names[a]);
    t->attribute[t->n++] = (attribute)a;
  }
  return GL_OK;
}

/* Computes every node's state from its parent's. */
static node_state *node_states(const toy_features_context *in, gl_error *err) {
  const response_tree *t = in->tree;
  node_state *s = calloc(t->n_nodes, sizeof *s);
  if (s == NULL) {
    gl_fail_memory(err, "a toy world's features");
    return NULL;
  }
  for (size_t e = 0; e < t->n_edges; ++e) {
    if (t->next[e] < 0) continue;
    const node_state *from = s + e / t->vocabulary;
    size_t token = e % t->vocabulary;
    s[t->next[e]] =
        (node_state){from->position + 1, token + 1, from->last, (from->sum + token) % in->modulus};
  }
  return s;
}

/* Hashes feature numbers into buckets (the finaliser of MurmurHash3). */
static uint64_t features_mix(uint64_t h) {
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
  return h ^ h >> 33;
}

/* Computes the feature that each template activates at each prompt and node. */
static void features_fill_index(toy_features *f, const toy_features_context *in,
                                const template_spec *spec, size_t hash, const node_state *state) {
  for (size_t x = 0; x < in->n_prompts; ++x)
    for (size_t n = 0; n < f->n_nodes; ++n)
      for (size_t k = 0; k < f->width; ++k) {
        size_t number = 0;
        for (size_t i = 0; i < spec[k].n; ++i)
          number = number * attribute_size(in, spec[k].attribute[i]) +
                   attribute_value(in, spec[k].attribute[i], x, state + n);
        number += spec[k].offset;
        if (hash > 0) number = (size_t)(features_mix(number + 1) % hash);
        f->index[(x * f->n_nodes + n) * f->width + k] = (int32_t)number;
      }
}

/* Assigns feature numbers to all templates. Errors: GL_EINPUT (too many features). */
static gl_status place_templates(template_spec *spec, size_t n, const toy_features_context *in,
                                 size_t hash, size_t *total, gl_error *err) {
  *total = 0;
  for (size_t k = 0; k < n; ++k) {
    size_t size = 1;
    for (size_t i = 0; i < spec[k].n; ++i) {
      size_t factor = attribute_size(in, spec[k].attribute[i]);
      if (size > max_numbers / factor) return too_large(in, err);
      size *= factor;
    }
    spec[k].offset = *total;
    *total += size;
    if (*total > max_numbers / in->tree->vocabulary && hash == 0) return too_large(in, err);
  }
  if (hash > 0) *total = hash;
  return GL_OK;
}

gl_status toy_features_templates(toy_features *f, const toy_features_context *in,
                                 const cfg_node *names, size_t hash, gl_error *err) {
  static const char *const usual[] = {"position", "last", "prompt*position", "prompt*last",
                                      "prompt*sum"};
  static const char *const of_bigram[] = {"last", "prompt*last"};
  const char *const *unnamed = in->bigram ? of_bigram : usual;
  const size_t n_unnamed =
      in->bigram ? sizeof of_bigram / sizeof *of_bigram : sizeof usual / sizeof *usual;
  gl_status status = features_begin(f, TOY_TEMPLATES, in, err);
  if (status != GL_OK) return status;
  f->width = names != NULL ? cfg_size(names) : n_unnamed;
  if (f->width == 0) return cfg_fail(names, err, "an empty list of features; [bias] is the least");
  template_spec *spec = calloc(f->width, sizeof *spec);
  if (spec == NULL) return gl_fail_memory(err, "a toy world's features");
  for (size_t k = 0; k < f->width && status == GL_OK; ++k) {
    const cfg_node *node = names != NULL ? cfg_at(names, k) : NULL;
    status =
        parse_template(spec + k, in->bigram, node, node != NULL ? cfg_text(node) : unnamed[k], err);
  }
  size_t total = 0;
  if (status == GL_OK) status = place_templates(spec, f->width, in, hash, &total, err);
  if (status == GL_OK && f->n_prompts * f->n_nodes > max_numbers / f->width)
    status = too_large(in, err);
  node_state *state = status == GL_OK ? node_states(in, err) : NULL;
  if (state != NULL) {
    f->n_parameters = total * f->vocabulary;
    f->index = calloc(f->n_prompts * f->n_nodes, f->width * sizeof *f->index);
    if (f->index != NULL) features_fill_index(f, in, spec, hash, state);
  }
  if (status == GL_OK && f->index == NULL) status = gl_fail_memory(err, "a toy world's features");
  free(state);
  free(spec);
  return status;
}

/* --- dense features --- */

static gl_status allocate_dense(toy_features *f, const toy_features_context *in, size_t dimension,
                                gl_error *err) {
  gl_status status = features_begin(f, TOY_DENSE, in, err);
  if (status != GL_OK) return status;
  f->width = f->n_parameters = dimension;
  size_t rows = f->n_prompts * in->tree->n_edges;
  if (dimension > max_numbers / rows) return too_large(in, err);
  f->value = calloc(rows, dimension * sizeof *f->value);
  return f->value != NULL ? GL_OK : gl_fail_memory(err, "a toy world's features");
}

gl_status toy_features_random(toy_features *f, const toy_features_context *in, size_t dimension,
                              gl_error *err) {
  gl_status status = allocate_dense(f, in, dimension, err);
  if (status != GL_OK) return status;
  rng_stream stream = rng_stream_at(in->seed, RNG_WORLD, FEATURES_ENTITY);
  size_t n = f->n_prompts * in->tree->n_edges * dimension;
  double scale = 1 / sqrt((double)dimension);
  for (size_t i = 0; i < n; ++i) f->value[i] = scale * rng_normal(rng_block(stream, i));
  return GL_OK;
}

gl_status toy_features_explicit(toy_features *f, const toy_features_context *in,
                                const cfg_node *rows, gl_error *err) {
  size_t n = cfg_size(rows), dimension = n > 0 ? cfg_size(cfg_at(rows, 0)) : 0;
  *f = (toy_features){0};
  if (n != in->tree->n_edges || dimension == 0)
    return cfg_fail(rows, err,
                    "%zu rows of features for %zu arms; give one list of numbers per arm", n,
                    in->tree->n_edges);
  gl_status status = allocate_dense(f, in, dimension, err);
  for (size_t a = 0; a < n && status == GL_OK; ++a) {
    const cfg_node *row = cfg_at(rows, a);
    if (cfg_kind_of(row) != CFG_LIST || cfg_size(row) != dimension)
      return cfg_fail(row, err, "every arm needs a list of %zu features, as the first has",
                      dimension);
    for (size_t k = 0; k < dimension; ++k) {
      double v;
      if (!cfg_number(cfg_at(row, k), &v) || !isfinite(v))
        return cfg_fail(cfg_at(row, k), err, "a feature must be a finite number");
      for (size_t x = 0; x < f->n_prompts; ++x) f->value[(x * n + a) * dimension + k] = v;
    }
  }
  return status;
}

void toy_features_fini(toy_features *f) {
  free(f->index);
  free(f->value);
  free(f->offset);
  *f = (toy_features){0};
}

/* --- logits and gradients --- */

/* Weights of one feature: one for each token, or for each action. */
static size_t template_weights(const toy_features *f) {
  return f->branches > 1 ? f->vocabulary / f->branches : f->vocabulary;
}

static void template_logits(const toy_features *f, const double *theta, size_t x, double *z) {
  memset(z, 0, f->n_nodes * f->vocabulary * sizeof *z);
  for (size_t n = 0; n < f->n_nodes; ++n)
    for (size_t k = 0; k < f->width; ++k) {
      const size_t feature = (size_t)f->index[(x * f->n_nodes + n) * f->width + k];
      const double *restrict w = theta + feature * template_weights(f);
      double *restrict out = z + n * f->vocabulary;
      if (f->branches > 1)
        for (size_t a = 0; a < f->vocabulary; ++a) out[a] += w[a / f->branches];
      else
        for (size_t a = 0; a < f->vocabulary; ++a) out[a] += w[a];
    }
}

void toy_features_logits(const toy_features *f, const double *theta, size_t x, double *z) {
  const size_t edges = f->n_nodes * f->vocabulary;
  if (f->kind == TOY_TABULAR) {
    memcpy(z, theta + x * edges, edges * sizeof *z);
  } else if (f->kind == TOY_TEMPLATES) {
    template_logits(f, theta, x, z);
  } else {
    for (size_t e = 0; e < edges; ++e) {
      const double *phi = f->value + (x * edges + e) * f->width;
      double sum = 0;
      for (size_t k = 0; k < f->width; ++k) sum += phi[k] * theta[k];
      z[e] = sum;
    }
  }
  for (size_t e = 0; f->offset != NULL && e < edges; ++e) z[e] += f->offset[e];
}

void toy_features_backward(const toy_features *f, size_t x, size_t node, const double *dz,
                           double *grad) {
  const size_t place = x * f->n_nodes + node, v = f->vocabulary;
  if (f->kind == TOY_TABULAR) {
    for (size_t a = 0; a < v; ++a) grad[place * v + a] += dz[a];
  } else if (f->kind == TOY_TEMPLATES) {
    for (size_t k = 0; k < f->width; ++k) {
      double *to = grad + (size_t)f->index[place * f->width + k] * template_weights(f);
      for (size_t a = 0; a < v; ++a) to[f->branches > 1 ? a / f->branches : a] += dz[a];
    }
  } else {
    for (size_t a = 0; a < v; ++a)
      for (size_t k = 0; k < f->width; ++k)
        grad[k] += dz[a] * f->value[(place * v + a) * f->width + k];
  }
}
