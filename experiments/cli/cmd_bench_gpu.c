/* gepolab bench gpu: the transformer on a GPU, next to PyTorch and to what the device allows. */
#include "core/base/file.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"
#include "experiments/cli/cmd_bench.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SECONDS = 480, LEAST_PEER_SECONDS = 5 };

typedef struct gpu_options {
  const char *only, *shape, *device, *python, *peer_log, *output;
  int quick, json, no_peer;
  size_t seconds;
  gpu_shape shapes[GPU_MOST_SHAPES];
  size_t n_shapes;
  backend_kind kind;
} gpu_options;

static gl_status choose(gpu_options *o, gl_error *err) {
  static const char *const shapes[] = {"0.6b", "1.7b", "tiny"}, *const devices[] = {"cuda", "cpu"};
  size_t i = 0, device = 0;
  gl_status status = args_choose(&device, "--device", o->device, devices, 2, err);
  o->kind = device == 0 ? BACKEND_CUDA : BACKEND_CPU;
  if (status == GL_OK && o->only != NULL)
    status = args_choose(&i, "--only", o->only, gpu_part_names + 1, GPU_N_PARTS - 1, err);
  if (status == GL_OK && o->shape != NULL)
    status = args_choose(&i, "--shape", o->shape, shapes, 3, err);
  if (status != GL_OK) return status;
  if (o->shape == NULL && o->kind == BACKEND_CPU) o->shape = "tiny";
  for (i = 0; i < 3; ++i)
    if (o->shape != NULL ? strcmp(o->shape, shapes[i]) == 0 : i < 2)
      gpu_shape_named(&o->shapes[o->n_shapes++], shapes[i], o->quick);
  return GL_OK;
}

/* Limits first: without a device they say so, and nothing else is tried. */
static gl_status measure_ours(const gpu_options *o, gpu_readings *r, const char **skipped,
                              gl_error *err) {
  r->silent = 1;
  gl_status status = gpu_part_read(r, GPU_LIMITS, NULL, o->kind, o->quick, err);
  const gpu_reading *failed = gpu_find(r, "limit", "limits");
  if (status == GL_OK && failed != NULL && strstr(failed->missing, "no CUDA device") != NULL)
    *skipped = failed->missing;
  else if (status == GL_OK && failed != NULL)
    status = gl_fail(err, GL_EIO, "%s", failed->missing);
  r->silent = 0;
  for (size_t i = 0; i < o->n_shapes && status == GL_OK && *skipped == NULL; ++i)
    for (gpu_part p = GPU_LIMITS + 1; p < GPU_N_PARTS && status == GL_OK; ++p)
      if (o->only == NULL || strcmp(o->only, gpu_part_names[p]) == 0)
        status = gpu_part_read(r, p, &o->shapes[i], o->kind, o->quick, err);
  return status;
}

/* Peers have what is left of the time. A step has no peer. */
static gl_status measure_peers(const gpu_options *o, gpu_readings *r, double begun, char *why,
                               gl_error *err) {
  const double left = (double)o->seconds - (seconds_now() - begun);
  if (o->no_peer || (o->only != NULL && strcmp(o->only, "step") == 0)) {
    snprintf(why, GPU_TEXT, "not asked for");
    return GL_OK;
  }
  if (left < LEAST_PEER_SECONDS) {
    snprintf(why, GPU_TEXT, "no time left; raise --seconds or choose with --only and --shape");
    return GL_OK;
  }
  return gpu_peer_read(r, o->python, o->shapes, o->n_shapes, o->only, o->device, o->quick,
                       (size_t)left, o->peer_log, why, err);
}

/* A part of ours that failed is told last, when all others have been. */
static gl_status all_measured(const gpu_options *o, const gpu_readings *r, gl_error *err) {
  for (size_t i = 0; i < o->n_shapes; ++i)
    for (gpu_part p = GPU_LIMITS + 1; p < GPU_N_PARTS; ++p) {
      const gpu_reading *g = gpu_find(r, o->shapes[i].name, gpu_part_names[p]);
      if (g != NULL && g->missing[0] != '\0')
        return gl_fail(err, GL_EIO, "%s of shape %s was not measured: %s", gpu_part_names[p],
                       o->shapes[i].name, g->missing);
    }
  return GL_OK;
}

static gl_status print_skipped(const char *why, int json, gl_error *err) {
  if (!json) {
    printf("skipped: %s\n", why);
    return GL_OK;
  }
  cJSON *document = cJSON_CreateObject();
  json_add_string(document, "skipped", why);
  return report_json(document, err);
}

static gl_status write_json(const char *path, const gpu_report *r, gl_error *err) {
  file_writer w;
  cJSON *document = gpu_report_json(r);
  char *text = document != NULL ? cJSON_Print(document) : NULL;
  cJSON_Delete(document);
  if (text == NULL) return gl_fail_memory(err, "the JSON answer");
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    fprintf(w.stream, "%s\n", text);
    status = file_commit(&w, err);
  }
  free(text);
  return status;
}

/* What was measured is printed even where it cannot be written. */
static gl_status tell(const gpu_options *o, const gpu_report *r, gl_error *err) {
  gl_status status = GL_OK;
  if (o->json)
    status = report_json(gpu_report_json(r), err);
  else
    gpu_report_print(r);
  return status == GL_OK && o->output != NULL ? write_json(o->output, r, err) : status;
}

static gl_status bench(gpu_options *o, gl_error *err) {
  const double begun = seconds_now();
  char why[GPU_TEXT] = "";
  const char *skipped = NULL;
  gpu_readings *ours = calloc(1, sizeof *ours), *peers = calloc(1, sizeof *peers);
  gl_status status = ours != NULL && peers != NULL ? GL_OK : gl_fail_memory(err, "the answers");
  if (status == GL_OK) status = measure_ours(o, ours, &skipped, err);
  if (status == GL_OK && skipped != NULL) {
    status = print_skipped(skipped, o->json, err);
  } else if (status == GL_OK) {
    status = measure_peers(o, peers, begun, why, err);
    const gpu_reading *peer = gpu_find(peers, "limit", "peer");
    if (peer != NULL && peer->missing[0] != '\0') snprintf(why, sizeof why, "%s", peer->missing);
    const gpu_report report = {.shapes = o->shapes,
                               .n_shapes = o->n_shapes,
                               .only = o->only,
                               .ours = ours,
                               .peers = peers,
                               .no_peer = why,
                               .element = o->kind == BACKEND_CUDA ? 2 : 4};
    if (status == GL_OK) status = tell(o, &report, err);
    if (status == GL_OK) status = all_measured(o, ours, err);
  }
  free(ours);
  free(peers);
  return status;
}

static gl_status run_bench_gpu(const command *self, int argc, char **argv, gl_error *err) {
  const char *python = getenv("GEPOLAB_PYTHON");
  gpu_options o = {.device = "cuda",
                   .seconds = DEFAULT_SECONDS,
                   .python = python != NULL && python[0] != '\0' ? python : "python3"};
  const args_option options[] = {
      {"only", 0, ARGS_TEXT, "PART", "logp, decode, train or step (default: all)", &o.only},
      {"shape", 0, ARGS_TEXT, "SHAPE", "0.6b, 1.7b or tiny (default: the first two)", &o.shape},
      {"device", 0, ARGS_TEXT, "DEVICE", "cuda (default), or cpu to try the benchmark", &o.device},
      {"quick", 0, ARGS_FLAG, NULL, "less of everything, to see that it works", &o.quick},
      {"seconds", 0, ARGS_COUNT, "N", "peers start nothing after so long (480)", &o.seconds},
      {"no-peer", 0, ARGS_FLAG, NULL, "gepolab alone", &o.no_peer},
      {"peer-log", 0, ARGS_TEXT, "FILE", "what Python says on stderr", &o.peer_log},
      {"json", 0, ARGS_FLAG, NULL, "every number as JSON", &o.json},
      {"output", 'o', ARGS_TEXT, "FILE", "the same JSON in a file, beside the table", &o.output}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){0, 0, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) status = choose(&o, err);
  if (status == GL_OK && !a.help) status = bench(&o, err);
  args_fini(&a);
  return status;
}

const command command_bench_gpu = {
    .name = "bench gpu",
    .arguments = "",
    .summary = "the transformer on a GPU, next to PyTorch and the device's limits",
    .about =
        "Qwen3-0.6B and 1.7B shapes with drawn weights, bfloat16: training tokens per second,\n"
        "decoding at batch 1, 64 and 256, log-probabilities over 151,936 tokens, and a step of\n"
        "reinforcement learning with its phases and peak memory. `limit` is the share of what the\n"
        "matrix products or copies measured on the same device allow; `peer` is PyTorch with\n"
        "torch.compile and transformers' generate, run by $GEPOLAB_PYTHON (default python3) from\n"
        "experiments/bench/gpu.py in the folder it is called in. About eight minutes on an H100.\n"
        "Without a GPU it says so and ends with 0.",
    .examples = "  gepolab bench gpu\n"
                "  gepolab bench gpu --only decode --shape 0.6b --json\n"
                "  gepolab bench gpu --device cpu --quick",
    .run = run_bench_gpu};
