/* The file logger of verl (`trainer.logger` with `file`): one line {"step": 1, "data": {…}} for
 * each step. verl 0.9.1, verl/utils/tracking.py, class FileLogger. It writes with orjson, which
 * replaces NaN and infinities by null. */
#include "analysis/import/log.h"

#include <string.h>

static const char *const verl_keys[] = {"step", "data"};

static gl_status recognise_verl(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  const log_keys k = log_keys_of(f, verl_keys, 2);
  *is = k.is_object && k.found == 3 && k.n_others == 0;
  return GL_OK;
}

static void read_verl_data(log_builder *b, json_reader *r, double step) {
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    char metric[IMPORT_MOST_NAME + 2];
    if (r->word_size >= sizeof metric) {
      json_fail(r, "the name of a metric is longer than 1000 bytes");
      return;
    }
    memcpy(metric, r->word, r->word_size + 1);
    log_json(b, r, metric, step);
  }
}

static gl_status read_verl_line(void *context, json_reader *r, size_t line) {
  log_builder *b = context;
  bool has_step = false, has_data = false;
  double step = 0;
  (void)line;
  json_enter(r, '{');
  while (b->status == GL_OK && json_member(r)) {
    if (strcmp(r->word, "step") == 0) {
      step = log_step(r);
      has_step = true;
    } else if (strcmp(r->word, "data") == 0 && has_step) {
      read_verl_data(b, r, step);
      has_data = true;
    } else {
      json_fail(r,
                "the file logger of verl 0.9 writes \"step\" and then \"data\", and here is "
                "'%.60s'; a newer verl may have renamed it: --log-format json_lines reads the "
                "file as plain JSON Lines",
                r->word);
    }
  }
  if (!has_data) json_fail(r, "this line has no \"step\" with \"data\"; the log is damaged");
  return b->status;
}

static gl_status read_verl(series_table **out, const import_file *f, gl_error *err) {
  log_builder b;
  log_begin(&b, f, err);
  b.null_is_nan = true;
  return log_read(&b, read_verl_line, &b, out);
}

const import_format format_verl = {.about = "verl's file logger (trainer.logger: file)",
                                   .recognise = recognise_verl,
                                   .series = read_verl};
