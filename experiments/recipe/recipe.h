/* A recipe: the YAML file that describes a run or a study. This module parses its top-level keys.
 * The sections (world, cluster, ...) are parsed by the modules that own them; recipe_check() calls
 * each, so that an invalid recipe is rejected before anything is run or written. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_RECIPE_H
#define GEPOLAB_EXPERIMENTS_RECIPE_RECIPE_H

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "core/rl/group_filter.h"
#include "core/rl/learner.h"
#include "core/rl/replay.h"
#include "experiments/base/program.h"
#include "sim/cluster.h"
#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often a run writes checkpoints, and how many are kept. */
typedef struct checkpoint_pace {
  size_t every;   /* updates between two checkpoints; 0: use time */
  double seconds; /* wall-clock time between two checkpoints */
  size_t keep;
} checkpoint_pace;

typedef struct recipe {
  const cfg_node *root;
  const char *name; /* borrowed from the document, like every section */
  uint64_t seed;
  size_t steps, eval_every;
  const cfg_node *world; /* NULL in a recipe of the clock alone */
  const cfg_node *optimizer, *sampling, *cluster, *sweep, *tune;
  const cfg_node *train, *algorithm_at; /* nodes of the keys parsed below; NULL: absent */
  size_t groups, group_size, minibatches, epochs;
  training_reward rewards;
  group_filter filter; /* dynamic sampling */
  replay_spec replay;
  double weight_noise; /* variance of the noise on weights, core/rl/update.h */
  random_drops drops;
  policy_algorithm algorithm;
  int wants_checkpoints; /* 1: the recipe has a `checkpoint` section; it does not affect results and
                            is not part of a cell's key */
  checkpoint_pace checkpoint;
  size_t threads; /* threads of the learner; not a key: recipe_read() sets 0 (all cores), and
                     callers may set fewer */
} recipe;

/* Loads a recipe by path, or an embedded one by name, with its includes. Applies the overrides in
 * order, converts units to numbers and ranges to lists (cfg_resolve()), and sets the name to the
 * file's name if none is given. Free *out with cfg_free(). Errors: GL_EINPUT with file:line:column
 * (syntax, an unknown name with the nearest one, an override that does not fit), GL_EIO (a file
 * cannot be read), GL_ENOMEM. */
gl_status recipe_load(cfg_doc **out, const char *source, const char *const *overrides,
                      size_t n_overrides, gl_error *err);

/* The same for the description of a cluster (experiments/plan/plan.h): a file, or an embedded one
 * by name. */
gl_status recipe_load_cluster(cfg_doc **out, const char *source, const char *const *overrides,
                              size_t n_overrides, gl_error *err);

/* The same for a text; its name is that of the recipe if none is given. */
gl_status recipe_load_text(cfg_doc **out, const char *text, const char *name,
                           const char *const *overrides, size_t n_overrides, gl_error *err);

/* Returns the command that a recipe is meant for, judged by its keys: "run", "sweep", "sim", "lab
 * bias", "lab theory", "lab selection" or "list published". */
const char *recipe_command(const cfg_doc *doc);
/* Returns `status`. If it is GL_EINPUT and the recipe (doc; NULL: none was loaded) is meant for a
 * command other than `command`, *err gets a prefix that names that command. */
gl_status recipe_say_command(const cfg_doc *doc, const char *command, gl_status status,
                             gl_error *err);

/* Parses the top-level keys; the document must outlive *out. Every unknown key is an error. */
gl_status recipe_read(recipe *out, const cfg_doc *doc, gl_error *err);
/* As recipe_read(), for the root of a document. */
gl_status recipe_read_at(recipe *out, const cfg_node *root, gl_error *err);

/* Cache of worlds and clusters that were already checked, by hash of their sections. Without it,
 * each cell of a sweep would read tokenizer and data set again, or enumerate a toy world.
 * Initialise with {0}. */
typedef struct recipe_worlds {
  char (*key)[HASH_HEX_SIZE]; /* [n] hashes of the checked sections */
  size_t n;
  hash_table place_of; /* index of the keys in `key` */
} recipe_worlds;
void recipe_worlds_fini(recipe_worlds *w);

/* Rejects (GL_EINPUT) dynamic sampling with a cluster whose clock is not coupled. The number of
 * sampled groups determines how long a batch takes, which only a coupled clock can account for. */
gl_status recipe_check_filter(const recipe *r, const cluster_spec *cluster, gl_error *err);

/* Builds everything that a run of the recipe needs and discards it, to validate every section and
 * the existence of the world. Creates no file. Worlds and clusters in `known` (may be NULL) are
 * assumed to be valid; new ones are added. */
gl_status recipe_check(const recipe *r, recipe_worlds *known, gl_error *err);
/* Checks that this machine has the device and the memory for a transformer of the recipe, which
 * must be valid; other worlds run on any machine. Opens the device, so workers must not be forked
 * afterwards. `known`: worlds checked before with as many responses in an update and the same need
 * of a reference policy, which are skipped; this one is added. Must not be NULL. */
gl_status recipe_check_machine(const recipe *r, recipe_worlds *known, gl_error *err);

/* Cache of checkpoints with known checksums, so that each is read once. Initialise with {0}. */
typedef struct recipe_start {
  char *folder, *checksum;
} recipe_start;
typedef struct recipe_starts {
  recipe_start *start; /* [n] */
  size_t n;
} recipe_starts;
void recipe_starts_fini(recipe_starts *s);

/* Sets world.model.checksum in the document if the recipe's seed starts from a checkpoint. A cell
 * then states the checksum of its checkpoint: with another model in the folder it is a different
 * cell, and it runs from no other model. r was read from the document, which must be read again
 * afterwards. Errors: GL_EINPUT with the position (the folder cannot be read, or the recipe states
 * another checksum). */
gl_status recipe_pin_start(cfg_doc *doc, const recipe *r, recipe_starts *known, gl_error *err);

/* Returns true if the recipe's world is a transformer (kind: llm). */
bool recipe_is_llm(const recipe *r);

/* Arguments for constructing the recipe's learner. */
learner_setup recipe_setup(const recipe *r, const cache_place *place);
/* Constructs the recipe's learner; release with learner_fini(). how: progress callbacks of the
 * preparation; may be NULL. */
gl_status recipe_learner(learner *out, const recipe *r, const learner_preparation *how,
                         gl_error *err);

/* Returns optimizer.lr, or the world's default if the recipe does not state it; NaN if the recipe
 * has no world. */
double recipe_lr(const recipe *r);

/* Returns the JSON Schema (draft 7) of recipes, for editors: the keys of every section, their
 * values and descriptions. Constraints between fields are checked by the program only. The caller
 * deletes it. */
cJSON *recipe_schema(void);

#endif
