/* The state of a Hugging Face trainer, so also of TRL: trainer_state.json with "log_history":
 * [{"step": 1, "reward": 0.5, …}, …]. transformers 5.24, trainer_callback.py, save_to_json();
 * TRL 1.16. Python's json.dumps writes NaN and Infinity; TRL writes null where no sample had a
 * value.
 *
 * "eval_reward" becomes "eval/reward", but what an evaluation logs beside scores ("eval_runtime",
 * "eval_clip_ratio/low_mean", …) keeps its name, because names that begin with "eval/" are scores.
 * AsyncGRPOTrainer's "kl" is not that of GRPOTrainer (the KL
 * divergence to the reference) but k3 to the policy that generated the sample, so it becomes
 * "kl_k3"; its logs have a metric "ratio" beside it. */
#include "analysis/import/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const trainer_state_keys[] = {"log_history"};

static gl_status recognise_trainer_state(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, trainer_state_keys, 1);
  *is = k.is_object && k.found == 1;
  return GL_OK;
}

/* A record has its step among its metrics, in alphabetical order: it is read twice. */
typedef struct trainer_record {
  bool has_step, is_async;
  double step;
} trainer_record;

static trainer_record scan_record(json_reader *r) {
  trainer_record t = {.has_step = false};
  json_enter(r, '{');
  while (json_member(r)) {
    t.is_async |= strcmp(r->word, "ratio") == 0;
    if (strcmp(r->word, "step") != 0) {
      json_skip(r);
      continue;
    }
    t.step = log_step(r);
    t.has_step = true;
  }
  return t;
}

/* What evaluations log that is no score, after "eval_": transformers 5.24 speed_metrics() of
 * trainer_utils.py, TRL 1.16 trl/trainer/grpo_trainer.py. An entry is a whole key, or ends with a
 * slash. */
static bool is_no_score(const char *key) {
  static const char *const others[] = {"runtime",
                                       "samples_per_second",
                                       "steps_per_second",
                                       "num_tokens",
                                       "reward_std",
                                       "frac_reward_zero_std",
                                       "entropy",
                                       "kl",
                                       "step_time",
                                       "completions/",
                                       "clip_ratio/",
                                       "sampling/",
                                       "model_preparation_time"};
  const size_t n = strlen(key);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const size_t length = strlen(others[i]);
    if (strncmp(key, others[i], length) == 0 && (others[i][length - 1] == '/' || n == length))
      return true;
  }
  return strncmp(key, "rewards/", 8) == 0 && n > 4 && strcmp(key + n - 4, "/std") == 0;
}

/* The metric of a key in `metric`; false: the key is not one. */
static bool trainer_metric(const char *key, bool is_async, char metric[IMPORT_MOST_NAME + 2]) {
  if (strcmp(key, "step") == 0) return false;
  if (is_async && strcmp(key, "kl") == 0) key = "kl_k3";
  if (strncmp(key, "eval_", 5) == 0 && !is_no_score(key + 5))
    snprintf(metric, IMPORT_MOST_NAME + 2, "eval/%s", key + 5);
  else
    snprintf(metric, IMPORT_MOST_NAME + 2, "%s", key);
  return true;
}

static void read_trainer_record(log_builder *b, json_reader *r) {
  json_reader scan = *r;
  scan.word = NULL, scan.word_room = 0, scan.err = NULL;
  const trainer_record t = scan_record(&scan);
  const bool is_good = scan.status == GL_OK;
  free(scan.word);
  if (is_good && !t.has_step)
    json_fail(r, "a record of \"log_history\" has no \"step\", which transformers 5 writes; a "
                 "newer version may have renamed it");
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size > IMPORT_MOST_NAME)
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    else if (trainer_metric(r->word, t.is_async, metric))
      log_json(b, r, metric, t.step);
    else
      json_skip(r);
  }
}

static gl_status read_trainer_state(series_table **out, const import_file *f, gl_error *err) {
  log_builder b;
  json_reader r;
  bool has_history = false;
  log_begin(&b, f, err);
  json_begin(&r, f->text + f->start, f->size - f->start, f->name, err);
  r.python_numbers = 1;
  json_enter(&r, '{');
  while (b.status == GL_OK && json_member(&r)) {
    if (strcmp(r.word, "log_history") != 0) {
      json_skip(&r);
      continue;
    }
    has_history = true;
    json_enter(&r, '[');
    while (b.status == GL_OK && json_element(&r)) read_trainer_record(&b, &r);
  }
  if (!has_history)
    json_fail(&r, "there is no \"log_history\", where transformers 5 writes the metrics");
  const gl_status ended = json_end(&r);
  return log_end(&b, b.status != GL_OK ? b.status : ended, out);
}

const import_format format_trainer_state = {
    .about = "the state of a Hugging Face or TRL trainer (trainer_state.json)",
    .fixed_name = "trainer_state.json",
    .recognise = recognise_trainer_state,
    .series = read_trainer_state};
