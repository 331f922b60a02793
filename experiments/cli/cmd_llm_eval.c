/* gepolab llm eval: pass@k on held-out problems, greedy and sampled. */
#include "core/base/progress.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/base/signals.h"
#include "experiments/llm/eval.h"
#include "experiments/llm/pass.h"
#include "experiments/llm/session.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* "1,4,8", each at most the number of samples. */
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

/* 1, and the powers of four below the number of samples, and that number. */
static void default_k(eval_options *o) {
  for (size_t k = 1; k < o->samples && o->n_k < MOST_K - 1; k *= 4) o->k[o->n_k++] = k;
  o->k[o->n_k++] = o->samples;
}

/* --- measuring --- */

static gl_status eval_measure(measured *out, llm_session *s, const run_spec *spec, size_t set,
                              size_t samples, const size_t *k, size_t n_k, progress *bar,
                              size_t *done, gl_error *err) {
  gl_status status =
      llm_eval_init(&out->eval, s->model, spec, s->recipe.seed, set, samples, bar, done, err);
  for (out->n_pass = 0; out->n_pass < n_k && status == GL_OK; ++out->n_pass) {
    rng_stream stream = rng_stream_at(s->recipe.seed, RNG_BOOTSTRAP, (set << 8) + out->n_pass);
    status = llm_pass_at(&out->pass[out->n_pass], out->eval.correct, out->eval.problems,
                         out->eval.samples, k[out->n_pass], stream, err);
  }
  return status;
}

/* The sets of the session, or its one evaluation; problems: of all together. */
static gl_status find_sets(measured_set **out, size_t *n, size_t *problems, const llm_session *s,
                           gl_error *err) {
  const evaluation_sets *sets = &s->spec.sets;
  *n = sets->n > 0 ? sets->n : 1;
  *problems = 0;
  *out = calloc(*n, sizeof **out);
  if (*out == NULL) return gl_fail_memory(err, "an evaluation");
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
    status = eval_measure(&set[i].greedy, s, &set[i].spec, i, 0, &one, 1, bar, &done, err);
    if (status == GL_OK)
      status = eval_measure(&set[i].sampled, s, &set[i].spec, i, o->samples, o->k, o->n_k, bar,
                            &done, err);
  }
  return status;
}

/* --- what is printed --- */

static void print_measured(const char *how, const measured *m) {
  for (size_t i = 0; i < m->n_pass; ++i) {
    const llm_pass *p = &m->pass[i];
    char error[32] = "";
    if (isfinite(p->standard_error)) snprintf(error, sizeof error, " ± %.4f", p->standard_error);
    printf("  %-8s pass@%-4zu %.4f%s, 95 %% from %.4f to %.4f (%s)\n", how, p->k, p->value, error,
           p->low, p->high, p->interval);
  }
  printf("  %-8s reward %.4f, %.1f tokens a response, %.1f %% cut off\n", how, m->eval.reward,
         m->eval.tokens, 100 * m->eval.cut_off);
}

static int measured_json(cJSON *to, const char *key, const measured *m) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  cJSON *list = o != NULL ? cJSON_AddArrayToObject(o, "pass") : NULL;
  for (size_t i = 0; i < m->n_pass && list != NULL; ++i) {
    const llm_pass *p = &m->pass[i];
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) ||
        json_add_number(item, "k", (double)p->k) == NULL ||
        json_add_number(item, "value", p->value) == NULL ||
        json_add_number(item, "standard_error", p->standard_error) == NULL ||
        json_add_number(item, "low", p->low) == NULL ||
        json_add_number(item, "high", p->high) == NULL ||
        json_add_string(item, "interval", p->interval) == NULL)
      list = NULL;
  }
  return list != NULL && json_add_number(o, "samples", (double)m->eval.samples) != NULL &&
         json_add_number(o, "reward", m->eval.reward) != NULL &&
         json_add_number(o, "tokens", m->eval.tokens) != NULL &&
         json_add_number(o, "cut_off", m->eval.cut_off) != NULL;
}

static int set_json(cJSON *to, const measured_set *set) {
  return json_add_string(to, "task", task_kind(set->spec.task)) != NULL &&
         json_add_number(to, "problems", (double)set->greedy.eval.problems) != NULL &&
         json_add_number(to, "temperature", set->spec.eval.how.dist.temperature) != NULL &&
         measured_json(to, "greedy", &set->greedy) && measured_json(to, "sampled", &set->sampled);
}

/* The first set stands for the whole, as it does in a run; all of them follow as a list. */
static gl_status eval_print_json(const llm_session *s, const measured_set *set, size_t n,
                                 gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  int ok = d != NULL && json_add_string(d, "model", s->source) != NULL &&
           json_add_number(d, "seed", (double)s->recipe.seed) != NULL && set_json(d, &set[0]);
  cJSON *list = ok && set[0].name != NULL ? cJSON_AddArrayToObject(d, "sets") : NULL;
  for (size_t i = 0; i < n && ok && set[0].name != NULL; ++i) {
    cJSON *item = list != NULL ? json_append_object(list) : NULL;
    ok = item != NULL && json_add_string(item, "set", set[i].name) != NULL &&
         set_json(item, &set[i]);
  }
  return report_json_if(ok, d, err);
}

static void eval_print_text(const llm_session *s, const measured_set *set, size_t n) {
  char about[LLM_ABOUT_SIZE];
  for (size_t i = 0; i < n; ++i) {
    if (set[i].name == NULL)
      printf("%s: ", shown(s->source).text);
    else
      printf("%s, set %s: ", shown(s->source).text, shown(set[i].name).text);
    printf("%zu held-out problems of %s, %s\n", set[i].greedy.eval.problems,
           task_kind(set[i].spec.task), shown(llm_session_about(s, about)).text);
    print_measured("greedy", &set[i].greedy);
    print_measured("sampled", &set[i].sampled);
  }
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
  if (status == GL_OK && o->json) status = eval_print_json(s, set, n, err);
  if (status == GL_OK && !o->json) eval_print_text(s, set, n);
  for (size_t i = 0; set != NULL && i < n; ++i)
    llm_eval_fini(&set[i].greedy.eval), llm_eval_fini(&set[i].sampled.eval);
  free(set);
  return status;
}

static gl_status run_eval(const command *self, int argc, char **argv, gl_error *err) {
  eval_options o = {.samples = DEFAULT_SAMPLES};
  const char *k = NULL;
  const args_option options[] = {
      {"samples", 'n', ARGS_COUNT, "N", "drawn responses to each problem (8)", &o.samples},
      {"k", 'k', ARGS_TEXT, "LIST", "which pass@k, such as 1,4,8", &k},
      {"prompts", 'p', ARGS_SET, "N", "the first N held-out problems", "world.evaluation.prompts"},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the result as JSON", &o.json}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    llm_session s = {0};
    if (o.samples > MOST_SAMPLES)
      status = gl_fail(err, GL_EINPUT, "--samples is at most %d", MOST_SAMPLES);
    if (status == GL_OK && k != NULL) status = read_k(&o, k, err);
    if (status == GL_OK && k == NULL) default_k(&o);
    if (status == GL_OK) status = llm_session_init(&s, &a, o.threads, 0, err);
    if (status == GL_OK) llm_session_tell(&s);
    if (status == GL_OK) status = eval_session(&s, &o, err);
    llm_session_fini(&s);
  }
  args_fini(&a);
  return status;
}

const command command_llm_eval = {
    .name = "llm eval",
    .arguments = "FOLDER|RECIPE [key=value …]",
    .summary = "pass@1 and pass@k on held-out problems, greedy and sampled",
    .about =
        "Asks the first held-out problems of the task and counts right answers (reward 1): of the\n"
        "greedy response, and of N responses drawn at the temperature, top_k and top_p of\n"
        "`world.evaluation` (1, off and 1 unless it is of kind: sampled and says so). pass@k is\n"
        "the unbiased estimate of Chen et al. (arXiv 2107.03374); standard errors and intervals\n"
        "are over problems (Wilson where all are right or wrong, else bootstrap). A recipe's "
        "model\n"
        "is made as it says, warm-up included: what RL would start from. Of a recipe with\n"
        "`world.evaluation.sets` every set is measured.",
    .examples = "  gepolab llm eval warm/\n"
                "  gepolab llm eval warm/ --samples 32 --k 1,8,32 --json\n"
                "  gepolab llm eval Qwen3-0.6B/ 'world.task={kind: math, path: test.jsonl}' "
                "world.max_tokens=1024",
    .run = run_eval};
