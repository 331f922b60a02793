/* Units, ranges and names of files in recipes and in other documents. */
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/config/units.h"
#include "tests/support/core.h"
#include "tests/support/recipes.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: config units");

TEST(a_number_with_a_unit_is_the_number_of_the_fields_unit) {
  static const char *const cases[][3] = {
      /* field of the cluster, text, canonical number */
      {"max_delay", "10m", "600"},
      {"max_delay", "600", "600"},
      {"max_delay", "600s", "600"},
      {"max_delay", "600 s", "600"},
      {"max_delay", "10min", "600"},
      {"max_delay", "1h", "3600"},
      {"max_delay", "1.5h", "5400"},
      {"max_delay", "2d", "172800"},
      {"max_delay", "250ms", "0.25"},
      {"max_delay", "0.1ms", "0.0001"},
      {"max_delay", "3us", "3e-06"},
      {"max_delay", "3\xc2\xb5s", "3e-06"},
      {"max_delay", "7ns", "7e-09"},
      {"max_delay", "1.1m", "66"},
      {"max_delay", "1e1m", "600"},
      {"max_delay", "1_000ms", "1"},
      {"max_delay", "-10m", "-600"},
      {"max_delay", "+.5m", "30"},
      {"max_delay", "0x10", "16"}, /* plain numbers are read as ever */
      {"max_delay", "none", "\"none\""},
      {"max_delay", "inf", "1e999"},
      {"max_delay", "'10m'", "\"10m\""}, /* in quotes it is text */
      {"weights_bytes", "1.5GiB", "1610612736"},
      {"weights_bytes", "2kB", "2000"},
      {"weights_bytes", "2KiB", "2048"},
      {"weights_bytes", "8bit", "1"},
      {"weights_bytes", "1Tbit", "125000000000"},
      {"weights_bytes", "1TiB", "1099511627776"},
      {"weights_bytes", "12 bytes", "12"},
      {"up", "{bandwidth: 100Mbit/s}", "{\"bandwidth\":12500000}"},
      {"up", "{bandwidth: 100Mbps}", "{\"bandwidth\":12500000}"},
      {"up", "{bandwidth: 12.5MB/s, rto: 200ms}", "{\"bandwidth\":12500000,\"rto\":0.2}"},
      {"up", "{bandwidth: 1 bytes/s}", "{\"bandwidth\":1}"},
      {"tokens_per_s", "50tokens/s", "50"},
      {"max_tokens", "512 tokens", "512"},
      {"ahead", "1update", "1"},
      /* parameters of distributions, but for those that are pure numbers */
      {"delay", "{distribution: uniform, min: 1m, max: 1h}",
       "{\"distribution\":\"uniform\",\"max\":3600,\"min\":60}"},
      {"delay", "{distribution: lognormal, interval: [1m, 0.5h], clamp: [0s, 1h], offset: 1s}",
       "{\"clamp\":[0,3600],\"distribution\":\"lognormal\",\"interval\":[60,1800],\"offset\":1}"},
      {"delay", "{distribution: weibull, shape: 2, scale: 1m}",
       "{\"distribution\":\"weibull\",\"scale\":60,\"shape\":2}"},
      {"delay", "{distribution: gilbert_elliott, good: 1m, bad: {value: 1h}}",
       "{\"bad\":{\"value\":3600},\"distribution\":\"gilbert_elliott\",\"good\":60}"},
      {"lengths", "{distribution: constant, value: 7tokens}",
       "{\"distribution\":\"constant\",\"value\":7}"},
      {"samplers", "[{count: 2, delay: 1m, up: {rto: 3ms}}, {generation: 2h}]",
       "[{\"count\":2,\"delay\":60,\"up\":{\"rto\":0.003}},{\"generation\":7200}]"},
      {"learner", "{step: 0.5m, eval_pause: {distribution: exponential, mean: 1m}}",
       "{\"eval_pause\":{\"distribution\":\"exponential\",\"mean\":60},\"step\":30}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[256], wanted[256], assignment[256];
    snprintf(text, sizeof text, "cluster: {%s: %s}", cases[i][0], cases[i][1]);
    snprintf(wanted, sizeof wanted, "{\"cluster\":{\"%s\":%s}}", cases[i][0], cases[i][2]);
    check_resolved(text, NULL, wanted);
    snprintf(assignment, sizeof assignment, "cluster.%s=%s", cases[i][0], cases[i][1]);
    check_resolved("{}", assignment, wanted);
  }
}

TEST(axes_and_tuning_have_the_units_of_their_fields) {
  check_resolved("sweep: {cluster.max_delay: [0, 1m, 600], seed: [1]}", NULL,
                 "{\"sweep\":{\"cluster.max_delay\":[0,60,600],\"seed\":[1]}}");
  check_resolved(
      "sweep: {cluster: [{max_delay: 1m}, {delay: {distribution: constant, value: 1h}}]}", NULL,
      "{\"sweep\":{\"cluster\":[{\"max_delay\":60},{\"delay\":{\"distribution\":\"constant\","
      "\"value\":3600}}]}}");
  check_resolved("{}", "sweep.cluster.up.bandwidth=[1MB/s, 8Mbit/s]",
                 "{\"sweep\":{\"cluster.up.bandwidth\":[1000000,1000000]}}");
  check_resolved(
      "sweep: {random: {draws: 3, fields: {cluster.max_delay: {from: 1m, to: 1h}, "
      "cluster.delay: {choice: [1m, {value: 2m}]}}}}",
      NULL,
      "{\"sweep\":{\"random\":{\"draws\":3,\"fields\":{\"cluster.delay\":{\"choice\":[60,"
      "{\"value\":120}]},\"cluster.max_delay\":{\"from\":60,\"to\":3600}}}}}");
}

TEST(the_same_number_in_any_unit_is_the_same_recipe) {
  static const char *const same[] = {"10m", "600", "600s", "1.0e1min", "600_000ms", "6e2"};
  for (size_t i = 0; i < sizeof same / sizeof *same; ++i) {
    char text[64];
    snprintf(text, sizeof text, "cluster: {max_delay: %s}", same[i]);
    check_resolved(text, NULL, "{\"cluster\":{\"max_delay\":600}}");
  }
}

TEST(wrong_units_are_refused_with_the_fields_own) {
  static const char *const cases[][3] = {
      {"cluster: {max_delay: 5MB}",
       "r.yaml:1:22: ", "'cluster.max_delay' is in s; '5MB' is in bytes"},
      {"cluster: {max_delay: 5MB}", "r.yaml:1:22: ", "as in 10m"},
      {"cluster: {max_delay: 5x}", "r.yaml:1:22: ", "s, ms, us"},
      {"cluster: {max_delay: 5M}", "r.yaml:1:22: ", "two ways"},
      {"cluster: {max_delay: 5 m s}", "r.yaml:1:22: ", "no unit that is known"},
      {"cluster: {weights_bytes: 5m}", "r.yaml:1:26: ", "as in 1.5GiB"},
      {"cluster: {weights_bytes: 5M}", "r.yaml:1:26: ", "1000 or 1024"},
      {"cluster: {weights_bytes: 5Mb}", "r.yaml:1:26: ", "bits or bytes"},
      {"cluster: {weights_bytes: 5MB/s}", "r.yaml:1:26: ", "is in bytes"},
      {"cluster: {weights_bytes: 1e400GiB}", "r.yaml:1:26: ", "more than a double"},
      {"cluster: {weights_bytes: -1e308GiB}", "r.yaml:1:26: ", "more than a double"},
      {"cluster: {weights_bytes: 1e99999999999999999999B}", "r.yaml:1:26: ", "more than a double"},
      {"cluster: {up: {bandwidth: 5Mb/s}}", "r.yaml:1:27: ", "bits or bytes"},
      {"cluster: {up: {bandwidth: 5MB}}", "r.yaml:1:27: ", "'cluster.up.bandwidth' is in bytes/s"},
      {"cluster: {up: {bandwidth: 5MB/h}}", "r.yaml:1:27: ", "B/s, "},
      {"cluster: {max_tokens: 32k}", "r.yaml:1:23: ", "write the number out"},
      {"cluster: {delay: {distribution: uniform, min: 5B}}",
       "r.yaml:1:47: ", "'cluster.delay.min' is in s"},
      {"cluster: {delay: {interval: [1s, 5B]}}", "r.yaml:1:34: ", "is in s"},
      {"sweep: {cluster.max_delay: [1s, 5B]}", "r.yaml:1:33: ", "'cluster.max_delay' is in s"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    gl_status status = recipe_resolved(&doc, cases[i][0], NULL, &err);
    const int ok = status == GL_EINPUT && strstr(err.text, cases[i][1]) == err.text &&
                   strstr(err.text, cases[i][2]) != NULL;
    if (!ok) fprintf(stderr, "%s: wanted '%s', got %s\n", cases[i][0], cases[i][2], err.text);
    CU_ASSERT(ok);
    cfg_free(doc);
  }
}

/* What the reader refuses, it refuses in the unit of the field. */
TEST(every_complaint_about_a_field_says_its_unit) {
  static const char *const cases[][3] = {
      {"max_delay: -5", "'cluster.max_delay'", "at least 0, in s (as in 10m)"},
      {"max_delay: -5m", "-300", "in s"},
      {"max_delay: soon", "text ('soon')", "in s"},
      {"max_delay: [1]", "is a list", "in s"},
      {"window: 3updates\nmax_tokens: 0", "'cluster.max_tokens'", "in tokens"},
      {"concurrency: 3m", "takes no unit", "whole number"},
      {"concurrency: 3 whatever", "takes no unit", "whole number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[128];
    cfg_doc *doc = NULL;
    cfg_reader r;
    gl_error err = {0};
    const char *rest = strchr(cases[i][0], '\n');
    snprintf(text, sizeof text, "cluster: {%.*s%s%s}",
             rest != NULL ? (int)(rest - cases[i][0]) : 100, cases[i][0], rest != NULL ? ", " : "",
             rest != NULL ? rest + 1 : "");
    CU_ASSERT_EQUAL_FATAL(recipe_resolved(&doc, text, NULL, &err), GL_OK);
    cfg_begin(&r, cfg_find(cfg_root(doc), "cluster"), "cluster", &err);
    cfg_double(&r, "max_delay", 0, 0, INFINITY);
    cfg_count(&r, "window", 0, 0, 9);
    cfg_count(&r, "max_tokens", 1, 1, 9);
    cfg_count(&r, "concurrency", 1, 1, 9);
    CU_ASSERT_EQUAL(cfg_end(&r), GL_EINPUT);
    const int ok = strstr(err.text, cases[i][1]) != NULL && strstr(err.text, cases[i][2]) != NULL;
    if (!ok) fprintf(stderr, "%s: %s\n", text, err.text);
    CU_ASSERT(ok);
    cfg_free(doc);
  }
}

/* Every unit that a field has can be written, and the table's examples are right. */
TEST(every_fields_unit_is_in_the_table) {
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const char *u = fields_at(i)->unit;
    if (u[0] == '\0') continue;
    char text[128];
    cfg_doc *doc = NULL;
    gl_error err = {0};
    snprintf(text, sizeof text, "sweep: {%s: [%s, 1%s]}", fields_at(i)->path, units_example(u), u);
    gl_status status = recipe_resolved(&doc, text, NULL, &err);
    if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT(status == GL_OK);
    const cfg_node *list = cfg_find(cfg_find(cfg_root(doc), "sweep"), fields_at(i)->path);
    double x = 0;
    CU_ASSERT(list != NULL && cfg_number(cfg_at(list, 0), &x) && x > 0);
    CU_ASSERT(list != NULL && cfg_number(cfg_at(list, 1), &x) && x == 1);
    cfg_free(doc);
  }
  for (size_t i = 0; units_at(i) != NULL; ++i)
    CU_ASSERT_PTR_EQUAL(units_find(units_at(i)->name, units_at(i)->dimension), units_at(i));
}

/* --- ranges of sweeps and of tune --- */

SUITE("core: config ranges");

TEST(ranges_are_the_lists_that_one_would_write) {
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

TEST(tune_takes_ranges_too) {
  static const char text[] =
      "tune: {lr: {from: 0.01, to: 1, n: 3, scale: log}, seeds: {from: 101, to: 103}}";
  cfg_doc *doc = NULL;
  CU_ASSERT_EQUAL_FATAL(recipe_resolved(&doc, text, NULL, NULL), GL_OK);
  char *canonical = cfg_canonical(cfg_root(doc));
  CU_ASSERT_STRING_EQUAL(canonical, "{\"tune\":{\"lr\":[0.01,0.1,1],\"seeds\":[101,102,103]}}");
  free(canonical);
  cfg_free(doc);
}

TEST(wrong_ranges_are_refused) {
  static const char *const cases[][2] = {
      {"{from: 1, to: 2}", "without n"},
      {"{from: 1, n: 2}", "without to"},
      {"{to: 1, n: 2}", "without from"},
      {"{}", "without from"},
      {"{distribution: uniform}", "unknown key 'distribution'"},
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

/* --- units of other documents, and names of files --- */

SUITE("core: config of other documents");

static const cfg_quantity table[] = {
    {"plan.links.latency", "s"}, {"plan.links.bandwidth", "bytes/s"}, {"plan.windows", "updates"}};

static gl_status resolve(cfg_doc **doc, const char *text, gl_error *err) {
  gl_status status = cfg_load_text(doc, text, strlen(text), "c.yaml", err);
  return status == GL_OK ? cfg_resolve_quantities(*doc, table, 3, err) : status;
}

static void check(const char *text, const char *wanted) {
  cfg_doc *doc = NULL;
  ASSERT_OK(resolve(&doc, text, &err));
  char *canonical = cfg_canonical(cfg_root(doc));
  if (strcmp(canonical, wanted) != 0) fprintf(stderr, "wanted %s\n   got %s\n", wanted, canonical);
  CU_ASSERT_STRING_EQUAL(canonical, wanted);
  free(canonical);
  cfg_free(doc);
}

TEST(numbers_with_units_are_converted_in_lists_and_dists) {
  check("plan: {links: [{latency: 75ms, bandwidth: 1Gbit/s}, {latency: 2m}]}",
        "{\"plan\":{\"links\":[{\"bandwidth\":125000000,\"latency\":0.075},{\"latency\":120}]}}");
  check("plan: {links: [{latency: {distribution: lognormal, interval: [45ms, 1s], sigma: 2}}]}",
        "{\"plan\":{\"links\":[{\"latency\":{\"distribution\":\"lognormal\",\"interval\":[0.045,1],"
        "\"sigma\":2}}]}}");
  check("plan: {windows: [1, 4updates], name: 10m, other: {latency: 3m}}",
        "{\"plan\":{\"name\":\"10m\",\"other\":{\"latency\":\"3m\"},\"windows\":[1,4]}}");
  check("plan: {links: {latency: '10m'}}", "{\"plan\":{\"links\":{\"latency\":\"10m\"}}}");
}

TEST(other_units_are_refused_with_the_place) {
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

TEST(files_are_named_by_their_whole_paths) {
  scratch s;
  char recipe[SCRATCH_PATH_SIZE], csv[SCRATCH_PATH_SIZE];
  cfg_doc *doc = NULL;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "delays.csv", csv), "delay\n1\n2\n");
  scratch_write(scratch_path(&s, "r.yaml", recipe),
                "cluster:\n  delay: {distribution: empirical, file: delays.csv}\n"
                "  compare: {trace: not_there.csv}\n");
  ASSERT_OK(cfg_load_file(&doc, recipe, &err));
  ASSERT_OK(cfg_settle_files(doc, &err));
  char *whole = realpath(csv, NULL);
  CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(cfg_root(doc), "cluster.delay.file")), whole);
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(cfg_root(doc), "cluster.compare.trace")),
                         "not_there.csv");
  free(whole);
  cfg_free(doc);
  scratch_remove(&s);
}
