/* gepolab fit: distributions of a cluster's delays, times and lengths from logs of measured ones.
 */
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/clock/fit_log.h"
#include "sim/delay.h"

#include "core/base/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fit_request {
  fit_limits limits[FIT_FIELDS];
  const char *const *files;
  size_t n_files;
  double factor;
  int json;
} fit_request;

/* --- the command line --- */

static gl_status read_limit(double *to, const char *option, const char *text, int none_allowed,
                            const char *value, gl_error *err) {
  if (none_allowed && strcmp(value, "none") == 0) {
    *to = NAN;
    return GL_OK;
  }
  if (csv_number(value, to) && *to > 0 && *to <= 1e15) return GL_OK;
  return gl_fail(err, GL_EINPUT, "%s %s: a limit is a number above 0%s, in seconds or tokens",
                 option, text, none_allowed ? ", or none" : "");
}

static gl_status fit_read_limits(fit_request *q, const args_list *least, const args_list *most,
                                 int censored, gl_error *err) {
  gl_status status = GL_OK;
  fit_field f = FIT_FIELD_DELAY;
  const char *value = NULL;
  for (int k = 0; k < FIT_FIELDS; ++k) q->limits[k] = (fit_limits){0, INFINITY, censored};
  for (size_t i = 0; i < least->n && status == GL_OK; ++i) {
    status = fit_field_of(&f, &value, "--at-least", least->item[i], err);
    if (status == GL_OK)
      status = read_limit(&q->limits[f].low, "--at-least", least->item[i], 0, value, err);
  }
  for (size_t i = 0; i < most->n && status == GL_OK; ++i) {
    status = fit_field_of(&f, &value, "--at-most", most->item[i], err);
    if (status == GL_OK)
      status = read_limit(&q->limits[f].high, "--at-most", most->item[i], 1, value, err);
  }
  return status;
}

/* --- the report --- */

/* Returns the recipe's line of a field: "delay: {distribution: lognormal, mu: 5.82, sigma: 0.868}".
 * Numbers have enough digits to be read back exactly. The caller frees the line. */
static char *recipe_line(fit_field f, const delay_fit *of, const fit_request *q,
                         const char *heading) {
  char *text = NULL;
  size_t size = 0;
  char number[4][NUMBER_TEXT_SIZE];
  FILE *to = must_have(open_memstream(&text, &size), "a recipe's line");
  fprintf(to, "%s: ", fit_field_name(f));
  if (of->is_constant) {
    fputs(number_text(of->median, number[0]), to);
  } else if (of->chosen == FIT_FAMILIES) {
    cJSON *file = cJSON_CreateString(q->files[0]), *column = cJSON_CreateString(heading);
    char *file_text = must_have(cJSON_PrintUnformatted(file), "a recipe's line"),
         *column_text = must_have(cJSON_PrintUnformatted(column), "a recipe's line");
    fprintf(to, "{distribution: empirical, file: %s, column: %s", file_text, column_text);
    if (fit_field_is_time(f) && q->factor != 1)
      fprintf(to, ", scale: %s", number_text(q->factor, number[0]));
    fputc('}', to);
    cJSON_free(file_text);
    cJSON_free(column_text);
    cJSON_Delete(file);
    cJSON_Delete(column);
  } else {
    const fit_row *r = &of->row[of->chosen];
    fprintf(to, "{distribution: %s", delay_dist_about(r->dist.kind)->name);
    for (size_t k = 0; k < r->n_parameters; ++k)
      fprintf(to, ", %s: %s", r->name[k], number_text(r->value[k], number[k]));
    if (r->dist.clamp_lo > 0 || isfinite(r->dist.clamp_hi))
      fprintf(to, ", clamp: [%s, %s]", number_text(r->dist.clamp_lo, number[2]),
              number_text(fmin(r->dist.clamp_hi, 1e15), number[3]));
    fputc('}', to);
  }
  must_succeed(fclose(to) == 0, "a recipe's line");
  return text;
}

/* Adds a row to the table of fitted distributions. */
static void fit_put_row(table *t, const fit_row *r, const char *name, bool is_chosen) {
  char text[160];
  int n = 0;
  table_row(t);
  table_text(t, name);
  if (r->why_not != NULL) {
    table_rest(t, "%s", r->why_not);
    table_text(t, r->why_not);
    return;
  }
  for (size_t p = 0; p < r->n_parameters; ++p)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%s %.5g ± %.2g", p > 0 ? ", " : "",
                  r->name[p], r->value[p], r->error[p]);
  table_missing(t);
  table *values = table_object(t);
  table_shown(t, "%s", text);
  table *errors = table_object(t);
  for (size_t p = 0; p < r->n_parameters; ++p) {
    table_real(table_field(values, r->name[p]), r->value[p]);
    table_real(table_field(errors, r->name[p]), r->error[p]);
  }
  table_real(t, r->log_likelihood), table_real(t, r->aic), table_real(t, r->distance);
  table_real(t, r->p);
  if (is_chosen) table_rest(t, " chosen");
}

static const char *chosen_name(const delay_fit *of) {
  if (of->is_constant) return "constant";
  return of->chosen == FIT_FAMILIES ? "empirical" : fit_family_name((fit_family)of->chosen);
}

static void put_field(table *to, fit_field f, const delay_fit *of, const char *line) {
  static const table_column columns[] = {
      {"distribution", TABLE_TEXT, .head = "distribution", .width = -20},
      TABLE_KEY("why_not", TABLE_TEXT),
      {"parameters", TABLE_TABLE, .head = "maximum likelihood ± standard error", .width = -42},
      TABLE_KEY("standard_errors", TABLE_TABLE),
      TABLE_KEY("log_likelihood", TABLE_REAL),
      {"aic", TABLE_REAL, .head = "AIC", .format = "%.2f", .width = 12},
      {"ks_distance", TABLE_REAL, .head = "D", .format = "%.4f", .width = 7},
      {"p", TABLE_REAL, .head = "p", .format = "%.3f", .width = 6}};
  table *o = table_object(table_field(to, fit_field_name(f)));
  char below[48] = "", above[48] = "", rounded[48] = "";
  table_put(o, "n %zu, at_least %g, n_at_least %zu, at_most %g, n_at_most %zu", of->n,
            of->limits.low, of->n_below, of->limits.high, of->n_above);
  table_put(o, "least %g, median %g, most %g, resolution %g, n_tested %zu", of->least, of->median,
            of->most, of->resolution, of->n_tested);
  table_put(o, "chosen %s, recipe %s", chosen_name(of), line);
  if (of->n_below > 0)
    snprintf(below, sizeof below, ", %zu at or below %g", of->n_below, of->limits.low);
  if (of->n_above > 0)
    snprintf(above, sizeof above, ", %zu at or above %g", of->n_above, of->limits.high);
  if (of->resolution > 0) snprintf(rounded, sizeof rounded, ", rounded to %g", of->resolution);
  table_line(o, "%s (%s): %zu values, %g to %g, median %g%s%s%s", fit_field_name(f),
             fit_field_about(f), of->n, of->least, of->most, of->median, below, above, rounded);
  if (of->is_constant) {
    table_list(table_field(o, "distributions"));
    table_line(o, "  All values are the same: a constant.");
    return;
  }
  table *t = table_rows(table_field(o, "distributions"), columns, sizeof columns / sizeof *columns);
  table_plain(t, 2);
  for (size_t k = 0; k < FIT_FAMILIES; ++k)
    fit_put_row(t, &of->row[k], fit_family_name((fit_family)k), k == of->chosen);
  if (of->n_tested < of->n) table_line(o, "  D and p are of %zu of the values.", of->n_tested);
  if (of->chosen == FIT_FAMILIES)
    table_line(o, "  The test rejects all distributions (p <= 0.05): the measured values "
                  "themselves are used.");
}

/* Prints the recipe lines. A recipe can read an empirical distribution from one CSV file only; for
 * other logs a note says so. */
static void fit_print_recipe(char *const line[FIT_FIELDS], const delay_fit *fits, size_t n_files) {
  int empirical = 0, others = 0;
  puts("\ncluster:");
  for (int f = 0; f < FIT_FIELDS; ++f) {
    if (line[f] == NULL) continue;
    const int is_of_recipe = fit_field_is_of_recipe((fit_field)f);
    printf("  %s%s\n", is_of_recipe ? "" : "# ", line[f]);
    others |= !is_of_recipe;
    empirical |= is_of_recipe && !fits[f].is_constant && fits[f].chosen == FIT_FAMILIES;
  }
  if (others)
    puts(
        "  # Lines with # are measured times that a recipe has no field for. Decoding at R tokens "
        "per\n  # second, a response of t seconds has R t tokens: of a lognormal response, lengths "
        "have mu + ln R.");
  if (!empirical) return;
  puts("  # An empirical distribution reads one CSV file, found from the recipe's folder: save the "
       "column as "
       "one\n  # where the log is another table.");
  if (n_files > 1) puts("  # Only the first of the logs is named above.");
}

/* --- the whole --- */

static gl_status fit_and_print(fit_log *log, const fit_request *q, gl_error *err) {
  delay_fit *fits = MUST_ARRAY(delay_fit, FIT_FIELDS, "fits");
  char *line[FIT_FIELDS] = {NULL};
  gl_status status = GL_OK;
  for (int f = 0; f < FIT_FIELDS && status == GL_OK; ++f) {
    fit_measured *m = &log->field[f];
    if (m->n == 0) continue;
    if (!fit_field_is_of_recipe((fit_field)f) && m->n < FIT_LEAST_VALUES) {
      fprintf(stderr, "gepolab: note: %s has %zu values, and a fit needs %d\n",
              fit_field_name((fit_field)f), m->n, (int)FIT_LEAST_VALUES);
      continue;
    }
    status =
        fit_values(&fits[f], m->value, m->n, q->limits[f], 1, fit_field_name((fit_field)f), err);
    if (status == GL_OK) line[f] = recipe_line((fit_field)f, &fits[f], q, m->heading);
  }
  table *d = table_document(), *cluster = table_object(table_field(d, "cluster"));
  table_put(d, "error_rate %g, replicates %d", FIT_ERROR_RATE, (int)FIT_REPLICATES);
  for (int f = 0; f < FIT_FIELDS; ++f)
    if (line[f] != NULL) put_field(cluster, (fit_field)f, &fits[f], line[f]);
  if (status == GL_OK)
    status = report_table(d, TABLE_AS_TEXT, q->json, err);
  else
    table_free(d);
  if (status == GL_OK && !q->json) fit_print_recipe(line, fits, q->n_files);
  for (int f = 0; f < FIT_FIELDS; ++f) free(line[f]);
  free(fits);
  return status;
}

static gl_status run_fit(args *a, gl_error *err) {
  args_list columns = {.n = 0}, least = {.n = 0}, most = {.n = 0};
  fit_log_request reading = {.columns = &columns};
  int censored = 0;
  fit_request q = {.json = 0};
  args_option options[] = {
      {"column", 'c', ARGS_EACH, "FIELD=HEADING",
       "the column of delay, data_delay, generation, lengths, request, response, reward or tools",
       &columns},
      {"unit", 'u', ARGS_TEXT, "UNIT",
       "of the times in the logs: s (default), ms, us, min, h; needed where a "
       "column's name ends in another one, as fetch_ms does",
       &reading.time_unit},
      {"at-least", 0, ARGS_EACH, "FIELD=X", "values up to X, in s or tokens, are at a limit",
       &least},
      {"at-most", 0, ARGS_EACH, "FIELD=X", "values from X on are at a limit; none: there is none",
       &most},
      {"censored", 0, ARGS_FLAG, NULL,
       "the limits are the measurement's: distributions are not clamped to them", &censored},
      {"log-format", 0, ARGS_TEXT, "NAME", "of the files (`gepolab list formats`)",
       &reading.format},
      {"group-size", 0, ARGS_COUNT, "N", "of token-level logs: groups are N consecutive responses",
       &reading.group_size},
      {"json", 0, ARGS_FLAG, NULL, "all distributions as JSON", &q.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  fit_log log = {.factor = 1};
  q.files = a->words;
  q.n_files = a->n_words;
  status = fit_read_limits(&q, &least, &most, censored, err);
  if (status == GL_OK) status = fit_log_read(&log, a->words, a->n_words, &reading, err);
  q.factor = log.factor;
  tell_incomplete(log.batches.n_incomplete);
  if (status == GL_OK) status = fit_and_print(&log, &q, err);
  fit_log_fini(&log);
  return status;
}

const command command_fit = {
    .name = "fit",
    .arguments = "LOG…",
    .words = {.input = ARGS_LOGS, .min = 1, .max = 256},
    .summary = "distributions of delays, times and lengths from logs",
    .about =
        "Fits exponential, shifted exponential, lognormal, Weibull, gamma, Pareto and uniform\n"
        "distributions to the columns of logs (CSV, TSV, JSON Lines; all files together) by\n"
        "maximum likelihood, and prints the lines of a recipe's cluster. D is the\n"
        "Kolmogorov-Smirnov distance, p that of a parametric bootstrap of 199 samples.\n"
        "Distributions with p <= 0.05 are rejected, which happens to the true one in 5 % of all\n"
        "logs. Of the others the one with the lowest AIC is chosen; if none is left, the\n"
        "measured values themselves (distribution: empirical). Many values at the\n"
        "largest one are censored by a limit, and need --at-most FIELD=X.\n"
        "\n"
        "Of AReaL's sessions-r*.jsonl and the trajectories of miles' dashboard, and of folders\n"
        "of them, the times of every rollout are fitted: request, response, reward and tools.\n"
        "Of token-level logs, which whatif reads, the trained tokens of each response are "
        "lengths.",
    .examples = "  gepolab fit fetches.csv --column delay=fetch_ms --unit ms\n"
                "  gepolab fit run.jsonl --column lengths=tokens --at-most lengths=8192\n"
                "  gepolab fit a.csv b.csv --at-most delay=1800 --censored --json\n"
                "  gepolab fit dump/dashboard/trajectories",
    .run = run_fit};
