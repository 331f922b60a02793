/* Tasks whose problems are short generated texts: addition, modular arithmetic, sorting, parity,
 * and brackets. */
#include "llm/task/internal.h"

#include "core/base/array.h"
#include "core/config/fields.h"

#include <stdlib.h>
#include <string.h>

/* --- addition --- */
/* Addition. Operands are uniform over the numbers of min_digits to digits digits. They are stored
 * as digits, least significant first, so that they may be longer than any integer type. */

enum { MAX_SUM = TASK_MAX_DIGITS + 1 };

typedef struct addition {
  size_t digits, min_digits, terms;
  bool reverse, pad;
  size_t answer_digits; /* number of digits of the largest sum */
} addition;

static addition *addition_of(const task *t) {
  return t->parameters;
}

/* Samples an operand: `digits` uniform digits are a uniform number; one with fewer than min_digits
 * is rejected and sampled again. */
static void draw_operand(const task *t, task_source *s, char *digit) {
  size_t n = addition_of(t)->digits, length;
  do {
    for (size_t i = n; i-- > 0;) digit[i] = (char)task_below(s, 10);
    for (length = n; length > 1 && digit[length - 1] == 0;) --length;
  } while (length < addition_of(t)->min_digits);
}

/* Writes the number digit[n], most significant first; without leading zeros unless padded. */
static void put_number_digits(task_text *to, const char *digit, size_t n, bool pad, bool reverse) {
  while (!pad && n > 1 && digit[n - 1] == 0) --n;
  for (size_t i = 0; i < n; ++i) task_put_char(to, (char)('0' + digit[reverse ? i : n - 1 - i]));
}

static int by_digits(const void *a, const void *b) {
  return memcmp(a, b, TASK_MAX_DIGITS);
}

static bool draw_addition(const task *t, task_source *s, task_sample *out) {
  char operand[TASK_MAX_TERMS][TASK_MAX_DIGITS] = {{0}}, sum[MAX_SUM] = {0};
  const size_t digits = addition_of(t)->digits, terms = addition_of(t)->terms,
               sum_digits = addition_of(t)->answer_digits;
  const bool pad = addition_of(t)->pad;
  for (size_t k = 0; k < terms; ++k) {
    draw_operand(t, s, operand[k]);
    if (k != 0) task_put_char(&out->prompt, '+');
    put_number_digits(&out->prompt, operand[k], digits, pad, false);
  }
  task_put_char(&out->prompt, '=');
  int carry = 0;
  for (size_t i = 0; i < sum_digits; ++i) {
    for (size_t k = 0; k < terms && i < digits; ++k) carry += operand[k][i];
    sum[i] = (char)(carry % 10);
    carry /= 10;
  }
  put_number_digits(&out->answer, sum, sum_digits, pad, addition_of(t)->reverse);
  qsort(operand, terms, sizeof *operand, by_digits); /* 3+5 is the same problem as 5+3 */
  for (size_t k = 0; k < terms; ++k) {
    put_number_digits(&out->key, operand[k], digits, false, false);
    task_put_char(&out->key, '+');
  }
  return true;
}

static gl_status read_addition(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  size_t digits = field_count(r, "digits"), terms = field_count(r, "terms");
  addition_of(t)->min_digits =
      cfg_count(r, "min_digits", (size_t)field_default(r, "min_digits"), 1, digits);
  addition_of(t)->reverse = field_flag(r, "reverse");
  addition_of(t)->pad = field_flag(r, "pad");
  addition_of(t)->digits = digits;
  addition_of(t)->terms = terms;
  /* The largest sum, terms * (10^digits - 1), has digits + 1 digits for 2 to 10 terms. */
  addition_of(t)->answer_digits = digits + 1;
  t->max_prompt = terms * (digits + 1);
  t->max_answer = digits + 1;
  task_use(t, "+=0123456789");
  return r->status;
}

static const task_field addition_fields[] = {
    {"digits", "1 to 64", "2", "operands are uniform over the numbers of so many digits", 0},
    {"min_digits", "1 to digits", "1", "fewest digits of an operand", 0},
    {"terms", "2 to 8", "2", "operands", 0},
    {"reverse", "true, false", "false", "the answer's last digit first, as carrying goes", 0},
    {"pad", "true, false", "false", "operands and answers filled with zeros to one length", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_addition = {
    .name = "addition",
    .about = "sums of decimal numbers",
    .example = {"12+34=", "46"},
    .field = addition_fields,
    .parameters_size = sizeof(addition),
    .read = read_addition,
    .score = task_score_positions,
    .has_graded = true,
    .draw = draw_addition,
};

/* --- modular --- */
/* Modular arithmetic: a chain of operands, uniform on 0 .. modulus - 1, joined by uniform
 * operations and evaluated with the usual precedence. */

typedef struct modular {
  int64_t modulus;
  size_t terms, n_operations;
  char operation[3];
} modular;

static modular *modular_of(const task *t) {
  return t->parameters;
}

typedef struct chain {
  int64_t operand[TASK_MAX_TERMS];
  char operation[TASK_MAX_TERMS]; /* before each operand; '+' before the first */
  size_t n;
} chain;

static int64_t chain_value(const chain *c, int64_t modulus) {
  int64_t sum = 0;
  for (size_t i = 0; i < c->n;) {
    bool minus = c->operation[i] == '-';
    int64_t product = c->operand[i++];
    for (; i < c->n && c->operation[i] == '*'; ++i) product = product * c->operand[i] % modulus;
    sum = (sum + (minus ? modulus - product : product)) % modulus;
  }
  return sum;
}

static int by_product_text(const void *a, const void *b) {
  return strcmp(a, b);
}

/* Writes the chain with sorted factors of each product, and then sorted products with their signs.
 * Chains that differ only in an order that does not matter have the same key. */
static void put_chain_key(task_text *to, const chain *c) {
  char product[TASK_MAX_TERMS][TASK_TEXT_SIZE / TASK_MAX_TERMS];
  size_t n = 0;
  for (size_t i = 0; i < c->n; ++n) {
    int64_t factor[TASK_MAX_TERMS];
    size_t k = 0;
    task_text text = {.n = 0};
    task_put_char(&text, c->operation[i]);
    do factor[k++] = c->operand[i++];
    while (i < c->n && c->operation[i] == '*');
    qsort(factor, k, sizeof *factor, order_signed);
    for (size_t j = 0; j < k; ++j) {
      if (j != 0) task_put_char(&text, '*');
      task_put_number(&text, factor[j]);
    }
    memcpy(product[n], text.data, text.n + 1);
  }
  qsort(product, n, sizeof *product, by_product_text);
  for (size_t i = 0; i < n; ++i) task_put(to, product[i], strlen(product[i]));
}

static bool draw_modular(const task *t, task_source *s, task_sample *out) {
  const int64_t modulus = modular_of(t)->modulus;
  chain c = {.n = modular_of(t)->terms};
  task_put_char(&out->prompt, '(');
  for (size_t i = 0; i < c.n; ++i) {
    c.operation[i] =
        i == 0 ? '+' : modular_of(t)->operation[task_below(s, modular_of(t)->n_operations)];
    c.operand[i] = (int64_t)task_below(s, (uint64_t)modulus);
    if (i != 0) task_put_char(&out->prompt, c.operation[i]);
    task_put_number(&out->prompt, c.operand[i]);
  }
  task_put(&out->prompt, ")%", 2);
  task_put_number(&out->prompt, modulus);
  task_put_char(&out->prompt, '=');
  task_put_number(&out->answer, chain_value(&c, modulus));
  put_chain_key(&out->key, &c);
  return true;
}

static gl_status read_modular(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  static const char *const names[] = {"add", "subtract", "multiply"};
  modular_of(t)->modulus = field_integer(r, "modulus");
  modular_of(t)->terms = field_count(r, "terms");
  modular_of(t)->n_operations =
      task_choices(r, "operations", names, "+-*", 3, modular_of(t)->operation);
  size_t digits = task_digits((uint64_t)modular_of(t)->modulus - 1), terms = modular_of(t)->terms;
  t->max_prompt = terms * (digits + 1) + 3 + task_digits((uint64_t)modular_of(t)->modulus);
  t->max_answer = digits;
  task_use(t, "()%=");
  for (size_t i = 0; i < modular_of(t)->n_operations; ++i)
    task_use(t, (char[2]){modular_of(t)->operation[i], '\0'});
  task_use_digits(t, (uint64_t)modular_of(t)->modulus);
  return r->status;
}

static const task_field modular_fields[] = {
    {"modulus", "2 to 1000000", "97", "operands are uniform below it", 0},
    {"terms", "2 to 8", "2", "operands", 0},
    {"operations", "add, subtract, multiply", "all", "a list of them; each is as likely", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_modular = {
    .name = "modular",
    .about = "sums, differences and products modulo a number",
    .example = {"(3*5+2)%7=", "3"},
    .field = modular_fields,
    .parameters_size = sizeof(modular),
    .read = read_modular,
    .score = task_score_positions,
    .has_graded = false,
    .draw = draw_modular,
};

/* --- sequences of symbols --- */
/* Sorting and parity: symbols are uniform, and so is the sequence's length within its limits. */

typedef struct sequence {
  size_t length, min_length;
  size_t values; /* sorting: number of different symbols */
  bool chain;    /* parity: answers list every prefix's parity */
} sequence;

static sequence *sequence_of(const task *t) {
  return t->parameters;
}

static size_t draw_sequence_length(const task *t, task_source *s) {
  size_t least = sequence_of(t)->min_length;
  return least + task_below(s, sequence_of(t)->length - least + 1);
}

/* --- sorting --- */

/* Values of one digit need no separator. */
static void put_values(const task *t, task_text *to, const int *value, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (i != 0 && sequence_of(t)->values > 10) task_put_char(to, ',');
    task_put_number(to, value[i]);
  }
}

static bool draw_sorting(const task *t, task_source *s, task_sample *out) {
  int value[TASK_MAX_SORTED], sorted[TASK_MAX_SORTED];
  size_t n = draw_sequence_length(t, s);
  for (size_t i = 0; i < n; ++i) {
    value[i] = (int)task_below(s, sequence_of(t)->values);
    size_t at = i;
    for (; at > 0 && sorted[at - 1] > value[i]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = value[i];
  }
  put_values(t, &out->prompt, value, n);
  task_put_char(&out->prompt, '=');
  put_values(t, &out->answer, sorted, n);
  return true;
}

static gl_status read_sorting(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &sequence_of(t)->length, &sequence_of(t)->min_length);
  sequence_of(t)->values = field_count(r, "values");
  size_t digits = task_digits(sequence_of(t)->values - 1),
         each = digits + (sequence_of(t)->values > 10);
  t->max_answer = sequence_of(t)->length * each - (each - digits);
  t->max_prompt = t->max_answer + 1;
  task_use(t, sequence_of(t)->values > 10 ? ",=" : "=");
  task_use_digits(t, sequence_of(t)->values - 1);
  return r->status;
}

static const task_field sorting_fields[] = {
    {"length", "1 to 200", "5", "numbers of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "numbers of a prompt, at least", 0},
    {"values", "2 to 1000", "10",
     "numbers are uniform below it; with more than 10, commas are between", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_sorting = {
    .name = "sorting",
    .about = "a list of numbers in ascending order",
    .example = {"31524=", "12345"},
    .field = sorting_fields,
    .parameters_size = sizeof(sequence),
    .read = read_sorting,
    .score = task_score_positions,
    .has_graded = true,
    .draw = draw_sorting,
};

/* --- parity --- */

/* The answer is whether the number of ones is odd; with chain, one such digit for every prefix. */
static bool draw_parity(const task *t, task_source *s, task_sample *out) {
  size_t n = draw_sequence_length(t, s);
  uint64_t odd = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bit = task_below(s, 2);
    odd ^= bit;
    task_put_char(&out->prompt, (char)('0' + bit));
    if (sequence_of(t)->chain || i + 1 == n) task_put_char(&out->answer, (char)('0' + odd));
  }
  task_put_char(&out->prompt, '=');
  return true;
}

static gl_status read_parity(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &sequence_of(t)->length, &sequence_of(t)->min_length);
  sequence_of(t)->chain = field_flag(r, "chain");
  t->max_prompt = sequence_of(t)->length + 1;
  t->max_answer = sequence_of(t)->chain ? sequence_of(t)->length : 1;
  task_use(t, "01=");
  const cfg_node *reward = cfg_child(r, "reward");
  if (r->status == GL_OK && t->graded && !sequence_of(t)->chain)
    r->status = cfg_fail(reward, r->err, "parity has a graded reward only with chain: true");
  return r->status;
}

static const task_field parity_fields[] = {
    {"length", "1 to 500", "8", "bits of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "bits of a prompt, at least", 0},
    {"chain", "true, false", "false", "the answer is the parity of every beginning", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_parity = {
    .name = "parity",
    .about = "whether a string of bits holds an odd number of ones",
    .example = {"10110=", "1"},
    .field = parity_fields,
    .parameters_size = sizeof(sequence),
    .read = read_parity,
    .score = task_score_positions,
    .has_graded = true,
    .draw = draw_parity,
};

/* --- brackets --- */
/* Brackets: continue a prefix so that the whole is balanced. The prefix is a random walk: at each
 * place it opens or closes with equal probability, except that it opens if nothing is open and
 * closes at the maximum depth. A prefix that ends balanced is sampled again. Closing everything in
 * order is one correct answer; any other that balances within `longest` characters earns the same
 * reward. */

/* Maximum and minimum length of a prompt, maximum nesting depth, number of kinds of brackets,
 * maximum length of a response. */
typedef struct brackets {
  size_t length, min_length, depth, kinds, longest;
} brackets;

static brackets *brackets_of(const task *t) {
  return t->parameters;
}

static const char opening[] = "([{<", closing[] = ")]}>";

static bool draw_brackets(const task *t, task_source *s, task_sample *out) {
  char stack[TASK_MAX_LENGTH];
  size_t open = 0, least = brackets_of(t)->min_length,
         n = least + task_below(s, brackets_of(t)->length - least + 1);
  for (size_t i = 0; i < n; ++i) {
    bool opens = open == 0 || (open < brackets_of(t)->depth && task_below(s, 2) == 0);
    size_t kind = opens ? task_below(s, brackets_of(t)->kinds) : 0;
    if (opens) {
      task_put_char(&out->prompt, opening[kind]);
      stack[open++] = closing[kind];
    } else
      task_put_char(&out->prompt, stack[--open]);
  }
  if (open == 0) return false;
  while (open > 0) task_put_char(&out->answer, stack[--open]);
  return true;
}

/* Reads one bracket. Returns 0 if its kind is not allowed or it closes one that is not open. */
static bool take_bracket(char c, size_t kinds, char *stack, size_t *open) {
  const char *kind = memchr(opening, c, kinds);
  if (kind != NULL) {
    stack[(*open)++] = closing[kind - opening];
    return true;
  }
  if (*open == 0 || stack[*open - 1] != c) return false;
  --*open;
  return true;
}

/* Graded reward: the fraction of the prompt's open brackets that the readable part of the response
 * closes. Every character that is not read counts as another open bracket. */
static double score_brackets(const task *t, const problem *p, const char *response, size_t n) {
  char stack[2 * TASK_MAX_LENGTH];
  const size_t kinds = brackets_of(t)->kinds;
  size_t open = 0, read = 0;
  for (const char *c = p->prompt; *c != '\0' && open < TASK_MAX_LENGTH; ++c)
    if (!take_bracket(*c, kinds, stack, &open)) return 0;
  size_t left = open, lowest = open;
  while (read < n && read < brackets_of(t)->longest &&
         take_bracket(response[read], kinds, stack, &open)) {
    ++read;
    if (open < lowest) lowest = open;
  }
  if (read == n && open == 0) return 1;
  if (!t->graded || left == 0) return 0;
  return (double)(left - lowest) / (double)(left + (n - read) + (open - lowest));
}

static gl_status read_brackets(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &brackets_of(t)->length, &brackets_of(t)->min_length);
  size_t length = brackets_of(t)->length,
         depth = cfg_count(r, "depth", length < 4 ? length : 4, 1, length);
  brackets_of(t)->kinds = field_count(r, "kinds");
  brackets_of(t)->longest = cfg_count(r, "longest", depth, depth, TASK_MAX_LENGTH);
  brackets_of(t)->depth = depth;
  t->max_prompt = length;
  t->max_answer = brackets_of(t)->longest;
  for (size_t i = 0; i < brackets_of(t)->kinds; ++i)
    task_use(t, (char[3]){opening[i], closing[i], '\0'});
  return r->status;
}

static const task_field brackets_fields[] = {
    {"length", "1 to 500", "8", "brackets of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "brackets of a prompt, at least", 0},
    {"depth", "1 to length", "4, or length where that is less",
     "most brackets that are open at once", 0},
    {"kinds", "1 to 4", "2", "pairs in use, of () [] {} <>", 0},
    {"longest", "depth to 500", "depth", "longest answer", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_brackets = {
    .name = "brackets",
    .about = "the end of a beginning of balanced brackets",
    .example = {"([]{", "})"},
    .field = brackets_fields,
    .parameters_size = sizeof(brackets),
    .read = read_brackets,
    .score = score_brackets,
    .has_graded = true,
    .draw = draw_brackets,
};
