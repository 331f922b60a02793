/* Spans, and the names that cleaning knows: LaTeX's commands, Unicode's symbols, units. */
#include "llm/answer/internal.h"

#include <string.h>

/* --- spans --- */

int answer_is_any(char c, const char *set) {
  return c != '\0' && strchr(set, c) != NULL;
}

int answer_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

int answer_is_digit(char c) {
  return c >= '0' && c <= '9';
}

int answer_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

answer_span answer_trim(answer_span s) {
  while (s.n > 0 && answer_is_space(*s.at)) ++s.at, --s.n;
  while (s.n > 0 && answer_is_space(s.at[s.n - 1])) --s.n;
  return s;
}

int answer_starts(answer_span s, const char *text) {
  size_t n = strlen(text);
  return s.n >= n && memcmp(s.at, text, n) == 0;
}

size_t answer_command(answer_span s) {
  return s.n > 0 && *s.at == '\\' ? answer_count_letters(s, 1) : 0;
}

size_t answer_count_letters(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_letter(s.at[from + n])) ++n;
  return n;
}

size_t answer_count_digits(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_digit(s.at[from + n])) ++n;
  return n;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int answer_is(answer_span s, const char *text) {
  if (s.n != strlen(text)) return 0;
  for (size_t i = 0; i < s.n; ++i)
    if (lower(s.at[i]) != text[i]) return 0;
  return 1;
}

static int is_one_of(answer_span s, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (answer_is(s, names[i])) return 1;
  return 0;
}

#define IS_ONE_OF(span, names) is_one_of(span, names, sizeof(names) / sizeof *(names))

static const char *const dropped[] = {
    "left",  "right",        "big",       "bigl",        "bigr",   "bigg",      "biggl",
    "biggr", "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits",  "boxed",
    "fbox",  "ensuremath",   "rm",        "bf",          "it",     "mathstrut", "strut"};
static const char *const spaces[] = {"quad", "qquad", "thinspace", "enspace", "space", "newline"};
/* Around words, and around units. */
static const char *const words[] = {"text",   "textrm",     "mbox",  "hbox",
                                    "mathrm", "textnormal", "textup"};
static const char *const styles[] = {"textbf", "textit", "mathbf",       "mathit",     "mathsf",
                                     "mathtt", "texttt", "operatorname", "boldsymbol", "bm"};

static const struct {
  const char *from, *to;
} renamed[] = {{"dfrac", "\\frac"},
               {"tfrac", "\\frac"},
               {"cfrac", "\\frac"},
               {"cdot", "*"},
               {"times", "*"},
               {"ast", "*"},
               {"div", "/"},
               {"leq", "\\le"},
               {"leqslant", "\\le"},
               {"geq", "\\ge"},
               {"geqslant", "\\ge"},
               {"neq", "\\ne"},
               {"lt", "<"},
               {"gt", ">"},
               {"lbrace", "\\{"},
               {"rbrace", "\\}"},
               {"lbrack", "["},
               {"rbrack", "]"},
               {"lparen", "("},
               {"rparen", ")"},
               {"lvert", "|"},
               {"rvert", "|"},
               {"vert", "|"},
               {"mid", "|"},
               {"varnothing", "\\emptyset"},
               {"degree", "\xc2\xb0"},
               {"approx", "\\approx"},
               {"in", "="},
               {"dots", "..."},
               {"ldots", "..."},
               {"cdots", "..."},
               {"colon", ":"},
               {"dbinom", "\\binom"},
               {"tbinom", "\\binom"},
               {"land", ","},
               {"lor", ","}};

static const struct {
  const char *from, *to;
} symbols[] = {{"−", "-"},
               {"–", "-"},
               {"—", "-"},
               {"×", "*"},
               {"·", "*"},
               {"⋅", "*"},
               {"÷", "/"},
               {"π", "\\pi "},
               {"√", "\\sqrt "},
               {"∞", "\\infty "},
               {"∪", "\\cup "},
               {"≤", "\\le "},
               {"≥", "\\ge "},
               {"≠", "\\ne "},
               {"±", "\\pm "},
               {"°", "\xc2\xb0"},
               {"²", "^2"},
               {"³", "^3"},
               {"∅", "\\emptyset "},
               {"∈", "="},
               {"≈", "\\approx "},
               {"½", "(1/2)"},
               {"¼", "(1/4)"},
               {"¾", "(3/4)"},
               {"⁄", "/"},
               {"∕", "/"},
               {"，", ","},
               {"θ", "\\theta "},
               {"α", "\\alpha "},
               {"β", "\\beta "},
               {"…", "..."},
               {"€", ""},
               {"£", ""},
               {"“", ""},
               {"”", ""},
               {"\xc2\xa0", " "}};

/* Words that stand behind a number as its unit. */
static const char *const units[] = {
    "mm",         "cm",         "dm",          "km",          "m",        "meter",    "meters",
    "metre",      "metres",     "mile",        "miles",       "mi",       "inch",     "inches",
    "foot",       "feet",       "ft",          "yard",        "yards",    "yd",       "kilometer",
    "kilometers", "centimeter", "centimeters", "millimeters", "g",        "kg",       "mg",
    "gram",       "grams",      "kilogram",    "kilograms",   "pound",    "pounds",   "lb",
    "lbs",        "ounce",      "ounces",      "oz",          "ton",      "tons",     "s",
    "sec",        "second",     "seconds",     "min",         "minute",   "minutes",  "h",
    "hr",         "hrs",        "hour",        "hours",       "day",      "days",     "week",
    "weeks",      "month",      "months",      "year",        "years",    "dollar",   "dollars",
    "cent",       "cents",      "euro",        "euros",       "degree",   "degrees",  "radian",
    "radians",    "rad",        "mph",         "kph",         "unit",     "units",    "square",
    "sq",         "cubic",      "cu",          "per",         "liter",    "liters",   "litre",
    "litres",     "l",          "ml",          "gallon",      "gallons",  "percent",  "pct",
    "percentage", "point",      "points",      "digit",       "digits",   "way",      "ways",
    "people",     "person",     "student",     "students",    "child",    "children", "apple",
    "apples",     "book",       "books",       "ball",        "balls",    "card",     "cards",
    "coin",       "coins",      "ticket",      "tickets",     "page",     "pages",    "edge",
    "edges",      "side",       "sides",       "integer",     "integers", "number",   "numbers",
    "solution",   "solutions",  "time",        "times",       "piece",    "pieces",   "item",
    "items",      "meal",       "meals",       "step",        "steps",    "of",       "h",
    "s"};
static const char *const trigonometric[] = {"sin", "cos", "tan", "cot", "sec", "csc"};
static const char *const variables[] = {
    "alpha",   "beta",     "gamma",  "delta", "epsilon",  "varepsilon", "zeta",    "eta",
    "theta",   "vartheta", "iota",   "kappa", "lambda",   "mu",         "nu",      "xi",
    "omicron", "rho",      "varrho", "sigma", "varsigma", "tau",        "upsilon", "phi",
    "varphi",  "chi",      "psi",    "omega", "ell",      "hbar"};
static const char *const accents[] = {"vec", "hat", "bar", "tilde", "widehat"};
static const char *const matrices[] = {"matrix", "pmatrix", "bmatrix",    "vmatrix",
                                       "array",  "cases",   "smallmatrix"};
static const char *const not_units[] = {"thousand", "million", "billion", "trillion", "hundred",
                                        "dozen",    "e",       "i",       "pi",       "mod"};

/* --- looking up --- */

answer_name answer_name_of(answer_span name) {
  if (IS_ONE_OF(name, dropped)) return ANSWER_DROPPED;
  if (IS_ONE_OF(name, spaces)) return ANSWER_SPACE;
  if (IS_ONE_OF(name, words)) return ANSWER_WORDS;
  if (IS_ONE_OF(name, styles)) return ANSWER_STYLE;
  if (answer_is(name, "begin")) return ANSWER_BEGIN;
  if (answer_is(name, "end")) return ANSWER_END;
  return ANSWER_OTHER;
}

const char *answer_renamed(answer_span name) {
  for (size_t i = 0; i < sizeof renamed / sizeof *renamed; ++i)
    if (answer_is(name, renamed[i].from)) return renamed[i].to;
  return NULL;
}

const char *answer_symbol(answer_span s, size_t *length) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; ++i)
    if (answer_starts(s, symbols[i].from)) {
      *length = strlen(symbols[i].from);
      return symbols[i].to;
    }
  return NULL;
}

int answer_is_unit(answer_span word) {
  return IS_ONE_OF(word, units);
}

int answer_is_no_unit(answer_span words_inside) {
  return IS_ONE_OF(words_inside, not_units);
}

int answer_is_trigonometric(answer_span name) {
  return IS_ONE_OF(name, trigonometric);
}

int answer_is_variable(answer_span name) {
  return IS_ONE_OF(name, variables);
}

int answer_is_accent(answer_span name) {
  return IS_ONE_OF(name, accents);
}

int answer_is_matrix(answer_span environment) {
  return IS_ONE_OF(environment, matrices);
}
