/* gepolab llm eval: pass@1 and pass@k of a transformer on held-out problems. */
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/llm/eval.h"
#include "experiments/llm/session.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_K = 16, DEFAULT_SAMPLES = 8, MOST_SAMPLES = 4096, MOST_PROBLEMS = 1 << 16 };

typedef struct eval_options {
  size_t samples, threads;
  size_t k[MOST_K]; /* [n_k] */
  size_t n_k;
  int json, quiet;
} eval_options;

/* One way of responding and its pass@k. */
typedef struct measured {
  llm_eval eval;
  llm_pass pass[MOST_K]; /* [n_pass] */
  size_t n_pass;
} measured;

/* An evaluation set, or the evaluation of a recipe without sets. */
typedef struct measured_set {
  const char *name; /* NULL: there are no sets */
  run_spec spec;    /* borrows the session's */
  measured greedy, sampled;
} measured_set;

/* --- options --- */

/* Reads a list such as "1,4,8". Each k is at most the number of samples. */
static gl_status read_k(eval_options *o, const char *text, gl_error *err) {
  for (const char *at = text; o->n_k < MOST_K;) {
    char *end = NULL;
    unsigned long k = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;
    if (k == 0 || (*end != ',' && *end != '\0')) break;
    if (k > o->samples)
      return gl_fail(err, GL_EINPUT,
                     "pass@%lu cannot be estimated from %zu responses to a problem; give --samples "
                     "%lu or more",
                     k, o->samples, k);
    o->k[o->n_k++] = k;
    if (*end == '\0') return GL_OK;
    at = end + 1;
  }
  return gl_fail(err, GL_EINPUT, "--k needs up to %d whole numbers such as 1,4,8, but got '%s'",
                 MOST_K, text);
}

/* The default values of k: the powers of four (1, 4, 16, …) below the number of samples, and that
 * number. */
static void default_k(eval_options *o) {
  for (size_t k = 1; k < o->samples && o->n_k < MOST_K - 1; k *= 4) o->k[o->n_k++] = k;
  o->k[o->n_k++] = o->samples;
}

/* --- measuring --- */

static gl_status eval_measure(measured *out, const llm_eval_request *r, const size_t *k, size_t n_k,
                              gl_error *err) {
  gl_status status = llm_eval_init(&out->eval, r, err);
  for (out->n_pass = 0; out->n_pass < n_k && status == GL_OK; ++out->n_pass) {
    rng_stream stream = rng_stream_at(r->seed, RNG_BOOTSTRAP, (r->set << 8) + out->n_pass);
    llm_pass_at(&out->pass[out->n_pass], out->eval.correct, out->eval.problems, out->eval.samples,
                k[out->n_pass], stream);
  }
  return status;
}

/* Finds the session's evaluation sets, or its only evaluation if it has no sets. *problems: total
 * number of problems. */
static gl_status find_sets(measured_set **out, size_t *n, size_t *problems, const llm_session *s,
                           gl_error *err) {
  const evaluation_sets *sets = &s->spec.sets;
  *n = sets->n > 0 ? sets->n : 1;
  *problems = 0;
  *out = must_alloc(*n, sizeof **out, "an evaluation");
  for (size_t i = 0; i < *n; ++i) {
    (*out)[i].spec = sets->n > 0 ? run_spec_of_set(&s->spec, i) : s->spec;
    (*out)[i].name = sets->n > 0 ? sets->part[i * evaluation_sets_parts(sets)].set : NULL;
    *problems += (*out)[i].spec.eval.prompts;
    if ((*out)[i].spec.eval.prompts > MOST_PROBLEMS)
      return gl_fail(err, GL_EINPUT,
                     "at most %d problems can be evaluated at once; lower --prompts",
                     MOST_PROBLEMS);
  }
  return GL_OK;
}

static gl_status measure_sets(measured_set *set, size_t n, llm_session *s, const eval_options *o,
                              progress *bar, gl_error *err) {
  static const size_t one = 1;
  gl_status status = GL_OK;
  size_t done = 0;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    llm_eval_request r = {.model = s->model,
                          .spec = &set[i].spec,
                          .seed = s->recipe.seed,
                          .set = i,
                          .bar = bar,
                          .done = &done};
    status = eval_measure(&set[i].greedy, &r, &one, 1, err);
    r.samples = o->samples;
    if (status == GL_OK) status = eval_measure(&set[i].sampled, &r, o->k, o->n_k, err);
  }
  return status;
}

/* --- printing --- */

/* Adds a measurement to the object `to`, and its lines of text to `lines` (NULL: none). */
static void put_measured(table *to, table *lines, const char *how, const measured *m) {
  table *o = table_object(table_field(to, how)), *list = table_list(table_field(o, "pass"));
  for (size_t i = 0; i < m->n_pass; ++i) {
    const llm_pass *p = &m->pass[i];
    char error[32] = "";
    if (isfinite(p->standard_error)) snprintf(error, sizeof error, " ± %.4f", p->standard_error);
    table_put(table_object(table_field(list, "")),
              "k %zu, value %g, standard_error %g, low %g, high %g, interval %s", p->k, p->value,
              p->standard_error, p->low, p->high, p->interval);
    table_line(lines, "  %-8s pass@%-4zu %.4f%s, 95 %% from %.4f to %.4f (%s)", how, p->k, p->value,
               error, p->low, p->high, p->interval);
  }
  table_put(o, "samples %zu, reward %g, tokens %g, cut_off %g", m->eval.samples, m->eval.reward,
            m->eval.tokens, m->eval.cut_off);
  table_line(lines, "  %-8s reward %.4f, %.1f tokens a response, %.1f %% cut off", how,
             m->eval.reward, m->eval.tokens, 100 * m->eval.cut_off);
}

static void put_set(table *to, table *lines, const llm_session *s, const measured_set *set) {
  const char *kind = task_kind(set->spec.task);
  char about[LLM_ABOUT_SIZE];
  table_put(to, "task %s, problems %zu, temperature %g", kind, set->greedy.eval.problems,
            set->spec.eval.how.dist.temperature);
  table_line(lines, "%s%s%s: %zu held-out problems of %s, %s", s->source,
             set->name != NULL ? ", set " : "", set->name != NULL ? set->name : "",
             set->greedy.eval.problems, kind, llm_session_about(s, about));
  put_measured(to, lines, "greedy", &set->greedy);
  put_measured(to, lines, "sampled", &set->sampled);
}

/* The first set is also reported at the top, as in a run; all sets follow as a list. */
static gl_status report_eval(const llm_session *s, const measured_set *set, size_t n, bool is_json,
                             gl_error *err) {
  const bool has_sets = set[0].name != NULL;
  table *d = table_document();
  table_put(d, "model %s, seed %llu", s->source, (unsigned long long)s->recipe.seed);
  put_set(d, has_sets ? NULL : d, s, &set[0]);
  table *list = has_sets ? table_list(table_field(d, "sets")) : NULL;
  for (size_t i = 0; i < n && has_sets; ++i) {
    table *item = table_object(table_field(list, ""));
    table_put(item, "set %s", set[i].name);
    put_set(item, d, s, &set[i]);
  }
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* --- the command --- */

static gl_status eval_session(llm_session *s, const eval_options *o, gl_error *err) {
  measured_set *set = NULL;
  size_t n = 0, problems = 0;
  gl_status status = find_sets(&set, &n, &problems, s, err);
  signals_catch();
  if (status == GL_OK) status = llm_session_model(s, err);
  progress *bar =
      progress_new(s->source, "problems", 2 * problems, o->quiet ? PROGRESS_SILENT : PROGRESS_AUTO);
  if (status == GL_OK) status = measure_sets(set, n, s, o, bar, err);
  progress_free(bar);
  if (status == GL_OK) status = report_eval(s, set, n, o->json, err);
  for (size_t i = 0; set != NULL && i < n; ++i)
    llm_eval_fini(&set[i].greedy.eval), llm_eval_fini(&set[i].sampled.eval);
  free(set);
  return status;
}

static gl_status run_eval(args *a, gl_error *err) {
  eval_options o = {.samples = DEFAULT_SAMPLES};
  const char *k = NULL;
  const args_option options[] = {
      {"samples", 'n', ARGS_COUNT, "N", "sampled responses per problem (8)", &o.samples},
      {"k", 'k', ARGS_TEXT, "LIST", "which pass@k, such as 1,4,8", &k},
      {"prompts", 'p', ARGS_SET, "N", "the first N held-out problems", "world.evaluation.prompts"},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the result as JSON", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  llm_session s = {0};
  if (o.samples > MOST_SAMPLES)
    status = gl_fail(err, GL_EINPUT, "--samples is at most %d", MOST_SAMPLES);
  if (status == GL_OK && k != NULL) status = read_k(&o, k, err);
  if (status == GL_OK && k == NULL) default_k(&o);
  if (status == GL_OK) status = llm_session_init(&s, a, o.threads, 0, err);
  if (status == GL_OK) llm_session_print(&s);
  if (status == GL_OK) status = eval_session(&s, &o, err);
  llm_session_fini(&s);
  return status;
}

const command command_llm_eval = {
    .name = "llm eval",
    .arguments = "FOLDER|RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "pass@1 and pass@k on held-out problems, greedy and sampled",
    .about =
        "Asks the first held-out problems of the task and counts right answers (reward 1): of the\n"
        "greedy response, and of N responses sampled at the temperature, top_k and top_p of\n"
        "`world.evaluation` (1, off and 1 unless it is of kind: sampled and says so). pass@k is\n"
        "the unbiased estimate of Chen et al. (arXiv 2107.03374); standard errors and intervals\n"
        "are over problems (Wilson where all are right or wrong, else bootstrap). A recipe's "
        "model\n"
        "is made as it says, warm-up included: what RL would start from. Of a recipe with\n"
        "`world.evaluation.sets` every set is measured.",
    .examples = "  gepolab llm eval warm/\n"
                "  gepolab llm eval warm/ --samples 32 --k 1,8,32 --json\n"
                "  gepolab llm eval Qwen3-0.6B/ 'world.task={kind: math, path: test.jsonl}' \\\n"
                "      world.max_tokens=1024",
    .run = run_eval};
