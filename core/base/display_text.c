/* Escapes control characters and other bytes that a terminal would interpret. */
#include "core/base/display_text.h"

#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Size of the longest escape: "\U0010ffff". */
enum { PIECE_SIZE = 12 };

/* Whether a terminal would interpret the character instead of showing it. */
static int obeyed(uint32_t code) {
  utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_ZL ||
         c == UTF8PROC_CATEGORY_ZP;
}

static void write_escape(uint32_t code, char piece[PIECE_SIZE]) {
  if (code == '\n' || code == '\r' || code == '\t')
    snprintf(piece, PIECE_SIZE, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
  else
    snprintf(piece, PIECE_SIZE,
             code < 0x80      ? "\\x%02x"
             : code <= 0xffff ? "\\u%04x"
                              : "\\U%08x",
             (unsigned)code);
}

/* Writes the escaped form of the next character of text[size], size > 0, and its width in columns;
 * returns the number of bytes read. */
static size_t next_piece(const char *text, size_t size, char piece[PIECE_SIZE], size_t *columns) {
  uint32_t code;
  size_t bytes = utf8_read(text, size, &code);
  if (code == UTF8_INVALID) { /* one byte at a time, although several may belong together */
    snprintf(piece, PIECE_SIZE, "\\x%02x", (unsigned)(unsigned char)*text);
    bytes = 1;
  } else if (obeyed(code)) {
    write_escape(code, piece);
  } else {
    memcpy(piece, text, bytes);
    piece[bytes] = '\0';
    *columns = (size_t)utf8proc_charwidth((utf8proc_int32_t)code);
    return bytes;
  }
  *columns = strlen(piece);
  return bytes;
}

/* Writes as much of the escaped form as fits `room` bytes and `columns` columns, without a NUL.
 * Returns whether all of it did; *length and *taken are the bytes and columns written. */
static int shown_fill(const char *text, char *to, size_t room, size_t columns, size_t *length,
                      size_t *taken) {
  char piece[PIECE_SIZE];
  *length = *taken = 0;
  for (size_t size = strlen(text); size > 0;) {
    size_t wide, bytes = next_piece(text, size, piece, &wide), n = strlen(piece);
    if (n > room - *length || wide > columns - *taken) return 0;
    memcpy(to + *length, piece, n);
    *length += n;
    *taken += wide;
    text += bytes;
    size -= bytes;
  }
  return 1;
}

shown_text shown(const char *text) {
  shown_text s;
  shown_cut(text != NULL ? text : "", SHOWN_SIZE, &s);
  return s;
}

size_t shown_cut(const char *text, size_t columns, shown_text *out) {
  static const char more[] = "…";
  size_t length, taken;
  int whole = shown_fill(text, out->text, SHOWN_SIZE - 1, columns, &length, &taken);
  if (!whole && columns > 0) {
    shown_fill(text, out->text, SHOWN_SIZE - sizeof more, columns - 1, &length, &taken);
    memcpy(out->text + length, more, sizeof more - 1);
    length += sizeof more - 1;
    ++taken;
  }
  out->text[length] = '\0';
  return taken;
}

void shown_write(const char *text, size_t size, FILE *to) {
  char piece[PIECE_SIZE];
  for (size_t columns; size > 0;) {
    size_t bytes = next_piece(text, size, piece, &columns);
    fputs(piece, to);
    text += bytes;
    size -= bytes;
  }
}

void shown_write_lines(const char *text, FILE *to) {
  while (*text != '\0') {
    size_t n = strcspn(text, "\n\t");
    shown_write(text, n, to);
    text += n;
    if (*text != '\0') fputc(*text++, to);
  }
}

static const char *html_entity(char c) {
  return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : "&#39;";
}

/* XML excludes the last two code points of each plane. */
void shown_write_html(const char *text, FILE *to) {
  for (size_t size = strlen(text), n; size > 0; text += n, size -= n) {
    char piece[PIECE_SIZE];
    size_t columns;
    uint32_t code;
    if (strchr("&<>\"'\n\t", *text) != NULL) {
      fputs(*text == '\n' ? "\n" : *text == '\t' ? "\t" : html_entity(*text), to);
      n = 1;
      continue;
    }
    utf8_read(text, size, &code);
    n = next_piece(text, size, piece, &columns);
    if (code != UTF8_INVALID && (code & 0xfffe) == 0xfffe)
      fprintf(to, "\\u%04x", (unsigned)code);
    else
      fputs(piece, to);
  }
}

const char *plural_ending(size_t n) {
  return n == 1 ? "" : "s";
}

size_t shown_width(const char *text) {
  char piece[PIECE_SIZE];
  size_t all = 0;
  for (size_t size = strlen(text), columns; size > 0; all += columns) {
    size_t bytes = next_piece(text, size, piece, &columns);
    text += bytes;
    size -= bytes;
  }
  return all;
}

void shown_write_field(const char *text, FILE *to) {
  const int quoted = *text == '#' || strchr(text, '"') != NULL;
  if (quoted) fputc('"', to);
  for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
    shown_write(text, (size_t)(quote - text), to);
    fputs("\"\"", to);
  }
  shown_write(text, strlen(text), to);
  if (quoted) fputc('"', to);
}

void shown_write_padded(const char *text, size_t columns, FILE *to) {
  shown_write(text, strlen(text), to);
  for (size_t n = shown_width(text); n < columns; ++n) fputc(' ', to);
}

void shown_wrap(const char *text, size_t column, size_t indent, FILE *to) {
  bool begins = true;
  while (*(text += strspn(text, " \n")) != '\0') {
    shown_text word;
    const size_t n = strcspn(text, " \n");
    snprintf(word.text, sizeof word.text, "%.*s", (int)n, text);
    const size_t width = n < sizeof word.text ? shown_width(word.text) : n;
    if (!begins && column + 1 + width > SHOWN_COLUMNS) {
      fprintf(to, "\n%*s", (int)indent, "");
      column = indent;
      begins = true;
    }
    fprintf(to, "%s%.*s", begins ? "" : " ", (int)n, text);
    column += width + !begins;
    begins = false;
    text += n;
  }
}

/* The length of the text's first paragraph, or of its first line if that is written as it is. */
static size_t paragraph_length(const char *text) {
  const char *end = text + strcspn(text, "\n");
  if (text[0] == ' ' || text[0] == '\n') return (size_t)(end - text);
  while (end[0] == '\n' && end[1] != '\n' && end[1] != ' ') end += 1 + strcspn(end + 1, "\n");
  return (size_t)(end - text);
}

void shown_paragraphs(const char *text, FILE *to) {
  while (*text != '\0') {
    const size_t n = paragraph_length(text);
    char *copy = text[0] == ' ' ? NULL : strndup(text, n);
    if (copy != NULL)
      shown_wrap(copy, 0, 0, to);
    else
      fprintf(to, "%.*s", (int)n, text);
    free(copy);
    text += n;
    if (*text == '\n') fputc(*text++, to);
  }
}
