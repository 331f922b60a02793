/* gepolab llm bias: bias and variance of gradients at a run's checkpoints. */
#include "core/base/display_text.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/lab/recipe.h"
#include "experiments/llm/bias.h"
#include "experiments/llm/session.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LISTED = 64, BATCHES = 128 };
static const uint64_t most_updates = UINT64_C(1) << 40, most_responses = UINT64_C(1) << 40;
static const double confidence = 0.95;
/* The default algorithms: importance sampling, which is unbiased, and the methods that the
 * documented findings compare. */
static const char main_rows[] =
    "[is, snis, grpo, dr_grpo, gspo, cispo, gepo, {base: gepo, clip: none}]";

typedef struct counts {
  uint64_t item[MOST_LISTED]; /* [n] */
  size_t n;
} counts;

typedef struct bias_options {
  const char *at, *staleness, *responses, *folder, *study;
  figure_form form;
  args_list algorithms;
  size_t batches, threads;
  uint64_t seed;
  int json, quiet;
} bias_options;

/* The measurements requested for a run and their results: results[(u * staleness.n + k) *
 * n_algorithms + a]. */
typedef struct study {
  llm_run run;
  cfg_doc *rows; /* the algorithms' text */
  policy_algorithm *algorithms;
  counts at, staleness;
  llm_bias_spec spec;
  double reward[MOST_LISTED]; /* [at.n] mean reward at each checkpoint */
  llm_bias_result *results;
} study;

/* --- reading the request --- */

/* Reads a list such as "0,16,64": different whole numbers from `least` to `most`. */
static gl_status read_counts(counts *to, const char *option, const char *text, uint64_t least,
                             uint64_t most, gl_error *err) {
  for (const char *at = text; to->n < MOST_LISTED;) {
    char *end = NULL;
    const unsigned long long x = isdigit((unsigned char)*at) ? strtoull(at, &end, 10) : 0;
    int good = end != NULL && (*end == ',' || *end == '\0') && x >= least && x <= most;
    for (size_t i = 0; i < to->n && good; ++i) good = to->item[i] != x;
    if (!good) break;
    to->item[to->n++] = x;
    if (*end == '\0') return GL_OK;
    at = end + 1;
  }
  return gl_fail(err, GL_EINPUT,
                 "%s needs up to %d different whole numbers such as 16,64 from %llu on, but got "
                 "'%s'",
                 option, MOST_LISTED, (unsigned long long)least, text);
}

/* Returns "algorithms: [one, other]"; the caller frees it. */
static char *join_rows(const args_list *rows) {
  char *text = must_copy("algorithms: [", "the algorithms");
  for (size_t i = 0; i < rows->n; ++i) {
    char *longer = must_textf("the algorithms", "%s%s%s", text, i > 0 ? ", " : "", rows->item[i]);
    free(text);
    text = longer;
  }
  char *all = must_textf("the algorithms", "%s]", text);
  free(text);
  return all;
}

static gl_status bias_read_rows(study *s, const args_list *asked, gl_error *err) {
  char *rows =
      asked->n > 0 ? join_rows(asked) : must_textf("the algorithms", "algorithms: %s", main_rows);
  gl_status status = cfg_load_text(&s->rows, rows, strlen(rows), "--algorithm", err);
  free(rows);
  if (status != GL_OK) return status;
  return lab_recipe_algorithms(cfg_find(cfg_root(s->rows), "algorithms"), &s->algorithms,
                               &s->spec.n_algorithms, err);
}

static size_t whole_blocks(uint64_t n) {
  return (size_t)((n + GRADIENT_BLOCKS - 1) / GRADIENT_BLOCKS * GRADIENT_BLOCKS);
}

/* Reads the number of responses for the true gradient, in whole blocks of whole batches. Default:
 * four times the responses of the algorithms' batches. */
static gl_status bias_read_sizes(study *s, const bias_options *o, gl_error *err) {
  const recipe *r = &s->run.recipe;
  llm_bias_spec *q = &s->spec;
  counts responses = {0};
  q->groups = r->groups;
  q->group_size = r->group_size;
  q->batches = whole_blocks(o->batches);
  q->references = 4 * q->batches;
  q->seed = o->seed;
  q->confidence = confidence;
  if (o->responses == NULL) return GL_OK;
  gl_status status = read_counts(&responses, "--responses", o->responses, 1, most_responses, err);
  if (status == GL_OK && responses.n > 1)
    status = gl_fail(err, GL_EINPUT, "--responses is one number, not '%s'", o->responses);
  const uint64_t each = (uint64_t)q->groups * q->group_size;
  if (status == GL_OK) q->references = whole_blocks((responses.item[0] + each - 1) / each);
  return status;
}

static gl_status bias_read_places(study *s, const bias_options *o, gl_error *err) {
  const llm_run *r = &s->run;
  gl_status status = GL_OK;
  if (o->at != NULL)
    status = read_counts(&s->at, "--at", o->at, 1, most_updates, err);
  else
    s->at.item[s->at.n++] = r->updates[r->n - 1];
  if (status == GL_OK)
    status = read_counts(&s->staleness, "--staleness", o->staleness != NULL ? o->staleness : "0", 0,
                         most_updates, err);
  for (size_t u = 0; u < s->at.n && status == GL_OK; ++u)
    for (size_t k = 0; k < s->staleness.n && status == GL_OK; ++k)
      status = llm_run_check(r, s->at.item[u], s->staleness.item[k], err);
  return status;
}

static void bias_study_fini(study *s) {
  llm_run_fini(&s->run);
  cfg_free(s->rows);
  free(s->algorithms);
  free(s->results);
}

/* --- measuring --- */

/* Buffers that all measurements share. done: number of gradients computed so far. */
typedef struct workspace {
  gradient_sample reference, sample;
  double *now, *old; /* parameters */
  uint64_t done;
} workspace;

static void workspace_init(workspace *w, const study *s) {
  const size_t n = llm_learner_size(&s->run.learner);
  *w = (workspace){.now = MUST_ARRAY(double, n, "two policies' parameters"),
                   .old = MUST_ARRAY(double, n, "two policies' parameters")};
  gradient_sample_init(&w->reference, n, s->spec.references / GRADIENT_BLOCKS);
  gradient_sample_init(&w->sample, n, s->spec.batches / GRADIENT_BLOCKS);
}

static void workspace_fini(workspace *w) {
  gradient_sample_fini(&w->reference);
  gradient_sample_fini(&w->sample);
  free(w->now);
  free(w->old);
}

/* Measures all staleness values at one checkpoint of the learner. */
static gl_status measure_at(study *s, size_t u, workspace *w, progress *bar, gl_error *err) {
  const uint64_t update = s->at.item[u];
  llm_bias_job job = {.learner = &s->run.learner,
                      .spec = &s->spec,
                      .pair = {w->now, w->old, (int64_t)update, 0},
                      .bar = bar,
                      .done = &w->done};
  gl_status status = llm_run_load(&s->run, update, w->now, err);
  if (status == GL_OK) status = llm_bias_reference(&w->reference, &s->reward[u], &job, err);
  for (size_t k = 0; k < s->staleness.n && status == GL_OK; ++k) {
    job.pair.sampler_version = (int64_t)(update - s->staleness.item[k]);
    status = llm_run_load(&s->run, (uint64_t)job.pair.sampler_version, w->old, err);
    llm_bias_result *to = s->results + (u * s->staleness.n + k) * s->spec.n_algorithms;
    if (status == GL_OK) status = llm_bias_measure(to, &job, &w->reference, &w->sample, err);
  }
  return status;
}

static gl_status bias_measure(study *s, int quiet, gl_error *err) {
  workspace w;
  const uint64_t each =
      llm_bias_reference_work(&s->spec) + s->staleness.n * llm_bias_work(&s->spec);
  s->results = MUST_ARRAY(llm_bias_result, s->at.n * s->staleness.n * s->spec.n_algorithms,
                          "the measurements");
  gl_status status = GL_OK;
  workspace_init(&w, s);
  progress *bar = progress_new(s->run.recipe.name, "gradients", s->at.n * each,
                               quiet ? PROGRESS_SILENT : PROGRESS_AUTO);
  signals_catch();
  for (size_t u = 0; u < s->at.n && status == GL_OK; ++u) status = measure_at(s, u, &w, bar, err);
  progress_free(bar);
  workspace_fini(&w);
  return status;
}

/* --- as JSON --- */

static void bias_add_estimate(cJSON *to, const char *key, const gradient_estimate *e) {
  json_put(json_object(to, key), "value %g, standard_error %g, low %g, high %g", e->value, e->error,
           e->low, e->high);
}

static void add_result(cJSON *o, const study *s, size_t u, size_t k, size_t a) {
  const llm_bias_result *r = &s->results[(u * s->staleness.n + k) * s->spec.n_algorithms + a];
  json_put(o, "algorithm %s, update %g, staleness %g", s->algorithms[a].name, (double)s->at.item[u],
           (double)s->staleness.item[k]);
  if (!r->applicable) {
    json_put(o, "reason %s", r->why);
    return;
  }
  for (size_t i = 0; i < GRADIENT_NUMBERS; ++i)
    bias_add_estimate(o, gradient_number_names[i], &r->number[i]);
  json_put(o, "kl_k3_seq %g, iw_mean %g, iw_variance %g, aw_variance %g, ess %g, clip_fraction %g",
           r->kl, r->iw_mean, r->iw_variance, r->aw_variance, r->ess, r->clip_fraction);
}

static double bias_responses_of(const study *s, size_t batches) {
  return (double)batches * (double)s->spec.groups * (double)s->spec.group_size;
}

static cJSON *bias_as_json(const study *s) {
  cJSON *d = json_new();
  json_put(d, "recipe %s, method %s, seed %llu, groups %zu, group_size %zu, batches %zu",
           s->run.recipe.name, "monte_carlo", (unsigned long long)s->spec.seed, s->spec.groups,
           s->spec.group_size, s->spec.batches);
  json_put(d, "reference_responses %g, blocks %d, confidence %g",
           bias_responses_of(s, s->spec.references), (int)GRADIENT_BLOCKS, s->spec.confidence);
  cJSON *list = json_list(d, "measurements");
  for (size_t u = 0; u < s->at.n; ++u)
    for (size_t k = 0; k < s->staleness.n; ++k)
      for (size_t a = 0; a < s->spec.n_algorithms; ++a)
        add_result(json_object(list, NULL), s, u, k, a);
  return d;
}

/* --- text --- */

static void print_estimate(const gradient_estimate *e) {
  char text[64] = "-";
  if (isfinite(e->value) && isfinite(e->error))
    snprintf(text, sizeof text, "%.4g(%.1g)", e->value, e->error);
  else if (isfinite(e->value))
    snprintf(text, sizeof text, "%.4g..%.4g", e->low, e->high);
  printf(" %18s", text);
}

static void print_result(const study *s, const llm_bias_result *r, size_t a, uint64_t staleness,
                         int wide) {
  static const gradient_number columns[] = {GRADIENT_BIAS, GRADIENT_COSINE, GRADIENT_VARIANCE,
                                            GRADIENT_MSE, GRADIENT_SCALED_MSE};
  shown_write_padded(s->algorithms[a].name, (size_t)wide, stdout);
  printf(" %9llu", (unsigned long long)staleness);
  if (!r->applicable) {
    printf(" not applicable: %s\n", shown(r->why).text);
    return;
  }
  printf(" %9.3g", r->kl);
  for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i)
    print_estimate(&r->number[columns[i]]);
  putchar('\n');
}

/* Prints the heading of a checkpoint with the length of the true gradient, which is the same for
 * all algorithms. */
static void bias_print_head(const study *s, size_t u, int wide) {
  const llm_bias_result *r = s->results + u * s->staleness.n * s->spec.n_algorithms;
  size_t a = 0;
  while (a + 1 < s->spec.n_algorithms && !r[a].applicable) ++a;
  printf("\nafter %llu updates: mean reward %.4g", (unsigned long long)s->at.item[u], s->reward[u]);
  const gradient_estimate *e = &r[a].number[GRADIENT_LENGTH];
  if (r[a].applicable)
    printf(", true gradient of length %.4g (95 %% from %.4g to %.4g)", e->value, e->low, e->high);
  printf("\n%-*s %9s %9s %18s %18s %18s %18s %18s\n", wide, "algorithm", "staleness", "KL(q||p)",
         "bias", "cosine", "variance", "mse", "scaled_mse");
}

static void bias_print_text(const study *s) {
  const llm_bias_spec *q = &s->spec;
  const lab_recipe names = {.algorithms = s->algorithms, .n_algorithms = q->n_algorithms};
  const int wide = lab_recipe_name_width(&names);
  printf(
      "%s: %zu batches of %zu x %zu responses for each algorithm, %.0f responses for the true "
      "gradient\nvalue(standard error), by jackknife over %d blocks; low..high where the bias is "
      "not distinguishable from 0\n",
      shown(s->run.recipe.name).text, q->batches, q->groups, q->group_size,
      bias_responses_of(s, q->references), GRADIENT_BLOCKS);
  const llm_bias_result *r = s->results;
  for (size_t u = 0; u < s->at.n; ++u) {
    bias_print_head(s, u, wide);
    for (size_t k = 0; k < s->staleness.n; ++k)
      for (size_t a = 0; a < q->n_algorithms; ++a)
        print_result(s, r++, a, s->staleness.item[k], wide);
  }
}

static llm_bias_table bias_table_of(const study *s) {
  return (llm_bias_table){.name = s->run.recipe.name,
                          .spec = &s->spec,
                          .at = s->at.item,
                          .staleness = s->staleness.item,
                          .results = s->results,
                          .n_at = s->at.n,
                          .n_staleness = s->staleness.n};
}

static gl_status draw_figure(const study *s, const bias_options *o, gl_error *err) {
  const llm_bias_table t = bias_table_of(s);
  figure_request figures = figures_request_to(o->folder);
  gl_status status = figures_request_form(&figures, &o->form, err);
  return status == GL_OK ? llm_bias_draw(&t, &figures, err) : status;
}

/* --- the command --- */

/* Checks the request for figures before the measurement, which takes long. */
static gl_status check_figure(const study *s, const bias_options *o, gl_error *err) {
  if (o->folder == NULL) return GL_OK;
  if (o->json) return gl_fail(err, GL_EINPUT, "--json prints and --figures draws; ask for one");
  if (s->staleness.n > 1) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "the figure is drawn against staleness; give several, such as --staleness 0,16");
}

static gl_status bias_of(study *s, const args *a, const bias_options *o, gl_error *err) {
  gl_status status = bias_read_rows(s, &o->algorithms, err);
  s->spec.algorithms = s->algorithms;
  if (status == GL_OK)
    status = llm_run_init(&s->run, a->words[0], a->overrides, a->n_overrides, o->threads, err);
  if (status == GL_OK) status = bias_read_places(s, o, err);
  if (status == GL_OK) status = check_figure(s, o, err);
  if (status == GL_OK) status = bias_read_sizes(s, o, err);
  const double begun = seconds_now();
  if (status == GL_OK) status = bias_measure(s, o->quiet, err);
  if (status != GL_OK) return status;
  const double wall_s = seconds_now() - begun;
  if (o->json)
    status = report_json(bias_as_json(s), err);
  else if (o->folder != NULL)
    status = draw_figure(s, o, err);
  else
    bias_print_text(s);
  if (status != GL_OK || o->study == NULL) return status;
  const llm_bias_table t = bias_table_of(s);
  return llm_bias_store(&t, o->study, wall_s, err);
}

static gl_status run_llm_bias(args *a, gl_error *err) {
  bias_options o = {.batches = BATCHES, .seed = 1};
  const args_option options[] = {
      {"at", 0, ARGS_TEXT, "LIST", "after how many updates, such as 100,800 (the newest)", &o.at},
      {"staleness", 'k', ARGS_TEXT, "LIST",
       "how many updates older the samplers are, such as 0,16,64 (0)", &o.staleness},
      {"algorithm", 'a', ARGS_EACH, "ALGORITHM",
       "an algorithm as recipes have it; may be given several times (eight main ones)",
       &o.algorithms},
      {"batches", 'b', ARGS_COUNT, "N",
       "batches for each algorithm, rounded up to a multiple of 16 (128)", &o.batches},
      {"responses", 'm', ARGS_TEXT, "M", "responses for the true gradient (4 N batches of them)",
       &o.responses},
      {"output", 'o', ARGS_STUDY, "STUDY.db",
       "also keep the measurements in a study's table `bias`", &o.study},
      {"figures", 'f', ARGS_FIGURES, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &o.folder},
      FIGURE_FORM_OPTIONS(o.form),
      {"seed", 0, ARGS_SEED, "N", "of this measurement's draws (1)", &o.seed},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the measurements as JSON, with intervals", &o.json}};
  study s = {0};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  o.form.given = a;
  status = bias_of(&s, a, &o, err);
  bias_study_fini(&s);
  return status;
}

const command command_llm_bias = {
    .name = "llm bias",
    .arguments = "RUN [key=value …]",
    .words = {.input = ARGS_ANY, .min = 1, .max = 1, .overrides = true},
    .summary = "bias, variance and MSE of algorithms at checkpoints of a real run",
    .about =
        "RUN is a folder of checkpoints (`gepolab run --checkpoint RUN`). At each chosen\n"
        "checkpoint, the mean estimate of every algorithm on batches sampled as in the run is\n"
        "compared with the gradient of the mean reward. That gradient is estimated from\n"
        "responses that the learner samples itself (leave-one-out score function). With\n"
        "--staleness K the batches come from the checkpoint K updates before. Both estimates\n"
        "are unbiased and independent, so bias^2, variance and MSE are estimated without bias;\n"
        "standard errors are by jackknife over 16 blocks, intervals of 95 %. Very large,\n"
        "rare weights that no batch drew are missed: where `ess` (of --json) is small, distrust\n"
        "the variance. Memory in addition to the model: 152 bytes per parameter. With -o the\n"
        "measurements of each checkpoint go into a study's table `bias` under \"NAME after N\n"
        "updates\", without their intervals.",
    .examples = "  gepolab run edges sweep=null --checkpoint run/ --checkpoint-every 16 \\\n"
                "      checkpoint.keep=50\n"
                "  gepolab llm bias run/ --staleness 0,16,64\n"
                "  gepolab llm bias run/ --at 160,800 -a is -a '{base: gepo, clip: none}' --json\n"
                "  gepolab llm bias run/ --at 160,800 -o bias.db\n"
                "  gepolab llm bias run/ -m 100000 train.groups=1",
    .run = run_llm_bias};
