/* libFuzzer target: no text may make the reader of descriptions of clusters misbehave. What it
 * takes has candidates whose recipes can be read, or is refused with a sentence. */
#include "experiments/plan/plan.h"
#include "experiments/recipe/recipe.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_explain(gl_status status, const gl_error *err) {
  if (status != GL_OK && err->text[0] == '\0') abort();
}

/* The first and the last candidate; a description of thousands of samplers is only read. */
static void check_candidates(const plan_description *d) {
  plan_candidate *c = NULL;
  size_t n = 0;
  gl_error err = {0};
  gl_status status = plan_candidates(&c, &n, d, &err);
  must_explain(status, &err);
  if ((status == GL_OK) != (n > 0)) abort();
  for (size_t i = 0; i<n; i += n> 1 ? n - 1 : 1) {
    plan_setup s;
    gl_error_clear(&err);
    if (plan_candidate_samplers(&c[i], d) > 1000) continue;
    status = plan_setup_init(&s, &c[i], d, &err);
    must_explain(status, &err);
    plan_setup_fini(&s);
  }
  free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cfg_doc *doc = NULL;
  plan_description d;
  gl_error err = {0};
  gl_status status = cfg_load_text(&doc, (const char *)data, size, "fuzz", &err);
  if (status == GL_OK) status = cfg_resolve(doc, &err);
  if (status == GL_OK) status = plan_describe(&d, doc, &err);
  must_explain(status, &err);
  if (status == GL_OK) check_candidates(&d);
  cfg_free(doc);
  return 0;
}
