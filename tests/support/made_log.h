/* Made-up training logs with a known cause: log-ratios whose divergence is a floor and a slope in
 * the lag, by construction. */
#ifndef GEPOLAB_TESTS_SUPPORT_MADE_LOG_H
#define GEPOLAB_TESTS_SUPPORT_MADE_LOG_H

#include "analysis/diagnose/diagnose.h"
#include "core/policy/policy.h"

#include <stddef.h>

/* l of a token is normal with variance v = 2 (floor + slope lag) and mean -v / 2, so that
 * E exp(l) = 1 and E k3 = v / 2. */
typedef struct made_plan {
  double floor, slope;
  size_t lags; /* a group's lag is uniform on 0 .. lags - 1, and at most the update's number */
  size_t groups, size, updates;
  double dropped;        /* dropped responses for each trained one */
  double dropped_length; /* their length relative to that of trained ones */
} made_plan;

/* Nothing is wrong with it: k3 of 0.0005 nats at lag 0 and as much more per version, 8 groups of 8,
 * nothing dropped. */
made_plan made_healthy(void);
/* The same with one cause. Causes of speed are made by made_series(). */
made_plan made_with(diagnose_cause cause);

typedef struct made_update {
  policy_input in;
  diagnose_batch batch;
  double *memory;
  size_t *starts;
} made_update;
/* Update u of the plan; release with made_update_fini(). Deterministic. */
made_update made_update_of(const made_plan *plan, size_t u);
void made_update_fini(made_update *u);

/* Writes the updates as gepolab's group log, one record a line. has_versions: with version_gap. */
void made_write(const made_plan *plan, const char *path, bool has_versions);

/* Writes the updates as NeMo-RL does, FOLDER/train_data_step1.jsonl and so on: without versions,
 * and with the dropped responses, whose sample_loss_mask is 0. */
void made_write_nemo(const made_plan *plan, const char *folder);

/* Writes 24 steps of TRL's asynchronous trainer as JSON Lines: a step of 100 s of which the trainer
 * waits `wait`, copies weights for `sync`, and trains for the rest. */
void made_series(const char *path, double wait, double sync);

#endif
