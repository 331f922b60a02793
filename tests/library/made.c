/* Objects made of text: messages name the argument and the place in it, texts may have any style of
 * YAML, units are those of the field, and a recipe's files are found beside it. */
#include "core/config/fields.h"
#include "library/gepolab.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("library: objects made of text");

static void check_text(const gepolab_error *err, const char *begin, const char *says) {
  const int ok = strncmp(err->text, begin, strlen(begin)) == 0 && strstr(err->text, says) != NULL;
  if (!ok) fprintf(stderr, "wanted '%s... %s', got '%s'\n", begin, says, err->text);
  CU_ASSERT(ok);
}

TEST(messages_name_the_argument_and_the_place_in_it) {
  static const struct {
    const char *text, *place, *says;
  } rows[] = {{"gepa", "algorithm:1:1: ", "did you mean 'gepo'"},
              {"{base: gepo, clap: none}", "algorithm:1:14: ", "did you mean 'clip'"},
              {"base: gepo\nclip: nome\n", "algorithm:2:7: ", "'algorithm.clip' is text ('nome')"},
              {"[[[", "algorithm:1:", "not valid YAML"},
              {"", "algorithm:1:1: ", "the text is empty"},
              {"# nothing", "algorithm:", "the text is empty"}},
    dists[] = {{"nosuch", "delay:1:1: ", "is no distribution"},
               {"{distribution: lognormall}", "delay:1:16: ", "did you mean 'lognormal'"},
               {"5 kg", "delay:1:1: ", "kg"},
               {"", "delay:1:1: ", "the text is empty"}},
    recipes[] = {{"steps: 0", "recipe:1:8: ", "steps is '0'"},
                 {"steps: 5\nstpes: 6", "recipe:2:1: ", "did you mean 'steps'"},
                 {"include: /no/such/file.yaml", "recipe:1:10: ", "/no/such/file.yaml"}};
  gepolab_algorithm *algorithm;
  gepolab_delay *dist;
  gepolab_simulation *run;
  gepolab_error err;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; ++k) {
    CU_ASSERT_EQUAL(gepolab_algorithm_new(&algorithm, rows[k].text, &err), GEPOLAB_EINPUT);
    CU_ASSERT_PTR_NULL(algorithm);
    check_text(&err, rows[k].place, rows[k].says);
  }
  for (size_t k = 0; k < sizeof dists / sizeof *dists; ++k) {
    CU_ASSERT_EQUAL(gepolab_delay_new(&dist, dists[k].text, &err), GEPOLAB_EINPUT);
    CU_ASSERT_PTR_NULL(dist);
    check_text(&err, dists[k].place, dists[k].says);
  }
  for (size_t k = 0; k < sizeof recipes / sizeof *recipes; ++k) {
    CU_ASSERT_EQUAL(gepolab_simulate(&run, recipes[k].text, 1, &err), GEPOLAB_EINPUT);
    CU_ASSERT_PTR_NULL(run);
    check_text(&err, recipes[k].place, recipes[k].says);
  }
  CU_ASSERT_EQUAL(gepolab_delay_new(&dist, NULL, &err), GEPOLAB_EINPUT);
  CU_ASSERT_STRING_EQUAL(err.text, "the text of delay is NULL");
  CU_ASSERT_EQUAL(gepolab_simulate_file(&run, NULL, 1, &err), GEPOLAB_EINPUT);
}

TEST(any_style_of_yaml_is_one_algorithm) {
  static const char *const styles[] = {"{base: gepo, clip: none}", "base: gepo\nclip: none\n",
                                       "{\"base\": \"gepo\", \"clip\": \"none\"}"};
  gepolab_algorithm *algorithm;
  for (size_t k = 0; k < sizeof styles / sizeof *styles; ++k) {
    CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, styles[k], NULL), GEPOLAB_OK);
    CU_ASSERT_STRING_EQUAL(gepolab_algorithm_name(algorithm), "gepo(clip=none)");
    gepolab_algorithm_free(algorithm);
  }
}

static double median_of(const char *text) {
  gepolab_delay *dist;
  gepolab_error err = {.text = ""};
  double median = NAN;
  if (gepolab_delay_new(&dist, text, &err) != GEPOLAB_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(dist);
  CU_ASSERT_EQUAL(gepolab_delay_quantile(dist, 0.5, &median, NULL), GEPOLAB_OK);
  gepolab_delay_free(dist);
  return median;
}

/* A locale with a decimal comma, made in a folder; 0 if this machine cannot make one. */
static locale_t locale_with_comma(const char *folder) {
  char command[FILES_PATH + 80];
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
           folder);
  if (system(command) != 0) return (locale_t)0;
  setenv("LOCPATH", folder, 1);
  const locale_t made = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
  unsetenv("LOCPATH");
  return made;
}

TEST(numbers_do_not_depend_on_the_callers_locale) {
  char folder[64], text[GEPOLAB_FIELD_SIZE] = "";
  gepolab_algorithm *algorithm = NULL;
  cli_scratch_make(folder);
  const locale_t comma = locale_with_comma(folder);
  files_remove(folder);
  if (comma == (locale_t)0) SKIP("no locale with a decimal comma can be made");
  const double median = median_of("{distribution: exponential, mean: 2.5}");
  const locale_t before = uselocale(comma);
  const double same = median_of("{distribution: exponential, mean: 2.5}");
  const gepolab_status made =
      gepolab_algorithm_new(&algorithm, "{base: grpo, eps_low: 0.25}", NULL);
  if (made == GEPOLAB_OK) gepolab_algorithm_field(algorithm, "eps_low", text, NULL);
  CU_ASSERT(uselocale(before) == comma);
  freelocale(comma);
  gepolab_algorithm_free(algorithm);
  CU_ASSERT_EQUAL(made, GEPOLAB_OK);
  CU_ASSERT_EQUAL(same, median);
  CU_ASSERT_STRING_EQUAL(text, "0.25");
}

TEST(dists_have_units_of_time) {
  CU_ASSERT_EQUAL(median_of("30m"), 1800);
  CU_ASSERT_EQUAL(median_of("250 ms"), 0.25);
  CU_ASSERT_EQUAL(median_of("{distribution: lognormal, interval: [1m, 30m]}"),
                  median_of("{distribution: lognormal, interval: [60, 1800]}"));
}

/* Whatever a recipe may have at its top may be there; only what the clock needs is looked at. */
TEST(every_key_of_a_recipe_is_taken) {
  char text[200], key[64];
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const char *path = fields_at(i)->path;
    const size_t length = strcspn(path, ".");
    CU_ASSERT_FATAL(length < sizeof key);
    memcpy(key, path, length);
    key[length] = '\0';
    snprintf(text, sizeof text, "%s: ~\n", key);
    gepolab_simulation *run;
    gepolab_error err = {.text = ""};
    const gepolab_status status = gepolab_simulate(&run, text, 1, &err);
    if (strstr(err.text, "unknown key") != NULL) fprintf(stderr, "%s", err.text);
    CU_ASSERT(status == GEPOLAB_OK || strstr(err.text, "unknown key") == NULL);
    gepolab_simulation_free(run);
  }
}

TEST(a_recipe_in_a_file_finds_files_beside_it) {
  char folder[64], base[128], recipe[128], delays[128];
  cli_scratch_make(folder);
  cli_path(base, folder, "base.yaml");
  cli_path(recipe, folder, "mine.yaml");
  cli_path(delays, folder, "delays.csv");
  files_put(delays, "3\n3\n");
  files_put(base, "steps: 30\ncluster: {preset: fifo, samplers: 1, generation: 1,\n"
                  "  learner: {step: 1, eval_pause: 0}}\n");
  files_put(recipe, "include: base.yaml\nsteps: 20\n"
                    "cluster: {delay: {distribution: empirical, file: delays.csv}}\n");
  gepolab_simulation *run;
  gepolab_trained last;
  gepolab_error err = {.text = ""};
  CU_ASSERT_EQUAL(gepolab_simulate_file(&run, recipe, 1, &err), GEPOLAB_OK);
  if (run == NULL) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(run);
  CU_ASSERT_EQUAL(gepolab_simulation_batches(run), 20);
  CU_ASSERT_EQUAL_FATAL(gepolab_simulation_read(run, 19, 1, &last), 1);
  CU_ASSERT_EQUAL(last.version - last.drawn_at, 4);
  gepolab_simulation_free(run);
  files_put(recipe, "include: base.yaml\nstpes: 20\n");
  CU_ASSERT_EQUAL(gepolab_simulate_file(&run, recipe, 1, &err), GEPOLAB_EINPUT);
  check_text(&err, recipe, ":2:1: unknown key 'stpes'");
  cli_path(recipe, folder, "nothing.yaml");
  CU_ASSERT_EQUAL(gepolab_simulate_file(&run, recipe, 1, &err), GEPOLAB_EINPUT);
  check_text(&err, recipe, "No such file");
}
