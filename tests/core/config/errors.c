/* Wrong recipes: each is refused as GL_EINPUT, at its place, with a reason and a remedy. */
#include "core/config/config.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

/* The schema that the table's recipes are read with. */
static gl_status read_recipe(const cfg_doc *doc, gl_error *err) {
  static const char *const dists[] = {"constant", "lognormal", "weibull"};
  cfg_reader r;
  double *list = NULL;
  cfg_begin(&r, cfg_root(doc), "recipe", err);
  cfg_int(&r, "offset", 0, -5, 5);
  cfg_count(&r, "steps", 1, 1, 1000);
  cfg_positive(&r, "time", 1);
  cfg_bool(&r, "paired", 0);
  cfg_choice(&r, "law", 0, dists, 3);
  cfg_string(&r, "name", "");
  cfg_doubles(&r, "delays", &list, 0, 1e9);
  cfg_child(&r, "cluster");
  free(list);
  return cfg_end(&r);
}

typedef struct wrong {
  const char *text, *override, *place, *says;
} wrong;

#define TEN "0123456789"
#define LONG_KEY TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN /* 130 */

static const wrong recipes[] = {
    {"stepz: 3", NULL, "r.yaml:1:1: ", "did you mean 'steps'"},
    {"steps: [1]", NULL, "r.yaml:1:8: ", "is a list"},
    {"a: 1\nsteps: x", NULL, "r.yaml:2:8: ", "whole number"},
    {"steps: 5x", NULL, "r.yaml:1:8: ", "whole number from 1 to 1000"},
    {"steps: '5'", NULL, "r.yaml:1:8: ", "is text"},
    {"steps: 1.5", NULL, "r.yaml:1:8: ", "whole number"},
    {"steps: 0", NULL, "r.yaml:1:8: ", "from 1 to 1000"},
    {"steps: 99999999999999999999", NULL, "r.yaml:1:8: ", "from 1 to 1000"},
    {"offset: -6", NULL, "r.yaml:1:9: ", "from -5 to 5"},
    {"time: -1", NULL, "r.yaml:1:7: ", "above 0"},
    {"time: 1e999999", NULL, "r.yaml:1:7: ", "double can hold"},
    {"time: nan", NULL, "r.yaml:1:7: ", "above 0"},
    {"delays: []", NULL, "r.yaml:1:9: ", "at least one number"},
    {"delays: [1, -2]", NULL, "r.yaml:1:13: ", "from 0 to"},
    {"paired: yes", NULL, "r.yaml:1:9: ", "did you mean 'true'"},
    {"paired: flase", NULL, "r.yaml:1:9: ", "did you mean 'false'"},
    {"law: lognormel", NULL, "r.yaml:1:6: ", "did you mean 'lognormal'"},
    {"name: {a: 1}", NULL, "r.yaml:1:7: ", "must be text"},
    {"steps: 1\nsteps: 2", NULL, "r.yaml:2:1: ", "stands twice"},
    {"name: &x [*x]", NULL, "r.yaml:1:11: ", "cycle"},
    {"name: *x", NULL, "r.yaml:1:7: ", "no anchor"},
    {"a: &delay 1\nname: *dealy", NULL, "r.yaml:2:7: ", "did you mean '*delay'"},
    {"cluster:\n\t- a", NULL, "r.yaml:2:1: ", "tab"},
    {"name: \"open", NULL, "r.yaml:1:", "not valid YAML"},
    {"name: [1, 2", NULL, "r.yaml:", "not valid YAML"},
    {"steps: 1\n---\nsteps: 2", NULL, "r.yaml:2:1: ", "second YAML document"},
    {"- 1", NULL, "r.yaml:1:1: ", "is a list"},
    {"7", NULL, "r.yaml:1:1: ", "is a number"},
    {"", NULL, "r.yaml:1:1: ", "is empty"},
    {"# nothing\n", NULL, "r.yaml:", "is empty"},
    {"name: \x01", NULL, "r.yaml:1:7: ", "byte 0x01"},
    {"\xff\xfe\xfd", NULL, "r.yaml:1:1: ", "byte 0xff"},
    {"name: \"\\0\"", NULL, "r.yaml:1:7: ", "NUL"},
    {"<<: {b: 1}", NULL, "r.yaml:1:6: ", "unknown key 'b'"},
    {"name: !!str 3", NULL, "r.yaml:1:7: ", "tag"},
    {"[a]: 3", NULL, "r.yaml:1:1: ", "key must be plain text"},
    {": 3", NULL, "r.yaml:1:1: ", "expected key"},
    {"? " LONG_KEY "\n: 3", NULL, "r.yaml:1:3: ", "longer than the 128 bytes"},
    {"'': 3", NULL, "r.yaml:1:1: ", "key is missing"},
    {"steps: 1", "steps", "command line:1:1: ", "no '='"},
    {"steps: 1", "=3", "command line:1:1: ", "key is missing"},
    {"steps: 1", "st\xff=3", "command line:1:1: ", "not UTF-8"},
    {"steps: 1", LONG_KEY "=3", "command line:1:1: ", "longer than the 128 bytes"},
    {"steps: 1", "cluster..x=3", "command line:1:9: ", "key is missing"},
    {"steps: 1", "steps.x=3", "command line:1:7: ", "nothing below it"},
    {"steps: 1", "name=[1", "command line:1:8: ", "not valid YAML"},
    {"steps: 1", "steps=x", "command line:1:7: ", "in 'steps=x'"},
    {"steps: 1", "stpes=3", "command line:1:1: ", "did you mean 'steps'"},
    {"steps: 1", "name=a: b", "command line:1:6: ", "{key: value}"},
    {"delays: [1, 2]", "delays.2=3", "command line:1:8: ", "from 0 to 1"},
    {"delays: [1, 2]", "delays.x=3", "command line:1:8: ", "from 0 to 1"},
};

static void check_refused(gl_status status, const gl_error *err, const char *place,
                          const char *says) {
  int ok = status == GL_EINPUT && err->status == GL_EINPUT &&
           strncmp(err->text, place, strlen(place)) == 0 && strstr(err->text, says) != NULL;
  if (!ok) fprintf(stderr, "wanted '%s... %s', got %d '%s'\n", place, says, status, err->text);
  CU_ASSERT(ok);
}

static void every_wrong_recipe_is_refused_at_its_place(void) {
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; ++i) {
    const wrong *w = &recipes[i];
    cfg_doc *doc = NULL;
    gl_error err = {0};
    gl_status status = cfg_load_text(&doc, w->text, strlen(w->text), "r.yaml", &err);
    if (status == GL_OK && w->override != NULL) status = cfg_override(doc, w->override, &err);
    if (status == GL_OK) {
      cfg_remove(doc, "a"); /* the table's own helper key */
      status = read_recipe(doc, &err);
    }
    check_refused(status, &err, w->place, w->says);
    cfg_free(doc);
  }
}

/* size bytes of fill after a beginning. */
static void refuse_filled(const char *begin, char fill, size_t size, const char *place,
                          const char *says) {
  char *text = malloc(size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, fill, size);
  memcpy(text, begin, strlen(begin));
  cfg_doc *doc = NULL;
  gl_error err = {0};
  check_refused(cfg_load_text(&doc, text, size, "r.yaml", &err), &err, place, says);
  cfg_free(doc);
  free(text);
}

static void what_is_too_large_or_too_deep_is_refused(void) {
  refuse_filled("name: ", 'x', 10u << 20, "r.yaml:1:1: ", "8 MiB");
  refuse_filled("a: ", '[', 200, "r.yaml:1:67: ", "deeper than the 64 levels");
  refuse_filled("a: 1\n", '\0', 64, "r.yaml:2:1: ", "byte 0x00");
}

static void aliases_that_explode_are_refused(void) {
  char text[2048] = "l0: &l0 [1,1,1,1,1,1,1,1,1,1]\n";
  size_t used = strlen(text);
  for (int i = 1; i < 9; ++i) {
    used += (size_t)snprintf(text + used, sizeof text - used, "l%d: &l%d [", i, i);
    for (int k = 0; k < 10; ++k)
      used +=
          (size_t)snprintf(text + used, sizeof text - used, "*l%d%s", i - 1, k < 9 ? "," : "]\n");
  }
  cfg_doc *doc = NULL;
  gl_error err = {0};
  check_refused(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err), &err,
                "r.yaml:1:", "beyond 1000000 values");
  cfg_free(doc);
}

static void files_that_cannot_be_read_are_refused(void) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  check_refused(cfg_load_file(&doc, "tests/nowhere.yaml", &err), &err,
                "tests/nowhere.yaml:1:1: ", "No such file");
  gl_error_clear(&err);
  check_refused(cfg_load_file(&doc, "tests", &err), &err, "tests:1:1: ", "inside this folder");
  CU_ASSERT_PTR_NULL(doc);
}

SUITE(config_errors, "core: config errors", TEST(every_wrong_recipe_is_refused_at_its_place),
      TEST(what_is_too_large_or_too_deep_is_refused), TEST(aliases_that_explode_are_refused),
      TEST(files_that_cannot_be_read_are_refused));
