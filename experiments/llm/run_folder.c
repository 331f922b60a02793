/* A run's checkpoints as a learner that can stand at any of them. */
#include "experiments/llm/run_folder.h"

#include "core/rl/sampling.h"
#include "experiments/base/build.h"
#include "experiments/train/checkpoint_folder.h"
#include "llm/llm.h"

#include <stdlib.h>
#include <string.h>

/* --- the recipe --- */

static gl_status read_newest(llm_run *r, gl_error *err) {
  checkpoint c;
  FILE *state = NULL;
  gl_status status = checkpoint_folder_look(r->path, r->updates[r->n - 1], &c, &state, err);
  if (status != GL_OK) return status;
  fclose(state);
  r->text = c.recipe; /* taken over */
  c.recipe = NULL;
  checkpoint_fini(&c);
  return GL_OK;
}

/* The recipe stands behind the words that say which meaning of recipes it has. */
static gl_status read_doc(llm_run *r, const char *const *overrides, size_t n, gl_error *err) {
  const char *said = strchr(r->text, '{');
  if (said == NULL)
    return gl_fail(err, GL_EINPUT, "%.300s: the checkpoints have no recipe", r->path);
  gl_status status = cfg_load_text(&r->doc, said, strlen(said), r->path, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = cfg_override(r->doc, overrides[i], err);
  return status == GL_OK ? cfg_resolve(r->doc, err) : status;
}

static gl_status must_be_llm(const llm_run *r, gl_error *err) {
  if (recipe_is_llm(&r->recipe)) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "%.300s: the run is not of a transformer (world: {kind: llm, …}); `gepolab bias` "
                 "measures in worlds that can be enumerated",
                 r->path);
}

/* Gradients are read from one device. The warm-up makes parameters that a checkpoint replaces; only
 * samplers that mix the initial policy in need them. */
static gl_status leave_out(llm_run *r, gl_error *err) {
  sampling_spec sampling;
  const cfg_node *root = cfg_root(r->doc);
  gl_status status = sampling_parse(&sampling, cfg_find(root, "sampling"), err);
  if (status == GL_OK && cfg_find(root, "world.devices") != NULL)
    status = cfg_override(r->doc, "world.devices=1", err);
  if (status == GL_OK && sampling.behaviour.with != OTHER_INITIAL &&
      cfg_find(root, "world.warmup") != NULL)
    status = cfg_override(r->doc, "world.warmup=null", err);
  return status;
}

/* The algorithm that trained plays no part, and so needs no reference policy. */
static gl_status make_learner(llm_run *r, gl_error *err) {
  cache_place place;
  learner_setup setup = recipe_setup(&r->recipe, cache_find(&place));
  setup.algorithm = policy_algorithms_find("reinforce");
  setup.algorithm_at = NULL;
  return llm_learner_new(&r->learner, &setup, err);
}

gl_status llm_run_init(llm_run *r, const char *path, const char *const *overrides,
                       size_t n_overrides, size_t threads, gl_error *err) {
  *r = (llm_run){.path = path};
  gl_status status = checkpoint_folder_list(path, &r->updates, &r->n, err);
  if (status == GL_OK && r->n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%.300s: no checkpoints are there; `gepolab run RECIPE --checkpoint DIR "
                     "--checkpoint-every N checkpoint.keep=M` leaves the last M of them",
                     path);
  if (status == GL_OK) status = read_newest(r, err);
  if (status == GL_OK) status = read_doc(r, overrides, n_overrides, err);
  if (status == GL_OK) status = recipe_read(&r->recipe, r->doc, err);
  if (status == GL_OK) status = must_be_llm(r, err);
  if (status == GL_OK) status = leave_out(r, err);
  if (status == GL_OK) status = recipe_read(&r->recipe, r->doc, err);
  r->recipe.threads = threads;
  return status == GL_OK ? make_learner(r, err) : status;
}

void llm_run_fini(llm_run *r) {
  learner_fini(&r->learner);
  cfg_free(r->doc);
  free(r->text);
  free(r->updates);
  *r = (llm_run){0};
}

/* --- its checkpoints --- */

static int has(const llm_run *r, uint64_t update) {
  for (size_t i = 0; i < r->n; ++i)
    if (r->updates[i] == update) return 1;
  return 0;
}

/* "10, 20, 30, …, 80": the first ones and the last. */
static void name_updates(const llm_run *r, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t used = 0;
  for (size_t i = 0; i < r->n && used < size; ++i) {
    if (i >= SHOWN && i + 1 < r->n) continue;
    const char *before = i == 0 ? "" : i + 1 == r->n && r->n > SHOWN + 1 ? ", …, " : ", ";
    used += (size_t)snprintf(text + used, size - used, "%s%llu", before,
                             (unsigned long long)r->updates[i]);
  }
}

static gl_status must_have(const llm_run *r, uint64_t update, gl_error *err) {
  char all[256] = "";
  if (has(r, update)) return GL_OK;
  name_updates(r, all, sizeof all);
  return gl_fail(err, GL_EINPUT,
                 "%.300s: there is no checkpoint after %llu updates, but after %s; the run keeps "
                 "others with --checkpoint-every N and checkpoint.keep=M",
                 r->path, (unsigned long long)update, all);
}

gl_status llm_run_check(const llm_run *r, uint64_t update, uint64_t staleness, gl_error *err) {
  gl_status status = must_have(r, update, err);
  if (status != GL_OK) return status;
  if (staleness >= update && staleness > 0)
    return gl_fail(err, GL_EINPUT,
                   "%.300s: after %llu updates no policy of the run is %llu updates old that has a "
                   "checkpoint; give a smaller --staleness or a later --at",
                   r->path, (unsigned long long)update, (unsigned long long)staleness);
  return must_have(r, update - staleness, err);
}

gl_status llm_run_load(llm_run *r, uint64_t update, double *theta, gl_error *err) {
  checkpoint c;
  FILE *state = NULL;
  gl_error why = {0};
  gl_status status = checkpoint_folder_look(r->path, update, &c, &state, err);
  if (status != GL_OK) return status;
  if (strcmp(c.recipe, r->text) != 0)
    status = gl_fail(&why, GL_EINPUT, "it is of another recipe than the newest checkpoint");
  if (status == GL_OK) status = r->learner.ops->load(r->learner.self, state, &why);
  if (status == GL_OK) status = llm_learner_parameters(&r->learner, theta, &why);
  if (status != GL_OK)
    gl_fail(err, status, "%.300s, the checkpoint after %llu updates: %s", r->path,
            (unsigned long long)update, why.text);
  fclose(state);
  checkpoint_fini(&c);
  return status;
}
