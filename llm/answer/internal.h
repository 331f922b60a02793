/* Shared by the files of the answer checker, and by no others. */
#ifndef GEPOLAB_LLM_ANSWER_INTERNAL_H
#define GEPOLAB_LLM_ANSWER_INTERNAL_H

#include "llm/answer/answer.h"
#include "llm/answer/value.h"

#include <string.h>

/* Part of a text. */
typedef struct answer_span {
  const char *at;
  size_t n;
} answer_span;

enum { ANSWER_TEXT_SIZE = 4 * ANSWER_MAX };

/* A cleaned answer. Commands keep their backslash; \{ and \} are braces that are shown, { and }
 * group; matrices are between \begin and \end, their entries separated by , and their rows by ;
 * A degree sign follows a number only where the text has a trigonometric function. */
typedef struct answer_text {
  char data[ANSWER_TEXT_SIZE];
  size_t n;
  uint64_t unit_powers; /* a hash of the exponents of units that were taken away; 0: none */
} answer_text;

/* The form of an answer that is compared: the text cleaned, each \pm made two parts. 0 if there is
 * nothing, or more than ANSWER_MAX bytes, or the result does not fit. */
bool answer_prepare(answer_text *out, answer_span text);
/* Cleans text[size], size at most ANSWER_MAX. 0 if the result does not fit. */
bool answer_clean(answer_text *out, const char *text, size_t size);
/* s without units written as plain words at its end, if a number is left in front of them. */
answer_span answer_without_unit(answer_span s);

/* --- spans --- */

/* Whether c is one of the characters of set; a NUL never is. */
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

/* Whether s begins with the text. */
static inline bool answer_starts(answer_span s, const char *text) {
  size_t n = strlen(text);
  return s.n >= n && memcmp(s.at, text, n) == 0;
}

/* How many letters, or digits, s has from its place `from` on without a gap. */
static inline size_t answer_count_letters(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_letter(s.at[from + n])) ++n;
  return n;
}

/* The word after the backslash that s begins with: its length, 0 if there is none. */
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

/* Whether s is the text, case apart. */
static inline bool answer_is(answer_span s, const char *text) {
  if (s.n != strlen(text)) return false;
  for (size_t i = 0; i < s.n; ++i)
    if (answer_lower(s.at[i]) != text[i]) return false;
  return true;
}

/* --- names --- */

typedef enum answer_name {
  ANSWER_DROPPED, /* means nothing: \left, \displaystyle */
  ANSWER_SPACE,
  ANSWER_WORDS, /* \text and the like, which may hold a unit */
  ANSWER_STYLE, /* \textbf and the like */
  ANSWER_BEGIN,
  ANSWER_END,
  ANSWER_OTHER
} answer_name;

/* The class of the command of that name (without its backslash). */
answer_name answer_name_of(answer_span name);
/* The LaTeX command that is read in place of the one of that name (\frac for dfrac); NULL if it
 * keeps its own. */
const char *answer_renamed(answer_span name);
/* The LaTeX command that is read in place of the Unicode character at the beginning of s (\pi for
 * the Greek letter), and the character's length in bytes; NULL if it is read as it is. */
const char *answer_symbol(answer_span s, size_t *length);
/* A plain word that follows a number as its unit. */
bool answer_is_unit(answer_span word);
/* The contents of a \text that are no unit although they look like one. */
bool answer_is_no_unit(answer_span words_inside);
bool answer_is_matrix(answer_span environment);
/* sin, cos, tan, cot, sec, csc: what takes an angle. */
bool answer_is_trigonometric(answer_span name);
/* The name of a command (without its backslash) that denotes a variable, as Greek letters do. */
bool answer_is_variable(answer_span name);
/* The name of a command that makes a variable of the letter behind it, such as vec. */
bool answer_is_accent(answer_span name);

/* --- values --- */

/* Where the variables of a formula are set: between 0.2 and 3 at the first three, below 0 at
 * ANSWER_NEGATIVE and ANSWER_FAR_NEGATIVE, about 100 at ANSWER_FAR, next to 1 at the last two,
 * which still distinguish polynomials of a degree whose values are out of reach elsewhere. */
enum {
  ANSWER_NEGATIVE = 3,
  ANSWER_FAR,
  ANSWER_FAR_NEGATIVE,
  ANSWER_NEAR_ONE,
  ANSWER_POINTS = ANSWER_NEAR_ONE + 2
};

/* How much may still be computed for one pair of answers, and how deep the comparison is. What
 * needs more work is not equal, so that no text takes long. A unit is a microsecond or less. */
typedef struct answer_budget {
  long left;
  int depth;
} answer_budget;
enum { ANSWER_WORK = 10000 };

typedef enum answer_known {
  ANSWER_NO_EXPRESSION, /* not of the grammar in evaluate.c */
  ANSWER_NO_VALUE,      /* divides by zero, or the like */
  ANSWER_UNSURE,        /* beyond the precision, or the work, that is spent */
  ANSWER_KNOWN
} answer_known;

/* The value of an expression with its variables at point 0 .. ANSWER_POINTS - 1. Only if it is
 * ANSWER_KNOWN is *out a number; its has_variables, places and digits are set in any case. A comma
 * between thousands is taken only at the outermost level. */
answer_known answer_evaluate(answer_value *out, answer_span s, int point, answer_budget *budget);

/* --- comparing --- */
/* In every function the reference is a, the response b.
 */

/* Same characters but for case, white space that is not between digits, a plus in front, and braces
 * around one character. */
bool answer_same_text(answer_span a, answer_span b);
/* Both have a value and it is the same: of numbers and percentages, or of formulas at all points.
 */
bool answer_same_value(answer_span a, answer_span b, answer_budget *budget);
/* Takes a percent sign off the end of s: whether there is one. */
bool answer_take_percent(answer_span *s);
/* Whether s is one letter A to J, perhaps in parentheses or with more behind ) or . */
bool answer_is_choice(answer_span s);
/* Everything that can make two answers equal, but for choices. */
bool answer_same(answer_span a, answer_span b, answer_budget *budget);

/* --- parts --- */

enum { ANSWER_PARTS = 32 };

/* The brackets around all of an answer. */
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

/* Cuts s at the separators outside of all brackets: the number of parts, 0 if there are more than
 * ANSWER_PARTS or brackets do not match. A separator is a character of `at`, or the command `at`.
 */
size_t answer_split(answer_span s, const char *at, answer_span part[ANSWER_PARTS]);
/* The brackets around all of s, and the text inside. Braces with commas are a set whose backslashes
 * were forgotten. */
answer_enclosure answer_enclosed(answer_span s, answer_span *inside);

/* One thing or several: x; 1, 2; {1, 2}; a=1, b=2; x=1, 2; x, y = 1, 2; (x, y) = (1, 2). */
typedef struct answer_list {
  answer_enclosure kind;
  size_t n;
  bool named;    /* every part has a name */
  bool nameless; /* no part has, and none is an equation */
  struct {
    answer_span text;
    answer_span name; /* of what the part gives the value; empty: it has none */
    bool has_sign;    /* the text holds the name and the = itself */
  } part[ANSWER_PARTS];
} answer_list;

/* 0 if brackets do not match or there are too many parts. thousands: a comma between a digit and
 * three digits, without a space, separates no parts. */
bool answer_list_read(answer_list *out, answer_span s, bool thousands);

/* --- equations --- */

/* Whether s can be the left side of an = that only names the right side: x, x_1, f(2), (x, y),
 * \theta. */
bool answer_is_name(answer_span s);
/* The sides of an equation, or of a chain of them, into side: how many; s alone if it is no
 * equation or a list of several; 0 if brackets do not match or there are too many. *rounded, which
 * may be NULL, is the place of the side behind the last \approx, or 0 if there is none. */
size_t answer_sides(answer_span s, answer_span side[ANSWER_PARTS], size_t *rounded);
/* The two sides of a relation, the smaller one first, into side. Its sign: "<", "le" or "ne"; NULL
 * if s has no such sign, or several. */
const char *answer_relation(answer_span s, answer_span side[2]);
/* Whether s is a label with its value, J: 4, which are then in side. */
bool answer_label(answer_span s, answer_span side[ANSWER_PARTS]);
/* Two single answers of which at least one is an equation, a relation, or a value with a label. */
bool answer_same_equation(answer_span a, answer_span b, answer_budget *budget);
bool answer_same_relation(answer_span a, answer_span b, answer_budget *budget);
bool answer_same_label(answer_span a, answer_span b, answer_budget *budget);
/* Two equations given as their sides, n and m of them, at least two each. */
bool answer_same_sides(const answer_span *a, size_t n, const answer_span *b, size_t m,
                       answer_budget *budget);

#endif
