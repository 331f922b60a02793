/* `gepolab bench gpu`: speed of the transformer on one device, compared with PyTorch on the same
 * shapes and with the device's measured limits (rate of matrix products, memory bandwidth), and
 * whether the device computes what the CPU does.
 *
 * A part measures one kind of work. Each runs in a process of its own, unless asked otherwise, so
 * that it starts with an empty device and its failure does not end the others. Such a process, like
 * the Python script that measures PyTorch, writes a line of JSON for each number. Prefix: gpu_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_GPU_H
#define GEPOLAB_EXPERIMENTS_BENCH_GPU_H

#include "core/base/json.h"
#include "llm/backend/watch.h"
#include "llm/model/model.h"

#include <stdio.h>

/* --- shapes -------------------------------------------------------------------------------------
 */

enum { GPU_MOST_BATCHES = 3, GPU_MOST_SAMPLES = 16 };

/* A model's sizes and the work that is measured with it. */
typedef struct gpu_shape {
  const char *name; /* "0.6b" */
  model_config model;
  size_t sequences, length;       /* of training: one packed batch, the same for peers */
  size_t prompt, draws;           /* tokens of a prompt, and drawn after it */
  size_t batch[GPU_MOST_BATCHES]; /* of decoding; 0: no more */
  size_t rows;                    /* of the peer's log-probabilities */
  size_t responses, tokens;       /* the reinforcement-learning step; tokens of each */
  size_t repetitions;
} gpu_shape;

extern const char *const gpu_shape_names[]; /* "0.6b", "1.7b" (Qwen3's), "tiny", NULL */
/* A name of gpu_shape_names. quick: fewer of everything. */
gpu_shape gpu_shape_named(const char *name, int quick);
/* Sets a size from "draws=64"; `batch` then is the only one. GL_EINPUT for a name that is none or a
 * number that is not from 1 to 65536. */
gl_status gpu_shape_set(gpu_shape *s, const char *assignment, gl_error *err);

/* Weights of all products. */
double gpu_product_weights(const model_config *c);
/* Floating-point operations that training on one token needs: six for every weight of a product
 * (two forward, four backward; the output layer counts, looking up an embedding does not) and
 * twelve for every number of a query's head dimension and every earlier position, of which a token
 * of a sequence of `length` has (length + 1) / 2 on average (scores and sums of values, each 2
 * forward and 4 backward). What is computed again in a backward is not counted. */
double gpu_train_flops(const model_config *c, size_t length);
/* Bytes a decoding step must read: every weight once, and the keys and values of `positions`
 * positions in all. */
double gpu_decode_bytes(const model_config *c, size_t element, double positions);

/* --- parts --------------------------------------------------------------------------------------
 */

/* What a part works on, and where its lines go. */
typedef struct gpu_run {
  const char *part;
  const gpu_shape *shape;
  backend_kind kind;
  int quick;
  backend *b; /* bfloat16 on a GPU, float32 on the CPU; watched */
  backend_watch *watch;
  int times; /* lines of operations are wanted */
  FILE *to;
} gpu_run;

typedef struct gpu_part {
  const char *name;
  gl_status (*run)(gpu_run *r, gl_error *err); /* NULL: the peer's */
  int once;                                    /* for all shapes: its shape is NULL */
  int times;                                   /* it reads the times of operations */
} gpu_part;
extern const gpu_part gpu_parts[]; /* in the order in which they are run; ends with name NULL */

gl_status gpu_limits(gpu_run *r, gl_error *err);
gl_status gpu_parity(gpu_run *r, gl_error *err);
gl_status gpu_train(gpu_run *r, gl_error *err);
gl_status gpu_decode(gpu_run *r, gl_error *err);
gl_status gpu_logp(gpu_run *r, gl_error *err);
gl_status gpu_step(gpu_run *r, gl_error *err);

/* --- what parts share ---------------------------------------------------------------------------
 */

typedef struct gpu_samples {
  double seconds[GPU_MOST_SAMPLES];
  size_t n;
} gpu_samples;

/* One line. Its value is the median of amount / seconds, or of seconds where amount is 0, or
 * `value` where there are no samples. flops and bytes are what one of its unit ("tokens/s") takes
 * at least, or all of it (unit "s"). */
typedef struct gpu_row {
  const char *what, *unit; /* its key is "SHAPE.what" */
  const gpu_samples *samples;
  double amount, value, flops, bytes;
  double at_most, at_least; /* of parity: a bound, or 0 */
  const char *note, *missing;
  int no_device; /* it is missing because no device could be opened */
} gpu_row;

void gpu_say(const gpu_run *r, gpu_row row);
/* Lines of the backend's operations since the last gpu_samples_take(), if they are wanted. */
void gpu_say_operations(const gpu_run *r, const char *what);
/* Seconds of work(), which must wait for what it started: `repetitions` times after one that warms
 * up, fewer where they take long. */
gl_status gpu_samples_take(const gpu_run *r, gpu_samples *out,
                           gl_status (*work)(void *self, gl_error *err), void *self,
                           size_t repetitions, gl_error *err);

/* A model with drawn values that bfloat16 has: matrices normal, repeating after four million
 * numbers, for a second drawing of all of them would take a minute; norm weights 1. */
gl_status gpu_model_new(model **out, const model_config *c, backend *b, int recompute,
                        gl_error *err);
/* n normal numbers of the backend's type. */
gl_status gpu_fill(backend *b, void *to, size_t n, gl_error *err);
/* Token i of the benchmark's inputs. */
int32_t gpu_token(const model_config *c, size_t i);

/* A batch of sequences of one length, every token of which is learned from; micro-batches of
 * `micro` sequences. */
typedef struct gpu_batch {
  size_t sequences, length, micro;
  size_t *start, *after;   /* of a micro-batch */
  int32_t *token, *target; /* [sequences * length] */
  double *slope, *logp;    /* [sequences * length] */
} gpu_batch;
gl_status gpu_batch_init(gpu_batch *b, const model_config *c, size_t sequences, size_t length,
                         size_t micro, gl_error *err);
void gpu_batch_fini(gpu_batch *b);
/* Log-probabilities of all targets; learn: their gradient is added too. */
gl_status gpu_batch_run(gpu_batch *b, model *m, int learn, gl_error *err);

/* --- running parts ------------------------------------------------------------------------------
 */

typedef struct gpu_options {
  const char *only;   /* names of parts with commas between, NULL: all */
  const char *python; /* of the peer */
  const char *log;    /* where the peer's stderr goes, or NULL */
  gpu_shape shapes[2];
  size_t n_shapes, seconds; /* no part begins later; a peer has least_peer_seconds in any case */
  backend_kind kind;
  int quick, in_process, silent;
} gpu_options;

/* Runs the parts that o.only names and gives the lines they wrote, as arrays `ours`, `peers` and
 * `operations` of *out, which the caller deletes. `skipped` is added where there is no device.
 * GL_EINPUT for a part that is none. */
gl_status gpu_bench(const gpu_options *o, cJSON **out, gl_error *err);

/* Compares: makes `rows` of `ours` and `peers`, with limit, share, peer, ratio and aims. 0 if
 * memory is short. */
int gpu_compare(cJSON *bench);
void gpu_print(const cJSON *bench);
/* GL_EIO with the first part of ours that failed or bound that was not kept. */
gl_status gpu_check(const cJSON *bench, gl_error *err);

#endif
