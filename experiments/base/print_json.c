/* Prints a command's JSON answer, and the simulated clock's summary as JSON or text. */
#include "experiments/base/print_json.h"

#include <stdio.h>
#include <stdlib.h>

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

int report_clock_json(cJSON *to, const clock_record *clock, const uint64_t *histogram, size_t n) {
  const struct {
    const char *key;
    double value;
  } numbers[] = {{"learner_utilisation", clock->learner_utilisation},
                 {"sampler_utilisation", clock->sampler_utilisation},
                 {"batches_generated", clock->batches_generated},
                 {"batches_trained", clock->batches_trained},
                 {"batches_dropped", clock->batches_dropped},
                 {"batches_lost", clock->batches_lost},
                 {"retransmissions", clock->retransmissions},
                 {"samples_per_s", clock->samples_per_s},
                 {"bytes_up", clock->bytes_up},
                 {"bytes_down", clock->bytes_down},
                 {"simulated_s", clock->simulated_s}};
  cJSON *staleness = cJSON_AddObjectToObject(to, "staleness");
  int ok = staleness != NULL && json_add_number(staleness, "mean", clock->staleness_mean) != NULL &&
           json_add_number(staleness, "max", clock->staleness_max) != NULL &&
           json_add_number(staleness, "p50", clock->staleness_p50) != NULL &&
           json_add_number(staleness, "p95", clock->staleness_p95) != NULL;
  cJSON *bars = ok ? cJSON_AddArrayToObject(staleness, "histogram") : NULL;
  ok = bars != NULL;
  for (size_t i = 0; i < n && ok; ++i)
    ok = json_add_number(bars, NULL, (double)histogram[i]) != NULL;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && ok; ++i)
    ok = json_add_number(to, numbers[i].key, numbers[i].value) != NULL;
  return ok;
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
