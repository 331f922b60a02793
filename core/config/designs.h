/* The designs of a recipe's `sweep`: keys that are no axis of one field but set several fields at
 * once, below them a map or maps whose keys are paths of fields. What each design means stands in
 * experiments/recipe. */
#ifndef GEPOLAB_CORE_CONFIG_DESIGNS_H
#define GEPOLAB_CORE_CONFIG_DESIGNS_H

#include <stddef.h>

typedef struct cfg_design {
  const char *key;    /* in `sweep` */
  const char *form;   /* how its value is written, for messages */
  const char *within; /* the key of its value whose map holds the paths; NULL: the value itself */
  int by_name;        /* each key of that map is a name, and its value a map of paths */
} cfg_design;

/* The design that a key of `sweep` names, or its first `length` bytes; NULL: it is an axis. */
const cfg_design *cfg_design_named(const char *key);
const cfg_design *cfg_design_of(const char *key, size_t length);

/* Whether two dotted paths are the same, or one is inside the other: then not both can be set. */
int cfg_paths_meet(const char *a, const char *b);

#endif
