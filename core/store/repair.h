/* Taking damage out of a study, so that the rest of it can be used again. store_check() of store.h
 * says what the damage is. */
#ifndef GEPOLAB_CORE_STORE_REPAIR_H
#define GEPOLAB_CORE_STORE_REPAIR_H

#include "core/store/store.h"

/* What was taken out, a number of records for each table: of runs, with all that belongs to them,
 * and of the tables that stand alone. */
typedef struct store_removed {
  size_t runs;
  size_t orphans; /* records that belonged to no run */
  size_t tuned, tuning_scores, bias, sweeps, plan, superseded, provenance;
} store_removed;

/* Removes every damaged record of a study that is open for writing, in one transaction, and counts
 * what it removed. Of the measurements of the laboratory all go if one is damaged, because nothing
 * says which study it was of. Where it is no longer known which of several runs of a place the
 * others superseded, it is the one that was put last. GL_EIO, and nothing is changed, if the
 * structure of the file itself is damaged: store_salvage() is for that. */
gl_status store_repair(store *s, store_removed *out, gl_error *err);

/* What store_salvage() found. */
typedef struct store_salvaged {
  size_t runs;      /* copied */
  size_t lost_runs; /* seen, but not as they were written; more may not have been seen */
  size_t lost;      /* likewise of the records of tables that stand alone */
} store_salvaged;

/* Copies what can be read of the study at `from`, and is as it was written, into a new study at
 * `to`, which gets its name when it is whole: GL_EINPUT if there is such a file. GL_EIO if even the
 * beginning of the file cannot be read. */
gl_status store_salvage(const char *from, const char *to, store_salvaged *out, gl_error *err);

#endif
