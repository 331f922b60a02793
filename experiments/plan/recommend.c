/* The recipe that a plan recommends. */
#include "experiments/plan/recommend.h"

#include "core/config/files.h"
#include "experiments/recipe/recipe.h"

#include <stdio.h>
#include <string.h>

static int recommend_has(const cfg_doc *doc, const char *section) {
  const cfg_node *node = cfg_find(cfg_root(doc), section);
  return node != NULL && !cfg_is_null(node);
}

static gl_status recommend_describe(cfg_doc *doc, const plan_candidate *c,
                                    const plan_description *d, gl_error *err) {
  char split[PLAN_SPLIT_SIZE], text[PLAN_SPLIT_SIZE + 64];
  /* Names of sites are the user's: what would end the text is left out. */
  plan_candidate_split(c, d, split);
  for (char *at = split; *at != '\0'; ++at)
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = ' ';
  snprintf(text, sizeof text, "description=\"planned: %s\"", split);
  return cfg_override(doc, text, err);
}

/* Whether a learner can follow its clock; a reason is no failure. */
static gl_status recommend_check(const cfg_doc *doc, char why_not[PLAN_WHY_SIZE], gl_error *err) {
  gl_error why = {0};
  recipe r;
  gl_status status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = recipe_check(&r, NULL, &why);
  if (status == GL_OK || why.status != GL_EINPUT) return status;
  snprintf(why_not, PLAN_WHY_SIZE, "%.*s", PLAN_WHY_SIZE - 1, why.text);
  return GL_OK;
}

gl_status plan_recommend(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                         char why_not[PLAN_WHY_SIZE], gl_error *err) {
  why_not[0] = '\0';
  gl_status status = plan_candidate_recipe(out, c, d, err);
  if (status == GL_OK) status = recommend_describe(*out, c, d, err);
  if (status == GL_OK && !recommend_has(*out, "world")) {
    status = cfg_override(*out, "world={kind: bandit, arms: 10}", err);
    if (status == GL_OK) status = cfg_override(*out, "sweep={seed: [1, 2, 3]}", err);
  }
  if (status == GL_OK) status = cfg_settle_files(*out, err);
  if (status == GL_OK) status = recommend_check(*out, why_not, err);
  if (status == GL_OK) return GL_OK;
  cfg_free(*out);
  *out = NULL;
  return status;
}
