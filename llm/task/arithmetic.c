/* Addition and modular arithmetic. */
#include "llm/task/internal.h"

#include <stdlib.h>
#include <string.h>

/* --- addition ------------------------------------------------------------------------------------
 *
 * Operands are uniform over the numbers of min_digits to digits digits. They are kept as digits,
 * least significant first, so that they may be longer than any integer type.
 */

enum { MAX_DIGITS = 64, MAX_TERMS = 8, MAX_SUM = MAX_DIGITS + 1 };

/* `digits` uniform digits are a uniform number; one with fewer than min_digits is drawn again. */
static void draw_operand(const task *t, task_source *s, char *digit) {
  size_t n = t->as.addition.digits, length;
  do {
    for (size_t i = n; i-- > 0;) digit[i] = (char)task_below(s, 10);
    for (length = n; length > 1 && digit[length - 1] == 0;) --length;
  } while (length < t->as.addition.min_digits);
}

/* The number digit[n], most significant first; without its leading zeros unless padded. */
static void put_digits(task_text *to, const char *digit, size_t n, int pad, int reverse) {
  while (!pad && n > 1 && digit[n - 1] == 0) --n;
  for (size_t i = 0; i < n; ++i) task_put_char(to, (char)('0' + digit[reverse ? i : n - 1 - i]));
}

static int by_digits(const void *a, const void *b) {
  return memcmp(a, b, MAX_DIGITS);
}

static int draw_addition(const task *t, task_source *s, task_sample *out) {
  char operand[MAX_TERMS][MAX_DIGITS] = {{0}}, sum[MAX_SUM] = {0};
  const size_t digits = t->as.addition.digits, terms = t->as.addition.terms,
               sum_digits = t->as.addition.answer_digits;
  const int pad = t->as.addition.pad;
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
  put_digits(&out->answer, sum, sum_digits, pad, t->as.addition.reverse);
  qsort(operand, terms, sizeof *operand, by_digits); /* 3+5 is the same problem as 5+3 */
  for (size_t k = 0; k < terms; ++k) {
    put_digits(&out->key, operand[k], digits, 0, 0);
    task_put_char(&out->key, '+');
  }
  return 1;
}

static gl_status read_addition(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  size_t digits = cfg_count(r, "digits", 2, 1, MAX_DIGITS),
         terms = cfg_count(r, "terms", 2, 2, MAX_TERMS);
  t->as.addition.min_digits = cfg_count(r, "min_digits", 1, 1, digits);
  t->as.addition.reverse = cfg_bool(r, "reverse", 0);
  t->as.addition.pad = cfg_bool(r, "pad", 0);
  t->as.addition.digits = digits;
  t->as.addition.terms = terms;
  /* terms (10^digits - 1) lies in [10^digits, 10^(digits + 1)) for 2 to 10 terms. */
  t->as.addition.answer_digits = digits + 1;
  t->max_prompt = terms * (digits + 1);
  t->max_answer = digits + 1;
  task_use(t, "+=0123456789");
  return r->status;
}

const task_rules task_addition = {"addition",    "sums of decimal numbers", read_addition,
                                  draw_addition, task_score_positions,      1};

/* --- modular -------------------------------------------------------------------------------------
 *
 * A chain of operands, uniform on 0 .. modulus - 1, joined by uniform operations and read with the
 * usual precedence.
 */

typedef struct chain {
  int64_t operand[MAX_TERMS];
  char operation[MAX_TERMS]; /* in front of the operand; '+' in front of the first */
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
  char product[MAX_TERMS][TASK_TEXT_SIZE / MAX_TERMS];
  size_t n = 0;
  for (size_t i = 0; i < c->n; ++n) {
    int64_t factor[MAX_TERMS];
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
  const int64_t modulus = t->as.modular.modulus;
  chain c = {.n = t->as.modular.terms};
  task_put_char(&out->prompt, '(');
  for (size_t i = 0; i < c.n; ++i) {
    c.operation[i] =
        i == 0 ? '+' : t->as.modular.operation[task_below(s, t->as.modular.n_operations)];
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
  t->as.modular.modulus = cfg_int(r, "modulus", 97, 2, 1000000);
  t->as.modular.terms = cfg_count(r, "terms", 2, 2, MAX_TERMS);
  t->as.modular.n_operations =
      task_choices(r, "operations", names, "+-*", 3, t->as.modular.operation);
  size_t digits = task_digits((uint64_t)t->as.modular.modulus - 1), terms = t->as.modular.terms;
  t->max_prompt = terms * (digits + 1) + 3 + task_digits((uint64_t)t->as.modular.modulus);
  t->max_answer = digits;
  task_use(t, "()%=");
  for (size_t i = 0; i < t->as.modular.n_operations; ++i)
    task_use(t, (char[2]){t->as.modular.operation[i], '\0'});
  task_use_digits(t, (uint64_t)t->as.modular.modulus);
  return r->status;
}

const task_rules task_modular = {"modular",
                                 "sums, differences and products modulo a number",
                                 read_modular,
                                 draw_modular,
                                 task_score_positions,
                                 0};
