/* Checkpoints through the command: a run that is killed, stopped or meets a bad disk, and is
 * started again, ends with the bytes of one that was left alone. */
#include "core/random/rng.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: checkpoints");

/* Some 300 updates of about a millisecond; responses end where they like. */
#define BASE_WITH(more)                                                                            \
  "name: long\nsteps: 300\neval_every: 20\n"                                                       \
  "world: {kind: sequence, vocabulary: 4, horizon: 5, prompts: 4, end_token: true}\n"              \
  "optimizer: {kind: adam, lr: 0.05, decay: cosine}\n"                                             \
  "train: {groups: 8, group_size: 8, minibatches: 2" more "}\n"
#define BASE BASE_WITH("")
static const char heterorl[] = BASE "cluster: {preset: heterorl, max_delay: 600}\n";
/* Weights arrive while batches are generated: batches in the checkpoint are drawn in part. */
static const char in_flight[] = BASE
    "cluster: {preset: areal, generation: {distribution: uniform, min: 60, max: 300}, delay: 20}\n";

/* Samplers draw from versions that the learner has left; the clock runs again from lengths. */
static const char coupled[] = BASE
    "cluster: {preset: heterorl, samplers: 3, max_delay: 300, coupled: true, tokens_per_s: 0.05, "
    "mtbf: {distribution: exponential, mean: 3000}, mttr: 60, learner: {capacity: 3}}\n";

/* Batches take as many rounds as it takes to fill them. */
static const char filtered[] =
    BASE_WITH(", filter_groups: {enable: true, gen_batch_size: 3, "
              "max_num_gen_batches: 6}") "cluster: {preset: heterorl, samplers: 3, "
                                         "max_delay: 300, coupled: true, "
                                         "tokens_per_s: 0.05, "
                                         "mtbf: {distribution: exponential, mean: 9000}, mttr: "
                                         "60, learner: {capacity: 3}}\n";

/* Groups come one by one: from several versions in an update, some thrown away, as many as hold a
 * number of tokens. */
static const char units[] =
    BASE "cluster: {preset: fifo, samplers: 3, unit: group, window: 4, tokens_per_s: 10, delay: 9, "
         "lengths: {distribution: exponential, mean: 900}, prompt_lengths: {distribution: uniform, "
         "min: 0.2, max: 2}, "
         "mtbf: {distribution: exponential, mean: 3000}, mttr: 60, learner: {tokens: 50000}}\n";
/* Single responses, of which some of a group are trained while others wait. */
static const char response_units[] = BASE
    "cluster: {preset: fifo, samplers: 3, unit: response, window: 4, tokens_per_s: 10, delay: 9, "
    "concurrency: 12, lengths: {distribution: exponential, mean: 900}, mtbf: {distribution: "
    "exponential, mean: "
    "3000}, mttr: 60}\n";
static const char coupled_response_units[] = BASE
    "cluster: {preset: fifo, samplers: 3, unit: response, partial: continue, window: 4, "
    "coupled: true, tokens_per_s: 0.05, delay: {distribution: exponential, mean: 20}, concurrency: "
    "12}\n";
static const char coupled_units[] =
    BASE "cluster: {preset: one_step_off, samplers: 3, unit: group, partial: drop, coupled: true, "
         "tokens_per_s: 0.05, delay: {distribution: exponential, mean: 60}, concurrency: 12}\n";

/* Responses go on under new weights, each from a token of its own: groups in the checkpoint are
 * drawn in part, or too far. */
#define CONTINUES                                                                                  \
  "preset: fifo, samplers: 3, unit: group, partial: continue, window: 8, delay: {distribution: "   \
  "exponential, mean: 20}, concurrency: 12, mtbf: {distribution: exponential, mean: 3000}, mttr: " \
  "60, "                                                                                           \
  "interrupt: 2"
static const char partial_units[] = BASE
    "cluster: {" CONTINUES ", tokens_per_s: 10, lengths: {distribution: exponential, mean: 900}}\n";
static const char coupled_partial_units[] =
    BASE "cluster: {" CONTINUES ", tokens_per_s: 0.05, coupled: true}\n";

/* Some of the groups that wait in a checkpoint will have been too old for their full weight. */
#define WEIGHTED                                                                                   \
  "preset: fifo, samplers: 3, unit: group, window: 1, stale: downweight, stale_decay: 0.25, "      \
  "concurrency: 12, delay: {distribution: exponential, mean: 60}"
static const char weighted_units[] = BASE
    "cluster: {" WEIGHTED ", tokens_per_s: 10, lengths: {distribution: exponential, mean: 900}}\n";
static const char coupled_weighted_units[] =
    BASE "cluster: {" WEIGHTED ", tokens_per_s: 0.05, coupled: true}\n";

/* A transformer's state is another one, with parameters of several versions. */
static const char transformer[] =
    "name: transformer\nsteps: 60\neval_every: 20\n"
    "world:\n  kind: llm\n  backend: cpu\n"
    "  model: {layers: 1, hidden: 16, heads: 2, context: 32}\n"
    "  task: {kind: sorting, length: 3}\n  warmup: {steps: 5, batch: 8}\n"
    "  evaluation: {kind: sampled, prompts: 16, samples: 1, halves: true, sets: [{name: own}, "
    "{name: "
    "long, task: {length: 4}}]}\n"
    "train: {groups: 4, group_size: 4}\n"
    "cluster: {preset: areal, samplers: 3, delay: 20, coupled: true, tokens_per_s: 0.05, "
    "unit: group, kv_cache: keep}\n";

/* A buffer of right responses. */
#define REPLAYING                                                                                  \
  "name: replaying\nsteps: 60\neval_every: 20\n"                                                   \
  "world:\n  kind: llm\n  backend: cpu\n"                                                          \
  "  model: {layers: 1, hidden: 16, heads: 2, context: 32}\n"                                      \
  "  task: {kind: sorting, length: 2, values: 5}\n"                                                \
  "  warmup: {steps: 150, batch: 8, lr: 0.01}\noptimizer: {lr: 0.001}\n"                           \
  "train: {groups: 4, group_size: 4, replay: {coef: 0.3, responses: 6, size: 40}}\n"
static const char replaying[] = REPLAYING "cluster: {preset: fifo, samplers: 3, delay: 20}\n";
static const char coupled_replaying[] =
    REPLAYING "cluster: {preset: fifo, samplers: 3, delay: 20, coupled: true, unit: response, "
              "tokens_per_s: 0.05}\n";

typedef struct bench {
  char folder[64], recipe[128], checkpoints[128], end[128], other_end[128], db[128], other_db[128];
} bench;

/* In memory where that can be had: hundreds of files are flushed to the disk here. */
static void bench_make(bench *b, const char *text) {
  snprintf(b->folder, sizeof b->folder, "/dev/shm/gepolab-test-XXXXXX");
  if (access("/dev/shm", W_OK) != 0 || mkdtemp(b->folder) == NULL) cli_scratch_make(b->folder);
  cli_scratch_adopt(b->folder);
  cli_path(b->recipe, b->folder, "long.yaml");
  cli_path(b->checkpoints, b->folder, "checkpoints");
  cli_path(b->end, b->folder, "end.state");
  cli_path(b->other_end, b->folder, "other.state");
  cli_path(b->db, b->folder, "runs.db");
  cli_path(b->other_db, b->folder, "other.db");
  cli_write(b->recipe, text, strlen(text));
}

static int same_tables(const char *a, const char *b) {
  static const char *const tables[] = {"steps", "evals",     "set_evals", "runs",
                                       "fates", "staleness", "clock"};
  int same = 1;
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i) {
    cli_result x = CLI("export", a, "--table", tables[i]),
               y = CLI("export", b, "--table", tables[i]);
    int equal = x.code == 0 && y.code == 0 && x.out_size > 50 && strcmp(x.out, y.out) == 0;
    if (!equal) fprintf(stderr, "%s differ: %s %s\n", tables[i], x.err, y.err);
    same = same && equal;
  }
  return same;
}

/* --- the files --- */

/* Updates of the newest checkpoint in the folder, 0 if there is none; *n of how many. */
static unsigned long newest(const char *folder, size_t *n) {
  DIR *all = opendir(folder);
  unsigned long best = 0, updates;
  *n = 0;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char rest = 0;
    if (sscanf(e->d_name, "update-%12lu.checkpoin%c", &updates, &rest) != 2 || rest != 't')
      continue;
    if (strstr(e->d_name, ".tmp") != NULL) continue;
    if (updates > best) best = updates;
    ++*n;
  }
  if (all != NULL) closedir(all);
  return best;
}

static const char *file_of(char path[256], const bench *b, unsigned long updates) {
  snprintf(path, 256, "%s/update-%012lu.checkpoint", b->checkpoints, updates);
  return path;
}

static void flip_bit(const char *path, double at) {
  size_t n = 0;
  unsigned char *bytes = files_read(path, &n);
  CU_ASSERT_FATAL(bytes != NULL);
  size_t i = (size_t)(at * (double)(n - 1));
  bytes[i] ^= 4;
  files_write(path, bytes, n);
  free(bytes);
}

/* --- running --- */

#define CHECKPOINTED "--checkpoint", b->checkpoints, "-q", "--json"

/* The run that nobody disturbs, and without checkpoints. */
static cli_result undisturbed(const bench *b) {
  cli_result r = CLI("run", b->recipe, "-q", "--json", "--save", b->end, "-o", b->db);
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  return r;
}

static cli_result disturbed(const bench *b, const char *every) {
  return CLI("run", b->recipe, CHECKPOINTED, "--checkpoint-every", every, "--save", b->other_end,
             "-o", b->other_db);
}

static pid_t start(const bench *b, const char *every) {
  return CLI_START("run", b->recipe, CHECKPOINTED, "--checkpoint-every", every, "--save",
                   b->other_end);
}

/* Waits until a checkpoint of so many updates is there, or the process has ended. */
static void wait_for(const bench *b, pid_t pid, unsigned long updates) {
  size_t n;
  for (int i = 0; i < 20000 && newest(b->checkpoints, &n) < updates; ++i) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *from = fopen(path, "r");
    int read = from != NULL ? fscanf(from, "%*d (%*[^)]) %c", &state) : 0;
    if (from != NULL) fclose(from);
    if (read == 1 && state == 'Z') return;
    usleep(500);
  }
}

static void end_as_if_undisturbed(const bench *b, const cli_result *whole, const char *every) {
  cli_result r = disturbed(b, every);
  CU_ASSERT_EQUAL(r.code, 0);
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  CU_ASSERT_STRING_EQUAL(r.out, whole->out);
  CU_ASSERT(files_equal(b->end, b->other_end));
  CU_ASSERT(same_tables(b->db, b->other_db));
}

/* Killed so often (a third as often under sanitizers), by turns when a number of updates is on disk
 * and after a time, each drawn from a fixed seed. */
static void survives_kills(const char *text, unsigned long steps, uint64_t kills) {
  if (SANITIZED) kills = (kills + 2) / 3;
  bench b[1];
  bench_make(b, text);
  cli_result whole = undisturbed(b);
  unsigned long last = 0;
  size_t n;
  for (uint64_t i = 0; i < kills; ++i) {
    rng_words w = rng_block(rng_stream_at(3, RNG_TEST, 77), i);
    pid_t pid = start(b, i < kills / 2 ? "1" : "7");
    if (i % 2 == 0)
      wait_for(b, pid, last + 1 + (unsigned long)((double)steps / 6 * rng_u01(w.v[0])));
    else
      cli_sleep_ms((long)(60 * rng_u01(w.v[1])));
    kill(pid, SIGKILL);
    cli_wait(pid);
    unsigned long now = newest(b->checkpoints, &n);
    CU_ASSERT(now >= last && n <= 3); /* two, and a third until the oldest is removed */
    last = now;
  }
  CU_ASSERT(last > 0);
  end_as_if_undisturbed(b, &whole, "7");
  CU_ASSERT(newest(b->checkpoints, &n) == steps && n == 2);
  /* Nothing half-written stays; a transformer's warm-up is there too. */
  CU_ASSERT_EQUAL(cli_files_in(b->checkpoints), strstr(text, "kind: llm") != NULL ? 3 : 2);
  end_as_if_undisturbed(b, &whole, "7"); /* and once more from its end */
}

TEST(a_run_killed_ten_times_ends_as_if_it_had_not_been) {
  survives_kills(heterorl, 300, 10);
}

TEST(segments_in_flight_survive_kills) {
  survives_kills(in_flight, 300, 6);
}

TEST(coupled_runs_survive_kills) {
  survives_kills(coupled, 300, 10);
}

TEST(units_survive_kills) {
  survives_kills(units, 300, 8);
}

TEST(dynamic_sampling_survives_kills) {
  survives_kills(filtered, 300, 8);
}

TEST(coupled_units_survive_kills) {
  survives_kills(coupled_units, 300, 8);
}

TEST(groups_that_go_on_under_new_weights_survive_kills) {
  survives_kills(partial_units, 300, 6);
  survives_kills(coupled_partial_units, 300, 6);
}

TEST(single_responses_survive_kills) {
  survives_kills(response_units, 300, 4);
  survives_kills(coupled_response_units, 300, 4);
}

TEST(weights_of_stale_groups_survive_kills) {
  survives_kills(weighted_units, 300, 4);
  survives_kills(coupled_weighted_units, 300, 4);
}

TEST(coupled_transformers_survive_kills) {
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0); /* writes into nobody's */
  survives_kills(transformer, 60, 6);
}

/* On both clocks; and replay changes the run, so that its buffer is not empty. */
TEST(replayed_responses_survive_kills) {
  bench b[1];
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0);
  survives_kills(replaying, 60, 6);
  survives_kills(coupled_replaying, 60, 4);
  bench_make(b, replaying);
  cli_result with = undisturbed(b);
  cli_result without = CLI("run", b->recipe, "-q", "--json", "train.replay.coef=0");
  CU_ASSERT(without.code == 0 && strcmp(with.out, without.out) != 0);
}

/* --- damage --- */

/* Leaves checkpoints of 100 and 110 updates, or ten or twenty more. */
static unsigned long run_to_the_middle(const bench *b) {
  unsigned long last = 300;
  size_t n;
  for (int tries = 0; tries < 20 && last == 300; ++tries) { /* a busy machine may look too late */
    cli_scratch_remove(b->checkpoints);
    pid_t pid = start(b, "10");
    wait_for(b, pid, 110);
    kill(pid, SIGKILL);
    cli_wait(pid);
    last = newest(b->checkpoints, &n);
  }
  CU_ASSERT_FATAL(last >= 110 && last < 300);
  char path[256];
  if (n == 3) unlink(file_of(path, b, last - 20)); /* killed before it was removed */
  return last;
}

TEST(a_damaged_newest_checkpoint_costs_the_updates_since_the_one_before) {
  for (int how = 0; how < 4; ++how) {
    bench b[1];
    char path[256];
    bench_make(b, heterorl);
    cli_result whole = undisturbed(b);
    unsigned long last = run_to_the_middle(b);
    file_of(path, b, last);
    if (how < 2) flip_bit(path, how == 0 ? 0 : 0.7);
    if (how == 2) CU_ASSERT(truncate(path, 5000) == 0);
    if (how == 3) CU_ASSERT(truncate(path, 0) == 0);
    cli_result r = CLI("run", b->recipe, CHECKPOINTED, "--save", b->other_end);
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, path));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "cut short"));
    char says[64];
    snprintf(says, sizeof says, "goes on after update %lu of 300", last - 10);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, says));
    CU_ASSERT_STRING_EQUAL(r.out, whole.out);
    CU_ASSERT(files_equal(b->end, b->other_end));
  }
}

TEST(nothing_is_started_over_when_all_are_damaged) {
  bench b[1];
  char one[256], two[256];
  bench_make(b, heterorl);
  unsigned long last = run_to_the_middle(b);
  flip_bit(file_of(one, b, last), 0.9);
  flip_bit(file_of(two, b, last - 10), 0.2);
  cli_result r = CLI("run", b->recipe, CHECKPOINTED, "--save", b->other_end);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, one));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, two));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "delete them"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "another folder"));
  CU_ASSERT(r.out_size == 0 && access(b->other_end, F_OK) != 0);
  CU_ASSERT_EQUAL(cli_files_in(b->checkpoints), 2);
}

/* --- whose checkpoints --- */

TEST(checkpoints_of_another_recipe_are_refused_and_left_alone) {
  bench b[1];
  size_t n;
  bench_make(b, heterorl);
  unsigned long last = run_to_the_middle(b);
  static const char *const others[] = {"seed=2", "steps=301", "algorithm=gepo",
                                       "cluster.max_delay=700"};
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    cli_result r = CLI("run", b->recipe, others[i], CHECKPOINTED);
    CU_ASSERT_EQUAL(r.code, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "another recipe"));
  }
  CU_ASSERT(newest(b->checkpoints, &n) == last && n == 2);
  /* What changes no result makes no other recipe. */
  cli_result whole = undisturbed(b);
  cli_result r = CLI("run", b->recipe, CHECKPOINTED, "description=words", "checkpoint.every=30",
                     "checkpoint.keep=5", "-t", "2");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_STRING_EQUAL(r.out, whole.out);
  CU_ASSERT(newest(b->checkpoints, &n) == 300 && n == 5);
}

/* The program under another linker's identifier: it computes the same and is not the same build. 0
 * if it has none. */
static int copy_program(const char *to) {
  static const char note[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU"; /* and the identifier */
  const char *own = getenv("GEPOLAB");
  size_t size;
  unsigned char *bytes = files_read(own != NULL && *own != '\0' ? own : "build/gepolab", &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  size_t at = 0;
  while (at + sizeof note < size && memcmp(bytes + at, note, sizeof note) != 0) ++at;
  const int has_one = at + sizeof note < size;
  if (has_one) bytes[at + sizeof note] ^= 1;
  files_write(to, bytes, size);
  CU_ASSERT_FATAL(chmod(to, 0755) == 0);
  free(bytes);
  return has_one;
}

TEST(another_build_goes_on_and_says_so) {
  static const char says[] = "another build of this version";
  bench b;
  char program[128];
  bench_make(&b, heterorl);
  const char *own = getenv("GEPOLAB");
  char *before = own != NULL ? strdup(own) : NULL;
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "--checkpoint", b.checkpoints, "-q", "steps=20"));
  cli_result same = CLI("run", b.recipe, "--checkpoint", b.checkpoints, "-q", "steps=20");
  const int differs = copy_program(cli_path(program, b.folder, "program"));
  CU_ASSERT_FATAL(setenv("GEPOLAB", program, 1) == 0);
  cli_result other = CLI("run", b.recipe, "--checkpoint", b.checkpoints, "-q", "steps=20");
  CU_ASSERT((before != NULL ? setenv("GEPOLAB", before, 1) : unsetenv("GEPOLAB")) == 0);
  CU_ASSERT(same.code == 0 && strstr(same.err, says) == NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(same.err, "goes on after update 20 of 20"));
  CU_ASSERT(other.code == 0 && (strstr(other.err, says) != NULL) == differs);
  CU_ASSERT_PTR_NOT_NULL(strstr(other.err, "goes on after update 20 of 20"));
  free(before);
  CU_ASSERT_EQUAL(remove(program), 0);
}

TEST(what_else_is_in_the_folder_stays) {
  static const char *const names[] = {"letter.txt", "update-1.checkpoint",
                                      "update-000000000001.txt",
                                      "update-000000000001.checkpoint.bak"};
  bench b[1];
  char path[300];
  bench_make(b, heterorl);
  CU_ASSERT(mkdir(b->checkpoints, 0700) == 0);
  for (size_t i = 0; i < 4; ++i) {
    snprintf(path, sizeof path, "%s/%s", b->checkpoints, names[i]);
    cli_write(path, "mine", 4);
  }
  /* What a killed gepolab left is no one's. */
  snprintf(path, sizeof path, "%s/update-000000000001.checkpoint.123.tmp", b->checkpoints);
  cli_write(path, "half", 4);
  CU_ASSERT(CLI_GIVES(0, "run", b->recipe, CHECKPOINTED, "--checkpoint-every", "90"));
  CU_ASSERT_EQUAL(cli_files_in(b->checkpoints), 4 + 2);
  for (size_t i = 0; i < 4; ++i) {
    snprintf(path, sizeof path, "%s/%s", b->checkpoints, names[i]);
    CU_ASSERT(access(path, F_OK) == 0);
  }
}

TEST(two_runs_cannot_keep_checkpoints_in_one_folder) {
  bench b[1];
  bench_make(b, heterorl);
  pid_t pid = CLI_START("run", b->recipe, CHECKPOINTED, "--checkpoint-every", "1", "steps=1000000");
  wait_for(b, pid, 1);
  cli_result r = CLI("run", b->recipe, CHECKPOINTED, "steps=1000000");
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "another gepolab"));
  kill(pid, SIGKILL);
  cli_wait(pid);
}

/* --- sweeps --- */

static const char grid[] =
    BASE "cluster: {preset: heterorl, max_delay: 600}\n"
         "sweep: {algorithm: [grpo, gepo], seed: [1, 2]}\ntune: {lr: [0.02, 0.1], seeds: [9]}\n";

/* Update of the newest checkpoint of any cell. */
static unsigned long newest_of_cells(const char *folder) {
  DIR *all = opendir(folder);
  unsigned long best = 0;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char path[700];
    size_t n;
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unsigned long updates = newest(path, &n);
    if (updates > best) best = updates;
  }
  if (all != NULL) closedir(all);
  return best;
}

static pid_t start_sweep(const bench *b) {
  return CLI_START("sweep", b->recipe, "-o", b->other_db, "-q", "-j", "2", "--checkpoint",
                   b->checkpoints, "--checkpoint-every", "20");
}

TEST(killed_cells_of_a_sweep_go_on_and_clear_up) {
  bench b[1];
  char mine[200];
  unsigned long most = 0;
  bench_make(b, grid);
  CU_ASSERT(mkdir(b->checkpoints, 0700) == 0);
  snprintf(mine, sizeof mine, "%s/mine", b->checkpoints);
  cli_write(mine, "mine", 4);
  CU_ASSERT(CLI_GIVES(0, "sweep", b->recipe, "-o", b->db, "-q"));
  for (int i = 0; i < 8; ++i) {
    pid_t pid = start_sweep(b);
    /* by turns after a time, and as soon as a checkpoint is there, however slow the machine is */
    if (i % 2 == 1) cli_sleep_ms(40 + 25 * i);
    for (int k = 0; i % 2 == 0 && k < 20000 && newest_of_cells(b->checkpoints) == 0; ++k)
      usleep(500);
    kill(pid, SIGKILL);
    cli_wait(pid);
    unsigned long now = newest_of_cells(b->checkpoints);
    if (now > most) most = now;
  }
  CU_ASSERT_EQUAL(cli_wait(start_sweep(b)), 0);
  CU_ASSERT(same_tables(b->db, b->other_db));
  CU_ASSERT(most > 0); /* some were stopped in their midst */
  CU_ASSERT_EQUAL(cli_files_in(b->checkpoints), 1);
  CU_ASSERT(access(mine, F_OK) == 0);
}

TEST(ctrl_c_lets_the_cells_of_a_sweep_write_checkpoints) {
  bench b[1];
  bench_make(b, grid);
  const char *long_cell[] = {
      "sweep", b->recipe,      "-o",           b->other_db,   "-q",        "-j",
      "1",     "--checkpoint", b->checkpoints, "steps=20000", "tune=null", "sweep={seed: [1]}",
      NULL};
  pid_t worker = 0, pid = cli_start(long_cell);
  cli_wait_for_children(pid, &worker, 1);
  cli_sleep_ms(100);
  kill(pid, SIGINT);
  CU_ASSERT_EQUAL(cli_wait(pid), 130);
  CU_ASSERT_EQUAL(kill(worker, 0), -1);
  CU_ASSERT_EQUAL_FATAL(cli_files_in(b->checkpoints), 1); /* one cell */
  CU_ASSERT(newest_of_cells(b->checkpoints) > 0);
  cli_result runs = CLI("export", b->other_db, "--table", "runs");
  CU_ASSERT_PTR_NULL(strstr(runs.out, "failed")); /* a stopped cell is not a failed one */
}

TEST(a_section_alone_keeps_checkpoints_beside_the_study) {
  bench b[1];
  char beside[160];
  unsigned long most = 0;
  bench_make(b, heterorl);
  snprintf(beside, sizeof beside, "%s.checkpoints", b->other_db);
  cli_result whole = undisturbed(b);
  for (int tries = 0; tries < 50 && most == 0; ++tries) {
    unlink(b->other_db);
    pid_t pid =
        CLI_START("run", b->recipe, "checkpoint={every: 10, keep: 1}", "-q", "-o", b->other_db);
    cli_sleep_ms(40 + 10 * tries);
    kill(pid, SIGKILL);
    cli_wait(pid);
    most = newest_of_cells(beside);
  }
  CU_ASSERT(most > 0);
  cli_result r =
      CLI("run", b->recipe, "checkpoint={every: 10, keep: 1}", "-q", "--json", "-o", b->other_db);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "goes on after update"));
  CU_ASSERT_STRING_EQUAL(r.out, whole.out);
  CU_ASSERT(same_tables(b->db, b->other_db));
  CU_ASSERT(access(beside, F_OK) != 0);
  r = CLI("run", b->recipe, "checkpoint={every: 10}", "-q", "--json"); /* nowhere to keep them */
  CU_ASSERT(r.code == 0 && strstr(r.err, "no checkpoints are written") != NULL);
  CU_ASSERT_STRING_EQUAL(r.out, whole.out);
}

/* --- signals --- */

TEST(a_signal_writes_a_checkpoint_and_exits_with_130) {
  static const int signals[] = {SIGINT, SIGTERM};
  for (size_t i = 0; i < 2; ++i) {
    bench b[1];
    size_t n;
    bench_make(b, heterorl);
    cli_result whole = undisturbed(b);
    int code = 0;
    for (int tries = 0; tries < 20 && code == 0; ++tries) { /* 0: it was done before */
      cli_scratch_remove(b->checkpoints);
      unlink(b->other_end);
      pid_t pid = start(b, "50");
      wait_for(b, pid, 50);
      kill(pid, signals[i]);
      code = cli_wait(pid);
    }
    CU_ASSERT_EQUAL(code, 130);
    unsigned long last = newest(b->checkpoints, &n);
    CU_ASSERT(last >= 50 && last <= 300);
    CU_ASSERT(access(b->other_end, F_OK) != 0);
    end_as_if_undisturbed(b, &whole, "50");
  }
}

/* --- disks --- */

/* The same in a transformer's warm-up, which no checkpoint of updates has yet. */
TEST(a_signal_in_the_warm_up_loses_nothing) {
  static const char *const longer = "world.warmup={steps: 4000, batch: 8, cache: false}";
  bench b[1];
  bench_make(b, transformer);
  cli_result whole = CLI("run", b->recipe, "-q", "--json", "steps=3", "eval_every=3", longer);
  pid_t pid = CLI_START("run", b->recipe, "-q", "--json", "--checkpoint", b->checkpoints,
                        "--checkpoint-every", "40", "steps=3", "eval_every=3", longer);
  for (int i = 0;
       i < 10000 && (access(b->checkpoints, F_OK) != 0 || cli_files_in(b->checkpoints) == 0); ++i)
    usleep(1000);
  kill(pid, SIGTERM);
  CU_ASSERT_EQUAL(cli_wait(pid), 130);
  CU_ASSERT_EQUAL(cli_files_in(b->checkpoints), 1);
  cli_result r = CLI("run", b->recipe, "-q", "--json", "--checkpoint", b->checkpoints, "steps=3",
                     "eval_every=3", longer);
  CU_ASSERT(r.code == 0 && whole.code == 0 && whole.out_size > 100);
  CU_ASSERT_STRING_EQUAL(r.out, whole.out);
}

TEST(a_full_disk_keeps_the_last_good_checkpoint) {
  bench b[1];
  bench_make(b, heterorl);
  CU_ASSERT(mkdir(b->checkpoints, 0700) == 0);
  if (mount("tmpfs", b->checkpoints, "tmpfs", 0, "size=1m") != 0) {
    SKIP("a small tmpfs needs root");
  }
  cli_result whole = undisturbed(b);
  cli_result full = disturbed(b, "10"); /* a checkpoint is some 300 kB and grows */
  CU_ASSERT_EQUAL(full.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(full.err, "the disk is full"));
  CU_ASSERT_PTR_NOT_NULL(strstr(full.err, "goes on from the checkpoint before"));
  size_t n;
  unsigned long last = newest(b->checkpoints, &n);
  CU_ASSERT(last > 0 && last < 300 && n == cli_files_in(b->checkpoints));
  CU_ASSERT(access(b->other_end, F_OK) != 0 && access(b->other_db, F_OK) != 0);
  CU_ASSERT_EQUAL(mount("tmpfs", b->checkpoints, "tmpfs", MS_REMOUNT, "size=64m"), 0);
  end_as_if_undisturbed(b, &whole, "50");
  CU_ASSERT_EQUAL(umount(b->checkpoints), 0);
}

TEST(a_folder_that_cannot_be_written_is_named_before_the_run) {
  bench b[1];
  bench_make(b, heterorl);
  CU_ASSERT(mkdir(b->checkpoints, 0700) == 0);
  if (mount("tmpfs", b->checkpoints, "tmpfs", MS_RDONLY, "size=1m") != 0) {
    SKIP("mounting needs root");
  }
  cli_result r = CLI("run", b->recipe, CHECKPOINTED, "steps=1000000");
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "read-only"));
  char below[200];
  snprintf(below, sizeof below, "%s/below", b->checkpoints);
  r = CLI("run", b->recipe, "--checkpoint", below, "-q", "steps=1000000");
  CU_ASSERT(r.code == 1 && strstr(r.err, "read-only") != NULL);
  CU_ASSERT_EQUAL(umount(b->checkpoints), 0);
  r = CLI("run", b->recipe, "--checkpoint", b->recipe, "-q"); /* a file */
  CU_ASSERT(r.code == 1 && strstr(r.err, "not a folder") != NULL);
  r = CLI("run", b->recipe, "--save", "/nowhere/at/all", "-q", "steps=1000000");
  CU_ASSERT(r.code == 1 && strstr(r.err, "/nowhere/at/all") != NULL);
}
