/* gepolab llm bias: what it prints of a run's checkpoints, and what it refuses. */
#include "tests/support/cli_llm.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: llm bias");

typedef struct run_place {
  place p;
  char run[128];
} run_place;

/* A run of six updates with checkpoints after 2, 4 and 6. */
static run_place run_make(void) {
  run_place r = {.p = place_make()};
  cli_path(r.run, r.p.folder, "run");
  CU_ASSERT_FATAL(CLI_GIVES(0, "run", r.p.recipe, "steps=6", "eval_every=6", "optimizer.lr=0.003",
                            "algorithm=gepo", "--checkpoint", r.run, "--checkpoint-every", "2",
                            "checkpoint.keep=10", "-q"));
  return r;
}

/* "RUN/update-000000000004.checkpoint". */
static char *file_of(const run_place *r, int update, char path[200]) {
  snprintf(path, 200, "%s/update-%012d.checkpoint", r->run, update);
  return path;
}

static double of(const cJSON *json, size_t i, const char *key) {
  char path[80];
  snprintf(path, sizeof path, "measurements.%zu.%s", i, key);
  return number_at(json, path);
}

TEST(measurements_are_of_every_row_at_every_age) {
  const run_place r = run_make();
  cli_result a = CLI("llm", "bias", r.run, "--at", "4,6", "--staleness", "0,2", "-a", "is", "-a",
                     "{base: gepo, clip: none}", "-a", "{base: gepo, denominator: exact}", "-b",
                     "16", "-m", "1000", "-q", "--json");
  cli_result b = CLI("llm", "bias", r.run, "--at", "4,6", "--staleness", "0,2", "-a", "is", "-a",
                     "{base: gepo, clip: none}", "-a", "{base: gepo, denominator: exact}", "-b",
                     "16", "-m", "1000", "-q", "--json", "--threads", "1");
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  cJSON *json = json_of(&a);
  CU_ASSERT_EQUAL(number_at(json, "batches"), 16);
  CU_ASSERT_EQUAL(number_at(json, "reference_responses"), 1024); /* whole blocks of batches of 8 */
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(json, "measurements")), 12);
  for (size_t i = 0; i < 12; ++i) {
    CU_ASSERT_EQUAL(of(json, i, "update"), i < 6 ? 4 : 6);
    CU_ASSERT_EQUAL(of(json, i, "staleness"), i % 6 < 3 ? 0 : 2);
    const cJSON *m = cJSON_GetArrayItem(member_at(json, "measurements"), (int)i);
    CU_ASSERT_EQUAL(member_at(m, "reason") != NULL, i % 3 == 2);
    if (i % 3 == 2) continue;
    CU_ASSERT(of(json, i, "variance.value") > 0 && of(json, i, "variance.standard_error") > 0);
    CU_ASSERT(of(json, i, "bias.low") <= of(json, i, "bias.value") &&
              of(json, i, "bias.value") <= of(json, i, "bias.high"));
    CU_ASSERT(i % 6 < 3 ? of(json, i, "kl_k3_seq") == 0 : of(json, i, "kl_k3_seq") > 1e-9);
  }
}

/* What the file keeps of a checkpoint's measurement: the number behind `column` in a line of the
 * table `bias` that begins with these words. */
static double kept(const char *table, const char *begins, size_t column) {
  const char *line = strstr(table, begins);
  CU_ASSERT_PTR_NOT_NULL_FATAL(line);
  for (size_t i = 0; i < column; ++i) {
    line = strchr(line, '\t');
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    ++line;
  }
  return strtod(line, NULL);
}

/* A study for each checkpoint, with what was printed; measured again, its records are replaced. */
TEST(measurements_are_kept_for_each_checkpoint) {
  const run_place r = run_make();
  char study[128];
  cli_path(study, r.p.folder, "bias.db");
  for (int again = 0; again < 2; ++again) {
    cJSON *json =
        CLI_JSON("llm", "bias", r.run, "--at", "4,6", "--staleness", "0,2", "-a", "is", "-a",
                 "{base: gepo, clip: none}", "-b", "16", "-q", "--json", "-o", study);
    cli_result t = CLI("export", study, "-t", "bias", "-f", "tsv");
    CU_ASSERT_EQUAL_FATAL(t.code, 0);
    size_t lines = 0;
    for (const char *c = t.out; *c != '\0'; ++c) lines += *c == '\n';
    CU_ASSERT_EQUAL(lines, 1 + 8);
    for (size_t i = 0; i < 8; ++i) {
      char begins[64];
      snprintf(begins, sizeof begins, "\ntiny after %d updates\t%zu\t", i < 4 ? 4 : 6, i % 4);
      CU_ASSERT_EQUAL(kept(t.out, begins, 4), 4); /* group_size */
      CU_ASSERT_EQUAL(kept(t.out, begins, 7), of(json, i, "staleness"));
      CU_ASSERT_EQUAL(kept(t.out, begins, 8), 32); /* groups */
      CU_ASSERT_EQUAL(kept(t.out, begins, 9), of(json, i, "bias.value"));
      CU_ASSERT_EQUAL(kept(t.out, begins, 12), of(json, i, "variance.value"));
      CU_ASSERT_EQUAL(kept(t.out, begins, 19), of(json, i, "ess"));
    }
  }
}

/* Fresh batches are another sample than those of another seed, of the same policies. */
TEST(text_tells_sizes_and_a_seed_draws_anew) {
  const run_place r = run_make();
  cli_result a = CLI("llm", "bias", r.run, "-a", "is", "-b", "16", "-q"),
             b = CLI("llm", "bias", r.run, "-a", "is", "-b", "16", "-q", "--seed", "2");
  CU_ASSERT(a.code == 0 && b.code == 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(a.out, "16 batches of 2 x 4 responses"));
  CU_ASSERT_PTR_NOT_NULL(strstr(a.out, "512 responses for the true gradient"));
  CU_ASSERT_PTR_NOT_NULL(strstr(a.out, "after 6 updates"));
  CU_ASSERT_STRING_NOT_EQUAL(a.out, b.out);
}

/* Three rows of panels, a column for each checkpoint: cosine, variance and scaled MSE. */
TEST(a_figure_has_a_column_for_each_checkpoint) {
  const run_place r = run_make();
  char folder[128], path[160];
  cli_path(folder, r.p.folder, "figures");
  REFUSED(2, "give several, such as --staleness 0,16", "llm", "bias", r.run, "-f", folder, "-q");
  REFUSED(2, "ask for one", "llm", "bias", r.run, "-k", "0,2", "-f", folder, "--json", "-q");
  CU_ASSERT(CLI_GIVES(0, "llm", "bias", r.run, "--at", "4,6", "-k", "2,0", "-a", "is", "-a", "gepo",
                      "-a", "{base: gepo, denominator: exact}", "-b", "16", "-f", folder, "-q"));
  snprintf(path, sizeof path, "%s/tiny_gradients.tsv", folder);
  char *text = cli_read(path);
  size_t lines = 0, panels = 0;
  double x = -1;
  for (char *at = strtok(text, "\n"); at != NULL; at = strtok(NULL, "\n")) {
    int panel = 0, used = 0;
    if (sscanf(at, "%d\t%*[^\t]\t%lf%n", &panel, &x, &used) < 2 || used == 0) continue;
    ++lines;
    panels |= (size_t)1 << panel;
    CU_ASSERT(x == 0 || x == 2);
  }
  CU_ASSERT(lines >= 8 && panels != 0);
  snprintf(path, sizeof path, "%s/tiny_gradients.png", folder);
  CU_ASSERT_EQUAL(access(path, R_OK), 0);
}

/* Its variance is 0 and its cosine no number: there is nothing to draw, and the message says why.
 */
TEST(a_model_that_never_scores_has_no_figure) {
  const place p = place_make();
  char folder[128], run[128];
  cli_path(folder, p.folder, "figures"), cli_path(run, p.folder, "run");
  CU_ASSERT(CLI_GIVES(0, "run", p.recipe, "world.warmup.steps=1", "world.task.digits=2", "-q",
                      "--checkpoint", run, "--checkpoint-every", "1", "checkpoint.keep=9"));
  cli_result r = CLI("llm", "bias", run, "-a", "is", "-b", "16", "-k", "0,1", "-f", folder, "-q");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.err, "all gradients are zero, as where no response has a reward"));
}

static void damage(const char *path) {
  FILE *f = fopen(path, "r+b");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  CU_ASSERT_FATAL(fseek(f, -2000, SEEK_END) == 0);
  CU_ASSERT_FATAL(fputs("damage", f) >= 0 && fclose(f) == 0);
}

TEST(what_a_run_does_not_have_is_refused_by_name) {
  const run_place r = run_make();
  char path[200];
  REFUSED(2, "there is no checkpoint after 5 updates, but after 2, 4, 6", "llm", "bias", r.run,
          "--at", "5", "-q");
  REFUSED(2, "there is no checkpoint after 3 updates", "llm", "bias", r.run, "--staleness", "3",
          "-q");
  REFUSED(2, "after 6 updates no policy of the run is 64 updates old", "llm", "bias", r.run,
          "--staleness", "0,64", "-q");
  REFUSED(2, "a group_size of 1 leaves nothing to compare", "llm", "bias", r.run,
          "train.group_size=1", "-q");
  REFUSED(2, "belongs to another world, sampling or seed", "llm", "bias", r.run, "seed=9", "-q");
  REFUSED(2, "--staleness needs", "llm", "bias", r.run, "--staleness", "0,0");
  REFUSED(2, "--at needs", "llm", "bias", r.run, "--at", "all");
  REFUSED(2, "gspo", "llm", "bias", r.run, "-a", "gspoo");
  damage(file_of(&r, 4, path));
  REFUSED(2, path, "llm", "bias", r.run, "--staleness", "2", "-q");
  CU_ASSERT(CLI_GIVES(0, "llm", "bias", r.run, "--staleness", "4", "-a", "is", "-b", "16", "-q"));
  CU_ASSERT(truncate(file_of(&r, 6, path), 300) == 0);
  REFUSED(2, path, "llm", "bias", r.run, "-q");
}

TEST(what_is_no_run_of_a_transformer_is_refused) {
  static const char toy[] = "steps: 2\nworld: {kind: bandit, rewards: [0, 1]}\n";
  place p = place_make();
  char path[128], run[128];
  REFUSED(2, "no-such", "llm", "bias", "/no-such-folder");
  REFUSED(2, "is no folder with checkpoints", "llm", "bias", p.folder);
  cli_write(cli_path(path, p.folder, "toy.yaml"), toy, sizeof toy - 1);
  CU_ASSERT(CLI_GIVES(0, "run", path, "--checkpoint", cli_path(run, p.folder, "run"), "-q"));
  REFUSED(2, "the run is not of a transformer", "llm", "bias", run);
}
