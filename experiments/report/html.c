/* Escapes text, and writes headings and tables. */
#include "experiments/report/html.h"

#include "core/base/display_text.h"
#include "experiments/base/memory.h"

#include <gen/version.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

void html_markup(html *h, const char *markup) {
  fputs(markup, h->to);
}

void html_script(html *h, const char *script) {
  if (script == NULL) return;
  html_markup(h, "<script>//<![CDATA[\n"), html_markup(h, script);
  html_markup(h, "\n//]]></script>\n");
}

/* --- the page --- */

gl_status html_page_begin(html *h, const char *style, const char *kind, const char *title,
                          gl_error *err) {
  if (style == NULL) return gl_fail(err, GL_EINTERNAL, "the report's style sheet is missing");
  html_markup(h, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
                 "<head>\n<meta charset=\"utf-8\" />\n<meta name=\"viewport\" "
                 "content=\"width=device-width, initial-scale=1\" />\n<title>");
  html_text(h, title);
  html_markup(h, " · gepolab</title>\n<style>\n"), html_markup(h, style);
  html_markup(h, "</style>\n</head>\n<body>\n<header>\n<p class=\"kind\">");
  html_markup(h, kind), html_markup(h, "</p>\n");
  h->level = 1;
  html_heading(h, NULL, "%s", title);
  html_markup(h, "</header>\n<main>\n");
  return GL_OK;
}

void html_page_end(html *h, const char *from) {
  html_markup(h, "</main>\n<footer><p>Written by gepolab " GEPOLAB_VERSION " ");
  html_markup(h, from);
  html_markup(h, "</p></footer>\n</body>\n</html>\n");
}

/* --- text --- */

void html_text(html *h, const char *text) {
  if (text != NULL) shown_write_html(text, h->to);
}

static void text_of(html *h, const char *format, va_list args) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = must_have(open_memstream(&text, &size), "a page");
  vfprintf(to, format, args);
  must_succeed(fclose(to) == 0, "a page");
  html_text(h, text);
  free(text);
}

void html_textf(html *h, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_of(h, format, args);
  va_end(args);
}

void html_heading(html *h, const char *id, const char *format, ...) {
  va_list args;
  fprintf(h->to, "<h%d", h->level);
  if (id != NULL) {
    html_markup(h, " id=\"");
    html_text(h, id);
    html_markup(h, "\"");
  }
  html_markup(h, ">");
  va_start(args, format);
  text_of(h, format, args);
  va_end(args);
  fprintf(h->to, "</h%d>\n", h->level);
}

/* --- tables --- */

void html_table(html *h, table *t) {
  gl_error why; /* write errors are kept by the stream, so only memory can fail here */
  must_succeed(table_write(t, TABLE_AS_HTML, h->to, &why) != GL_ENOMEM, "a page");
  table_free(t);
}

void html_table_begin(html *h, const char *caption, const char *const *heads, size_t n) {
  html_markup(h, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
  html_text(h, caption);
  html_markup(h, "\"><table>\n<caption>");
  html_text(h, caption);
  html_markup(h, "</caption>\n<thead><tr>");
  for (size_t i = 0; i < n; ++i) {
    const int number = heads[i][0] == '#';
    html_markup(h, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
    html_text(h, heads[i] + number);
    html_markup(h, "</th>");
  }
  html_markup(h, "</tr></thead>\n<tbody>\n");
}

void html_table_end(html *h) {
  html_markup(h, "</tbody>\n</table></div>\n");
}

void html_row_begin(html *h) {
  html_markup(h, "<tr>");
}

void html_row_end(html *h) {
  html_markup(h, "</tr>\n");
}

void html_row_head(html *h, const char *text) {
  html_markup(h, "<th scope=\"row\">");
  html_text(h, text);
  html_markup(h, "</th>");
}

void html_cell(html *h, const char *text) {
  html_markup(h, "<td>");
  html_text(h, text);
  html_markup(h, "</td>");
}

static void number(html *h, double value) {
  if (isnan(value))
    html_markup(h, "–");
  else
    html_textf(h, "%.4g", value);
}

void html_cell_number(html *h, double value) {
  html_markup(h, "<td class=\"n\">");
  number(h, value);
  html_markup(h, "</td>");
}

void html_cell_count(html *h, size_t n) {
  fprintf(h->to, "<td class=\"n\">%zu</td>", n);
}

void html_cell_interval(html *h, double value, double low, double high, int bold) {
  html_markup(h, "<td class=\"n\">");
  if (bold) html_markup(h, "<strong>");
  if (!isnan(value) && fabs(value) < 100)
    html_textf(h, "%.3f", value);
  else
    number(h, value);
  if (bold) html_markup(h, "</strong>");
  if (!isnan(low)) {
    html_markup(h, " <span class=\"ends\">[");
    html_textf(h, fmax(fabs(low), fabs(high)) < 100 ? "%.3f, %.3f" : "%.4g, %.4g", low, high);
    html_markup(h, "]</span>");
  }
  html_markup(h, "</td>");
}

const char *html_count(char *text, size_t size, size_t n, const char *one, const char *many) {
  snprintf(text, size, "%zu %s", n, n == 1 ? one : many);
  return text;
}
