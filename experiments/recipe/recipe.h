/* A recipe: the YAML file that describes a run or a study. This file reads its top-level keys. The
 * sections inside (world, cluster, ...) are read by the rooms they belong to; recipe_check() has
 * each room read its own, so that a wrong recipe is refused before anything is run or written. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_RECIPE_H
#define GEPOLAB_EXPERIMENTS_RECIPE_RECIPE_H

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "core/rl/learner.h"
#include "experiments/base/program.h"
#include "sim/cluster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often a run that keeps checkpoints writes one, and how many of them stay. */
typedef struct checkpoint_pace {
  size_t every;   /* updates between two; 0: by time */
  double seconds; /* wall-clock time between two */
  size_t keep;
} checkpoint_pace;

typedef struct recipe {
  const cfg_node *root;
  const char *name, *description; /* borrowed from the doc, like every section */
  uint64_t seed;
  size_t steps, eval_every;
  const cfg_node *world; /* NULL in a recipe of the clock alone */
  const cfg_node *optimizer, *sampling, *cluster, *sweep, *tune;
  const cfg_node *train, *algorithm_at; /* where it says what is read below; NULL: it does not */
  size_t groups, group_size, minibatches, epochs;
  training_reward rewards;
  group_filter filter; /* dynamic sampling */
  double weight_noise; /* variance, core/rl/update.h */
  policy_algorithm algorithm;
  int wants_checkpoints; /* there is a `checkpoint` section; it changes no result and is not part of
                            a cell's key */
  checkpoint_pace checkpoint;
  size_t threads; /* for the learner; no key: recipe_read() sets 0, all cores, and a caller that
                     wants fewer says so */
} recipe;

/* Loads a recipe by path, or an embedded one by name, with what it includes, applies the overrides
 * in order, makes numbers of units and lists of ranges (cfg_resolve()), and makes sure that it has
 * a name (the file's, unless it or what it includes says another). */
gl_status recipe_load(cfg_doc **out, const char *source, const char *const *overrides,
                      size_t n_overrides, gl_error *err);

/* The same of a description of a cluster (experiments/plan/plan.h): a file, or an embedded
 * one by name. */
gl_status recipe_load_cluster(cfg_doc **out, const char *source, const char *const *overrides,
                              size_t n_overrides, gl_error *err);

/* The command that a recipe is for, by its keys: "run", "sweep", "sim", "lab bias", "lab theory",
 * "lab selection" or "list published". */
const char *recipe_command(const cfg_doc *doc);
/* Returns the status. Where it is GL_EINPUT, found by a command in a recipe (NULL: none was loaded)
 * that is for another, *err then begins with that. */
gl_status recipe_say_command(const cfg_doc *doc, const char *command, gl_status status,
                             gl_error *err);

/* Reads the top-level keys; the doc must outlive *out. Every unknown key is an error. */
gl_status recipe_read(recipe *out, const cfg_doc *doc, gl_error *err);
/* As recipe_read(), of the root of a document. */
gl_status recipe_read_at(recipe *out, const cfg_node *root, gl_error *err);

/* Worlds and clusters that were checked already, by the hash of their sections, so that tokenizer
 * and data set are not read again, nor a toy world enumerated, for every cell of a sweep. {0} to
 * begin with. */
typedef struct recipe_worlds {
  char (*key)[HASH_HEX_SIZE]; /* [n] */
  size_t n;
  hash_table place_of; /* of the keys in `key` */
} recipe_worlds;
void recipe_worlds_fini(recipe_worlds *w);

/* GL_EINPUT where dynamic sampling has no place in the cluster: how many groups are drawn decides
 * how long a batch takes, which only a coupled clock can know. */
gl_status recipe_check_filter(const recipe *r, const cluster_spec *cluster, gl_error *err);

/* Builds what a run of the recipe needs and throws it away, so that every section is known to be
 * right and the world to exist. Creates no file. Worlds and clusters in `known` (NULL: none) are
 * taken to be right; new ones are added to it. */
gl_status recipe_check(const recipe *r, recipe_worlds *known, gl_error *err);
/* Whether this machine has the device and the memory that a transformer of the recipe, which must
 * be right, needs; all others run anywhere. Opens the device, so no workers may be forked later.
 * `known`: worlds that were asked for before; a recipe whose world and batch are there is fine. */
gl_status recipe_check_machine(const recipe *r, recipe_worlds *known, gl_error *err);

/* Checkpoints whose checksum is known, so that each is read once. {0} to begin with. */
typedef struct recipe_start {
  char *folder, *checksum;
} recipe_start;
typedef struct recipe_starts {
  recipe_start *start; /* [n] */
  size_t n;
} recipe_starts;
void recipe_starts_fini(recipe_starts *s);

/* A cell whose transformer begins from a checkpoint states that checkpoint's checksum, so that it
 * is another cell when the folder has another model, and runs from no other. Sets
 * world.model.checksum in the doc, which r was read from and is to be read again, where the
 * recipe's seed begins from a checkpoint. GL_EINPUT, at its place, for a folder that cannot be
 * read, or where the recipe states another checksum. */
gl_status recipe_pin_start(cfg_doc *doc, const recipe *r, recipe_starts *known, gl_error *err);

/* Whether the recipe's world is a transformer (kind: llm). */
bool recipe_is_llm(const recipe *r);

/* The arguments that its learner is made from. */
learner_setup recipe_setup(const recipe *r, const cache_place *place);
/* The learner a recipe describes; release with learner_fini(). how (NULL: unwatched) is what its
 * setup says of preparation. */
gl_status recipe_learner(learner *out, const recipe *r, const learner_preparation *how,
                         gl_error *err);

/* optimizer.lr, which is its world's default where the recipe does not state it; NaN where the
 * recipe has no world. */
double recipe_lr(const recipe *r);

#endif
