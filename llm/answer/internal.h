/* What the answer*.c files share. Private to them. */
#ifndef GEPOLAB_LLM_ANSWER_INTERNAL_H
#define GEPOLAB_LLM_ANSWER_INTERNAL_H

#include "llm/answer/answer.h"
#include "llm/answer/rational.h"

enum { ANSWER_TEXT_SIZE = 4 * ANSWER_MAX };

/* A cleaned answer. Commands keep their backslash; \{ and \} are braces that are shown, { and }
 * group; matrices stand between \begin and \end, their entries separated by , and their rows by ;
 */
typedef struct answer_text {
  char data[ANSWER_TEXT_SIZE];
  size_t n;
} answer_text;

/* Part of a text. */
typedef struct answer_span {
  const char *at;
  size_t n;
} answer_span;

/* Cleans text[size], size at most ANSWER_MAX. 0 if the result does not fit. */
int answer_clean(answer_text *out, const char *text, size_t size);

/* --- spans -------------------------------------------------------------------------------------
 */

/* Whether c is one of the characters of set; a NUL never is. */
int answer_is_any(char c, const char *set);
int answer_is_space(char c);
int answer_is_digit(char c);
int answer_is_letter(char c);
answer_span answer_trim(answer_span s);
/* Whether s begins with the text. */
int answer_starts(answer_span s, const char *text);
/* The word after the backslash that s begins with: its length, 0 if there is none. */
size_t answer_command(answer_span s);
/* Whether s is the text, case apart. */
int answer_is(answer_span s, const char *text);

/* --- names --------------------------------------------------------------------------------------
 */

typedef enum answer_name {
  ANSWER_DROPPED, /* means nothing: \left, \displaystyle */
  ANSWER_SPACE,
  ANSWER_WORDS, /* \text and the like, which may hold a unit */
  ANSWER_STYLE, /* \textbf and the like */
  ANSWER_BEGIN,
  ANSWER_END,
  ANSWER_OTHER
} answer_name;

/* What the command of that name (without its backslash) is. */
answer_name answer_name_of(answer_span name);
/* What a command is written as; NULL: as it is. */
const char *answer_renamed(answer_span name);
/* What the Unicode character that s begins with is written as, and its bytes; NULL: as it is. */
const char *answer_symbol(answer_span s, size_t *length);
/* A plain word that stands behind a number as its unit. */
int answer_is_unit(answer_span word);
/* The contents of a \text that are no unit although they look like one. */
int answer_is_no_unit(answer_span words_inside);
int answer_is_matrix(answer_span environment);

/* --- values ------------------------------------------------------------------------------------
 */

/* At the last point all variables are negative, at the others positive. */
enum { ANSWER_POINTS = 4, ANSWER_NEGATIVE_POINT = 3 };

typedef struct answer_value {
  int exact; /* q holds the value; x always does */
  rational q;
  double x;
  int has_variables;
  int places; /* decimal places of a bare decimal number; -1: it is none */
} answer_value;

answer_value answer_of_rational(rational q);
answer_value answer_of_double(double x);
/* a + b, a - b, a * b or a / b. */
answer_value answer_apply(char operation, answer_value a, answer_value b);
/* a^b; roots of perfect powers of small index stay exact, odd roots of negative numbers are real.
 */
answer_value answer_power(answer_value a, answer_value b);
/* NaN where they are not defined. */
answer_value answer_factorial(answer_value a);
answer_value answer_binomial(answer_value n, answer_value k);

/* The value of an expression with its variables at point 0 .. ANSWER_POINTS - 1. 0 if it is none,
 * or has no finite value. A comma between thousands is taken only at the outermost level. */
int answer_evaluate(answer_value *out, answer_span s, int point);

/* --- comparing ----------------------------------------------------------------------------------
 */

/* Same characters but for case, white space that is not between digits, a plus in front, and braces
 * around one character. */
int answer_same_text(answer_span a, answer_span b);
/* Both have a value and it is the same: of numbers and percentages, or of formulas at all points.
 */
int answer_same_value(answer_span a, answer_span b);
/* |x - y| within the share of the larger. */
int answer_nearly(double x, double y, double tolerance);

#endif
