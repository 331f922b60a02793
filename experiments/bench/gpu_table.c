/* The answer of the GPU benchmark: every number with its share of the limit it has, its peer and
 * its aim, as JSON; and the table, which is made of the JSON. */
#include "experiments/bench/gpu.h"

#include <math.h>
#include <string.h>

/* What is aimed at, by the first word of what is measured. */
static const struct {
  const char *what;
  double share, ratio;
} aims[] = {{"train", 0.5, 1.2}, {"decode", NAN, 5}, {"steps", 0.6, NAN}};

static const char *text_of(const cJSON *line, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(line, key));
  return text != NULL ? text : "";
}

/* Numbers are written by json_add_number as raw text. */
static double number_of(const cJSON *line, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(line, key);
  double value = NAN;
  if (cJSON_IsNumber(item)) return item->valuedouble;
  if (cJSON_IsRaw(item) && sscanf(item->valuestring, "%lf", &value) != 1) value = NAN;
  return value;
}

static const cJSON *line_of(const cJSON *lines, const char *key) {
  const cJSON *line;
  cJSON_ArrayForEach(line, lines) if (strcmp(text_of(line, "key"), key) == 0) return line;
  return NULL;
}

/* Whether the line's `what` ("steps.64") begins with this word. The key would not tell it: names of
 * shapes have dots. */
static int is_about(const cJSON *line, const char *word) {
  const char *what = text_of(line, "what");
  const size_t n = strcspn(what, ".");
  return n == strlen(word) && strncmp(what, word, n) == 0;
}

/* --- comparison ---------------------------------------------------------------------------------
 */

/* What one of the line's unit takes at least: seconds of products and copies at measured rates; in
 * the unit "s" that is the limit, else it is the inverse. NaN without a limit. */
static double limit_of(const cJSON *line, double product, double copy) {
  const double flops = number_of(line, "flops"), bytes = number_of(line, "bytes");
  const double seconds = (flops > 0 ? flops / product : 0) + (bytes > 0 ? bytes / copy : 0);
  if (seconds == 0) return NAN;
  return strcmp(text_of(line, "unit"), "s") == 0 ? seconds : 1 / seconds;
}

/* Adds what can be compared to a line of ours. */
static int compare_line(cJSON *line, const cJSON *peers, double product, double copy) {
  const char *key = text_of(line, "key");
  const cJSON *peer = line_of(peers, key);
  const int falls = strcmp(text_of(line, "unit"), "s") == 0;
  const double value = number_of(line, "value"), other = number_of(peer, "value");
  const double limit = limit_of(line, product, copy);
  double share_aim = NAN, ratio_aim = NAN;
  for (size_t i = 0; i < sizeof aims / sizeof *aims; ++i)
    if (is_about(line, aims[i].what)) {
      share_aim = aims[i].share;
      ratio_aim = aims[i].ratio;
    }
  const double at_most = number_of(line, "at_most"), at_least = number_of(line, "at_least");
  if (at_most > 0) json_add_string(line, "held", value <= at_most ? "pass" : "FAIL");
  if (at_least > 0) json_add_string(line, "held", value >= at_least ? "pass" : "FAIL");
  json_add_number(line, "limit", limit);
  json_add_number(line, "share", falls ? limit / value : value / limit);
  json_add_number(line, "share_aim", share_aim);
  json_add_number(line, "peer", other);
  json_add_number(line, "peer_low", number_of(peer, "low"));
  json_add_number(line, "peer_high", number_of(peer, "high"));
  json_add_number(line, "ratio", value / other);
  json_add_number(line, "ratio_aim", ratio_aim);
  const char *why = text_of(peer, "missing");
  return json_add_string(line, "peer_note", why[0] != '\0' ? why : text_of(peer, "note")) != NULL;
}

/* A line for what only a peer measured. */
static int add_peer_line(cJSON *rows, const cJSON *peer) {
  cJSON *line = cJSON_CreateObject();
  cJSON_AddItemToArray(rows, line);
  return json_add_string(line, "key", text_of(peer, "key")) != NULL &&
         json_add_string(line, "unit", text_of(peer, "unit")) != NULL;
}

int gpu_compare(cJSON *bench) {
  cJSON *rows = cJSON_DetachItemFromObject(bench, "ours"), *line;
  cJSON *peers = cJSON_DetachItemFromObject(bench, "peers");
  const double product = 1e12 * number_of(line_of(rows, "limit.product"), "value");
  const double copy = 1e9 * number_of(line_of(rows, "limit.copy"), "value");
  int made = rows != NULL && cJSON_AddItemToObject(bench, "rows", rows);
  cJSON_ArrayForEach(line, peers) {
    if (line_of(rows, text_of(line, "key")) == NULL) made = made && add_peer_line(rows, line);
  }
  cJSON_ArrayForEach(line, rows) made = made && compare_line(line, peers, product, copy);
  cJSON_Delete(peers);
  return made;
}

/* --- table --------------------------------------------------------------------------------------
 */

static void print_number(const char *form, const char *gap, double value) {
  if (isnan(value))
    printf("%s", gap);
  else
    printf(form, value);
}

static void print_line(const cJSON *line) {
  const char *missing = text_of(line, "missing"), *peer = text_of(line, "peer_note");
  const double bound = number_of(line, number_of(line, "at_most") > 0 ? "at_most" : "at_least");
  char spread[32] = "";
  if (bound > 0)
    snprintf(spread, sizeof spread, "%s %g: %s",
             number_of(line, "at_most") > 0 ? "<=" : ">=", bound, text_of(line, "held"));
  else if (number_of(line, "n") > 1)
    snprintf(spread, sizeof spread, "%.4g..%.4g", number_of(line, "low"), number_of(line, "high"));
  printf("%-20s %-9s ", text_of(line, "key"), text_of(line, "unit"));
  print_number("%10.5g ", "         - ", number_of(line, "value"));
  printf("%-17s ", spread);
  print_number("%6.2f ", "       ", number_of(line, "share"));
  print_number("%4.2f ", "     ", number_of(line, "share_aim"));
  print_number("%10.5g ", "           ", number_of(line, "peer"));
  print_number("%6.2f ", "       ", number_of(line, "ratio"));
  print_number("%4.1f ", "     ", number_of(line, "ratio_aim"));
  printf(" %s%s%s%s\n", missing[0] != '\0' ? missing : text_of(line, "note"),
         peer[0] != '\0' ? " peer: " : "", peer, "");
}

static void print_operations(const cJSON *operations) {
  const cJSON *line;
  const char *last = "";
  cJSON_ArrayForEach(line, operations) {
    if (strcmp(last, text_of(line, "key")) != 0)
      printf("\n%-24s %8s %10s %8s %8s %6s\n", last = text_of(line, "key"), "calls", "ms",
             "TFLOP/s", "GB/s", "share");
    printf("  %-22s %8.0f %10.3f ", text_of(line, "operation"), number_of(line, "calls"),
           number_of(line, "ms"));
    print_number("%8.3g ", "       - ", number_of(line, "tflops"));
    print_number("%8.4g ", "       - ", number_of(line, "gbs"));
    printf("%6.3f\n", number_of(line, "share"));
  }
}

void gpu_print(const cJSON *bench) {
  const cJSON *line;
  printf("%-20s %-9s %10s %-17s %6s %4s %10s %6s %4s\n", "", "", "median", "spread", "limit", "aim",
         "peer", "ratio", "aim");
  cJSON_ArrayForEach(line, cJSON_GetObjectItem(bench, "rows")) print_line(line);
  print_operations(cJSON_GetObjectItem(bench, "operations"));
}

gl_status gpu_check(const cJSON *bench, gl_error *err) {
  const cJSON *line;
  cJSON_ArrayForEach(line, cJSON_GetObjectItem(bench, "rows")) {
    const char *key = text_of(line, "key"), *missing = text_of(line, "missing");
    if (missing[0] != '\0' && !is_about(line, "steps"))
      return gl_fail(err, GL_EIO, "%s was not measured: %s", key, missing);
    if (strcmp(text_of(line, "held"), "FAIL") == 0)
      return gl_fail(err, GL_EIO, "%s is %.6g, outside of its bound", key,
                     number_of(line, "value"));
  }
  return GL_OK;
}
