/* How the answer checker reads an answer: its text after cleaning, and what each part of it is
 * taken for. For people who wonder about a verdict; the verdict itself is answer_equal()'s.
 *
 * Nothing here allocates. Prefix: answer_. */
#ifndef GEPOLAB_LLM_ANSWER_READ_H
#define GEPOLAB_LLM_ANSWER_READ_H

#include "llm/answer/answer.h"

#include <stddef.h>

typedef enum answer_kind {
  ANSWER_NUMBER,
  ANSWER_FORMULA, /* a value that depends on variables */
  ANSWER_EQUATION,
  ANSWER_RELATION, /* <, >, \le, \ge, \ne */
  ANSWER_LABELLED, /* J: 4 */
  ANSWER_LIST,     /* parts without brackets */
  ANSWER_TUPLE,
  ANSWER_VECTOR,   /* \langle 1, 2 \rangle */
  ANSWER_INTERVAL, /* in brackets that are no tuple's */
  ANSWER_SET,
  ANSWER_UNION,
  ANSWER_MATRIX,
  ANSWER_CHOICE, /* one letter A to J */
  ANSWER_TEXT,   /* what is compared as text only */
  ANSWER_KINDS
} answer_kind;

/* "number", "formula", ... */
const char *answer_kind_name(answer_kind kind);

enum { ANSWER_NODES = 128, ANSWER_VALUE_SIZE = 48, ANSWER_READING_SIZE = 4 * ANSWER_MAX };

/* A part of an answer. */
typedef struct answer_node {
  answer_kind kind;
  size_t depth;    /* 0: all of it; 1: its parts; 2: their parts; ... */
  size_t begin, n; /* its place in the reading's text */
  size_t name_begin,
      name_n;    /* of what a list gives the value without writing it there; n 0: none */
  int has_value; /* it is a number that a double holds */
  double value;  /* rounded */
  char
      written[ANSWER_VALUE_SIZE]; /* the same: a whole number or fraction exactly, else 15 digits */
} answer_node;

typedef struct answer_reading {
  char text[ANSWER_READING_SIZE + 1]; /* after cleaning, ends with a NUL that n does not count */
  size_t n;
  answer_node node[ANSWER_NODES]; /* [nodes] each part before its own parts */
  size_t nodes;
  int is_cut_off; /* there are more parts than ANSWER_NODES */
} answer_reading;

/* Reads text[size] as answer_equal() does. An answer longer than ANSWER_MAX, or that cleaning
 * cannot hold, is ANSWER_TEXT with an empty text. */
void answer_read(answer_reading *out, const char *text, size_t size);

#endif
