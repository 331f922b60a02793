/* Answers whose numbers are changed, one at a time: tests/golden/answer_forms.txt. Shared by the
 * test of the answer checker and its fuzzer, which is one file and so takes all of it from here. */
#ifndef GEPOLAB_TESTS_SUPPORT_ANSWER_FORM_H
#define GEPOLAB_TESTS_SUPPORT_ANSWER_FORM_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_FORM_TEXT = 160, ANSWER_FORM_PLACES = 24, ANSWER_FORMS = 1024 };

/* A right answer and where its numbers stand in it: those in whose place no other positive number
 * gives the same answer. */
typedef struct answer_form {
  char text[ANSWER_FORM_TEXT];
  struct {
    size_t at, n;
  } place[ANSWER_FORM_PLACES];
  size_t n;
} answer_form;

typedef struct answer_forms {
  answer_form form[ANSWER_FORMS];
  size_t n;
} answer_forms;

static inline int answer_form_is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* The length of the number that s begins with: 12, 3.5, .25; 0 if there is none. */
static inline size_t answer_form_number(const char *s) {
  size_t n = 0;
  while (answer_form_is_digit(s[n])) ++n;
  if (s[n] == '.' && answer_form_is_digit(s[n + 1]))
    for (++n; answer_form_is_digit(s[n]);) ++n;
  return n;
}

/* Reads a line of the file; stops the program where it has more than fits, for the file is ours. */
static inline void answer_form_read(answer_form *out, const char *line) {
  size_t size = 0;
  out->n = 0;
  for (int left_alone = 0; *line != '\0' && *line != '\n';) {
    if (*line == '~') {
      left_alone = 1;
      ++line;
      continue;
    }
    size_t n = answer_form_number(line), copied = n > 0 ? n : 1;
    if (size + copied >= sizeof out->text || out->n == ANSWER_FORM_PLACES) abort();
    if (n > 0 && !left_alone) {
      out->place[out->n].at = size;
      out->place[out->n++].n = n;
    }
    memcpy(out->text + size, line, copied);
    size += copied;
    line += copied;
    left_alone = 0;
  }
  out->text[size] = '\0';
}

/* All lines but comments. 1, or 0 if the file cannot be read. */
static inline int answer_forms_read(answer_forms *out, const char *path) {
  char line[ANSWER_FORM_TEXT];
  FILE *from = fopen(path, "r");
  out->n = 0;
  if (from == NULL) return 0;
  while (fgets(line, sizeof line, from) != NULL) {
    if (*line == '#' || *line == '\n') continue;
    if (out->n == ANSWER_FORMS || strchr(line, '\n') == NULL) abort();
    answer_form_read(&out->form[out->n++], line);
  }
  fclose(from);
  return out->n > 0;
}

/* The digits of a number without zeros that say nothing: how many, from *s on, and with *point how
 * many of them stand before the point. */
static inline size_t answer_form_digits(const char **s, size_t n, size_t *point) {
  const char *dot = memchr(*s, '.', n);
  size_t whole = dot == NULL ? n : (size_t)(dot - *s);
  while (whole > 0 && **s == '0') ++*s, --whole, --n;
  if (dot != NULL)
    while ((*s)[n - 1] == '0') --n;
  if (n > 0 && (*s)[n - 1] == '.') --n;
  *point = whole;
  return n;
}

/* Whether two numbers, written as digits with at most one point, are the same. */
static inline int answer_form_same_number(const char *a, size_t n, const char *b, size_t m) {
  size_t whole_a, whole_b;
  n = answer_form_digits(&a, n, &whole_a);
  m = answer_form_digits(&b, m, &whole_b);
  return whole_a == whole_b && n == m && memcmp(a, b, n) == 0;
}

/* The answer with `number` in the place of one of its own, malloc'd; NULL if that is the same
 * number, or memory is short. */
static inline char *answer_form_changed(const answer_form *f, size_t place, const char *number) {
  size_t at = f->place[place].at, n = f->place[place].n, m = strlen(number);
  if (answer_form_same_number(f->text + at, n, number, m)) return NULL;
  char *out = malloc(strlen(f->text) - n + m + 1);
  if (out == NULL) return NULL;
  memcpy(out, f->text, at);
  memcpy(out + at, number, m);
  strcpy(out + at + m, f->text + at + n);
  return out;
}

#endif
