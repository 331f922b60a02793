/* gepolab's own format: a line of JSON for each update, as log_groups of the Python package writes
 * it (experiments/DATA.md, "The log of a run"). */
#include "experiments/tokens/formats.h"

static const char *const marks[] = {"groups", "logp", "logq", NULL};

static gl_status read_record(token_builder *b, const token_line *line, bool *next, gl_error *err) {
  *next = !token_builder_is_empty(b);
  if (*next) return GL_OK;
  if (b->request->group_size > 0)
    return token_refuse(line, line->text, err,
                        "this log has groups (format gepolab); leave --group-size out");
  gl_status status =
      group_record_read_text(&b->record, line->text, line->size, line->file, line->number, err);
  b->has_record = status == GL_OK;
  return status;
}

const token_format token_format_gepolab = {.name = "gepolab",
                                           .title = "log_groups of gepolab's Python package",
                                           .writer = "gepolab",
                                           .marks = marks,
                                           .least = 1,
                                           .read = read_record};
