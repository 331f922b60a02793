/* Checks whether a response's final answer equals a reference answer in mathematics.
 *
 * The final answer is in the last \boxed{} (or \fbox{}) with balanced braces. Two answers are equal
 * if one of these holds after cleaning (below):
 *
 *   text       same characters except white space, case, and braces around one character
 *   value      both are numbers, or expressions of numbers, of the same value: integers, decimals,
 *              fractions, mixed numbers, powers, roots, pi, e, factorials, binomials, elementary
 *              functions. Values are exact fractions if 64 bits suffice, else numbers of 384 bits
 *              with an error bound. They must agree up to that bound whatever their size: no number
 *              is so small that it counts as 0. A percentage has two values: its number and a
 *              hundredth of it.
 *   rounding   a decimal of six or more places with five or more significant digits equals
 *              every fraction or expression that rounds to it: 0.333333 is 1/3, 0.333 is not. Two
 *              decimals are compared as written.
 *   formula    both have variables, and the same value at those of eight fixed points (of both
 *              signs and different sizes) where both have a value. A point where both are 0 does
 *              not count as agreement.
 *   equation   the same name with the same value (x = 5), or equal sides, also when exchanged, or
 *              proportional differences of the sides (2x = 10 and x = 5). An identity equals no
 *              other equation. Relations are equal if their sides are, also when reversed: x > 3
 *              and 3 < x.
 *   parts      lists and sets (any order), tuples, vectors and matrices (in order), intervals
 *              (brackets must agree), unions of intervals, values with labels (J: 4): part by
 *              part. 1,234 is tried as a number first.
 *   names      in lists of equations values belong to their names, in any order: a = 1, b = 2 is
 *              b = 2, a = 1 and (a, b) = (1, 2) and a, b = 1, 2. If the response has no names,
 *              values are matched by order: (1, 2) or 1, 2. If all names are the same, there are
 *              several answers for one name: x = 1 or x = 2 is x = 1, 2 and {1, 2}.
 *   choice     the reference is one letter A to J, in parentheses or not, perhaps with text
 *              after it ("(B) 12"), and the response is that letter, perhaps with text after
 *              it ("B: 12"). If both have text, the texts must be equal, too.
 *
 * If only one of the two answers is an equation, its right side is compared with the other answer.
 * In a reference this requires that the left side is a name ("x = 5", "f(2) = 5"). Of a chain a = b
 * = c the last part is used. But a chain whose numbers disagree (x = 2 + 4 = 5) equals nothing.
 * Numbers before \approx are not compared with those after it, which are rounded. Two chains of the
 * same length must also agree in the middle, except where one has a formula and the other a number.
 *
 * A function's argument without brackets ends before the next function, so \sin x\cos x is a
 * product; \sin^{-1} is the inverse function. f(..) and g(..), and any letter before a number in
 * parentheses, are unknown functions. A degree sign has a meaning only in the argument of a
 * trigonometric function.
 *
 * Cleaning removes: dollar signs, \left \right and sizes, LaTeX's spaces and styles, \text{} and
 * similar commands around words, units after a number, separators of thousands as in 1{,}234 or
 * 1,\!234. It replaces \dfrac and \tfrac by \frac, Unicode's minus, times, pi, ... by LaTeX's, the
 * words "and" and "or" by commas, and a \pm b by two answers. Of units only the exponents are
 * compared, if both answers have some: cm^2 and cm^3.
 *
 * Limits. The following are not equal although they are mathematically, unless the texts agree:
 *
 *   relations  2x > 6 and x > 3; a relation and its interval; chains (1 < x < 3) read from the
 *              other end or with parts written differently; x < 3 and x \le 3 are two answers
 *   ratios     1:2 and 2:4, 1/2 or "1 to 2"; times of day
 *   equations  those that differ by more than a constant factor or an exchange of sides: a/b = 2
 *              and a = 2b, x^2 = 1 and x = 1, -1; other systems with the same solutions
 *   sets       given by conditions, \mathbb{R}, {} and \emptyset, intersections, differences;
 *              {1, 1, 2} is not {1, 2}
 *   formulas   in differently named variables or indices; if only one side has a value at a
 *              positive point, or both have one at fewer than two points; x^2 + C and x^2; with
 *              commands that are neither variables nor functions, such as \mathbb{E}
 *   numbers    in another base (1010_2), complex (i is a variable: i^2 is not -1), modulo, floor,
 *              C(5, 2), unevaluated sums, integrals, limits and products; 1 000, 1000,5,
 *              0.\dot{3}; "2 x 3"; \log as a decimal logarithm (it is natural); \infty and inf;
 *              numbers in words; 1\frac{3}{2}, which may be a product or a mixed number
 *   precision  numbers that 384 bits cannot distinguish: 3^{10000} + 1, the sine of 10^{100};
 *              expressions with numbers of more than 100 digits; factorials above 10000
 *   vectors    a column, a tuple, \langle \rangle and \vec{i} + 2\vec{j} with the same numbers
 *   angles     \pi/3 and 60 degrees; other units for one quantity: 5 km and 5000 m
 *   words      different words with one meaning: "no solution" and \emptyset, yes and true
 *   sizes      more than twelve nested brackets and equations, lists of more than 32 parts,
 *              two \pm in one part, answers longer than ANSWER_MAX bytes, several boxes for one
 *              list, comparisons that would take longer than about ten milliseconds
 *
 * The following are equal although they may not be meant to be: 2+3 and 5 (simplification is not
 * required); 5 km and 5 m (units are not compared); 5 % and both 5 and 0.05; the interval (1, 2)
 * and the point; a list and a set or tuple of its parts; capitals and small letters.
 *
 * No function here returns an error, and no text takes longer than ten milliseconds. Comparing
 * numbers needs a few kilobytes of scratch memory; if there is none the process ends. Prefix:
 * answer_. */
#ifndef GEPOLAB_LLM_ANSWER_ANSWER_H
#define GEPOLAB_LLM_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum { ANSWER_MAX = 1024 };

typedef enum answer_pattern {
  ANSWER_BOXED,      /* only a boxed answer is found */
  ANSWER_LAST_NUMBER /* without a box, the last number of the text is found */
} answer_pattern;

/* Finds the final answer in text[size]: returns 1 with *found, *n inside text, or 0. */
bool answer_find(const char *text, size_t size, answer_pattern pattern, const char **found,
                 size_t *n);

/* 1 if response[m] is a correct answer for reference[n]. */
bool answer_equal(const char *reference, size_t n, const char *response, size_t m);

/* --- how an answer was read --- */

/* The text after cleaning and the kind of each of its parts, to explain a verdict. */
typedef enum answer_kind {
  ANSWER_NUMBER,
  ANSWER_FORMULA, /* a value that depends on variables */
  ANSWER_EQUATION,
  ANSWER_RELATION, /* <, >, \le, \ge, \ne */
  ANSWER_LABELLED, /* J: 4 */
  ANSWER_LIST,     /* parts without brackets */
  ANSWER_TUPLE,
  ANSWER_VECTOR,   /* \langle 1, 2 \rangle */
  ANSWER_INTERVAL, /* in brackets that no tuple has: [ ], ( ] or [ ) */
  ANSWER_SET,
  ANSWER_UNION,
  ANSWER_MATRIX,
  ANSWER_CHOICE, /* multiple choice: one letter A to J */
  ANSWER_TEXT,   /* compared as text only */
  ANSWER_KINDS
} answer_kind;

/* "number", "formula", ... */
const char *answer_kind_name(answer_kind kind);

enum { ANSWER_NODES = 128, ANSWER_VALUE_SIZE = 48, ANSWER_READING_SIZE = 4 * ANSWER_MAX };

/* A part of an answer. */
typedef struct answer_node {
  answer_kind kind;
  size_t depth;                    /* 0: the whole answer; 1: its parts; 2: their parts; ... */
  size_t begin, n;                 /* its position in the reading's text */
  size_t name_begin, name_n;       /* the name that a list assigns to it elsewhere; n 0: none */
  bool has_value;                  /* it is a number that a double can hold */
  double value;                    /* rounded */
  char written[ANSWER_VALUE_SIZE]; /* the value as text: an integer or fraction exactly, else 15
                                      digits */
} answer_node;

typedef struct answer_reading {
  char text[ANSWER_READING_SIZE + 1]; /* after cleaning; ends with a NUL that n does not count */
  size_t n;
  answer_node node[ANSWER_NODES]; /* [nodes], each part before its own parts */
  size_t nodes;
  bool is_cut_off; /* there are more parts than ANSWER_NODES */
} answer_reading;

/* Reads text[size] as answer_equal() does. An answer that is longer than ANSWER_MAX, or too long
 * after cleaning, is ANSWER_TEXT with an empty text. */
void answer_read(answer_reading *out, const char *text, size_t size);

#endif
