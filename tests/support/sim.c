/* Schedules of recipes written in a test. */
#include "tests/support/sim.h"

#include "tests/support/suite.h"

#include <string.h>

static void schedule_end(void *s) {
  schedule_fini(s);
}

static void cluster_end(void *spec) {
  cluster_free(spec);
}

gl_status sim_build(schedule *s, cluster_spec **spec, const char *text, uint64_t seed,
                    size_t updates, gl_error *err) {
  cfg_doc *doc = NULL;
  *spec = NULL;
  *s = (schedule){0};
  gl_status status = cfg_load_text(&doc, text, strlen(text), "test", err);
  if (status == GL_OK) status = cluster_parse(spec, cfg_root(doc), 8, 8, err);
  cfg_free(doc);
  if (status == GL_OK) status = schedule_build(s, *spec, seed, updates, err);
  test_at_end(cluster_end, *spec);
  test_at_end(schedule_end, test_copy(s, sizeof *s));
  return status;
}

schedule sim_must_build(const char *text, uint64_t seed, size_t updates) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  if (sim_build(&s, &spec, text, seed, updates, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL("the cluster runs");
  }
  return s;
}

void sim_must_refuse(const char *text) {
  schedule s;
  cluster_spec *spec;
  gl_error err = {0};
  CU_ASSERT_EQUAL(sim_build(&s, &spec, text, 1, 1, &err), GL_EINPUT);
  CU_ASSERT(strncmp(err.text, "test:1:", 7) == 0);
  if (strncmp(err.text, "test:1:", 7) != 0) fprintf(stderr, "%s gave: %s\n", text, err.text);
}
