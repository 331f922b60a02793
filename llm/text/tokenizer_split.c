/* The two steps before merging: normalisation form C, and the splitting rule.
 *
 * utf8proc has the character data. Marks are put in canonical order here, because utf8proc
 * exchanges adjacent marks and takes quadratic time for long runs of them.
 *
 * The rule of a tokenizer.json is a pattern for Oniguruma, and PCRE2 runs it. The two agree on the
 * part of the language that tokenizers use. Anything that they interpret differently is rewritten
 * or refused. Rewritten: \s and \S, because PCRE2's \s includes U+180E, which has not been white
 * space since Unicode 6.3. Refused: ^ $ . (lines), \w \b \h and similar, scripts in \p{} (PCRE2
 * means script extensions), classes within classes, && and POSIX names, suffixes after {n,m}, and
 * case-insensitive text in which one character could match two letters, such as sharp s for ss. */
#include "core/base/array.h"
#include "core/base/utf8.h"
#include "llm/text/internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* --- normalisation --- */

enum { CLASSES = 256, COMPOSED = UTF8PROC_STABLE | UTF8PROC_COMPOSE };

/* Below U+0300 every character is its own composed form, and none is combining. */
static bool is_composed(const char *text, size_t size) {
  bool high = false;
  for (size_t i = 0; i < size; ++i) high |= (unsigned char)text[i] >= 0xcc;
  return !high;
}

static int mark_class(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

/* Stable counting sort of a run of marks by their combining class. */
static void sort_run(utf8proc_int32_t *run, size_t n, utf8proc_int32_t *spare) {
  size_t start[CLASSES + 1] = {0};
  for (size_t i = 0; i < n; ++i) ++start[mark_class(run[i]) + 1];
  for (size_t c = 1; c <= CLASSES; ++c) start[c] += start[c - 1];
  for (size_t i = 0; i < n; ++i) spare[start[mark_class(run[i])]++] = run[i];
  memcpy(run, spare, n * sizeof *run);
}

/* Sorts every run of characters with a combining class other than 0 by class. */
static void order_marks(utf8proc_int32_t *code, size_t n, utf8proc_int32_t *spare) {
  for (size_t i = 0; i < n; ++i) {
    int last = mark_class(code[i]);
    bool sorted = true;
    const size_t first = i;
    for (; last != 0 && i + 1 < n; ++i) {
      int next = mark_class(code[i + 1]);
      if (next == 0) break;
      sorted &= last <= next;
      last = next;
    }
    if (!sorted) sort_run(code + first, i - first + 1, spare);
  }
}

/* Decomposes each character canonically into a malloc'd array of n code points. */
static gl_status decompose(const char *text, size_t size, utf8proc_int32_t **out, size_t *n,
                           gl_error *err) {
  enum { LONGEST = 32 }; /* a character's canonical decomposition has at most 4 characters */
  size_t room = 0, end = 0;
  utf8proc_int32_t *code = NULL;
  for (size_t at = 0; at < size;) {
    uint32_t character;
    at += utf8_read(text + at, size - at, &character);
    if (!ARRAY_RESERVE(code, room, end + LONGEST)) {
      free(code);
      return gl_fail_memory(err, "the normal form of a text");
    }
    int last_class = 0; /* used only for splitting into graphemes */
    utf8proc_ssize_t wrote = utf8proc_decompose_char((utf8proc_int32_t)character, code + end,
                                                     LONGEST, UTF8PROC_DECOMPOSE, &last_class);
    if (wrote > 0 && wrote <= LONGEST) end += (size_t)wrote;
  }
  *out = code;
  *n = end;
  return GL_OK;
}

/* Composes in place and returns the new length, or a negative error of utf8proc. Each U+11A7 is
 * composed separately from the text before it. This changes nothing, because it does not combine
 * with that text. But utf8proc 2.8 mistakes it for a final consonant and drops it after a Hangul
 * syllable. */
static utf8proc_ssize_t compose_codes(utf8proc_int32_t *code, size_t n) {
  enum { BEFORE_FINALS = 0x11a7 };
  size_t end = 0;
  for (size_t first = 0, next; first < n; first = next) {
    for (next = first + 1; next < n && code[next] != BEFORE_FINALS;) ++next;
    utf8proc_ssize_t left = utf8proc_normalize_utf32(code + first, (utf8proc_ssize_t)(next - first),
                                                     (utf8proc_option_t)COMPOSED);
    if (left < 0) return left;
    memmove(code + end, code + first, (size_t)left * sizeof *code);
    end += (size_t)left;
  }
  return (utf8proc_ssize_t)end;
}

static gl_status write_codes(const utf8proc_int32_t *code, size_t n, char **out, size_t *size,
                             gl_error *err) {
  char *to = n < SIZE_MAX / UTF8_LONGEST ? malloc(n * UTF8_LONGEST + 1) : NULL;
  if (to == NULL) return gl_fail_memory(err, "the normal form of a text");
  size_t end = 0;
  for (size_t i = 0; i < n; ++i) end += utf8_write((uint32_t)code[i], to + end);
  to[end] = '\0';
  *out = to;
  *size = end;
  return GL_OK;
}

gl_status nfc_text(const char *text, size_t size, char **out, size_t *n, gl_error *err) {
  utf8proc_int32_t *code = NULL, *spare;
  size_t codes = 0;
  *out = NULL;
  *n = size;
  if (is_composed(text, size)) return GL_OK;
  gl_status status = decompose(text, size, &code, &codes, err);
  if (status != GL_OK) return status;
  spare = malloc((codes + 1) * sizeof *spare);
  if (spare != NULL) {
    order_marks(code, codes, spare);
    const utf8proc_ssize_t composed = compose_codes(code, codes);
    status = composed >= 0 ? write_codes(code, (size_t)composed, out, n, err)
                           : gl_fail(err, GL_EINTERNAL, "utf8proc cannot compose a text: %s",
                                     utf8proc_errmsg(composed));
  } else
    status = gl_fail_memory(err, "the normal form of a text");
  free(spare);
  free(code);
  return status;
}

/* --- translation --- */

typedef struct translation {
  const char *pattern, *at; /* at: the text not yet read */
  char *end;                /* where the next byte is written */
  bool in_class;
  gl_error *err;
} translation;

static gl_status refuse_pattern(const translation *t, const char *what) {
  return gl_fail(t->err, GL_EINPUT, "%s at byte %zu of the splitting rule is not supported", what,
                 (size_t)(t->at - t->pattern));
}

static void copy_pattern(translation *t, size_t n) {
  memcpy(t->end, t->at, n);
  t->end += n;
  t->at += n;
}

static void write_pattern(translation *t, const char *text) {
  size_t n = strlen(text);
  memcpy(t->end, text, n);
  t->end += n;
}

/* Translates a general category: \p{L}, \P{Lu}, \p{^N}. */
static gl_status translate_property(translation *t) {
  const char *p = t->at + 2;
  if (*p++ != '{') return refuse_pattern(t, "a property without braces");
  if (*p == '^') ++p;
  if (*p == '\0' || strchr("LMNPSZC", *p) == NULL)
    return refuse_pattern(t, "a property that is no general category");
  ++p;
  if (*p >= 'a' && *p <= 'z') ++p;
  if (*p != '}') return refuse_pattern(t, "a property that is no general category");
  copy_pattern(t, (size_t)(p + 1 - t->at));
  return GL_OK;
}

/* Translates the escape sequence at t->at. */
static gl_status translate_escape(translation *t) {
  const char c = t->at[1];
  if (c == 'p' || c == 'P') return translate_property(t);
  if (c == 's' || c == 'S') {
    write_pattern(t, c == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    t->at += 2;
    return GL_OK;
  }
  const char lower = c | 0x20;
  const bool literal =
      c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z');
  if (!literal && (c == '\0' || strchr("rntdD", c) == NULL))
    return refuse_pattern(t, "this escape sequence");
  copy_pattern(t, 2);
  return GL_OK;
}

static gl_status translate_in_class(translation *t) {
  if (t->at[0] == '\\') return translate_escape(t);
  if (t->at[0] == '[') return refuse_pattern(t, "a class within a class");
  if (t->at[0] == '&' && t->at[1] == '&') return refuse_pattern(t, "an intersection of classes");
  if (t->at[0] == ']') t->in_class = false;
  copy_pattern(t, 1);
  return GL_OK;
}

static gl_status open_class(translation *t) {
  copy_pattern(t, t->at[1] == '^' ? 2 : 1);
  if (*t->at == ']') return refuse_pattern(t, "a class that is empty or starts with ]");
  t->in_class = true;
  return GL_OK;
}

/* Copies a group (?i:...). It may contain only letters, apostrophes and |, and no pair of letters
 * to which one Unicode character folds (ss, for the German sharp s): that character would have to
 * match, too. */
static gl_status translate_caseless(translation *t) {
  static const char *const folds[] = {"ss", "ff", "fi", "fl", "st"};
  copy_pattern(t, strlen("(?i:"));
  for (; *t->at != ')'; copy_pattern(t, 1)) {
    const char c = t->at[0] | 0x20;
    if (!(c >= 'a' && c <= 'z') && t->at[0] != '\'' && t->at[0] != '|')
      return refuse_pattern(t, "anything but letters and apostrophes without regard to case");
    const char next = t->at[1] | 0x20; /* at[0] is not the pattern's end, so at[1] exists */
    for (size_t i = 0; i < sizeof folds / sizeof *folds; ++i)
      if (c == folds[i][0] && next == folds[i][1])
        return refuse_pattern(t, "a pair of letters that some single character folds to");
  }
  copy_pattern(t, 1);
  return GL_OK;
}

static gl_status open_group(translation *t) {
  static const char *const plain[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
  if (strncmp(t->at, "(?i:", 4) == 0) return translate_caseless(t);
  if (t->at[1] == '*') return refuse_pattern(t, "a verb");
  size_t n = t->at[1] == '?' ? 0 : 1;
  for (size_t i = 0; n == 0 && i < sizeof plain / sizeof *plain; ++i)
    if (strncmp(t->at, plain[i], strlen(plain[i])) == 0) n = strlen(plain[i]);
  if (n == 0) return refuse_pattern(t, "this kind of group");
  copy_pattern(t, n);
  return GL_OK;
}

static const char *skip_digits(const char *p) {
  while (*p >= '0' && *p <= '9') ++p;
  return p;
}

static gl_status translate_count(translation *t) {
  const char *p = skip_digits(t->at + 1);
  bool counted = p > t->at + 1;
  if (*p == ',') p = skip_digits(p + 1);
  if (!counted || *p != '}') return refuse_pattern(t, "a brace that is no {n}, {n,} or {n,m}");
  if (p[1] == '?' || p[1] == '+') return refuse_pattern(t, "a suffix after a count");
  copy_pattern(t, (size_t)(p + 1 - t->at));
  return GL_OK;
}

/* Translates the next construct of the pattern. */
static gl_status translate_one(translation *t) {
  if (t->in_class) return translate_in_class(t);
  switch (t->at[0]) {
  case '\\':
    return translate_escape(t);
  case '[':
    return open_class(t);
  case '(':
    return open_group(t);
  case '{':
    return translate_count(t);
  case '.':
  case '^':
  case '$':
    return refuse_pattern(t, "a dot or an anchor");
  default:
    copy_pattern(t, 1);
    return GL_OK;
  }
}

/* A malloc'd pattern for PCRE2 with the same meaning as the given one for Oniguruma. */
static gl_status translate(const char *pattern, char **out, gl_error *err) {
  enum {
    GROWTH = sizeof "\\p{White_Space}"
  }; /* two bytes of the pattern become at most this many */
  char *text = malloc(strlen(pattern) * GROWTH + 1);
  if (text == NULL) return gl_fail_memory(err, "a splitting rule");
  translation t = {.pattern = pattern, .at = pattern, .end = text, .err = err};
  gl_status status = GL_OK;
  while (status == GL_OK && *t.at != '\0') status = translate_one(&t);
  *t.end = '\0';
  if (status != GL_OK) free(text);
  *out = status == GL_OK ? text : NULL;
  return status;
}

/* --- the rule --- */

gl_status split_rule_init(split_rule *r, const char *pattern, gl_error *err) {
  enum { LONGEST = 10000 };
  char *text;
  int error;
  PCRE2_SIZE offset;
  *r = (split_rule){0};
  if (strlen(pattern) > LONGEST)
    return gl_fail(err, GL_EINPUT, "the splitting rule has more than %d bytes", LONGEST);
  gl_status status = translate(pattern, &text, err);
  if (status != GL_OK) return status;
  r->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, NULL);
  free(text);
  if (r->code == NULL) {
    PCRE2_UCHAR message[128] = "";
    pcre2_get_error_message(error, message, sizeof message);
    return gl_fail(err, GL_EINPUT, "the splitting rule is no pattern that PCRE2 takes: %s",
                   (const char *)message);
  }
  pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without it matching is only slower */
  return GL_OK;
}

void split_rule_fini(split_rule *r) {
  pcre2_code_free(r->code);
  *r = (split_rule){0};
}

gl_status split_match_init(split_match *m, size_t size, gl_error *err) {
  enum { STEPS = 10000000, STEPS_PER_BYTE = 8 };
  const size_t steps =
      size < UINT32_MAX / STEPS_PER_BYTE / 2 ? STEPS + STEPS_PER_BYTE * size : UINT32_MAX;
  m->found = pcre2_match_data_create(1, NULL);
  m->limits = pcre2_match_context_create(NULL);
  if (m->found == NULL || m->limits == NULL) {
    split_match_fini(m);
    return gl_fail_memory(err, "splitting a text");
  }
  pcre2_set_match_limit(m->limits, (uint32_t)steps);
  return GL_OK;
}

void split_match_fini(split_match *m) {
  pcre2_match_data_free(m->found);
  pcre2_match_context_free(m->limits);
  *m = (split_match){0};
}

static gl_status fail_split(int rc, size_t size, gl_error *err) {
  PCRE2_UCHAR message[128] = "";
  if (rc == PCRE2_ERROR_NOMEMORY) return gl_fail_memory(err, "splitting a text");
  pcre2_get_error_message(rc, message, sizeof message);
  return gl_fail(err, GL_EINPUT,
                 "the tokenizer's splitting rule cannot split a text of %zu bytes: %s; cut the "
                 "text or use another tokenizer",
                 size, (const char *)message);
}

gl_status split_rule_find(const split_rule *r, const split_match *m, const char *text, size_t size,
                          size_t from, split_place *out, gl_error *err) {
  const PCRE2_SPTR subject = (PCRE2_SPTR)text;
  int rc = pcre2_match(r->code, subject, size, from, PCRE2_NO_UTF_CHECK, m->found, m->limits);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter's stack is on the heap */
    rc = pcre2_match(r->code, subject, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->found,
                     m->limits);
  if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) return fail_split(rc, size, err);
  const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->found);
  *out = rc < 0 ? (split_place){SIZE_MAX, SIZE_MAX} : (split_place){span[0], span[1]};
  return GL_OK;
}
