/* Addition and modular arithmetic. */
#include "llm/task/internal.h"

#include "core/config/fields.h"

#include <stdlib.h>
#include <string.h>

/* --- addition --- */
/* Operands are uniform over the numbers of min_digits to digits digits. They are kept as digits,
 * least significant first, so that they may be longer than any integer type.
 */

enum { MAX_SUM = TASK_MAX_DIGITS + 1 };

typedef struct addition {
  size_t digits, min_digits, terms;
  int reverse, pad;
  size_t answer_digits; /* of the largest sum */
} addition;

static addition *addition_of(const task *t) {
  return t->parameters;
}

/* `digits` uniform digits are a uniform number; one with fewer than min_digits is drawn again. */
static void draw_operand(const task *t, task_source *s, char *digit) {
  size_t n = addition_of(t)->digits, length;
  do {
    for (size_t i = n; i-- > 0;) digit[i] = (char)task_below(s, 10);
    for (length = n; length > 1 && digit[length - 1] == 0;) --length;
  } while (length < addition_of(t)->min_digits);
}

/* The number digit[n], most significant first; without its leading zeros unless padded. */
static void put_digits(task_text *to, const char *digit, size_t n, int pad, int reverse) {
  while (!pad && n > 1 && digit[n - 1] == 0) --n;
  for (size_t i = 0; i < n; ++i) task_put_char(to, (char)('0' + digit[reverse ? i : n - 1 - i]));
}

static int by_digits(const void *a, const void *b) {
  return memcmp(a, b, TASK_MAX_DIGITS);
}

static int draw_addition(const task *t, task_source *s, task_sample *out) {
  char operand[TASK_MAX_TERMS][TASK_MAX_DIGITS] = {{0}}, sum[MAX_SUM] = {0};
  const size_t digits = addition_of(t)->digits, terms = addition_of(t)->terms,
               sum_digits = addition_of(t)->answer_digits;
  const int pad = addition_of(t)->pad;
  for (size_t k = 0; k < terms; ++k) {
    draw_operand(t, s, operand[k]);
    if (k != 0) task_put_char(&out->prompt, '+');
    put_digits(&out->prompt, operand[k], digits, pad, 0);
  }
  task_put_char(&out->prompt, '=');
  int carry = 0;
  for (size_t i = 0; i < sum_digits; ++i) {
    for (size_t k = 0; k < terms && i < digits; ++k) carry += operand[k][i];
    sum[i] = (char)(carry % 10);
    carry /= 10;
  }
  put_digits(&out->answer, sum, sum_digits, pad, addition_of(t)->reverse);
  qsort(operand, terms, sizeof *operand, by_digits); /* 3+5 is the same problem as 5+3 */
  for (size_t k = 0; k < terms; ++k) {
    put_digits(&out->key, operand[k], digits, 0, 0);
    task_put_char(&out->key, '+');
  }
  return 1;
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
  /* terms (10^digits - 1) lies in [10^digits, 10^(digits + 1)) for 2 to 10 terms. */
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
    .has_graded = 1,
    .draw = draw_addition,
};

/* --- modular --- */
/* A chain of operands, uniform on 0 .. modulus - 1, joined by uniform operations and read with the
 * usual precedence.
 */

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
  char operation[TASK_MAX_TERMS]; /* in front of the operand; '+' in front of the first */
  size_t n;
} chain;

static int64_t chain_value(const chain *c, int64_t modulus) {
  int64_t sum = 0;
  for (size_t i = 0; i < c->n;) {
    int minus = c->operation[i] == '-';
    int64_t product = c->operand[i++];
    for (; i < c->n && c->operation[i] == '*'; ++i) product = product * c->operand[i] % modulus;
    sum = (sum + (minus ? modulus - product : product)) % modulus;
  }
  return sum;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b) {
  return strcmp(a, b);
}

/* The chain with the factors of each product, and then its products with their signs, sorted:
 * equal for chains that differ only in the order that does not matter. */
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
    qsort(factor, k, sizeof *factor, by_value);
    for (size_t j = 0; j < k; ++j) {
      if (j != 0) task_put_char(&text, '*');
      task_put_number(&text, factor[j]);
    }
    memcpy(product[n], text.data, text.n + 1);
  }
  qsort(product, n, sizeof *product, by_text);
  for (size_t i = 0; i < n; ++i) task_put(to, product[i], strlen(product[i]));
}

static int draw_modular(const task *t, task_source *s, task_sample *out) {
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
  return 1;
}

static gl_status read_modular(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  static const char *const names[] = {"add", "subtract", "multiply"};
  modular_of(t)->modulus = field_whole(r, "modulus");
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
    .has_graded = 0,
    .draw = draw_modular,
};
