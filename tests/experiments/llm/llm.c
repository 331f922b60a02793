/* gepolab llm: warm-up, RL, evaluation, generation, profile. */
#include "tests/support/cli_llm.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: llm");

TEST(a_warm_up_lowers_the_loss_and_leaves_a_folder) {
  place p = place_make();
  cli_result r = CLI("llm", "sft", p.recipe, "-o", p.model, "--json", "-q", "--every", "10");
  cJSON *d = json_of(&r);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "curve")), 6);
  CU_ASSERT(number_at(d, "curve.5.loss") < 0.8 * number_at(d, "curve.0.loss"));
  CU_ASSERT_EQUAL(number_at(d, "curve.5.step"), 60);
  CU_ASSERT_EQUAL(cli_files_in(p.model), 3);
  /* A second run writes the same bytes. */
  char other[128], line[400];
  CU_ASSERT(CLI_GIVES(0, "llm", "sft", p.recipe, "-o", cli_path(other, p.folder, "other"), "-q"));
  snprintf(line, sizeof line, "cmp -s %s/model.safetensors %s/model.safetensors", p.model, other);
  CU_ASSERT_EQUAL(system(line), 0);
  /* And training goes on from the folder. */
  r = CLI("llm", "sft", p.model, "-o", cli_path(other, p.folder, "third"), "--json", "-q",
          "world.warmup={steps: 20, batch: 16, lr: 1e-3, check_every: 10}");
  d = json_of(&r);
  CU_ASSERT(number_at(d, "loss") < 1.5);
}

TEST(info_names_sizes_and_memory) {
  place p = place_with_model();
  const char *const sources[] = {p.recipe, p.model};
  for (size_t i = 0; i < 2; ++i) {
    cJSON *d = CLI_JSON("llm", "info", sources[i], "--json");
    /* 15 tokens of 16 tied; q 16x16, k and v 8x16, o 16x16, feed-forward 3 x 48x16; norms. */
    double n = 15 * 16 + 2 * 256 + 2 * 128 + 3 * 768 + 2 * 8 + 3 * 16;
    CU_ASSERT_EQUAL(number_at(d, "model.parameters"), n);
    CU_ASSERT(number_at(d, "memory_bytes.total") <= number_at(d, "memory_bytes.free"));
    CU_ASSERT(number_at(d, "memory_bytes.gradients") == 4 * n);
    CU_ASSERT(is_true_at(d, "fits"));
  }
}

/* On the CPU replicas share the machine's memory. */
TEST(info_counts_for_each_device) {
  place p = place_make();
  cJSON *a = CLI_JSON("llm", "info", p.recipe, "--json", "world.backend=cpu"),
        *b = CLI_JSON("llm", "info", p.recipe, "--json", "world.backend=cpu", "world.devices=2");
  CU_ASSERT(number_at(a, "devices") == 1 && number_at(b, "devices") == 2);
  ASSERT_CLOSE(number_at(b, "memory_bytes.device"), number_at(a, "memory_bytes.device") / 2, 1e-9);
  CU_ASSERT(number_at(b, "memory_bytes.parameters") == number_at(a, "memory_bytes.parameters"));
  CU_ASSERT(number_at(b, "slots") <= number_at(a, "slots"));
  CU_ASSERT(CLI_GIVES(0, "llm", "rl", p.recipe, "-o", p.model, "-q", "world.backend=cpu",
                      "world.devices=2", "steps=2"));
  CU_ASSERT_EQUAL(cli_files_in(p.model), 3);
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", p.model, "-q", "--json", "world.backend=cpu"));
}

TEST(evaluation_repeats_and_its_numbers_fit_together) {
  place p = place_with_model();
  const char *const line[] = {"llm", "eval",  p.model, "--samples", "6",
                              "--k", "1,2,6", "-q",    "--json",    NULL};
  cli_result a = cli_run(NULL, line), b = cli_run(NULL, line);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  cJSON *d = json_of(&a);
  CU_ASSERT_EQUAL(number_at(d, "problems"), 10);
  double one = number_at(d, "sampled.pass.0.value"), two = number_at(d, "sampled.pass.1.value"),
         six = number_at(d, "sampled.pass.2.value");
  CU_ASSERT(0 <= one && one <= two && two <= six && six <= 1);
  ASSERT_CLOSE(one, number_at(d, "sampled.reward"), 1e-12);
  ASSERT_CLOSE(number_at(d, "greedy.pass.0.value"), number_at(d, "greedy.reward"), 1e-12);
  CU_ASSERT(number_at(d, "greedy.pass.0.low") <= number_at(d, "greedy.pass.0.value"));
  CU_ASSERT(number_at(d, "greedy.tokens") >= 1 && number_at(d, "greedy.tokens") <= 3);
  /* More samples keep the first ones, so more problems are solved, never fewer. */
  d = CLI_JSON("llm", "eval", p.model, "--samples", "12", "--k", "12", "-q", "--json");
  CU_ASSERT(number_at(d, "sampled.pass.0.value") >= six);
}

TEST(every_evaluation_set_is_measured) {
  place p = place_with_model();
  cli_result one = CLI("llm", "eval", p.recipe, "-q", "--json"),
             r = CLI(
                 "llm", "eval", p.recipe, "-q", "--json",
                 "world.evaluation={prompts: 10, sets: [{name: own}, {name: few, prompts: 4}]}");
  cJSON *alone = json_of(&one), *d = json_of(&r);
  CU_ASSERT_PTR_NULL(member_at(alone, "sets"));
  const cJSON *sets = member_at(d, "sets");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(sets), 2);
  CU_ASSERT_STRING_EQUAL(text_at(cJSON_GetArrayItem(sets, 1), "set"), "few");
  CU_ASSERT_EQUAL(number_at(d, "sets.0.problems"), 10);
  CU_ASSERT_EQUAL(number_at(d, "sets.1.problems"), 4);
  /* The first set is what a recipe without sets measures. */
  CU_ASSERT(cJSON_Compare(member_at(alone, "sampled"),
                          member_at(cJSON_GetArrayItem(sets, 0), "sampled"), 1));
  CU_ASSERT(cJSON_Compare(member_at(alone, "greedy"), member_at(d, "greedy"), 1));
}

TEST(a_recipe_is_evaluated_after_its_warm_up) {
  place p = place_with_model();
  cli_result folder = CLI("llm", "eval", p.model, "-q", "--json"),
             recipe = CLI("llm", "eval", p.recipe, "-q", "--json");
  cJSON *a = json_of(&folder), *b = json_of(&recipe);
  CU_ASSERT(cJSON_Compare(member_at(a, "greedy"), member_at(b, "greedy"), 1));
  CU_ASSERT(cJSON_Compare(member_at(a, "sampled"), member_at(b, "sampled"), 1));
}

TEST(text_comes_from_words_or_standard_input) {
  place p = place_with_model();
  const char *const piped[] = {"llm", "generate", p.model, "-n", "2", NULL};
  cli_result words = CLI("llm", "generate", p.model, "3+4=", "1+1=", "-n", "2"),
             lines = cli_run("3+4=\n1+1=", piped), none = cli_run("", piped),
             first = CLI("llm", "generate", p.model, "-n", "2", "3+4=");
  CU_ASSERT_EQUAL(words.code, 0);
  CU_ASSERT_STRING_EQUAL(words.out, lines.out);
  CU_ASSERT(none.code == 2 && strstr(none.err, "no prompt; give one") != NULL);
  CU_ASSERT(strncmp(words.out, first.out, first.out_size) == 0);
  CU_ASSERT(strncmp(words.out, "3+4=", 4) == 0);
}

TEST(generated_log_probabilities_are_printed) {
  place p = place_with_model();
  cJSON *d = CLI_JSON("llm", "generate", p.model, "3+4=", "--json", "-n", "3", "--top-k", "2",
                      "--temperature", "1.5", "--max-tokens", "2", "--seed", "9");
  const cJSON *list = member_at(d, "responses"), *item = NULL;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(list), 3);
  cJSON_ArrayForEach(item, list) {
    const cJSON *raw = member_at(item, "logprobs"), *cut = member_at(item, "logprobs_truncated");
    double sum = 0;
    CU_ASSERT(cJSON_GetArraySize(raw) >= 1 && cJSON_GetArraySize(raw) <= 2);
    for (int k = 0; k < cJSON_GetArraySize(raw); ++k) {
      double a = cJSON_GetArrayItem(raw, k)->valuedouble,
             b = cJSON_GetArrayItem(cut, k)->valuedouble;
      CU_ASSERT(a < b && b <= 0);
      sum += a;
    }
    ASSERT_CLOSE(sum, number_at(item, "logp"), 1e-12);
  }
  cli_result once = CLI("llm", "generate", p.model, "3+4=", "--greedy"),
             again = CLI("llm", "generate", p.model, "3+4=", "--greedy", "--seed",
                         "18446744073709551615");
  CU_ASSERT_STRING_EQUAL(once.out, again.out);
}

/* RL is what `run` does, and its last evaluation is that of the model it leaves. */
TEST(reinforcement_learning_keeps_its_model) {
  place p = place_with_model();
  char trained[128], db[128];
  cli_path(trained, p.folder, "trained");
  cli_path(db, p.folder, "runs.db");
  cli_result rl = CLI("llm", "rl", p.model, "-o", trained, "--study", db, "-q", "--json", "steps=3",
                      "train={groups: 2, group_size: 4}", "optimizer.lr=1e-2"),
             run = CLI("run", p.recipe, "-q", "--json", "steps=3", "optimizer.lr=1e-2");
  cJSON *a = json_of(&rl), *b = json_of(&run);
  CU_ASSERT_EQUAL(number_at(a, "last"), number_at(b, "last"));
  CU_ASSERT_EQUAL(number_at(a, "last_update.grad_norm"), number_at(b, "last_update.grad_norm"));
  cJSON *e = CLI_JSON("llm", "eval", trained, "-q", "--json", "--samples", "1");
  CU_ASSERT_EQUAL(number_at(e, "greedy.reward"), number_at(a, "last"));
  CU_ASSERT(CLI_GIVES(0, "export", db, "--table", "runs"));
}

/* The profile as overrides, and as files, is what a cluster section takes. */
TEST(profiles_are_dists_that_recipes_take) {
  place p = place_make();
  char yaml[128], line[600];
  cli_result r = CLI("llm", "profile", p.recipe, "-n", "3", "-q", "--overrides");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  const char *words[8] = {"sim", p.recipe, "--json"};
  size_t n = 3;
  for (char *w = strtok(r.out, "\n"); w != NULL && n < 7; w = strtok(NULL, "\n")) words[n++] = w;
  CU_ASSERT_EQUAL(n, 6);
  CU_ASSERT(cli_gives(0, words));
  cli_path(yaml, p.folder, "machine.yaml");
  CU_ASSERT(CLI_GIVES(0, "llm", "profile", p.recipe, "-n", "3", "-q", "--distribution", "lengths",
                      "-o", yaml));
  snprintf(line, sizeof line, "%s/machine.csv", p.folder);
  CU_ASSERT_EQUAL(access(line, R_OK), 0);
  snprintf(line, sizeof line, "cat %s >> %s", yaml, p.recipe);
  CU_ASSERT_EQUAL(system(line), 0);
  r = CLI("sim", p.recipe, "--json");
  cJSON *d = json_of(&r);
  CU_ASSERT(number_at(d, "batches_trained") >= 1);
}
