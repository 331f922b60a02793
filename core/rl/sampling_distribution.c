/* The sampling distribution of tokens: temperature, top-k and top-p, the sets of tokens that these
 * keep, and how a sampler differs from the learner (sampling.behaviour: noise, precision, error of
 * the temperature) and mixtures of distributions (sampling.behaviour_mixture). */
#include "core/rl/sampling_distribution.h"

#include "core/config/fields.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void sampling_read_dist(sampling_spec *dist, const sampling_spec *usual, cfg_reader *r) {
  if (usual != NULL) *dist = *usual;
  dist->temperature = usual != NULL ? field_real_or(r, "temperature", usual->temperature)
                                    : field_real(r, "temperature");
  dist->top_k = usual != NULL ? field_count_or(r, "top_k", usual->top_k) : field_count(r, "top_k");
  dist->top_p = usual != NULL ? field_real_or(r, "top_p", usual->top_p) : field_real(r, "top_p");
  if (r->status == GL_OK && dist->top_p == 0)
    r->status = cfg_fail(cfg_child(r, "top_p"), r->err,
                         "top_p 0 would keep no token; give a fraction above 0, up to 1");
}

static gl_status read_behaviour(sampling_behaviour *b, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  *b = (sampling_behaviour){.with = OTHER_NONE};
  cfg_begin(&r, node, "sampling.behaviour", err);
  b->noise = field_real(&r, "noise");
  b->rounds_to_bfloat16 = field_choice(&r, "precision");
  b->temperature_error = field_real(&r, "temperature_error");
  return cfg_end(&r);
}

static gl_status read_mixture(sampling_spec *spec, const cfg_node *node, gl_error *err) {
  sampling_behaviour *b = &spec->behaviour;
  cfg_reader r;
  if (node == NULL) return GL_OK;
  cfg_begin(&r, node, "sampling.behaviour_mixture", err);
  const int with = field_choice(&r, "with");
  b->share = field_real(&r, "share");
  if (cfg_end(&r) != GL_OK || b->share == 0) return r.status;
  b->with = with == 0 ? OTHER_INITIAL : OTHER_UNIFORM;
  if (spec->top_k != 0 || spec->top_p < 1)
    return cfg_fail(
        node, err,
        "behaviour_mixture has no weights under truncation: a token that top_k or top_p "
        "leaves out can come from the other policy; take top_k and top_p away");
  if (spec->logq == LOGQ_LEARNER)
    return cfg_fail(node, err,
                    "behaviour_mixture needs logq: sampler; the learner does not know the mixture "
                    "that responses came from");
  return GL_OK;
}

gl_status sampling_parse(sampling_spec *spec, const cfg_node *section, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, section, "sampling", err);
  sampling_read_dist(spec, NULL, &r);
  spec->weights = (sampling_weights)field_choice(&r, "weights");
  spec->logq = (sampling_logq)field_choice(&r, "logq");
  const cfg_node *behaviour = cfg_child(&r, "behaviour"),
                 *mixture = cfg_child(&r, "behaviour_mixture");
  gl_status status = cfg_end(&r);
  if (status == GL_OK) status = read_behaviour(&spec->behaviour, behaviour, err);
  if (status == GL_OK) status = read_mixture(spec, mixture, err);
  return status;
}

int sampling_distorts(const sampling_spec *spec) {
  const sampling_behaviour *b = &spec->behaviour;
  return b->noise > 0 || b->rounds_to_bfloat16 || b->temperature_error != 0;
}

double sampling_to_bfloat16(double x) {
  const float single = (float)x;
  uint32_t bits;
  if (!isfinite(single)) return (double)single;
  memcpy(&bits, &single, sizeof bits);
  bits += 0x7fffu + (bits >> 16 & 1u);
  bits &= 0xffff0000u;
  float rounded;
  memcpy(&rounded, &bits, sizeof rounded);
  return (double)rounded;
}

int sampling_truncates(const sampling_spec *spec, size_t n) {
  return (spec->top_k != 0 && spec->top_k < n) || spec->top_p < 1;
}

/* --- partial sort by probability --- */
/* Partial sort by decreasing probability. A vocabulary has 150,000 tokens and a distribution keeps
 * a few, so the array is repeatedly partitioned, but only its front parts. The first k positions
 * cost O(n + k log k). The order is total, so the result is that of a full sort. */

enum { MOST_ENDS = 64, SMALL_PART = 24 };

typedef struct ordering {
  sampling_rank *rank;
  size_t sorted;         /* rank[0 .. sorted) is final */
  size_t end[MOST_ENDS]; /* [n_ends] decreasing; all tokens before an end precede all tokens after
                            it */
  size_t n_ends;
} ordering;

static int precedes(const sampling_rank *x, const sampling_rank *y) {
  return x->logp != y->logp ? x->logp > y->logp : x->token < y->token;
}

static int by_probability(const void *a, const void *b) {
  return precedes(a, b) ? -1 : precedes(b, a);
}

static sampling_rank median_of_three(sampling_rank a, sampling_rank b, sampling_rank c) {
  if (precedes(&b, &a)) {
    const sampling_rank swap = a;
    a = b;
    b = swap;
  }
  return precedes(&c, &a) ? a : precedes(&b, &c) ? b : c;
}

/* Partitions rank[n], n > 2, and returns the boundary (Hoare). The order is total, so the median of
 * three is neither first nor last, and neither part is empty. */
static size_t split_kept(sampling_rank *rank, size_t n) {
  const sampling_rank pivot = median_of_three(rank[0], rank[n / 2], rank[n - 1]);
  size_t left = 0, right = n - 1;
  for (;;) {
    while (precedes(&rank[left], &pivot)) ++left;
    while (precedes(&pivot, &rank[right])) --right;
    if (left >= right) return left;
    const sampling_rank swap = rank[left];
    rank[left++] = rank[right];
    rank[right--] = swap;
  }
}

static void sort_part(sampling_rank *rank, size_t n) {
  if (n > SMALL_PART) {
    qsort(rank, n, sizeof *rank, by_probability);
    return;
  }
  for (size_t i = 1; i < n; ++i) {
    const sampling_rank one = rank[i];
    size_t k = i;
    for (; k > 0 && precedes(&one, &rank[k - 1]); --k) rank[k] = rank[k - 1];
    rank[k] = one;
  }
}

/* Sorts at least the first `wanted` positions. */
static void order_first(ordering *o, size_t wanted) {
  while (o->sorted < wanted) {
    sampling_rank *const part = o->rank + o->sorted;
    const size_t n = o->end[o->n_ends - 1] - o->sorted;
    if (n > SMALL_PART && o->n_ends < MOST_ENDS) {
      o->end[o->n_ends++] = o->sorted + split_kept(part, n);
      continue;
    }
    sort_part(part, n);
    o->sorted = o->end[--o->n_ends];
  }
}

/* --- the truncated distribution --- */

/* The number of tokens that top-k keeps: the first k and all that are as probable as the k-th. */
static size_t keep_top_k(ordering *o, size_t k, size_t n) {
  order_first(o, k);
  for (; k < n; ++k) {
    order_first(o, k + 1);
    if (o->rank[k].logp != o->rank[k - 1].logp) break;
  }
  return k;
}

static double sum_first(ordering *o, size_t n) {
  double sum = 0;
  order_first(o, n);
  for (size_t i = 0; i < n; ++i) sum += exp(o->rank[i].logp);
  return sum;
}

/* The length of the shortest prefix, at most `most`, whose sum reaches `least`; writes the sum to
 * *mass. */
static size_t run_to(ordering *o, size_t most, double least, double *mass) {
  size_t run = 0;
  *mass = 0;
  while (run < most && (run == 0 || *mass < least)) {
    order_first(o, run + 1);
    *mass += exp(o->rank[run++].logp);
  }
  return run;
}

/* Top-p over all n tokens. The definition of the total adds in order of probability. The total is
 * computed in order of index first, which differs by a relative rounding error below 2 n epsilon;
 * all tokens are sorted only if that error could change the result. */
static size_t run_of_all(ordering *o, const double *logp, size_t n, double top_p, double *mass) {
  double about = 0;
  for (size_t i = 0; i < n; ++i) about += exp(logp[i]);
  const double slack = 4 * (double)(n + 2) * DBL_EPSILON, wanted = top_p * about;
  const int bounded = wanted > DBL_MIN / DBL_EPSILON && wanted < DBL_MAX / 2;
  const size_t run = bounded ? run_to(o, n, wanted * (1 - slack), mass) : n;
  if (bounded && *mass > wanted * (1 + slack)) return run;
  return run_to(o, n, top_p * sum_first(o, n), mass);
}

void sampling_truncate(const sampling_spec *spec, const double *logp, size_t n, double *out,
                       sampling_rank *rank) {
  int ordered = sampling_truncates(spec, n);
  for (size_t i = 0; ordered && i < n; ++i) {
    rank[i] = (sampling_rank){logp[i], i};
    if (isnan(logp[i])) ordered = 0;
  }
  if (!ordered) {
    memcpy(out, logp, n * sizeof *out);
    return;
  }
  ordering o = {.rank = rank, .end = {n}, .n_ends = 1};
  const int counts = spec->top_k != 0 && spec->top_k < n;
  size_t keep = counts ? keep_top_k(&o, spec->top_k, n) : n;
  double kept;
  if (spec->top_p == 1)
    kept = sum_first(&o, keep);
  else if (counts)
    keep = run_to(&o, keep, spec->top_p * sum_first(&o, keep), &kept);
  else
    keep = run_of_all(&o, logp, n, spec->top_p, &kept);
  for (size_t i = 0; i < n; ++i) out[i] = -INFINITY;
  const double log_kept = log(kept);
  for (size_t i = 0; i < keep; ++i) out[rank[i].token] = rank[i].logp - log_kept;
}

double sampling_log_add(double x, double y) {
  const double top = x > y ? x : y;
  return isinf(top) ? top : top + log(exp(x - top) + exp(y - top));
}

/* --- sets of kept tokens --- */

static size_t room_of(size_t top_k, size_t vocabulary) {
  return top_k < vocabulary / 2 && 2 * top_k + 32 < vocabulary ? 2 * top_k + 32 : vocabulary;
}

gl_status kept_shape_of(kept_shape *out, const sampling_spec *spec, size_t vocabulary,
                        const cfg_node *sampling, gl_error *err) {
  const cfg_node *place = sampling;
  *out = (kept_shape){.vocabulary = vocabulary};
  if (vocabulary <= KEPT_MOST_BITS) {
    out->words = (vocabulary + 31) / 32;
    return GL_OK;
  }
  out->listed = 1;
  if (spec->top_k == 0 || spec->top_k >= vocabulary) {
    if (sampling != NULL && cfg_find(sampling, "top_p") != NULL)
      place = cfg_find(sampling, "top_p");
    return cfg_fail(place, err,
                    "the tokens that top_p alone keeps of %zu have no bound, and they are recorded "
                    "with every sampled token; bound them with top_k as well (say, top_k: 64)",
                    vocabulary);
  }
  out->words = 1 + room_of(spec->top_k, vocabulary);
  if (out->words <= KEPT_MOST_WORDS) return GL_OK;
  if (sampling != NULL && cfg_find(sampling, "top_k") != NULL) place = cfg_find(sampling, "top_k");
  return cfg_fail(
      place, err,
      "top_k: %zu keeps more tokens than are recorded with each sampled one (%d at most "
      "over %zu tokens); lower it",
      spec->top_k, (KEPT_MOST_WORDS - 33) / 2, vocabulary);
}

static void put_bits(const double *dist, size_t n, uint32_t *set) {
  for (size_t a = 0; a < n; ++a)
    if (!isinf(dist[a])) set[a / 32] |= (uint32_t)1 << a % 32;
}

static void put_list(const double *dist, size_t n, size_t room, uint32_t *set) {
  size_t count = 0;
  for (size_t a = 0; a < n; ++a) {
    if (isinf(dist[a])) continue;
    if (count == room) {
      set[0] = KEPT_OVERFLOW;
      return;
    }
    set[++count] = (uint32_t)a;
  }
  set[0] = (uint32_t)count;
}

void kept_put(const kept_shape *shape, const double *dist, uint32_t *set) {
  const size_t n = shape->vocabulary;
  memset(set, 0, shape->words * sizeof *set);
  for (size_t a = 0; a < n; ++a)
    if (isnan(dist[a])) return;
  if (shape->listed)
    put_list(dist, n, shape->words - 1, set);
  else
    put_bits(dist, n, set);
}

int kept_has(const kept_shape *shape, const uint32_t *set, size_t token) {
  if (!shape->listed) return (int)(set[token / 32] >> token % 32 & 1);
  if (set[0] >= shape->words) return 0; /* overflowed or damaged */
  const size_t at = kept_from(set, token);
  return at <= set[0] && set[at] == token;
}

size_t kept_count(const kept_shape *shape, const uint32_t *set) {
  if (shape->listed) return set[0] < shape->words ? set[0] : 0;
  size_t n = 0;
  for (size_t w = 0; w < shape->words; ++w) n += (size_t)__builtin_popcount(set[w]);
  return n;
}
