/* The table of designs. */
#include "core/config/designs.h"

#include "core/config/config.h"

#include <string.h>

static const cfg_design designs[] = {
    {"random", "{draws: N, seed: S, fields: {PATH: LAW, …}}", "fields", 0},
    {"factorial", "{factors: {A: {PATH: [LOW, HIGH]}, …}, generators: {D: ABC}}", "factors", 1},
    {"one_at_a_time", "{PATH: [BASE, OTHER, …], …}", NULL, 0},
};

const cfg_design *cfg_design_of(const char *key, size_t length) {
  for (size_t i = 0; i < sizeof designs / sizeof *designs; ++i)
    if (strlen(designs[i].key) == length && memcmp(designs[i].key, key, length) == 0)
      return &designs[i];
  return NULL;
}

const cfg_design *cfg_design_named(const char *key) {
  return cfg_design_of(key, strlen(key));
}

int cfg_paths_meet(const char *a, const char *b) {
  return cfg_path_is_inside(a, b) || cfg_path_is_inside(b, a);
}
