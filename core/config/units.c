/* The table of units, and parsing of numbers with units. */
#include "core/config/units.h"

#include "core/base/json.h"
#include "core/config/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the table --- */

#define THOUSAND_OR_1024 "1000 or 1024? write kB or KiB, MB or MiB, GB or GiB"
#define BIT_OR_BYTE "bits or bytes? write Mbit or MB, as in 100Mbit/s or 12.5MB/s"
#define WRITE_OUT "thousands or 1024s? write the number out, as 32768 or 1e6"

static const unit table[] = {
    {"s", "s", 1, 0, "seconds"},
    {"ms", "s", 1, -3, "milliseconds"},
    {"us", "s", 1, -6, "microseconds"},
    {"\xc2\xb5s", "s", 1, -6, "microseconds"},
    {"ns", "s", 1, -9, "nanoseconds"},
    {"m", "s", 60, 0, "minutes"},
    {"min", "s", 60, 0, "minutes"},
    {"h", "s", 3600, 0, "hours"},
    {"d", "s", 86400, 0, "days"},
    {"M", "s", 0, 0, "months or minutes? write m or min for minutes, d for days"},

    {"B", "bytes", 1, 0, "bytes"},
    {"bytes", "bytes", 1, 0, "bytes"},
    {"kB", "bytes", 1, 3, "1000 bytes"},
    {"MB", "bytes", 1, 6, "10^6 bytes"},
    {"GB", "bytes", 1, 9, "10^9 bytes"},
    {"TB", "bytes", 1, 12, "10^12 bytes"},
    {"KiB", "bytes", UINT64_C(1) << 10, 0, "1024 bytes"},
    {"MiB", "bytes", UINT64_C(1) << 20, 0, "1024^2 bytes"},
    {"GiB", "bytes", UINT64_C(1) << 30, 0, "1024^3 bytes"},
    {"TiB", "bytes", UINT64_C(1) << 40, 0, "1024^4 bytes"},
    {"bit", "bytes", 125, -3, "an eighth of a byte"},
    {"kbit", "bytes", 125, 0, "1000 bits, 125 bytes"},
    {"Mbit", "bytes", 125, 3, "10^6 bits, 125,000 bytes"},
    {"Gbit", "bytes", 125, 6, "10^9 bits"},
    {"Tbit", "bytes", 125, 9, "10^12 bits"},
    {"Kibit", "bytes", 128, 0, "1024 bits, 128 bytes"},
    {"Mibit", "bytes", UINT64_C(128) << 10, 0, "1024^2 bits"},
    {"Gibit", "bytes", UINT64_C(128) << 20, 0, "1024^3 bits"},
    {"KB", "bytes", 0, 0, THOUSAND_OR_1024},
    {"k", "bytes", 0, 0, THOUSAND_OR_1024},
    {"K", "bytes", 0, 0, THOUSAND_OR_1024},
    {"M", "bytes", 0, 0, THOUSAND_OR_1024},
    {"G", "bytes", 0, 0, THOUSAND_OR_1024},
    {"b", "bytes", 0, 0, BIT_OR_BYTE},
    {"kb", "bytes", 0, 0, BIT_OR_BYTE},
    {"Kb", "bytes", 0, 0, BIT_OR_BYTE},
    {"Mb", "bytes", 0, 0, BIT_OR_BYTE},
    {"Gb", "bytes", 0, 0, BIT_OR_BYTE},

    {"bps", "bytes/s", 125, -3, "bits a second"},
    {"kbps", "bytes/s", 125, 0, "1000 bits a second"},
    {"Mbps", "bytes/s", 125, 3, "10^6 bits a second, 125,000 bytes/s"},
    {"Gbps", "bytes/s", 125, 6, "10^9 bits a second"},

    {"tokens", "tokens", 1, 0, "tokens"},
    {"token", "tokens", 1, 0, "tokens"},
    {"k", "tokens", 0, 0, WRITE_OUT},
    {"K", "tokens", 0, 0, WRITE_OUT},
    {"M", "tokens", 0, 0, WRITE_OUT},

    {"updates", "updates", 1, 0, "learner updates"},
    {"update", "updates", 1, 0, "learner updates"},

    {"steps", "steps", 1, 0, "optimiser steps of the warm-up"},
    {"step", "steps", 1, 0, "optimiser steps of the warm-up"},

    {"FLOP", "FLOP", 1, 0, "floating-point operations"},
    {"GFLOP", "FLOP", 1, 9, "10^9 floating-point operations"},
    {"TFLOP", "FLOP", 1, 12, "10^12 floating-point operations"},
    {"PFLOP", "FLOP", 1, 15, "10^15 floating-point operations"},

    {"letters", "letters", 1, 0, "letters of a vocabulary"},
    {"letter", "letters", 1, 0, "letters of a vocabulary"},

    {"nats", "nats", 1, 0, "natural units of information"},
    {"nat", "nats", 1, 0, "natural units of information"},
};
enum { N_UNITS = sizeof table / sizeof *table };

const unit *units_at(size_t i) {
  return i < N_UNITS ? &table[i] : NULL;
}

static const unit *find_n(const char *name, size_t n, const char *dimension, size_t m) {
  for (size_t i = 0; i < N_UNITS; ++i)
    if (strncmp(table[i].name, name, n) == 0 && table[i].name[n] == '\0' &&
        strncmp(table[i].dimension, dimension, m) == 0 && table[i].dimension[m] == '\0')
      return &table[i];
  return NULL;
}

/* The length of the text without its "/s"; 0 if it has none. */
static size_t per_second(const char *text) {
  const size_t n = strlen(text);
  return n > 2 && strcmp(text + n - 2, "/s") == 0 ? n - 2 : 0;
}

const unit *units_find(const char *name, const char *dimension) {
  const unit *u = find_n(name, strlen(name), dimension, strlen(dimension));
  const size_t n = per_second(name), m = per_second(dimension);
  return u == NULL && n > 0 && m > 0 ? find_n(name, n, dimension, m) : u;
}

const char *units_example(const char *dimension) {
  static const char *const examples[][2] = {{"s", "10m"},
                                            {"bytes", "1.5GiB"},
                                            {"bytes/s", "100Mbit/s"},
                                            {"tokens", "512 tokens"},
                                            {"tokens/s", "50 tokens/s"},
                                            {"FLOP/s", "989TFLOP/s"},
                                            {"updates", "200 updates"},
                                            {"steps", "200 steps"},
                                            {"letters", "4 letters"},
                                            {"nats", "0.1 nats"}};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i)
    if (strcmp(examples[i][0], dimension) == 0) return examples[i][1];
  return "10";
}

/* --- numbers with a unit --- */

/* A decimal number, ± digits × 10^power, and the text after it. */
typedef struct quantity {
  int negative;
  uint64_t digits;
  int overflow; /* more digits than fit 64 bits */
  long power;
  size_t length;    /* length of the number's text */
  const char *unit; /* text after the number and at most one space */
} quantity;

enum { MOST_POWER = 100000 }; /* beyond this, every number except 0 is 0 or too large */

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Reads digits with single underscores between them; returns how many. */
static size_t read_digits(quantity *q, const char **text) {
  size_t n = 0;
  for (; is_digit(**text) || (n > 0 && **text == '_' && is_digit((*text)[1])); ++*text) {
    if (**text == '_') continue;
    const uint64_t digit = (uint64_t)(**text - '0');
    q->overflow |= q->digits > (UINT64_MAX - digit) / 10;
    if (!q->overflow) q->digits = q->digits * 10 + digit;
    ++n;
  }
  return n;
}

/* Parses a number; returns 0 if the text does not begin with one. */
static int take_number(quantity *q, const char *text) {
  const char *at = text;
  *q = (quantity){.negative = *at == '-'};
  if (*at == '-' || *at == '+') ++at;
  size_t digits = read_digits(q, &at);
  if (*at == '.') {
    ++at;
    const size_t after = read_digits(q, &at);
    q->power = -(long)after;
    digits += after;
  }
  if (digits == 0) return 0;
  const size_t sign = at[0] != '\0' && (at[1] == '-' || at[1] == '+');
  if ((*at == 'e' || *at == 'E') && is_digit(at[1 + sign])) {
    char *end;
    const long power = strtol(at + 1, &end, 10);
    q->power += power > MOST_POWER ? MOST_POWER : power < -MOST_POWER ? -MOST_POWER : power;
    at = end;
  }
  q->length = (size_t)(at - text);
  q->unit = at + (*at == ' ');
  return 1;
}

int cfg_is_quantity(const char *text) {
  quantity q;
  if (!take_number(&q, text)) return 0;
  const unsigned char first = (unsigned char)*q.unit;
  return (first | 32u) - 'a' < 26 || first >= 0x80;
}

/* The number nearest to digits × factor × 10^power: rounded once if the product of digits and
 * factor is exact, so that 0.1ms equals 0.0001. */
static double quantity_value(const quantity *q, const unit *u, const char *text) {
  char number[64];
  if (!q->overflow && q->digits <= UINT64_MAX / u->factor) {
    snprintf(number, sizeof number, "%s%llue%ld", q->negative ? "-" : "",
             (unsigned long long)(q->digits * u->factor), q->power + u->power);
    return strtod(number, NULL);
  }
  char clean[400];
  size_t n = 0;
  for (size_t i = 0; i < q->length && n + 1 < sizeof clean; ++i)
    if (text[i] != '_') clean[n++] = text[i];
  clean[n] = '\0';
  return strtod(clean, NULL) * (double)u->factor * pow(10, u->power);
}

/* Writes "s, ms, us, …": the units allowed for that dimension. */
static const char *known_units(const char *dimension, char *text, size_t size) {
  const size_t rate = per_second(dimension);
  size_t used = 0;
  *text = '\0';
  for (size_t i = 0; i < N_UNITS; ++i) {
    const unit *u = &table[i];
    const int own = strcmp(u->dimension, dimension) == 0;
    const int per =
        rate > 0 && strlen(u->dimension) == rate && strncmp(u->dimension, dimension, rate) == 0;
    if (u->factor == 0 || (!own && !per) || used >= size) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s%s", used > 0 ? ", " : "", u->name,
                             per ? "/s" : "");
  }
  return text;
}

/* The dimension of a unit with that name; NULL if there is none. */
static const char *other_dimension(const char *name) {
  const size_t n = per_second(name);
  for (size_t i = 0; i < N_UNITS; ++i)
    if (table[i].factor > 0 && strcmp(table[i].name, name) == 0) return table[i].dimension;
  for (size_t i = 0; n > 0 && i < N_UNITS; ++i)
    if (table[i].factor > 0 && find_n(name, n, table[i].dimension, strlen(table[i].dimension)))
      return table[i].dimension; /* that of the name without its /s */
  return NULL;
}

static gl_status refuse_unit(const cfg_node *node, const char *name, const char *dimension,
                             const char *path, gl_error *err) {
  char known[400];
  const char *other = other_dimension(name), *rate = per_second(name) > 0 ? " a second" : "";
  if (other != NULL)
    return cfg_fail(node, err,
                    "'%s' is in %s; '%.60s' is in %s%s. Write a number, or one with a unit of %s, "
                    "as in %s",
                    path, dimension, node->text, other, rate, dimension, units_example(dimension));
  return cfg_fail(node, err,
                  "'%s' is in %s; '%.60s' has no unit that is known. Write a number, or one with "
                  "one of %s, as in %s",
                  path, dimension, node->text, known_units(dimension, known, sizeof known),
                  units_example(dimension));
}

gl_status cfg_convert(cfg_doc *doc, cfg_node *scalar, const char *dimension, const char *path,
                      gl_error *err) {
  quantity q;
  if (!scalar->plain || !cfg_is_quantity(scalar->text) || !take_number(&q, scalar->text))
    return GL_OK;
  if (cfg_value_of(scalar).kind != CFG_NOT_NUMBER) return GL_OK; /* for example 0x1b */
  const unit own = {dimension, dimension, 1, 0, NULL}, *u = units_find(q.unit, dimension);
  if (u == NULL && strcmp(q.unit, dimension) == 0) u = &own;
  if (u == NULL) return refuse_unit(scalar, q.unit, dimension, path, err);
  if (u->factor == 0)
    return cfg_fail(scalar, err, "'%s' is in %s; '%.60s' can be read in two ways: %s", path,
                    dimension, scalar->text, u->about);
  const double value = quantity_value(&q, u, scalar->text);
  if (!isfinite(value))
    return cfg_fail(scalar, err, "'%s' is in %s; '%.60s' is more than a double can hold", path,
                    dimension, scalar->text);
  const cfg_node *number = cfg_number_node(doc, scalar->at, value, err);
  if (number == NULL) return err->status;
  scalar->text = number->text;
  return GL_OK;
}

cfg_node *cfg_number_node(cfg_doc *doc, cfg_position at, double value, gl_error *err) {
  char text[NUMBER_TEXT_SIZE];
  number_text(value, text);
  cfg_node *node = cfg_node_new(doc, CFG_SCALAR, at, err);
  if (node == NULL) return NULL;
  node->plain = 1;
  node->text = cfg_strdup(doc, text, strlen(text));
  if (node->text != NULL) return node;
  gl_fail_memory(err, "a number of a recipe");
  return NULL;
}
