/* The exact laboratory: which groups are enumerated or drawn, who evaluates them, what is reported.
 */
#include "toy/lab/lab.h"

#include "core/base/thread_pool.h"
#include "toy/lab/form.h"
#include "toy/lab/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lab_method_names[3] = {"exact", "monte_carlo", "population"};

/* Monte Carlo is done in this many parts, whose spread gives the standard errors. */
enum { PARTS = 32 };
/* Kernels keep moments of pairs of responses; beyond this many, gradients are summed instead. */
enum { KERNEL_MOST = 64 };
/* Stands for infinity as a group size: a power of two, so that q * G is q exactly scaled. */
#define LAB_INFINITE_GROUP ((size_t)1 << 50)

/* One prompt with what is shared by all algorithms. */
typedef struct prompt {
  lab_tables tables;
  lab_alias alias;
  double *gram; /* [n * n], NULL where no algorithm has a form */
  int exact;
  size_t multisets;
} prompt;

/* All algorithms over all prompts and parts; part k of prompt x is task x * used + k. */
typedef struct work {
  const lab_spec *spec;
  const policy_algorithm *const *algorithms;
  size_t n_algorithms, n_prompts, parts; /* parts: room for */
  size_t used;                           /* parts that exist: 1 where all prompts are exact */
  prompt *prompts;
  lab_form *forms;      /* [n_algorithms * n_prompts] */
  int *fast;            /* [n_algorithms * n_prompts] */
  lab_summary *summary; /* [(algorithm * n_prompts + x) * parts + part] */
  gl_error *refusal;    /* likewise: why an algorithm cannot be measured */
} work;

static size_t lab_cell(const work *w, size_t algorithm, size_t x, size_t part) {
  return (algorithm * w->n_prompts + x) * w->parts + part;
}

/* --- one task: every algorithm over one part of one prompt's groups --- */
typedef struct bench {
  lab_block block;
  lab_scratch scratch;
  lab_group group;
  lab_moments *moments; /* [n_algorithms] of algorithms that have a form */
  lab_sums *sums;       /* [n_algorithms] of the others */
} bench;

static void bench_fini(bench *b, size_t n_algorithms) {
  for (size_t r = 0; r < n_algorithms; ++r) {
    if (b->moments != NULL) lab_moments_fini(&b->moments[r]);
    if (b->sums != NULL) lab_sums_fini(&b->sums[r]);
  }
  free(b->moments);
  free(b->sums);
  lab_group_fini(&b->group);
  lab_scratch_fini(&b->scratch);
  lab_block_fini(&b->block);
}

static gl_status bench_init(bench *b, const work *w, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  const size_t size = w->spec->group_size == 0 ? LAB_INFINITE_GROUP : w->spec->group_size;
  *b = (bench){.moments = calloc(w->n_algorithms, sizeof *b->moments),
               .sums = calloc(w->n_algorithms, sizeof *b->sums)};
  if (b->moments == NULL || b->sums == NULL) return gl_fail_memory(err, "a measurement");
  gl_status status = lab_block_init(&b->block, t->n, size, err);
  if (status == GL_OK) status = lab_scratch_init(&b->scratch, t->n, err);
  if (status == GL_OK && w->spec->group_size != 0) status = lab_group_init(&b->group, t, size, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r)
    status = w->fast[r * w->n_prompts + x]
                 ? lab_moments_init(&b->moments[r], t->n, err)
                 : lab_sums_init(&b->sums[r], t->n_parameters, w->spec->covariance, err);
  return status;
}

/* An algorithm that a group refuses is left out from then on; only memory is an error of the task.
 */
static gl_status lab_run_algorithms(work *w, bench *b, size_t x, size_t part, gl_error *err) {
  for (size_t r = 0; r < w->n_algorithms; ++r) {
    const size_t at = r * w->n_prompts + x;
    gl_error *refusal = &w->refusal[lab_cell(w, r, x, part)];
    if (refusal->status != GL_OK) continue;
    if (w->fast[at]) {
      lab_kernel(&w->forms[at], &b->block, &b->scratch, &b->moments[r]);
    } else {
      lab_sums_add_block(&b->sums[r], &b->group, w->algorithms[r], &b->block, refusal);
      if (refusal->status == GL_ENOMEM) return gl_fail(err, GL_ENOMEM, "%s", refusal->text);
    }
  }
  return GL_OK;
}

static gl_status run_exact(work *w, bench *b, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  lab_multisets walk;
  gl_status status = lab_multisets_init(&walk, t->draw, t->n, w->spec->group_size, err);
  if (status != GL_OK) return status;
  while (status == GL_OK && lab_multisets_next(&walk, &b->block))
    status = lab_run_algorithms(w, b, x, 0, err);
  lab_multisets_fini(&walk);
  return status;
}

/* The shares q times an endless group: one "group" that is the distribution of large numbers. */
static gl_status run_population(work *w, bench *b, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  for (size_t y = 0; y < t->n; ++y)
    for (size_t k = 0; k < LAB_BLOCK; ++k)
      b->block.count[y * LAB_BLOCK + k] = t->draw[y] * (double)LAB_INFINITE_GROUP;
  memset(b->block.weight, 0, LAB_BLOCK * sizeof *b->block.weight);
  b->block.weight[0] = 1;
  b->block.n = 1;
  return lab_run_algorithms(w, b, x, 0, err);
}

static gl_status run_sampled(work *w, bench *b, size_t x, size_t part, gl_error *err) {
  const uint64_t n = w->spec->samples, first = n * part / PARTS, end = n * (part + 1) / PARTS;
  const rng_stream stream =
      rng_stream_at(w->spec->seed, RNG_MONTECARLO, w->spec->entity << 20 | (uint64_t)x);
  gl_status status = GL_OK;
  for (uint64_t g = first; g < end && status == GL_OK; g += LAB_BLOCK) {
    size_t count = end - g < LAB_BLOCK ? (size_t)(end - g) : LAB_BLOCK;
    lab_block_draw(&b->block, &w->prompts[x].alias, stream, g, count, (double)(end - first));
    status = lab_run_algorithms(w, b, x, part, err);
  }
  return status;
}

static gl_status run_task(void *context, size_t task, gl_error *err) {
  work *w = context;
  const size_t x = task / w->used, part = task % w->used;
  if (part > 0 && w->prompts[x].exact) return GL_OK;
  const lab_tables *t = &w->prompts[x].tables;
  bench b = {0};
  gl_status status = bench_init(&b, w, x, err);
  if (status == GL_OK)
    status = w->spec->group_size == 0 ? run_population(w, &b, x, err)
             : w->prompts[x].exact    ? run_exact(w, &b, x, err)
                                      : run_sampled(w, &b, x, part, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r) {
    lab_summary *s = &w->summary[lab_cell(w, r, x, part)];
    if (w->refusal[lab_cell(w, r, x, part)].status != GL_OK) continue;
    status = lab_summary_init(s, t->n_parameters, w->spec->covariance, err);
    if (status != GL_OK) break;
    if (w->fast[r * w->n_prompts + x])
      lab_summary_from_moments(s, &b.moments[r], t, w->prompts[x].gram);
    else
      lab_summary_from_sums(s, &b.sums[r]);
  }
  bench_fini(&b, w->n_algorithms);
  return status;
}

/* --- before and after --- */

static void lab_refuse(gl_error *refusal, const char *why) {
  *refusal = (gl_error){.status = GL_EINPUT};
  snprintf(refusal->text, sizeof refusal->text, "%s", why);
}

const char *lab_needs_more(const policy_algorithm *algorithm) {
  switch (algorithm->group_scope) {
  case SCOPE_PROMPT:
    break;
  case SCOPE_MICROBATCH:
    return "its denominator mixes prompts, and a group is of one prompt";
  }
  if (algorithm->ref_kl_coef != 0) return "it needs a reference policy";
  return NULL;
}

static gl_status lab_prepare_prompt(work *w, size_t x, policy_workspace *ws, gl_error *err) {
  const lab_spec *spec = w->spec;
  prompt *p = &w->prompts[x];
  gl_status status = lab_tables_init(&p->tables, spec->world, x, spec->theta_learner,
                                     spec->theta_sampler, spec->weights, err);
  if (status != GL_OK) return status;
  p->multisets = spec->group_size == 0 ? 0 : lab_multiset_count(p->tables.n, spec->group_size);
  p->exact = p->multisets <= spec->budget;
  if (!p->exact && spec->samples == 0)
    return gl_fail(err, GL_EINPUT,
                   "groups of %zu from %zu responses are %zu multisets, more than the budget of "
                   "%zu; raise the budget or allow Monte Carlo with `samples`",
                   spec->group_size, p->tables.n, p->multisets, spec->budget);
  if (!p->exact) status = lab_alias_init(&p->alias, p->tables.draw, p->tables.n, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r) {
    const size_t at = r * w->n_prompts + x;
    gl_error *refusal = &w->refusal[lab_cell(w, r, x, 0)];
    const char *why = lab_needs_more(w->algorithms[r]);
    if (why != NULL) {
      lab_refuse(refusal, why);
    } else if (p->tables.n <= KERNEL_MOST) {
      status =
          lab_form_init(&w->forms[at], &w->fast[at], w->algorithms[r], &p->tables, ws, refusal);
      if (status == GL_EINPUT || status == GL_ENUMERIC) status = GL_OK;
      if (status != GL_OK) gl_fail(err, status, "%s", refusal->text);
    }
    if (refusal->status == GL_OK && !w->fast[at] && spec->group_size == 0)
      lab_refuse(refusal,
                 "its coefficients do not factor, so its population limit has no closed form");
    for (size_t part = 1; part < w->parts; ++part) w->refusal[lab_cell(w, r, x, part)] = *refusal;
    if (w->fast[at] && p->gram == NULL) {
      p->gram = calloc(p->tables.n, p->tables.n * sizeof *p->gram);
      if (p->gram == NULL) return gl_fail_memory(err, "the products of scores");
      lab_gram(&p->tables, p->gram);
    }
  }
  return status;
}

static gl_status lab_prepare(work *w, gl_error *err) {
  const size_t pairs = w->n_algorithms * w->n_prompts;
  w->parts = w->spec->samples != 0 && w->spec->group_size != 0 ? PARTS : 1;
  w->prompts = calloc(w->n_prompts, sizeof *w->prompts);
  w->forms = calloc(pairs, sizeof *w->forms);
  w->fast = calloc(pairs, sizeof *w->fast);
  w->summary = calloc(pairs, w->parts * sizeof *w->summary);
  w->refusal = calloc(pairs, w->parts * sizeof *w->refusal);
  policy_workspace *ws = policy_workspace_new();
  gl_status status = GL_OK;
  if (w->prompts == NULL || w->forms == NULL || w->fast == NULL || w->summary == NULL ||
      w->refusal == NULL || ws == NULL)
    status = gl_fail_memory(err, "a measurement");
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x)
    status = lab_prepare_prompt(w, x, ws, err);
  policy_workspace_free(ws);
  return status;
}

static void lab_release(work *w) {
  for (size_t x = 0; w->prompts != NULL && x < w->n_prompts; ++x) {
    lab_tables_fini(&w->prompts[x].tables);
    lab_alias_fini(&w->prompts[x].alias);
    free(w->prompts[x].gram);
  }
  for (size_t i = 0; i < w->n_algorithms * w->n_prompts; ++i) {
    if (w->forms != NULL) lab_form_fini(&w->forms[i]);
    for (size_t k = 0; w->summary != NULL && k < w->parts; ++k)
      lab_summary_fini(&w->summary[i * w->parts + k]);
  }
  free(w->prompts);
  free(w->forms);
  free(w->fast);
  free(w->summary);
  free(w->refusal);
}

static double prompt_weight(const enumerable *e, size_t x) {
  return e->prompt_weight != NULL ? e->prompt_weight[x] : 1 / (double)e->n_prompts;
}

/* What does not depend on the algorithm: true gradient, value, divergences, how many groups. */
static gl_status lab_describe(lab_result *out, const work *w, double *rounding, gl_error *err) {
  const enumerable *e = w->spec->world;
  *out = (lab_result){.applicable = 1, .n_parameters = e->n_parameters, .cosine_kept = NAN};
  if (w->n_prompts > 0 && w->prompts[0].tables.kept_gradient != NULL) {
    out->kept_truth = calloc(e->n_parameters, sizeof *out->kept_truth);
    if (out->kept_truth == NULL) return gl_fail_memory(err, "a result");
  }
  out->method = w->spec->group_size == 0 ? LAB_POPULATION : LAB_EXACT;
  out->expected = calloc(e->n_parameters, sizeof *out->expected);
  out->truth = calloc(e->n_parameters, sizeof *out->truth);
  if (out->expected == NULL || out->truth == NULL) return gl_fail_memory(err, "a result");
  double range = 0;
  for (size_t x = 0; x < w->n_prompts; ++x) {
    const prompt *p = &w->prompts[x];
    const double weight = prompt_weight(e, x);
    for (size_t i = 0; i < e->n_parameters; ++i) out->truth[i] += weight * p->tables.gradient[i];
    for (size_t i = 0; out->kept_truth != NULL && i < e->n_parameters; ++i)
      out->kept_truth[i] += weight * p->tables.kept_gradient[i];
    out->value += weight * p->tables.value;
    out->kl += weight * p->tables.kl;
    out->kl_qp += weight * p->tables.kl_qp;
    range = fmax(range, p->tables.reward_range);
    if (w->spec->group_size == 0) continue;
    if (!p->exact) out->method = LAB_MONTE_CARLO;
    out->groups += p->exact ? (double)p->multisets : (double)w->spec->samples;
  }
  *rounding = 1e-13 * fmax(range, 1e-300);
  return GL_OK;
}

/* Joins an algorithm's prompts in every part, then the parts. */
static gl_status lab_conclude(lab_result *out, const work *w, size_t algorithm, gl_error *err) {
  const enumerable *e = w->spec->world;
  const lab_summary **at = calloc(w->n_prompts, sizeof *at);
  double *weights = calloc(w->n_prompts, sizeof *weights), even[PARTS], rounding = 0;
  lab_summary part[PARTS] = {{0}}, whole = {0};
  const lab_summary *parts[PARTS];
  gl_status status = lab_describe(out, w, &rounding, err);
  if (at == NULL || weights == NULL) status = gl_fail_memory(err, "a result");
  for (size_t k = 0; k < w->used && status == GL_OK; ++k) {
    for (size_t x = 0; x < w->n_prompts; ++x) {
      size_t sampled = w->prompts[x].exact ? 0 : k;
      const gl_error *refusal = &w->refusal[lab_cell(w, algorithm, x, sampled)];
      if (refusal->status != GL_OK && out->applicable) {
        out->applicable = 0;
        snprintf(out->why, sizeof out->why, "%.190s", refusal->text);
      }
      at[x] = &w->summary[lab_cell(w, algorithm, x, sampled)];
      weights[x] = prompt_weight(e, x);
    }
    if (!out->applicable) break;
    parts[k] = &part[k];
    even[k] = 1 / (double)w->used;
    status = lab_summary_init(&part[k], e->n_parameters, w->spec->covariance, err);
    if (status == GL_OK) lab_summary_join(&part[k], at, weights, w->n_prompts, SIZE_MAX);
  }
  if (status == GL_OK && out->applicable) {
    status = lab_summary_init(&whole, e->n_parameters, w->spec->covariance, err);
    if (status == GL_OK) {
      lab_summary_join(&whole, parts, even, w->used, SIZE_MAX);
      memcpy(out->expected, whole.mean, e->n_parameters * sizeof *out->expected);
      lab_summary_numbers(&whole, out->truth, rounding, &out->numbers);
      if (out->kept_truth != NULL) {
        lab_numbers kept;
        lab_summary_numbers(&whole, out->kept_truth, rounding, &kept);
        out->cosine_kept = kept.cosine;
      }
      out->covariance = whole.covariance;
      whole.covariance = NULL;
    }
    if (status == GL_OK && out->method == LAB_MONTE_CARLO) {
      out->expected_error = calloc(out->n_parameters, sizeof *out->expected_error);
      status = out->expected_error == NULL
                   ? gl_fail_memory(err, "standard errors")
                   : lab_summary_errors(&out->error, out->expected_error, parts, PARTS,
                                        out->expected, out->truth, rounding, err);
    }
  }
  for (size_t k = 0; k < w->used; ++k) lab_summary_fini(&part[k]);
  lab_summary_fini(&whole);
  free(at);
  free(weights);
  return status;
}

gl_status lab_measure(lab_result *out, const policy_algorithm *const *algorithms, size_t n,
                      const lab_spec *spec, gl_error *err) {
  work w = {.spec = spec,
            .algorithms = algorithms,
            .n_algorithms = n,
            .n_prompts = spec->world->n_prompts};
  for (size_t r = 0; r < n; ++r) out[r] = (lab_result){0};
  gl_status status = lab_prepare(&w, err);
  if (status == GL_OK) {
    w.used = 1;
    for (size_t x = 0; x < w.n_prompts; ++x)
      if (!w.prompts[x].exact && spec->group_size != 0) w.used = PARTS;
    status = pool_try(w.n_prompts * w.used, spec->threads, run_task, &w, err);
  }
  for (size_t r = 0; r < n && status == GL_OK; ++r) status = lab_conclude(&out[r], &w, r, err);
  if (status != GL_OK)
    for (size_t r = 0; r < n; ++r) lab_result_fini(&out[r]);
  lab_release(&w);
  return status;
}

void lab_result_fini(lab_result *r) {
  free(r->expected);
  free(r->truth);
  free(r->kept_truth);
  free(r->covariance);
  free(r->expected_error);
  *r = (lab_result){0};
}
