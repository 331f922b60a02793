/* libFuzzer target: no text may make the reader of a `world` section of kind llm misbehave. What it
 * takes describes prompts and answers that fit its own limits. Files are not its subject: texts
 * that name one are left alone. */
#include "llm/learner/packed_tokens.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const cfg_node *section(const cfg_doc *doc, const char *key) {
  const cfg_node *node = cfg_find(cfg_root(doc), key);
  return node != NULL && cfg_kind_of(node) == CFG_MAP ? node : NULL;
}

static int names_a_file(const cfg_node *world) {
  static const char *const keys[] = {"model.path", "tokenizer", "reference", "task.path",
                                     "task.held_out_path"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (cfg_find(world, keys[i]) != NULL) return 1;
  return 0;
}

static void check_problem(const run_spec *s) {
  int32_t *answer = NULL;
  size_t n = 0;
  problem_set set;
  const uint64_t number = 0;
  gl_error err = {0};
  double score = -1;
  if (problem_set_init(&set, s, TASK_TRAIN, &number, 1, &err) != GL_OK) return;
  if (set.start[1] + s->max_tokens > s->model.max_positions) abort();
  if (run_spec_answer(s, set.problem[0].answer, &answer, &n, &err) == GL_OK) {
    if (n > s->max_tokens || !run_spec_is_stop(s, answer[n - 1])) abort();
    if (run_spec_score(s, &set.problem[0], answer, n, 1, &score, &err) != GL_OK || score != 1)
      abort();
  } else if (err.text[0] == '\0')
    abort();
  free(answer);
  problem_set_fini(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  if (cfg_load_text(&doc, (const char *)data, size, "fuzz.yaml", &err) != GL_OK) return 0;
  const cfg_node *world = section(doc, "world");
  run_spec s;
  if (world != NULL && !names_a_file(world)) {
    if (run_spec_init(&s, world, section(doc, "sampling"), 1, &err) == GL_OK) {
      check_problem(&s);
      run_spec_fini(&s);
    } else if (err.text[0] == '\0')
      abort();
  }
  cfg_free(doc);
  return 0;
}
