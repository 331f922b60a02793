/* `gepolab bench gpu`: the transformer's speed on one device, compared with PyTorch on the same
 * shapes and with the device's measured limits; and a comparison of the device's results with the
 * CPU's.
 *
 * A part measures one kind of work. Unless disabled, each runs in a separate process, so that it
 * starts with an empty device and its failure does not end the others. All write into one shared
 * gpu_bench. Numbers are named "SHAPE.PART"; a number's limit is stored like a peer. Prefix: gpu_.
 */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_GPU_H
#define GEPOLAB_EXPERIMENTS_BENCH_GPU_H

#include "experiments/bench/bench.h"
#include "experiments/bench/workload.h"

/* --- the parts, and how they are run --- */

enum { GPU_MOST_BATCHES = 3, GPU_TEXT = 256 };

/* A model's sizes and the work measured with it. */
typedef struct gpu_shape {
  const char *name; /* "0.6b" */
  model_config model;
  size_t sequences, length;       /* for training: one packed batch, the same for the peer */
  size_t prompt, draws;           /* tokens of a prompt, and sampled after it */
  size_t batch[GPU_MOST_BATCHES]; /* batch sizes of decoding, first that matter most; 0: end */
  size_t responses, tokens;       /* the reinforcement-learning step; tokens per response */
  size_t repetitions;             /* at most BENCH_REPETITIONS */
} gpu_shape;

extern const char *const gpu_shape_names[]; /* "0.6b", "1.7b" (Qwen3's), "tiny", NULL */
/* The shape with a name of gpu_shape_names. quick 1: smaller sizes. */
gpu_shape gpu_shape_named(const char *name, int quick);
/* Sets a size from an assignment such as "draws=64"; `batch` becomes the only batch size. Errors:
 * GL_EINPUT (an unknown name, a number outside of 1 to 65536). */
gl_status gpu_shape_set(gpu_shape *s, const char *assignment, gl_error *err);

typedef struct gpu_options {
  const char *only;   /* names of parts, separated by commas; NULL: all */
  const char *python; /* Python interpreter of the peer */
  gpu_shape shapes[2];
  size_t n_shapes,
      seconds; /* seconds: no part begins after this time; a peer has two minutes at least */
  backend_kind kind;
  int quick, in_process, silent;
} gpu_options;

typedef struct gpu_bench {
  bench b;
  double product, copy; /* measured limits: operations and bytes per second; 0: not measured */
  workload_parameters parameters; /* of the shape whose parts are running */
  char device[GPU_TEXT];
  gl_error skipped; /* why no part was run: there is no device */
  gl_error failed;  /* the first error of one of our parts, or bound that was exceeded */
} gpu_bench;

/* Runs the parts named in o.only into *out, which gpu_bench_free() frees. Errors of parts are
 * stored in *out. Errors: GL_EINPUT (an unknown part). */
gl_status gpu_bench_run(gpu_bench **out, const gpu_options *o, gl_error *err);
void gpu_bench_free(gpu_bench *g);

/* The values compared between device and CPU. */
typedef enum gpu_parity_value {
  GPU_LOGP,     /* maximum difference of a log-probability, nats */
  GPU_LOGP_RMS, /* root mean square of these differences */
  GPU_COSINE,   /* cosine of the two gradients */
  GPU_NORM,     /* distance of the ratio of the gradients' norms from 1 */
  GPU_GREEDY,   /* how much less probable a greedily chosen token is than the CPU's most probable
                   one, nats */
  GPU_DRAWN, /* how far a token sampled by inversion is from its probability interval on the CPU */
  GPU_PARITY_VALUES
} gpu_parity_value;
/* Errors: GL_EIO (a value exceeds its bound; the message names the first one). */
gl_status gpu_parity_check(const double value[GPU_PARITY_VALUES], gl_error *err);

#endif
