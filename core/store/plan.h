/* What a study is to hold: the recipes that were swept into it and the cells they ask for. With it,
 * a study that is not finished can say so.
 *
 * A cell's place is the hash of its recipe with the fields left open (null) that were chosen for it
 * beforehand, as `tune` chooses learning rates; of a cell without such fields it is the key. When
 * other values are chosen, the cell's runs are made again: the new run takes the place, and the old
 * one is superseded. It stays in the file, and neither analyses nor exports of results show it. */
#ifndef GEPOLAB_CORE_STORE_PLAN_H
#define GEPOLAB_CORE_STORE_PLAN_H

#include "core/store/store.h"

enum { STORE_PLACE_SIZE = 33 };
/* The place of a cell: recipe is its canonical JSON, chosen the JSON object of the fields chosen
 * for it ({"optimizer.lr":0.1}; the values do not matter; NULL: none), meaning that of recipes.
 * GL_EIO if either is not JSON. */
gl_status store_place(char place[STORE_PLACE_SIZE], const char *recipe, const char *chosen,
                      int64_t meaning, gl_error *err);
/* What the key of a cell is the hash of: "meaning 2: {…}". On the heap, NULL if memory is short. */
char *store_identity(const char *recipe, int64_t meaning);

/* A cell of the grid, or a tuning run. */
typedef struct planned_cell {
  int tuning;            /* 1: a tuning run, whose `place` is its key */
  const char *place;     /* of a cell of the grid: store_place() */
  int64_t ordinal;       /* position in its grid */
  const char *algorithm; /* shown name */
  uint64_t seed;
  const char *swept; /* as of runs */
} planned_cell;

typedef struct study_plan {
  const char *study;
  const char *recipe;   /* canonical JSON of the whole recipe, with its sweep */
  size_t shard, shards; /* this file does cells shard, shard + shards, … of the grid; 0 of 1: all */
  const planned_cell *cells; /* [n]: of the whole grid, whatever the shard */
  size_t n;
  int replaces; /* 1: what was planned for the study before is forgotten; 0: added to */
} study_plan;

/* Keeps the plan, atomically. Writes nothing where all of it is known. */
gl_status store_put_plan(store *s, const study_plan *plan, gl_error *err);

/* How far a study is. Cells count by place. */
typedef struct study_progress {
  size_t planned;                /* cells of the grid; 0: the file does not say */
  size_t done, diverged, failed; /* of the runs that stand in their places, planned or not */
  size_t missing;                /* planned, and neither done nor diverged */
  size_t superseded;             /* runs whose place another run has taken */
  size_t tuning_planned, tuning_known;
  size_t shards, shards_missing; /* 0: not in parts; parts of the grid that were never joined */
  size_t first_missing_shard;    /* if shards_missing > 0 */
} study_progress;
/* Of one study of the file. All zeros for a name that it does not have. */
gl_status store_progress(store *s, const char *study, study_progress *out, gl_error *err);

/* The names of all studies that the file has runs or a plan of, in the order of their names; on the
 * heap, *n of them, one block to free. *names is NULL where there are none. */
gl_status store_studies(store *s, char ***names, size_t *n, gl_error *err);

/* Tells the planned cells that have no finished run, in grid order; each() returns 0 to stop. The
 * cell's strings are valid during the call. */
gl_status store_missing(store *s, const char *study,
                        int (*each)(void *self, const planned_cell *cell), void *self,
                        gl_error *err);

/* Tells what was chosen for each algorithm of the study, by its runs that are not superseded: the
 * JSON object of fields and values, {"optimizer.lr":0.1}, in order of the algorithms' names. An
 * algorithm has one, but for a study that holds several sweeps. The texts are valid during the
 * call; each() returns 0 to stop. */
gl_status store_choices(store *s, const char *study,
                        int (*each)(void *self, const char *algorithm, const char *chosen),
                        void *self, gl_error *err);

/* Makes the finished run of that key the one of its place, as when a sweep finds it in the file
 * while another choice had taken its place since. */
gl_status store_take_place_again(store *s, const char *key, gl_error *err);

#endif
