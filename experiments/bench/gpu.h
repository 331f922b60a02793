/* `gepolab bench gpu`: speed of the transformer on one device beside PyTorch on the same shapes and
 * beside the device's measured limits, and whether the device computes what the CPU does.
 *
 * A part measures one kind of work. Each runs in a process of its own, unless asked otherwise, so
 * that it starts with an empty device and its failure does not end the others; all write into one
 * gpu_bench, which they share. Numbers are called "SHAPE.PART"; the limit of one is beside it like
 * another program. Prefix: gpu_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_GPU_H
#define GEPOLAB_EXPERIMENTS_BENCH_GPU_H

#include "experiments/bench/bench.h"
#include "experiments/bench/workload.h"

/* --- the parts, and how they are run --- */

enum { GPU_MOST_BATCHES = 3, GPU_TEXT = 256 };

/* A model's sizes and the work that is measured with it. */
typedef struct gpu_shape {
  const char *name; /* "0.6b" */
  model_config model;
  size_t sequences, length;       /* of training: one packed batch, the same for the peer */
  size_t prompt, draws;           /* tokens of a prompt, and drawn after it */
  size_t batch[GPU_MOST_BATCHES]; /* of decoding; 0: no more */
  size_t responses, tokens;       /* the reinforcement-learning step; tokens of each */
  size_t repetitions;             /* at most BENCH_REPETITIONS */
} gpu_shape;

extern const char *const gpu_shape_names[]; /* "0.6b", "1.7b" (Qwen3's), "tiny", NULL */
/* A name of gpu_shape_names. quick: fewer of everything. */
gpu_shape gpu_shape_named(const char *name, int quick);
/* Sets a size from "draws=64"; `batch` then is the only one. GL_EINPUT for a name that is none or a
 * number that is not from 1 to 65536. */
gl_status gpu_shape_set(gpu_shape *s, const char *assignment, gl_error *err);

typedef struct gpu_options {
  const char *only;   /* names of parts with commas between, NULL: all */
  const char *python; /* of the peer */
  gpu_shape shapes[2];
  size_t n_shapes, seconds; /* no part begins later; a peer has two minutes in any case */
  backend_kind kind;
  int quick, in_process, silent;
} gpu_options;

typedef struct gpu_bench {
  bench b;
  double product, copy; /* limits: operations and bytes a second; 0: not measured */
  char device[GPU_TEXT];
  gl_error skipped; /* why no part was run: there is no device */
  gl_error failed;  /* the first part of ours that failed, or bound that was not kept */
} gpu_bench;

/* Runs the parts that o.only names into *out, which gpu_bench_free() releases. GL_EINPUT for a part
 * that is none; what parts fail with is in *out. */
gl_status gpu_bench_run(gpu_bench **out, const gpu_options *o, gl_error *err);
void gpu_bench_free(gpu_bench *g);

/* The state of a running part; its numbers are stored in g. */
typedef struct gpu_run {
  gpu_bench *g;
  const gpu_shape *shape; /* NULL: of the part that is for all */
  backend *device;        /* bfloat16 on a GPU, float32 on the CPU; watched */
  backend_watch *watch;
  int times; /* the times of operations are printed */
} gpu_run;

/* "SHAPE.what" into key, which it returns. */
const char *gpu_key(const gpu_run *r, const char *what, char key[BENCH_NAME]);

/* What parity holds: the greatest difference of a log-probability; the gradients' cosine, and the
 * distance of their norms' ratio from 1; how far a token drawn greedily is below the CPU's most
 * probable; how far one drawn by inversion is from its interval of probability on the CPU. */
enum { GPU_LOGP, GPU_COSINE, GPU_NORM, GPU_GREEDY, GPU_DRAWN, GPU_HELD };
/* GL_EIO naming the first that is outside of its bound. */
gl_status gpu_parity_check(const double value[GPU_HELD], gl_error *err);
/* Holds the device against the CPU (gpu_parity.c). */
gl_status gpu_parity(gpu_run *r, gl_error *err);

#endif
