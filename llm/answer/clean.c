/* Cleaning: everything that makes two writings of one answer differ and means nothing. */
#include "llm/answer/internal.h"

#include <stdint.h>
#include <string.h>

/* --- putting -------------------------------------------------------------------------------------
 */

typedef struct cleaner {
  answer_span in; /* what is left */
  answer_text *out;
  int matrices, depth, failed;
} cleaner;

static void put(cleaner *c, const char *text, size_t n) {
  if (n > sizeof c->out->data - c->out->n) {
    c->failed = 1;
    return;
  }
  memcpy(c->out->data + c->out->n, text, n);
  c->out->n += n;
}

static void put_text(cleaner *c, const char *text) {
  put(c, text, strlen(text));
}

static char last(const answer_text *out) {
  return out->n == 0 ? '\0' : out->data[out->n - 1];
}

static void put_space(cleaner *c) {
  if (last(c->out) != ' ' && c->out->n != 0) put(c, " ", 1);
}

static void skip(cleaner *c, size_t n) {
  c->in.at += n;
  c->in.n -= n;
}

static void clean(cleaner *c);

/* The contents of the group that s begins with, or its first character: its length with braces in
 * *whole. */
static answer_span group(answer_span s, size_t *whole) {
  size_t depth = 0;
  if (s.n == 0 || *s.at != '{') {
    *whole = s.n > 0;
    return (answer_span){s.at, *whole};
  }
  for (size_t i = 0; i < s.n; ++i) {
    if (s.at[i] == '\\' && i + 1 < s.n)
      ++i;
    else if (s.at[i] == '{')
      ++depth;
    else if (s.at[i] == '}' && --depth == 0) {
      *whole = i + 1;
      return (answer_span){s.at + 1, i - 1};
    }
  }
  *whole = s.n;
  return (answer_span){s.at + 1, s.n - 1};
}

/* --- words and units -----------------------------------------------------------------------------
 */

/* Words, perhaps with / ^ . and small exponents: what a unit looks like. */
static int looks_like_unit(answer_span s) {
  int letters = 0;
  s = answer_trim(s);
  if (answer_is_no_unit(s)) return 0;
  for (size_t i = 0; i < s.n; ++i) {
    letters |= answer_is_letter(s.at[i]);
    if (!answer_is_letter(s.at[i]) && !answer_is_any(s.at[i], " ./^23-~{}")) return 0;
  }
  return letters;
}

/* Behind a unit: an exponent of 2 or 3, white space, the end or a comma. Its length, or SIZE_MAX if
 * something else stands there. */
static size_t after_unit(answer_span s) {
  size_t i = 0;
  while (i < s.n && answer_is_any(s.at[i], " .$~")) ++i;
  if (i < s.n && s.at[i] == '^') {
    ++i;
    while (i < s.n && answer_is_any(s.at[i], " {}23.$~")) ++i;
  }
  return i == s.n || s.at[i] == ',' ? i : SIZE_MAX;
}

/* Whether the text can have a unit behind it: a number, a bracket or pi. */
static int ends_like_number(const char *text, size_t n) {
  while (n > 0 && text[n - 1] == ' ') --n;
  if (n >= 3 && memcmp(text + n - 3, "\\pi", 3) == 0) return 1;
  return n > 0 && (answer_is_digit(text[n - 1]) || answer_is_any(text[n - 1], ")}%"));
}

static int is_conjunction(answer_span word) {
  return answer_is(word, "and") || answer_is(word, "or") || answer_is(word, ", and");
}

/* \text{...}: a unit goes, "and" and "or" are commas, other words stay. */
static void put_words(cleaner *c, int may_be_unit) {
  size_t whole;
  c->in = answer_trim(c->in);
  answer_span inside = group(c->in, &whole), word = answer_trim(inside);
  skip(c, whole);
  size_t behind = after_unit(c->in);
  if (may_be_unit && behind != SIZE_MAX && !is_conjunction(word) && looks_like_unit(word) &&
      ends_like_number(c->out->data, c->out->n)) {
    skip(c, behind);
    return;
  }
  put_space(c);
  if (is_conjunction(word))
    put_text(c, ",");
  else if (c->depth < 8) {
    cleaner nested = {word, c->out, c->matrices, c->depth + 1, 0};
    clean(&nested);
    c->failed |= nested.failed;
  } else
    c->failed = 1;
  put_space(c);
}

/* --- commands ------------------------------------------------------------------------------------
 */

/* \begin{pmatrix} and \end{pmatrix}, an array's columns included. */
static void put_environment(cleaner *c, int begins) {
  size_t whole;
  answer_span name = group(c->in, &whole);
  skip(c, whole);
  if (!answer_is_matrix(name)) return;
  if (begins && answer_is(name, "array")) {
    group(c->in, &whole);
    skip(c, whole);
  }
  c->matrices += begins ? 1 : -1;
  put_text(c, begins ? "\\begin" : "\\end");
  put_space(c);
}

/* A command of letters; c->in stands behind it. */
static void put_command(cleaner *c, answer_span name) {
  answer_name what = answer_name_of(name);
  const char *other = answer_renamed(name);
  if (what == ANSWER_DROPPED) {
    if ((answer_is(name, "left") || answer_is(name, "right")) && c->in.n > 0 && *c->in.at == '.')
      skip(c, 1);
  } else if (what == ANSWER_SPACE)
    put_space(c);
  else if (what == ANSWER_WORDS || what == ANSWER_STYLE)
    put_words(c, what == ANSWER_WORDS);
  else if (what == ANSWER_BEGIN || what == ANSWER_END)
    put_environment(c, what == ANSWER_BEGIN);
  else if (other != NULL) {
    put_text(c, other);
    if (answer_is_letter(last(c->out))) put_space(c);
  } else {
    put(c, name.at - 1, name.n + 1);
    if (c->in.n > 0 && answer_is_letter(*c->in.at)) put_space(c);
  }
}

/* A backslash and what it begins. */
static void put_backslash(cleaner *c) {
  size_t n = answer_command(c->in);
  if (n > 0) {
    answer_span name = {c->in.at + 1, n};
    skip(c, n + 1);
    put_command(c, name);
    return;
  }
  char next = c->in.n > 1 ? c->in.at[1] : '\0';
  if (next == '\\') { /* a new row, or a backslash that was escaped once too often */
    skip(c, c->matrices == 0 && c->in.n > 2 && answer_is_letter(c->in.at[2]) ? 1 : 2);
    if (c->matrices > 0) put_text(c, ";");
    return;
  }
  skip(c, c->in.n > 1 ? 2 : 1);
  if (next == '!' && last(c->out) == ',') { /* 1,\!000 */
    --c->out->n;
    c->in = answer_trim(c->in);
  }
  if (next == '{' || next == '}')
    put(c, next == '{' ? "\\{" : "\\}", 2);
  else if (next == ';' || next == ':' || next == ' ')
    put_space(c);
  else if (answer_is_any(next, "%&#_|"))
    put(c, &next, 1);
}

/* ^\circ, ^{\circ} and the like: their length, or 0. */
static size_t degree(answer_span s) {
  size_t i = 1, braces = 0;
  while (i < s.n && (s.at[i] == '{' || s.at[i] == ' ')) braces += s.at[i++] == '{';
  answer_span rest = {s.at + i, s.n - i};
  if (answer_starts(rest, "\\circ"))
    i += 5;
  else if (answer_starts(rest, "\\degree"))
    i += 7;
  else if (answer_starts(rest, "o}") && braces == 1)
    i += 1;
  else
    return 0;
  while (i < s.n && braces > 0 && (s.at[i] == '}' || s.at[i] == ' ')) braces -= s.at[i++] == '}';
  return i;
}

static void put_symbol(cleaner *c) {
  size_t n = 1;
  const char *other = answer_symbol(c->in, &n);
  if (other != NULL)
    put_text(c, other);
  else
    put(c, c->in.at, 1);
  skip(c, n);
}

/* Operators of programs: 1 if c->in begins with one, which is then put as LaTeX has it. Without a
 * space before it != is a factorial and an equation. */
static int put_operator(cleaner *c) {
  static const char *const both[][2] = {
      {"**", "^"}, {"<=", "\\le "}, {">=", "\\ge "}, {"!=", "\\ne "}, {"==", "="}};
  for (size_t i = 0; i < sizeof both / sizeof *both; ++i)
    if (answer_starts(c->in, both[i][0]) && (*both[i][0] != '!' || last(c->out) == ' ')) {
      put_text(c, both[i][1]);
      skip(c, 2);
      return 1;
    }
  return 0;
}

static void clean(cleaner *c) {
  while (c->in.n > 0 && !c->failed) {
    char x = *c->in.at;
    size_t n = x == '^' ? degree(c->in) : 0;
    if (x == '\\')
      put_backslash(c);
    else if ((unsigned char)x >= 0x80)
      put_symbol(c);
    else if (n > 0)
      skip(c, n);
    else if (answer_starts(c->in, "{,}"))
      skip(c, 3);
    else if (put_operator(c))
      continue;
    else {
      if (x == '~' || answer_is_space(x))
        put_space(c);
      else if (x == '&' && c->matrices > 0)
        put_text(c, ",");
      else if (x != '$' && x != '"' && x != '`')
        put(c, &x, 1);
      skip(c, 1);
    }
  }
}

/* --- the whole -----------------------------------------------------------------------------------
 */

/* " and " and " or " as plain words become commas. */
static void replace_conjunctions(answer_text *out) {
  static const char *const both[] = {" and ", " or "};
  for (size_t k = 0; k < 2; ++k)
    for (size_t i = 0, n = strlen(both[k]); i + n <= out->n; ++i)
      if (memcmp(out->data + i, both[k], n) == 0) {
        memset(out->data + i, ' ', n);
        out->data[i + 1] = ',';
      }
}

static void trim_end(answer_text *out) {
  while (answer_is_any(last(out), " .,;:")) --out->n;
}

/* Length of the text without one word of a unit at its end (with its exponent, and a / before it);
 * the same length if there is none. A single letter is one only behind a /, for
 * it may be a variable. */
static size_t without_unit(const answer_text *out, size_t n) {
  size_t end = n;
  while (end > 0 && answer_is_any(out->data[end - 1], " 23^{}")) --end;
  for (size_t i = end; i < n; ++i)
    if (out->data[i] != ' ' && out->data[end] != '^') return n; /* digits without a ^ */
  size_t begin = end;
  while (begin > 0 && answer_is_letter(out->data[begin - 1])) --begin;
  answer_span word = {out->data + begin, end - begin};
  if (word.n == 0 || begin == 0 || !answer_is_unit(word)) return n;
  if (word.n == 1 && out->data[begin - 1] != '/') return n;
  if (out->data[begin - 1] == '\\') return n;
  while (begin > 0 && out->data[begin - 1] == ' ') --begin;
  if (begin > 0 && out->data[begin - 1] == '/') --begin;
  while (begin > 0 && out->data[begin - 1] == ' ') --begin;
  return begin;
}

/* Takes units away if a number is left in front of them. */
static void strip_units(answer_text *out) {
  size_t n = out->n, before;
  do {
    before = n;
    n = without_unit(out, before);
  } while (n < before);
  if (n > 0 && n < out->n && ends_like_number(out->data, n)) out->n = n;
}

int answer_clean(answer_text *out, const char *text, size_t size) {
  out->n = 0;
  cleaner c = {{text, size}, out, 0, 0, 0};
  clean(&c);
  replace_conjunctions(out);
  trim_end(out);
  strip_units(out);
  trim_end(out);
  return !c.failed;
}
