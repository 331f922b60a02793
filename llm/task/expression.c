/* Reads arithmetic expressions and computes their values as exact fractions. */
#include "llm/task/expression.h"

/*   sum     = product { ("+" | "-") product }
 *   product = atom { ("*" | "/") atom }
 *   atom    = digits | "(" sum ")"
 */
typedef struct parser {
  const char *at, *end;
  size_t depth;
  expression *out;
} parser;

static expression_status read_sum(parser *p, rational *value);

static int is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* The next character that is no white space; '\0' at the end (and for a NUL, which nothing takes).
 */
static char peek(parser *p) {
  while (p->at < p->end && is_space(*p->at)) ++p->at;
  return p->at < p->end ? *p->at : '\0';
}

static expression_status read_number(parser *p, rational *value) {
  int64_t x = 0;
  for (; p->at < p->end && is_digit(*p->at); ++p->at)
    if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *p->at - '0', &x))
      return EXPRESSION_OVERFLOW;
  if (p->out->n_numbers == EXPRESSION_MAX_NUMBERS) return EXPRESSION_MANY;
  p->out->number[p->out->n_numbers++] = x;
  *value = (rational){x, 1};
  return EXPRESSION_OK;
}

static expression_status read_atom(parser *p, rational *value) {
  char c = peek(p);
  if (is_digit(c)) return read_number(p, value);
  if (c != '(') return EXPRESSION_SYNTAX;
  if (p->depth == EXPRESSION_MAX_DEPTH) return EXPRESSION_DEEP;
  ++p->at;
  ++p->depth;
  expression_status status = read_sum(p, value);
  if (status != EXPRESSION_OK) return status;
  if (peek(p) != ')') return EXPRESSION_SYNTAX;
  ++p->at;
  --p->depth;
  return EXPRESSION_OK;
}

static expression_status read_product(parser *p, rational *value) {
  expression_status status = read_atom(p, value);
  for (char c = peek(p); status == EXPRESSION_OK && (c == '*' || c == '/'); c = peek(p)) {
    rational right;
    ++p->at;
    status = read_atom(p, &right);
    if (status != EXPRESSION_OK) return status;
    if (c == '/' && right.num == 0) return EXPRESSION_DIVISION;
    if (!(c == '*' ? rational_multiply(value, *value, right)
                   : rational_divide(value, *value, right)))
      return EXPRESSION_OVERFLOW;
  }
  return status;
}

static expression_status read_sum(parser *p, rational *value) {
  expression_status status = read_product(p, value);
  for (char c = peek(p); status == EXPRESSION_OK && (c == '+' || c == '-'); c = peek(p)) {
    rational right;
    ++p->at;
    status = read_product(p, &right);
    if (status != EXPRESSION_OK) return status;
    if (!(c == '+' ? rational_add(value, *value, right) : rational_subtract(value, *value, right)))
      return EXPRESSION_OVERFLOW;
  }
  return status;
}

expression_status expression_read(expression *out, const char *text, size_t size) {
  parser p = {text, text + size, 0, out};
  out->n_numbers = 0;
  expression_status status = read_sum(&p, &out->value);
  if (status != EXPRESSION_OK) return status;
  peek(&p);
  return p.at == p.end ? EXPRESSION_OK : EXPRESSION_SYNTAX;
}
