/* Prints a command's JSON answer, and the simulated clock's summary as JSON or text. */
#include "experiments/base/print_json.h"

#include "experiments/base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- making documents --- */

static cJSON *there(cJSON *made) {
  return must_have(made, "the JSON answer");
}

cJSON *json_new(void) {
  return there(cJSON_CreateObject());
}

void json_place(cJSON *to, const char *key, cJSON *tree) {
  const cJSON_bool placed = key != NULL ? cJSON_AddItemToObject(to, key, there(tree))
                                        : cJSON_AddItemToArray(to, there(tree));
  if (!placed) must_succeed(false, "the JSON answer");
}

cJSON *json_object(cJSON *to, const char *key) {
  cJSON *object = json_new();
  json_place(to, key, object);
  return object;
}

cJSON *json_list(cJSON *to, const char *key) {
  cJSON *list = cJSON_CreateArray();
  json_place(to, key, list);
  return list;
}

void json_raw(cJSON *to, const char *key, const char *text) {
  json_place(to, key, cJSON_CreateRaw(text));
}

void json_numbers(cJSON *to, const char *key, const double *values, size_t n) {
  (void)there(json_add_numbers(to, key, values, n));
}

void json_number(cJSON *to, const char *key, double value) {
  (void)there(json_add_number(to, key, value));
}

void json_put(cJSON *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  for (const char *at = format; *at != '\0';) {
    char name[64];
    at += strspn(at, ", ");
    const size_t length = strcspn(at, " %");
    assert(length < sizeof name);
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    const char *key = length > 0 ? name : NULL, *text;
    at += length + strspn(at + length, " %");
    switch (*at++) {
    case 's':
      text = va_arg(list, const char *);
      if (text != NULL)
        (void)there(json_add_string(to, key, text));
      else
        json_place(to, key, cJSON_CreateNull());
      break;
    case 'z':
      json_number(to, key, (double)va_arg(list, size_t));
      ++at; /* zu */
      break;
    case 'd':
      json_number(to, key, va_arg(list, int));
      break;
    case 'g':
      json_number(to, key, va_arg(list, double));
      break;
    case 'i':
      json_place(to, key, cJSON_CreateBool(va_arg(list, int)));
      break;
    default:
      assert(0);
    }
  }
  va_end(list);
}

/* --- printing them --- */

gl_status report_json(cJSON *document, gl_error *err) {
  char *text = document != NULL ? cJSON_Print(document) : NULL;
  cJSON_Delete(document);
  if (text == NULL) return gl_fail_memory(err, "the JSON answer");
  puts(text);
  free(text);
  return GL_OK;
}

gl_status report_json_if(int made, cJSON *document, gl_error *err) {
  if (made) return report_json(document, err);
  cJSON_Delete(document);
  return report_json(NULL, err);
}

gl_status report_table(table *t, table_form form, bool is_json, gl_error *err) {
  gl_status status = table_write(t, is_json ? TABLE_AS_JSON : form, stdout, err);
  table_free(t);
  return status;
}

void report_clock_json(cJSON *to, const clock_record *clock, const uint64_t *histogram, size_t n) {
  cJSON *staleness = json_object(to, "staleness");
  json_put(staleness, "mean %g, max %g, p50 %g, p95 %g", clock->staleness_mean,
           clock->staleness_max, clock->staleness_p50, clock->staleness_p95);
  cJSON *bars = json_list(staleness, "histogram");
  for (size_t i = 0; i < n; ++i) json_put(bars, "%g", (double)histogram[i]);
  json_put(to, "learner_utilisation %g, sampler_utilisation %g, batches_generated %g",
           clock->learner_utilisation, clock->sampler_utilisation, clock->batches_generated);
  json_put(to, "batches_trained %g, batches_dropped %g, batches_lost %g, retransmissions %g",
           clock->batches_trained, clock->batches_dropped, clock->batches_lost,
           clock->retransmissions);
  json_put(to, "samples_per_s %g, bytes_up %g, bytes_down %g, simulated_s %g", clock->samples_per_s,
           clock->bytes_up, clock->bytes_down, clock->simulated_s);
}

void report_clock_text(const clock_record *clock, size_t updates) {
  printf("  staleness            mean %.4g, median %.4g, 95 %% %.4g, largest %.4g\n",
         clock->staleness_mean, clock->staleness_p50, clock->staleness_p95, clock->staleness_max);
  printf("  simulated time       %.6g s for %zu updates\n", clock->simulated_s, updates);
  printf("  utilisation          learner %.1f %%, samplers %.1f %%\n",
         100 * clock->learner_utilisation, 100 * clock->sampler_utilisation);
  printf("  batches              %.0f generated, %.0f trained, %.0f dropped, %.0f lost\n",
         clock->batches_generated, clock->batches_trained, clock->batches_dropped,
         clock->batches_lost);
  printf("  samples              %.4g per second\n", clock->samples_per_s);
  printf("  network              %.4g bytes up, %.4g bytes down, %.0f retransmissions\n",
         clock->bytes_up, clock->bytes_down, clock->retransmissions);
}
