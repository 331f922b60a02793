/* Arithmetic expressions as a model writes them: whole numbers, + - * /, parentheses and white
 * space; no signs in front of a number. Values are exact fractions. Whatever the text, reading it
 * takes time linear in its length and a bounded stack. Prefix: expression_. */
#ifndef GEPOLAB_LLM_TASK_EXPRESSION_H
#define GEPOLAB_LLM_TASK_EXPRESSION_H

#include "llm/answer/value.h"

#include <stddef.h>

enum { EXPRESSION_MAX_NUMBERS = 32, EXPRESSION_MAX_DEPTH = 32 };

typedef enum expression_status {
  EXPRESSION_OK,
  EXPRESSION_SYNTAX,   /* not an expression */
  EXPRESSION_DEEP,     /* parentheses deeper than EXPRESSION_MAX_DEPTH */
  EXPRESSION_MANY,     /* more than EXPRESSION_MAX_NUMBERS numbers */
  EXPRESSION_DIVISION, /* by zero */
  EXPRESSION_OVERFLOW  /* a number or a step that 64-bit fractions cannot hold */
} expression_status;

typedef struct expression {
  rational value;
  int64_t number[EXPRESSION_MAX_NUMBERS]; /* as they stand, left to right */
  size_t n_numbers;
} expression;

/* Reads all of text[size]. *out is meaningful only after EXPRESSION_OK. */
expression_status expression_read(expression *out, const char *text, size_t size);

#endif
