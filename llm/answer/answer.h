/* Whether a response's final answer is a reference answer, as mathematics answers are compared.
 *
 * The final answer is in the last \boxed{} (or \fbox{}) with balanced braces. Two answers are
 * equal if one of these holds after cleaning (below):
 *
 *   text       same characters but for white space, case, and braces around one character
 *   value      both are numbers, or expressions of numbers, of the same value: integers, decimals,
 *              fractions, mixed numbers, powers, roots, pi, e, factorials, binomials, elementary
 *              functions. Values are exact fractions where 64 bits hold them, else numbers of 384
 *              bits with a bound of their error, and must agree up to that bound whatever their
 *              size: no number is so small that it counts as 0. A percentage is both its number
 *              and a hundredth of it.
 *   rounding   a decimal of six or more places with five or more significant digits equals
 *              every fraction or expression that rounds to it: 0.333333 is 1/3, 0.333 is not. Two
 *              decimals are compared as written.
 *   formula    both hold variables and have the same value at eight fixed points of both signs
 *              and different sizes, wherever both have one; a point where
 *              both are 0 does not count as agreement
 *   equation   the same name with the same value (x = 5), or sides that are equal, also when
 *              exchanged, or whose differences are proportional (2x = 10 and x = 5). An identity
 *              is equal to no other equation. Relations are equal if their sides are, also when
 *              turned round: x > 3 and 3 < x.
 *   parts      lists and sets (any order), tuples, vectors and matrices (in order), intervals
 *              (brackets must agree), unions of intervals, values with labels (J: 4): part by
 *              part. 1,234 is tried as a number first.
 *   names      in lists of equations values belong to their names, in any order: a = 1, b = 2 is
 *              b = 2, a = 1 and (a, b) = (1, 2) and a, b = 1, 2. If the response has no names, the
 *              order tells which is which: (1, 2) or 1, 2. If all names are the same, they say
 *              only that there are several answers: x = 1 or x = 2 is x = 1, 2 and {1, 2}.
 *   choice     the reference is one letter A to J, in parentheses or not, perhaps with text
 *              behind it ("(B) 12"), and the response is that letter, perhaps with text behind
 *              it ("B: 12").
 *              If both have more, that must be equal, too.
 *
 * If only one of the two answers is an equation, its right side is compared with the other answer:
 * in the reference only where its left side is a name ("x = 5", "f(2) = 5"), in the response
 * always. Of a chain a = b = c the last part is taken. But a chain whose numbers disagree (x = 2 +
 * 4 = 5) is equal to nothing; numbers before \approx are not compared with those behind it, which
 * are rounded. Two chains of one length must agree in the middle, too, except where one has a
 * formula and the other a number.
 *
 * An argument of a function without brackets ends before the next function, so \sin x\cos x is a
 * product; \sin^{-1} is the inverse function. f(..) and g(..), and any letter before a number in
 * parentheses, are functions of which nothing else is known. A degree sign counts in the argument
 * of a trigonometric function and nowhere else.
 *
 * Cleaning removes: dollar signs, \left \right and sizes, LaTeX's spaces and styles, \text{} and
 * the like around words, units behind a number, thousands written 1{,}234 or 1,\!234; it turns
 * \dfrac and \tfrac into \frac, Unicode's minus, times, pi, ... into LaTeX's, the words "and" and
 * "or" into commas, and a \pm b into two answers. Of units only their exponents are compared, where
 * both answers have some: cm^2 and cm^3.
 *
 * Limits. These are not equal, although mathematics would say so, unless the texts agree:
 *
 *   relations  2x > 6 and x > 3; a relation and its interval; chains (1 < x < 3) read from the
 *              other end or with parts written differently; x < 3 and x \le 3 are two answers
 *   ratios     1:2 and 2:4, 1/2 or "1 to 2"; times of day
 *   equations  those that differ by more than a constant factor or an exchange of sides: a/b = 2
 *              and a = 2b, x^2 = 1 and x = 1, -1; other systems of the same solutions
 *   sets       given by conditions, \mathbb{R}, {} and \emptyset, intersections, differences;
 *              {1, 1, 2} is not {1, 2}
 *   formulas   in differently named variables or indices; where only one side has a value at a
 *              positive point, or both have one at fewer than two points; x^2 + C and x^2; with
 *              commands that are neither variables nor functions, such as \mathbb{E}
 *   numbers    in another base (1010_2), complex (i is a variable: i^2 is not -1), modulo, floor,
 *              C(5, 2), sums, integrals, limits and products left undone; 1 000, 1000,5,
 *              0.\dot{3}; "2 x 3"; \log as a decimal one (it is natural); \infty and inf;
 *              numbers in words; 1\frac{3}{2}, which may be a product or a mixed number
 *   precision  what 384 bits cannot tell from its neighbours: 3^{10000} + 1, the sine of 10^{100};
 *              expressions with numbers of more than 100 digits; factorials above 10000
 *   vectors    a column, a tuple, \langle \rangle and \vec{i} + 2\vec{j} with the same numbers
 *   angles     \pi/3 and 60 degrees; other units for one quantity: 5 km and 5000 m
 *   words      other words for one thing: "no solution" and \emptyset, yes and true
 *   sizes      more than twelve brackets and equations one in another, lists of more than 32 parts,
 *              two \pm in one part, answers longer than ANSWER_MAX bytes, several boxes for one
 *              list, what would take longer than about ten milliseconds to compare
 *
 * Equal although they may not be meant so: 2+3 and 5 (nobody asks whether an answer is simplified);
 * 5 km and 5 m (units are not compared); 5 % and both 5 and 0.05; the interval (1, 2) and the
 * point; a list and a set or tuple of its parts; capitals and small letters.
 *
 * Nothing here fails, and no text takes longer than that. Numbers need a few kilobytes of scratch
 * space while two answers are compared; the process ends where there is none. Prefix: answer_.
 */
#ifndef GEPOLAB_LLM_ANSWER_ANSWER_H
#define GEPOLAB_LLM_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum { ANSWER_MAX = 1024 };

typedef enum answer_pattern {
  ANSWER_BOXED,      /* only what is boxed is an answer */
  ANSWER_LAST_NUMBER /* without a box, the last number of the text */
} answer_pattern;

/* The place of the final answer in text[size]: 1 and *found, *n inside text, or 0. */
bool answer_find(const char *text, size_t size, answer_pattern pattern, const char **found,
                 size_t *n);

/* 1 if response[m] is a right answer where reference[n] is. */
bool answer_equal(const char *reference, size_t n, const char *response, size_t m);

/* --- how an answer was read --- */

/* The text after cleaning, and what each part of it is taken for: for people who wonder about a
 * verdict. */
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
      name_n;     /* of what a list gives the value without writing it there; n 0: none */
  bool has_value; /* it is a number that a double holds */
  double value;   /* rounded */
  char
      written[ANSWER_VALUE_SIZE]; /* the same: a whole number or fraction exactly, else 15 digits */
} answer_node;

typedef struct answer_reading {
  char text[ANSWER_READING_SIZE + 1]; /* after cleaning, ends with a NUL that n does not count */
  size_t n;
  answer_node node[ANSWER_NODES]; /* [nodes] each part before its own parts */
  size_t nodes;
  bool is_cut_off; /* there are more parts than ANSWER_NODES */
} answer_reading;

/* Reads text[size] as answer_equal() does. An answer longer than ANSWER_MAX, or that cleaning
 * cannot hold, is ANSWER_TEXT with an empty text. */
void answer_read(answer_reading *out, const char *text, size_t size);

#endif
