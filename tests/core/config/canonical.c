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
  CU_ASSERT_EQUAL_FATAL(cfg_template_new(&t, doc, paths, 4, NULL), GL_OK);
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
  CU_ASSERT_EQUAL(cfg_template_new(&t, doc, missing, 1, NULL), GL_EINTERNAL);
  CU_ASSERT_EQUAL(cfg_template_new(&t, doc, nested, 2, NULL), GL_EINTERNAL);
  CU_ASSERT_PTR_NULL(t);
  CU_ASSERT_EQUAL_FATAL(cfg_template_new(&t, doc, NULL, 0, NULL), GL_OK);
  char text[32];
  cfg_template_write(t, NULL, text);
  CU_ASSERT_STRING_EQUAL(text, "{\"a\":{\"b\":1}}");
  cfg_template_free(t);
  cfg_free(doc);
}
