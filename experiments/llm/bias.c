/* Computes gradients of algorithms and the true gradient at a run's checkpoints, batch by batch,
 * summed in blocks. Draws their figure, and stores the results in the exact laboratory's tables. */
#include "experiments/llm/bias.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "core/base/file.h"
#include "core/rl/sampling_distribution.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/base/provenance.h"
#include "experiments/train/checkpoint.h"
#include "llm/learner/llm_learner.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the recipe of a run --- */

static gl_status read_newest(llm_run *r, gl_error *err) {
  checkpoint c;
  FILE *state = NULL;
  gl_status status = checkpoint_folder_look(r->path, r->updates[r->n - 1], &c, &state, err);
  if (status != GL_OK) return status;
  fclose(state);
  r->text = c.recipe; /* takes ownership */
  c.recipe = NULL;
  checkpoint_fini(&c);
  return GL_OK;
}

/* Parses the recipe, which follows a prefix with the version of the recipe format. */
static gl_status read_doc(llm_run *r, const char *const *overrides, size_t n, gl_error *err) {
  const char *said = strchr(r->text, '{');
  if (said == NULL)
    return gl_fail(err, GL_EINPUT, "%.300s: the checkpoints have no recipe", r->path);
  gl_status status = cfg_load_text(&r->doc, said, strlen(said), r->path, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = cfg_override(r->doc, overrides[i], err);
  return status == GL_OK ? cfg_resolve(r->doc, err) : status;
}

static gl_status check_run_is_llm(const llm_run *r, gl_error *err) {
  if (recipe_is_llm(&r->recipe)) return GL_OK;
  return gl_fail(
      err, GL_EINPUT,
      "%.300s: the run is not of a transformer (world: {kind: llm, …}); `gepolab lab bias` "
      "measures in worlds that can be enumerated",
      r->path);
}

/* Sets one device, because gradients are read from one. Drops the warm-up, whose parameters a
 * checkpoint replaces, unless samplers mix in the initial policy. */
static gl_status drop_unneeded_fields(llm_run *r, gl_error *err) {
  sampling_spec sampling;
  const cfg_node *root = cfg_root(r->doc);
  gl_status status = sampling_parse(&sampling, cfg_find(root, "sampling"), err);
  if (status == GL_OK && cfg_find(root, "world.devices") != NULL)
    status = cfg_override(r->doc, "world.devices=1", err);
  if (status == GL_OK && sampling.behaviour.with != OTHER_INITIAL &&
      cfg_find(root, "world.warmup") != NULL)
    status = cfg_override(r->doc, "world.warmup=null", err);
  return status;
}

/* Makes the learner. The algorithm of the run's training is not used, so its reference policy is
 * not needed. */
static gl_status make_learner(llm_run *r, gl_error *err) {
  cache_place place;
  learner_setup setup = recipe_setup(&r->recipe, cache_find(&place));
  setup.algorithm = policy_algorithms_find("reinforce");
  setup.algorithm_at = NULL;
  return llm_learner_new(&r->learner, &setup, err);
}

gl_status llm_run_init(llm_run *r, const char *path, const char *const *overrides,
                       size_t n_overrides, size_t threads, gl_error *err) {
  *r = (llm_run){.path = path};
  gl_status status = GL_OK;
  if (file_is_folder(path)) status = checkpoint_folder_list(path, &r->updates, &r->n, err);
  if (status == GL_OK && r->n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%.300s is no folder with checkpoints; `gepolab run RECIPE --checkpoint DIR "
                     "--checkpoint-every N checkpoint.keep=M` leaves the last M of them",
                     path);
  if (status == GL_OK) status = read_newest(r, err);
  if (status == GL_OK) status = read_doc(r, overrides, n_overrides, err);
  if (status == GL_OK) status = recipe_read(&r->recipe, r->doc, err);
  if (status == GL_OK) status = check_run_is_llm(r, err);
  if (status == GL_OK) status = drop_unneeded_fields(r, err);
  if (status == GL_OK) status = recipe_read(&r->recipe, r->doc, err);
  r->recipe.threads = threads;
  return status == GL_OK ? make_learner(r, err) : status;
}

void llm_run_fini(llm_run *r) {
  learner_fini(&r->learner);
  cfg_free(r->doc);
  free(r->text);
  free(r->updates);
  *r = (llm_run){0};
}

/* --- its checkpoints --- */

static int has(const llm_run *r, uint64_t update) {
  for (size_t i = 0; i < r->n; ++i)
    if (r->updates[i] == update) return 1;
  return 0;
}

/* Lists updates as text: "10, 20, 30, …, 80", the first ones and the last. */
static void name_updates(const llm_run *r, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t used = 0;
  for (size_t i = 0; i < r->n && used < size; ++i) {
    if (i >= SHOWN && i + 1 < r->n) continue;
    const char *before = i == 0 ? "" : i + 1 == r->n && r->n > SHOWN + 1 ? ", …, " : ", ";
    used += (size_t)snprintf(text + used, size - used, "%s%llu", before,
                             (unsigned long long)r->updates[i]);
  }
}

static gl_status check_has(const llm_run *r, uint64_t update, gl_error *err) {
  char all[256] = "";
  if (has(r, update)) return GL_OK;
  name_updates(r, all, sizeof all);
  return gl_fail(err, GL_EINPUT,
                 "%.300s: there is no checkpoint after %llu updates, but after %s; the run keeps "
                 "others with --checkpoint-every N and checkpoint.keep=M",
                 r->path, (unsigned long long)update, all);
}

gl_status llm_run_check(const llm_run *r, uint64_t update, uint64_t staleness, gl_error *err) {
  gl_status status = check_has(r, update, err);
  if (status != GL_OK) return status;
  if (staleness >= update && staleness > 0)
    return gl_fail(err, GL_EINPUT,
                   "%.300s: after %llu updates no policy of the run is %llu updates old that has a "
                   "checkpoint; give a smaller --staleness or a later --at",
                   r->path, (unsigned long long)update, (unsigned long long)staleness);
  return check_has(r, update - staleness, err);
}

gl_status llm_run_load(llm_run *r, uint64_t update, double *theta, gl_error *err) {
  checkpoint c;
  FILE *state = NULL;
  gl_error why = {0};
  gl_status status = checkpoint_folder_look(r->path, update, &c, &state, err);
  if (status != GL_OK) return status;
  if (strcmp(c.recipe, r->text) != 0)
    status = gl_fail(&why, GL_EINPUT, "it is of another recipe than the newest checkpoint");
  if (status == GL_OK) status = r->learner.ops->load(r->learner.self, state, &why);
  if (status == GL_OK) status = llm_learner_parameters(&r->learner, theta, &why);
  if (status != GL_OK)
    gl_fail(err, status, "%.300s, the checkpoint after %llu updates: %s", r->path,
            (unsigned long long)update, why.text);
  fclose(state);
  checkpoint_fini(&c);
  return status;
}

/* --- batches --- */

enum { OF_ALGORITHMS, OF_TRUTH };

/* The number of a batch in the random streams. Training counts its batches from 0, so bit 62 keeps
 * these numbers different. */
static uint64_t batch_id(const llm_bias_spec *s, int kind, size_t i) {
  assert(s->seed < (UINT64_C(1) << 29) && i < (UINT64_C(1) << 31));
  return UINT64_C(1) << 62 | s->seed << 32 | (uint64_t)kind << 31 | (uint64_t)i;
}

/* Samples batch i: for the algorithms from the samplers' distribution, for the true gradient from
 * the learner's own. The caller has set the learner to the sampling parameters. */
static gl_status draw_bias_batch(batch *b, const llm_bias_job *job, int kind, size_t i,
                                 gl_error *err) {
  const llm_bias_spec *s = job->spec;
  const bool truth = kind == OF_TRUTH;
  const draw_request r = {.batch_id = batch_id(s, kind, i),
                          .version = truth ? job->pair.version : job->pair.sampler_version,
                          .n_groups = s->groups,
                          .group_size = s->group_size,
                          .to = 1};
  *b = (batch){0};
  return llm_learner_draw_by(job->learner, truth ? LLM_OWN_DIST : LLM_SAMPLERS_DIST, &r, b, err);
}

static gl_status count_gradient(const llm_bias_job *job, gl_error *err) {
  progress_at(job->bar, ++*job->done, NULL);
  return signals_caught() ? gl_fail(err, GL_EINTERRUPTED, "stopped; nothing was measured") : GL_OK;
}

uint64_t llm_bias_reference_work(const llm_bias_spec *s) {
  return s->references;
}

uint64_t llm_bias_work(const llm_bias_spec *s) {
  return (uint64_t)s->batches * s->n_algorithms;
}

/* --- the truth --- */

gl_status llm_bias_reference(gradient_sample *out, double *reward, const llm_bias_job *job,
                             gl_error *err) {
  const policy_algorithm *truth = policy_algorithms_find("reinforce");
  const llm_bias_spec *s = job->spec;
  double metrics[METRIC_COUNT], sum = 0;
  double *gradient = MUST_ARRAY(double, out->n, "a gradient");
  gl_status status = llm_learner_stand_at(job->learner, job->pair.learner, job->pair.version, err);
  gradient_sample_clear(out);
  for (size_t i = 0; i < s->references && status == GL_OK; ++i) {
    batch b;
    status = draw_bias_batch(&b, job, OF_TRUTH, i, err);
    if (status == GL_OK)
      status = llm_learner_gradient(job->learner, LLM_OWN_DIST, &b, truth, gradient, metrics, err);
    if (status == GL_OK) {
      gradient_sample_add(out, i % GRADIENT_BLOCKS, gradient);
      sum += metrics[METRIC_REWARD_MEAN];
      status = count_gradient(job, err);
    }
    batch_fini(&b);
  }
  *reward = sum / (double)s->references;
  free(gradient);
  return status;
}

/* --- the algorithms --- */

/* The metrics to average, and the offset of each mean in llm_bias_result. */
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

/* The inputs and workspace shared by the measurements of all algorithms. */
typedef struct measuring {
  const llm_bias_job *job;
  batch *batches;                   /* [job->spec->batches] sampled by the samplers */
  const gradient_sample *reference; /* estimates of the true gradient */
  gradient_sample *sample;          /* workspace */
  double *gradient;                 /* workspace, [reference->n] */
} measuring;

/* Measures one algorithm. If it cannot be measured here, this is recorded in its result, and the
 * others are measured. */
static gl_status measure_one(llm_bias_result *out, const measuring *m,
                             const policy_algorithm *algorithm, gl_error *err) {
  const llm_bias_spec *s = m->job->spec;
  double metrics[METRIC_COUNT];
  *out = (llm_bias_result){.applicable = 1};
  gradient_sample_clear(m->sample);
  for (size_t i = 0; i < s->batches; ++i) {
    gl_error why = {0};
    gl_status status = llm_learner_gradient(m->job->learner, LLM_SAMPLERS_DIST, &m->batches[i],
                                            algorithm, m->gradient, metrics, &why);
    if (status == GL_EINPUT && i == 0) {
      *m->job->done += s->batches;
      *out = (llm_bias_result){0};
      snprintf(out->why, sizeof out->why, "%.199s", why.text);
      return GL_OK;
    }
    if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
    gradient_sample_add(m->sample, i % GRADIENT_BLOCKS, m->gradient);
    for (size_t k = 0; k < sizeof means / sizeof *means; ++k)
      *mean_at(out, k) += metrics[means[k].of] / (double)s->batches;
    status = count_gradient(m->job, err);
    if (status != GL_OK) return status;
  }
  gradient_moments(out->number, m->sample, m->reference, s->confidence);
  return GL_OK;
}

gl_status llm_bias_measure(llm_bias_result *out, const llm_bias_job *job,
                           const gradient_sample *reference, gradient_sample *scratch,
                           gl_error *err) {
  const llm_bias_spec *s = job->spec;
  const measuring m = {job, MUST_ARRAY(batch, s->batches, "batches"), reference, scratch,
                       MUST_ARRAY(double, reference->n, "a gradient")};
  gl_status status =
      llm_learner_stand_at(job->learner, job->pair.sampler, job->pair.sampler_version, err);
  for (size_t i = 0; i < s->batches && status == GL_OK; ++i)
    status = draw_bias_batch(&m.batches[i], job, OF_ALGORITHMS, i, err);
  if (status == GL_OK)
    status = llm_learner_stand_at(job->learner, job->pair.learner, job->pair.version, err);
  for (size_t a = 0; a < s->n_algorithms && status == GL_OK; ++a)
    status = measure_one(&out[a], &m, &s->algorithms[a], err);
  for (size_t i = 0; i < s->batches; ++i) batch_fini(&m.batches[i]);
  free(m.batches);
  free(m.gradient);
  return status;
}

/* --- the figure: a row of panels for each number, a column for each checkpoint --- */

static const struct {
  gradient_number of;
  const char *axis;
  int logarithmic;
} rows[] = {{GRADIENT_COSINE, "cosine of E[g] and ∇J", 0},
            {GRADIENT_VARIANCE, "variance tr Cov", 1},
            {GRADIENT_SCALED_MSE, "scaled MSE", 0}};
enum { ROWS = sizeof rows / sizeof *rows };

static const llm_bias_result *result_of(const llm_bias_table *t, size_t u, size_t k, size_t a) {
  return &t->results[(u * t->n_staleness + k) * t->spec->n_algorithms + a];
}

/* Lists the indices of the staleness values in ascending order of staleness, for the figure. */
static void sort_ages(const llm_bias_table *t, size_t *order) {
  for (size_t k = 0; k < t->n_staleness; ++k) {
    size_t at = k;
    for (; at > 0 && t->staleness[order[at - 1]] > t->staleness[k]; --at) order[at] = order[at - 1];
    order[at] = k;
  }
}

static void write_bias_line(figure_page *p, size_t panel, const llm_bias_table *t,
                            const size_t *order, gradient_number of, size_t u, size_t a) {
  for (size_t i = 0; i < t->n_staleness; ++i) {
    const llm_bias_result *r = result_of(t, u, order[i], a);
    const double x = (double)t->staleness[order[i]];
    if (!r->applicable || isnan(r->number[of].value)) continue;
    const gradient_estimate *e = &r->number[of];
    page_point(p, panel, t->spec->algorithms[a].name, x, e->value, e->low, e->high);
  }
  page_block_end(p);
}

/* Lists the algorithms that cannot be measured. This does not depend on the checkpoint, so the
 * results at the first checkpoint are used. */
static gl_status note_not_applicable(figure_page *p, const llm_bias_table *t, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t a = 0; a < t->spec->n_algorithms && status == GL_OK; ++a) {
    const llm_bias_result *r = result_of(t, 0, 0, a);
    if (!r->applicable)
      status = page_leave_out(p, err, "%s (%s)", t->spec->algorithms[a].name, r->why);
  }
  return status;
}

static gl_status name_bias_lines(figure_page *p, const llm_bias_table *t, gl_error *err) {
  const char **names = MUST_ARRAY(const char *, t->spec->n_algorithms, "the names of a figure");
  for (size_t a = 0; a < t->spec->n_algorithms; ++a) names[a] = t->spec->algorithms[a].name;
  gl_status status = page_set_lines(p, names, t->spec->n_algorithms, err);
  free(names);
  return status;
}

static gl_status write_gradients_figure(const void *data, figure_page *p, gl_error *err) {
  const llm_bias_table *t = data;
  size_t *order = MUST_ARRAY(size_t, t->n_staleness, "the places of a figure");
  size_t *picked = MUST_ARRAY(size_t, t->n_at, "the places of a figure");
  const size_t columns = page_pick(t->n_at, page_columns(p, t->n_at), picked);
  sort_ages(t, order);
  gl_status status = page_open(p, ROWS * columns, "panel\talgorithm\tx\ty\tlow\thigh", err);
  p->wide = p->share = columns;
  for (size_t panel = 0; panel < ROWS * columns && status == GL_OK; ++panel) {
    const size_t row = panel / columns, u = picked[panel % columns];
    figure_panel *to = &p->panels[panel];
    if (row == 0)
      snprintf(to->title, sizeof to->title, "after %llu updates", (unsigned long long)t->at[u]);
    snprintf(to->axis, sizeof to->axis, "%s", rows[row].axis);
    to->logarithmic = rows[row].logarithmic;
    for (size_t a = 0; a < t->spec->n_algorithms; ++a)
      write_bias_line(p, panel, t, order, rows[row].of, u, a);
  }
  p->all_marks = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  if (status == GL_OK) status = name_bias_lines(p, t, err);
  if (status == GL_OK) status = note_not_applicable(p, t, err);
  for (size_t u = 0, k = 0; u < t->n_at && status == GL_OK; ++u)
    if (k < columns && picked[k] == u)
      ++k;
    else
      status = page_leave_out(p, err, "%llu updates", (unsigned long long)t->at[u]);
  free(order);
  free(picked);
  return status;
}

gl_status llm_bias_draw(const llm_bias_table *t, const figure_request *q, gl_error *err) {
  static const figure line = {
      "gradients", "cosine, variance and scaled MSE against staleness, a column per checkpoint",
      "curves", 0, write_gradients_figure};
  figure_request named = *q;
  named.prefix = t->name;
  return figures_draw_one(
      &line, t->n_staleness < 2 ? "it needs two values of --staleness" : NULL,
      "there is nothing to draw: all gradients are zero, as where no response has a reward; choose "
      "a run or checkpoints (--at) whose model scores",
      t, &named, err);
}

/* --- records of a study --- */

/* One record of results. The exact divergences of a transformer are unknown; values that do not
 * apply are NaN. */
static bias_record bias_record_of(const llm_bias_table *t, const llm_bias_result *r,
                                  size_t algorithm, uint64_t staleness) {
  bias_record to = {.algorithm = t->spec->algorithms[algorithm].name,
                    .method = r->applicable ? "monte_carlo" : "not_applicable",
                    .group_size = (double)t->spec->group_size,
                    .kl_exact = NAN,
                    .kl_exact_qp = NAN,
                    .staleness = (double)staleness,
                    .groups =
                        r->applicable ? (double)t->spec->batches * (double)t->spec->groups : 0,
                    .iw_mean = r->applicable ? r->iw_mean : NAN,
                    .iw_variance = r->applicable ? r->iw_variance : NAN,
                    .aw_variance = r->applicable ? r->aw_variance : NAN,
                    .ess = r->applicable ? r->ess : NAN};
  double *const number[] = {&to.bias, &to.cosine,     &to.scaled_bias, &to.variance,
                            &to.mse,  &to.scaled_mse, &to.snr};
  static const gradient_number of[] = {GRADIENT_BIAS,     GRADIENT_COSINE, GRADIENT_SCALED_BIAS,
                                       GRADIENT_VARIANCE, GRADIENT_MSE,    GRADIENT_SCALED_MSE,
                                       GRADIENT_SNR};
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i)
    *number[i] = r->applicable ? r->number[of[i]].value : NAN;
  return to;
}

/* Stores the results at checkpoint u as a study: a record for each staleness and algorithm.
 * Replaces a study of that name. */
static gl_status put_study_of_checkpoint(store *s, const llm_bias_table *t, size_t u,
                                         const bias_making *making, gl_error *err) {
  const size_t each = t->n_staleness * t->spec->n_algorithms;
  bias_record *records = MUST_ARRAY(bias_record, each, "the records of a study");
  char *study = must_textf("the name of a study", "%s after %llu updates", t->name,
                           (unsigned long long)t->at[u]);
  for (size_t i = 0; i < each; ++i)
    records[i] = bias_record_of(t, &t->results[u * each + i], i % t->spec->n_algorithms,
                                t->staleness[i / t->spec->n_algorithms]);
  gl_status status = store_put_bias(s, study, records, each, making, err);
  free(study);
  free(records);
  return status;
}

gl_status llm_bias_store(const llm_bias_table *t, const char *path, double wall_s, gl_error *err) {
  provenance how;
  char finished[PROVENANCE_DATE_SIZE];
  store *s = NULL;
  gl_status status = provenance_init(&how, err);
  const bias_making making = {&how.record, provenance_now(finished), wall_s / (double)t->n_at};
  if (status == GL_OK) status = store_open(&s, path, STORE_WRITE, err);
  for (size_t u = 0; u < t->n_at && status == GL_OK; ++u)
    status = put_study_of_checkpoint(s, t, u, &making, err);
  store_close(s);
  provenance_fini(&how);
  return status;
}

/* --- moments of a run's gradients --- */

/* Estimates moments of gradients from sums over blocks, with jackknife errors. */

enum { BLOCKS = GRADIENT_BLOCKS };
/* A squared length serves as divisor only if it exceeds zero by this many standard errors. */
static const double clear = 3;

const char *const gradient_number_names[GRADIENT_NUMBERS] = {
    "bias", "cosine", "scaled_bias", "variance", "mse", "scaled_mse", "snr", "gradient_length"};

/* --- samples --- */

void gradient_sample_init(gradient_sample *s, size_t n, size_t per_block) {
  *s = (gradient_sample){.n = n, .per_block = per_block};
  s->sum = must_alloc(n, BLOCKS * sizeof *s->sum, "the sums of gradients");
}

void gradient_sample_fini(gradient_sample *s) {
  free(s->sum);
  *s = (gradient_sample){0};
}

void gradient_sample_clear(gradient_sample *s) {
  memset(s->sum, 0, s->n * BLOCKS * sizeof *s->sum);
  memset(s->square, 0, sizeof s->square);
}

void gradient_sample_add(gradient_sample *s, size_t block, const double *g) {
  assert(block < BLOCKS);
  float *sum = s->sum + block * s->n;
  double square = 0;
  for (size_t i = 0; i < s->n; ++i) {
    sum[i] += (float)g[i];
    square += g[i] * g[i];
  }
  s->square[block] += square;
}

/* --- products --- */

/* Inner products of the blocks' sums: g with g, g with h, h with h. */
typedef struct products {
  double gg[BLOCKS][BLOCKS], gh[BLOCKS][BLOCKS], hh[BLOCKS][BLOCKS];
} products;

static double dot_float(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* Computes the inner products of the sums of all blocks. */
static void multiply(products *p, const gradient_sample *g, const gradient_sample *h) {
  const size_t n = g->n;
  for (size_t k = 0; k < BLOCKS; ++k)
    for (size_t l = 0; l < BLOCKS; ++l) {
      p->gh[k][l] = dot_float(g->sum + k * n, h->sum + l * n, n);
      if (l < k) continue;
      p->gg[k][l] = p->gg[l][k] = dot_float(g->sum + k * n, g->sum + l * n, n);
      p->hh[k][l] = p->hh[l][k] = dot_float(h->sum + k * n, h->sum + l * n, n);
    }
}

/* The sum over pairs of blocks, without row `row` and column `column`. */
static double sum_without(double (*of)[BLOCKS], size_t row, size_t column) {
  double sum = 0;
  for (size_t k = 0; k < BLOCKS; ++k)
    for (size_t l = 0; l < BLOCKS; ++l)
      if (k != row && l != column) sum += of[k][l];
  return sum;
}

static double squares_without(const gradient_sample *s, size_t block) {
  double sum = 0;
  for (size_t k = 0; k < BLOCKS; ++k)
    if (k != block) sum += s->square[k];
  return sum;
}

static double blocks_without(size_t block) {
  return block < BLOCKS ? BLOCKS - 1 : BLOCKS;
}

/* --- numbers --- */

/* Quantities estimated with a jackknife error. They are squares, not roots: squares are unbiased,
 * and small ones are closer to a normal distribution. */
typedef enum part {
  BIAS_SQUARED,
  COSINE,
  VARIANCE,
  MSE,
  SCALED_MSE,
  SNR,
  TRUTH_SQUARED,  /* <t, t>, with the notation of bias.h */
  MEAN_G_SQUARED, /* <m, m> */
  PARTS
} part;

/* Computes the quantities of estimates g and references h of the true gradient (formulas in bias.h)
 * without block without_g of g and without block without_h of h; BLOCKS leaves none out. */
static void parts_without(double out[PARTS], products *p, const gradient_sample *g,
                          const gradient_sample *h, size_t without_g, size_t without_h) {
  const double n = (double)g->per_block * blocks_without(without_g);
  const double k = (double)h->per_block * blocks_without(without_h);
  const double gg = squares_without(g, without_g), hh = squares_without(h, without_h);
  const double mean2 = (sum_without(p->gg, without_g, without_g) - gg) / (n * (n - 1));
  const double truth2 = (sum_without(p->hh, without_h, without_h) - hh) / (k * (k - 1));
  const double cross = sum_without(p->gh, without_g, without_h) / (n * k), power = gg / n;
  out[BIAS_SQUARED] = mean2 - 2 * cross + truth2;
  out[VARIANCE] = power - mean2;
  out[MSE] = power - 2 * cross + truth2;
  out[COSINE] = cross / sqrt(mean2 * truth2);
  out[SCALED_MSE] = 1 - cross * cross / (truth2 * power);
  out[SNR] = mean2 / (power - mean2);
  out[TRUTH_SQUARED] = truth2;
  out[MEAN_G_SQUARED] = mean2;
}

/* Adds the jackknife variances from leaving out each block of g (of h if of_h) to variance[PARTS].
 */
static void add_jackknife(double variance[PARTS], products *p, const gradient_sample *g,
                          const gradient_sample *h, int of_h) {
  double left[BLOCKS][PARTS];
  for (size_t b = 0; b < BLOCKS; ++b)
    parts_without(left[b], p, g, h, of_h ? BLOCKS : b, of_h ? b : BLOCKS);
  for (size_t i = 0; i < PARTS; ++i) {
    double mean = 0, sum = 0;
    for (size_t b = 0; b < BLOCKS; ++b) mean += left[b][i] / BLOCKS;
    for (size_t b = 0; b < BLOCKS; ++b) sum += (left[b][i] - mean) * (left[b][i] - mean);
    variance[i] += (BLOCKS - 1.0) / BLOCKS * sum;
  }
}

static const gradient_estimate unknown = {NAN, NAN, NAN, NAN};

/* An estimate with the interval value +- reach * error, all limited to [low, high]. */
static gradient_estimate clamp_estimate(double value, double error, double reach, double low,
                                        double high) {
  if (!isfinite(value) || !isfinite(error)) return unknown;
  return (gradient_estimate){fmin(fmax(value, low), high), error,
                             fmin(fmax(value - reach * error, low), high),
                             fmin(fmax(value + reach * error, low), high)};
}

/* Converts the estimate of a square to that of its root, with the error of the linearised root. */
static gradient_estimate root(double square, double error, double reach) {
  gradient_estimate e = clamp_estimate(square, error, reach, 0, INFINITY);
  if (isnan(e.value)) return e;
  e.value = sqrt(e.value);
  e.low = sqrt(e.low);
  e.high = sqrt(e.high);
  e.error = e.value > 0 ? error / (2 * e.value) : NAN;
  return e;
}

/* sqrt(1 - cosine^2) decreases with |cosine|, so its interval is the cosine's with the ends
 * exchanged. */
static gradient_estimate scaled_bias(const gradient_estimate *cosine) {
  if (isnan(cosine->value)) return unknown;
  const double c = cosine->value, value = sqrt(1 - c * c);
  const double most = fmax(fabs(cosine->low), fabs(cosine->high));
  const double least =
      cosine->low * cosine->high <= 0 ? 0 : fmin(fabs(cosine->low), fabs(cosine->high));
  return (gradient_estimate){value, value > 0 ? fabs(c) * cosine->error / value : NAN,
                             sqrt(1 - most * most), sqrt(1 - least * least)};
}

void gradient_moments(gradient_estimate out[GRADIENT_NUMBERS], const gradient_sample *g,
                      const gradient_sample *h, double confidence) {
  double value[PARTS], error[PARTS] = {0};
  products *p = MUST_ARRAY(products, 1, "the products of gradients");
  assert(g->n == h->n);
  multiply(p, g, h);
  parts_without(value, p, g, h, BLOCKS, BLOCKS);
  add_jackknife(error, p, g, h, 0);
  add_jackknife(error, p, g, h, 1);
  for (size_t i = 0; i < PARTS; ++i) error[i] = sqrt(error[i]);
  free(p);
  const double t = gsl_cdf_tdist_Pinv((1 + confidence) / 2, BLOCKS - 1);
  const int has_truth = value[TRUTH_SQUARED] > clear * error[TRUTH_SQUARED];
  const int has_both = has_truth && value[MEAN_G_SQUARED] > clear * error[MEAN_G_SQUARED];
  out[GRADIENT_BIAS] = root(value[BIAS_SQUARED], error[BIAS_SQUARED], t);
  out[GRADIENT_COSINE] =
      has_both ? clamp_estimate(value[COSINE], error[COSINE], t, -1, 1) : unknown;
  out[GRADIENT_SCALED_BIAS] = scaled_bias(&out[GRADIENT_COSINE]);
  out[GRADIENT_VARIANCE] = clamp_estimate(value[VARIANCE], error[VARIANCE], t, 0, INFINITY);
  out[GRADIENT_MSE] = clamp_estimate(value[MSE], error[MSE], t, 0, INFINITY);
  out[GRADIENT_SCALED_MSE] =
      has_truth ? clamp_estimate(value[SCALED_MSE], error[SCALED_MSE], t, 0, 1) : unknown;
  out[GRADIENT_SNR] = clamp_estimate(value[SNR], error[SNR], t, 0, INFINITY);
  out[GRADIENT_LENGTH] = root(value[TRUTH_SQUARED], error[TRUTH_SQUARED], t);
}
