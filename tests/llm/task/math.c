/* The math task: files beside the recipe, splits, templates, references and rewards. */
#include "tests/support/llm_task.h"

#include <unistd.h>

SUITE("llm: task math");

/* A folder with a recipe and one or two data files. */
typedef struct folder {
  char path[64];
} folder;

static void put_file(const folder *f, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", f->path, name);
  FILE *to = fopen(path, "wb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT_FATAL(fputs(text, to) >= 0);
  CU_ASSERT_EQUAL_FATAL(fclose(to), 0);
}

static folder folder_make(void) {
  folder f;
  snprintf(f.path, sizeof f.path, "/tmp/gepolab-math-XXXXXX");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f.path));
  return f;
}

static void folder_remove(const folder *f) {
  static const char *const names[] = {"r.yaml", "train.jsonl", "held.jsonl"};
  char path[128];
  for (size_t i = 0; i < 3; ++i) {
    snprintf(path, sizeof path, "%s/%s", f->path, names[i]);
    unlink(path);
  }
  CU_ASSERT_EQUAL(rmdir(f->path), 0);
}

/* The task of `recipe`, written to a file in the folder. */
static gl_status math_try(task_fixture *t, const folder *f, const char *recipe, gl_error *err) {
  char path[128];
  *t = (task_fixture){0};
  put_file(f, "r.yaml", recipe);
  snprintf(path, sizeof path, "%s/r.yaml", f->path);
  gl_status status = cfg_load_file(&t->doc, path, err);
  if (status == GL_OK) status = task_new(&t->t, cfg_find(cfg_root(t->doc), "task"), 1, err);
  return status;
}

static task_fixture math_open(const folder *f, const char *recipe) {
  task_fixture t;
  gl_error err = {0};
  if (math_try(&t, f, recipe, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t.t);
  return t;
}

TEST(a_file_beside_the_recipe_is_read_and_wrapped_in_the_template) {
  folder f = folder_make();
  put_file(&f, "train.jsonl",
           "{\"problem\":\"1+1?\",\"solution\":2}\n{\"problem\":\"x?\",\"solution\":\"so "
           "\\\\boxed{\\\\frac12}\"}\n{\"problem\":\"y\",\"solution\":\"3*4 is <<3*4=12>>12\\n#### "
           "12\"}\n");
  task_fixture t =
      math_open(&f, "task: {kind: math, path: train.jsonl, prompt_key: problem, answer_key: "
                    "solution, held_out: 0, template: \"Q: {prompt}\\nA:\"}");
  CU_ASSERT_EQUAL(task_size(t.t, TASK_TRAIN), 3);
  CU_ASSERT_EQUAL(task_size(t.t, TASK_HELD_OUT), 0);
  CU_ASSERT_PTR_NULL(task_alphabet(t.t));
  static const char *const prompts[] = {"Q: 1+1?\nA:", "Q: x?\nA:", "Q: y\nA:"};
  static const char *const answers[] = {"\\boxed{2}", "so \\boxed{\\frac12}",
                                        "3*4 is <<3*4=12>>12\n\\boxed{12}"};
  static const char *const right[] = {"\\boxed{2.0}", "thus $\\boxed{0.5}$.", "\\fbox{12 cm}"};
  for (uint64_t i = 0; i < 3; ++i) {
    problem p = task_get(t.t, TASK_TRAIN, i);
    CU_ASSERT_STRING_EQUAL(p.prompt, prompts[i]);
    CU_ASSERT_STRING_EQUAL(p.answer, answers[i]);
    CU_ASSERT(task_score(t.t, &p, p.answer, 1) == 1);
    CU_ASSERT(task_score(t.t, &p, right[i], 1) == 1);
    CU_ASSERT(task_score(t.t, &p, right[i], 0) == 0);
    CU_ASSERT(task_score(t.t, &p, "\\boxed{13}", 1) == 0);
    CU_ASSERT(task_score(t.t, &p, "2 12 \\frac12", 1) == 0);
    CU_ASSERT(task_score(t.t, &p, "", 1) == 0);
  }
  problem p;
  gl_error err = {0};
  CU_ASSERT_EQUAL(task_problem(t.t, TASK_TRAIN, 3, &p, &err), GL_EINTERNAL);
  task_close(&t);
  folder_remove(&f);
}

TEST(the_last_number_counts_where_the_section_says_so) {
  folder f = folder_make();
  put_file(&f, "train.jsonl", "{\"prompt\":\"p\",\"answer\":\"1,250\"}\n");
  task_fixture t = math_open(
      &f, "task: {kind: math, path: train.jsonl, held_out: 0, answer_pattern: last_number}");
  problem p = task_get(t.t, TASK_TRAIN, 0);
  CU_ASSERT_STRING_EQUAL(p.answer, "1,250");
  CU_ASSERT(task_score(t.t, &p, "There are 5, so 1250.", 1) == 1);
  CU_ASSERT(task_score(t.t, &p, "1250 - 1 = 1249", 1) == 0);
  CU_ASSERT(task_score(t.t, &p, "\\boxed{1250}, as 1 + 1 = 2", 1) == 1);
  task_close(&t);
  folder_remove(&f);
}

/* `n` rows "pI" with answer I, from `first`. */
static void put_rows(const folder *f, const char *name, int first, int n) {
  char *text = malloc((size_t)n * 48 + 1), *at = text;
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  *at = '\0';
  for (int i = first; i < first + n; ++i)
    at += sprintf(at, "{\"prompt\":\"p%d\",\"answer\":\"%d\"}\n", i, i);
  put_file(f, name, text);
  free(text);
}

/* Binomial: 4.5 standard deviations fail a right hash with probability 7e-6. */
TEST(a_share_of_the_file_is_held_out) {
  folder f = folder_make();
  put_rows(&f, "train.jsonl", 0, 2000);
  task_fixture t = math_open(&f, "task: {kind: math, path: train.jsonl, held_out: 0.2}");
  size_t train = task_size(t.t, TASK_TRAIN), held = task_size(t.t, TASK_HELD_OUT);
  char seen[2000] = {0};
  CU_ASSERT_EQUAL(train + held, 2000);
  CU_ASSERT(fabs((double)held - 400) < 4.5 * sqrt(2000 * 0.16));
  for (uint64_t i = 0; i < 2000; ++i) {
    problem p = i < train ? task_get(t.t, TASK_TRAIN, i) : task_get(t.t, TASK_HELD_OUT, i - train);
    seen[atoi(p.prompt + 1)] ^= 1;
  }
  for (size_t i = 0; i < 2000; ++i) CU_ASSERT(seen[i] == 1);
  task_close(&t);
  folder_remove(&f);
}

TEST(prompts_of_a_held_out_file_are_no_training_prompts) {
  folder f = folder_make();
  put_rows(&f, "train.jsonl", 0, 100);
  put_rows(&f, "held.jsonl", 90, 30);
  task_fixture t =
      math_open(&f, "task: {kind: math, path: train.jsonl, held_out_path: held.jsonl}");
  CU_ASSERT_EQUAL(task_size(t.t, TASK_TRAIN), 90);
  CU_ASSERT_EQUAL(task_size(t.t, TASK_HELD_OUT), 30);
  for (uint64_t i = 0; i < 90; ++i) {
    problem p = task_get(t.t, TASK_TRAIN, i);
    CU_ASSERT(atoi(p.prompt + 1) < 90);
  }
  task_close(&t);
  folder_remove(&f);
}

#define ROW "{\"prompt\":\"p\",\"answer\":\"1\"}\n"

static const struct {
  const char *section, *train, *place, *says;
} wrong[] = {
    {"task: {kind: math}", NULL, "r.yaml:1:7: ", "needs path"},
    {"task: {kind: math, path: nowhere.jsonl}", NULL,
     "r.yaml:1:26: ", "cannot read nowhere.jsonl: No such file"},
    {"task: {kind: math, path: train.jsonl}", "", "r.yaml:1:26: ", "train.jsonl:1:1: the file is"},
    {"task: {kind: math, path: train.jsonl}", ROW "{\"prompt\":1}",
     "r.yaml:1:26: ", "train.jsonl:2:11: 'prompt' is a number"},
    {"task: {kind: math, path: train.jsonl, answer_key: solution}", ROW,
     "r.yaml:1:26: ", "train.jsonl:1:1: key 'solution' is missing"},
    {"task: {kind: math, path: train.jsonl, answer_key: prompt}", ROW,
     "r.yaml:1:7: ", "are the same"},
    {"task: {kind: math, path: train.jsonl}", ROW, "r.yaml:1:26: ", "holds none of the 1 problems"},
    {"task: {kind: math, path: train.jsonl, held_out_path: train.jsonl}", ROW,
     "r.yaml:1:26: ", "no problem of 'train.jsonl' is left for training"},
    {"task: {kind: math, path: train.jsonl, held_out: 0.1, held_out_path: train.jsonl}", ROW,
     "r.yaml:1:49: ", "cannot be given, too"},
    {"task: {kind: math, path: train.jsonl, template: \"x\"}", ROW,
     "r.yaml:1:49: ", "must hold {prompt} once"},
    {"task: {kind: math, path: train.jsonl, template: \"{prompt}{prompt}\"}", ROW,
     "r.yaml:1:49: ", "must hold {prompt} once"},
    {"task: {kind: math, path: train.jsonl, answer_pattern: box}", ROW,
     "r.yaml:1:55: ", "did you mean 'boxed'"},
    {"task: {kind: math, path: train.jsonl, reward: graded, held_out: 0}", ROW,
     "r.yaml:1:47: ", "no graded reward"},
    {"task: {kind: math, path: train.jsonl, digits: 2, held_out: 0}", ROW,
     "r.yaml:1:39: ", "unknown key 'digits'"},
    {"task: {kind: math, path: train.jsonl, held_out: 0}",
     ROW "\n{\"prompt\":\"p\",\"answer\":\"}\"}",
     "r.yaml:1:26: ", "train.jsonl:3:1: the answer '}' is empty or its braces"},
};

TEST(wrong_sections_and_files_are_refused_at_their_place) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    folder f = folder_make();
    task_fixture t;
    gl_error err = {0};
    if (wrong[i].train != NULL) put_file(&f, "train.jsonl", wrong[i].train);
    gl_status status = math_try(&t, &f, wrong[i].section, &err);
    const char *at = strstr(err.text, "r.yaml");
    int ok = status == GL_EINPUT && t.t == NULL && at != NULL &&
             strncmp(at, wrong[i].place, strlen(wrong[i].place)) == 0 &&
             strstr(at, wrong[i].says) != NULL;
    if (!ok) fprintf(stderr, "%s: got %d '%s'\n", wrong[i].section, status, err.text);
    CU_ASSERT(ok);
    task_close(&t);
    folder_remove(&f);
  }
}
