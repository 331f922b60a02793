/* gepolab bench gpu: the transformer on a GPU, next to PyTorch and to what the device allows. */
#include "core/base/file.h"
#include "core/base/json.h"
#include "experiments/base/args.h"
#include "experiments/bench/gpu.h"
#include "experiments/cli/cmd_bench.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SECONDS = 480 };

static gl_status gpu_bench_choose(gpu_options *o, const char *shape, const char *device,
                                  const args *a, gl_error *err) {
  static const char *const devices[] = {"cuda", "cpu"};
  size_t n = 0, i = 0, at = 0;
  while (gpu_shape_names[n] != NULL) ++n;
  gl_status status = args_choose(&at, "--device", device, devices, 2, err);
  o->kind = at == 0 ? BACKEND_CUDA : BACKEND_CPU;
  if (status == GL_OK && shape == NULL && o->kind == BACKEND_CPU) shape = "tiny";
  if (status == GL_OK && shape != NULL)
    status = args_choose(&i, "--shape", shape, gpu_shape_names, n, err);
  if (status != GL_OK) return status;
  o->n_shapes = shape != NULL ? 1 : 2;
  for (size_t k = 0; k < o->n_shapes; ++k) {
    o->shapes[k] = gpu_shape_named(gpu_shape_names[i + k], o->quick);
    for (size_t s = 0; s < a->n_overrides && status == GL_OK; ++s)
      status = gpu_shape_set(&o->shapes[k], a->overrides[s], err);
  }
  return status;
}

static gl_status gpu_bench_write_text(const char *path, const char *text, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  fprintf(w.stream, "%s\n", text);
  return file_commit(&w, err);
}

static cJSON *document_of(const gpu_bench *g) {
  cJSON *document = bench_document(&g->b);
  if (document != NULL && g->skipped.status != GL_OK)
    json_add_string(document, "skipped", g->skipped.text);
  if (document != NULL) json_add_string(document, "device", g->device);
  return document;
}

/* What was measured is printed even where it cannot be written, and a failure is told last. */
static gl_status gpu_bench_show(const gpu_bench *g, const char *output, int json, gl_error *err) {
  cJSON *document = document_of(g);
  char *text = document != NULL ? cJSON_Print(document) : NULL;
  gl_status status = text != NULL ? GL_OK : gl_fail_memory(err, "the answers");
  if (status == GL_OK && json)
    puts(text);
  else if (g->skipped.status != GL_OK)
    printf("skipped: %s\n", g->skipped.text);
  else if (status == GL_OK) {
    printf("%s\n\n", g->device);
    bench_print(&g->b);
  }
  if (status == GL_OK && output != NULL && g->skipped.status == GL_OK)
    status = gpu_bench_write_text(output, text, err);
  if (status == GL_OK && g->failed.status != GL_OK)
    status = gl_fail(err, GL_EIO, "%s", g->failed.text);
  free(text);
  cJSON_Delete(document);
  return status;
}

static gl_status run_bench_gpu(const command *self, int argc, char **argv, gl_error *err) {
  const char *python = getenv("GEPOLAB_PYTHON"), *device = "cuda", *shape = NULL, *output = NULL;
  int json = 0;
  gpu_bench *g = NULL;
  gpu_options o = {.seconds = DEFAULT_SECONDS,
                   .python = python != NULL && python[0] != '\0' ? python : "python3"};
  const args_option options[] = {
      {"only", 0, ARGS_TEXT, "PARTS",
       "of limits, parity, train, peer-train, decode, peer-decode, logp, step; with "
       "commas between (default: all, in this order)",
       &o.only},
      {"shape", 0, ARGS_TEXT, "0.6b|1.7b|tiny", "default: the first two", &shape},
      {"device", 0, ARGS_TEXT, "cuda|cpu", "cuda is the default; cpu is to try the benchmark",
       &device},
      {"quick", 0, ARGS_FLAG, NULL, "less of everything, to see that it works", &o.quick},
      {"seconds", 0, ARGS_COUNT, "N", "no part begins after so long (480)", &o.seconds},
      {"in-process", 0, ARGS_FLAG, NULL, "parts run in this process, as profilers want it",
       &o.in_process},
      {"json", 0, ARGS_FLAG, NULL, "every number as JSON", &json},
      {"output", 'o', ARGS_TEXT, "FILE", "the same JSON in a file, beside the table", &output}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){0, 0, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) status = gpu_bench_choose(&o, shape, device, &a, err);
  if (status == GL_OK && !a.help) status = gpu_bench_run(&g, &o, err);
  if (g != NULL) status = gpu_bench_show(g, output, json, err);
  gpu_bench_free(g);
  args_fini(&a);
  return status;
}

const command command_bench_gpu = {
    .name = "bench gpu",
    .arguments = "[SIZE=NUMBER ...]",
    .summary = "the transformer on a GPU, next to PyTorch and the device's limits",
    .about =
        "Qwen3-0.6B and 1.7B shapes with drawn weights, bfloat16. parity: log-probabilities,\n"
        "gradients and draws against the CPU's in float32, with bounds, a miss of which is exit\n"
        "code 1. train: tokens per second. decode: at batch 1, 64 and 256. logp: the output layer\n"
        "over 151,936 tokens. step: one of reinforcement learning with its phases and peak of\n"
        "memory. Beside a number stand `limit`, what the matrix products or copies measured on "
        "the\n"
        "same device allow, and `pytorch`: PyTorch with torch.compile, and transformers' "
        "generate,\n"
        "run by $GEPOLAB_PYTHON (default python3) from experiments/bench/gpu.py in the folder it\n"
        "is called in; what it says on stderr goes into the file $GEPOLAB_PEER_LOG. Sizes: "
        "layers,\n"
        "sequences, length, prompt, draws, batch, responses, tokens, repetitions (at most 5).\n"
        "GEPOLAB_CUDA_TIMES=1 tells calls, milliseconds, rates and share of every operation on\n"
        "stderr, where a recorded graph is one; GEPOLAB_CUDA_TIMES=all records none. Without a\n"
        "GPU it says so and ends with 0.",
    .examples = "  gepolab bench gpu --only parity --shape 0.6b\n"
                "  GEPOLAB_CUDA_TIMES=all gepolab bench gpu --only decode --shape 0.6b batch=64\n"
                "  gepolab bench gpu --device cpu --quick",
    .run = run_bench_gpu};
