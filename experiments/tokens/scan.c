/* Scans lines of JSON: where fields are, and the numbers of long lists. */
#include "experiments/tokens/scan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static const char *skip_blanks(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') ++at;
  return at;
}

static void fail(scan *s, const char *at, const char *why) {
  if (s->why != NULL) return;
  s->at = at;
  s->why = why;
}

size_t scan_column(const char *line, const char *at) {
  size_t column = 1;
  for (; line < at; ++line) column += ((unsigned char)*line & 0xc0) != 0x80;
  return column;
}

/* --- where values end --- */

/* The closing quote of the string whose opening quote is at `at`; NULL: there is none. */
static const char *string_end(const char *at, const char *end) {
  for (const char *from = at + 1; from < end;) {
    const char *quote = memchr(from, '"', (size_t)(end - from));
    if (quote == NULL) return NULL;
    size_t n = 0;
    while (quote - 1 - n > at && quote[-1 - (ptrdiff_t)n] == '\\') ++n;
    if (n % 2 == 0) return quote;
    from = quote + 1;
  }
  return NULL;
}

/* The bracket that ends a list of scalars; NULL: the list has other elements, or no end. */
static const char *flat_end(const char *at, const char *end) {
  const char *close = memchr(at, ']', (size_t)(end - at));
  if (close == NULL) return NULL;
  const size_t n = (size_t)(close - at) - 1;
  return memchr(at + 1, '"', n) == NULL && memchr(at + 1, '[', n) == NULL ? close : NULL;
}

/* The end of the list or object at `at`, after its closing bracket; NULL: it is not closed before
 * `end`, or too deep. [ and } count as a pair: what is skipped is not checked (scan.h). */
static const char *container_end(const char *at, const char *end) {
  size_t depth = 0;
  do {
    if (*at == '[') {
      const char *close = flat_end(at, end);
      if (close != NULL)
        at = close;
      else if (++depth > MOST_DEPTH)
        return NULL;
    } else if (*at == '{') {
      if (++depth > MOST_DEPTH) return NULL;
    } else if (*at == '"') {
      at = string_end(at, end);
      if (at == NULL) return NULL;
    } else if ((*at == ']' || *at == '}') && depth > 0) {
      --depth;
    }
    if (++at > end) return NULL;
  } while (depth > 0 && at < end);
  return depth == 0 ? at : NULL;
}

/* The end of the value at `at`; NULL: it has none. */
static const char *value_end(const char *at, const char *end) {
  if (*at == '"') {
    const char *quote = string_end(at, end);
    return quote == NULL ? NULL : quote + 1;
  }
  if (*at == '[' || *at == '{') return container_end(at, end);
  const char *from = at;
  while (at < end && strchr(",]} \t\r\n:\"", *at) == NULL) ++at;
  return at == from ? NULL : at;
}

/* --- objects --- */

void scan_begin(scan *s, const char *text, size_t size) {
  *s = (scan){.start = text, .at = text, .end = text + size};
}

void scan_enter(scan *s) {
  s->at = skip_blanks(s->at);
  if (*s->at != '{')
    fail(s, s->at, "an object {…} is expected here");
  else
    ++s->at;
}

static bool leave(scan *s) {
  s->at = skip_blanks(s->at + 1);
  if (s->at != s->end) fail(s, s->at, "there is more behind the end of the object");
  return false;
}

bool scan_member(scan *s, scan_piece *key, scan_piece *value) {
  if (s->why != NULL) return false;
  const char *at = skip_blanks(s->at);
  const bool is_first = s->at > s->start && s->at[-1] == '{';
  s->at = at;
  if (*at == '}') return leave(s);
  if (!is_first && *at == ',')
    at = skip_blanks(at + 1);
  else if (!is_first)
    fail(s, at, "a comma or } is expected here");
  if (s->why == NULL && *at != '"') fail(s, at, "a key in quotes is expected here");
  const char *quote = s->why == NULL ? string_end(at, s->end) : NULL;
  const char *colon = quote != NULL ? skip_blanks(quote + 1) : at;
  if (*colon != ':') fail(s, colon, "a key and a colon are expected here");
  if (s->why != NULL) return false;
  *key = (scan_piece){at + 1, (size_t)(quote - at) - 1};
  const char *from = skip_blanks(colon + 1), *to = value_end(from, s->end);
  if (to == NULL) {
    fail(s, from, "this value has no end, or is none");
    return false;
  }
  *value = (scan_piece){from, (size_t)(to - from)};
  s->at = to;
  return true;
}

bool scan_is_cut(const char *text, size_t size) {
  const char *at = text, *end = text + size;
  size_t depth = 0;
  if (size == 0 || *text != '{') return false;
  for (; at < end; ++at) {
    if (*at == '"') {
      at = string_end(at, end);
      if (at == NULL) return true;
    } else if (*at == '{' || *at == '[') {
      ++depth;
    } else if ((*at == '}' || *at == ']') && depth > 0) {
      --depth;
    }
  }
  return depth > 0;
}

/* --- numbers --- */

static bool scan_is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Reads eight digits at once, with their value to *out; false if the eight bytes are not all
 * digits. */
static bool eight_digits(const char *at, uint64_t *out) {
  uint64_t v;
  memcpy(&v, at, sizeof v);
  const uint64_t zero = v ^ UINT64_C(0x3030303030303030);
  if (((zero + UINT64_C(0x0606060606060606)) | zero) & UINT64_C(0xf0f0f0f0f0f0f0f0)) return false;
  v = zero * 10 + (zero >> 8);
  v = ((v & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
       ((v >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
      32;
  *out = v;
  return true;
}

static double nearest(const char *at) {
  return strtod(at, NULL);
}

static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                     1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                     1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/* digits * 10^-places, rounded once. The quotient of two exact numbers with 64 bits is rounded to
 * nearest; rounding it again to 53 bits is the same as rounding once, unless it lies half-way
 * between two doubles. `text` is the number's text, for that case. */
static double decimal(uint64_t digits, size_t places, const char *text) {
#if LDBL_MANT_DIG == 64
  if (places < sizeof powers / sizeof *powers) {
    const long double q = (long double)digits / powers[places];
    uint64_t bits;
    memcpy(&bits, &q, sizeof bits);
    if ((bits & 0x7ff) != 0x400) return (double)q;
  }
#else
  if (digits <= UINT64_C(1) << 53 && places <= 22) return (double)digits / (double)powers[places];
#endif
  return nearest(text);
}

/* Python's words for numbers that are not finite. */
static const char *read_python_word(const char *at, double *out) {
  static const char *const words[] = {"NaN", "null", "Infinity", "-Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    const size_t n = strlen(words[i]);
    if (strncmp(at, words[i], n) != 0) continue;
    *out = NAN;
    return at + n;
  }
  return NULL;
}

/* Reads the exponent at `at` and returns its end; NULL if it has no digits. Adds a negative
 * exponent to *places; sets *odd if the exponent is not negative. */
static const char *read_exponent(const char *at, size_t *places, bool *odd) {
  size_t value = 0;
  const char *first = at += at[1] == '+' || at[1] == '-' ? 2 : 1;
  if (!scan_is_digit(*at)) return NULL;
  for (; scan_is_digit(*at); ++at) value = value < 1000 ? value * 10 + (size_t)(*at - '0') : value;
  *odd = first[-1] != '-';
  *places += value;
  return at;
}

/* Number of significant digits: without leading zeros. */
static size_t significant(const char *first, size_t n_digits) {
  for (; n_digits > 0 && (*first == '0' || *first == '.'); ++first) n_digits -= *first == '0';
  return n_digits;
}

static const char *add_digits(const char *at, uint64_t *digits) {
  for (; scan_is_digit(*at); ++at) *digits = *digits * 10 + (uint64_t)(*at - '0');
  return at;
}

/* Appends the digits after the decimal point, eight at a time, because there are many. end: end of
 * the line, which a NUL follows. */
static const char *add_fraction(const char *at, const char *end, uint64_t *digits) {
  for (uint64_t eight; end - at >= 8 && eight_digits(at, &eight); at += 8)
    *digits = *digits * 100000000 + eight;
  return add_digits(at, digits);
}

/* Reads a number: returns its end, or NULL. */
static inline const char *read_number(const char *from, const char *end, double *out) {
  const char *at = from + (*from == '-'), *first = at;
  uint64_t digits = 0;
  if (!scan_is_digit(*at)) return read_python_word(from, out);
  at = add_digits(at, &digits);
  if (*first == '0' && at > first + 1) return NULL;
  size_t n_digits = (size_t)(at - first), places = 0;
  if (*at == '.') {
    const char *point = at++;
    at = add_fraction(at, end, &digits);
    places = (size_t)(at - point) - 1;
    if (places == 0) return NULL;
    n_digits += places;
  }
  bool odd = false;
  if ((*at == 'e' || *at == 'E') && (at = read_exponent(at, &places, &odd)) == NULL) return NULL;
  if (n_digits > 19) odd = odd || significant(first, n_digits) > 19;
  const double value = odd ? nearest(first) : decimal(digits, places, first);
  *out = *from == '-' ? -value : value;
  return at;
}

const char *scan_number(scan_piece v, double *out) {
  const char *end = v.text + v.size, *at = read_number(v.text, end, out);
  return at == end ? NULL : v.text;
}

const char *scan_integer(scan_piece v, uint64_t *out) {
  double value = NAN;
  if (scan_number(v, &value) != NULL || !(value >= 0 && value <= 9007199254740992.0) ||
      value != floor(value))
    return v.text;
  *out = (uint64_t)value;
  return NULL;
}

/* --- lists --- */

bool scan_unwrap(scan_piece *v) {
  const char *at = v->text, *end = v->text + v->size;
  if (v->size < 2 || *at != '[' || end[-1] != ']') return false;
  at = skip_blanks(at + 1);
  --end;
  while (end > at && strchr(" \t\r\n", end[-1]) != NULL) --end;
  if (end == at || value_end(at, end) != end) return false;
  *v = (scan_piece){at, (size_t)(end - at)};
  return true;
}

/* Moves past the comma after an element, or at the closing bracket sets *more to false. NULL:
 * neither follows. */
static inline const char *next_element(const char *at, bool *more) {
  if (*at != ',' && *at != ']') at = skip_blanks(at);
  *more = *at == ',';
  if (*at == ']') return at + 1;
  if (*at != ',') return NULL;
  ++at;
  return *at == ' ' ? skip_blanks(at) : at;
}

static const char *mask_element(const char *at, unsigned char *value) {
  if (*at == '0' || *at == '1') {
    *value = (unsigned char)(*at++ - '0');
    return at[0] == '.' && at[1] == '0' ? at + 2 : at;
  }
  *value = *at == 't';
  if (strncmp(at, "true", 4) == 0) return at + 4;
  return strncmp(at, "false", 5) == 0 ? at + 5 : NULL;
}

/* Reads eight equal values at once, in the form that Python's json.dumps() writes; false if there
 * is anything else. */
static bool mask_eight(const char *at, const char *end, unsigned char *mask) {
  static const char zeros[] = "0, 0, 0, 0, 0, 0, 0, 0, ", ones[] = "1, 1, 1, 1, 1, 1, 1, 1, ";
  const size_t size = sizeof zeros - 1;
  if ((size_t)(end - at) < size || memcmp(at, *at == '1' ? ones : zeros, size) != 0) return false;
  memset(mask, *at == '1', 8);
  return true;
}

const char *scan_mask(scan_piece v, unsigned char *mask, size_t room, size_t *n) {
  const char *at = v.text, *end = v.text + v.size;
  bool more = true;
  *n = 0;
  if (v.size < 2 || *at != '[') return at;
  at = skip_blanks(at + 1);
  if (*at == ']') return at + 1 == end ? NULL : at;
  while (more) {
    unsigned char value = 0;
    const char *from = at;
    if (*n + 8 <= room && mask_eight(at, end, mask + *n)) {
      at += 24;
      *n += 8;
      continue;
    }
    at = mask_element(at, &value);
    if (at == NULL || (at = next_element(at, &more)) == NULL) return from;
    if (*n < room) mask[*n] = value;
    ++*n;
  }
  return at == end ? NULL : at;
}

/* Returns the end of an element that is skipped. */
static inline const char *pass_element(const char *at) {
  while (*at != ',' && *at != ']' && *at != '[' && *at != '"' && *at != '\0') ++at;
  return at;
}

/* Sets the highest bit of each byte that is equal to c in v, and clears all other bits. */
static uint64_t marks_of(uint64_t v, char c) {
  const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
  const uint64_t x = v ^ UINT64_C(0x0101010101010101) * (unsigned char)c;
  return ~(((x & low) + low) | x | low);
}

/* Passes n elements and their commas, eight bytes at a time; stops earlier at an element that is
 * not a scalar, and before the last bytes of the list. *n becomes the number of elements left. */
static const char *pass_elements(const char *at, const char *end, size_t *n) {
  for (uint64_t v; end - at >= 8; at += 8) {
    memcpy(&v, at, sizeof v);
    const size_t commas = (size_t)((marks_of(v, ',') >> 7) * UINT64_C(0x0101010101010101) >> 56);
    if (commas >= *n || (marks_of(v, '[') | marks_of(v, ']') | marks_of(v, '"')) != 0) break;
    *n -= commas;
  }
  return at;
}

/* Returns the length of the run of masked elements (mask 0) that begins at i. */
static size_t masked_run(const unsigned char *mask, size_t i, size_t n) {
  const unsigned char *next = memchr(mask + i, 1, n - i);
  return next != NULL ? (size_t)(next - mask) - i : n - i;
}

const char *scan_masked(scan_piece v, const unsigned char *mask, size_t n, double *out,
                        size_t *n_seen) {
  const char *at = v.text, *end = v.text + v.size;
  bool more = true;
  size_t i = 0;
  *n_seen = 0;
  if (v.size < 2 || *at != '[') return at;
  at = skip_blanks(at + 1);
  if (*at == ']') return at + 1 == end ? NULL : at;
  while (more && i < n) {
    const char *from = at;
    size_t left = mask[i] ? 1 : masked_run(mask, i, n);
    i += left;
    if (left > 4) at = pass_elements(at, end, &left);
    for (i -= left; left > 0 && more; --left, ++i) {
      at = mask[i] ? read_number(at, end, out) : pass_element(at);
      if (at == NULL || (at = next_element(at, &more)) == NULL) return from;
      out += mask[i];
    }
  }
  *n_seen = i + more;
  return more || at == end ? NULL : at;
}

bool scan_constant(scan_piece v, double *value) {
  if (v.size < 3 || *v.text != '[') return false;
  const char *end = v.text + v.size, *first = skip_blanks(v.text + 1), *last = end - 1;
  const char *to = read_number(first, end, value);
  if (to == NULL) return false;
  while (last > to && strchr(" \t\r\n", last[-1]) != NULL) --last;
  if (to == last) return true;
  const char *second = *to == ',' ? skip_blanks(to + 1) : end;
  const size_t period = (size_t)(second - first), size = (size_t)(last - first);
  if (second >= last || (size + period - (size_t)(to - first)) % period != 0) return false;
  return memcmp(first, second, size - period) == 0;
}

bool scan_head(scan_piece v, size_t n, scan_piece *head) {
  const char *at = v.text, *end = v.text + v.size;
  if (v.size < 2 || *at != '[') return false;
  const char *first = ++at;
  for (size_t i = 0; i < n; ++i) {
    at = pass_element(at);
    if (*at != ',' && !(*at == ']' && i + 1 == n && at + 1 == end)) return false;
    if (i + 1 < n) ++at;
  }
  *head = (scan_piece){first, (size_t)(at - first)};
  return true;
}

bool scan_element(scan_piece *v, scan_piece *element) {
  if (v->size == 0 || (*v->text != '[' && *v->text != ',')) return false;
  const char *end = v->text + v->size, *at = skip_blanks(v->text + 1);
  const char *to = *at == ']' ? NULL : value_end(at, end);
  if (to == NULL) return false;
  *element = (scan_piece){at, (size_t)(to - at)};
  to = skip_blanks(to);
  *v = (scan_piece){to, (size_t)(end - to)};
  return true;
}
