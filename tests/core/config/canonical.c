/* Values that the program makes, and canonical texts with holes against those of whole recipes. */
#include "core/config/config.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: config build");

static cfg_doc *loaded(const char *text) {
  cfg_doc *doc = NULL;
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "r.yaml", NULL) == GL_OK);
  return doc;
}

TEST(a_list_of_maps_holds_what_was_put_and_outlives_its_source) {
  cfg_doc *source = loaded("a: {b: [1, x]}\nc: 2"), *list = NULL;
  const cfg_node *root = cfg_root(source);
  CU_ASSERT_EQUAL_FATAL(cfg_list_new(&list, cfg_find(root, "a"), NULL), GL_OK);
  CU_ASSERT_EQUAL(cfg_list_add_map(list, NULL), GL_OK);
  CU_ASSERT_EQUAL(cfg_list_put(list, "x.y", cfg_find(root, "a.b"), NULL), GL_OK);
  CU_ASSERT_EQUAL(cfg_list_put_number(list, "n", 0.25, cfg_find(root, "c"), NULL), GL_OK);
  CU_ASSERT_EQUAL(cfg_list_add_map(list, NULL), GL_OK);
  cfg_free(source);
  char *text = cfg_canonical(cfg_root(list));
  CU_ASSERT_STRING_EQUAL(text, "[{\"n\":0.25,\"x.y\":[1,\"x\"]},{}]");
  free(text);
  gl_error err = {0};
  cfg_fail(cfg_find(cfg_root(list), "0.n"), &err, "here");
  CU_ASSERT_STRING_EQUAL(err.text, "r.yaml:2:4: here");
  cfg_free(list);
}

/* Each value of every hole against the canonical text of the recipe that has it. */
TEST(a_template_writes_what_the_changed_recipe_would_be) {
  static const char *const paths[] = {"z", "a.b", "a.c", "list.1"};
  static const char *const values[] = {"1", "{\"k\":[1,2]}", "\"text\"", "null", "1e-05"};
  cfg_doc *doc = loaded("z: long text here\na: {c: 1, b: {d: 2}}\nlist: [1, 2, 3]\nm: 4");
  cfg_template *t = NULL;
  CU_ASSERT_EQUAL_FATAL(cfg_template_new(&t, doc, paths, 4, CFG_KEYS_CURRENT, NULL), GL_OK);
  for (size_t i = 0; i < 625; ++i) {
    const char *in[4];
    size_t rest = i;
    cfg_doc *changed = NULL;
    CU_ASSERT_EQUAL_FATAL(cfg_copy(&changed, doc, NULL), GL_OK);
    for (size_t k = 0; k < 4; ++k, rest /= 5) {
      char assignment[64];
      in[k] = values[rest % 5];
      snprintf(assignment, sizeof assignment, "%s=%s", paths[k], in[k]);
      CU_ASSERT_EQUAL_FATAL(cfg_override(changed, assignment, NULL), GL_OK);
    }
    char *wanted = cfg_canonical(cfg_root(changed)), text[256];
    CU_ASSERT_EQUAL(cfg_template_size(t, in), strlen(wanted));
    cfg_template_write(t, in, text);
    CU_ASSERT_STRING_EQUAL(text, wanted);
    free(wanted);
    cfg_free(changed);
  }
  cfg_template_free(t);
  cfg_free(doc);
}

TEST(a_template_without_its_paths_is_refused) {
  static const char *const missing[] = {"a.x"}, *const nested[] = {"a", "a.b"};
  cfg_doc *doc = loaded("a: {b: 1}");
  cfg_template *t = NULL;
  CU_ASSERT_EQUAL(cfg_template_new(&t, doc, missing, 1, CFG_KEYS_CURRENT, NULL), GL_EINTERNAL);
  CU_ASSERT_EQUAL(cfg_template_new(&t, doc, nested, 2, CFG_KEYS_CURRENT, NULL), GL_EINTERNAL);
  CU_ASSERT_PTR_NULL(t);
  CU_ASSERT_EQUAL_FATAL(cfg_template_new(&t, doc, NULL, 0, CFG_KEYS_CURRENT, NULL), GL_OK);
  char text[32];
  cfg_template_write(t, NULL, text);
  CU_ASSERT_STRING_EQUAL(text, "{\"a\":{\"b\":1}}");
  cfg_template_free(t);
  cfg_free(doc);
}

/* --- old words --- */

static void check_words(const char *text, const char *now, const char *old) {
  cfg_doc *doc = loaded(text);
  char *is_now = cfg_canonical(cfg_root(doc)),
       *is_old = cfg_canonical_in(cfg_root(doc), CFG_KEYS_OLD), *again = cfg_text_now(old);
  CU_ASSERT_STRING_EQUAL(is_now, now);
  CU_ASSERT_STRING_EQUAL(is_old, old);
  if (strcmp(now, old) != 0) CU_ASSERT_STRING_EQUAL(again, now);
  if (strcmp(now, old) == 0) CU_ASSERT_PTR_NULL(again);
  CU_ASSERT_EQUAL(cfg_has_old_keys(now), 0);
  free(is_now), free(is_old), free(again);
  cfg_free(doc);
}

/* Keys are sorted in both words. A map called `law`, and values, are the user's. */
TEST(an_old_key_becomes_the_new_one_wherever_it_is_read) {
  check_words("a: {law: gamma, mean: 1}", "{\"a\":{\"distribution\":\"gamma\",\"mean\":1}}",
              "{\"a\":{\"law\":\"gamma\",\"mean\":1}}");
  check_words(
      "a: {distribution: gamma, good: {law: x}, interval: [1]}",
      "{\"a\":{\"distribution\":\"gamma\",\"good\":{\"distribution\":\"x\"},\"interval\":[1]}}",
      "{\"a\":{\"good\":{\"law\":\"x\"},\"interval\":[1],\"law\":\"gamma\"}}");
  check_words("a.law: [b, c]\na.k: [{law: 1}]",
              "{\"a.distribution\":[\"b\",\"c\"],\"a.k\":[{"
              "\"distribution\":1}]}",
              "{\"a.k\":[{\"law\":1}],\"a.law\":[\"b\",\"c\"]}");
  check_words(
      "b: &b {law: x, mean: 1}\na: {<<: *b, law: y}",
      "{\"a\":{\"distribution\":\"y\",\"mean\":1},\"b\":{\"distribution\":\"x\",\"mean\":1}}",
      "{\"a\":{\"law\":\"y\",\"mean\":1},\"b\":{\"law\":\"x\",\"mean\":1}}");
  check_words(
      "law: {base: gepo}\na: {lawful: 1, law.b: 2, outlaw: 3, c: law}",
      "{\"a\":{\"c\":\"law\",\"law.b\":2,\"lawful\":1,\"outlaw\":3},\"law\":{\"base\":\"gepo\"}}",
      "{\"a\":{\"c\":\"law\",\"law.b\":2,\"lawful\":1,\"outlaw\":3},\"law\":{\"base\":\"gepo\"}}");
}

TEST(an_old_key_in_an_override_sets_the_new_one) {
  static const struct {
    const char *assignment, *wanted;
  } rows[] = {
      {"a.law=gamma", "{\"a\":{\"distribution\":\"gamma\"}}"},
      {"a={law: gamma}", "{\"a\":{\"distribution\":\"gamma\"}}"},
      {"sweep.a.law=[x]",
       "{\"a\":{\"distribution\":\"x\"},\"sweep\":{\"a.distribution\":[\"x\"]}}"},
      {"law.b=1", "{\"a\":{\"distribution\":\"x\"},\"law\":{\"b\":1}}"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    cfg_doc *doc = loaded("a: {distribution: x}");
    CU_ASSERT_EQUAL(cfg_override(doc, rows[i].assignment, NULL), GL_OK);
    char *text = cfg_canonical(cfg_root(doc));
    CU_ASSERT_STRING_EQUAL(text, rows[i].wanted);
    free(text);
    cfg_free(doc);
  }
}

TEST(an_old_key_beside_the_new_one_is_refused) {
  static const char *const texts[] = {"{law: x, distribution: y}", "{distribution: y, law: x}"};
  for (size_t i = 0; i < 2; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(cfg_load_text(&doc, texts[i], strlen(texts[i]), "r.yaml", &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.text, "key 'distribution', or 'law', its old word, is twice"));
  }
}

/* Long texts and keys beyond the room for one are left as they are. */
TEST(a_key_too_long_for_any_field_is_left_alone) {
  char key[CFG_KEY_SIZE + 8], room[CFG_KEY_SIZE];
  memset(key, 'a', sizeof key);
  strcpy(key + CFG_KEY_SIZE, ".law");
  CU_ASSERT_PTR_EQUAL(cfg_key_in(CFG_KEYS_CURRENT, key, room), key);
  CU_ASSERT_STRING_EQUAL(cfg_key_in(CFG_KEYS_CURRENT, key + CFG_KEY_SIZE - 2, room),
                         "aa.distribution");
  CU_ASSERT_PTR_NULL(cfg_text_now("{\"law\":"));
}
