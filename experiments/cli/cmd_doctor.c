/* gepolab doctor: what is found on this machine, what is missing and how to get it, and a short
 * test of the program itself. */
#include "core/base/display_text.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/provenance.h"
#include "experiments/bench/bench.h"
#include "experiments/doctor/doctor.h"

#include <gen/version.h>
#include <stdio.h>
#include <string.h>

enum { MOST_THINGS = 32 };

/* The findings of one examination. */
typedef struct examination {
  provenance program;
  found_thing things[MOST_THINGS];
  size_t n_things;
  int tested; /* whether `test` was run */
  self_test test;
} examination;

static int lacks_needed(const examination *e) {
  for (size_t i = 0; i < e->n_things; ++i)
    if (e->things[i].needed && !e->things[i].present) return 1;
  return 0;
}

static int all_well(const examination *e) {
  return !lacks_needed(e) && (!e->tested || self_test_passed(&e->test));
}

/* --- text --- */

enum { DOCTOR_COLUMN = 27 }; /* where the description of a thing begins */

/* Prints "for: …" below the thing's name, with the text wrapped in its column. */
static void doctor_print_line(const char *head, const char *text) {
  const size_t column = DOCTOR_COLUMN + strlen(head);
  printf("%*s%s", DOCTOR_COLUMN, "", head);
  shown_wrap(text, column, column, stdout);
  putchar('\n');
}

static void print_thing(const found_thing *t) {
  const char *state = t->present ? "found" : t->needed ? "NEEDED" : "missing";
  const size_t column = (size_t)printf("%-8s %-17s ", state, t->name);
  shown_wrap(shown(t->detail).text, column, DOCTOR_COLUMN, stdout);
  putchar('\n');
  if (t->present) return;
  doctor_print_line("for: ", t->use);
  doctor_print_line("get it: ", t->remedy);
}

/* Prints a rate with a decimal prefix: 107.9 M. */
static void print_speed(const bench_number *number) {
  static const char prefixes[] = {' ', 'k', 'M', 'G'};
  double value = number->rate.median;
  size_t k = 0;
  for (; value >= 10000 && k + 1 < sizeof prefixes; ++k) value /= 1000;
  const size_t column = (size_t)printf("  %8.4g %c  %-30s ", value, prefixes[k], number->key);
  shown_wrap(number->what, column, column, stdout);
  putchar('\n');
}

static void print_test(const self_test *t) {
  printf("\nself-test, %.1f s\n", t->seconds);
  for (size_t i = 0; i < t->n_checks; ++i) {
    const size_t column =
        (size_t)printf("%-8s %-17s ", t->checks[i].passed ? "ok" : "FAILED", t->checks[i].name);
    shown_wrap(shown(t->checks[i].detail).text, column, DOCTOR_COLUMN, stdout);
    putchar('\n');
  }
  printf("speeds, one short measurement each%s\n",
         meter_is_quiet(t->speeds.load) ? "" : ", while other programs used this machine");
  for (size_t i = 0; i < t->speeds.n; ++i)
    if (t->speeds.numbers[i].kind == BENCH_RATE && t->speeds.numbers[i].rate.n > 0)
      print_speed(&t->speeds.numbers[i]);
}

static void doctor_print_text(const examination *e) {
  const run_provenance *p = &e->program.record;
  char head[SHOWN_SIZE];
  snprintf(head, sizeof head, "gepolab " GEPOLAB_VERSION ", commit %s; %s; %s",
           p->source[0] != '\0' ? p->source : "not known", p->processor, p->system);
  shown_wrap(head, 0, 0, stdout);
  puts("\n");
  for (size_t i = 0; i < e->n_things; ++i) print_thing(&e->things[i]);
  if (e->tested) print_test(&e->test);
}

/* --- as JSON --- */

static void add_things(cJSON *to, const examination *e) {
  cJSON *list = json_list(to, "things");
  for (size_t i = 0; i < e->n_things; ++i) {
    const found_thing *t = &e->things[i];
    json_put(json_object(list, NULL), "name %s, found %i, needed %i, detail %s, use %s, remedy %s",
             t->name, t->present, t->needed, t->detail, t->use, t->remedy);
  }
}

static void add_test(cJSON *to, const self_test *t) {
  cJSON *test = json_object(to, "self_test");
  json_put(test, "seconds %g, quiet %i", t->seconds, meter_is_quiet(t->speeds.load));
  cJSON *checks = json_list(test, "checks");
  for (size_t i = 0; i < t->n_checks; ++i)
    json_put(json_object(checks, NULL), "name %s, passed %i, detail %s", t->checks[i].name,
             t->checks[i].passed, t->checks[i].detail);
  cJSON *speeds = json_object(test, "speeds");
  for (size_t i = 0; i < t->speeds.n; ++i)
    if (t->speeds.numbers[i].kind == BENCH_RATE && t->speeds.numbers[i].rate.n > 0)
      json_number(speeds, t->speeds.numbers[i].key, t->speeds.numbers[i].rate.median);
}

static gl_status doctor_print_json(const examination *e, gl_error *err) {
  const run_provenance *p = &e->program.record;
  cJSON *d = json_new();
  json_put(d, "version %s, commit %s, processor %s, system %s, well %i", GEPOLAB_VERSION, p->source,
           p->processor, p->system, all_well(e));
  add_things(d, e);
  if (e->tested) add_test(d, &e->test);
  return report_json(d, err);
}

/* --- the command --- */

static gl_status doctor_print_failure(const examination *e, gl_error *err) {
  if (lacks_needed(e))
    return gl_fail(err, GL_EIO, "something that gepolab needs is missing: see above");
  if (!all_well(e))
    return gl_fail(err, GL_EINTERNAL, "the self-test failed: this program cannot be relied upon");
  return GL_OK;
}

static gl_status doctor_examine(int tested, int json, gl_error *err) {
  examination e = {.tested = tested};
  gl_status status = provenance_init(&e.program, err);
  while (status == GL_OK && e.n_things < MOST_THINGS &&
         detect_one(&e.things[e.n_things], e.n_things))
    ++e.n_things;
  if (status == GL_OK && tested) self_test_run(&e.test);
  if (status == GL_OK && json) status = doctor_print_json(&e, err);
  if (status == GL_OK && !json) doctor_print_text(&e);
  if (status == GL_OK) status = doctor_print_failure(&e, err);
  provenance_fini(&e.program);
  return status;
}

static gl_status run_doctor(args *a, gl_error *err) {
  int json = 0, untested = 0;
  const args_option options[] = {
      {"no-test", 0, ARGS_FLAG, NULL, "only look for things; no self-test", &untested},
      {"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  gl_status status = args_parse(a, options, 2, err);
  if (status != GL_OK || a->help) return status;
  return doctor_examine(!untested, json, err);
}

const command command_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "what is found here, what is missing, and a self-test",
    .about =
        "Looks for the programs, the library, the Python package ($GEPOLAB_PYTHON, else python3)\n"
        "and the devices that gepolab can use, and says how to get what is missing. The self-test\n"
        "takes ten seconds at most: coefficients against differences of the loss, the exact\n"
        "laboratory against a known result, a short training run against itself, and one short\n"
        "measurement of each speed (`gepolab bench` measures them properly). The exit code is 1\n"
        "where something needed (gnuplot) is missing or the self-test fails, else 0: most things\n"
        "are needed by one command only.",
    .examples = "  gepolab doctor\n  gepolab doctor --json --no-test",
    .run = run_doctor};
