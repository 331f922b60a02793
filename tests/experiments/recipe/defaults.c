/* The defaults of core/config/fields.h are those of the code that reads recipes: a recipe that
 * leaves a field out gives the same numbers as one that writes the table's default. */
#include "core/config/fields.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = CLI_MAX_ARGUMENTS, WORD_SIZE = 256, NUMBER_SIZE = 32 };

/* A command line in the making: `sim` or `run` with overrides. */
typedef struct line {
  char word[MOST_WORDS][WORD_SIZE];
  size_t n;
} line;

static void add(line *l, const char *path, const char *value, int is_text) {
  CU_ASSERT_FATAL(l->n < MOST_WORDS - 1);
  snprintf(l->word[l->n++], WORD_SIZE, is_text ? "%s=\"%s\"" : "%s=%s", path, value);
}

/* Makes fields matter that a plain recipe would not look at. */
typedef struct setting {
  const char *world, *path, *value; /* world: where it belongs; NULL: everywhere */
} setting;

static const setting settings[] = {
    {NULL, "cluster.lengths", "{law: lognormal, mu: 4, sigma: 1}"},
    {NULL, "cluster.up.bandwidth", "3e4"},
    {NULL, "cluster.down.bandwidth", "3e5"},
    {NULL, "cluster.up.loss", "0.05"},
    {NULL, "cluster.down.loss", "0.02"},
    {NULL, "cluster.rollout_bytes", "3e5"},
    {NULL, "cluster.weights_bytes", "3e6"},
    {NULL, "cluster.mtbf", "{law: exponential, mean: 9000}"},
    {NULL, "cluster.learner.eval_every", "5"},
    {NULL, "steps", "12"},
    {NULL, "train.groups", "2"},
    {"llm", "world.model.layers", "1"},
    {"llm", "world.model.hidden", "16"},
    {"llm", "world.model.heads", "2"},
    {"llm", "world.evaluation.prompts", "4"},
    {"llm", "world.backend", "cpu"},
    {"llm", "world.task.kind", "addition"},
    {"llm", "world.warmup.steps", "2"},
};

/* Another number than the one with which a field has no meaning; any where that one is not stated.
 */
static const char *other_number(const field_condition *unless, char text[NUMBER_SIZE]) {
  const double not = unless->is != NULL ? strtod(unless->is, NULL) : 0;
  snprintf(text, NUMBER_SIZE, "%g", not == 0 ? 9 : not / 2);
  return text;
}

static int is_named(const field *f, const char *path) {
  if (strcmp(f->path, path) == 0) return 1;
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (f->when[i].path != NULL && strcmp(f->when[i].path, path) == 0) return 1;
  return 0;
}

/* The world under which the field's entry holds. */
static const char *world_of(const field *f) {
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (f->when[i].path != NULL && strcmp(f->when[i].path, "world.kind") == 0) return f->when[i].is;
  return strncmp(f->path, "world.model.", 12) == 0 ? "llm" : "sequence";
}

/* A recipe in which the entry holds; with: and the field is written out. */
static void recipe_for(line *l, const field *f, int with) {
  const char *world = world_of(f);
  const int of_clock = strncmp(f->path, "cluster.", 8) == 0;
  *l = (line){.n = 0};
  snprintf(l->word[l->n++], WORD_SIZE, of_clock ? "sim" : "run");
  snprintf(l->word[l->n++], WORD_SIZE, "quickstart");
  snprintf(l->word[l->n++], WORD_SIZE, "--json");
  if (!of_clock) snprintf(l->word[l->n++], WORD_SIZE, "-q");
  add(l, "world", "{}", 0);
  add(l, "optimizer", "null", 0);
  add(l, "train", "null", 0);
  add(l, "cluster", "{}", 0);
  add(l, "world.kind", world, 0);
  if (strcmp(world, "llm") == 0) add(l, "world.task", "{}", 0);
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (f->when[i].path != NULL && f->when[i].is != NULL &&
        strcmp(f->when[i].path, "world.kind") != 0)
      add(l, f->when[i].path, f->when[i].is, 0);
  for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
    if (!is_named(f, settings[i].path) &&
        (settings[i].world == NULL ? of_clock || strncmp(settings[i].path, "cluster.", 8) != 0
                                   : strcmp(settings[i].world, world) == 0))
      add(l, settings[i].path, settings[i].value, 0);
  char other[NUMBER_SIZE];
  if (f->unless.path != NULL) add(l, f->unless.path, other_number(&f->unless, other), 0);
  /* A shorthand stands in its section's place: `algorithm: grpo` for `algorithm.base`. */
  const char *path = strcmp(f->path, "algorithm.base") == 0 ? "algorithm" : f->path;
  if (path != f->path) add(l, path, "null", 0);
  if (with) add(l, path, f->fallback, f->kind == VALUE_TEXT);
}

static cli_result run_line(line *l) {
  const char *argument[MOST_WORDS];
  for (size_t i = 0; i < l->n; ++i) argument[i] = l->word[i];
  argument[l->n] = NULL;
  return cli_run(NULL, argument);
}

/* Fields of the exact laboratory, and of a group of a list of samplers. */
static int is_not_of_a_run(const field *f) {
  static const char *const paths[] = {"world.slip",
                                      "world.distraction",
                                      "world.width",
                                      "world.height",
                                      "world.actions",
                                      "cluster.samplers.count",
                                      "cluster.samplers.speed",
                                      "world.states"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i)
    if (strcmp(f->path, paths[i]) == 0) return 1;
  return 0;
}

/* Fields of `run` and `sim`, but for problems from a file, an unlimited bandwidth (which no number
 * states), the reference (which is measured where it is stated), and what a run does not look at.
 */
static int is_left_out(const field *f) {
  static const char *const tops[] = {"steps",     "eval_every", "algorithm", "train",
                                     "optimizer", "sampling",   "cluster",   "world"};
  const size_t top = strcspn(f->path, ".");
  int known = 0;
  for (size_t i = 0; i < sizeof tops / sizeof *tops; ++i)
    known |= strlen(tops[i]) == top && strncmp(tops[i], f->path, top) == 0;
  if (!known || is_not_of_a_run(f) || f->fallback == NULL || f->kind == VALUE_SECTION ||
      f->role == ROLE_PROVENANCE || strcmp(f->fallback, "inf") == 0 ||
      strcmp(f->path, "world.reference") == 0)
    return 1;
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (f->when[i].is != NULL && strcmp(f->when[i].is, "math") == 0) return 1;
  return 0;
}

static void the_tables_defaults_are_the_parsers(void) {
  size_t n = 0;
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    static line l;
    if (is_left_out(f)) continue;
    recipe_for(&l, f, 0);
    cli_result without = run_line(&l);
    recipe_for(&l, f, 1);
    cli_result with = run_line(&l);
    const int same = without.code == 0 && with.code == 0 && strcmp(without.out, with.out) == 0;
    CU_ASSERT(same);
    if (!same)
      fprintf(stderr, "%s=%s under %s: %d %s %d %s\n", f->path, f->fallback, world_of(f),
              without.code, without.err, with.code, with.err);
    cli_result_fini(&without);
    cli_result_fini(&with);
    ++n;
  }
  CU_ASSERT(n > 100);
}

SUITE(recipe_defaults, "cli: defaults", TEST(the_tables_defaults_are_the_parsers));
