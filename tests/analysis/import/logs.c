/* Logs of trainers, on files that their own writing code wrote (tests/golden/trainer_logs.py), and
 * on damaged, truncated, renamed and hostile ones. */
#include "analysis/import/gather.h"
#include "analysis/import/metric_names.h"
#include "analysis/import/read.h"
#include "core/base/records.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

SUITE("analysis: logs of trainers");

#define LOG(name) "tests/golden/trainer_logs/" name
#define SECOND(name) "tests/golden/second_logs/" name /* tests/golden/second_logs.py */
enum { STEPS = 12 };

/* The made-up run of trainer_logs.py. */
static double made_reward(int step) {
  return step <= 8 ? 0.1 + 0.1 * step : 0.9 - 0.2 * (step - 8);
}
static double made_grad_norm(int step) {
  return 0.4 + 0.05 * step;
}
static double made_kl(int step) {
  return 1e-3 * pow(1.5, step);
}

static series_table *log_read_file(const char *path) {
  series_table *t = NULL;
  gl_error err = {0};
  if (read_series(&t, path, NULL, &err) != GL_OK) printf("%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  return t;
}

static const series *metric_of(const series_table *t, const char *name) {
  for (size_t i = 0; i < t->n_series; i++)
    if (strcmp(t->series[i].metric, name) == 0) return &t->series[i];
  printf("no series %s\n", name);
  CU_FAIL_FATAL("a series is missing");
  return NULL;
}

/* The series has made(step) at first .. first + 11, `shift` less than the steps of the run. */
static bool is_made(const series_table *t, const char *name, double (*made)(int), int shift) {
  const series *s = metric_of(t, name);
  bool same = s->n == STEPS && s->n_nan == 0;
  for (int i = 0; i < STEPS && same; i++)
    same = s->step[i] == i + 1 - shift && fabs(s->value[i] - made(i + 1)) < 1e-6;
  return same;
}

static bool is_noted(const series_table *t, const char *text) {
  for (size_t i = 0; i < t->n_notes; i++)
    if (strstr(t->notes[i], text)) return true;
  return false;
}

TEST(the_file_logger_of_verl) {
  series_table *t = log_read_file(LOG("verl.jsonl"));
  CU_ASSERT_EQUAL(t->n_series, 16);
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "verl");
  CU_ASSERT(is_made(t, "critic/score/mean", made_reward, 0));
  CU_ASSERT(is_made(t, "rollout_corr/k3_kl", made_kl, 0));
  /* orjson writes NaN as null */
  const series *norm = metric_of(t, "actor/grad_norm");
  CU_ASSERT(norm->n == 11 && norm->n_nan == 1 && norm->nan_step[0] == 11);
  CU_ASSERT(metric_of(t, "val-core/aime24/acc/mean@8")->n == 3 && t->n_notes == 0);
  series_table_free(t);
}

TEST(the_state_of_a_trainer_with_nan_and_evaluations) {
  series_table *t = log_read_file(LOG("trainer_state.json"));
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "trainer_logs");
  CU_ASSERT(is_made(t, "reward", made_reward, 0) && is_made(t, "kl", made_kl, 0));
  const series *loss = metric_of(t, "loss"), *eval = metric_of(t, "eval/reward");
  CU_ASSERT(loss->n == 11 && loss->n_nan == 1 && loss->nan_step[0] == 11);
  CU_ASSERT(eval->n == 3 && eval->step[1] == 8 && eval->value[1] == made_reward(8) / 2);
  CU_ASSERT_EQUAL(t->n_notes, 0);
  series_table_free(t);
  t = log_read_file(LOG("async/checkpoint-12/trainer_state.json"));
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "async");
  CU_ASSERT(is_made(t, "kl_k3", made_kl, 0)); /* its kl is to the sampler */
  CU_ASSERT_EQUAL(metric_of(t, "sample/time_in_queue_s")->n, 11);
  series_table_free(t);
}

TEST(the_monitor_of_prime_rl_with_a_restart) {
  series_table *t = log_read_file(LOG("prime_rl/run-a/metrics.jsonl"));
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "run-a");
  CU_ASSERT(is_made(t, "mismatch_kl/all/mean", made_kl, 0));
  CU_ASSERT(is_made(t, "optim/grad_norm", made_grad_norm, 0));
  CU_ASSERT(is_made(t, "train/agg/effective/agent/reward/mean", made_reward, 0));
  const series *time = metric_of(t, "time_s");
  /* 60 s a step, three lines 0.5 s apart in each; steps 6 and 7 were done twice */
  CU_ASSERT(time->n == STEPS && fabs(time->value[11] - (13 * 60 + 3 * 7 * 2 * 0.5 - 0.5)) < 1e-3);
  CU_ASSERT_EQUAL(t->n_restarts, 1);
  CU_ASSERT(is_noted(t, "(1 restarts); the later values are used"));
  CU_ASSERT_EQUAL(metric_of(t, "loss/mean")->n, 11); /* the writer leaves infinities out */
  series_table_free(t);
}

TEST(the_metrics_of_miles) {
  series_table *t = log_read_file(LOG("miles/dashboard/metrics.jsonl"));
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "miles");
  CU_ASSERT(is_made(t, "rollout/raw_reward", made_reward, 1));
  CU_ASSERT(is_made(t, "train/train_rollout_kl", made_kl, 1));
  CU_ASSERT(metric_of(t, "train/loss")->n_nan == 1 && is_noted(t, "1 lines have no step"));
  CU_ASSERT_EQUAL(t->n_restarts, 0);
  series_table_free(t);
}

/* TRL's own run: beside its reward an evaluation logs lengths, clip ratios and its speed. */
TEST(what_an_evaluation_logs_beside_scores_is_no_score) {
  series_table *t = log_read_file(SECOND("trl/trainer_state.json"));
  size_t n_scores = 0;
  for (size_t i = 0; i < t->n_series; i++) n_scores += quantity_of(t->series[i].metric).is_score;
  CU_ASSERT_EQUAL(n_scores, 3); /* eval/reward and the mean of each of two rewards */
  CU_ASSERT_EQUAL(metric_of(t, "eval/rewards/reward_digit/mean")->n, 2);
  CU_ASSERT_EQUAL(metric_of(t, "eval_clip_ratio/low_mean")->n, 2);
  CU_ASSERT_EQUAL(metric_of(t, "eval_runtime")->n, 2);
  series_table_free(t);
}

/* The orchestrator is two steps ahead of the trainer in one file. */
TEST(two_writers_of_one_log_are_no_restart) {
  series_table *t = log_read_file(SECOND("prime_rl/run/metrics.jsonl"));
  CU_ASSERT_EQUAL(t->n_restarts, 0);
  const series *staleness = metric_of(t, "off_policy/mean"),
               *norm = metric_of(t, "optim/grad_norm");
  CU_ASSERT(staleness->n == 8 && staleness->step[0] == 3 && norm->n == 8 && norm->step[7] == 8);
  series_table_free(t);
}

/* Two optimiser steps for each rollout: 16 steps, and the time of 8 rollouts, 120 s apart. */
TEST(rollouts_and_optimiser_steps_of_miles_are_two_axes) {
  series_table *t = log_read_file(SECOND("miles/dashboard/metrics.jsonl"));
  const series *time = metric_of(t, "time_s");
  CU_ASSERT_EQUAL_FATAL(time->n, 8);
  for (size_t i = 0; i < 8; i++)
    CU_ASSERT(time->step[i] == (double)i && time->value[i] == 120.0 * (double)i);
  CU_ASSERT_EQUAL(metric_of(t, "train/ppo_kl")->n, 16);
  CU_ASSERT(is_noted(t, "count optimiser steps (up to 15), the others rollouts (up to 7)"));
  CU_ASSERT_EQUAL(t->n_restarts, 0);
  series_table_free(t);
}

TEST(lists_over_steps) {
  static const char *const files[] = {LOG("mimo.json"), LOG("mimo_archive/series.json")};
  for (int i = 0; i < 2; i++) {
    series_table *t = log_read_file(files[i]);
    const series *s = metric_of(t, "partial/avg_staleness"), *time = metric_of(t, "time_s");
    CU_ASSERT_STRING_EQUAL(s->run, i == 0 ? "mimo" : "mimo_archive");
    CU_ASSERT(s->n == 11 && s->step[8] == 10 && s->value[8] == 0);
    CU_ASSERT(fabs(s->value[10] - 2.4) < 1e-12);
    CU_ASSERT_EQUAL(metric_of(t, "dynsam/avg@n")->n, 10);
    CU_ASSERT(time->value[0] == (i == 0 ? 5000 : 0) && time->value[10] - time->value[0] == 60000);
    series_table_free(t);
  }
}

/* Sums a column of rows; *n: how many it has. */
typedef struct column_sum {
  const char *heading;
  double sum;
  size_t n, rows;
} column_sum;

static gl_status add_column(void *context, const sheet *s, gl_error *err) {
  column_sum *c = context;
  (void)err;
  for (size_t i = 0; i < s->n_columns; i++) {
    if (strcmp(s->heading[i], c->heading) != 0) continue;
    c->rows += s->n_rows;
    for (size_t row = 0; row < s->n_rows; row++) {
      double value;
      const char *text = sheet_text(s, row, i);
      if (text && csv_number(text, &value)) c->sum += value, c->n++;
    }
  }
  return GL_OK;
}

static column_sum column_of(const char *path, const char *heading) {
  column_sum c = {.heading = heading};
  gl_error err = {0};
  if (read_rows_each(path, NULL, add_column, &c, &err) != GL_OK) printf("%s\n", err.text);
  return c;
}

TEST(sessions_of_areal_are_rows_of_times) {
  const column_sum one = column_of(LOG("areal/sessions-r0.jsonl"), "response");
  const column_sum all = column_of(LOG("areal"), "response");
  CU_ASSERT(one.n == 12 && fabs(one.sum - (12 * 8 + 2 * 66)) < 1e-3);
  CU_ASSERT(all.n == 24 && all.rows == 24 && fabs(all.sum - 2 * one.sum - 12) < 1e-3);
  CU_ASSERT(fabs(column_of(LOG("areal"), "tools").sum - 8 * 1.5) < 1e-3);
  CU_ASSERT_EQUAL(column_of(LOG("areal"), "request").n, 22); /* the last session is pending */
}

TEST(attempts_of_miles_may_end_in_another_file) {
  const char *folder = LOG("miles/dashboard/trajectories");
  const column_sum request = column_of(folder, "request"), response = column_of(folder, "response"),
                   tools = column_of(folder, "tools"), span = column_of(folder, "span"),
                   half =
                       column_of(LOG("miles/dashboard/trajectories/20260921_14.jsonl"), "request"),
                   train = column_of(LOG("miles/dashboard/phases"), "train");
  CU_ASSERT(request.n == 20 && fabs(request.sum - 20 * 150) < 1e-3);
  CU_ASSERT_EQUAL(half.n, 9);
  /* one turn: 150 s; two turns: 5 s and 142 s with 3 s of a tool between them */
  CU_ASSERT(response.n == 20 && fabs(response.sum - (10 * 150 + 10 * 147)) < 1e-3);
  CU_ASSERT(tools.n == 10 && fabs(tools.sum - 30) < 1e-3);
  CU_ASSERT(span.n == 20 && span.sum == 10);
  CU_ASSERT(train.n == 12 && fabs(train.sum - (12 * 20 + 66)) < 1e-3);
}

static gl_status gather_one(gathered *g, const char *file, const char *format, gl_error *err) {
  const char *files[] = {file};
  return gather(g, &(gather_request){.files = files, .n_files = 1, .shape = {.format = format}},
                err);
}

TEST(folders_are_read_whole_and_a_later_checkpoint_is_enough) {
  gathered g;
  CU_ASSERT(gather_one(&g, LOG("async"), NULL, NULL) == GL_OK && g.n_series == 15);
  CU_ASSERT(g.n_notes == 1 && strstr(g.notes[0], "1 files were read, and 1 left out"));
  gathered_fini(&g);
  CU_ASSERT(gather_one(&g, LOG("miles"), NULL, NULL) == GL_OK && g.n_series == 5);
  gathered_fini(&g);
  gl_error err = {0};
  CU_ASSERT_EQUAL(gather_one(&g, LOG("areal"), NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "times of requests and no series of steps"));
  gathered_fini(&g);
}

TEST(series_take_our_names_by_the_definition_of_their_trainer) {
  static const struct {
    const char *name;
    metric known;
  } cases[] = {{"training/off_policy/trajectory_staleness/mean", METRIC_STALENESS},
               {"training/off_policy/trajectory_staleness/max", METRIC_COUNT},
               {"rollout_corr/k3_kl", METRIC_KL_K3},
               {"rollout_corr/kl", METRIC_COUNT},
               {"actor/ppo_kl", METRIC_COUNT},
               {"train/kl", METRIC_KL_REF},
               {"train/sample/staleness_mean", METRIC_STALENESS},
               {"off_policy/max", METRIC_STALENESS_MAX},
               {"mismatch_kl/all/mean", METRIC_KL_K3},
               {"response_length/mean", METRIC_RESPONSE_LENGTH},
               {"response_length/max", METRIC_COUNT},
               {"response_length/clip_ratio", METRIC_COUNT},
               {"some/response_length/std", METRIC_COUNT},
               {"some/grad_norm", METRIC_GRAD_NORM},
               {"some/grad_norm/avg", METRIC_GRAD_NORM},
               {"train/agg/effective/agent/reward/mean", METRIC_REWARD_MEAN},
               {"train/agg/all/agent/reward/mean", METRIC_COUNT},
               {"train/math/effective/agent/reward/mean", METRIC_COUNT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (quantity_of(cases[i].name).known != cases[i].known) printf("%s\n", cases[i].name);
    CU_ASSERT_EQUAL(quantity_of(cases[i].name).known, cases[i].known);
  }
  CU_ASSERT(quantity_of("val-core/aime24/acc/mean@8").is_score);
  CU_ASSERT(foreign_find("partial/12/frac") && !foreign_find("partial/x/frac"));
  CU_ASSERT(!foreign_find("partial//frac") && !foreign_find("partial/1/fraction"));
  for (size_t i = 0; foreign_at(i); i++) {
    const foreign_metric *f = foreign_at(i);
    CU_ASSERT(*f->name && *f->system && *f->definition && *f->source);
    CU_ASSERT_PTR_EQUAL(foreign_find(f->name), f); /* no name stands twice */
  }
}

/* --- files that are not as they should be --- */

static gl_status read_text(const char *text, const char *format, gl_error *err) {
  series_table *t = NULL;
  gl_error_clear(err);
  const gl_status status =
      read_series_text(&t, text, strlen(text), "f.json", &(shape_request){.format = format}, err);
  CU_ASSERT_EQUAL(status == GL_OK, t != NULL);
  series_table_free(t);
  return status;
}

#define SESSION                                                                                    \
  "{\"task_id\": 0, \"session_id\": 0, \"rank\": 0, \"status\": \"accepted\", \"submit_ts\": 1.0}"

TEST(what_a_newer_version_renames_is_named) {
  static const struct {
    const char *text, *format, *says;
  } cases[] = {
      {"{\"step\":1,\"data\":{\"a\":1}}\n{\"step\":2,\"metrics\":{\"a\":1}}", NULL,
       "f.json:2:21: the file logger of verl 0.9 writes \"step\" and then \"data\", and here is "
       "'metrics'"},
      {"{\"iteration\":1,\"data\":{\"a\":1}}\n", "verl", "here is 'iteration'"},
      {"{\"step\":1}\n", "verl", "no \"step\" with \"data\""},
      {"{\"step\":1,\"time\":1.7e9,\"a\":1}\n{\"global_step\":2,\"time\":1.7e9}\n", NULL,
       "here is 'global_step'"},
      {"{\"step\":1,\"time\":1.7e9,\"a\":1}\n{\"step\":2,\"time\":12}\n", NULL,
       "is no time of the epoch"},
      {"{\"log_history\":[{\"global_step\":1,\"loss\":1}]}", NULL, "has no \"step\""},
      {"{\"history\":[]}", "trainer_state", "there is no \"log_history\""},
      {"{\"ts\":1,\"step_key\":\"a\",\"step\":1,\"metrics\":{\"a\":1}}\n"
       "{\"ts\":1,\"step_name\":\"a\",\"step\":1,\"metrics\":{}}\n",
       NULL, "f.json:2:21: miles 0.1 does not write 'step_name' here"},
      {"{\"ts\":1,\"step_key\":\"a\",\"metrics\":{}}\n", "miles", "has no \"step\""},
      {"{\"steps\":[1,2],\"series\":{\"a\":[1,2,3]}}", NULL,
       "'a' has more values than there are steps (2)"},
      {"{\"steps\":[1,2],\"series\":{\"a\":[1]}}", NULL, "'a' has 1 values for 2 steps"},
      {"{\"steps\":[2,1],\"series\":{\"a\":[1,2]}}", NULL, "\"steps\" are not ascending"},
      {"{\"a\":[1,2]}", "step_lists", "axis.json"},
      {SESSION "\n", NULL, "give it to gepolab fit"}};
  gl_error err = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CU_ASSERT_EQUAL(read_text(cases[i].text, cases[i].format, &err), GL_EINPUT);
    if (!strstr(err.text, cases[i].says)) printf("%s\n  not: %s\n", cases[i].says, err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
  }
}

TEST(fields_of_events_that_are_renamed_are_named) {
  static const struct {
    const char *text, *format, *says;
  } cases[] = {
      {SESSION "\n{\"task_id\": 0, \"session_id\": 0, \"rank\": 0, \"status\": \"accepted\"}\n",
       NULL, "f.json:2:65: this session has no \"submit_ts\", which AReaL 2.0 writes"},
      {"{\"task_id\": -1, \"session_id\": 0, \"rank\": 0, \"status\": \"a\", \"submit_ts\": 1}\n",
       NULL, "\"task_id\" is negative"},
      {"{\"ts\":1,\"kind\":\"attempt_begin\",\"sample_index\":0,\"group_index\":0,\"turn\":-1,"
       "\"weight_version\":\"\",\"detail\":\"\"}\n",
       NULL, "'attempt_begin' is no kind of event"},
      {"{\"name\":\"a\",\"t0\":2,\"t1\":1,\"node\":\"\",\"gpus\":[],\"rank\":0,\"role\":\"\"}\n",
       NULL, "a phase ends before it begins"},
      {"{\"step\":1,\"data\":{}}\n", NULL, "this log has series of steps and no rows"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sheet s;
    gl_error err = {0};
    CU_ASSERT_EQUAL(
        read_rows_text(&s, cases[i].text, strlen(cases[i].text), "f.json", cases[i].format, &err),
        GL_EINPUT);
    if (!strstr(err.text, cases[i].says)) printf("%s\n  not: %s\n", cases[i].says, err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
    sheet_fini(&s);
  }
}

TEST(a_file_that_two_formats_would_read_is_refused_by_name) {
  static const char both[] =
      "{\"step\":1,\"time\":1.7e9,\"log_history\":[{\"step\":1,\"loss\":1}]}\n";
  gl_error err = {0};
  CU_ASSERT_EQUAL(read_text(both, NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(err.text, "f.json: both the state of a Hugging Face or TRL trainer"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--log-format trainer_state or --log-format prime_rl"));
  CU_ASSERT_EQUAL(read_text(both, "trainer_state", &err), GL_OK);
  CU_ASSERT_EQUAL(read_text(both, "trainer_stat", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'trainer_state'?"));
}

TEST(hostile_logs_are_refused) {
  gl_error err = {0};
  char long_name[1200], deep[400];
  snprintf(long_name, sizeof long_name, "{\"step\":1,\"data\":{\"%01050d\":1}}\n", 0);
  memset(deep, 0, sizeof deep);
  strcpy(deep, "{\"step\":1,\"data\":");
  for (int i = 0; i < 70; i++) strcat(deep, "{\"a\":");
  strcat(deep, "1\n");
  const char *const bad[] = {long_name,
                             deep,
                             "{\"step\":1e999,\"data\":{\"a\":1}}\n",
                             "{\"step\":null,\"data\":{\"a\":1}}\n",
                             "{\"step\":NaN,\"data\":{\"a\":1}}\n",
                             "{\"step\":1,\"data\":{\"a\":1}} x\n",
                             "{\"step\":1,\"data\":{\"a\":0x10}}\n",
                             "{\"step\":1,\"data\":{\"a\":1}}\nnot json\n",
                             "{\"step\":1,\"data\":{}}\n",
                             "{\"step\":1,\"data\":{\"\xff\":1}}\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CU_ASSERT_EQUAL(read_text(bad[i], "verl", &err), GL_EINPUT);
    CU_ASSERT(strncmp(err.text, "f.json", 6) == 0 && strlen(err.text) > 10);
  }
}

/* Every cut of every log is read up to the last whole line, or refused by name. */
TEST(cut_off_logs_are_read_to_the_last_whole_line) {
  static const char *const files[] = {LOG("verl.jsonl"), LOG("prime_rl/run-a/metrics.jsonl"),
                                      LOG("miles/dashboard/metrics.jsonl"),
                                      LOG("trainer_state.json"), LOG("mimo.json")};
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    char *text = NULL;
    size_t size = 0, read = 0, noted = 0, silent = 0;
    const bool has_lines = f < 3;
    CU_ASSERT_FATAL(csv_load(&text, &size, files[f], NULL) == GL_OK);
    const char *end = memchr(text, '\n', size);
    for (size_t cut = (size_t)(end - text) + 1; cut + 1 < size; cut += 7) {
      series_table *t = NULL;
      gl_error err = {0};
      if (read_series_text(&t, text, cut, files[f], NULL, &err) == GL_OK) {
        read++;
        noted += is_noted(t, "the last line is cut off");
      } else {
        silent += strncmp(err.text, files[f], strlen(files[f])) != 0;
      }
      series_table_free(t);
    }
    CU_ASSERT(silent == 0 && has_lines == (read > 0) && (!has_lines || noted > read / 2));
    free(text);
  }
}

TEST(a_compressed_log_is_the_same) {
  scratch s;
  char path[SCRATCH_PATH_SIZE], *text = NULL;
  size_t size = 0;
  scratch_make(&s);
  CU_ASSERT_FATAL(csv_load(&text, &size, LOG("verl.jsonl"), NULL) == GL_OK);
  gzFile gz = gzopen(scratch_path(&s, "verl.jsonl.gz", path), "wb");
  CU_ASSERT(gzwrite(gz, text, (unsigned)size) == (int)size && gzclose(gz) == Z_OK);
  series_table *t = log_read_file(path);
  CU_ASSERT_EQUAL(t->n_series, 16);
  CU_ASSERT_STRING_EQUAL(t->series[0].run, "verl");
  series_table_free(t);
  free(text);
  scratch_remove(&s);
}
