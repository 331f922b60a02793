/* Units in sections that are no recipe's, and names of files that become whole paths. */
#include "core/config/quantities.h"

#include "core/config/files.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const cfg_quantity table[] = {
    {"plan.links.latency", "s"}, {"plan.links.bandwidth", "bytes/s"}, {"plan.windows", "updates"}};

static gl_status resolve(cfg_doc **doc, const char *text, gl_error *err) {
  gl_status status = cfg_load_text(doc, text, strlen(text), "c.yaml", err);
  return status == GL_OK ? cfg_resolve_quantities(*doc, table, 3, err) : status;
}

static void check(const char *text, const char *wanted) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(resolve(&doc, text, &err), GL_OK);
  char *canonical = cfg_canonical(cfg_root(doc));
  if (strcmp(canonical, wanted) != 0) fprintf(stderr, "wanted %s\n   got %s\n", wanted, canonical);
  CU_ASSERT_STRING_EQUAL(canonical, wanted);
  free(canonical);
  cfg_free(doc);
}

static void numbers_with_units_are_converted_in_lists_and_dists(void) {
  check("plan: {links: [{latency: 75ms, bandwidth: 1Gbit/s}, {latency: 2m}]}",
        "{\"plan\":{\"links\":[{\"bandwidth\":125000000,\"latency\":0.075},{\"latency\":120}]}}");
  check("plan: {links: [{latency: {law: lognormal, interval: [45ms, 1s], sigma: 2}}]}",
        "{\"plan\":{\"links\":[{\"latency\":{\"interval\":[0.045,1],\"law\":\"lognormal\","
        "\"sigma\":2}}]}}");
  check("plan: {windows: [1, 4updates], name: 10m, other: {latency: 3m}}",
        "{\"plan\":{\"name\":\"10m\",\"other\":{\"latency\":\"3m\"},\"windows\":[1,4]}}");
  check("plan: {links: {latency: '10m'}}", "{\"plan\":{\"links\":{\"latency\":\"10m\"}}}");
}

static void other_units_are_refused_with_the_place(void) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL(resolve(&doc, "plan:\n  links:\n    - {latency: 5GB}\n", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "c.yaml:3:17: 'plan.links.latency' is in s"));
  cfg_free(doc);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(resolve(&doc, "plan: {windows: [1, 3weeks]}", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no unit that is known"));
  cfg_free(doc);
}

static void files_are_named_by_their_whole_paths(void) {
  scratch s;
  char recipe[SCRATCH_PATH_SIZE], csv[SCRATCH_PATH_SIZE];
  cfg_doc *doc = NULL;
  gl_error err = {0};
  scratch_make(&s);
  scratch_write(scratch_path(&s, "delays.csv", csv), "delay\n1\n2\n");
  scratch_write(scratch_path(&s, "r.yaml", recipe),
                "cluster:\n  delay: {law: empirical, file: delays.csv}\n"
                "  compare: {trace: not_there.csv}\n");
  CU_ASSERT_EQUAL_FATAL(cfg_load_file(&doc, recipe, &err), GL_OK);
  CU_ASSERT_EQUAL(cfg_settle_files(doc, &err), GL_OK);
  char *whole = realpath(csv, NULL);
  CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(cfg_root(doc), "cluster.delay.file")), whole);
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(cfg_root(doc), "cluster.compare.trace")),
                         "not_there.csv");
  free(whole);
  cfg_free(doc);
  scratch_remove(&s);
}

SUITE(quantities, "core: config of other documents",
      TEST(numbers_with_units_are_converted_in_lists_and_dists),
      TEST(other_units_are_refused_with_the_place), TEST(files_are_named_by_their_whole_paths));
