/* Cleaning: removes differences of notation that have no meaning. Also the tables of LaTeX
 * commands, Unicode symbols and units. */
#include "llm/answer/internal.h"

#include "core/base/hash.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* --- names --- */

static bool is_listed_name(answer_span s, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (answer_is(s, names[i])) return true;
  return false;
}

#define IS_ONE_OF(span, names) is_listed_name(span, names, sizeof(names) / sizeof *(names))

static const char *const dropped[] = {
    "left",  "right",        "big",       "bigl",        "bigr",   "bigg",      "biggl",
    "biggr", "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits",  "boxed",
    "fbox",  "ensuremath",   "rm",        "bf",          "it",     "mathstrut", "strut"};
static const char *const spaces[] = {"quad", "qquad", "thinspace", "enspace", "space", "newline"};
/* Commands around words and units. */
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
} unicode_symbols[] = {{"−", "-"},
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

/* Words that are units after a number. */
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

typedef enum answer_name {
  ANSWER_DROPPED, /* no meaning: \left, \displaystyle */
  ANSWER_SPACE,
  ANSWER_WORDS, /* \text and similar, which may contain a unit */
  ANSWER_STYLE, /* \textbf and similar */
  ANSWER_BEGIN,
  ANSWER_END,
  ANSWER_OTHER
} answer_name;

/* The class of the command with that name (without backslash). */
static answer_name answer_name_of(answer_span name) {
  if (IS_ONE_OF(name, dropped)) return ANSWER_DROPPED;
  if (IS_ONE_OF(name, spaces)) return ANSWER_SPACE;
  if (IS_ONE_OF(name, words)) return ANSWER_WORDS;
  if (IS_ONE_OF(name, styles)) return ANSWER_STYLE;
  if (answer_is(name, "begin")) return ANSWER_BEGIN;
  if (answer_is(name, "end")) return ANSWER_END;
  return ANSWER_OTHER;
}

/* The LaTeX command that replaces the one with that name (\frac for dfrac); NULL if it is not
 * replaced. */
static const char *answer_renamed(answer_span name) {
  for (size_t i = 0; i < sizeof renamed / sizeof *renamed; ++i)
    if (answer_is(name, renamed[i].from)) return renamed[i].to;
  return NULL;
}

/* The LaTeX command that replaces the Unicode character at the beginning of s (\pi for the Greek
 * letter), and the character's length in bytes; NULL if it is not replaced. */
static const char *answer_of_unicode(answer_span s, size_t *length) {
  for (size_t i = 0; i < sizeof unicode_symbols / sizeof *unicode_symbols; ++i)
    if (answer_starts(s, unicode_symbols[i].from)) {
      *length = strlen(unicode_symbols[i].from);
      return unicode_symbols[i].to;
    }
  return NULL;
}

bool answer_is_unit(answer_span word) {
  return IS_ONE_OF(word, units);
}

/* True for the contents of a \text that look like a unit but are not one. */
static bool answer_is_no_unit(answer_span words_inside) {
  return IS_ONE_OF(words_inside, not_units);
}

/* sin, cos, tan, cot, sec, csc: the functions of an angle. */
static bool answer_is_trigonometric(answer_span name) {
  return IS_ONE_OF(name, trigonometric);
}

bool answer_is_variable(answer_span name) {
  return IS_ONE_OF(name, variables);
}

bool answer_is_accent(answer_span name) {
  return IS_ONE_OF(name, accents);
}

static bool answer_is_matrix(answer_span environment) {
  return IS_ONE_OF(environment, matrices);
}

/* --- putting --- */

/* Copies an answer from `in` to `out`. matrices: number of open matrix environments; depth:
 * nesting of calls. */
typedef struct cleaner {
  answer_span in; /* the text not yet read */
  answer_text *out;
  int matrices, depth;
  bool failed;
} cleaner;

static void put_cleaned(cleaner *c, const char *text, size_t n) {
  if (n > sizeof c->out->data - c->out->n) {
    c->failed = 1;
    return;
  }
  memcpy(c->out->data + c->out->n, text, n);
  c->out->n += n;
}

static const char degree_sign[] = "\xc2\xb0";

static void put_cleaned_text(cleaner *c, const char *text) {
  put_cleaned(c, text, strlen(text));
}

static char last_cleaned(const answer_text *out) {
  return out->n == 0 ? '\0' : out->data[out->n - 1];
}

static void put_space(cleaner *c) {
  if (last_cleaned(c->out) != ' ' && c->out->n != 0) put_cleaned(c, " ", 1);
}

static void skip_cleaned(cleaner *c, size_t n) {
  c->in.at += n;
  c->in.n -= n;
}

static void clean_rest(cleaner *c);

/* The contents of the group at the beginning of s, or its first character. *whole: its length
 * including braces. */
static answer_span group_at(answer_span s, size_t *whole) {
  size_t depth = 0;
  if (s.n == 0 || *s.at != '{') {
    *whole = s.n > 0;
    return (answer_span){s.at, *whole};
  }
  for (size_t i = 0; i < s.n; ++i) {
    if (s.at[i] == '\\' && i + 1 < s.n)
      ++i;
    else if (s.at[i] == '{')
      ++depth;
    else if (s.at[i] == '}' && --depth == 0) {
      *whole = i + 1;
      return (answer_span){s.at + 1, i - 1};
    }
  }
  *whole = s.n;
  return (answer_span){s.at + 1, s.n - 1};
}

/* --- words and units --- */

/* True for words, perhaps with / ^ . and small exponents: the form of a unit. */
static bool looks_like_unit(answer_span s) {
  bool letters = 0;
  s = answer_trim(s);
  if (answer_is_no_unit(s)) return false;
  for (size_t i = 0; i < s.n; ++i) {
    letters |= answer_is_letter(s.at[i]);
    if (!answer_is_letter(s.at[i]) && !answer_is_any(s.at[i], " ./^23-~{}")) return false;
  }
  return letters;
}

/* s begins after a unit. Returns the length of the white space and numeric exponent there, or
 * SIZE_MAX if neither the end nor a comma follows them. */
static size_t after_unit(answer_span s) {
  size_t i = 0;
  while (i < s.n && answer_is_any(s.at[i], " .$~")) ++i;
  if (i < s.n && s.at[i] == '^') {
    ++i;
    while (i < s.n && answer_is_any(s.at[i], " {}0123456789-.$~")) ++i;
  }
  return i == s.n || s.at[i] == ',' ? i : SIZE_MAX;
}

/* Records the exponents of a unit that is removed. */
static void note_powers(answer_text *out, answer_span unit) {
  for (size_t i = 0; i < unit.n; ++i) {
    size_t n = 0, digits = 0;
    for (; i + n < unit.n && answer_is_any(unit.at[i + n], "0123456789.-"); ++n)
      digits += unit.at[i + n] != '.' && unit.at[i + n] != '-';
    if (digits > 0) {
      uint64_t before = out->unit_powers == 0 ? HASH_64_START : out->unit_powers;
      for (; n > 1 && unit.at[i] == '0'; --n) ++i; /* skip leading zeros */
      out->unit_powers = hash_64(hash_64(before, "^", 1), unit.at + i, n);
    }
    if (n > 0) i += n - 1;
  }
}

/* True if a unit may follow the text: it ends with a number, a bracket, a degree sign or pi. */
static bool ends_like_number(const char *text, size_t n) {
  while (n > 0 && text[n - 1] == ' ') --n;
  if (n >= 2 && memcmp(text + n - 2, degree_sign, 2) == 0) return true;
  if (n >= 3 && memcmp(text + n - 3, "\\pi", 3) == 0) return true;
  return n > 0 && (answer_is_digit(text[n - 1]) || answer_is_any(text[n - 1], ")}%"));
}

static bool is_conjunction(answer_span word) {
  return answer_is(word, "and") || answer_is(word, "or") || answer_is(word, ", and") ||
         answer_is(word, ", or");
}

/* Appends a comma, unless there is one already: "1, 2, and 3". */
static void put_comma(cleaner *c) {
  size_t n = c->out->n;
  while (n > 0 && c->out->data[n - 1] == ' ') --n;
  if (n == 0 || c->out->data[n - 1] != ',') put_cleaned_text(c, ",");
}

/* Processes the argument of \text{...}: removes a unit, replaces "and" and "or" by commas, copies
 * other words. */
static void put_cleaned_words(cleaner *c, bool may_be_unit) {
  size_t whole;
  c->in = answer_trim(c->in);
  answer_span inside = group_at(c->in, &whole), word = answer_trim(inside);
  skip_cleaned(c, whole);
  size_t behind = after_unit(c->in);
  if (may_be_unit && behind != SIZE_MAX && !is_conjunction(word) && looks_like_unit(word) &&
      ends_like_number(c->out->data, c->out->n)) {
    note_powers(c->out, word);
    note_powers(c->out, (answer_span){c->in.at, behind});
    skip_cleaned(c, behind);
    return;
  }
  put_space(c);
  if (is_conjunction(word))
    put_comma(c);
  else if (c->depth < 8) {
    cleaner nested = {word, c->out, c->matrices, c->depth + 1, 0};
    clean_rest(&nested);
    c->failed |= nested.failed;
  } else
    c->failed = 1;
  put_space(c);
}

/* --- commands --- */

/* Processes the argument of \begin or \end, such as {pmatrix}, including an array's column
 * specification. */
static void put_environment(cleaner *c, bool begins) {
  size_t whole;
  answer_span name = group_at(c->in, &whole);
  skip_cleaned(c, whole);
  if (!answer_is_matrix(name)) return;
  if (begins && answer_is(name, "array")) {
    group_at(c->in, &whole);
    skip_cleaned(c, whole);
  }
  c->matrices += begins ? 1 : -1;
  put_cleaned_text(c, begins ? "\\begin" : "\\end");
  put_space(c);
}

/* Processes a command of letters; c->in begins after it. */
static void put_command(cleaner *c, answer_span name) {
  answer_name what = answer_name_of(name);
  const char *other = answer_renamed(name);
  if (what == ANSWER_DROPPED) {
    if ((answer_is(name, "left") || answer_is(name, "right")) && c->in.n > 0 && *c->in.at == '.')
      skip_cleaned(c, 1);
  } else if (what == ANSWER_SPACE)
    put_space(c);
  else if (what == ANSWER_WORDS || what == ANSWER_STYLE)
    put_cleaned_words(c, what == ANSWER_WORDS);
  else if (what == ANSWER_BEGIN || what == ANSWER_END)
    put_environment(c, what == ANSWER_BEGIN);
  else if (other != NULL) {
    put_cleaned_text(c, other);
    if (answer_is_letter(last_cleaned(c->out))) put_space(c);
  } else {
    put_cleaned(c, name.at - 1, name.n + 1);
    if (c->in.n > 0 && answer_is_letter(*c->in.at)) put_space(c);
  }
}

/* Processes a backslash and the command it begins. */
static void put_backslash(cleaner *c) {
  size_t n = answer_command(c->in);
  if (n > 0) {
    answer_span name = {c->in.at + 1, n};
    skip_cleaned(c, n + 1);
    put_command(c, name);
    return;
  }
  char next = c->in.n > 1 ? c->in.at[1] : '\0';
  if (next == '\\') { /* a new row, or a doubly escaped backslash */
    skip_cleaned(c, c->matrices == 0 && c->in.n > 2 && answer_is_letter(c->in.at[2]) ? 1 : 2);
    if (c->matrices > 0) put_cleaned_text(c, ";");
    return;
  }
  skip_cleaned(c, c->in.n > 1 ? 2 : 1);
  if (next == '!' && last_cleaned(c->out) == ',') { /* thousands separated as in 1,\!000 */
    --c->out->n;
    c->in = answer_trim(c->in);
  }
  if (next == '{' || next == '}')
    put_cleaned(c, next == '{' ? "\\{" : "\\}", 2);
  else if (next == ';' || next == ':' || next == ' ')
    put_space(c);
  else if (answer_is_any(next, "%&#_|"))
    put_cleaned(c, &next, 1);
}

/* The length of ^\circ, ^{\circ} and similar, or 0. */
static size_t degree(answer_span s) {
  size_t i = 1, braces = 0;
  while (i < s.n && (s.at[i] == '{' || s.at[i] == ' ')) braces += s.at[i++] == '{';
  answer_span rest = {s.at + i, s.n - i};
  if (answer_starts(rest, "\\circ"))
    i += 5;
  else if (answer_starts(rest, "\\degree"))
    i += 7;
  else if (answer_starts(rest, "o}") && braces == 1)
    i += 1;
  else
    return 0;
  while (i < s.n && braces > 0 && (s.at[i] == '}' || s.at[i] == ' ')) braces -= s.at[i++] == '}';
  return i;
}

static void put_symbol(cleaner *c) {
  size_t n = 1;
  const char *other = answer_of_unicode(c->in, &n);
  if (other != NULL)
    put_cleaned_text(c, other);
  else
    put_cleaned(c, c->in.at, 1);
  skip_cleaned(c, n);
}

/* If c->in begins with an operator as in programs, such as <=, appends its LaTeX form and returns
 * 1. A != without a space before it is read as a factorial and an equals sign. */
static bool put_operator(cleaner *c) {
  static const char *const both[][2] = {
      {"**", "^"}, {"<=", "\\le "}, {">=", "\\ge "}, {"!=", "\\ne "}, {"==", "="}};
  for (size_t i = 0; i < sizeof both / sizeof *both; ++i)
    if (answer_starts(c->in, both[i][0]) && (*both[i][0] != '!' || last_cleaned(c->out) == ' ')) {
      put_cleaned_text(c, both[i][1]);
      skip_cleaned(c, 2);
      return true;
    }
  return false;
}

static void clean_rest(cleaner *c) {
  while (c->in.n > 0 && !c->failed) {
    char x = *c->in.at;
    size_t n = x == '^' ? degree(c->in) : 0;
    if (x == '\\')
      put_backslash(c);
    else if ((unsigned char)x >= 0x80)
      put_symbol(c);
    else if (n > 0) {
      put_cleaned_text(c, degree_sign);
      skip_cleaned(c, n);
    } else if (answer_starts(c->in, "{,}"))
      skip_cleaned(c, 3);
    else if (put_operator(c))
      continue;
    else {
      if (x == '~' || answer_is_space(x))
        put_space(c);
      else if (x == '&' && c->matrices > 0)
        put_cleaned_text(c, ",");
      else if (x != '$' && x != '"' && x != '`')
        put_cleaned(c, &x, 1);
      skip_cleaned(c, 1);
    }
  }
}

/* --- the whole --- */

/* Replaces the words "and" and "or" between two parts by commas, or by a space after a comma. */
static void replace_conjunctions(answer_text *out) {
  answer_span all = {out->data, out->n};
  bool seen = 0, after_comma = 0; /* seen: text other than white space came before; after_comma: it
                                     ended with a comma */
  for (size_t i = 0, n; i < out->n; i += n) {
    n = answer_count_letters(all, i);
    answer_span word = {out->data + i, n}, rest = {out->data + i + n, out->n - i - n};
    bool command = i > 0 && out->data[i - 1] == '\\';
    bool replaced = seen && !command && (answer_is(word, "and") || answer_is(word, "or")) &&
                    answer_trim(rest).n > 0;
    if (replaced) {
      memset(out->data + i, ' ', n);
      if (!after_comma) out->data[i + 1] = ',';
    }
    if (n == 0) n = 1;
    if (replaced || answer_is_space(out->data[i])) {
      after_comma |= replaced;
      continue;
    }
    seen = 1;
    after_comma = out->data[i] == ',';
  }
}

/* Removes degree signs unless there is a trigonometric function, for which they have a meaning. */
static void drop_idle_degrees(answer_text *out) {
  answer_span all = {out->data, out->n};
  for (size_t i = 0, n; i<out->n; i += n> 0 ? n : 1) {
    n = answer_count_letters(all, i);
    if (n > 0 && answer_is_trigonometric((answer_span){out->data + i, n})) return;
  }
  size_t kept = 0;
  for (size_t i = 0; i < out->n; ++i) {
    if (answer_starts((answer_span){out->data + i, out->n - i}, degree_sign)) {
      ++i;
      if (i + 1 < out->n && answer_is_digit(out->data[i + 1])) out->data[kept++] = ' ';
    } else
      out->data[kept++] = out->data[i];
  }
  out->n = kept;
}

static void trim_end(answer_text *out) {
  while (answer_is_any(last_cleaned(out), " .,;:")) --out->n;
}

/* Length of s without a unit's last word (with its exponent, and a / before it); unchanged if there
 * is none. A single letter is a unit only after a /, because it may be a variable. */
static size_t without_word(answer_span s) {
  size_t end = s.n;
  while (end > 0 && answer_is_any(s.at[end - 1], " 0123456789-^{}")) --end;
  for (size_t i = end; i < s.n; ++i)
    if (s.at[i] != ' ' && s.at[end] != '^')
      return s.n; /* digits without a ^ are no exponent of a unit */
  size_t begin = end;
  while (begin > 0 && answer_is_letter(s.at[begin - 1])) --begin;
  answer_span word = {s.at + begin, end - begin};
  if (word.n == 0 || begin == 0 || !answer_is_unit(word)) return s.n;
  if (word.n == 1 && s.at[begin - 1] != '/') return s.n;
  if (s.at[begin - 1] == '\\') return s.n;
  while (begin > 0 && s.at[begin - 1] == ' ') --begin;
  if (begin > 0 && s.at[begin - 1] == '/') --begin;
  while (begin > 0 && s.at[begin - 1] == ' ') --begin;
  return begin;
}

answer_span answer_without_unit(answer_span s) {
  size_t n = s.n, before;
  do {
    before = n;
    n = without_word((answer_span){s.at, before});
  } while (n < before);
  return (answer_span){s.at, n > 0 && ends_like_number(s.at, n) ? n : s.n};
}

static void strip_units(answer_text *out) {
  answer_span all = {out->data, out->n}, kept = answer_without_unit(all);
  note_powers(out, (answer_span){out->data + kept.n, out->n - kept.n});
  out->n = kept.n;
}

bool answer_clean(answer_text *out, const char *text, size_t size) {
  assert(size <= ANSWER_MAX);
  out->n = 0;
  out->unit_powers = 0;
  cleaner c = {.in = {text, size}, .out = out};
  clean_rest(&c);
  drop_idle_degrees(out);
  replace_conjunctions(out);
  trim_end(out);
  strip_units(out);
  trim_end(out);
  return !c.failed;
}
