/* The list of the fields of `plan` against those that its reader knows. */
#include "experiments/plan/plan.h"

#include "experiments/recipe/recipe.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("experiments: fields of plans");

static bool is_listed(const char *section, const char *key, size_t length) {
  char path[128];
  snprintf(path, sizeof path, "%s.%.*s", section, (int)length, key);
  for (size_t i = 0; plan_field_at(i) != NULL; ++i)
    if (strcmp(plan_field_at(i)->path, path) == 0) return true;
  fprintf(stderr, "%s is read and not listed\n", path);
  return false;
}

static size_t listed_below(const char *section) {
  const size_t length = strlen(section);
  size_t n = 0;
  for (size_t i = 0; plan_field_at(i) != NULL; ++i) {
    const char *path = plan_field_at(i)->path;
    n += strncmp(path, section, length) == 0 && path[length] == '.' &&
         strchr(path + length + 1, '.') == NULL;
  }
  return n;
}

/* A key that is not known is answered with those that are. */
TEST(fields_that_are_read_are_those_that_are_listed) {
  static const struct {
    const char *section, *override;
  } cases[] = {{"plan", "plan.zzz=1"},
               {"plan.sites", "plan.sites=[{name: a, gpus: 2, zzz: 1}]"},
               {"plan.inside", "plan.inside.zzz=1"},
               {"plan.links", "plan.links=[{between: [node, far], zzz: 1}]"},
               {"plan.sampler", "plan.sampler.zzz=1"},
               {"plan.sampler.decoding",
                "plan.sampler.decoding=[{concurrency: 8, tokens_per_s: 50, zzz: 1}]"},
               {"plan.learner", "plan.learner.zzz=1"},
               {"plan.search", "plan.search.zzz=1"},
               {"plan.limits", "plan.limits.zzz=1"},
               {"plan.selection", "plan.selection.zzz=1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cfg_doc *doc = NULL;
    plan_description d;
    gl_error err = {0};
    const char *overrides[] = {"plan.sites=[{name: node, gpus: 8}, {name: far, gpus: 1}]",
                               cases[i].override};
    CU_ASSERT_EQUAL_FATAL(recipe_load_cluster(&doc, "one_node", overrides, 2, &err), GL_OK);
    CU_ASSERT_EQUAL(plan_describe(&d, doc, &err), GL_EINPUT);
    const char *known = strstr(err.text, "it knows: ");
    size_t n = 0;
    if (known == NULL) fprintf(stderr, "%s: %s\n", cases[i].section, err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(known);
    for (const char *at = known + strlen("it knows: "); *at != '\0'; ++n) {
      const size_t length = strcspn(at, ",");
      CU_ASSERT(is_listed(cases[i].section, at, length));
      at += length + strspn(at + length, ", ");
    }
    CU_ASSERT_EQUAL(n, listed_below(cases[i].section));
    cfg_free(doc);
  }
}
