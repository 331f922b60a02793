/* Replaces llm/ in the WebAssembly module, which has no transformer: its functions return an error
 * that says so, or an empty table of fields. Linked into that module only (mk/wasm.mk). */
#include "core/config/fields.h"
#include "llm/backend/open/open.h"
#include "llm/exact/exact_world.h"
#include "llm/learner/llm_learner.h"
#include "llm/model/model.h"
#include "llm/task/task.h"

#include <stddef.h>

const struct field_table llm_task_fields = {0};

static gl_status refuse_llm(gl_error *err) {
  return gl_fail(err, GL_EINPUT,
                 "a transformer does not run in the browser's gepolab; use the command "
                 "(INSTALL.md)");
}

const char *task_kind_at(size_t i, const char **about) {
  (void)i;
  (void)about;
  return NULL;
}

const char *backend_cpu_form(void) {
  return "none";
}

gl_status llm_learner_new(learner *out, const learner_setup *setup, gl_error *err) {
  (void)setup;
  *out = (learner){0};
  return refuse_llm(err);
}

gl_status llm_check(const learner_setup *setup, gl_error *err) {
  (void)setup;
  return refuse_llm(err);
}

gl_status llm_check_sections(const learner_setup *setup, gl_error *err) {
  (void)setup;
  return refuse_llm(err);
}

gl_status llm_check_machine(const learner_setup *setup, gl_error *err) {
  (void)setup;
  return refuse_llm(err);
}

gl_status llm_start_folder(char **out, const cfg_node *world, uint64_t seed, gl_error *err) {
  (void)world;
  (void)seed;
  *out = NULL;
  return refuse_llm(err);
}

gl_status llm_start_checksum(const char *folder, char text[LLM_CHECKSUM_SIZE], gl_error *err) {
  (void)folder;
  text[0] = '\0';
  return refuse_llm(err);
}

gl_status exact_world_new(exact_world **out, const cfg_node *world, const cfg_node *sampling,
                          uint64_t seed, gl_error *err) {
  (void)world;
  (void)sampling;
  (void)seed;
  *out = NULL;
  return refuse_llm(err);
}

void exact_world_free(exact_world *w) {
  (void)w; /* none was made */
}

enumerable exact_world_enumerable(const exact_world *w) {
  (void)w;
  return (enumerable){0};
}

gl_status exact_world_initial(const exact_world *w, uint64_t seed, double *theta, gl_error *err) {
  (void)w;
  (void)seed;
  (void)theta;
  return refuse_llm(err);
}
