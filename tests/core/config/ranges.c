/* Ranges of sweeps and of tune: the values they stand for, and those that are none. */
#include "core/config/config.h"
#include "tests/support/recipes.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static void ranges_are_the_lists_that_one_would_write(void) {
  static const char *const cases[][3] = {
      {"optimizer.lr", "{from: 1e-3, to: 1e-1, n: 3, scale: log}", "[0.001,0.01,0.1]"},
      {"optimizer.lr", "{from: 0.001, to: 0.1, n: 5, scale: log}",
       "[0.001,0.00316227766017,0.01,0.0316227766017,0.1]"},
      {"optimizer.lr", "{from: 0, to: 1, n: 11}", "[0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1]"},
      {"optimizer.lr", "{from: -0.3, to: 0.1, n: 5}", "[-0.3,-0.2,-0.1,0,0.1]"},
      {"optimizer.lr", "{from: 0.1, to: 0.2, points: 2, scale: linear}", "[0.1,0.2]"},
      {"optimizer.lr", "{from: 0, to: 1, n: 4}", "[0,0.33333333333,0.66666666667,1]"},
      {"optimizer.lr", "{from: 1e-300, to: 1e300, n: 3, scale: log}", "[1e-300,1,1e+300]"},
      {"optimizer.lr", "{from: 0.1234567890123456, to: 0.2, n: 2}", "[0.1234567890123456,0.2]"},
      {"seed", "{from: 1, to: 10, n: 10}", "[1,2,3,4,5,6,7,8,9,10]"},
      {"seed", "{from: 3, to: 7}", "[3,4,5,6,7]"},
      {"train.group_size", "{from: 4, to: 64, n: 5, scale: log}", "[4,8,16,32,64]"},
      {"train.group_size", "{from: 4, to: 40, n: 4, scale: log, integer: true}", "[4,9,19,40]"},
      {"cluster.max_delay", "{from: 1m, to: 1h, n: 3}", "[60,1830,3600]"},
      {"cluster.max_delay", "{from: 0, to: 0.5h, n: 4}", "[0,600,1200,1800]"},
      {"cluster.up.bandwidth", "{from: 1MB/s, to: 100MB/s, n: 3, scale: log}",
       "[1000000,10000000,100000000]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[256], wanted[256];
    cfg_doc *doc = NULL;
    gl_error err = {0};
    snprintf(text, sizeof text, "sweep: {%s: %s}", cases[i][0], cases[i][1]);
    snprintf(wanted, sizeof wanted, "{\"sweep\":{\"%s\":%s}}", cases[i][0], cases[i][2]);
    gl_status status = recipe_resolved(&doc, text, NULL, &err);
    if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_FATAL(status == GL_OK);
    char *canonical = cfg_canonical(cfg_root(doc));
    if (strcmp(canonical, wanted) != 0) fprintf(stderr, "%s\n%s\n", wanted, canonical);
    CU_ASSERT_STRING_EQUAL(canonical, wanted);
    free(canonical);
    cfg_free(doc);
  }
}

static void tune_takes_ranges_too(void) {
  static const char text[] =
      "tune: {lr: {from: 0.01, to: 1, n: 3, scale: log}, seeds: {from: 101, to: 103}}";
  cfg_doc *doc = NULL;
  CU_ASSERT_EQUAL_FATAL(recipe_resolved(&doc, text, NULL, NULL), GL_OK);
  char *canonical = cfg_canonical(cfg_root(doc));
  CU_ASSERT_STRING_EQUAL(canonical, "{\"tune\":{\"lr\":[0.01,0.1,1],\"seeds\":[101,102,103]}}");
  free(canonical);
  cfg_free(doc);
}

static void wrong_ranges_are_refused(void) {
  static const char *const cases[][2] = {
      {"{from: 1, to: 2}", "without n"},
      {"{from: 1, n: 2}", "without to"},
      {"{to: 1, n: 2}", "without from"},
      {"{}", "without from"},
      {"{law: uniform}", "unknown key 'law'"},
      {"{from: 1, to: 2, n: 1}", "from 2 to"},
      {"{from: 1, to: 2, n: 0}", "from 2 to"},
      {"{from: 1, to: 2, n: -3}", "from 2 to"},
      {"{from: 1, to: 2, n: 2.5}", "whole number"},
      {"{from: 1, to: 2, n: 1000001}", "to 1000000"},
      {"{from: 2, to: 1, n: 2}", "must be above"},
      {"{from: 1, to: 1, n: 2}", "must be above"},
      {"{from: 0, to: 1, n: 2, scale: log}", "begins above 0"},
      {"{from: -1, to: 1, n: 2, scale: log}", "begins above 0"},
      {"{from: nan, to: 1, n: 2}", "is text"},
      {"{from: 0, to: .nan, n: 2}", "is text"},
      {"{from: 0, to: inf, n: 2}", "must be a number"},
      {"{from: -1.7e308, to: 1.7e308, n: 3}", "wider than a double"},
      {"{from: 0, to: 1, n: 2, scale: cubic}", "one of linear, log"},
      {"{from: 0.5, to: 4, n: 2, integer: true}", "must be whole"},
      {"{from: 1, to: 3, n: 4, integer: true}", "fewer than 4 different whole numbers"},
      {"{from: 1, to: 1.0000000000000002, n: 3}", "fewer than 3 different numbers"},
      {"{from: 1, to: 5, n: 3, points: 3}", "unknown key 'n'"},
      {"{from: 1, to: 5MB, n: 3}", "takes no unit"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[128];
    cfg_doc *doc = NULL;
    gl_error err = {0};
    snprintf(text, sizeof text, "sweep:\n  optimizer.lr: %s\n", cases[i][0]);
    gl_status status = recipe_resolved(&doc, text, NULL, &err);
    const int ok = status == GL_EINPUT && strncmp(err.text, "r.yaml:2:", 9) == 0 &&
                   strstr(err.text, cases[i][1]) != NULL;
    if (!ok) fprintf(stderr, "%s: wanted '%s', got '%s'\n", cases[i][0], cases[i][1], err.text);
    CU_ASSERT(ok);
    cfg_free(doc);
  }
}

SUITE(core_config_ranges, "core: config ranges", TEST(ranges_are_the_lists_that_one_would_write),
      TEST(tune_takes_ranges_too), TEST(wrong_ranges_are_refused));
