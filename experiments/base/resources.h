/* Files that travel inside the binary: recipes, descriptions of clusters and plot scripts (the
 * Makefile embeds them). */
#ifndef GEPOLAB_EXPERIMENTS_BASE_RESOURCES_H
#define GEPOLAB_EXPERIMENTS_BASE_RESOURCES_H

#include <stddef.h>

typedef struct resource {
  const char *path; /* as in the repository: "plots/style.gp" */
  const char *data;
  size_t size;
} resource;

/* The i-th embedded file, or NULL past the end. */
const resource *resources_at(size_t i);
/* The embedded recipe called `name` ("quickstart"), or NULL. */
const resource *resources_recipe(const char *name);
/* The recipe name of a resource (length in *length), or NULL if it is not a recipe. */
const char *resources_recipe_name(const resource *r, size_t *length);

/* The embedded description of a cluster called `name` ("one_node"), or NULL; and the name of the
 * i-th, NULL past the last. */
const resource *resources_cluster(const char *name);
const char *resources_cluster_at(size_t i);

/* The text of the embedded file with that path, ended by a zero, or NULL. */
const char *resources_text(const char *path);

#endif
