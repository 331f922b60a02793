/* gepolab plan: what it prints and writes, and descriptions that are refused with their place. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: plan");

/* A small description, in lines that tests change. */
static const char *const lines[] = {
    "name: mine",
    "train: {groups: 4, group_size: 4}",
    "cluster:",
    "  preset: areal",
    "  unit: group",
    "  partial: wait",
    "  lengths: {distribution: lognormal, mu: 5, sigma: 0.5}",
    "  learner: {step: 20}",
    "plan:",
    "  sites: [{name: here, gpus: 4}, {name: there, gpus: 2}]",
    "  links: [{between: [here, there], latency: 50ms, bandwidth: 1Gbit/s}]",
    "  sampler: {decoding: [{concurrency: 8, tokens_per_s: 50}]}",
    "  learner: {sites: [here], choices: [1, 2]}",
    "  search: {batches: 1, window: [1, 2], publish_every: 1}",
    "  limits: {staleness: 5}",
    "  selection: {replicates: 4, updates: 16, most: 40}",
};
enum { LINES = sizeof lines / sizeof *lines };

/* The description with one line replaced (from 1; 0: none). */
static void write_lines(const char *path, size_t line, const char *instead) {
  char text[4096];
  size_t n = 0;
  for (size_t i = 0; i < LINES; ++i)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", i + 1 == line ? instead : lines[i]);
  cli_write(path, text, n);
}

static int refuses(const char *path, size_t line, const char *instead, const char *words) {
  write_lines(path, line, instead);
  cli_result r = CLI("plan", path, "-q");
  const int ok = r.code == 2 && strstr(r.err, "mine.yaml:") != NULL && strstr(r.err, words) != NULL;
  if (!ok) fprintf(stderr, "%d: %s\n   wanted %s\n", r.code, r.err, words);
  return ok;
}

TEST(what_is_wrong_is_refused_with_its_line) {
  static const struct {
    size_t line;
    const char *instead, *words;
  } cases[] = {
      {9, "plann:", "no section `plan`"},
      {10, "  sites: []", ":10:10: 'plan.sites' must be a list"},
      {10, "  sites: [{name: here, gpus: 4}, {name: here, gpus: 2}]", ":10:34: there are two"},
      {10, "  sites: [{gpus: 4}]", ":10:11: a site of plan.sites has no name"},
      {10, "  sites: [{name: here}]", "does not say how many `gpus`"},
      {10, "  sites: [{name: here, gpu: 4}]", "unknown key 'gpu'"},
      {10, "  sites: [{name: here, gpus: 0}]", "gpus"},
      {11, "  links: [{between: [here, ther]}]",
       "no site 'ther' in plan.sites (did you mean 'there'?)"},
      {11, "  links: [{between: [here]}]", "which two sites it joins"},
      {11, "  links: [{between: [here, here]}]", "joins two sites"},
      {11, "  links: []", "no link between there and here"},
      {11, "  links: [{between: [here, there], latency: 3GB}]",
       ":11:45: 'plan.links.latency' is in s"},
      {11, "  links: [{between: [here, there], latency: {distribution: nrmal}}]", "distribution"},
      {12, "  sampler: {decoding: [{concurrency: 8}]}", "is a measurement"},
      {12, "  sampler: {gpus: 9}", "how fast a sampler is"},
      {12, "  sampler: {gpus: 9, decoding: [{concurrency: 8, tokens_per_s: 50}]}",
       "no split of the GPUs"},
      {13, "  learner: {sites: [hre]}", "did you mean 'here'?"},
      {13, "  learner: {gpus: 8}", "measured on 8 GPUs"},
      {13, "  learner: {serial: 2}", "plan.learner.serial"},
      {14, "  search: {window: [1.5]}", "whole numbers"},
      {14, "  search: {windows: 1}", "unknown key 'windows'"},
      {15, "  limits: {staleness: -1}", ":15:"},
      {16, "  selection: {replicates: 50, most: 10}", "less than `replicates`"},
      {16, "  selection: {updates: 16, warm_up: 15}", "at least 4 must be left"},
      {5, "  window: 3", ":5:11: a plan chooses cluster.window itself"},
      {5, "  tokens_per_s: 30", "both say how fast"},
      {6, "  partail: wait", ":6:3: unknown key 'partail'"},
      {8, "  learner: {eval_every: 9}", "cluster.learner.step"},
      {1, "sweep: {seed: [1, 2]}", "has no sweep"},
  };
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "mine.yaml");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    CU_ASSERT(refuses(path, cases[i].line, cases[i].instead, cases[i].words));
  CU_ASSERT(CLI_GIVES(2, "plan", "no_such_cluster"));
  CU_ASSERT(CLI_GIVES(2, "plan"));
}

/* The recommended recipe is a simulation's and a sweep's, and simulating it gives what was said. */
TEST(the_recommended_recipe_runs_as_it_is) {
  char folder[64], path[128], recipe[128], study[128], figures[128];
  cli_scratch_make(folder);
  write_lines(cli_path(path, folder, "mine.yaml"), 0, NULL);
  cli_path(recipe, folder, "planned.yaml");
  cli_path(study, folder, "study.db");
  cli_path(figures, folder, "figures");
  cli_result r = CLI("plan", path, "-q", "--json", "-o", recipe, "-f", figures);
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(figures), 5); /* pareto.tsv, .gp, .pdf, .png, .svg */
  cJSON *d = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *best = member_at(d, "recommended"), *rate = member_at(best, "responses_per_hour");
  CU_ASSERT(number_at(rate, "low") <= number_at(rate, "mean"));
  CU_ASSERT(number_at(rate, "mean") <= number_at(rate, "high"));
  CU_ASSERT(number_at(best, "staleness.mean") <= 5);
  CU_ASSERT(is_true_at(best, "keeps_limits"));
  CU_ASSERT(cJSON_IsObject(member_at(best, "recipe")));
  CU_ASSERT(cJSON_GetArraySize(member_at(d, "front")) >= 1);
  const int far = number_at(best, "samplers.there") > 0; /* whose bandwidth would be doubled */
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "more")), 4 + far);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "without")), far ? 2 : 0);
  CU_ASSERT_EQUAL(number_at(best, "samplers.there") + number_at(best, "left_out.there"), 2);
  CU_ASSERT(number_at(best, "thrown_away.mean") >= 0);
  cli_result s = CLI("sim", recipe, "--json", "steps=400");
  CU_ASSERT_EQUAL_FATAL(s.code, 0);
  cJSON *clock = json_parsed(s.out);
  ASSERT_CLOSE(3600 * number_at(clock, "samples_per_s"), number_at(rate, "mean"), 0.1);
  CU_ASSERT(CLI_GIVES(0, "sweep", recipe, "-o", study, "-q", "steps=5"));
}

/* What `gepolab llm profile --distribution lengths` writes is included by name. */
TEST(a_measured_section_is_included) {
  static const char machine[] =
      "cluster:\n  weights_bytes: 1000000\n  generation: 0.5\n"
      "  lengths: {\"distribution\":\"empirical\",\"file\":\"m.csv\",\"column\":\"tokens\"}\n"
      "  max_tokens: 64\n  tokens_per_s: 30\n  concurrency: 8\n"
      "  learner: {step: "
      "{\"distribution\":\"empirical\",\"file\":\"m.csv\",\"column\":\"step_s\"}}\n";
  static const char own[] =
      "include: machine.yaml\ntrain: {groups: 2, group_size: 4}\n"
      "cluster: {preset: areal, unit: group, partial: wait, generation: null}\n"
      "plan:\n  sites: [{name: a, gpus: 3}]\n  search: {window: 2}\n"
      "  selection: {replicates: 4, updates: 16, most: 8}\n";
  static const char csv[] = "generation_s,step_s,tokens\n1,2,30\n1,3,50\n1,2,20\n";
  char folder[64], path[128], recipe[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "machine.yaml"), machine, strlen(machine));
  cli_write(cli_path(path, folder, "m.csv"), csv, strlen(csv));
  cli_write(cli_path(path, folder, "own.yaml"), own, strlen(own));
  cli_path(recipe, "build", "plan-included.yaml"); /* another folder than the CSV's */
  cli_result r = CLI("plan", path, "-q", "-o", recipe);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(cli_fits(r.out, strlen(r.out)));
  CU_ASSERT(CLI_GIVES(0, "sim", recipe, "steps=5"));
  remove(recipe);
}

TEST(limits_that_nothing_keeps_write_nothing) {
  char folder[64], path[128], recipe[128];
  cli_scratch_make(folder);
  write_lines(cli_path(path, folder, "mine.yaml"), 15, "  limits: {staleness: 0, throughput: 1}");
  cli_path(recipe, folder, "planned.yaml");
  cli_result r = CLI("plan", path, "-q", "-o", recipe);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "no candidate of mine keeps plan.limits"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "Pareto front"));
  CU_ASSERT(cli_fits(r.out, strlen(r.out)));
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
}

/* A learner that takes 20 s for a batch of 16 responses, and constant decoding: the parts of an
 * update are known, so the verdict is. */
TEST(the_verdict_is_that_of_the_parts) {
  char folder[64], path[128];
  static const char text[] =
      "name: parts\ntrain: {groups: 1, group_size: 4}\n"
      "cluster:\n  preset: areal\n  unit: group\n  partial: wait\n  lengths: 100\n"
      "  learner: {step: 8}\nplan:\n  sites: [{name: here, gpus: 2}]\n"
      "  inside: {latency: 0, bandwidth: 1TB/s}\n"
      "  sampler: {decoding: [{concurrency: 4, tokens_per_s: 10}]}\n"
      "  learner: {choices: [1]}\n  search: {batches: 1, window: [2], publish_every: 1}\n"
      "  limits: {staleness: 5}\n  selection: {replicates: 3, updates: 200, most: 40}\n";
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "parts.yaml"), text, sizeof text - 1);
  /* a group takes 100 / 10 = 10 s of the sampler and 8 s of the learner: 18 s in turn, 10 s apart
   */
  cJSON *j = CLI_JSON("plan", path, "-q", "--json");
  const cJSON *v = cJSON_GetObjectItem(j, "verdict");
  const double most = cJSON_GetNumberValue(cJSON_GetObjectItem(v, "most"));
  const double brings = cJSON_GetNumberValue(cJSON_GetObjectItem(v, "brings"));
  if (!(fabs(most - 1.8) < 0.02)) fprintf(stderr, "most %g, brings %g\n", most, brings);
  CU_ASSERT(fabs(most - 1.8) < 0.02 && fabs(brings - 1.8) < 0.03);
  cli_result r = CLI("plan", path, "-q");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "assumed: cluster.weights_bytes is 0"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "assumed: no plan.inside"));
}

/* The same with prompts of 300 tokens, computed in 3 s: once for a group with a prefix cache, so
 * that it takes 13 s of the sampler and 8 s of the learner; otherwise for each of its four
 * responses, 22 s. Half of the groups rejected, by their source, doubles the sampler's. */
TEST(a_description_may_have_prompts_and_sources) {
  char folder[64], path[128];
  static const char text[] =
      "name: parts\ntrain: {groups: 1, group_size: 4}\n"
      "cluster:\n  preset: areal_2\n  partial: wait\n  lengths: 100\n  concurrency: 4\n"
      "  prompt_tokens: 300\n  prefill_tokens_per_s: 100\n"
      "  decoding: {running: [4], tokens_per_s: [10], prefix_cache: none}\n"
      "  learner: {step: 8}\nplan:\n  sites: [{name: here, gpus: 2}]\n"
      "  inside: {latency: 0, bandwidth: 1TB/s}\n"
      "  learner: {choices: [1]}\n  search: {batches: 1, window: [2], publish_every: 1}\n"
      "  limits: {staleness: 5}\n  selection: {replicates: 3, updates: 200, most: 40}\n";
  static const struct {
    const char *given;
    double seconds;
  } cases[] = {{"cluster.decoding.prefix_cache=none", 22},
               {"cluster.decoding.prefix_cache=version", 13},
               {"cluster.sources=[{name: a, reject: 0.5}]", 44}};
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "parts.yaml"), text, sizeof text - 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cJSON *j = CLI_JSON("plan", path, cases[i].given, "-q", "--json");
    const cJSON *v = cJSON_GetObjectItem(j, "verdict");
    const double most = cJSON_GetNumberValue(cJSON_GetObjectItem(v, "most"));
    const double expected = (cases[i].seconds + 8) / cases[i].seconds;
    if (!(fabs(most - expected) < 0.02)) fprintf(stderr, "%s: most %g\n", cases[i].given, most);
    CU_ASSERT(fabs(most - expected) < 0.02);
  }
}

/* The settings of every trainer, with the recommended candidate's numbers, and what is none. */
TEST(settings_of_trainers_are_those_of_the_plan) {
  char folder[64], path[128];
  static const struct {
    const char *word, *has[3], *none;
  } cases[] = {
      {"verl",
       {"data.train_batch_size=4", "actor_rollout_ref.rollout.n=4", "max_num_seqs=8"},
       NULL},
      {"prime-rl",
       {"orchestrator.batch_size=16", "orchestrator.group_size=4", "max_off_policy_steps="},
       "TARGET_LAG"},
      {"areal",
       {"train_dataset.batch_size=4", "gconfig.n_samples=4", "max_head_offpolicyness="},
       "nothing is dropped"},
      {"nemo-rl",
       {"grpo.num_prompts_per_step=4", "train_global_batch_size=16", "async_grpo.enabled=true"},
       "paced"},
      {"trl", {"num_generations=4", "max_staleness=", "weight_sync_steps=1"}, "always dropped"},
      {"slime",
       {"--rollout-batch-size 4", "--global-batch-size 16", "--update-weights-interval 1"},
       "one rollout"}};
  cli_scratch_make(folder);
  write_lines(cli_path(path, folder, "mine.yaml"), 0, "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cli_result r = CLI("plan", path, "-q", "--for", cases[i].word);
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\nverdict: "));
    for (size_t k = 0; k < 3; ++k) {
      if (strstr(r.out, cases[i].has[k]) == NULL) fprintf(stderr, "no %s\n", cases[i].has[k]);
      CU_ASSERT_PTR_NOT_NULL(strstr(r.out, cases[i].has[k]));
    }
    const char *none = strstr(r.out, "# not a setting: ");
    CU_ASSERT_EQUAL(none != NULL, cases[i].none != NULL);
    if (none != NULL && cases[i].none != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(none, cases[i].none));
  }
  REFUSED(2, "--for", "plan", path, "--for", "verll");
  cli_result less = CLI("plan", path, "-q", "--for", "verl", "cluster.stale=downweight",
                        "cluster.stale_decay=0.5");
  CU_ASSERT_PTR_NOT_NULL(strstr(less.out, "not weighed less"));
  CU_ASSERT_PTR_NULL(strstr(less.out, "max_off_policy_strategy"));
  /* numbers agree with the recommended candidate */
  cJSON *j = CLI_JSON("plan", path, "-q", "--json", "--for", "prime-rl");
  const cJSON *recommended = cJSON_GetObjectItem(j, "recommended");
  const cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "for"), "settings");
  char gpus[80], window[80];
  snprintf(gpus, sizeof gpus, "deployment.num_train_gpus=%.0f",
           cJSON_GetNumberValue(
               cJSON_GetObjectItem(cJSON_GetObjectItem(recommended, "learner"), "gpus")));
  snprintf(window, sizeof window, "orchestrator.max_off_policy_steps=%.0f",
           cJSON_GetNumberValue(cJSON_GetObjectItem(recommended, "window")));
  int found = 0;
  const cJSON *s = NULL;
  cJSON_ArrayForEach(s, list) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(s, "setting"));
    const char *place = cJSON_GetStringValue(cJSON_GetObjectItem(s, "place"));
    found += strcmp(text, gpus) == 0 || strcmp(text, window) == 0;
    CU_ASSERT(place != NULL && *place != '\0');
  }
  CU_ASSERT_EQUAL(found, 2);
}

TEST(it_stops_on_request_and_writes_nothing) {
  char folder[64], path[128], recipe[128];
  cli_scratch_make(folder);
  write_lines(cli_path(path, folder, "mine.yaml"), 16,
              "  selection: {replicates: 500, updates: 400, most: 1000}");
  cli_path(recipe, folder, "planned.yaml");
  const pid_t pid = CLI_START("plan", path, "-q", "-o", recipe);
  cli_wait_for_work(pid, 0.5);
  kill(pid, SIGINT);
  CU_ASSERT_EQUAL(cli_wait(pid), 130);
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
}
