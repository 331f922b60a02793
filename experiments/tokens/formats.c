/* What the readers of all formats use: fields of a line, and errors at their place. */
#include "experiments/tokens/formats.h"

#include "core/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gl_status token_refuse(const token_line *line, const char *at, gl_error *err, const char *format,
                       ...) {
  char text[768];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return gl_fail(err, GL_EINPUT, "%s:%zu:%zu: %s", line->file, line->number,
                 scan_column(line->text, at), text);
}

bool token_is_key(scan_piece key, const char *name) {
  return key.size == strlen(name) && memcmp(key.text, name, key.size) == 0;
}

static void note_unread(token_builder *b, scan_piece key) {
  char text[64];
  const size_t n = key.size < sizeof text - 1 ? key.size : sizeof text - 1, at = strlen(b->unread);
  memcpy(text, key.text, n);
  text[n] = '\0';
  for (const char *found = b->unread; (found = strstr(found, text)) != NULL; found += n)
    if ((found == b->unread || found[-1] == ' ') && (found[n] == ',' || found[n] == '\0')) return;
  if (at + n + 3 < sizeof b->unread)
    snprintf(b->unread + at, sizeof b->unread - at, "%s%s", at > 0 ? ", " : "", text);
}

static gl_status refuse_missing(const token_format *format, const token_line *line,
                                const char *missing, const scan_piece *other, size_t n,
                                gl_error *err) {
  char names[8][48], hint[CFG_HINT_SIZE];
  const char *known[8];
  for (size_t i = 0; i < n; ++i) {
    snprintf(names[i], sizeof names[i], "%.*s", other[i].size < 47 ? (int)other[i].size : 47,
             other[i].text);
    known[i] = names[i];
  }
  return token_refuse(line, line->text, err, "field %s is missing, which %s writes%s", missing,
                      format->writer, cfg_hint(missing, known, n, hint));
}

gl_status token_find_fields(token_builder *b, const token_format *format, const token_line *line,
                            const token_field *field, scan_piece *piece, size_t n, gl_error *err) {
  scan s;
  scan_piece key, value, other[8];
  size_t n_others = 0;
  memset(piece, 0, n * sizeof *piece);
  scan_begin(&s, line->text, line->size);
  scan_enter(&s);
  while (scan_member(&s, &key, &value)) {
    size_t i = 0;
    while (i < n && !token_is_key(key, field[i].name)) ++i;
    if (i == n) {
      note_unread(b, key);
      if (n_others < sizeof other / sizeof *other) other[n_others++] = key;
    } else if (piece[i].text != NULL) {
      return token_refuse(line, key.text - 1, err, "field %s is given twice", field[i].name);
    } else {
      piece[i] = value;
    }
  }
  if (s.why != NULL) return token_refuse(line, s.at, err, "damaged JSON: %s", s.why);
  for (size_t i = 0; i < n; ++i)
    if (field[i].needed && piece[i].text == NULL)
      return refuse_missing(format, line, field[i].name, other, n_others, err);
  return GL_OK;
}
