#define _GNU_SOURCE /* F_OFD_SETLK */
/* Around the transformer learner: wrong sections, texts as tokens and rewards, warm-up and its
 * cache, checkpoints. */
#include "tests/support/llm_learner_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- wrong sections --- */

SUITE("llm: learner worlds, warm-up, checkpoints");

typedef struct wrong {
  const char *text, *place, *says;
} wrong;

#define LLM "world: {kind: llm, task: {kind: parity}, "

static const wrong sections[] = {
    {"world: {kind: llm}", "1:8: ", "needs a task"},
    {"world: {kind: llm, task: {kind: partiy}}", "1:33: ", "did you mean 'parity'"},
    {"world: {kind: llm, task: parity}", "1:26: ", "must be a map"},
    {LLM "backend: tpu}", "1:51: ", "auto, cpu, cuda"},
    {LLM "backend: tpu}", "1:51: ", "one of auto, cpu, cuda"},
    {LLM "backnd: cpu}", "1:42: ", "did you mean 'backend'"},
    {LLM "dtype: float16}", "1:49: ", "float32"},
    {LLM "backend: cpu, dtype: bfloat16}", "1:63: ", "needs backend: cuda"},
    {LLM "backend: cuda, dtype: float64}", "1:64: ", "needs backend: cpu"},
    {LLM "tf32: some}", "1:48: ", "true or false"},
    {LLM "backend: cpu, tf32: true}", "1:62: ", "needs a GPU"},
    {LLM "dtype: bfloat16, tf32: true}", "1:65: ", "for dtype: float32"},
    {LLM "slots: -1}", "1:49: ", "from 0"},
    {LLM "devices: 0}", "1:51: ", "from 1 to 64"},
    {LLM "devices: 65}", "1:51: ", "from 1 to 64"},
    {LLM "micro_batch: 0}", "1:55: ", "from 1"},
    {LLM "max_tokens: 0}", "1:54: ", "from 1"},
    {LLM "stochastic_rounding: true}", "1:63: ", "bfloat16"},
    {LLM "recompute: perhaps}", "1:53: ", "true or false"},
    {LLM "model: {layrs: 2}}", "1:50: ", "did you mean 'layers'"},
    {LLM "model: {context: 8}}", "1:49: ", "model's context of 8"},
    {LLM "model: {heads: 3, kv_heads: 2}}", "1:49: ", "3 query heads"},
    {LLM "model: {path: no-such-folder}}", "1:56: ", "there is no folder 'no-such-folder'"},
    {LLM "model: {path: /, layers: 2}}", "1:59: ", "unknown key 'layers'"},
    {LLM "model: {path: /proc/self/task}}", "1:56: ", "config.json"},
    {LLM "tokenizer: chr}", "1:53: ", "did you mean 'char'"},
    {LLM "tokenizer: missing.json}", "1:53: ", "no file 'missing.json'"},
    {LLM "template: \"Q:\"}", "1:52: ", "must hold {prompt} once"},
    {LLM "template: \"Q: {prompt} {prompt}\"}", "1:52: ", "must hold {prompt} once"},
    {LLM "template: \"Q: {prompt}\"}", "1:52: ", "world.template: "},
    {LLM "tokenizer: byte, model: {context: 16}, template: \"Question: {prompt}\"}",
     "1:66: ", "a prompt of up to 20 tokens"},
    {LLM "stop: []}", "1:48: ", "at least one token"},
    {LLM "stop: \"<|im_end|>\"}", "1:48: ", "no special token '<|im_end|>'"},
    {LLM "reference: no-such-folder}", "1:53: ", "there is no folder"},
    {LLM "warmup: {step: 3}}", "1:51: ", "did you mean 'steps'"},
    {LLM "warmup: {until: 1.5}}", "1:58: ", "from 0 to 1"},
    {LLM "warmup: {decay: cosin}}", "1:58: ", "did you mean 'cosine'"},
    {LLM "warmup: {steps: 10, rise: 11}}", "1:68: ", "from 0 to 10"},
    {LLM "warmup: {cache: 3}}", "1:58: ", "true or false"},
    {LLM "evaluation: {prompts: 0}}", "1:64: ", "from 1"},
    {LLM "evaluation: {sample: 1}}", "1:55: ", "did you mean 'samples'"},
    {LLM "evaluation: {samples: 2}}", "1:64: ", "say kind: sampled"},
    {LLM "evaluation: {temperature: 2}}", "1:68: ", "changes nothing in a greedy"},
    {LLM "evaluation: {kind: sampled, top_p: 0}}", "1:77: ", "would keep no token"},
    {LLM "evaluation: exact}", "1:54: ", "one of greedy, sampled"},
    {LLM "eval: {prompts: 3}}", "1:48: ", "called world.evaluation now"},
    {"world: {kind: llm, task: {kind: parity, held_out: 0}}", "1:26: ", "no held-out problems"},
    {LLM "slots: 1}\nsampling: {topk: 3}", "2:12: ", "did you mean 'top_k'"},
    {LLM "slots: 1}\noptimizer: {lr: quick}", "2:17: ", "is text"},
};

/* null is "never", which has no other value. */
TEST(a_warm_up_target_of_null_is_none) {
  llm_fixture f = llm_open(LLM "warmup: {until: null}}", 1);
  CU_ASSERT(isnan(f.llm->spec.warmup.until));
}

TEST(every_wrong_section_is_refused_at_its_place) {
  for (size_t i = 0; i < sizeof sections / sizeof *sections; ++i) {
    const wrong *w = sections + i;
    llm_fixture f;
    gl_error err = {0};
    char place[64];
    snprintf(place, sizeof place, "r.yaml:%s", w->place);
    gl_status status = llm_try(&f, w->text, (llm_choice){.seed = 1}, 1, &err);
    int good = status == GL_EINPUT && strncmp(err.text, place, strlen(place)) == 0 &&
               strstr(err.text, w->says) != NULL;
    if (!good)
      fprintf(stderr, "%s\n  wanted %s … %s\n  got    %s\n", w->text, place, w->says, err.text);
    CU_ASSERT(good);
    cfg_free(f.doc);
  }
}

TEST(what_no_transformer_can_do_is_refused) {
  static const char *const recipes[] = {
      LLM "slots: 1}\nalgorithm: {base: gepo, log_prob: sum, denominator: exact}",
      LLM "slots: 1}\ntrain: {minibatches: 5}",
      LLM "slots: 1}\ntrain: {epochs: 0}",
  };
  static const char *const says[] = {"denominator: exact", "only 4 groups", "1 or more"};
  for (size_t i = 0; i < 3; ++i) {
    llm_fixture f;
    gl_error err = {0};
    CU_ASSERT(llm_try(&f, recipes[i], (llm_choice){.seed = 1}, 0, &err) == GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says[i]));
    llm_close(&f);
  }
}

TEST(tf32_is_told_to_the_backend) {
  for (int on = 0; on < 2; ++on) {
    llm_fixture f = llm_open(on ? LLM "tf32: true}" : LLM "tf32: false}", 3);
    CU_ASSERT_EQUAL(f.llm->spec.tf32, on);
    CU_ASSERT_EQUAL(f.llm->backend->tf32, on);
  }
}

/* --- texts --- */

TEST(responses_are_scored_by_their_whole_text) {
  llm_fixture f = llm_open(LLM "max_tokens: 4, template: \"{prompt}\"}", 3);
  const run_spec *s = &f.llm->spec;
  gl_error err = {0};
  problem p;
  int32_t *answer = NULL, *prompt = NULL;
  size_t n = 0, n_prompt = 0;
  double score = -1;
  CU_ASSERT_FATAL(task_problem(s->task, TASK_TRAIN, 5, &p, &err) == GL_OK);
  CU_ASSERT_FATAL(run_spec_answer(s, p.answer, &answer, &n, &err) == GL_OK);
  CU_ASSERT_FATAL(run_spec_prompt(s, p.prompt, &prompt, &n_prompt, &err) == GL_OK);
  CU_ASSERT(prompt[0] == TOKEN_BEGIN && n_prompt == strlen(p.prompt) + 1);
  CU_ASSERT(n == 2 && answer[1] == TOKEN_END && run_spec_is_stop(s, TOKEN_END));
  CU_ASSERT(run_spec_score(s, &p, answer, n, 1, &score, &err) == GL_OK && score == 1);
  CU_ASSERT(run_spec_score(s, &p, answer, 1, 0, &score, &err) == GL_OK && score == 0);
  const int32_t padded[] = {TOKEN_PAD, answer[0], TOKEN_END}, outside[] = {9999, TOKEN_END};
  CU_ASSERT(run_spec_score(s, &p, padded, 3, 1, &score, &err) == GL_OK && score == 0);
  CU_ASSERT(run_spec_score(s, &p, outside, 2, 1, &score, &err) == GL_OK && score == 0);
  int32_t *none = NULL;
  CU_ASSERT(run_spec_answer(s, "0101", &none, &n, &err) == GL_EINPUT); /* 5 with its end */
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "max_tokens 4"));
  free(none);
  free(answer);
  free(prompt);
  problem_fini(&p);
}

/* --- warm-up --- */

#define WARM                                                                                       \
  "world: {kind: llm, backend: cpu, model: {layers: 1, hidden: 32, heads: 2, context: 24}, task: " \
  "{kind: sorting, length: 3}, evaluation: {prompts: 100}, warmup: {steps: %d, batch: 32, lr:"     \
  " 0.01%s}}\noptimizer: {lr: 0.003}\nalgorithm: gepo"

static llm_fixture open_warm(int steps, const char *more, const char *cache, size_t threads) {
  char text[700];
  snprintf(text, sizeof text, WARM, steps, more);
  return llm_open_with(text, (llm_choice){.seed = 4, .threads = threads, .cache = cache});
}

TEST(warm_up_teaches_the_task) {
  llm_fixture cold = open_warm(0, "", NULL, 1), warm = open_warm(120, "", NULL, 1);
  double before = llm_score(&cold), after = llm_score(&warm);
  CU_ASSERT(before < 0.1 && after > 0.6);
}

/* One seen score above the wanted one stops it: fewer steps, another model. */
TEST(warm_up_stops_at_a_wanted_score) {
  llm_fixture whole = open_warm(200, "", NULL, 1),
              stopped = open_warm(200, ", until: 0.3, check_every: 10", NULL, 1);
  double score = llm_score(&stopped), all = llm_score(&whole);
  CU_ASSERT(score >= 0.3 && score < all);
}

static size_t files_in(const char *folder) {
  size_t n = 0;
  DIR *dir = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) n += e->d_name[0] != '.';
  closedir(dir);
  return n;
}

/* The path of the one file in a folder. */
static void only_file(const char *folder, char *path, size_t size) {
  DIR *dir = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
  for (const struct dirent *e; (e = readdir(dir)) != NULL;)
    if (e->d_name[0] != '.') snprintf(path, size, "%s/%s", folder, e->d_name);
  closedir(dir);
}

static void remove_folder(const char *folder) {
  char path[512] = "";
  snprintf(path, sizeof path, "%s/.locks", folder);
  (void)remove(path);
  while (files_in(folder) > 0) {
    only_file(folder, path, sizeof path);
    CU_ASSERT_FATAL(remove(path) == 0);
  }
  rmdir(folder);
}

/* Two updates further, so that anything that differed would show. */
static double *end_of_run(llm_fixture f) {
  double m[METRIC_COUNT];
  llm_train(&f, 0, 2, m);
  return llm_theta(&f);
}

TEST(a_kept_warm_up_gives_the_same_run) {
  char base[] = "/tmp/gepolab-warm-XXXXXX", folder[64], path[512] = "";
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
  snprintf(folder, sizeof folder, "%s/a/b", base);
  llm_fixture f = open_warm(30, "", NULL, 1);
  const size_t n = f.n * sizeof(double);
  double *want = end_of_run(f);
  for (int round = 0; round < 5; ++round) {
    /* made, read, read with other threads, cut short, damaged */
    if (round >= 3) {
      only_file(folder, path, sizeof path);
      struct stat s;
      CU_ASSERT_FATAL(stat(path, &s) == 0);
      FILE *file = fopen(path, "r+b");
      CU_ASSERT_PTR_NOT_NULL_FATAL(file);
      if (round == 3) {
        CU_ASSERT(ftruncate(fileno(file), s.st_size / 2) == 0);
      } else {
        CU_ASSERT(fseek(file, s.st_size / 2, SEEK_SET) == 0);
        int byte = fgetc(file);
        CU_ASSERT(fseek(file, s.st_size / 2, SEEK_SET) == 0 && fputc(byte ^ 16, file) != EOF);
      }
      fclose(file);
    }
    double *got = end_of_run(open_warm(30, "", folder, round == 2 ? 2 : 1));
    CU_ASSERT(memcmp(got, want, n) == 0);
    CU_ASSERT(files_in(folder) == 1);
  }
  end_of_run(open_warm(31, "", folder, 1));
  CU_ASSERT(files_in(folder) == 2);
  end_of_run(open_warm(32, ", cache: false", folder, 1));
  CU_ASSERT(files_in(folder) == 2);
  remove_folder(folder);
  snprintf(folder, sizeof folder, "%s/a", base);
  CU_ASSERT(rmdir(folder) == 0 && rmdir(base) == 0);
}

/* What a test sees of a warm-up that another process runs. */
typedef struct waiting {
  int lock, calls, stops; /* stops: the call that asks to stop; 0: none */
} waiting;

/* Lets go of the lock at the third call. */
static int while_waiting(void *self, uint64_t step, uint64_t steps, double loss) {
  waiting *w = self;
  if (!isnan(loss)) return 0;
  CU_ASSERT(step == 0 && steps == 30);
  if (++w->calls == 3) close(w->lock);
  return w->calls == w->stops;
}

/* The lock of another open file is as that of another process. */
TEST(a_warm_up_that_another_process_runs_is_waited_for) {
  char folder[] = "/tmp/gepolab-warm-XXXXXX", path[512] = "", locks[512], text[700];
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  snprintf(text, sizeof text, WARM, 30, "");
  double *want = end_of_run(open_warm(30, "", folder, 1));
  only_file(folder, path, sizeof path);
  snprintf(locks, sizeof locks, "%s/.locks", folder);
  CU_ASSERT(remove(path) == 0);
  for (int stops = 2; stops >= 0; stops -= 2) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    waiting w = {open(locks, O_RDWR), 0, stops};
    CU_ASSERT_FATAL(w.lock >= 0 && fcntl(w.lock, F_OFD_SETLK, &all) == 0);
    const learner_preparation how = {.after_step = while_waiting, .self = &w, .seconds = 1e9};
    const llm_choice choice = {.seed = 4, .threads = 1, .cache = folder, .preparation = &how};
    if (stops > 0) {
      llm_fixture f;
      gl_error err = {0};
      CU_ASSERT_EQUAL(llm_try(&f, text, choice, 0, &err), GL_EINTERRUPTED);
      llm_close(&f);
      close(w.lock);
      CU_ASSERT_EQUAL(w.calls, 2);
    } else {
      llm_fixture f = llm_open_with(text, choice);
      const double *got = end_of_run(f);
      CU_ASSERT(memcmp(got, want, f.n * sizeof *got) == 0 && w.calls == 3);
    }
  }
  CU_ASSERT(files_in(folder) == 1);
  remove_folder(folder);
}

/* That it was read at all: a kept file is taken as it is, even if it was not this run that made it.
 */
TEST(a_kept_warm_up_is_read_and_not_made_again) {
  char folder[] = "/tmp/gepolab-warm-XXXXXX", path[512] = "";
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  open_warm(1, "", folder, 1);
  only_file(folder, path, sizeof path);
  struct stat before, after;
  CU_ASSERT(stat(path, &before) == 0);
  open_warm(1, "", folder, 1);
  CU_ASSERT(stat(path, &after) == 0 && before.st_ino == after.st_ino);
  remove_folder(folder);
}

/* --- a warm-up that is stopped --- */

typedef struct seen {
  uint64_t first, last, stop_at;
  double loss; /* of the last step */
} seen;

static int see(void *self, uint64_t step, uint64_t steps, double loss) {
  seen *s = self;
  CU_ASSERT(steps == 30 && (s->last == 0 || step == s->last + 1));
  if (s->first == 0) s->first = step;
  s->last = step;
  s->loss = loss;
  return step == s->stop_at;
}

static seen warm_watched(const char *folder, uint64_t every, uint64_t stop_at, llm_fixture *f) {
  seen s = {.stop_at = stop_at};
  const learner_preparation how = {
      .after_step = see, .self = &s, .folder = folder, .every = every, .seconds = 1e9};
  char text[700];
  gl_error err = {0};
  snprintf(text, sizeof text, WARM, 30, "");
  gl_status status =
      llm_try(f, text, (llm_choice){.seed = 4, .threads = 1, .preparation = &how}, 0, &err);
  CU_ASSERT_EQUAL(status, stop_at != 0 ? GL_EINTERRUPTED : GL_OK);
  if (stop_at != 0) {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "of 30 steps of the warm-up"));
    CU_ASSERT((folder != NULL) == (strstr(err.text, "goes on from there") != NULL));
    llm_close(f);
  } else {
    llm_close_at_end(f);
  }
  return s;
}

TEST(a_stopped_warm_up_goes_on_where_it_was) {
  char folder[] = "/tmp/gepolab-warm-XXXXXX", path[512] = "";
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  llm_fixture f;
  seen all = warm_watched(NULL, 0, 0, &f);
  CU_ASSERT(all.first == 1 && all.last == 30);
  const size_t n = f.n * sizeof(double);
  double *want = end_of_run(f);
  seen s = warm_watched(folder, 0, 7, &f);
  CU_ASSERT(s.first == 1 && files_in(folder) == 1);
  only_file(folder, path, sizeof path);
  CU_ASSERT_STRING_EQUAL(path + strlen(path) - 5, ".part");
  s = warm_watched(folder, 10, 23, &f);
  CU_ASSERT(s.first == 8);
  s = warm_watched(folder, 0, 0, &f);
  CU_ASSERT(s.first == 24 && s.last == 30 && s.loss == all.loss);
  double *got = end_of_run(f);
  CU_ASSERT(memcmp(got, want, n) == 0);
  /* Done: one file, from which the run starts again at once. */
  only_file(folder, path, sizeof path);
  CU_ASSERT(files_in(folder) == 1 && strstr(path, ".part") == NULL);
  s = warm_watched(folder, 0, 0, &f);
  CU_ASSERT(s.last == 0);
  got = end_of_run(f);
  CU_ASSERT(memcmp(got, want, n) == 0);
  remove_folder(folder);
}

/* What a killed process leaves is the file of the last step that was a multiple of `every`. */
TEST(a_killed_warm_up_loses_the_steps_since_its_last_file) {
  char folder[] = "/tmp/gepolab-warm-XXXXXX";
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  llm_fixture f;
  pid_t child = fork();
  if (child == 0) {
    (void)warm_watched(folder, 10, 0, &f);
    _exit(0);
  }
  int status = -1;
  for (int i = 0; i < 5000 && files_in(folder) == 0; ++i) usleep(1000);
  CU_ASSERT(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
  seen s = warm_watched(folder, 0, 0, &f);
  CU_ASSERT(s.first == 0 || s.first % 10 == 1); /* 0: it had ended before the signal came */
  CU_ASSERT_EQUAL(files_in(folder), 1);         /* half-written ones are gone */
  remove_folder(folder);
}

TEST(damaged_unfinished_work_is_begun_anew) {
  char folder[] = "/tmp/gepolab-warm-XXXXXX", path[512] = "";
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  llm_fixture f;
  seen all = warm_watched(NULL, 0, 0, &f);
  const double places[] = {0, 0.002, 0.01, 0.5, 0.999};
  for (size_t i = 0; i < 5; ++i) {
    (void)warm_watched(folder, 0, 9, &f);
    only_file(folder, path, sizeof path);
    struct stat s;
    CU_ASSERT_FATAL(stat(path, &s) == 0);
    const long at = (long)(places[i] * (double)s.st_size);
    FILE *file = fopen(path, "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fseek(file, at, SEEK_SET) == 0);
    int byte = fgetc(file);
    CU_ASSERT(fseek(file, at, SEEK_SET) == 0 && fputc(byte ^ 16, file) != EOF);
    fclose(file);
    seen again = warm_watched(folder, 0, 0, &f);
    CU_ASSERT(again.first == 1 && again.loss == all.loss);
    only_file(folder, path, sizeof path);
    CU_ASSERT_FATAL(remove(path) == 0);
  }
  remove_folder(folder);
}

TEST(a_folder_that_cannot_keep_a_warm_up_is_told) {
  const learner_preparation how = {.folder = "/proc/no/such/folder", .every = 10};
  llm_fixture f;
  char text[700];
  gl_error err = {0};
  snprintf(text, sizeof text, WARM, 30, "");
  CU_ASSERT(llm_try(&f, text, (llm_choice){.seed = 4, .threads = 1, .preparation = &how}, 0,
                    &err) == GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/proc/no/such/folder"));
  llm_close(&f);
}

/* --- the cache --- */

TEST(a_cache_that_cannot_be_written_costs_nothing_but_time) {
  open_warm(3, "", "/proc/no/such/folder", 1);
}

/* Processes that warm the same thing up at once leave one good file behind. */
TEST(workers_that_warm_up_at_once_do_not_break_each_other) {
  enum { WORKERS = 3 };
  char folder[] = "/tmp/gepolab-warm-XXXXXX";
  pid_t worker[WORKERS];
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  for (int i = 0; i < WORKERS; ++i) {
    worker[i] = fork();
    if (worker[i] != 0) continue;
    open_warm(10, "", folder, 1);
    _exit(0);
  }
  for (int i = 0; i < WORKERS; ++i) {
    int status = -1;
    CU_ASSERT(worker[i] > 0 && waitpid(worker[i], &status, 0) == worker[i] && status == 0);
  }
  CU_ASSERT(files_in(folder) == 1);
  llm_fixture plain = open_warm(10, "", NULL, 1);
  const size_t n = plain.n * sizeof(double);
  double *want = end_of_run(plain), *got = end_of_run(open_warm(10, "", folder, 1));
  CU_ASSERT(memcmp(got, want, n) == 0);
  remove_folder(folder);
}

/* --- checkpoints --- */

typedef struct saved {
  char *bytes;
  size_t size;
} saved;

static saved save(llm_fixture *f) {
  saved s = {0};
  gl_error err = {0};
  FILE *to = open_memstream(&s.bytes, &s.size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT(f->learner.ops->save(f->llm, to, &err) == GL_OK);
  CU_ASSERT_FATAL(fclose(to) == 0 && s.size > 0);
  return s;
}

static gl_status load(llm_fixture *f, char *bytes, size_t size, gl_error *err) {
  FILE *from = size > 0 ? fmemopen(bytes, size, "rb") : fopen("/dev/null", "rb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  gl_status status = f->learner.ops->load(f->llm, from, err);
  fclose(from);
  return status;
}

static const char *const run_text =
    "world: {kind: llm, backend: cpu, model: {layers: 1, hidden: 16, heads: 2, context: 24}, task: "
    "{kind: sorting, length: 3, values: 4}, evaluation: {kind: sampled, prompts: 20, samples: 2}}\n"
    "optimizer: {lr: 0.01, clip_grad_norm: 0.5, decay: linear}\n"
    "algorithm: {base: gepo, ref_kl_coef: 0.1}\ntrain: {minibatches: 2, epochs: 2, updates: 9}";

TEST(a_run_continues_from_its_checkpoint_bit_by_bit) {
  llm_fixture whole = llm_open(run_text, 5), first = llm_open(run_text, 5),
              second = llm_open(run_text, 5);
  double a[METRIC_COUNT], b[METRIC_COUNT];
  gl_error err = {0};
  llm_train(&whole, 0, 4, a);
  llm_train(&first, 0, 2, b);
  CU_ASSERT(first.learner.ops->hold(first.llm, &err) == GL_OK);
  CU_ASSERT(whole.llm->update.version == 4);
  llm_train(&first, 2, 3, b);
  saved s = save(&first);
  CU_ASSERT(load(&second, s.bytes, s.size, &err) == GL_OK);
  CU_ASSERT(second.llm->update.version == 3 && second.llm->replica[0].n_held == 1);
  batch of_first = {0}, of_second = {0};
  llm_draw_part(&first, 77, 2, 0, 1, &of_first);
  llm_draw_part(&second, 77, 2, 0, 1, &of_second);
  CU_ASSERT(llm_same_batch(&of_first, &of_second));
  llm_train(&second, 3, 4, b);
  CU_ASSERT(memcmp(a, b, sizeof a) == 0);
  CU_ASSERT(llm_score(&whole) == llm_score(&second));
  second.learner.ops->release(second.llm, 2);
  saved end = save(&second), end_whole = save(&whole);
  CU_ASSERT(end.size == end_whole.size && memcmp(end.bytes, end_whole.bytes, end.size) == 0);
  batch_fini(&of_first);
  batch_fini(&of_second);
  free(s.bytes);
  free(end.bytes);
  free(end_whole.bytes);
}

TEST(a_damaged_or_foreign_checkpoint_changes_nothing) {
  llm_fixture f = llm_open(run_text, 5);
  double m[METRIC_COUNT];
  gl_error err = {0};
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  llm_train(&f, 0, 1, m);
  saved s = save(&f);
  double *before = llm_theta(&f);
  for (size_t at = 0; at < s.size; at += s.size / 40 + 1) {
    gl_error why = {0};
    s.bytes[at] = (char)(s.bytes[at] ^ 8);
    CU_ASSERT(load(&f, s.bytes, s.size, &why) == GL_EINPUT && why.text[0] != '\0');
    s.bytes[at] = (char)(s.bytes[at] ^ 8);
    gl_error_clear(&why);
    CU_ASSERT(load(&f, s.bytes, at, &why) == GL_EINPUT && why.text[0] != '\0');
  }
  llm_fixture other = llm_open(run_text, 6);
  CU_ASSERT(load(&other, s.bytes, s.size, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another world, sampling or seed"));
  double *after = llm_theta(&f);
  CU_ASSERT(memcmp(before, after, f.n * sizeof *after) == 0 && f.llm->replica[0].n_held == 1);
  CU_ASSERT(f.llm->update.version == 1);
  free(s.bytes);
}

TEST(a_checkpoint_goes_on_in_its_own_arithmetic) {
  const char *set = getenv("GEPOLAB_CPU_FORM");
  char *kept = set != NULL ? strdup(set) : NULL;
  gl_error err = {0};
  CU_ASSERT(setenv("GEPOLAB_CPU_FORM", "plain", 1) == 0);
  llm_fixture plain = llm_open(run_text, 5), again = llm_open(run_text, 5);
  saved s = save(&plain);
  CU_ASSERT(load(&again, s.bytes, s.size, &err) == GL_OK);
  CU_ASSERT(unsetenv("GEPOLAB_CPU_FORM") == 0);
  llm_fixture best = llm_open(run_text, 5);
  const int same = strcmp(best.llm->backend->form, "plain") == 0;
  CU_ASSERT(load(&best, s.bytes, s.size, &err) == (same ? GL_OK : GL_EINPUT));
  CU_ASSERT(same || strstr(err.text, "GEPOLAB_CPU_FORM=plain") != NULL);
  if (kept != NULL) CU_ASSERT(setenv("GEPOLAB_CPU_FORM", kept, 1) == 0);
  free(kept);
  free(s.bytes);
}
