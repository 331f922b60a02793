/* gepolab llm sft: supervised warm-up by itself, its curve, and the model as a folder. */
#include "core/base/progress.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/base/seconds.h"
#include "experiments/base/signals.h"
#include "experiments/llm/folder.h"
#include "experiments/llm/session.h"
#include "llm/llm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A point of the curve: the mean loss since the point before, the held-out score there. */
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

/* --- what is printed --- */

static gl_status sft_print_json(const llm_session *s, const curve *c, const char *folder,
                                gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  cJSON *list = d != NULL ? cJSON_AddArrayToObject(d, "curve") : NULL;
  for (size_t i = 0; i < c->n && list != NULL; ++i) {
    cJSON *o = cJSON_CreateObject();
    if (o == NULL || !cJSON_AddItemToArray(list, o) ||
        json_add_number(o, "step", (double)c->points[i].step) == NULL ||
        json_add_number(o, "loss", c->points[i].loss) == NULL ||
        json_add_number(o, "score", c->points[i].score) == NULL)
      list = NULL;
  }
  const point *last = c->n > 0 ? &c->points[c->n - 1] : NULL;
  int ok = list != NULL && json_add_string(d, "name", s->recipe.name) != NULL &&
           json_add_number(d, "seed", (double)s->recipe.seed) != NULL &&
           json_add_string(d, "folder", folder) != NULL &&
           json_add_number(d, "steps", last != NULL ? (double)last->step : 0) != NULL &&
           json_add_number(d, "loss", last != NULL ? last->loss : NAN) != NULL &&
           json_add_number(d, "score", last != NULL ? last->score : NAN) != NULL;
  return report_json_if(ok, d, err);
}

static void sft_print_text(const llm_session *s, const curve *c, const char *folder,
                           double seconds) {
  char about[LLM_ABOUT_SIZE];
  printf("%s: %s\n      step      loss  held-out score\n", shown(s->recipe.name).text,
         shown(llm_session_about(s, about)).text);
  for (size_t i = 0; i < c->n; ++i)
    printf("  %8zu  %8.4f  %14.4f\n", c->points[i].step, c->points[i].loss, c->points[i].score);
  printf("%.1f s; the model is in %s\n", seconds, shown(folder).text);
}

/* --- the command --- */

typedef struct sft_options {
  const char *folder;
  size_t every, threads; /* 0: as the recipe looks at the score, all */
  int json, quiet;
} sft_options;

static gl_status sft_train(llm_session *s, curve *c, size_t every, gl_error *err) {
  c->most = s->spec.warmup.steps / every + s->spec.warmup.steps / s->spec.warmup.check_every + 3;
  c->points = calloc(c->most, sizeof *c->points);
  if (c->points == NULL) return gl_fail_memory(err, "the curve");
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
  if (status == GL_OK && o->json) status = sft_print_json(s, &c, o->folder, err);
  if (status == GL_OK && !o->json) sft_print_text(s, &c, o->folder, seconds_now() - begun);
  if (status == GL_OK && c.stopped)
    status = gl_fail(err, GL_EINTERRUPTED, "stopped before its end; the model so far is in %s",
                     o->folder);
  free(c.points);
  return status;
}

static gl_status run_sft(const command *self, int argc, char **argv, gl_error *err) {
  sft_options o = {0};
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where the model goes", &o.folder},
      {"every", 0, ARGS_COUNT, "N", "steps between points of the curve (warmup.check_every)",
       &o.every},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the curve as JSON", &o.json}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    llm_session s = {0};
    if (o.folder == NULL)
      status = gl_fail(err, GL_EINPUT, "llm sft needs -o FOLDER, where the model goes");
    if (status == GL_OK) status = llm_session_init(&s, &a, o.threads, 0, err);
    if (status == GL_OK) llm_session_tell(&s);
    if (status == GL_OK) status = sft_session(&s, &o, err);
    llm_session_fini(&s);
  }
  args_fini(&a);
  return status;
}

const command command_llm_sft = {
    .name = "llm sft",
    .arguments = "RECIPE -o FOLDER [key=value …]",
    .summary = "supervised warm-up on a task's answers",
    .about =
        "Trains as the recipe's `world.warmup` says, on problems drawn from the task's training\n"
        "split (a generated task, or a JSON Lines file of prompt and answer), and prints loss and\n"
        "exact match on held-out problems. FOLDER gets config.json and model.safetensors as\n"
        "transformers reads them, tokenizer.json where there is one, and gepolab.json, the world.\n"
        "It can be a recipe's `world.model: {path: FOLDER}`. Given a FOLDER instead of a recipe,\n"
        "training goes on from its model. Ctrl-C ends the training and keeps the model.",
    .examples = "  gepolab llm sft llm_quick -o warm/\n"
                "  gepolab llm sft llm_quick -o warm/ world.warmup.steps=2000 --every 100 --json\n"
                "  gepolab llm sft warm/ -o warmer/ 'world.warmup={steps: 500, lr: 3e-4}'",
    .run = run_sft};
