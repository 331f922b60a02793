/* When a study that another process is sweeping will end, judged by its file alone. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_OUTLOOK_H
#define GEPOLAB_EXPERIMENTS_SWEEP_OUTLOOK_H

#include "core/base/error.h"
#include "core/store/store.h"

typedef struct sweep_outlook {
  double per_s;  /* runs that finished a second, over the last ones; NaN: too few finished */
  double left_s; /* until the missing ones are there, if work goes on as it did then; NaN */
} sweep_outlook;

/* Of one study of the store, tuning runs and cells of the grid alike. Missing ones take what
 * finished runs of their kind took (experiments/sweep/costs.h), and are worked at as many at a time
 * as the last twenty runs were. Tuning runs of before format 4 do not say what they took. */
gl_status sweep_outlook_read(sweep_outlook *out, store *s, const char *study, gl_error *err);

#endif
