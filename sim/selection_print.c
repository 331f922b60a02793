/* The fates of units as JSON and as tables. */
#include "sim/selection_print.h"

#include "core/base/json.h"

#include <inttypes.h>
#include <math.h>

/* All units that were begun. */
static unit_counts drawn_of(const schedule *s) {
  unit_counts all = {0};
  for (int f = 0; f < FATES; ++f) {
    const unit_counts *of = &s->fate[f];
    all.units += of->units;
    all.tokens += of->tokens;
    all.longest += of->longest;
    for (size_t k = 0; k < LENGTH_CLASSES; ++k) all.by_length[k] += of->by_length[k];
    for (size_t k = 0; k < PROMPT_CLASSES; ++k) all.by_prompt[k] += of->by_prompt[k];
  }
  return all;
}

static double mean(double sum, uint64_t n) {
  return n > 0 && sum > 0 ? sum / (double)n : NAN;
}

static double share(uint64_t part, uint64_t of) {
  return of > 0 ? (double)part / (double)of : NAN;
}

static int has_prompts(const unit_counts *drawn) {
  uint64_t n = 0;
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) n += drawn->by_prompt[k];
  return n > 0;
}

/* JSON --- */

static int add_fate(cJSON *to, const char *name, const unit_counts *of, uint64_t drawn) {
  cJSON *row = cJSON_CreateObject();
  if (row == NULL || !cJSON_AddItemToArray(to, row)) return 0;
  return json_add_string(row, "fate", name) != NULL &&
         json_add_number(row, "units", (double)of->units) != NULL &&
         json_add_number(row, "share", share(of->units, drawn)) != NULL &&
         json_add_number(row, "mean_tokens", mean(of->tokens, of->units)) != NULL &&
         json_add_number(row, "mean_longest", mean(of->longest, of->units)) != NULL;
}

static const uint64_t *classes_of(const unit_counts *of, int by_prompt) {
  return by_prompt ? of->by_prompt : of->by_length;
}

static int add_class(cJSON *to, const schedule *s, const unit_counts *drawn, size_t k,
                     int by_prompt) {
  cJSON *row = cJSON_CreateObject();
  if (row == NULL || !cJSON_AddItemToArray(to, row)) return 0;
  int ok = by_prompt ? json_add_number(row, "quarter", (double)(k + 1)) != NULL
                     : json_add_number(row, "from", ldexp(1, (int)k)) != NULL &&
                           json_add_number(row, "to", ldexp(1, (int)k + 1) - 1) != NULL;
  ok = ok && json_add_number(row, "drawn", (double)classes_of(drawn, by_prompt)[k]) != NULL;
  for (int f = 0; f < FATES && ok; ++f)
    ok = json_add_number(row, unit_fate_name((unit_fate)f),
                         (double)classes_of(&s->fate[f], by_prompt)[k]) != NULL;
  return ok;
}

static int add_classes(cJSON *to, const schedule *s, const unit_counts *drawn, int by_prompt) {
  cJSON *rows = cJSON_AddArrayToObject(to, by_prompt ? "by_prompt" : "by_length");
  int ok = rows != NULL;
  for (size_t k = 0; k < (by_prompt ? PROMPT_CLASSES : LENGTH_CLASSES) && ok; ++k)
    if (classes_of(drawn, by_prompt)[k] > 0) ok = add_class(rows, s, drawn, k, by_prompt);
  return ok;
}

int selection_to_json(cJSON *to, const schedule *s, const cluster_spec *spec) {
  const unit_counts drawn = drawn_of(s);
  cJSON *fates = cJSON_AddArrayToObject(to, "fates");
  int ok = fates != NULL && json_add_string(to, "unit", cluster_unit_names(spec)) != NULL &&
           add_fate(fates, "drawn", &drawn, drawn.units);
  for (int f = 0; f < FATES && ok; ++f)
    ok = add_fate(fates, unit_fate_name((unit_fate)f), &s->fate[f], drawn.units);
  ok = ok &&
       json_add_number(to, "mean_weight", mean(s->weight_sum, s->fate[FATE_TRAINED].units)) != NULL;
  ok = ok && add_classes(to, s, &drawn, 0);
  return ok && (!has_prompts(&drawn) || add_classes(to, s, &drawn, 1));
}

/* --- tables --- */

static void print_fate(const char *name, const unit_counts *of, uint64_t drawn, FILE *to) {
  fprintf(to, "%-20s %10" PRIu64 "  %6.2f %%", name, of->units, 100 * share(of->units, drawn));
  if (of->tokens > 0 && of->units > 0)
    fprintf(to, "  %10.1f  %10.1f", mean(of->tokens, of->units), mean(of->longest, of->units));
  fputc('\n', to);
}

static void print_classes(const schedule *s, const unit_counts *drawn, int by_prompt, FILE *to) {
  fprintf(to, "\n%-20s %10s", by_prompt ? "quarter of prompts" : "longest response", "drawn");
  for (int f = 0; f < FATES; ++f) fprintf(to, " %8s", unit_fate_name((unit_fate)f));
  fputc('\n', to);
  for (size_t k = 0; k < (by_prompt ? PROMPT_CLASSES : LENGTH_CLASSES); ++k) {
    const uint64_t n = classes_of(drawn, by_prompt)[k];
    char name[40];
    if (n == 0) continue;
    if (by_prompt)
      snprintf(name, sizeof name, "%zu%s", k + 1,
               k == 0                    ? " (fastest)"
               : k + 1 == PROMPT_CLASSES ? " (slowest)"
                                         : "");
    else
      snprintf(name, sizeof name, "%.0f to %.0f tokens", ldexp(1, (int)k),
               ldexp(1, (int)k + 1) - 1);
    fprintf(to, "%-20s %10" PRIu64, name, n);
    for (int f = 0; f < FATES; ++f)
      fprintf(to, " %6.2f %%", 100 * share(classes_of(&s->fate[f], by_prompt)[k], n));
    fputc('\n', to);
  }
}

void selection_print_table(const schedule *s, const cluster_spec *spec, FILE *to) {
  const unit_counts drawn = drawn_of(s);
  fprintf(to, "\n%-20s %10s  %8s", cluster_unit_names(spec), "number", "of drawn");
  if (drawn.tokens > 0) fprintf(to, "  %10s  %10s", "tokens", "longest");
  fputc('\n', to);
  print_fate("drawn", &drawn, drawn.units, to);
  for (int f = 0; f < FATES; ++f)
    print_fate(unit_fate_name((unit_fate)f), &s->fate[f], drawn.units, to);
  if (s->weight_sum < (double)s->fate[FATE_TRAINED].units)
    fprintf(to, "mean weight of trained %s: %.4f\n", cluster_unit_names(spec),
            mean(s->weight_sum, s->fate[FATE_TRAINED].units));
  if (drawn.tokens > 0) print_classes(s, &drawn, 0, to);
  if (has_prompts(&drawn)) print_classes(s, &drawn, 1, to);
}
