/* Progress of the laboratory's work, which several threads do. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_COUNTER_H
#define GEPOLAB_EXPERIMENTS_LAB_COUNTER_H

#include "core/base/progress.h"

#include <pthread.h>
#include <stddef.h>

typedef struct lab_counter {
  pthread_mutex_t lock;
  progress *bar; /* NULL: silent */
  size_t done;
  double spent, left; /* costs, in any unit: of what is done, and of the rest */
} lab_counter;

/* `total` items of what is called `name` ("measurements", "training paths"), worked at by so many
 * threads; cost: of all of them together. */
void lab_counter_init(lab_counter *c, const char *name, const char *unit, size_t total, double cost,
                      size_t threads, progress_mode mode);
/* One item of that cost is done; from any thread. */
void lab_counter_add(lab_counter *c, double cost);
void lab_counter_fini(lab_counter *c);

#endif
