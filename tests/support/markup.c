#include "tests/support/markup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64, LONGEST = 40, MOST_IDS = 4096 };

int markup_count(const char *text, const char *words) {
  int n = 0;
  for (; (text = strstr(text, words)) != NULL; text += strlen(words)) ++n;
  return n;
}

static int wrong(const char *what, const char *at) {
  fprintf(stderr, "not well-formed: %s at: %.60s\n", what, at);
  return 0;
}

static int is_entity(const char *at) {
  const size_t n = strcspn(at + 1, ";<& \n");
  return at[n + 1] == ';' && n > 0;
}

static size_t name_length(const char *at) {
  size_t n = 0;
  while (isalnum((unsigned char)at[n]) || (at[n] != 0 && strchr("-_:", at[n]) != NULL)) ++n;
  return n;
}

/* Behind the attributes of a tag, or NULL. */
static const char *read_attributes(const char *at) {
  char names[24][LONGEST];
  for (size_t n = 0;; ++n) {
    at += strspn(at, " \n");
    if (*at == '>' || strncmp(at, "/>", 2) == 0) return at;
    const size_t length = name_length(at);
    if (length == 0 || length >= LONGEST || n == 24 || strncmp(at, "on", 2) == 0) return NULL;
    snprintf(names[n], LONGEST, "%.*s", (int)length, at);
    for (size_t i = 0; i < n; ++i)
      if (strcmp(names[i], names[n]) == 0) return NULL;
    at += length;
    if (strncmp(at, "=\"", 2) != 0) return NULL;
    for (at += 2; *at != '"'; ++at)
      if (*at == 0 || *at == '<' || (*at == '&' && !is_entity(at))) return NULL;
    ++at;
  }
}

int markup_is_well_formed(const char *text) {
  char open[DEEPEST][LONGEST];
  size_t depth = 0, roots = 0;
  const char *at = text;
  if (strncmp(at, "<!DOCTYPE html>", 15) == 0) at += 15;
  for (; *at; ++at) {
    if (*at == '&' && !is_entity(at)) return wrong("a lone ampersand", at);
    if (*at == '>' && depth == 0) return wrong("text outside", at);
    if (*at != '<') continue;
    const int closes = at[1] == '/';
    const char *tag = at + 1 + closes;
    const size_t n = name_length(tag);
    if (n == 0 || n >= LONGEST) return wrong("a tag without a name", at);
    if (closes) {
      if (depth == 0 || strlen(open[depth - 1]) != n || strncmp(open[depth - 1], tag, n) != 0)
        return wrong("an element that is not open is closed", at);
      --depth;
      at = tag + n;
    } else {
      const char *end = read_attributes(tag + n);
      if (end == NULL) return wrong("its attributes", at);
      if (depth == 0) ++roots;
      if (*end == '>') {
        if (depth == DEEPEST) return wrong("too deep", at);
        snprintf(open[depth++], LONGEST, "%.*s", (int)n, tag);
      }
      at = end + (*end == '/');
    }
    if (*at != '>') return wrong("an unfinished tag", at);
  }
  if (depth > 0) return wrong("never closed", open[depth - 1]);
  return roots == 1 ? 1 : wrong("not one element", text);
}

typedef struct word {
  const char *text;
  size_t n;
} word;

/* The words of all attributes of that beginning, up to one of the characters in `until`. */
static size_t gather(const char *text, const char *begin, const char *until, word *to, size_t n) {
  for (; (text = strstr(text, begin)) != NULL && n < MOST_IDS;) {
    text += strlen(begin);
    to[n].text = text;
    to[n++].n = strcspn(text, until);
  }
  return n;
}

static int is_same(word a, word b) {
  return a.n == b.n && memcmp(a.text, b.text, a.n) == 0;
}

int markup_ids_hold(const char *text) {
  static word ids[MOST_IDS], links[MOST_IDS];
  const size_t n = gather(text, " id=\"", "\"", ids, 0);
  size_t m = gather(text, "href=\"#", "\"", links, 0);
  m = gather(text, "url(#", ")", links, m);
  m = gather(text, "aria-labelledby=\"", " \"", links, m);
  if (n == MOST_IDS || m == MOST_IDS) return wrong("too many ids to look at", text);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < i; ++k)
      if (is_same(ids[i], ids[k])) return wrong("two elements of one id", ids[i].text);
  for (size_t i = 0; i < m; ++i) {
    size_t k = 0;
    while (k < n && !is_same(links[i], ids[k])) ++k;
    if (k == n) return wrong("a link to nothing", links[i].text);
  }
  return 1;
}
