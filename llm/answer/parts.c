/* Taking answers apart: brackets, the sides of equations and relations, lists, and the names
 * that the parts of a list have. */
#include "llm/answer/internal.h"

#include <assert.h>
#include <string.h>

/* --- brackets --- */

/* Whether the command at s, with n letters behind its backslash, is `name`, which begins with the
 * backslash. */
static bool is_command(answer_span s, size_t n, const char *name) {
  return n + 1 == strlen(name) && answer_starts(s, name);
}

/* How the nesting changes at s, and how many characters that takes. */
static int nesting(answer_span s, size_t *length) {
  *length = 1;
  if (*s.at == '\\') {
    size_t n = answer_command(s);
    *length = n > 0 ? n + 1 : s.n > 1 ? 2 : 1;
    if (answer_starts(s, "\\{") || is_command(s, n, "\\begin") || is_command(s, n, "\\langle"))
      return 1;
    if (answer_starts(s, "\\}") || is_command(s, n, "\\end") || is_command(s, n, "\\rangle"))
      return -1;
    return 0;
  }
  return answer_is_any(*s.at, "([{") ? 1 : answer_is_any(*s.at, ")]}") ? -1 : 0;
}

size_t answer_split(answer_span s, const char *at, answer_span part[ANSWER_PARTS]) {
  size_t n = 0, begin = 0, depth = 0, length;
  assert(*at != '\0');
  for (size_t i = 0; i < s.n; i += length) {
    answer_span rest = {s.at + i, s.n - i};
    int change = nesting(rest, &length);
    if (change < 0 && depth == 0) return 0;
    depth += (size_t)change;
    if (depth > 0 || change < 0) continue;
    bool cuts =
        *at == '\\' ? answer_starts(rest, at) && length == strlen(at) : answer_is_any(*rest.at, at);
    if (!cuts) continue;
    if (n + 1 == ANSWER_PARTS) return 0;
    part[n++] = answer_trim((answer_span){s.at + begin, i - begin});
    begin = i + length;
  }
  part[n++] = answer_trim((answer_span){s.at + begin, s.n - begin});
  return depth == 0 ? n : 0;
}

answer_enclosure answer_enclosed(answer_span s, answer_span *inside) {
  size_t length, closing = 0, depth = 0, first = 0;
  *inside = s;
  for (size_t i = 0; i < s.n; i += length) {
    int change = nesting((answer_span){s.at + i, s.n - i}, &length);
    if (i == 0) first = length;
    if ((i == 0 && change <= 0) || (change < 0 && depth == 0)) return ANSWER_NO_BRACKETS;
    depth += (size_t)change;
    closing = length;
    if (depth == 0 && i + length < s.n) return ANSWER_NO_BRACKETS;
  }
  if (s.n == 0 || depth != 0 || s.n < first + closing) return ANSWER_NO_BRACKETS;
  *inside = answer_trim((answer_span){s.at + first, s.n - first - closing});
  char opens = s.at[first - 1], closes = s.at[s.n - 1];
  if (*s.at == '\\' && opens == '{') return closing == 2 ? ANSWER_BRACES : ANSWER_NO_BRACKETS;
  if (is_command(s, first - 1, "\\langle"))
    return closes == 'e' ? ANSWER_ANGLE : ANSWER_NO_BRACKETS;                  /* of \rangle */
  if (*s.at == '\\') return closes == 'd' ? ANSWER_ARRAY : ANSWER_NO_BRACKETS; /* of \end */
  if (opens == '{') return closes == '}' ? ANSWER_BRACES : ANSWER_NO_BRACKETS;
  if (opens == '(')
    return closes == ')' ? ANSWER_ROUND : closes == ']' ? ANSWER_OPEN_LEFT : ANSWER_NO_BRACKETS;
  return closes == ']' ? ANSWER_SQUARE : closes == ')' ? ANSWER_OPEN_RIGHT : ANSWER_NO_BRACKETS;
}

/* --- relations and labels --- */

const char *answer_relation(answer_span s, answer_span side[2]) {
  static const struct {
    const char *sign, *name;
    bool turns;
  } signs[] = {
      {"<", "<", 0}, {">", "<", 1}, {"\\le", "le", 0}, {"\\ge", "le", 1}, {"\\ne", "ne", 0}};
  answer_span part[ANSWER_PARTS];
  const char *name = NULL;
  if (answer_split(s, ",;", part) != 1) return NULL;
  for (size_t k = 0; k < sizeof signs / sizeof *signs; ++k) {
    size_t n = answer_split(s, signs[k].sign, part);
    if (n < 2) continue;
    if (n > 2 || name != NULL) return NULL;
    name = signs[k].name;
    side[signs[k].turns] = part[0];
    side[!signs[k].turns] = part[1];
  }
  return name;
}

/* A label begins with a letter; what begins with a digit is a ratio or a time. */
bool answer_label(answer_span s, answer_span side[ANSWER_PARTS]) {
  return answer_split(s, ":", side) == 2 && side[0].n > 0 && answer_is_letter(*side[0].at);
}

/* --- thousands --- */

/* Whether the comma right behind a may stand between thousands: one to three digits before it, and
 * three behind it, without white space. */
static bool joins_thousands(answer_span a, answer_span b) {
  size_t before = 0;
  while (before < a.n && answer_is_digit(a.at[a.n - 1 - before])) ++before;
  return a.at + a.n + 1 == b.at && before >= 1 && before <= 3 && answer_count_digits(b, 0) == 3;
}

/* Puts parts that a comma between thousands cut back together: the number of parts left. */
static size_t join_thousands(answer_span part[ANSWER_PARTS], size_t n) {
  size_t kept = n > 0;
  for (size_t i = 1; i < n; ++i) {
    answer_span *last = &part[kept - 1];
    if (joins_thousands(*last, part[i]))
      last->n = (size_t)(part[i].at + part[i].n - last->at);
    else
      part[kept++] = part[i];
  }
  return kept;
}

/* --- lists --- */

static const answer_span no_name = {"", 0};

/* Makes a list of n values, each with the name at its place. */
static void zip(answer_list *out, const answer_span *name, const answer_span *value, size_t n) {
  out->n = n;
  for (size_t i = 0; i < n; ++i) {
    out->part[i].name = name[i];
    out->part[i].text = value[i];
    out->part[i].has_sign = 0;
  }
}

/* (x, y) = (1, 2) */
static bool read_named_tuple(answer_list *out, answer_span s) {
  answer_span side[ANSWER_PARTS], in, name[ANSWER_PARTS], value[ANSWER_PARTS];
  if (answer_split(s, "=", side) != 2) return false;
  if (answer_enclosed(side[0], &in) != ANSWER_ROUND) return false;
  size_t n = answer_split(in, ",", name);
  for (size_t i = 0; i < n; ++i)
    if (!answer_is_name(name[i])) return false;
  if (n < 2 || answer_enclosed(side[1], &in) != ANSWER_ROUND) return false;
  if (answer_split(in, ",", value) != n) return false;
  out->kind = ANSWER_ROUND;
  zip(out, name, value, n);
  return true;
}

/* x, y = 1, 2: of n parts only the middle one has a sign of equality. */
static bool read_names_then_values(answer_list *out, const answer_span *part, size_t n) {
  answer_span name[ANSWER_PARTS], value[ANSWER_PARTS], side[ANSWER_PARTS];
  size_t half = n / 2;
  if (n < 3 || n % 2 == 0 || answer_split(part[half], "=", side) != 2) return false;
  for (size_t i = 0; i <= half; ++i) {
    name[i] = i < half ? part[i] : side[0];
    value[i] = i == 0 ? side[1] : part[half + i];
    if (!answer_is_name(name[i]) || (i > 0 && answer_split(value[i], "=", side) != 1)) return false;
    if (i == 0) answer_split(part[half], "=", side);
  }
  zip(out, name, value, half + 1);
  return true;
}

/* x = 1, 2: what has no name of its own takes the one before it. */
static void read_names(answer_list *out) {
  answer_span side[ANSWER_PARTS], name = no_name;
  for (size_t i = 0; i < out->n; ++i) {
    size_t n = answer_sides(out->part[i].text, side, NULL);
    out->part[i].has_sign = n > 1;
    if (n > 1) name = answer_is_name(side[0]) ? side[0] : no_name;
    out->part[i].name = name;
  }
}

/* (x, y = 1, 2) is what x, y = 1, 2 is; [x, y = 1, 2] is not. */
static bool may_hold_names(answer_enclosure kind) {
  return kind == ANSWER_NO_BRACKETS || kind == ANSWER_BRACES || kind == ANSWER_ROUND;
}

bool answer_list_read(answer_list *out, answer_span s, bool thousands) {
  answer_span in, part[ANSWER_PARTS];
  *out = (answer_list){.kind = answer_enclosed(s, &in), .n = 1, .part = {{s, no_name, 0}}};
  if (out->kind == ANSWER_ARRAY) return true;
  size_t n = answer_split(in, ",;", part);
  if (n == 0) return false;
  if (thousands && out->kind == ANSWER_NO_BRACKETS) n = join_thousands(part, n);
  if (n == 1) {
    out->named = read_named_tuple(out, in);
    return true;
  }
  if (may_hold_names(out->kind) && read_names_then_values(out, part, n)) {
    out->named = 1;
    return true;
  }
  out->n = n;
  for (size_t i = 0; i < n; ++i) out->part[i].text = answer_without_unit(part[i]);
  read_names(out);
  out->named = out->nameless = 1;
  for (size_t i = 0; i < n; ++i) {
    out->named &= out->part[i].name.n > 0;
    out->nameless &= out->part[i].name.n == 0 && !out->part[i].has_sign;
  }
  return true;
}

/* --- sides --- */

bool answer_is_name(answer_span s) {
  size_t depth = 0;
  bool in_argument = 0; /* f(-0.5), but not (-x) */
  bool has_letter = 0;  /* \frac{22}{7} has none, for a command's letters do not count */
  if (s.n == 0 || s.n > 40 || answer_is_digit(*s.at)) return false;
  for (size_t i = 0, command; i < s.n; i += 1 + command) {
    char c = s.at[i];
    command = answer_command((answer_span){s.at + i, s.n - i});
    has_letter |= command > 0 ? answer_is_variable((answer_span){s.at + i + 1, command})
                              : answer_is_letter(c);
    if (answer_is_any(c, "({")) ++depth;
    if (answer_is_any(c, ")}") && depth > 0) --depth;
    if (c == '(' && depth == 1) in_argument = i > 0 && answer_is_letter(s.at[i - 1]);
    if (answer_is_digit(c) && (depth > 0 || (i > 0 && s.at[i - 1] == '_'))) continue;
    if (answer_is_any(c, "-.") && depth > 0 && in_argument) continue;
    if (!answer_is_letter(c) && !answer_is_any(c, " \\(){}_,'|:")) return false;
  }
  return has_letter;
}

size_t answer_sides(answer_span s, answer_span side[ANSWER_PARTS], size_t *rounded) {
  answer_span piece[ANSWER_PARTS], part[ANSWER_PARTS];
  answer_list all;
  if (rounded != NULL) *rounded = 0;
  if (!answer_list_read(&all, s, 1)) return 0;
  if (all.n > 1) {
    side[0] = s;
    return 1;
  }
  size_t n = 0, pieces = answer_split(s, "\\approx", piece);
  for (size_t i = 0; i < pieces; ++i) {
    size_t more = answer_split(piece[i], "=", part);
    if (more == 0 || n + more > ANSWER_PARTS) return 0;
    if (i > 0 && rounded != NULL) *rounded = n;
    memcpy(side + n, part, more * sizeof *part);
    n += more;
  }
  return n;
}
