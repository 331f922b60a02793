/* gepolab bench and bench gpu. */
#include "core/base/file.h"
#include "core/base/json.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_SECONDS = 900, SCALED_TEXT = 24 };

/* --- numbers for people --- */

/* 19234567 as "19.23 M"; returns text. */
static const char *scaled(double x, char text[SCALED_TEXT]) {
  static const char *const units[] = {"", " k", " M", " G"};
  size_t i = 0;
  if (isnan(x)) return "";
  while (fabs(x) >= 1e4 && i < 3) x /= 1e3, ++i;
  snprintf(text, SCALED_TEXT, "%.4g%s", x, units[i]);
  return text;
}

static const char *percent(double share, char text[SCALED_TEXT]) {
  if (isnan(share)) return "?";
  snprintf(text, SCALED_TEXT, "%.1f %%", 100 * share);
  return text;
}

/* --- the table --- */

static void bench_print_row(const char *name, const bench_rate *rate, const char *ratio,
                            const char *aim, const char *what) {
  char median[SCALED_TEXT], low[SCALED_TEXT], high[SCALED_TEXT], others[SCALED_TEXT],
      steal[SCALED_TEXT], range[2 * SCALED_TEXT + 8] = "";
  if (rate->n > 0)
    snprintf(range, sizeof range, "%s - %s", scaled(rate->low, low), scaled(rate->high, high));
  printf("%-32s %10s %21s %7s %8s %7s %7s  %s\n", name,
         rate->n > 0 ? scaled(rate->median, median) : "", range, ratio, aim,
         rate->n > 0 ? percent(rate->load.others, others) : "",
         rate->n > 0 ? percent(rate->load.steal, steal) : "", what);
}

static void print_peer(const bench *b, const bench_number *number, const bench_peer *peer) {
  char name[BENCH_NAME], ratio[SCALED_TEXT] = "", aim[SCALED_TEXT] = "";
  int withheld;
  const double times = bench_ratio(number, peer, b->takes_busy, &withheld);
  snprintf(name, sizeof name, "  %s", peer->name);
  if (withheld)
    snprintf(ratio, sizeof ratio, "busy");
  else if (!isnan(times))
    snprintf(ratio, sizeof ratio, "%.2f x", times);
  if (!isnan(peer->aim)) snprintf(aim, sizeof aim, "%.3g x", peer->aim);
  bench_print_row(name, &peer->rate, ratio, aim,
                  peer->missing[0] != '\0' ? peer->missing : peer->note);
}

static void bench_print_number(const bench *b, const bench_number *number) {
  char aim[SCALED_TEXT], value[SCALED_TEXT];
  if (number->kind == BENCH_FACT) {
    printf("%-32s %10s %21s %7s %8s %7s %7s  %s\n", number->key,
           isnan(number->value) ? "kept back" : scaled(number->value, value), "", "",
           scaled(number->aim, aim), "", "", number->what);
    return;
  }
  bench_print_row(number->key, &number->rate, "", scaled(number->aim, aim),
                  number->rate.n > 0           ? number->what
                  : number->missing[0] != '\0' ? number->missing
                                               : "not measured");
  for (size_t i = 0; i < number->n_peers; ++i) print_peer(b, number, &number->peer[i]);
}

static void bench_print(const bench *b) {
  printf("%-32s %10s %21s %7s %8s %7s %7s\n", "", "median", "smallest - largest", "ratio", "aim",
         "others", "steal");
  for (size_t i = 0; i < b->n; ++i) bench_print_number(b, &b->numbers[i]);
}

static void bench_print_text(const bench *b) {
  char others[SCALED_TEXT], steal[SCALED_TEXT];
  printf("The machine was %s: in the busiest measurement other processes took %s of all cores' "
         "time, other machines %s.\n\n",
         meter_is_quiet(b->load) ? "quiet" : "BUSY", percent(b->load.others, others),
         percent(b->load.steal, steal));
  bench_print(b);
}

/* Prints a line on stderr for every measured rate, because the table follows only after minutes. */
static void bench_print_measured(const bench_number *number, const bench_peer *peer) {
  char median[SCALED_TEXT], others[SCALED_TEXT];
  const bench_rate *rate = peer != NULL ? &peer->rate : &number->rate;
  fprintf(stderr, "  %-32s %-22s %10s  others %s\n", number->key, peer != NULL ? peer->name : "",
          scaled(rate->median, median), percent(rate->load.others, others));
}

/* --- as JSON --- */

static void add_rate(cJSON *to, const bench_rate *rate) {
  json_put(to, "value %g, smallest %g, largest %g, repetitions %zu", rate->median, rate->low,
           rate->high, (size_t)rate->n);
  json_put(to, "others %g, steal %g, processor_s %g, least_processor_s %g",
           rate->n > 0 ? rate->load.others : NAN, rate->n > 0 ? rate->load.steal : NAN, rate->own_s,
           rate->least_s);
}

static void add_peer(cJSON *to, const bench *b, const bench_number *number,
                     const bench_peer *peer) {
  int withheld;
  const double ratio = bench_ratio(number, peer, b->takes_busy, &withheld);
  cJSON *item = json_object(to, peer->name);
  add_rate(item, &peer->rate);
  json_put(item, "ratio %g, kept_back %i, aim %g", ratio, withheld, peer->aim);
  if (peer->missing[0] != '\0') json_put(item, "missing %s", peer->missing);
  if (peer->note[0] != '\0') json_put(item, "note %s", peer->note);
}

static void bench_add_number(cJSON *to, const bench *b, const bench_number *number) {
  cJSON *item = json_object(to, number->key);
  if (number->kind == BENCH_FACT)
    json_put(item, "value %g", number->value);
  else
    add_rate(item, &number->rate);
  json_put(item, "aim %g, what %s", number->aim, number->what);
  if (number->missing[0] != '\0') json_put(item, "missing %s", number->missing);
  cJSON *peers = number->n_peers > 0 ? json_object(item, "peers") : NULL;
  for (size_t i = 0; i < number->n_peers; ++i) add_peer(peers, b, number, &number->peer[i]);
}

static cJSON *bench_document(const bench *b) {
  cJSON *document = json_new();
  json_put(document, "quiet %i, others %g, steal %g", meter_is_quiet(b->load), b->load.others,
           b->load.steal);
  cJSON *numbers = json_object(document, "numbers");
  for (size_t i = 0; i < b->n; ++i) bench_add_number(numbers, b, &b->numbers[i]);
  return document;
}

/* --- reading the request --- */

typedef struct bench_part {
  const char *name;
  gl_status (*run)(bench *b, gl_error *err);
} bench_part;

static const bench_part parts[] = {{"des", bench_des},     {"policy", bench_policy},
                                   {"lab", bench_lab},     {"llm", bench_llm},
                                   {"sweep", bench_sweep}, {"logs", bench_logs}};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* Sets wanted[i] to 1 for the parts named as arguments; without arguments for all. */
static gl_status bench_choose(int wanted[N_PARTS], const args *a, gl_error *err) {
  const char *names[N_PARTS];
  gl_status status = GL_OK;
  for (size_t i = 0; i < N_PARTS; ++i) {
    names[i] = parts[i].name;
    wanted[i] = a->n_words == 0;
  }
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) {
    size_t part = 0;
    status = args_choose(&part, "what bench measures", a->words[i], names, N_PARTS, err);
    if (status == GL_OK) wanted[part] = 1;
  }
  return status;
}

/* Fails if a requested ratio was withheld because the machine was busy, so that scripts do not
 * compare such rates. */
static gl_status all_compared(const bench *b, gl_error *err) {
  const size_t n = bench_withheld(b);
  if (n == 0) return GL_OK;
  return gl_fail(err, GL_EIO,
                 "%zu ratio%s kept back: other processes or machines took more than %.0f %% of all "
                 "cores' time while %s measured; run it on a quiet machine, or with --busy",
                 n, n == 1 ? " is" : "s are", 100 * METER_MOST, n == 1 ? "it was" : "they were");
}

static gl_status bench_measure_parts(bench *b, const args *a, gl_error *err) {
  int wanted[N_PARTS];
  gl_status status = bench_choose(wanted, a, err);
  if (status == GL_OK && b->shape != NULL) status = bench_llm_has(b->shape, err);
  for (size_t i = 0; i < N_PARTS && status == GL_OK; ++i)
    if (wanted[i]) status = parts[i].run(b, err);
  return status;
}

static gl_status run_bench(args *a, gl_error *err) {
  int json = 0, no_peers = 0;
  size_t thousands = 10000, seconds = DEFAULT_SECONDS;
  const char *python = getenv("GEPOLAB_PYTHON");
  bench b = {.report = bench_print_measured, .log_mib = 64};
  const args_option options[] = {
      {"thousands", 'n', ARGS_COUNT, "N", "thousands of M/M/1 customers (default 10000)",
       &thousands},
      {"shape", 0, ARGS_TEXT, "64x2|128x4|256x6|512x8", "of llm only this one", &b.shape},
      {"log-size", 0, ARGS_COUNT, "MIB", "size of the log that logs reads (default 64)",
       &b.log_mib},
      {"seconds", 0, ARGS_COUNT, "N", "begin nothing after so long (default 900)", &seconds},
      {"busy", 0, ARGS_FLAG, NULL, "give ratios from a busy machine, too", &b.takes_busy},
      {"no-peers", 0, ARGS_FLAG, NULL, "measure no other program", &no_peers},
      {"quick", 0, ARGS_FLAG, NULL, "one short repetition: to see that it works", &b.quick},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  b.end = seconds_now() + (double)seconds;
  b.customers = 1000 * thousands;
  if (!no_peers) b.python = python != NULL && *python != '\0' ? python : "python3";
  if (!no_peers) b.cimba = getenv("GEPOLAB_CIMBA");
  status = bench_measure_parts(&b, a, err);
  if (status == GL_OK && json) status = report_json(bench_document(&b), err);
  if (status == GL_OK && !json) bench_print_text(&b);
  if (status == GL_OK) status = all_compared(&b, err);
  return status;
}

const command command_bench = {
    .name = "bench",
    .arguments = "[des | policy | lab | llm | sweep | logs ...]",
    .words = {.input = ARGS_ANY, .max = N_PARTS},
    .summary = "how fast the parts are here, beside other programs",
    .about =
        "des: an M/M/1 queue, beside Cimba's benchmark of the same queue if $GEPOLAB_CIMBA\n"
        "names that program (benchmark/MM1_single of a build of Cimba); a star of samplers and\n"
        "the clock of recipes, each with 10,000 and with a million samplers, and the cost of an\n"
        "event of the larger relative to the smaller. policy: the coefficients of several\n"
        "algorithms, beside PyTorch. lab: exact enumeration, and Monte Carlo beside NumPy. llm:\n"
        "training and generation of small transformers on all cores, beside PyTorch and\n"
        "transformers. sweep: cells per second of delay_sweep with one worker and with two,\n"
        "cells per hour of llm_delay_sweep. logs: a made-up NeMo-RL log through whatif with\n"
        "grpo and gepo, beside orjson and NumPy. Python programs are run by $GEPOLAB_PYTHON\n"
        "(default python3) from experiments/bench, so call it in the repository; programs that\n"
        "are not installed are named. `gepolab bench gpu` is a separate command (`gepolab bench\n"
        "gpu --help`).\n"
        "\n"
        "Every rate is the median of five repetitions. Rates with one worker and with two are\n"
        "measured in turns, and their ratio is omitted if the processor itself was slower in\n"
        "one of them (processor_s in JSON: processor seconds for one unit of work). With each\n"
        "rate is the fraction of all cores' time that other processes and other machines\n"
        "(steal) used meanwhile. Above 10 % ratios are omitted and the exit code is 1, unless\n"
        "--busy is given.",
    .examples =
        "  gepolab bench\n  gepolab bench des lab --json\n  gepolab bench llm --shape 256x6",
    .run = run_bench};

/* --- bench gpu --- */

enum { GPU_SECONDS = 480 };

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

/* Prints the measurements even if the file cannot be written; that error is returned at the end. */
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
  if (status == GL_OK && output != NULL) status = gpu_bench_write_text(output, text, err);
  if (status == GL_OK && g->failed.status != GL_OK)
    status = gl_fail(err, GL_EIO, "%s", g->failed.text);
  free(text);
  cJSON_Delete(document);
  return status;
}

static gl_status run_bench_gpu(args *a, gl_error *err) {
  const char *python = getenv("GEPOLAB_PYTHON"), *device = "cuda", *shape = NULL, *output = NULL;
  int json = 0;
  gpu_bench *g = NULL;
  gpu_options o = {.seconds = GPU_SECONDS,
                   .python = python != NULL && python[0] != '\0' ? python : "python3"};
  const args_option options[] = {
      {"only", 0, ARGS_TEXT, "PARTS",
       "of limits, parity, train, peer-train, shared, repeats, decode, peer-decode, logp, step; "
       "with commas between (default: all, in this order)",
       &o.only},
      {"shape", 0, ARGS_TEXT, "0.6b|1.7b|tiny", "default: the first two", &shape},
      {"device", 0, ARGS_TEXT, "cuda|cpu", "cuda is the default; cpu is to try the benchmark",
       &device},
      {"quick", 0, ARGS_FLAG, NULL, "less of everything, to see that it works", &o.quick},
      {"seconds", 0, ARGS_COUNT, "N", "no part begins after so long (480)", &o.seconds},
      {"in-process", 0, ARGS_FLAG, NULL, "parts run in this process, as profilers want it",
       &o.in_process},
      {"json", 0, ARGS_FLAG, NULL, "every number as JSON", &json},
      {"output", 'o', ARGS_WRITE, "FILE", "the same JSON in a file, beside the table", &output}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = gpu_bench_choose(&o, shape, device, a, err);
  if (status == GL_OK) status = gpu_bench_run(&g, &o, err);
  if (g != NULL) status = gpu_bench_show(g, output, json, err);
  gpu_bench_free(g);
  return status;
}

const command command_bench_gpu = {
    .name = "bench gpu",
    .arguments = "[SIZE=NUMBER ...]",
    .words = {.input = ARGS_ANY, .overrides = true},
    .summary = "the transformer on a GPU, next to PyTorch and the device's limits",
    .about =
        "Qwen3-0.6B and 1.7B shapes with random weights, bfloat16. parity: log-probabilities,\n"
        "gradients and samples compared with the CPU's in float32, with bounds; exceeding one\n"
        "is exit code 1. train: tokens per second. repeats: training twice gives the same bits, "
        "or\nexit code 1. decode: at batch 64, 256 and 1. logp: the\n"
        "output layer over 151,936 tokens. step: one of reinforcement learning with its phases\n"
        "and peak of memory. With each number come `limit`, what the matrix products or copies\n"
        "measured on the same device allow, and `pytorch`: PyTorch with torch.compile, and\n"
        "transformers' generate, run by $GEPOLAB_PYTHON (default python3) from\n"
        "experiments/bench/gpu.py in the folder it is called in; its standard error goes into\n"
        "the file $GEPOLAB_PEER_LOG. Sizes: layers, sequences, length, prompt, draws, batch,\n"
        "responses, tokens, repetitions (at most 5). GEPOLAB_CUDA_TIMES=1 prints calls,\n"
        "milliseconds, rates and fraction of time of every operation on standard error, with a\n"
        "recorded graph as one operation; GEPOLAB_CUDA_TIMES=all records no graphs. Without a\n"
        "GPU it says so and exits with 0.",
    .examples = "  gepolab bench gpu --only parity --shape 0.6b\n"
                "  GEPOLAB_CUDA_TIMES=all gepolab bench gpu --only decode --shape 0.6b batch=64\n"
                "  gepolab bench gpu --device cpu --quick",
    .run = run_bench_gpu};
