/* The FileMonitor of prime-rl (on by default: metrics.jsonl in the folder of the run): lines
 * {"step": 1, "time": 1789492030.1, "metric": 0.5, …}, several for each step, to which trainer and
 * orchestrator both append. prime-rl 0.8.0, src/prime_rl/monitors/file.py. Values that are not
 * finite are left out by the writer. The series time_s is the time since the first line. */
#include "analysis/import/log.h"

#include <math.h>
#include <string.h>

/* A time of the epoch; other programs' logs may have a column "time" of seconds since the start. */
static const double EARLIEST_TIME = 1e9;

typedef struct prime_rl_reader {
  log_builder b;
  double first_time;
} prime_rl_reader;

static const char *const prime_rl_keys[] = {"step", "time"};

static gl_status recognise_prime_rl(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, prime_rl_keys, 2);
  *is = k.is_object && k.found == 3 && k.n_others > 0 && strcmp(k.first[0], "step") == 0 &&
        strcmp(k.first[1], "time") == 0 && k.second >= EARLIEST_TIME;
  return GL_OK;
}

static void read_prime_rl_time(prime_rl_reader *p, json_reader *r, double step) {
  const double time = json_real(r);
  if (r->status != GL_OK) return;
  if (!(time >= EARLIEST_TIME)) {
    json_fail(r, "\"time\" is no time of the epoch, which prime-rl 0.8 writes");
    return;
  }
  if (isnan(p->first_time)) p->first_time = time;
  log_time(&p->b, step, time - p->first_time);
}

static gl_status read_prime_rl_line(void *context, json_reader *r, size_t line) {
  prime_rl_reader *p = context;
  bool has_step = false;
  double step = 0;
  (void)line;
  json_enter(r, '{');
  while (p->b.status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size >= sizeof metric) {
      json_fail(r, "the name of a metric is longer than 1000 bytes");
    } else if (strcmp(r->word, "step") == 0) {
      step = log_step(r);
      has_step = true;
    } else if (!has_step) {
      json_fail(r,
                "the FileMonitor of prime-rl 0.8 writes \"step\" first, and here is '%.60s'; a "
                "newer prime-rl may have renamed it: --log-format json_lines reads the file as "
                "plain JSON Lines",
                r->word);
    } else if (strcmp(r->word, "time") == 0) {
      read_prime_rl_time(p, r, step);
    } else {
      memcpy(metric, r->word, r->word_size + 1);
      log_json(&p->b, r, metric, step);
    }
  }
  if (!has_step) json_fail(r, "this line has no \"step\"; the log is damaged");
  return p->b.status;
}

static gl_status read_prime_rl(series_table **out, const import_file *f, gl_error *err) {
  prime_rl_reader p = {.first_time = NAN};
  log_begin(&p.b, f, err);
  return log_read(&p.b, read_prime_rl_line, &p, out);
}

const import_format format_prime_rl = {.about = "prime-rl's FileMonitor (metrics.jsonl)",
                                       .fixed_name = "metrics.jsonl",
                                       .recognise = recognise_prime_rl,
                                       .series = read_prime_rl};
