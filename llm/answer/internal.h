/* Shared by the files of the answer checker only. */
#ifndef GEPOLAB_LLM_ANSWER_INTERNAL_H
#define GEPOLAB_LLM_ANSWER_INTERNAL_H

#include "llm/answer/answer.h"
#include "llm/answer/arithmetic.h"

#include <string.h>

/* A part of a text, borrowed. */
typedef struct answer_span {
  const char *at;
  size_t n;
} answer_span;

enum { ANSWER_TEXT_SIZE = 4 * ANSWER_MAX };

/* A cleaned answer. Commands keep their backslash. \{ and \} are printed braces, { and } group.
 * Matrices are between \begin and \end, their entries separated by , and their rows by ; A degree
 * sign follows a number only if the text has a trigonometric function. */
typedef struct answer_text {
  char data[ANSWER_TEXT_SIZE];
  size_t n;
  uint64_t unit_powers; /* a hash of the exponents of removed units; 0: none */
} answer_text;

/* Cleans text[size], size at most ANSWER_MAX. Returns 0 if the result does not fit. */
bool answer_clean(answer_text *out, const char *text, size_t size);
/* Returns s without units in plain words at its end, if a number remains before them. */
answer_span answer_without_unit(answer_span s);

/* --- spans --- */

/* True if c is one of the characters of set; never true for a NUL. */
static inline bool answer_is_any(char c, const char *set) {
  return c != '\0' && strchr(set, c) != NULL;
}

static inline bool answer_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool answer_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static inline bool answer_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline answer_span answer_trim(answer_span s) {
  while (s.n > 0 && answer_is_space(*s.at)) ++s.at, --s.n;
  while (s.n > 0 && answer_is_space(s.at[s.n - 1])) --s.n;
  return s;
}

/* True if s begins with the text. */
static inline bool answer_starts(answer_span s, const char *text) {
  size_t n = strlen(text);
  return s.n >= n && memcmp(s.at, text, n) == 0;
}

/* Number of consecutive letters, or digits, of s from position `from` on. */
static inline size_t answer_count_letters(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_letter(s.at[from + n])) ++n;
  return n;
}

/* The length of the command's name after the backslash at the beginning of s, 0 if there is none.
 */
static inline size_t answer_command(answer_span s) {
  return s.n > 0 && *s.at == '\\' ? answer_count_letters(s, 1) : 0;
}

static inline size_t answer_count_digits(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_digit(s.at[from + n])) ++n;
  return n;
}

static inline char answer_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* True if s equals the text, ignoring case. */
static inline bool answer_is(answer_span s, const char *text) {
  if (s.n != strlen(text)) return false;
  for (size_t i = 0; i < s.n; ++i)
    if (answer_lower(s.at[i]) != text[i]) return false;
  return true;
}

/* --- names --- */

/* True for a plain word that is a unit after a number. */
bool answer_is_unit(answer_span word);
/* True for the name of a command (without backslash) that denotes a variable, such as a Greek
 * letter. */
bool answer_is_variable(answer_span name);
/* True for the name of a command that makes a variable of the following letter, such as vec. */
bool answer_is_accent(answer_span name);

/* --- values --- */

/* The points at which formulas are evaluated. Variables are between 0.2 and 3 at the first three,
 * below 0 at ANSWER_NEGATIVE and ANSWER_FAR_NEGATIVE, about 100 at ANSWER_FAR, and close to 1 at
 * the last two. The last two distinguish polynomials whose degree makes their values too large
 * elsewhere. */
enum {
  ANSWER_NEGATIVE = 3,
  ANSWER_FAR,
  ANSWER_FAR_NEGATIVE,
  ANSWER_NEAR_ONE,
  ANSWER_POINTS = ANSWER_NEAR_ONE + 2
};

/* The remaining work for one pair of answers, and the depth of the comparison. Answers that need
 * more work count as different, so that no text takes long. A unit is at most a microsecond. */
typedef struct answer_budget {
  long left;
  int depth;
} answer_budget;

typedef enum answer_known {
  ANSWER_NO_EXPRESSION, /* does not match the grammar in evaluate.c */
  ANSWER_NO_VALUE,      /* a division by zero, or similar */
  ANSWER_UNSURE,        /* exceeds the precision or the budget */
  ANSWER_KNOWN
} answer_known;

/* The value of an expression with its variables at point 0 .. ANSWER_POINTS - 1. *out is a number
 * only if the result is ANSWER_KNOWN; its has_variables, places and digits are always set. A comma
 * between thousands is accepted only at the outermost level. */
answer_known answer_evaluate(answer_value *out, answer_span s, int point, answer_budget *budget);

/* --- comparing --- */
/* In every function a is the reference and b the response. */

/* Removes a percent sign from the end of s; returns whether there was one. */
bool answer_take_percent(answer_span *s);
/* True if two answers are equal by any rule except that for choices. */
bool answer_same(answer_span a, answer_span b, answer_budget *budget);

/* --- parts --- */

enum { ANSWER_PARTS = 32 };

/* The brackets around a whole answer. */
typedef enum answer_enclosure {
  ANSWER_NO_BRACKETS,
  ANSWER_ROUND,      /* ( ) */
  ANSWER_ANGLE,      /* \langle \rangle */
  ANSWER_SQUARE,     /* [ ] */
  ANSWER_OPEN_LEFT,  /* ( ] */
  ANSWER_OPEN_RIGHT, /* [ ) */
  ANSWER_BRACES,
  ANSWER_ARRAY
} answer_enclosure;

/* Splits s at the separators outside of all brackets. Returns the number of parts; 0 if there are
 * more than ANSWER_PARTS or brackets do not match. A separator is a character of `at`, or the
 * command `at`. */
size_t answer_split(answer_span s, const char *at, answer_span part[ANSWER_PARTS]);
/* The brackets around all of s, and the text inside. Braces with commas are read as a set whose
 * backslashes are missing. */
answer_enclosure answer_enclosed(answer_span s, answer_span *inside);

/* A single value or several: x; 1, 2; {1, 2}; a=1, b=2; x=1, 2; x, y = 1, 2; (x, y) = (1, 2). */
typedef struct answer_list {
  answer_enclosure kind;
  size_t n;
  bool named;    /* every part has a name */
  bool nameless; /* no part has a name, and none is an equation */
  struct {
    answer_span text;
    answer_span name; /* x in x=1; empty: the part has no name */
    bool has_sign;    /* the text includes the name and the equals sign */
  } part[ANSWER_PARTS];
} answer_list;

/* Returns 0 if brackets do not match or there are too many parts. thousands 1: a comma between a
 * digit and three digits, without a space, does not separate parts. */
bool answer_list_read(answer_list *out, answer_span s, bool thousands);

/* --- equations --- */

/* Writes the sides of an equation, or of a chain, into side, and returns their number. For anything
 * else, and for a list of several, the only side is s. Returns 0 if brackets do not match or there
 * are too many. *rounded (may be NULL): index of the side after the last \approx, or 0. */
size_t answer_sides(answer_span s, answer_span side[ANSWER_PARTS], size_t *rounded);
/* Writes the two sides of a relation into side, the smaller one first. Returns its sign: "<", "le"
 * or "ne"; NULL if s has no such sign, or several. */
const char *answer_relation(answer_span s, answer_span side[2]);
/* True if s is a label with its value, J: 4, which are written to side. */
bool answer_label(answer_span s, answer_span side[ANSWER_PARTS]);

#endif
