/* The program itself: the identifier of its build, the user's own definitions, its cache folder,
 * the files embedded in it, and signals. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_PROGRAM_H
#define GEPOLAB_EXPERIMENTS_BASE_PROGRAM_H

#include "core/base/seconds.h"
#include "core/config/user_defined.h"

#include <stddef.h>
#include <stdint.h>

/* --- the build identifier, read from the linker's note in our own memory --- */

/* A hash of the build identifier that the linker put into the program (--build-id), which differs
 * between programs of different code or data and is the same for every copy of one. 0 if the
 * program has none. */
uint64_t build_number(void);

/* --- the user's own algorithms and presets --- */

/* The options that name files of own definitions (core/config/user_defined.h), and the variables of
 * the environment that do so too, to which args_parse() writes the options. */
typedef struct program_own_file {
  const char *key; /* "algorithms": the option, and what the file must define */
  const char *variable, *value, *help;
} program_own_file;
enum { PROGRAM_OWN_FILES = 2 };
extern const program_own_file program_own_files[PROGRAM_OWN_FILES];

/* Reads those files; without any, an empty set. Free with cfg_own_free(). Errors: as
 * cfg_own_add_file(). */
gl_status program_own(cfg_own **out, gl_error *err);

/* --- the cache folder --- */

/* The folder where learners cache results between runs (such as the weights after a supervised
 * warm-up), and the name of this build, under which they are stored. */

typedef struct cache_place {
  char folder[4096]; /* empty: nothing is kept */
  char code[17];     /* build_number() as hex digits */
} cache_place;

/* $GEPOLAB_CACHE (empty: nothing is kept), else gepolab in $XDG_CACHE_HOME, else in ~/.cache.
 * Nothing is kept by a program without a build identifier. Returns place. */
const cache_place *cache_find(cache_place *place);

/* --- embedded files --- */

/* Recipes, descriptions of clusters and plot scripts (the Makefile embeds them). */

typedef struct resource {
  const char *path; /* as in the repository: "plots/page.gp" */
  const char *data;
  size_t size;
} resource;

/* The i-th embedded file, or NULL past the end. */
const resource *resources_at(size_t i);
/* The embedded recipe called `name` ("quickstart"), or NULL. */
const resource *resources_recipe(const char *name);
/* The recipe name of a resource (length in *length), or NULL if it is not a recipe. */
const char *resources_recipe_name(const resource *r, size_t *length);

/* The same of descriptions of clusters ("one_node"). */
const resource *resources_cluster(const char *name);
const char *resources_cluster_name(const resource *r, size_t *length);

/* The text of the embedded file with that path, ended by a zero, or NULL. */
const char *resources_text(const char *path);

/* --- signals --- */

/* Stopping on request: a command that has work to save records the first signal, and checks between
 * its steps whether there was one. */

/* From this call on the first SIGINT, SIGTERM or SIGHUP is recorded instead of ending the process;
 * a second of the same kind ends it. A SIGHUP that the caller ignores stays ignored, as under
 * nohup. */
void signals_catch(void);
/* From this call on every SIGTERM is recorded, never only the first; other signals are unchanged.
 * For workers, which their parent stops with SIGTERM. */
void signals_catch_term(void);
/* The recorded signal, or 0. */
int signals_caught(void);

#endif
