/* Countdown: reach a target from given numbers with + - * / and parentheses.
 *
 * A problem is made from a random expression over all its numbers, so every problem has a solution.
 * The intermediate values of that solution are positive integers. Any other correct expression
 * earns the same reward, also with fractional or negative intermediate values. */
#include "llm/task/internal.h"

#include "core/base/array.h"
#include "core/config/fields.h"

#include <stdlib.h>
#include <string.h>

/* --- expressions --- */

/*   sum     = product { ("+" | "-") product }
 *   product = atom { ("*" | "/") atom }
 *   atom    = digits | "(" sum ")"
 */
typedef struct expression_reader {
  const char *at, *end;
  size_t depth;
  expression *out;
} expression_reader;

static expression_status expression_sum(expression_reader *p, rational *value);

static bool is_expression_digit(char c) {
  return c >= '0' && c <= '9';
}

/* The next character that is not white space; '\0' at the end (and for a NUL, which the grammar
 * never accepts). */
static char peek_expression(expression_reader *p) {
  while (p->at < p->end && task_is_space(*p->at)) ++p->at;
  return p->at < p->end ? *p->at : '\0';
}

static expression_status expression_number(expression_reader *p, rational *value) {
  int64_t x = 0;
  for (; p->at < p->end && is_expression_digit(*p->at); ++p->at)
    if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *p->at - '0', &x))
      return EXPRESSION_OVERFLOW;
  if (p->out->n_numbers == EXPRESSION_MAX_NUMBERS) return EXPRESSION_MANY;
  p->out->number[p->out->n_numbers++] = x;
  *value = (rational){x, 1};
  return EXPRESSION_OK;
}

static expression_status expression_atom(expression_reader *p, rational *value) {
  char c = peek_expression(p);
  if (is_expression_digit(c)) return expression_number(p, value);
  if (c != '(') return EXPRESSION_SYNTAX;
  if (p->depth == EXPRESSION_MAX_DEPTH) return EXPRESSION_DEEP;
  ++p->at;
  ++p->depth;
  expression_status status = expression_sum(p, value);
  if (status != EXPRESSION_OK) return status;
  if (peek_expression(p) != ')') return EXPRESSION_SYNTAX;
  ++p->at;
  --p->depth;
  return EXPRESSION_OK;
}

static expression_status expression_product(expression_reader *p, rational *value) {
  expression_status status = expression_atom(p, value);
  for (char c = peek_expression(p); status == EXPRESSION_OK && (c == '*' || c == '/');
       c = peek_expression(p)) {
    rational right;
    ++p->at;
    status = expression_atom(p, &right);
    if (status != EXPRESSION_OK) return status;
    if (c == '/' && right.num == 0) return EXPRESSION_DIVISION;
    if (!(c == '*' ? rational_multiply(value, *value, right)
                   : rational_divide(value, *value, right)))
      return EXPRESSION_OVERFLOW;
  }
  return status;
}

static expression_status expression_sum(expression_reader *p, rational *value) {
  expression_status status = expression_product(p, value);
  for (char c = peek_expression(p); status == EXPRESSION_OK && (c == '+' || c == '-');
       c = peek_expression(p)) {
    rational right;
    ++p->at;
    status = expression_product(p, &right);
    if (status != EXPRESSION_OK) return status;
    if (!(c == '+' ? rational_add(value, *value, right) : rational_subtract(value, *value, right)))
      return EXPRESSION_OVERFLOW;
  }
  return status;
}

expression_status expression_read(expression *out, const char *text, size_t size) {
  expression_reader p = {text, text + size, 0, out};
  out->n_numbers = 0;
  expression_status status = expression_sum(&p, &out->value);
  if (status != EXPRESSION_OK) return status;
  peek_expression(&p);
  return p.at == p.end ? EXPRESSION_OK : EXPRESSION_SYNTAX;
}

/* --- problems --- */

enum {
  TERM_SIZE =
      4 * TASK_MAX_NUMBERS + 2 * TASK_MAX_NUMBERS + 1 /* numbers and operations, parentheses, NUL */
};

/* The graded reward of a legal expression with a wrong value. */
static const double legal_share = 0.1;

typedef struct countdown {
  size_t numbers, n_operations;
  int64_t largest, largest_target;
  int use_all;
  char operation[4];
} countdown;

static countdown *countdown_of(const task *t) {
  return t->parameters;
}

/* --- making a problem --- */

typedef enum rank { RANK_SUM, RANK_PRODUCT, RANK_NUMBER } rank;

/* A subexpression. rank: its outermost operation, which decides whether it needs parentheses. */
typedef struct term {
  int64_t value;
  rank rank;
  char text[TERM_SIZE];
} term;

/* Writes the term, in parentheses if needed. */
static void put_term(task_text *to, const term *t, bool needed) {
  if (needed) task_put_char(to, '(');
  task_put(to, t->text, strlen(t->text));
  if (needed) task_put_char(to, ')');
}

static term joined_term(const term *a, char operation, const term *b, int64_t value) {
  rank own = operation == '+' || operation == '-' ? RANK_SUM : RANK_PRODUCT;
  bool one_sided = operation == '-' || operation == '/';
  term out = {.value = value, .rank = own};
  task_text text = {.n = 0};
  put_term(&text, a, a->rank < own);
  task_put_char(&text, operation);
  put_term(&text, b, b->rank < own || (one_sided && b->rank == own));
  memcpy(out.text, text.data, text.n + 1);
  return out;
}

/* Joins a and b by an operation, exchanged if only that gives a positive integer. The limits of the
 * fields keep values far below 2^63. Returns 0 if neither order gives one. */
static bool join_terms(term *out, const term *a, char operation, const term *b) {
  if (operation == '+')
    *out = joined_term(a, operation, b, a->value + b->value);
  else if (operation == '*')
    *out = joined_term(a, operation, b, a->value * b->value);
  else if (operation == '-') {
    if (a->value == b->value) return false;
    if (a->value < b->value) return join_terms(out, b, operation, a);
    *out = joined_term(a, operation, b, a->value - b->value);
  } else {
    if (a->value < b->value) return join_terms(out, b, operation, a);
    if (a->value % b->value != 0) return false;
    *out = joined_term(a, operation, b, a->value / b->value);
  }
  return true;
}

/* Joins two random terms by a random operation, or by the next one that is possible, until one term
 * is left. */
static bool join_all(const task *t, task_source *s, term *all, size_t n) {
  const size_t n_operations = countdown_of(t)->n_operations;
  for (; n > 1; --n) {
    size_t i = task_below(s, n), j = task_below(s, n - 1), first = task_below(s, n_operations);
    if (j >= i) ++j;
    term together;
    bool done = false;
    for (size_t k = 0; k < n_operations && !done; ++k)
      done = join_terms(&together, &all[i], countdown_of(t)->operation[(first + k) % n_operations],
                        &all[j]);
    if (!done) return false;
    all[i < j ? i : j] = together;
    all[i < j ? j : i] = all[n - 1];
  }
  return all[0].value <= countdown_of(t)->largest_target;
}

static void put_countdown_problem(task_text *to, const int64_t *number, size_t n, int64_t target) {
  for (size_t i = 0; i < n; ++i) {
    if (i != 0) task_put_char(to, ',');
    task_put_number(to, number[i]);
  }
  task_put_char(to, '=');
  task_put_number(to, target);
  task_put_char(to, ':');
}

static bool draw_countdown(const task *t, task_source *s, task_sample *out) {
  const size_t n = countdown_of(t)->numbers;
  int64_t number[TASK_MAX_NUMBERS];
  term all[TASK_MAX_NUMBERS] = {{0}};
  for (size_t i = 0; i < n; ++i) {
    task_text text = {.n = 0};
    number[i] = 1 + (int64_t)task_below(s, (uint64_t)countdown_of(t)->largest);
    task_put_number(&text, number[i]);
    all[i] = (term){.value = number[i], .rank = RANK_NUMBER};
    memcpy(all[i].text, text.data, text.n + 1);
  }
  if (!join_all(t, s, all, n)) return false;
  put_countdown_problem(&out->prompt, number, n, all[0].value);
  task_put(&out->answer, all[0].text, strlen(all[0].text));
  qsort(number, n, sizeof *number, order_signed); /* the key ignores the order of the numbers */
  put_countdown_problem(&out->key, number, n, all[0].value);
  return true;
}

/* --- checking a response --- */

/* Reads numbers and target of a prompt "3,5,2=11:". */
static bool read_countdown_prompt(const char *prompt, int64_t *number, size_t *n, int64_t *target) {
  for (*n = 0; *n < TASK_MAX_NUMBERS;) {
    char *end;
    number[(*n)++] = strtoll(prompt, &end, 10);
    if (end == prompt || (*end != ',' && *end != '=')) return false;
    prompt = end + 1;
    if (*end == '=') break;
  }
  char *end;
  *target = strtoll(prompt, &end, 10);
  return end != prompt && *end == ':';
}

/* True if used[m] are among given[n], each at most once. Marks used numbers in given. */
static bool uses_only(const int64_t *used, size_t m, int64_t *given, size_t n) {
  for (size_t i = 0; i < m; ++i) {
    size_t k = 0;
    while (k < n && given[k] != used[i]) ++k;
    if (k == n) return false;
    given[k] = -1;
  }
  return true;
}

static double score_countdown(const task *t, const problem *p, const char *response, size_t size) {
  int64_t given[TASK_MAX_NUMBERS], target;
  size_t n;
  expression e;
  if (!read_countdown_prompt(p->prompt, given, &n, &target)) return 0;
  if (expression_read(&e, response, size) != EXPRESSION_OK) return 0;
  if (countdown_of(t)->use_all && e.n_numbers != n) return 0;
  if (!uses_only(e.number, e.n_numbers, given, n)) return 0;
  if (e.value.num == target && e.value.den == 1) return 1;
  return t->graded ? legal_share : 0;
}

/* --- a section --- */

static gl_status read_countdown(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  static const char *const names[] = {"add", "subtract", "multiply", "divide"};
  size_t n = field_count(r, "numbers");
  countdown_of(t)->numbers = n;
  countdown_of(t)->largest = field_integer(r, "largest");
  countdown_of(t)->largest_target = field_integer(r, "largest_target");
  countdown_of(t)->use_all = field_choice(r, "use");
  countdown_of(t)->n_operations =
      task_choices(r, "operations", names, "+-*/", 4, countdown_of(t)->operation);
  size_t digits = task_digits((uint64_t)countdown_of(t)->largest);
  t->max_prompt = n * (digits + 1) + task_digits((uint64_t)countdown_of(t)->largest_target) + 1;
  t->max_answer = n * digits + (n - 1) + 2 * (n - 2);
  task_use(t, "(),:=+-*/"); /* a correct answer may use any operation */
  task_use_digits(t, (uint64_t)countdown_of(t)->largest);
  task_use_digits(t, (uint64_t)countdown_of(t)->largest_target);
  return r->status;
}

static const task_field countdown_fields[] = {
    {"numbers", "2 to 6", "3", "how many numbers are given", 0},
    {"largest", "1 to 999", "9", "the largest number that may be given", 0},
    {"largest_target", "1 to 999999", "99", "the largest value asked for", 0},
    {"use", "any, all", "any", "each number at most once, or exactly once", 0},
    {"operations", "add, subtract, multiply, divide", "all",
     "a list: those of the answers that warm-up teaches", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_countdown = {
    .name = "countdown",
    .about = "expressions over given numbers with a given value",
    .example = {"3,5,2=11:", "3*2+5"},
    .field = countdown_fields,
    .parameters_size = sizeof(countdown),
    .read = read_countdown,
    .score = score_countdown,
    .has_graded = true,
    .draw = draw_countdown,
};
