/* Recipes: equal ones have equal canonical text, overrides land where they say, values arrive as
 * written. */
#include "core/config/config.h"
#include "core/base/json.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: config");

static cfg_doc *loaded(const char *text) {
  cfg_doc *doc = NULL;
  ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
  return doc;
}

static void check_canonical(const cfg_doc *doc, const char *wanted) {
  char *text = cfg_canonical(cfg_root(doc));
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  if (strcmp(text, wanted) != 0) fprintf(stderr, "wanted %s\n   got %s\n", wanted, text);
  CU_ASSERT_STRING_EQUAL(text, wanted);
  free(text);
}

static void check_text(const char *yaml, const char *wanted) {
  cfg_doc *doc = loaded(yaml);
  check_canonical(doc, wanted);
  cfg_free(doc);
}

/* --- canonical text --- */

TEST(layout_does_not_change_the_canonical_text) {
  static const char *const layouts[] = {
      "a: 1\nb: [1, 2]\nc: {x: yes, y: ~}\n",
      "c:\n  y:\n  x: yes # as text: yes is no YAML 1.2 boolean\nb:\n- 1.0\n- 2e0\na: 0x1\n",
      "{b: [1e0, 0002], \"a\": +1, 'c': {y: null, x: 'yes'}}",
      "--- # one document\nb: [ 1,\n  2.00 ]\na: 1_0e-1\nc: &c\n  x: \"yes\"\n  y: Null\n...\n",
  };
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; ++i)
    check_text(layouts[i], "{\"a\":1,\"b\":[1,2],\"c\":{\"x\":\"yes\",\"y\":null}}");
}

TEST(kinds_stay_apart_in_the_canonical_text) {
  check_text("a: \"1\"", "{\"a\":\"1\"}");
  check_text("a: 'null'", "{\"a\":\"null\"}");
  check_text("a: ''", "{\"a\":\"\"}");
  check_text("a:", "{\"a\":null}");
  check_text("a: [true, 'true', FALSE]", "{\"a\":[true,\"true\",false]}");
  check_text("a: [1.5, '1.5', 1.5x]", "{\"a\":[1.5,\"1.5\",\"1.5x\"]}");
  check_text("a: [2, 1]\nb: [1, 2]", "{\"a\":[2,1],\"b\":[1,2]}"); /* lists keep their order */
  check_text("a: [[], {}]", "{\"a\":[[],{}]}");
}

TEST(numbers_are_canonical_by_value) {
  check_text("a: [-0, 0.0, -0.0, 00]", "{\"a\":[0,0,0,0]}");
  check_text("a: [0.1, .1, 1e-1, 0.10, 1E-01]", "{\"a\":[0.1,0.1,0.1,0.1,0.1]}");
  check_text("a: [1e3, 1000, 1_000, 0x3e8, 1000.]", "{\"a\":[1000,1000,1000,1000,1000]}");
  check_text("a: [inf, .inf, +.INF, -Inf]", "{\"a\":[1e999,1e999,1e999,-1e999]}");
  check_text("a: [18446744073709551615, -9223372036854775808, 9007199254740993]",
             "{\"a\":[18446744073709551615,-9223372036854775808,9007199254740993]}");
  check_text("a: [1e300, 5e-324, 0.30000000000000004]",
             "{\"a\":[1e+300,5e-324,0.30000000000000004]}");
}

TEST(text_is_escaped_in_the_canonical_text) {
  check_text("\"k\\\"\": \"a\\tb\\\\c\\n\\\"d\\\" \xc3\xa9\"",
             "{\"k\\\"\":\"a\\u0009b\\\\c\\u000a\\\"d\\\" \xc3\xa9\"}");
  check_text("a: \"\\x7f\\u0085\\u00a0\\u2028\\uFEFF\\U0001F600\"",
             "{\"a\":\"\\u007f\\u0085\xc2\xa0\\u2028\\ufeff\xf0\x9f\x98\x80\"}");
}

/* YAML reads JSON, so what is written is a recipe again, and the same one. */
TEST(the_canonical_text_is_a_recipe_with_the_same_canonical_text) {
  cfg_doc *doc = loaded(
      "b: [1e-9, inf, -inf, 'x: y', \"\\u0001\\x7f\\N\\L\\uFEFF\", {z: 1, a: '2'}, ~, true]\n"
      "a.b: 18446744073709551615\n");
  char *once = cfg_canonical(cfg_root(doc));
  CU_ASSERT_PTR_NOT_NULL_FATAL(once);
  cfg_doc *again = loaded(once);
  check_canonical(again, once);
  free(once);
  cfg_free(again);
  cfg_free(doc);
}

TEST(aliases_are_copies) {
  cfg_doc *doc = loaded("a: &x {n: [1, 2]}\nb: *x\nc: [*x, *x]\n");
  CU_ASSERT_EQUAL(cfg_override(doc, "b.n.0=7", NULL), GL_OK);
  check_canonical(doc, "{\"a\":{\"n\":[1,2]},\"b\":{\"n\":[7,2]},\"c\":[{\"n\":[1,2]},"
                       "{\"n\":[1,2]}]}");
  cfg_free(doc);
}

/* Anchors inside anchors nest deeper than any of them is written. */
TEST(aliases_do_not_nest_beyond_the_limit) {
  char text[4096] = "l0: &l0 [[[[[[[[[[1]]]]]]]]]]\n";
  size_t used = strlen(text);
  for (int i = 1; i < 9; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "l%d: &l%d [[[[[[[[[[*l%d]]]]]]]]]]\n", i, i, i - 1);
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL(cfg_load_text(&doc, text, used, "r.yaml", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "r.yaml:7:19: "));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "64 levels"));
  CU_ASSERT_PTR_NULL(doc);
}

/* --- changing a recipe --- */

typedef struct change {
  const char *from, *assignment, *to;
} change;

TEST(overrides_land_where_their_path_says) {
  static const change changes[] = {
      {"a: 1", "a=2", "{\"a\":2}"},
      {"a: 1", "b=[1, x, {y: 2}]", "{\"a\":1,\"b\":[1,\"x\",{\"y\":2}]}"},
      {"a: 1", "b.c.d='2'", "{\"a\":1,\"b\":{\"c\":{\"d\":\"2\"}}}"},
      {"a: {b: 1, c: 2}", "a.b={d: 3}", "{\"a\":{\"b\":{\"d\":3},\"c\":2}}"},
      {"a:", "a.b=1", "{\"a\":{\"b\":1}}"},
      {"a: 1", "a=null", "{\"a\":null}"},
      {"a: 1", "a=x=y", "{\"a\":\"x=y\"}"},
      {"a: [1, 2, 3]", "a.1=x", "{\"a\":[1,\"x\",3]}"},
      {"a: [{b: 1}, {b: 2}]", "a.1.b=9", "{\"a\":[{\"b\":1},{\"b\":9}]}"},
      {"a: [[1, 2]]", "a.0.1=9", "{\"a\":[[1,9]]}"},
      {"a: 1", "sweep.seed=[1, 2]", "{\"a\":1,\"sweep\":{\"seed\":[1,2]}}"},
      {"a: 1", "sweep.cluster.max_delay=[0, 60]",
       "{\"a\":1,\"sweep\":{\"cluster.max_delay\":[0,60]}}"},
      {"sweep: {cluster.max_delay: [1]}", "sweep.cluster.max_delay=[2]",
       "{\"sweep\":{\"cluster.max_delay\":[2]}}"},
      {"tune: {a.b: 1}", "tune.a.b=2", "{\"tune\":{\"a.b\":2}}"},
      {"a.b: 1", "a.b=2", "{\"a.b\":2}"},
      {"algorithm: gepo", "algorithm.clip=none",
       "{\"algorithm\":{\"base\":\"gepo\",\"clip\":\"none\"}}"},
      {"algorithm: {base: gepo, cap: 2}", "algorithm.clip=none",
       "{\"algorithm\":{\"base\":\"gepo\",\"cap\":2,\"clip\":\"none\"}}"},
      {"world: {kind: llm, task: addition}", "world.task.digits=3",
       "{\"world\":{\"kind\":\"llm\",\"task\":{\"digits\":3,\"kind\":\"addition\"}}}"},
      {"a: 1", "sweep.random.draws=3", "{\"a\":1,\"sweep\":{\"random\":{\"draws\":3}}}"},
      {"a: 1", "sweep.random.fields.optimizer.lr={from: 1, to: 2}",
       "{\"a\":1,\"sweep\":{\"random\":{\"fields\":{\"optimizer.lr\":{\"from\":1,\"to\":2}}}}}"},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; ++i) {
    cfg_doc *doc = loaded(changes[i].from);
    ASSERT_OK(cfg_override(doc, changes[i].assignment, &err));
    check_canonical(doc, changes[i].to);
    cfg_free(doc);
  }
}

TEST(a_value_set_from_another_recipe_outlives_it) {
  cfg_doc *doc = loaded("a: 1"), *other = loaded("v: {list: [1, two]}");
  CU_ASSERT_EQUAL(cfg_set(doc, "x.y", cfg_find(cfg_root(other), "v"), NULL), GL_OK);
  cfg_free(other);
  check_canonical(doc, "{\"a\":1,\"x\":{\"y\":{\"list\":[1,\"two\"]}}}");
  /* its place came along: a complaint about it names the recipe it stood in */
  gl_error err = {0};
  cfg_fail(cfg_find(cfg_root(doc), "x.y.list.1"), &err, "no");
  CU_ASSERT_STRING_EQUAL(err.text, "r.yaml:1:15: no");
  CU_ASSERT_EQUAL(cfg_set(doc, "a.b", cfg_find(cfg_root(doc), "x"), NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(cfg_set(doc, "x.y.list.0", cfg_find(cfg_root(doc), "a"), NULL), GL_OK);
  cfg_free(doc);
}

TEST(a_copy_is_equal_and_independent) {
  cfg_doc *doc = loaded("a: {b: [1, 2]}\nc: 'text'"), *copy = NULL;
  CU_ASSERT_EQUAL_FATAL(cfg_copy(&copy, doc, NULL), GL_OK);
  CU_ASSERT_EQUAL(cfg_override(copy, "a.b=3", NULL), GL_OK);
  check_canonical(doc, "{\"a\":{\"b\":[1,2]},\"c\":\"text\"}");
  cfg_free(doc);
  check_canonical(copy, "{\"a\":{\"b\":3},\"c\":\"text\"}");
  cfg_free(copy);
}

TEST(a_removed_key_is_gone_and_a_missing_one_does_no_harm) {
  cfg_doc *doc = loaded("a: 1\nb: 2\nc: 3");
  cfg_remove(doc, "b");
  cfg_remove(doc, "nowhere");
  cfg_remove(doc, "");
  check_canonical(doc, "{\"a\":1,\"c\":3}");
  cfg_remove(doc, "c");
  cfg_remove(doc, "a");
  check_canonical(doc, "{}");
  cfg_free(doc);
}

/* --- reading --- */

TEST(values_are_found_by_dotted_paths) {
  cfg_doc *doc = loaded("a: {b: [10, {c: x}]}\nd.e: 1\nd: {e.f: 2, g: 3}");
  const cfg_node *root = cfg_root(doc);
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(root, "a.b.0")), "10");
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(root, "a.b.1.c")), "x");
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(root, "d.e")), "1");
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(root, "d.e.f")), "2");
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(root, "d.g")), "3");
  CU_ASSERT_PTR_NULL(cfg_find(root, "a.b.2"));
  CU_ASSERT_PTR_NULL(cfg_find(root, "a.b.0.c"));
  CU_ASSERT_PTR_NULL(cfg_find(root, "a.b.99999999999999999999"));
  CU_ASSERT_PTR_NULL(cfg_find(root, ""));
  CU_ASSERT_PTR_NULL(cfg_find(root, "."));
  CU_ASSERT_EQUAL(cfg_size(cfg_find(root, "a.b")), 2);
  CU_ASSERT_STRING_EQUAL(cfg_key_at(root, 1), "d.e");
  CU_ASSERT_PTR_NULL(cfg_key_at(root, 3));
  cfg_free(doc);
}

TEST(whole_numbers_are_exact_to_their_last_bit) {
  cfg_doc *doc = loaded("most: 18446744073709551615\nleast: -9223372036854775808\n"
                        "odd: 9007199254740993\nexp: 1e3\nhex: 0xFFFFFFFFFFFFFFFF\nten: 10.0\n");
  gl_error err = {0};
  cfg_reader r;
  cfg_begin(&r, cfg_root(doc), "recipe", &err);
  CU_ASSERT_EQUAL(cfg_count(&r, "most", 0, 0, SIZE_MAX), SIZE_MAX);
  CU_ASSERT_EQUAL(cfg_count(&r, "hex", 0, 0, SIZE_MAX), SIZE_MAX);
  CU_ASSERT_EQUAL(cfg_int(&r, "least", 0, INT64_MIN, INT64_MAX), INT64_MIN);
  CU_ASSERT_EQUAL(cfg_int(&r, "odd", 0, 0, INT64_MAX), INT64_C(9007199254740993));
  CU_ASSERT_EQUAL(cfg_count(&r, "exp", 0, 0, 1000), 1000);
  CU_ASSERT_EQUAL(cfg_int(&r, "ten", 0, 0, 10), 10);
  CU_ASSERT_EQUAL(cfg_end(&r), GL_OK);
  cfg_begin(&r, cfg_root(doc), "recipe", &err);
  cfg_int(&r, "most", 0, INT64_MIN, INT64_MAX);
  CU_ASSERT_EQUAL(cfg_end(&r), GL_EINPUT);
  cfg_free(doc);
}

TEST(every_kind_of_value_is_read_and_absence_gives_the_default) {
  static const char *const dists[] = {"constant", "weibull"};
  cfg_doc *doc =
      loaded("time: 1e-3\nforever: inf\non: true\ndistribution: weibull\nname: 007\nnone: ~\n"
             "delays: [0, 60, 1e2]\nalone: 5\nsection: {x: 1}\n");
  gl_error err = {0};
  cfg_reader r;
  double *list, *alone, *absent;
  cfg_begin(&r, cfg_root(doc), "recipe", &err);
  CU_ASSERT_EQUAL(cfg_positive(&r, "time", 1), 1e-3);
  CU_ASSERT_EQUAL(cfg_double(&r, "forever", 0, 0, INFINITY), INFINITY);
  CU_ASSERT_EQUAL(cfg_bool(&r, "on", 0), 1);
  CU_ASSERT_EQUAL(cfg_choice(&r, "distribution", 0, dists, 2), 1);
  CU_ASSERT_STRING_EQUAL(cfg_string(&r, "name", ""), "007");
  CU_ASSERT_EQUAL(cfg_doubles(&r, "delays", &list, 0, 1e9), 3);
  CU_ASSERT(list[0] == 0 && list[1] == 60 && list[2] == 100);
  CU_ASSERT_EQUAL(cfg_doubles(&r, "alone", &alone, 0, 1e9), 1);
  CU_ASSERT(alone[0] == 5);
  CU_ASSERT_EQUAL(cfg_doubles(&r, "absent", &absent, 0, 1e9), 0);
  CU_ASSERT_PTR_NULL(absent);
  CU_ASSERT_EQUAL(cfg_size(cfg_child(&r, "section")), 1);
  CU_ASSERT_EQUAL(cfg_int(&r, "none", 42, 0, 1), 42); /* a null is an absent value */
  CU_ASSERT_FALSE(cfg_has(&r, "none"));
  CU_ASSERT_TRUE(cfg_has(&r, "alone"));
  CU_ASSERT_PTR_NULL(cfg_string(&r, "nowhere", NULL));
  CU_ASSERT_EQUAL(cfg_end(&r), GL_OK);
  free(list);
  free(alone);
  cfg_free(doc);
}

TEST(after_a_failure_the_reader_gives_defaults_and_the_first_error) {
  cfg_doc *doc = loaded("a: x\nb: y\nc: 3");
  gl_error err = {0};
  cfg_reader r;
  cfg_begin(&r, cfg_root(doc), "recipe", &err);
  CU_ASSERT_EQUAL(cfg_int(&r, "a", 1, 0, 9), 1);
  CU_ASSERT_EQUAL(cfg_int(&r, "b", 2, 0, 9), 2);
  CU_ASSERT_EQUAL(cfg_int(&r, "c", 5, 0, 9), 5);
  CU_ASSERT_EQUAL(cfg_end(&r), GL_EINPUT);
  CU_ASSERT_EQUAL(strncmp(err.text, "r.yaml:1:4: 'recipe.a'", 22), 0);
  cfg_free(doc);
}

TEST(the_nearest_name_is_a_likely_one_or_none) {
  static const char *const names[] = {"window", "latency", "bandwidth", "steps", "step_time"};
  static const char *const wrong[][2] = {{"widnow", "window"},      {"windows", "window"},
                                         {"latancy", "latency"},    {"band", "bandwidth"},
                                         {"step_tme", "step_time"}, {"stpes", "steps"},
                                         {"xyzzy", NULL},           {"", NULL}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    const char *near = cfg_nearest(wrong[i][0], names, 5);
    CU_ASSERT(wrong[i][1] == NULL ? near == NULL : near != NULL && strcmp(near, wrong[i][1]) == 0);
  }
  char longest[200];
  memset(longest, 'w', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  CU_ASSERT_PTR_NULL(cfg_nearest(longest, names, 5));
  CU_ASSERT_PTR_NULL(cfg_nearest("steps", names, 0));
}

/* The value of one field, in any style of YAML; places are those of the text. */
TEST(a_value_stands_alone_under_the_name_that_messages_give_it) {
  static const struct {
    const char *text, *wanted; /* canonical, or the message */
  } values[] = {{"30m", "{\"cluster\":{\"delay\":1800}}"},
                {"distribution: uniform\nmin: 1m\n",
                 "{\"cluster\":{\"delay\":{\"distribution\":\"uniform\",\"min\":60}}}"},
                {"- 1\n- [2, x]", "{\"cluster\":{\"delay\":[1,[2,\"x\"]]}}"},
                {"null", "{\"cluster\":{\"delay\":null}}"},
                {"", "mine:1:1: the text is empty"},
                {"{a: 1,\n b: [}", "mine:2:6: not valid YAML"},
                {"a: 1\na: 2", "mine:2:1: "}};
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    const char *text = values[i].text, *wanted = values[i].wanted;
    gl_status status = cfg_load_value(&doc, "cluster.delay", text, strlen(text), "mine", &err);
    CU_ASSERT_EQUAL(status == GL_OK, *wanted == '{');
    if (status == GL_OK && cfg_resolve(doc, &err) == GL_OK) {
      check_canonical(doc, wanted);
    } else {
      if (strncmp(err.text, wanted, strlen(wanted)) != 0)
        fprintf(stderr, "wanted %s, got %s\n", wanted, err.text);
      CU_ASSERT_EQUAL(strncmp(err.text, wanted, strlen(wanted)), 0);
    }
    CU_ASSERT(status == GL_OK || doc == NULL);
    cfg_free(doc);
  }
}

/* --- wrong recipes: each is refused at its place, with a remedy --- */

SUITE("core: config errors");

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
  cfg_choice(&r, "distribution", 0, dists, 3);
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
    {"distribution: lognormel", NULL, "r.yaml:1:15: ", "did you mean 'lognormal'"},
    {"name: {a: 1}", NULL, "r.yaml:1:7: ", "must be text"},
    {"steps: 1\nsteps: 2", NULL, "r.yaml:2:1: ", "is twice"},
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
    {"\xef\xbb\xbfsteps: x", NULL, "r.yaml:1:8: ", "whole number"}, /* a byte order mark */
    {"\xff\xfe\xfd", NULL, "r.yaml:1:1: ", "byte 0xff"},
    {"name: \"\\0\"", NULL, "r.yaml:1:7: ", "NUL"},
    {"<<: {b: 1}", NULL, "r.yaml:1:6: ", "unknown key 'b'"},
    {"name: !!str 3", NULL, "r.yaml:1:7: ", "tag"},
    {"[a]: 3", NULL, "r.yaml:1:1: ", "key must be plain text"},
    {": 3", NULL, "r.yaml:1:1: ", "expected key"},
    {"? " LONG_KEY "\n: 3", NULL, "r.yaml:1:3: ", "longer than the 128 bytes"},
    {"'': 3", NULL, "r.yaml:1:1: ", "key is missing"},
    {"steps: 1", "steps", "command line:1:1: ", "no '='"},
    {"steps: 1", "steps=", "command line:1:1: ", "no value; write steps=VALUE (null: the default)"},
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

TEST(every_wrong_recipe_is_refused_at_its_place) {
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

TEST(what_is_too_large_or_too_deep_is_refused) {
  refuse_filled("name: ", 'x', 10u << 20, "r.yaml:1:1: ", "8 MiB");
  refuse_filled("a: ", '[', 200, "r.yaml:1:67: ", "deeper than the 64 levels");
  refuse_filled("a: 1\n", '\0', 64, "r.yaml:2:1: ", "byte 0x00");
}

TEST(aliases_that_explode_are_refused) {
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

TEST(files_that_cannot_be_read_are_refused) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  check_refused(cfg_load_file(&doc, "tests/nowhere.yaml", &err), &err,
                "tests/nowhere.yaml:1:1: ", "No such file");
  gl_error_clear(&err);
  check_refused(cfg_load_file(&doc, "tests", &err), &err, "tests:1:1: ", "inside this folder");
  CU_ASSERT_PTR_NULL(doc);
}
