/* Prints what a sweep would do: its axes and counts, and the time it may take. */
#include "experiments/cli/tell_survey.h"

#include "core/base/shown.h"
#include "experiments/base/print_json.h"
#include "experiments/base/seconds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- in words --- */

/* A design's values are maps of several fields, and thousands of them fill a terminal. */
enum { VALUE_COLUMNS = 120 };

static gl_status print_axes(const sweep_grid *grid, const char *title, gl_error *err) {
  if (grid->n_axes > 0) printf("%s\n", title);
  for (size_t i = 0; i < grid->n_axes; ++i) {
    char *values = cfg_canonical(grid->axes[i].values);
    if (values == NULL) return gl_fail_memory(err, "an axis");
    printf("  %-20s ", shown(grid->axes[i].path).text);
    shown_text cut;
    shown_cut(values, VALUE_COLUMNS, &cut);
    printf("%s", cut.text);
    if (shown_width(values) > VALUE_COLUMNS)
      printf(" (%zu values)", cfg_size(grid->axes[i].values));
    putchar('\n');
    free(values);
  }
  return GL_OK;
}

static void print_counts(const sweep_survey *v) {
  if (v->tuning_runs > 0)
    printf("tuning runs            %zu, of which %zu are in the file and %zu to be made\n",
           v->tuning_runs, v->tuning_known, v->tuning_runs - v->tuning_known);
  if (v->rates_open)
    printf("cells                  %zu; which of them are in the file is known when the rates are "
           "chosen\n",
           v->cells);
  else
    printf("cells                  %zu, of which %zu are in the file and %zu to be run\n", v->cells,
           v->known, v->cells - v->known);
}

static void print_time(const sweep_survey *v, size_t workers) {
  char wait[SECONDS_TEXT_SIZE], work[SECONDS_TEXT_SIZE];
  if (v->known == v->cells && v->tuning_known == v->tuning_runs)
    puts("time                   nothing is left to do");
  else if (isnan(v->wait_s))
    printf("time                   unknown: no run of this study has finished yet\n");
  else
    printf("time                   about %s with %zu worker%s (%s of work), as %zu finished run%s "
           "took\n",
           seconds_text(v->wait_s, wait), workers, workers == 1 ? "" : "s",
           seconds_text(v->work_s, work), v->learned_from, v->learned_from == 1 ? "" : "s");
}

static void survey_print_memory(const sweep_survey *v, size_t workers) {
  const double mib = 1024.0 * 1024, gib = 1024 * mib, one = (double)v->peak_bytes;
  const double all = one * (double)workers;
  if (v->peak_bytes == 0)
    printf("memory                 unknown: no run of this study has finished yet\n");
  else
    printf("memory                 up to %.3g %s with %zu worker%s, as the largest finished run "
           "took\n",
           all < gib ? all / mib : all / gib, all < gib ? "MiB" : "GiB", workers,
           workers == 1 ? "" : "s");
}

static gl_status survey_print_words(const sweep_survey *v, const sweep_options *o, gl_error *err) {
  printf("%s%s%s: nothing is run or written\n", shown(v->study).text, o->file != NULL ? " -> " : "",
         shown(o->file).text);
  gl_status status = print_axes(&v->grid, "axes of the sweep, the first slowest", err);
  if (status == GL_OK) status = print_axes(&v->tuning, "axes of the tuning runs", err);
  if (status != GL_OK) return status;
  print_counts(v);
  print_time(v, o->workers);
  survey_print_memory(v, o->workers);
  return GL_OK;
}

/* --- as JSON --- */

/* [{"path": …, "values": […]}] */
static int add_axes(cJSON *to, const char *key, const sweep_grid *grid) {
  cJSON *list = cJSON_AddArrayToObject(to, key);
  int ok = list != NULL;
  for (size_t i = 0; i < grid->n_axes && ok; ++i) {
    cJSON *axis = cJSON_CreateObject();
    char *values = cfg_canonical(grid->axes[i].values);
    ok = axis != NULL && cJSON_AddItemToArray(list, axis) && values != NULL &&
         json_add_string(axis, "path", grid->axes[i].path) != NULL &&
         cJSON_AddRawToObject(axis, "values", values) != NULL;
    free(values);
  }
  return ok;
}

static gl_status survey_print_document(const sweep_survey *v, const sweep_options *o,
                                       gl_error *err) {
  cJSON *document = cJSON_CreateObject();
  const struct {
    const char *key;
    double value; /* NaN: null */
  } numbers[] = {{"tuning_runs", (double)v->tuning_runs},
                 {"tuning_already_known", (double)v->tuning_known},
                 {"cells", (double)v->cells},
                 {"already_finished", v->rates_open ? (double)NAN : (double)v->known},
                 {"workers", (double)o->workers},
                 {"work_s", v->work_s},
                 {"seconds_left", v->wait_s},
                 {"learned_from_runs", (double)v->learned_from},
                 {"peak_bytes_of_a_run", v->peak_bytes > 0 ? (double)v->peak_bytes : (double)NAN}};
  int ok = document != NULL && json_add_string(document, "study", v->study) != NULL &&
           (o->file == NULL ? cJSON_AddNullToObject(document, "file")
                            : json_add_string(document, "file", o->file)) != NULL &&
           add_axes(document, "axes", &v->grid) && add_axes(document, "tuning_axes", &v->tuning);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && ok; ++i)
    ok = json_add_number(document, numbers[i].key, numbers[i].value) != NULL;
  return report_json_if(ok, document, err);
}

gl_status tell_survey(const sweep_survey *v, const sweep_options *options, int json,
                      gl_error *err) {
  return json ? survey_print_document(v, options, err) : survey_print_words(v, options, err);
}
