/* gepolab bench: how fast the parts are, next to what was aimed at. */
#include "experiments/cli/cmd_bench.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static gl_status print_json(const bench_result *r, gl_error *err) {
  cJSON *document = cJSON_CreateObject();
  for (size_t i = 0; i < r->n && document != NULL; ++i)
    if (json_add_number(document, r->numbers[i].key, r->numbers[i].value) == NULL) {
      cJSON_Delete(document);
      document = NULL;
    }
  return report_json(document, err);
}

static void print_text(const bench_result *r) {
  printf("%-28s %14s %12s %7s  %s\n", "", "measured", "aim", "ratio", "");
  for (size_t i = 0; i < r->n; ++i) {
    const bench_number *b = &r->numbers[i];
    printf("%-28s %14.6g ", b->key, b->value);
    if (isnan(b->aim))
      printf("%12s %7s", "", "");
    else
      printf("%12.6g %7.2f", b->aim, b->value / b->aim);
    printf("  %s\n", b->what);
  }
}

static gl_status measure(bench_result *r, const char *only, size_t customers, gl_error *err) {
  static const char *const names[] = {"des", "policy", "lab", "sweep", "llm"};
  enum { DES, POLICY, LAB, SWEEP, LLM, ALL };
  size_t which = ALL;
  gl_status status = GL_OK;
  if (only != NULL) status = args_choose(&which, "what bench measures", only, names, ALL, err);
  if (status == GL_OK && (which == ALL || which == DES)) status = bench_des(r, customers, err);
  if (status == GL_OK && (which == ALL || which == POLICY)) status = bench_policy(r, err);
  if (status == GL_OK && (which == ALL || which == LAB)) status = bench_lab(r, err);
  if (status == GL_OK && (which == ALL || which == SWEEP)) status = bench_sweep(r, err);
  if (status == GL_OK && (which == ALL || which == LLM)) status = bench_llm(r, err);
  return status;
}

static gl_status run_bench(const command *self, int argc, char **argv, gl_error *err) {
  if (argc > 1 && strcmp(argv[1], "gpu") == 0)
    return command_bench_gpu.run(&command_bench_gpu, argc - 1, argv + 1, err);
  int json = 0;
  size_t thousands = 20000;
  const args_option options[] = {{"thousands", 'n', ARGS_COUNT, "N",
                                  "thousands of M/M/1 customers (default 20000)", &thousands},
                                 {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  args a;
  bench_result r = {.n = 0};
  gl_status status = args_parse(&a, self, options, 2, (args_shape){0, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = measure(&r, a.n_words > 0 ? a.words[0] : NULL, 1000 * thousands, err);
    if (status == GL_OK && json) status = print_json(&r, err);
    if (status == GL_OK && !json) print_text(&r);
  }
  args_fini(&a);
  if (status == GL_OK && args_help_form(argc, argv) == ARGS_HELP_MAN)
    status = command_bench_gpu.run(&command_bench_gpu, argc, argv, err);
  return status;
}

const command command_bench = {
    .name = "bench",
    .arguments = "[des | policy | lab | sweep | llm | gpu]",
    .summary = "how fast the parts are on this machine",
    .about =
        "des: an M/M/1 queue and a star of 10,000 samplers on the event queue; policy: the\n"
        "coefficients of several algorithms; lab: exact enumeration, and Monte Carlo next to "
        "NumPy; "
        "sweep: cells per second of delay_sweep with one worker\n"
        "and with two; llm: training and generation of small transformers on all cores, next\n"
        "to PyTorch; gpu: the transformer on a GPU (`gepolab bench gpu --help`), in none of the\n"
        "others. Run it on an idle machine.",
    .examples = "  gepolab bench\n  gepolab bench des --json",
    .run = run_bench};
