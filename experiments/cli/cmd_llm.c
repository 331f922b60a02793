/* gepolab llm info, tasks, sft and rl: describes a transformer and its tasks, and trains it. */
#include "core/base/display_text.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/llm/session.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/run_spec.h"
#include "llm/task/task.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- info --- */

/* Adds the model to the document, for JSON and for people. */
static void put_model(table *d, const llm_session *s) {
  const model_config *c = &s->spec.model;
  const char *path = s->spec.tokenizer_path, *word = model_traits_of(c)->word;
  char about[LLM_ABOUT_SIZE];
  table_put(table_object(table_field(d, "model")),
            "model_type %s, parameters %zu, layers %zu, hidden %zu, intermediate %zu, heads %zu, "
            "kv_heads %zu, head_dim %zu, vocabulary %zu, context %zu, tied %i, unknown_keys %s",
            word, (size_t)model_config_parameters(c), c->layers, c->hidden, c->intermediate,
            c->heads, c->kv_heads, c->head_dim, c->vocabulary, c->max_positions, c->tied,
            c->unknown);
  table_line(d, "%s: %s", s->source, llm_session_about(s, about));
  table_line(d, "  model        %s, %zu layers of %zu, %zu heads (%zu for keys and values) of %zu,",
             word, c->layers, c->hidden, c->heads, c->kv_heads, c->head_dim);
  table_line(d, "               feed-forward %zu, vocabulary %zu, context %zu, output embedding %s",
             c->intermediate, c->vocabulary, c->max_positions, c->tied ? "tied" : "of its own");
  if (s->spec.folder != NULL)
    table_line(d, "  starts from  %s", s->spec.folder);
  else
    table_line(d, "  starts from  random parameters of seed %llu",
               (unsigned long long)s->recipe.seed);
  if (c->unknown[0] != '\0')
    table_line(d, "  config.json  keys that are not known and passed over: %s", c->unknown);
  if (s->spec.warmup.steps > 0)
    table_line(d, "  warm-up      %zu steps of %zu problems", s->spec.warmup.steps,
               s->spec.warmup.batch);
  table_line(d, "  tokenizer    %s, %zu tokens%s%s", tokenizer_kind(s->spec.tokenizer),
             tokenizer_size(s->spec.tokenizer), path != NULL ? ", " : "", path != NULL ? path : "");
  if (s->has_task)
    table_line(d, "  task         %s, responses of up to %zu tokens, %zu held-out problems",
               task_kind(s->spec.task), s->spec.max_tokens, s->spec.eval.prompts);
  else
    table_line(d, "  task         not known; responses of up to %zu tokens", s->spec.max_tokens);
}

/* Adds the required memory: in bytes in JSON, in MiB for people. */
static void put_memory(table *d, const memory_need *n, bool is_cuda) {
  char activations[80], generation[80];
  const struct {
    const char *name, *of;
    size_t bytes;
  } rows[] = {{"parameters", "", n->parameters},
              {"gradients", "", n->gradients},
              {"moments", "", n->moments},
              {"reference", "", n->reference},
              {"activations", activations, n->activations},
              {"generation", generation, n->generation},
              {"scratch", "", n->scratch},
              {"total", "", n->total}};
  snprintf(activations, sizeof activations, "  micro-batches of %zu tokens%s", n->micro_batch,
           n->stores == MODEL_STORES_LOGITS ? ", with their logits" : "");
  snprintf(generation, sizeof generation, "  %zu sequences of %zu positions side by side", n->slots,
           n->capacity);
  if (n->devices > 1)
    table_line(d, "  memory       MiB on each of %zu devices", n->devices);
  else
    table_line(d, "  memory       MiB");
  table *m = table_object(table_field(d, "memory_bytes"));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    table_count(table_field(m, rows[i].name), rows[i].bytes);
    table_line(d, "    %-11s %9.1f%s", rows[i].name, (double)rows[i].bytes / 0x1p20, rows[i].of);
  }
  table_put(m, "held_version %zu, versions_beside_step %zu, free %zu, device %zu", n->one_version,
            n->versions, n->device_free, n->device_total);
  table_line(d, "    %-11s %9.1f  of %.1f", "free", (double)n->device_free / 0x1p20,
             (double)n->device_total / 0x1p20);
  table_line(
      d, "  each version that a coupled clock holds adds %.1f MiB; %zu find room beside a step%s",
      (double)n->one_version / 0x1p20, n->versions, is_cuda ? "," : "");
  if (is_cuda) table_line(d, "  later ones in pinned memory of the host");
}

static gl_status report_model(const llm_session *s, const memory_need *n, bool is_json,
                              gl_error *err) {
  const bool is_cuda = s->backend->kind == BACKEND_CUDA;
  table *d = table_document();
  table_put(d, "source %s, backend %s, device %s, tokenizer %s, task %s, max_tokens %zu", s->source,
            is_cuda ? "cuda" : "cpu", s->backend->device, tokenizer_kind(s->spec.tokenizer),
            s->has_task ? task_kind(s->spec.task) : "", s->spec.max_tokens);
  table_put(d, "devices %zu, slots %zu, micro_batch %zu", n->devices, n->slots, n->micro_batch);
  put_model(d, s);
  put_memory(d, n, is_cuda);
  table_put(d, "fits %i", n->total <= n->device_free);
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* --- the command --- */

static gl_status run_llm_info(args *a, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  gl_status status = args_parse(a, options, 1, err);
  if (status != GL_OK || a->help) return status;
  llm_session s;
  memory_need n;
  status = llm_session_init(&s, a, 0, 1, err);
  if (status == GL_OK) status = llm_session_need(&n, &s, err);
  if (status == GL_OK) status = report_model(&s, &n, json, err);
  if (status == GL_OK) status = memory_need_check(&n, &s.spec, s.backend, err);
  llm_session_fini(&s);
  return status;
}

const command command_llm_info = {
    .name = "llm info",
    .arguments = "RECIPE|FOLDER [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "size, tokenizer, task, and whether the memory needed is there",
    .about =
        "Allocates and starts nothing. `activations` are those of training or of prompts,\n"
        "whichever are larger, because both use the same memory; so `total` is the sum of all\n"
        "rows. A model that does not fit is refused (exit 1) with the settings to lower; `run`,\n"
        "`llm sft` and `llm rl` refuse it in the same way before they start.",
    .examples = "  gepolab llm info llm_quick\n"
                "  gepolab llm info Qwen3-0.6B/ world.backend=cuda world.dtype=bfloat16 --json",
    .run = run_llm_info};

/* --- tasks --- */

/* --- as text --- */

static void print_kind(const char *kind, const char *about) {
  const char *const *example = task_kind_example(kind);
  printf("%s: %s\n", kind, about);
  if (example != NULL) printf("  %s  →  %s\n", example[0], example[1]);
  for (const task_field *f = task_kind_fields(kind); f->key != NULL; ++f) {
    char text[512];
    const size_t column = (size_t)printf("  %-15s ", f->key);
    snprintf(text, sizeof text, "%s (%s; %s)", f->about, f->values, f->normal);
    shown_wrap(text, column, column, stdout);
    putchar('\n');
  }
}

/* --- as JSON --- */

static void kind_json(cJSON *to, const char *kind, const char *about) {
  const char *const *example = task_kind_example(kind);
  json_put(to, "kind %s, about %s", kind, about);
  if (example != NULL) json_put(to, "prompt %s, answer %s", example[0], example[1]);
  cJSON *list = json_list(to, "fields");
  for (const task_field *f = task_kind_fields(kind); f->key != NULL; ++f)
    json_put(json_object(list, NULL), "key %s, values %s, default %s, about %s", f->key, f->values,
             f->normal, f->about);
}

/* --- the command --- */

static gl_status print_kinds(const char *only, int json, gl_error *err) {
  const char *about, *kind;
  cJSON *list = json ? cJSON_CreateArray() : NULL;
  for (size_t i = 0; (kind = task_kind_at(i, &about)) != NULL; ++i) {
    if (only != NULL && strcmp(only, kind) != 0) continue;
    if (json)
      kind_json(json_object(list, NULL), kind, about);
    else
      print_kind(kind, about);
  }
  return json ? report_json(list, err) : GL_OK;
}

static gl_status tasks_find_kind(const char *name, gl_error *err) {
  enum { MOST_KINDS = 64 };
  const char *names[MOST_KINDS];
  size_t n = 0, found;
  while (n < MOST_KINDS && (names[n] = task_kind_at(n, NULL)) != NULL) ++n;
  return args_choose(&found, "a task", name, names, n, err);
}

static gl_status run_tasks(args *a, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  gl_status status = args_parse(a, options, 1, err);
  if (status != GL_OK || a->help) return status;
  const char *only = a->n_words > 0 ? a->words[0] : NULL;
  if (only != NULL) status = tasks_find_kind(only, err);
  if (status == GL_OK) status = print_kinds(only, json, err);
  return status;
}

const command command_llm_tasks = {
    .name = "llm tasks",
    .arguments = "[KIND]",
    .words = {.input = ARGS_ANY, .max = 1},
    .summary = "the kinds of task, with an example and the fields of each",
    .about = "Lists the values of a recipe's `world.task`. After each field come its values and,\n"
             "after the semicolon, its default. Every kind also has kind, held_out, reward and\n"
             "cut_off; experiments/RECIPES.md describes them.",
    .examples = "  gepolab llm tasks\n"
                "  gepolab llm tasks countdown --json",
    .run = run_tasks};

/* --- sft --- */

/* A point of the learning curve: the mean loss since the previous point, and the held-out score. */
typedef struct point {
  size_t step;
  double loss, score;
} point;

typedef struct curve {
  point *points; /* [n], room for [most] */
  size_t n, most;
  double loss_sum;
  size_t loss_steps;
  int stopped;
  progress *bar;
} curve;

/* --- watching --- */

static int sft_after_step(void *self, size_t step, double loss, double score) {
  curve *c = self;
  char note[64] = "";
  c->loss_sum += loss;
  ++c->loss_steps;
  if (!isnan(score) && c->n < c->most) {
    c->points[c->n++] = (point){step, c->loss_sum / (double)c->loss_steps, score};
    c->loss_sum = 0;
    c->loss_steps = 0;
  }
  if (c->n > 0)
    snprintf(note, sizeof note, "loss %.3f, score %.3f", loss, c->points[c->n - 1].score);
  progress_at(c->bar, step, note);
  c->stopped = signals_caught();
  return c->stopped;
}

/* --- printing --- */

static gl_status report_sft(const llm_session *s, const curve *c, const char *folder,
                            double seconds, bool is_json, gl_error *err) {
  static const table_column columns[] = {
      {"step", TABLE_INTEGER, .head = "step", .width = 8},
      {"loss", TABLE_REAL, .head = "loss", .format = "%.4f", .width = 9},
      {"score", TABLE_REAL, .head = "held-out score", .format = "%.4f", .width = 15}};
  const point none = {0, NAN, NAN}, *last = c->n > 0 ? &c->points[c->n - 1] : &none;
  char about[LLM_ABOUT_SIZE];
  table *d = table_document();
  table_line(d, "%s: %s", s->recipe.name, llm_session_about(s, about));
  table *t = table_rows(table_field(d, "curve"), columns, sizeof columns / sizeof *columns);
  table_plain(t, 2);
  for (size_t i = 0; i < c->n; ++i) {
    table_row(t);
    table_count(t, c->points[i].step), table_real(t, c->points[i].loss);
    table_real(t, c->points[i].score);
  }
  table_put(d, "name %s, seed %llu, folder %s, steps %zu, loss %g, score %g", s->recipe.name,
            (unsigned long long)s->recipe.seed, folder, last->step, last->loss, last->score);
  table_line(d, "%.1f s; the model is in %s", seconds, folder);
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* --- the command --- */

typedef struct sft_options {
  const char *folder;
  size_t every, threads; /* every: steps between points; 0: warmup.check_every; threads 0: all */
  int json, quiet;
} sft_options;

static gl_status sft_train(llm_session *s, curve *c, size_t every, gl_error *err) {
  c->most = s->spec.warmup.steps / every + s->spec.warmup.steps / s->spec.warmup.check_every + 3;
  c->points = MUST_ARRAY(point, c->most, "the curve");
  const llm_watch watch = {sft_after_step, c, every};
  return llm_session_learner(s, &watch, err);
}

static gl_status sft_session(llm_session *s, const sft_options *o, gl_error *err) {
  const warmup_spec *w = &s->spec.warmup;
  if (w->steps == 0)
    return cfg_fail(s->recipe.world, err,
                    "there is nothing to train: the recipe's world has no `warmup: {steps: …}`");
  int made = 0;
  gl_status status = llm_folder_prepare(o->folder, &made, err);
  if (status != GL_OK) return status;
  curve c = {.bar = progress_new(s->recipe.name, "steps", w->steps,
                                 o->quiet ? PROGRESS_SILENT : PROGRESS_AUTO)};
  const double begun = seconds_now();
  signals_catch();
  status = sft_train(s, &c, o->every > 0 ? o->every : w->check_every, err);
  progress_free(c.bar);
  if (status == GL_OK) status = llm_folder_save(o->folder, s->doc, &s->spec, s->model, err);
  if (status != GL_OK) llm_folder_abandon(o->folder, made);
  if (status == GL_OK) status = report_sft(s, &c, o->folder, seconds_now() - begun, o->json, err);
  if (status == GL_OK && c.stopped)
    status = gl_fail(err, GL_EINTERRUPTED, "stopped before its end; the model so far is in %s",
                     o->folder);
  free(c.points);
  return status;
}

static gl_status run_sft(args *a, gl_error *err) {
  sft_options o = {0};
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where the model goes", &o.folder},
      {"every", 0, ARGS_COUNT, "N", "steps between points of the curve (warmup.check_every)",
       &o.every},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the curve as JSON", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  llm_session s = {0};
  if (o.folder == NULL)
    status = gl_fail(err, GL_EINPUT, "llm sft needs -o FOLDER, where the model goes");
  if (status == GL_OK) status = llm_session_init(&s, a, o.threads, 0, err);
  if (status == GL_OK) llm_session_print(&s);
  if (status == GL_OK) status = sft_session(&s, &o, err);
  llm_session_fini(&s);
  return status;
}

const command command_llm_sft = {
    .name = "llm sft",
    .arguments = "RECIPE -o FOLDER [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "supervised warm-up on a task's answers",
    .about =
        "Trains as the recipe's `world.warmup` says, on problems sampled from the task's training\n"
        "split (a generated task, or a JSON Lines file of prompt and answer), and prints loss and\n"
        "exact match on held-out problems. FOLDER gets config.json and model.safetensors as\n"
        "transformers reads them, tokenizer.json where there is one, and gepolab.json, the world.\n"
        "It can be a recipe's `world.model: {path: FOLDER}`. Given a FOLDER instead of a recipe,\n"
        "training goes on from its model. A folder for -o that has such files is refused. Ctrl-C\n"
        "ends the training and keeps the model.",
    .examples = "  gepolab llm sft llm_quick -o warm/\n"
                "  gepolab llm sft llm_quick -o warm/ world.warmup.steps=2000 --every 100 --json\n"
                "  gepolab llm sft warm/ -o warmer/ 'world.warmup={steps: 500, lr: 3e-4}'",
    .run = run_sft};

/* --- rl --- */

typedef struct rl_end {
  const llm_session *session;
  const char *folder;
} rl_end;

static gl_status save_model(void *self, const learner *l, gl_error *err) {
  const rl_end *end = self;
  const llm_session *s = end->session;
  return llm_folder_save(end->folder, s->doc, &s->spec, llm_learner_model(l), err);
}

static gl_status rl_session(llm_session *s, run_options *q, const char *folder, gl_error *err) {
  rl_end end = {s, folder};
  int made = 0;
  if (folder == NULL) return run_recipe(s->doc, &s->recipe, q, err);
  gl_status status = llm_folder_prepare(folder, &made, err);
  if (status != GL_OK) return status;
  q->at_end = save_model;
  q->self = &end;
  status = run_recipe(s->doc, &s->recipe, q, err);
  if (status != GL_OK) llm_folder_abandon(folder, made);
  return status;
}

static gl_status run_rl(args *a, gl_error *err) {
  run_options q = {0};
  const char *folder = NULL;
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where the model goes after the last update", &folder},
      {"study", 0, ARGS_STUDY, "FILE.db", "keep the run in this study file", &q.file},
      {"checkpoint", 0, ARGS_TEXT, "DIR", "keep checkpoints there, and go on from them",
       &q.checkpoints},
      {"checkpoint-every", 0, ARGS_COUNT, "N", "one every N updates (default: 300 s)", &q.every},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &q.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &q.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the summary as JSON", &q.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  llm_session s;
  status = llm_session_init(&s, a, q.threads, 0, err);
  if (status == GL_OK) status = rl_session(&s, &q, folder, err);
  llm_session_fini(&s);
  return status;
}

const command command_llm_rl = {
    .name = "llm rl",
    .arguments = "RECIPE|FOLDER [-o FOLDER] [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "reinforcement learning under a recipe's delays; keeps the model",
    .about =
        "Runs a recipe like `gepolab run`, and writes the model after the last update into a\n"
        "folder, as `llm sft` does. If training starts from a FOLDER, overrides take the place\n"
        "of the recipe.\n"
        "With --checkpoint the same command continues after Ctrl-C, kill or a crash.",
    .examples = "  gepolab llm rl llm_quick -o trained/\n"
                "  gepolab llm rl llm_quick algorithm=gepo_released --study runs.db\n"
                "  gepolab llm rl warm/ -o trained/ steps=200 --checkpoint going/",
    .run = run_rl};
