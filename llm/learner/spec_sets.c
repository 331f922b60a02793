/* Reads the evaluation sets of a transformer: each a task, a distribution of answering and a
 * longest response of its own, with the model, tokenizer and template of the world. */
#include "core/config/overlay.h"

#include "core/config/fields.h"
#include "llm/learner/run_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the task of a set --- */

/* The kind that a task section says; NULL: none. */
static const char *kind_of(const cfg_node *section) {
  const cfg_node *kind = cfg_find(section, "kind");
  return kind != NULL && cfg_kind_of(kind) == CFG_SCALAR ? cfg_text(kind) : NULL;
}

/* A set's task is the world's with some fields changed, unless it is of another kind, whose fields
 * are others. */
static gl_status make_task(set_spec *set, const run_spec *s, const cfg_node *world,
                           const cfg_node *node, uint64_t seed, gl_error *err) {
  const char *kind = kind_of(node);
  if (cfg_kind_of(node) != CFG_MAP)
    return cfg_fail(node, err,
                    "the task of an evaluation set is a map of the fields in which it differs from "
                    "the world's, as in task: {digits: 3}, or of another kind, task: {kind: …}");
  if (kind != NULL && strcmp(kind, task_kind(s->task)) != 0)
    return task_new(&set->task, node, seed, err);
  cfg_doc *doc = NULL;
  gl_status status = cfg_overlay(&doc, "world", world, "task", node, err);
  if (status != GL_OK) return status;
  status = task_new(&set->task, cfg_find(cfg_root(doc), "world.task"), seed, err);
  cfg_free(doc);
  return status;
}

/* Every letter of a generated task's prompts and answers has a token. What free text holds is known
 * when its problems are read. */
static gl_status check_letters(const run_spec *s, const char *name, const cfg_node *at,
                               gl_error *err) {
  const char *alphabet = task_alphabet(s->task);
  int32_t *token = NULL;
  size_t n = 0;
  gl_error why = {0};
  if (alphabet == NULL) return GL_OK;
  gl_status status = tokenizer_encode(s->tokenizer, alphabet, strlen(alphabet), &token, &n, &why);
  free(token);
  if (status == GL_OK) return GL_OK;
  if (status != GL_EINPUT) return gl_fail(err, status, "%s", why.text);
  return cfg_fail(at, err,
                  "the tokenizer cannot write the evaluation set '%s', which uses the letters "
                  "\"%.100s\": %s; take another task for the set, or world.tokenizer: byte",
                  name, alphabet, why.text);
}

/* --- a set --- */

run_spec run_spec_of_set(const run_spec *s, size_t i) {
  run_spec own = *s;
  own.eval = s->set[i].eval;
  own.max_tokens = s->set[i].max_tokens;
  if (s->set[i].task != NULL) own.task = s->set[i].task;
  return own;
}

/* The longest response: what the set says, else what the longest answer of its own task needs, else
 * what the world has. */
static size_t longest_response(const set_spec *set, const run_spec *s, size_t said) {
  if (said > 0) return said;
  if (set->task != NULL && task_max_answer(set->task) > 0) return task_max_answer(set->task) + 1;
  return s->max_tokens;
}

static gl_status read_set(run_spec *s, size_t i, const cfg_node *world, const cfg_node *node,
                          uint64_t seed, gl_error *err) {
  set_spec *set = &s->set[i];
  const char *name = s->sets.part[i * evaluation_sets_parts(&s->sets)].set;
  cfg_reader r;
  cfg_begin(&r, node, "world.evaluation.sets", err);
  cfg_string(&r, "name", NULL);
  evaluation_read_set(&set->eval.how, &s->eval.how, &r, llm_evaluations, LLM_EVALUATIONS);
  set->eval.prompts = field_count_or(&r, "prompts", s->eval.prompts);
  const int greedy = set->eval.how.kind == EVALUATION_GREEDY;
  set->eval.samples = field_count_or(&r, "samples", greedy ? 1 : s->eval.samples);
  if (r.status == GL_OK && greedy && cfg_has(&r, "samples"))
    return cfg_fail(cfg_child(&r, "samples"), err,
                    "a greedy evaluation has one response to a problem; leave samples out, or say "
                    "kind: sampled");
  const size_t said = field_count(&r, "max_tokens");
  const cfg_node *own = cfg_child(&r, "task");
  set->at = node != NULL ? node : cfg_find(world, "evaluation");
  if (cfg_end(&r) != GL_OK) return r.status;
  gl_status status = own != NULL ? make_task(set, s, world, own, seed, err) : GL_OK;
  if (status != GL_OK) return status;
  set->max_tokens = longest_response(set, s, said);
  const run_spec whole = run_spec_of_set(s, i);
  status = check_letters(&whole, name, set->at, err);
  if (status == GL_OK) status = run_spec_check_room(&whole, set->at, err);
  if (status == GL_OK) status = run_spec_bound_evaluation(&set->eval, whole.task, set->at, err);
  return status == GL_OK ? evaluation_sets_check(&s->sets, name, set->eval.prompts, set->at, err)
                         : status;
}

gl_status run_spec_read_sets(run_spec *s, const cfg_node *world, uint64_t seed, gl_error *err) {
  const cfg_node *list = cfg_find(world, "evaluation.sets");
  if (s->sets.n == 0) return GL_OK;
  s->set = calloc(s->sets.n, sizeof *s->set);
  if (s->set == NULL) return gl_fail_memory(err, "evaluation sets");
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->sets.n && status == GL_OK; ++i)
    status = read_set(s, i, world, list != NULL ? cfg_at(list, i) : NULL, seed, err);
  return status;
}

void run_spec_free_sets(run_spec *s) {
  for (size_t i = 0; s->set != NULL && i < s->sets.n; ++i) task_free(s->set[i].task);
  free(s->set);
  evaluation_sets_fini(&s->sets);
}
