/* The table of presets. */
#include "sim/presets.h"

#define UNLIMITED INT64_MAX

static const cluster_preset table[] = {
    {.name = "sync",
     .about = "generation and training take turns",
     .samplers = 1,
     .one_batch_each = 1,
     .sync = SYNC_PUSH,
     .queue = QUEUE_FIFO,
     .ahead = 0,
     .window = UNLIMITED},
    {.name = "one_step_off",
     .about = "trains batches of the version before (2410.18252)",
     .samplers = 1,
     .one_batch_each = 1,
     .sync = SYNC_PUSH,
     .queue = QUEUE_FIFO,
     .ahead = 1,
     .window = UNLIMITED},
    {.name = "areal",
     .about = "bounded staleness, new weights in the middle of a batch (AReaL, 2505.24298)",
     .samplers = 4,
     .one_batch_each = 1,
     .sync = SYNC_PUSH,
     .queue = QUEUE_OLDEST_VERSION,
     .ahead = 4,
     .window = UNLIMITED,
     .in_flight = 1},
    {.name = "heterorl",
     .about = "the rule of HeteroRL as released with 2508.17850",
     .samplers = 4,
     .sync = SYNC_PULL,
     .queue = QUEUE_HETERORL,
     .ahead = UNLIMITED,
     .window = 32,
     .heterorl_delays = 1,
     .eval_pause = 600},
    {.name = "fifo",
     .about = "no limit of staleness, the first batch that arrived is trained first",
     .samplers = 4,
     .sync = SYNC_PUSH,
     .queue = QUEUE_FIFO,
     .ahead = UNLIMITED,
     .window = UNLIMITED},
    {.name = "lifo",
     .about = "no limit of staleness, the newest batch is trained first",
     .samplers = 4,
     .sync = SYNC_PUSH,
     .queue = QUEUE_LIFO,
     .ahead = UNLIMITED,
     .window = UNLIMITED},
};

const cluster_preset *cluster_preset_at(size_t i) {
  return i < sizeof table / sizeof *table ? &table[i] : NULL;
}
