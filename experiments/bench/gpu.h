/* `gepolab bench gpu`: speed of the transformer on one device, compared with PyTorch on the same
 * shapes and with the device's measured limits (rate of matrix products, memory bandwidth).
 *
 * Every part runs in a process of its own, so that each starts with an empty device, its peak
 * memory can be told apart, and a failure of one part does not end the others. Such a process, like
 * the Python script that measures PyTorch, writes one line of JSON for each number, or a line with
 * the reason where a number could not be measured. Prefix: gpu_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_GPU_H
#define GEPOLAB_EXPERIMENTS_BENCH_GPU_H

#include "core/base/error.h"
#include "llm/model/model.h"

#include <stdio.h>

enum { GPU_MOST_SHAPES = 3, GPU_MOST_BATCHES = 3, GPU_MOST_READINGS = 128, GPU_TEXT = 160 };

/* A model's sizes and the work that is measured with it. */
typedef struct gpu_shape {
  const char *name; /* "0.6b" */
  model_config model;
  size_t train_sequences, train_length; /* one packed batch, the same for peers */
  size_t prompt, draws;                 /* tokens of a prompt, and drawn after it */
  size_t batch[GPU_MOST_BATCHES], n_batches;
  size_t logp_rows;
  size_t step_groups, step_group_size, step_tokens; /* the reinforcement-learning step */
  size_t repetitions;
} gpu_shape;

/* 0.6b, 1.7b: Qwen3's; tiny: for machines without a GPU. quick: fewer of everything. NULL for
 * another name. */
const gpu_shape *gpu_shape_named(gpu_shape *out, const char *name, int quick);

/* Floating-point operations that training on one token needs: six for every weight of a product
 * (two forward, four backward; the output layer counts, looking up an embedding does not) and
 * twelve for every number of a query's head dimension and every earlier position, of which a token
 * of a sequence of `length` has (length + 1) / 2 on average (scores and sums of values, each 2
 * forward and 4 backward). What is computed again in a backward is not counted. */
double gpu_train_flops(const model_config *c, size_t length);
/* Weights of all products. */
double gpu_product_weights(const model_config *c);
/* Bytes a decoding step must read: every weight once, and the keys and values of `positions`
 * positions in all. */
double gpu_decode_bytes(const model_config *c, size_t element, double positions);
/* Bytes of one position's keys and values in all layers. */
double gpu_position_bytes(const model_config *c, size_t element);

/* --- parts --------------------------------------------------------------------------------------
 */

typedef enum gpu_part {
  GPU_LIMITS,
  GPU_LOGP,
  GPU_DECODE,
  GPU_TRAIN,
  GPU_STEP,
  GPU_N_PARTS
} gpu_part;
extern const char *const gpu_part_names[GPU_N_PARTS];

/* Runs a part on a backend of its own and writes a line for each number to `to`: keys are
 * "limit.WHAT" and "SHAPE.WHAT". shape is not read by GPU_LIMITS, which also writes the device. */
gl_status gpu_part_run(gpu_part part, const gpu_shape *shape, backend_kind kind, int quick,
                       FILE *to, gl_error *err);

/* --- inside the parts ---------------------------------------------------------------------------
 */

gl_status gpu_limits(backend *b, int quick, FILE *to, gl_error *err);
gl_status gpu_logp(const gpu_shape *s, backend *b, FILE *to, gl_error *err);
gl_status gpu_decode(const gpu_shape *s, backend *b, FILE *to, gl_error *err);
gl_status gpu_train(const gpu_shape *s, backend *b, FILE *to, gl_error *err);
gl_status gpu_step(const gpu_shape *s, backend *b, FILE *to, gl_error *err);

/* A model with drawn values: matrices normal, repeating after four million numbers, for a second
 * drawing of all of them would take a minute; norm weights 1. */
gl_status gpu_model_new(model **out, const model_config *c, backend *b, int recompute,
                        gl_error *err);
/* Backend memory with n normal numbers times scale, in the backend's type; NULL after a failure. */
void *gpu_normals(backend *b, size_t n, double scale, gl_error *err);
/* Token i of the benchmark's inputs. */
int32_t gpu_token(const model_config *c, size_t i);

enum { GPU_MOST_SAMPLES = 64 };
typedef struct gpu_samples {
  double seconds[GPU_MOST_SAMPLES];
  size_t n;
} gpu_samples;

/* Seconds of run(), which must wait for what it started: `repetitions` times after one that warms
 * up. */
gl_status gpu_time(gpu_samples *out, gl_status (*run)(void *self, gl_error *err), void *self,
                   size_t repetitions, gl_error *err);
/* Lines: the median of amount / seconds, or of seconds where amount is 0. */
void gpu_say(FILE *to, const char *shape, const char *what, const gpu_samples *samples,
             double amount);
/* A line that says why there is no number. */
void gpu_say_missing(FILE *to, const char *shape, const char *what, const char *why);
void gpu_say_number(FILE *to, const char *shape, const char *what, double value);
void gpu_say_text(FILE *to, const char *shape, const char *what, const char *text);

/* --- readings -----------------------------------------------------------------------------------
 */

/* A number as read from its line: median, smallest and largest of n timings. missing: why there is
 * no number, else "". */
typedef struct gpu_reading {
  char key[48];
  double value, low, high;
  size_t n; /* times measured */
  char missing[GPU_TEXT], note[GPU_TEXT];
} gpu_reading;

typedef struct gpu_readings {
  gpu_reading reading[GPU_MOST_READINGS];
  size_t n;
  int silent; /* do not report each number on stderr as it arrives */
} gpu_readings;

/* The reading of "SHAPE.WHAT", or NULL. */
const gpu_reading *gpu_find(const gpu_readings *r, const char *shape, const char *what);
void gpu_missing(gpu_readings *r, const char *shape, const char *what, const char *why);

/* Runs the part in a child process. What fails there is a reading "SHAPE.PART" with `missing`. */
gl_status gpu_part_read(gpu_readings *r, gpu_part part, const gpu_shape *shape, backend_kind kind,
                        int quick, gl_error *err);

/* Runs the peer: `python` experiments/bench/gpu.py over shapes[n], for at most `seconds`; what it
 * says on stderr goes to log (NULL: nowhere). Where it cannot be run there are no readings, and
 * *why, of GPU_TEXT, says so. */
gl_status gpu_peer_read(gpu_readings *r, const char *python, const gpu_shape *shapes, size_t n,
                        const char *only, const char *device, int quick, size_t seconds,
                        const char *log, char *why, gl_error *err);

/* --- the table ----------------------------------------------------------------------------------
 */

typedef struct gpu_report {
  const gpu_shape *shapes;
  size_t n_shapes;
  const char *only; /* NULL: all parts */
  const gpu_readings *ours, *peers;
  const char *no_peer; /* why no peer answered, or "" */
  double element;      /* bytes of a number of a product */
} gpu_report;

void gpu_report_print(const gpu_report *r);
/* The same as JSON; NULL if memory is short. */
struct cJSON *gpu_report_json(const gpu_report *r);

#endif
