/* Finds the recipes, descriptions of clusters and plot scripts that the Makefile embeds into the
 * binary. */
#include "experiments/base/resources.h"

#include <stdio.h>
#include <string.h>

/* Written by the Makefile; ends with an entry of zeros. */
extern const resource resource_table[];

static const char recipe_folder[] = "experiments/recipes/";
static const char recipe_suffix[] = ".yaml";

const resource *resources_at(size_t i) {
  for (size_t k = 0; k <= i; ++k)
    if (resource_table[k].path == NULL) return NULL;
  return &resource_table[i];
}

const char *resources_recipe_name(const resource *r, size_t *length) {
  size_t folder = sizeof recipe_folder - 1, suffix = sizeof recipe_suffix - 1;
  size_t all = strlen(r->path);
  if (all <= folder + suffix || strncmp(r->path, recipe_folder, folder) != 0) return NULL;
  if (strcmp(r->path + all - suffix, recipe_suffix) != 0) return NULL;
  *length = all - folder - suffix;
  return r->path + folder;
}

const resource *resources_recipe(const char *name) {
  for (const resource *r = resource_table; r->path != NULL; ++r) {
    size_t length = 0;
    const char *own = resources_recipe_name(r, &length);
    if (own != NULL && strlen(name) == length && strncmp(own, name, length) == 0) return r;
  }
  return NULL;
}

/* Their names, which are few. */
static const char *const clusters[] = {"one_node", "data_centre", "three_continents"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

const char *resources_cluster_at(size_t i) {
  return i < CLUSTERS ? clusters[i] : NULL;
}

const resource *resources_cluster(const char *name) {
  char path[128];
  const int n = snprintf(path, sizeof path, "experiments/clusters/%s.yaml", name);
  if (n < 0 || (size_t)n >= sizeof path || strchr(name, '/') != NULL) return NULL;
  for (const resource *r = resource_table; r->path != NULL; ++r)
    if (strcmp(r->path, path) == 0) return r;
  return NULL;
}

const char *resources_text(const char *path) {
  for (const resource *r = resource_table; r->path != NULL; ++r)
    if (strcmp(r->path, path) == 0) return r->data;
  return NULL;
}
