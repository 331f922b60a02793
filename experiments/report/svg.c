/* Reads gnuplot's SVG piece by piece and writes what belongs into a page. */
#include "experiments/report/svg.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64, MOST_ATTRIBUTES = 32 };

/* --- the drawing so far, in memory: what turns out to draw nothing is taken back --- */
typedef struct element {
  const char *name;
  size_t length;        /* of the name */
  size_t begun, filled; /* how much was written before its opening tag, and behind it */
} element;

typedef struct drawing {
  const svg_words *words;
  const char *at, *end;
  char *out;
  size_t n, room;
  element open[MOST_DEPTH];
  size_t depth;
  int short_of_memory;
} drawing;

static void put(drawing *d, const char *text, size_t size) {
  if (d->n + size > d->room && !d->short_of_memory) {
    const size_t room = 2 * (d->n + size);
    char *more = realloc(d->out, room);
    if (more != NULL) d->out = more, d->room = room;
    d->short_of_memory = more == NULL;
  }
  if (d->short_of_memory) return;
  memcpy(d->out + d->n, text, size);
  d->n += size;
}

static void put_text(drawing *d, const char *text) {
  put(d, text, strlen(text));
}

/* --- words --- */

typedef struct piece {
  const char *text;
  size_t n;
} piece;

static int is(piece p, const char *word) {
  return strlen(word) == p.n && memcmp(p.text, word, p.n) == 0;
}

static int is_among(piece p, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (is(p, words[i])) return 1;
  return 0;
}

static int begins(piece p, const char *word) {
  return p.n >= strlen(word) && memcmp(p.text, word, strlen(word)) == 0;
}

static int is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static int is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == ':';
}

static const char *const elements[] = {
    "g",       "path",   "circle", "rect",  "polygon",  "polyline",    "line",
    "ellipse", "text",   "defs",   "tspan", "clipPath", "pattern",     "use",
    "image",   "filter", "stop",   "mask",  "feFlood",  "feComposite", "linearGradient"};
static const char *const attributes[] = {"color",
                                         "stroke",
                                         "transform",
                                         "fill",
                                         "fill-opacity",
                                         "fill-rule",
                                         "clip-rule",
                                         "stroke-width",
                                         "stroke-linejoin",
                                         "stroke-linecap",
                                         "stroke-opacity",
                                         "stroke-dasharray",
                                         "opacity",
                                         "d",
                                         "points",
                                         "font-family",
                                         "font-size",
                                         "font-weight",
                                         "font-style",
                                         "text-anchor",
                                         "text-decoration",
                                         "xml:space",
                                         "x",
                                         "y",
                                         "x1",
                                         "y1",
                                         "x2",
                                         "y2",
                                         "dx",
                                         "dy",
                                         "r",
                                         "rx",
                                         "ry",
                                         "cx",
                                         "cy",
                                         "width",
                                         "height",
                                         "in",
                                         "in2",
                                         "result",
                                         "operator",
                                         "offset",
                                         "stop-color",
                                         "stop-opacity",
                                         "flood-color",
                                         "flood-opacity",
                                         "filter",
                                         "filterUnits",
                                         "patternUnits",
                                         "gradientUnits",
                                         "clip-path",
                                         "clipPathUnits",
                                         "mask",
                                         "preserveAspectRatio",
                                         "shape-rendering",
                                         "image-rendering"};

static gl_status bad(const drawing *d, gl_error *err, const char *what, piece p) {
  return gl_fail(err, GL_EIO,
                 "the figure %s cannot be put into a page: %s '%.*s'; does this gnuplot write "
                 "another SVG?",
                 d->words->id, what, (int)(p.n < 60 ? p.n : 60), p.text);
}

/* --- attributes --- */

static void put_id(drawing *d, piece id) {
  put_text(d, d->words->id);
  put(d, "-", 1);
  put(d, id.text, id.n);
}

static const struct entity {
  const char *name;
  char stands_for;
} entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
enum { N_ENTITIES = sizeof entities / sizeof *entities };

/* The text that stands for itself, ended by a NUL, on the heap; an ampersand that begins none of
 * the five entities is one itself. NULL if memory is short. */
static char *without_entities(piece p) {
  char *plain = malloc(p.n + 1);
  size_t n = 0;
  for (size_t i = 0; i < p.n && plain != NULL;) {
    size_t e = 0;
    while (e < N_ENTITIES && !begins((piece){p.text + i, p.n - i}, entities[e].name)) ++e;
    plain[n++] = e < N_ENTITIES ? entities[e].stands_for : p.text[i];
    i += e < N_ENTITIES ? strlen(entities[e].name) : 1;
  }
  if (plain != NULL) plain[n] = '\0';
  return plain;
}

static void put_attribute(drawing *d, const char *name, size_t n, piece value) {
  put(d, " ", 1);
  put(d, name, n);
  put_text(d, "=\"");
  put(d, value.text, value.n);
  put(d, "\"", 1);
}

static gl_status put_link(drawing *d, piece tag, piece value, gl_error *err) {
  static const char data[] = "data:image/png;base64,";
  if (value.n > 1 && value.text[0] == '#') {
    put_text(d, " href=\"#");
    put_id(d, (piece){value.text + 1, value.n - 1});
    put(d, "\"", 1);
    return GL_OK;
  }
  if (!is(tag, "image") || !begins(value, data)) return bad(d, err, "it refers to", value);
  put_attribute(d, "href", 4, value);
  return GL_OK;
}

/* A value that names another element, url(#id), and nothing else but plain values. */
static gl_status put_value(drawing *d, piece name, piece value, gl_error *err) {
  const char *paren = memchr(value.text, '(', value.n);
  if (!begins(value, "url(") && paren != NULL && !is(name, "transform") && !begins(value, "rgb"))
    return bad(d, err, "it has the value", value);
  if (!begins(value, "url(")) {
    put_attribute(d, name.text, name.n, value);
    return GL_OK;
  }
  if (value.n < 7 || value.text[4] != '#' || value.text[value.n - 1] != ')' ||
      memchr(value.text + 5, '(', value.n - 5) != NULL)
    return bad(d, err, "it refers to", value);
  put(d, " ", 1);
  put(d, name.text, name.n);
  put_text(d, "=\"url(#");
  put_id(d, (piece){value.text + 5, value.n - 6});
  put_text(d, ")\"");
  return GL_OK;
}

/* Numbers, names and colours: what gnuplot writes is ASCII without any mark of markup. */
static int is_simple(piece value) {
  for (size_t i = 0; i < value.n; ++i)
    if ((value.text[i] < ' ' && !is_space(value.text[i])) || value.text[i] > '~' ||
        strchr("<>&\"'", value.text[i]) != NULL)
      return 0;
  return 1;
}

static gl_status one_attribute(drawing *d, piece tag, piece name, piece value, gl_error *err) {
  if (!is_simple(value)) return bad(d, err, "it has the value", value);
  if (is(name, "class") || (is(name, "id") && begins(value, "gnuplot_"))) return GL_OK;
  if (is(name, "id")) {
    put_text(d, " id=\"");
    put_id(d, value);
    put(d, "\"", 1);
    return GL_OK;
  }
  if (is(name, "xlink:href") || is(name, "href")) return put_link(d, tag, value, err);
  if (!is_among(name, attributes, sizeof attributes / sizeof *attributes))
    return bad(d, err, "it has the attribute", name);
  return put_value(d, name, value, err);
}

static void skip_space(drawing *d) {
  while (d->at < d->end && is_space(*d->at)) ++d->at;
}

static piece read_name(drawing *d) {
  piece p = {d->at, 0};
  while (d->at < d->end && is_name(*d->at)) ++d->at, ++p.n;
  return p;
}

/* NAME = "VALUE"; 0 at the end of the tag, -1 where it is not well-formed. */
static int read_attribute(drawing *d, piece *name, piece *value) {
  skip_space(d);
  *name = read_name(d);
  if (name->n == 0) return d->at < d->end && (*d->at == '>' || *d->at == '/') ? 0 : -1;
  skip_space(d);
  if (d->at == d->end || *d->at != '=') return -1;
  ++d->at;
  skip_space(d);
  if (d->at == d->end || (*d->at != '"' && *d->at != '\'')) return -1;
  const char quote = *d->at++;
  const char *close = memchr(d->at, quote, (size_t)(d->end - d->at));
  if (close == NULL) return -1;
  *value = (piece){d->at, (size_t)(close - d->at)};
  d->at = close + 1;
  return 1;
}

/* --- elements --- */

/* The end of a tag: 1 where the element is empty ("/>"), 0 where it is open, -1 where neither. */
static int read_tag_end(drawing *d) {
  const int empty = d->at < d->end && *d->at == '/';
  d->at += empty;
  if (d->at == d->end || *d->at != '>') return -1;
  ++d->at;
  return empty;
}

/* A unit is a pixel at most, and 0.78 pixels at least, below which letters could not be read: the
 * box around the drawing scrolls then. box: "0 0 WIDTH HEIGHT". */
static void put_size(drawing *d, piece box) {
  char text[80], style[120];
  double wide = 0, high = 0;
  snprintf(text, sizeof text, "%.*s", (int)(box.n < sizeof text ? box.n : sizeof text - 1),
           box.text);
  if (sscanf(text, "%*f %*f %lf %lf", &wide, &high) != 2 || !(wide > 0 && wide < 1e5)) return;
  snprintf(style, sizeof style, "max-width:%.0fpx;min-width:%.0fpx", wide, 0.78 * wide);
  put_attribute(d, "style", 5, (piece){style, strlen(style)});
}

/* The root takes the page's place: only its coordinates are kept. */
static gl_status open_root(drawing *d, gl_error *err) {
  piece name, value, box = {NULL, 0};
  int more;
  while ((more = read_attribute(d, &name, &value)) > 0)
    if (is(name, "viewBox")) box = value;
  if (more < 0 || read_tag_end(d) != 0 || box.n == 0 || !is_simple(box))
    return bad(d, err, "it does not begin with", (piece){"<svg viewBox>", 13});
  put_text(d, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"");
  put_id(d, (piece){"title", 5});
  put(d, " ", 1);
  put_id(d, (piece){"desc", 4});
  put(d, "\"", 1);
  put_attribute(d, "viewBox", 7, box);
  put_size(d, box);
  put_text(d, ">\n<title id=\"");
  put_id(d, (piece){"title", 5});
  put_text(d, "\">");
  return GL_OK;
}

static gl_status open_element(drawing *d, piece tag, gl_error *err) {
  piece name, value;
  const size_t begun = d->n;
  int more;
  if (!is_among(tag, elements, sizeof elements / sizeof *elements))
    return bad(d, err, "it has the element", tag);
  if (d->depth == MOST_DEPTH) return bad(d, err, "it is too deep at", tag);
  put(d, "<", 1);
  put(d, tag.text, tag.n);
  while ((more = read_attribute(d, &name, &value)) > 0) {
    gl_status status = one_attribute(d, tag, name, value, err);
    if (status != GL_OK) return status;
  }
  const int empty = more < 0 ? -1 : read_tag_end(d);
  if (empty < 0) return bad(d, err, "it has an unfinished tag", tag);
  put_text(d, empty ? "/>" : ">");
  if (!empty) d->open[d->depth++] = (element){tag.text, tag.n, begun, d->n};
  return GL_OK;
}

/* Groups and texts without content are taken back. */
static gl_status close_element(drawing *d, gl_error *err) {
  const piece tag = read_name(d);
  skip_space(d);
  if (d->at == d->end || *d->at != '>' || d->depth == 0 || tag.n != d->open[d->depth - 1].length ||
      memcmp(tag.text, d->open[d->depth - 1].name, tag.n) != 0)
    return bad(d, err, "it closes what is not open,", tag);
  ++d->at;
  const element *e = &d->open[--d->depth];
  if (d->n == e->filled && (is(tag, "g") || is(tag, "text") || is(tag, "tspan"))) {
    d->n = e->begun;
    return GL_OK;
  }
  put_text(d, "</");
  put(d, tag.text, tag.n);
  put_text(d, is(tag, "g") || is(tag, "defs") ? ">\n" : ">");
  return GL_OK;
}

/* Behind the next occurrence of the mark. */
static int skip_behind(drawing *d, const char *mark) {
  const size_t n = strlen(mark);
  for (; (size_t)(d->end - d->at) >= n; ++d->at)
    if (memcmp(d->at, mark, n) == 0) {
      d->at += n;
      return 1;
    }
  return 0;
}

static int in_text(const drawing *d) {
  if (d->depth == 0) return 0;
  const element *e = &d->open[d->depth - 1];
  const piece tag = {e->name, e->length};
  return is(tag, "text") || is(tag, "tspan");
}

/* Names of a study stand in the drawing's texts: they are shown as everywhere on the page. */
static void put_words(drawing *d, piece words) {
  char *text = NULL;
  size_t size = 0;
  html h = {.to = open_memstream(&text, &size)};
  char *plain = without_entities(words);
  if (h.to != NULL) html_text(&h, plain);
  if (h.to == NULL || fclose(h.to) != 0 || h.failed || plain == NULL)
    d->short_of_memory = 1;
  else
    put(d, text, size);
  free(text), free(plain);
}

/* One tag, or what stands before the next; *done at the end of the root. */
static gl_status next(drawing *d, int *done, gl_error *err) {
  if (*d->at != '<') {
    const char *tag = memchr(d->at, '<', (size_t)(d->end - d->at));
    if (tag == NULL) tag = d->end;
    if (in_text(d)) put_words(d, (piece){d->at, (size_t)(tag - d->at)});
    d->at = tag;
    return GL_OK;
  }
  ++d->at;
  const piece rest = {d->at, (size_t)(d->end - d->at)};
  if (begins(rest, "!--"))
    return skip_behind(d, "-->") ? GL_OK : bad(d, err, "it has an unfinished", (piece){"<!--", 4});
  if (begins(rest, "/")) {
    ++d->at;
    *done = d->depth == 0 && begins((piece){d->at, (size_t)(d->end - d->at)}, "svg>");
    return *done ? GL_OK : close_element(d, err);
  }
  const piece tag = read_name(d);
  if (is(tag, "title") || is(tag, "desc")) {
    char mark[16];
    snprintf(mark, sizeof mark, "</%s>", is(tag, "title") ? "title" : "desc");
    return skip_behind(d, mark) ? GL_OK : bad(d, err, "it has an unfinished", tag);
  }
  return open_element(d, tag, err);
}

/* The words that are read out in place of the picture go through the page's own escapes. */
static void write_words(html *h, const drawing *d) {
  html_text(h, d->words->title);
  html_markup(h, "</title><desc id=\"");
  html_text(h, d->words->id);
  html_markup(h, "-desc\">");
  html_text(h, d->words->about);
  html_markup(h, "</desc>\n");
}

gl_status svg_inline(html *h, const svg_words *words, const char *text, size_t size,
                     gl_error *err) {
  drawing d = {.words = words, .at = text, .end = text + size};
  gl_status status = GL_OK;
  int done = 0;
  if (!skip_behind(&d, "<svg")) status = bad(&d, err, "it does not begin with", (piece){"<svg", 4});
  if (status == GL_OK) status = open_root(&d, err);
  const size_t root = d.n;
  while (status == GL_OK && !done && d.at < d.end) status = next(&d, &done, err);
  if (status == GL_OK && !done) status = bad(&d, err, "it ends before", (piece){"</svg>", 6});
  if (status == GL_OK && d.short_of_memory) status = gl_fail_memory(err, "a figure");
  if (status == GL_OK) {
    fwrite(d.out, 1, root, h->to);
    write_words(h, &d);
    fwrite(d.out + root, 1, d.n - root, h->to);
    html_markup(h, "</svg>\n");
  }
  free(d.out);
  return status;
}
