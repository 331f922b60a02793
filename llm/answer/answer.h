/* Whether a response's final answer is a reference answer, as mathematics answers are compared.
 *
 * The final answer stands in the last \boxed{} (or \fbox{}) with balanced braces. Two answers are
 * equal if one of these holds after cleaning (below):
 *
 *   text       same characters but for white space, case, and braces around one character
 *   value      both are numbers, or expressions of numbers, of the same value: integers, decimals,
 *              fractions, mixed numbers, powers, roots, pi, e, factorials, binomials, elementary
 *              functions; exact fractions where 64 bits hold them, else to 1e-12. A decimal of six
 *              or more places stands for every value that rounds to it: 0.333333 is 1/3, 0.333 is
 *              not. A percentage is both its number and a hundredth of it.
 *   formula    both hold variables and have the same value at four fixed points (to 1e-9), one of
 *              them negative, which tells equal polynomials and elementary functions from others
 *              without any algebra; equations have sides that are equal, or differ by a constant
 *              factor
 *   parts      lists and sets (any order), tuples and matrices (in order), intervals (brackets must
 *              agree), unions of intervals: part by part. 1,234 is tried as a number first.
 *   choice     the reference is one letter A to J, in parentheses or not, and the response is that
 *              letter, perhaps followed by ) . or : and more
 *
 * Of an equation compared with something that is none, the right side counts if the left is a name
 * ("x = 5", "f(2) = 5"), and on the response's side always; of a chain of equations what stands
 * last. Relations are equal if their sides are, also when turned round: x > 3 and 3 < x.
 *
 * Cleaning takes away: dollar signs, \left \right and sizes, LaTeX's spaces and styles, \text{} and
 * the like around words, units behind a number, degrees, thousands written 1{,}234 or 1,\!234; it
 * turns \dfrac and \tfrac into \frac, Unicode's minus, times, pi, ... into LaTeX's, "and" and "or"
 * into commas, and a \pm b into two answers.
 *
 * What it does not know. Not equal although mathematics would say so, unless the texts agree:
 *
 *   relations  2x > 6 and x > 3; a relation and its interval; chains (1 < x < 3) read from the
 *              other end or with parts written differently; x < 3 and x \le 3 are two answers
 *   ratios     1:2 and 2:4, 1/2 or "1 to 2"; times of day
 *   equations  those that differ by more than a constant factor or an exchange of sides: a/b = 2
 *              and a = 2b, x^2 = 1 and x = 1, -1; other systems of the same solutions
 *   sets       given by conditions, \mathbb{R}, {} and \emptyset, intersections, differences;
 *              {1, 1, 2} is not {1, 2}
 *   formulas   in differently named variables or indices; where only one side has a value at a
 *              positive point, or both have one at fewer than two points; x^2 + C and x^2
 *   numbers    in another base (1010_2), complex (i is a variable: i^2 is not -1), modulo, floor,
 *              C(5, 2), sums, integrals, limits and products left undone; 1 000, 1000,5,
 *              0.\dot{3}; "2 x 3"; \log as a decimal one (it is natural); \infty and inf;
 *              numbers in words
 *   vectors    a column and a tuple, \langle \rangle, \vec{i} + 2\vec{j}
 *   angles     \pi/3 and 60 degrees; other units for one quantity: 5 km and 5000 m
 *   words      other words for one thing: "no solution" and \emptyset, yes and true
 *   sizes      more than six brackets one in another, lists of more than 32 parts, two \pm in one
 *              part, answers longer than ANSWER_MAX bytes, several boxes for one list
 *
 * Equal although they may not be meant so: 2+3 and 5 (nobody asks whether an answer is simplified);
 * 5 km and 5 m (units are not compared); 5 % and both 5 and 0.05; the interval (1, 2) and the
 * point; a list and a set or tuple of its parts; capitals and small letters; formulas that agree to
 * 1e-9 at the four points.
 *
 * Nothing here allocates, fails or takes more than milliseconds, whatever the text. Prefix:
 * answer_.
 */
#ifndef GEPOLAB_LLM_ANSWER_ANSWER_H
#define GEPOLAB_LLM_ANSWER_ANSWER_H

#include <stddef.h>

enum { ANSWER_MAX = 1024 };

typedef enum answer_pattern {
  ANSWER_BOXED,      /* only what is boxed is an answer */
  ANSWER_LAST_NUMBER /* without a box, the last number of the text */
} answer_pattern;

/* The place of the final answer in text[size]: 1 and *found, *n inside text, or 0. */
int answer_find(const char *text, size_t size, answer_pattern pattern, const char **found,
                size_t *n);

/* 1 if response[m] is a right answer where reference[n] is. */
int answer_equal(const char *reference, size_t n, const char *response, size_t m);

#endif
