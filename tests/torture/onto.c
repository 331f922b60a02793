/* An output given the name of the command's input, or of a study: refused, and every file is as it
 * was. */
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECIPE "recipe.yaml"
#define STUDY "study.db"
#define ONTO "@" /* where the name of `file` goes, or of a link to it */

typedef struct onto_case {
  const char *name, *file;
  const char *words[12];
} onto_case;

static const onto_case onto_cases[] = {
    {"export -o", STUDY, {"export", STUDY, "-o", ONTO}},
    {"report -o", STUDY, {"report", STUDY, "-o", ONTO}},
    {"results -o", STUDY, {"results", "define", "/dev/null", "-o", ONTO}},
    {"results -o, input", RECIPE, {"results", "define", RECIPE, "-o", ONTO}},
    {"plan -o", RECIPE, {"plan", RECIPE, "-o", ONTO}},
    {"plan -o, study", STUDY, {"plan", "one_node", "-q", "-o", ONTO}},
    {"run -o", RECIPE, {"run", RECIPE, "-q", "-o", ONTO}},
    {"run --save", RECIPE, {"run", RECIPE, "-q", "--save", ONTO}},
    {"run --save, study", STUDY, {"run", RECIPE, "-q", "--save", ONTO}},
    {"run -o --save", STUDY, {"run", RECIPE, "-q", "-o", STUDY, "--save", ONTO}},
    {"sweep -o", RECIPE, {"sweep", RECIPE, "-q", "-o", ONTO}},
    {"bias -o", RECIPE, {"bias", RECIPE, "-o", ONTO}},
    {"merge", STUDY, {"merge", STUDY, ONTO}},
    {"check --salvage", STUDY, {"check", STUDY, "--salvage", ONTO}},
    {"llm rl --study", RECIPE, {"llm", "rl", RECIPE, "-q", "--study", ONTO}},
    {"llm bias -o", RECIPE, {"llm", "bias", RECIPE, "-q", "-o", ONTO}},
    {"llm profile -o", RECIPE, {"llm", "profile", RECIPE, "-q", "-o", ONTO}},
    {"llm profile -o, study", STUDY, {"llm", "profile", RECIPE, "-q", "-o", ONTO}},
    {"bench gpu -o", STUDY, {"bench", "gpu", "--device", "cpu", "-o", ONTO}},
};
enum { N_ONTO = sizeof onto_cases / sizeof *onto_cases };

/* root/from, as name in the working directory. */
static void put_copy(trial *t, const char *from, const char *name) {
  char path[TORTURE_PATH];
  size_t size = 0;
  char *bytes = file_read(join(path, t->session->root, from), &size);
  if (bytes == NULL || file_write(join(path, t->work, name), bytes, size) != 0)
    trial_fail(t, "%s cannot be copied", from);
  free(bytes);
}

/* The file itself, or a link to it. */
static const char *put_link(trial *t, const char *file) {
  static const char *const link_name = "another.name";
  char target[TORTURE_PATH], path[TORTURE_PATH];
  join(target, t->work, file);
  join(path, t->work, link_name);
  const size_t how = draw_below(t, 3);
  if (how == 0) return file;
  if ((how == 1 ? symlink(file, path) : link(target, path)) != 0)
    trial_fail(t, "%s cannot be linked", file);
  return link_name;
}

void family_onto(trial *t) {
  const size_t k = draw_case(t, &onto_cases[0].name, sizeof *onto_cases, N_ONTO);
  if (k == SIZE_MAX) return;
  const onto_case *c = &onto_cases[k];
  put_copy(t, "one.yaml", RECIPE);
  put_copy(t, "inputs/full.db", STUDY);
  const char *onto = put_link(t, c->file);
  job j = words_job(c->words);
  for (size_t i = 0; j.words[i] != NULL; ++i)
    if (strcmp(j.words[i], ONTO) == 0) j.words[i] = onto;
  snapshot old = snapshot_take(t->work);
  outcome o = {0};
  if (trial_good(t)) o = job_run(t, &j);
  snapshot now = snapshot_take(t->work);
  if (trial_good(t)) outcome_decent(t, &o, c->name);
  if (o.code == 0) trial_fail(t, "%s: written onto %s", c->name, onto);
  if (now.n != old.n) trial_fail(t, "%s: leaves %zu files of %zu", c->name, now.n, old.n);
  for (size_t i = 0; i < old.n && trial_good(t); ++i) {
    const file_copy *was = &old.files[i], *is = snapshot_find(&now, was->name);
    if (is == NULL || is->size != was->size || memcmp(is->bytes, was->bytes, is->size) != 0)
      trial_fail(t, "%s: %s has changed", c->name, was->name);
  }
  snapshot_fini(&old);
  snapshot_fini(&now);
  outcome_fini(&o);
}
