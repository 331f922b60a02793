/* Parses groups of responses for `gepolab policy`: from JSON into the arrays of a policy_input, in
 * one pass and without a tree. */
#include "experiments/tokens/group_file.h"

#include "core/base/compressed.h"
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- text --- */

/* Stops at the first byte beyond the limit, because the size of a pipe or of compressed data is not
 * known in advance. */
gl_status group_file_load(char **text, size_t *size, const char *path, gl_error *err) {
  enum { PIECE = 65536 };
  compressed_reader *from = NULL;
  size_t room = 0, got = 1;
  *text = NULL;
  *size = 0;
  gl_status status = compressed_open(&from, path, err);
  while (status == GL_OK && got > 0) {
    MUST_RESERVE(*text, room, *size + PIECE, "the text of a policy input");
    status = compressed_read(from, *text + *size, room - *size, &got, err);
    if (status == GL_OK) *size += got;
    if (*size > GROUP_FILE_MOST_BYTES)
      status = gl_fail(err, GL_EINPUT,
                       "%s: larger than the %zu bytes (1 GiB) that a policy input may have; give "
                       "its groups in several files",
                       compressed_name(from), GROUP_FILE_MOST_BYTES);
  }
  compressed_close(from);
  return status;
}

/* --- arrays --- */

typedef enum field {
  INPUT_REWARDS,
  INPUT_LOGP,
  INPUT_LOGQ,
  INPUT_LOGPROX,
  INPUT_LOGREF,
  INPUT_ENTROPY,
  INPUT_ENTROPY_PROX,
  INPUT_GAP,
  INPUT_DENOMINATOR,
  INPUT_COUNT
} field;
static const char *const field_names[INPUT_COUNT] = {
    "rewards", "logp",         "logq",        "logprox",        "logref",
    "entropy", "entropy_prox", "version_gap", "log_denominator"};

/* A response: its number of tokens, and its offset in the text, for messages. */
typedef struct row {
  size_t tokens, at;
} row;

/* Values of a field for all groups, concatenated; a row is a response with a value for each token.
 * rewards and log_denominator use `value` only. */
typedef struct ragged {
  double *value; /* [n] */
  row *row;      /* [n_rows] */
  size_t n, n_rows;
} ragged;

/* Owns the memory that a policy_input points to. */
typedef struct arrays {
  ragged field[INPUT_COUNT];
  size_t *group_start, *token_start;
  size_t n_groups,
      n_starts; /* length of group_start: one more than the groups so far; 0 before the first */
} arrays;

static void arrays_free(arrays *a) {
  if (a == NULL) return;
  for (int k = 0; k < INPUT_COUNT; ++k) {
    free(a->field[k].value);
    free(a->field[k].row);
  }
  free(a->group_start);
  free(a->token_start);
  free(a);
}

/* --- the reader --- */

typedef struct filler {
  json_reader r;
  gl_error why; /* first error of the reader */
  int refused;  /* 1: the error is about a value that JSON can express */
  /* The field being parsed, or an element of it; used in messages. */
  const char *name;
  size_t index[2];
  int n_indices;
  int in_number; /* 1: a number is being parsed */
  arrays *a;
  char where[32];  /* "" or "groups[g]." */
  size_t group_at; /* offset of the group's first character */
  /* Per field of this group: rows and numbers of earlier groups, and offset of the field in the
   * text. has: whether the group has the field. */
  size_t rows_before[INPUT_COUNT], before[INPUT_COUNT], field_at[INPUT_COUNT];
  int has[INPUT_COUNT], first_has[INPUT_COUNT]; /* first_has: of the first group */
  int has_group, has_groups; /* which top-level keys occur: fields of a single group, "groups" */
  size_t max_length;
  int has_max_length;
  group_record *record; /* receives step and time_s */
} filler;

__attribute__((format(printf, 3, 4))) static void group_file_refuse(filler *f, size_t byte,
                                                                    const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (f->r.status == GL_OK) f->refused = 1;
  json_fail_at(&f->r, byte, "policy input: %s", text);
}

enum { PATH_SIZE = 112 };

/* Formats a path such as groups[0].logp[1][2]. */
static const char *path_of(const filler *f, char path[PATH_SIZE]) {
  int n = snprintf(path, PATH_SIZE, "%s%s", f->where, f->name);
  for (int k = 0; k < f->n_indices && n > 0 && n < PATH_SIZE; ++k)
    n += snprintf(path + n, PATH_SIZE - (size_t)n, "[%zu]", f->index[k]);
  return path;
}

/* Advances to the next list element. After an error the index stays, because the message names the
 * element. */
static void next_index(filler *f) {
  if (f->r.status == GL_OK) ++f->index[f->n_indices - 1];
}

/* Offset of the next value. */
static size_t group_file_next_byte(filler *f) {
  (void)json_peek(&f->r);
  return f->r.at;
}

/* Returns 1 if the next value has that kind ('[', '{' or '0' for a number). JSON of another kind is
 * an error here; invalid JSON is left to the reader. */
static int follows(filler *f, char kind, const char *must) {
  const char next = json_peek(&f->r);
  const int digit = next == '-' || (next >= '0' && next <= '9');
  char path[PATH_SIZE];
  if (f->r.status != GL_OK) return 0;
  if (next == '\0' || (kind == '0' ? digit : next == kind)) return 1;
  group_file_refuse(f, f->r.at, "%s %s", path_of(f, path), must);
  return 0;
}

/* Returns 1 at NaN, Infinity or -Infinity, which Python writes and JSON does not have. */
static int is_not_finite_word(const filler *f, size_t at) {
  if (at < f->r.size && f->r.text[at] == '-') ++at;
  return at < f->r.size && memchr("NnIi", f->r.text[at], 4) != NULL;
}

static double group_file_read_number(filler *f) {
  static const char must[] = "must be a finite number";
  const size_t at = group_file_next_byte(f);
  char path[PATH_SIZE];
  if (f->r.status != GL_OK) return 0;
  if (is_not_finite_word(f, at)) {
    group_file_refuse(f, at, "%s %s", path_of(f, path), must);
    return 0;
  }
  if (!follows(f, '0', must)) return 0;
  f->in_number = json_peek(&f->r) != '\0';
  const double value = json_real(&f->r);
  if (f->r.status == GL_OK) f->in_number = 0;
  return value;
}

static int group_file_is_log(field k) {
  return k == INPUT_LOGP || k == INPUT_LOGQ || k == INPUT_LOGPROX || k == INPUT_LOGREF;
}

/* Checks a token's number against what its field can be. */
static void group_file_check(filler *f, field k, size_t at, double value) {
  char path[PATH_SIZE];
  const int is_entropy = k == INPUT_ENTROPY || k == INPUT_ENTROPY_PROX;
  if ((k == INPUT_GAP && value < 0) || (is_entropy && value < POLICY_LEAST_ENTROPY))
    group_file_refuse(f, at, "%s is %g, which is no %s", path_of(f, path), value,
                      is_entropy ? "entropy" : "number of versions");
  if (!group_file_is_log(k)) return;
  if (value > POLICY_MOST_LOG)
    group_file_refuse(f, at, "%s must be a number that is not above 0 (a log-probability), not %g",
                      path_of(f, path), value);
  else if (value < GROUP_FILE_LEAST_LOG)
    group_file_refuse(
        f, at,
        "%s is %g, and a log-probability below %g is none that a token was sampled with; leave "
        "masked tokens out of all arrays",
        path_of(f, path), value, GROUP_FILE_LEAST_LOG);
}

static void push_number(filler *f, field k) {
  ragged *to = &f->a->field[k];
  const size_t at = group_file_next_byte(f);
  const double value = group_file_read_number(f);
  if (f->r.status == GL_OK) group_file_check(f, k, at, value);
  if (f->r.status != GL_OK) return;
  *MUST_ADD(to->value, to->n, "a policy input") = group_file_is_log(k) ? fmin(value, 0) : value;
}

static void group_file_read_rewards(filler *f) {
  if (!follows(f, '[', "must be a list")) return;
  json_enter(&f->r, '[');
  f->n_indices = 1;
  for (f->index[0] = 0; json_element(&f->r); next_index(f)) push_number(f, INPUT_REWARDS);
}

/* Parses one response: a number for each of its tokens. */
static void group_file_read_response(filler *f, field k) {
  static const char must[] = "must be a list of one number per token";
  ragged *to = &f->a->field[k];
  char path[PATH_SIZE];
  const size_t at = group_file_next_byte(f), first = to->n;
  f->n_indices = 1;
  if (!follows(f, '[', must)) return;
  MUST_ADD(to->row, to->n_rows, "a policy input")->at = at;
  json_enter(&f->r, '[');
  f->n_indices = 2;
  for (f->index[1] = 0; json_element(&f->r); next_index(f)) push_number(f, k);
  if (f->r.status != GL_OK) return;
  f->n_indices = 1;
  to->row[to->n_rows - 1].tokens = to->n - first;
  if (to->n == first) group_file_refuse(f, at, "%s %s", path_of(f, path), must);
}

static void read_responses(filler *f, field k) {
  if (!follows(f, '[', "must be a list")) return;
  json_enter(&f->r, '[');
  for (f->index[0] = 0; json_element(&f->r); next_index(f)) group_file_read_response(f, k);
}

static void group_file_read_field(filler *f, field k) {
  if (f->has[k]) group_file_refuse(f, f->r.at, "%s%s is given twice", f->where, field_names[k]);
  f->has[k] = 1;
  f->field_at[k] = group_file_next_byte(f);
  f->name = field_names[k];
  f->n_indices = 0;
  switch (k) {
  case INPUT_REWARDS:
    group_file_read_rewards(f);
    return;
  case INPUT_LOGP:
  case INPUT_LOGQ:
  case INPUT_LOGPROX:
  case INPUT_LOGREF:
  case INPUT_ENTROPY:
  case INPUT_ENTROPY_PROX:
  case INPUT_GAP:
    read_responses(f, k);
    return;
  case INPUT_DENOMINATOR:
    push_number(f, k);
    return;
  case INPUT_COUNT:
    break;
  }
  assert(0);
}

static field find_field(const char *key) {
  int k = 0;
  while (k < INPUT_COUNT && strcmp(field_names[k], key) != 0) ++k;
  return (field)k;
}

static void refuse_key(filler *f, int top) {
  const char *known[INPUT_COUNT + 4];
  char hint[CFG_HINT_SIZE];
  for (int k = 0; k < INPUT_COUNT; ++k) known[k] = field_names[k];
  known[INPUT_COUNT] = "max_length";
  known[INPUT_COUNT + 1] = "groups";
  known[INPUT_COUNT + 2] = "step";
  known[INPUT_COUNT + 3] = "time_s";
  const size_t n = top ? INPUT_COUNT + 4 : INPUT_COUNT;
  const char *near = strncmp(f->r.word, "log_prob", 8) == 0 || strncmp(f->r.word, "logprob", 7) == 0
                         ? " (did you mean 'logp'? It is the learner's, logq the sampler's)"
                         : cfg_hint(f->r.word, known, n, hint);
  group_file_refuse(f, f->r.at, "unknown key '%.80s'%s%s", f->r.word, near,
                    *near == '\0' ? "; rewards, logp (the learner's) and logq (the sampler's) are "
                                    "needed, `gepolab policy --help` has the others"
                                  : "");
}

/* --- checks at the end of a group --- */

/* Checks that an optional array is in all groups or in none. */
static void must_agree(filler *f, field k) {
  if (f->a->n_groups == 0) f->first_has[k] = f->has[k];
  if (f->first_has[k] != f->has[k])
    group_file_refuse(f, f->group_at,
                      "%s%s is %s, unlike in groups[0]; give it in all groups or in none", f->where,
                      field_names[k], f->has[k] ? "given" : "missing");
}

static void group_file_must_have(filler *f, field k, const char *what) {
  if (!f->has[k])
    group_file_refuse(f, f->group_at, "%s%s is missing: %s", f->where, field_names[k], what);
}

/* Checks that array k has the same shape as logp. */
static void must_fit(filler *f, field k) {
  const ragged *logp = &f->a->field[INPUT_LOGP], *own = &f->a->field[k];
  const size_t from = f->rows_before[INPUT_LOGP], n = logp->n_rows - from;
  const size_t at = f->rows_before[k], m = own->n_rows - at;
  if (m != n)
    group_file_refuse(f, f->field_at[k], "%s%s has %zu response%s, but %slogp has %zu", f->where,
                      field_names[k], m, plural_ending(m), f->where, n);
  for (size_t i = 0; i < n && f->r.status == GL_OK; ++i)
    if (own->row[at + i].tokens != logp->row[from + i].tokens)
      group_file_refuse(
          f, own->row[at + i].at, "%s%s[%zu] has %zu token%s, but %slogp[%zu] has %zu", f->where,
          field_names[k], i, own->row[at + i].tokens, plural_ending(own->row[at + i].tokens),
          f->where, i, logp->row[from + i].tokens);
}

/* Checks that a complete group has the required fields, with matching shapes. */
static void check_group(filler *f) {
  group_file_must_have(f, INPUT_LOGP, "the learner's log-probabilities, a list for each response");
  group_file_must_have(f, INPUT_REWARDS, "a number for each response");
  group_file_must_have(f, INPUT_LOGQ, "the sampler's log-probabilities");
  if (f->r.status != GL_OK) return;
  const size_t n = f->a->field[INPUT_LOGP].n_rows - f->rows_before[INPUT_LOGP];
  const size_t rewards = f->a->field[INPUT_REWARDS].n - f->before[INPUT_REWARDS];
  if (n == 0)
    group_file_refuse(f, f->field_at[INPUT_LOGP], "%slogp is empty; a group has responses",
                      f->where);
  if (rewards != n)
    group_file_refuse(f, f->field_at[INPUT_REWARDS],
                      "%srewards has %zu numbers, but %slogp has %zu responses", f->where, rewards,
                      f->where, n);
  for (int k = INPUT_LOGP; k < INPUT_COUNT && f->r.status == GL_OK; ++k) {
    must_agree(f, (field)k);
    if (f->has[k] && k != INPUT_DENOMINATOR) must_fit(f, (field)k);
  }
}

static void begin_group(filler *f, size_t at) {
  f->group_at = at;
  for (int k = 0; k < INPUT_COUNT; ++k) {
    f->rows_before[k] = f->a->field[k].n_rows;
    f->before[k] = f->a->field[k].n;
    f->has[k] = 0;
  }
}

static void end_group(filler *f) {
  arrays *a = f->a;
  check_group(f);
  if (f->r.status != GL_OK) return;
  if (a->n_starts == 0) *MUST_ADD(a->group_start, a->n_starts, "a policy input") = 0;
  *MUST_ADD(a->group_start, a->n_starts, "a policy input") = a->field[INPUT_LOGP].n_rows;
  ++a->n_groups;
}

static void read_listed_group(filler *f, size_t g) {
  const size_t at = group_file_next_byte(f);
  f->where[0] = '\0';
  f->name = "groups";
  f->index[0] = g;
  f->n_indices = 1;
  if (!follows(f, '{', "must be an object with rewards, logp and logq")) return;
  snprintf(f->where, sizeof f->where, "groups[%zu].", g);
  begin_group(f, at);
  json_enter(&f->r, '{');
  while (json_member(&f->r)) {
    const field k = find_field(f->r.word);
    if (k == INPUT_COUNT)
      refuse_key(f, 0);
    else
      group_file_read_field(f, k);
  }
  end_group(f);
}

/* --- top level --- */

static void group_file_read_list(filler *f) {
  const size_t at = group_file_next_byte(f);
  size_t n = 0;
  if (f->has_groups) group_file_refuse(f, at, "groups is given twice");
  f->has_groups = 1;
  f->name = "groups";
  f->n_indices = 0;
  if (!follows(f, '[', "must be a list")) return;
  json_enter(&f->r, '[');
  while (json_element(&f->r)) read_listed_group(f, n++);
  f->where[0] = '\0';
  if (n == 0) group_file_refuse(f, at, "groups is empty");
}

static void read_max_length(filler *f) {
  const size_t at = group_file_next_byte(f);
  if (f->has_max_length) group_file_refuse(f, at, "max_length is given twice");
  f->has_max_length = 1;
  f->name = "max_length";
  f->n_indices = 0;
  const double value = group_file_read_number(f);
  if (f->r.status != GL_OK) return;
  if (!(value >= 1 && value <= 1e9) || value != floor(value))
    group_file_refuse(f, at, "max_length must be a whole number from 1 to 1000000000");
  else
    f->max_length = (size_t)value;
}

/* Returns the member of a record with that name, or NULL. */
static double *record_member(filler *f) {
  if (strcmp(f->r.word, "step") == 0) return &f->record->step;
  return strcmp(f->r.word, "time_s") == 0 ? &f->record->time_s : NULL;
}

static void read_record_member(filler *f, double *to) {
  const int is_step = to == &f->record->step;
  const size_t at = group_file_next_byte(f);
  if (!isnan(*to)) group_file_refuse(f, at, "%s is given twice", is_step ? "step" : "time_s");
  f->name = is_step ? "step" : "time_s";
  f->n_indices = 0;
  *to = group_file_read_number(f);
}

static void read_top(filler *f) {
  const size_t at = group_file_next_byte(f);
  f->name = "it";
  if (!follows(f, '{', "must be an object: one group, or {\"groups\": [{…}, …]}")) return;
  begin_group(f, at);
  json_enter(&f->r, '{');
  while (json_member(&f->r)) {
    const field k = find_field(f->r.word);
    const int list = strcmp(f->r.word, "groups") == 0;
    double *member = record_member(f);
    if (k != INPUT_COUNT) f->has_group = 1;
    if ((list || k != INPUT_COUNT) && f->has_group && (list || f->has_groups))
      group_file_refuse(f, f->r.at, "%s beside %s: give one group, or groups", f->r.word,
                        list ? "the fields of one group" : "groups");
    else if (list)
      group_file_read_list(f);
    else if (k != INPUT_COUNT)
      group_file_read_field(f, k);
    else if (strcmp(f->r.word, "max_length") == 0)
      read_max_length(f);
    else if (member != NULL)
      read_record_member(f, member);
    else
      refuse_key(f, 1);
  }
  if (!f->has_groups) end_group(f);
  if (f->r.status == GL_OK && json_peek(&f->r) == '{')
    group_file_refuse(f, f->r.at,
                      "another object follows, and one update is evaluated; a log of several is "
                      "read by `gepolab whatif`");
}

static gl_status group_file_fail(filler *f, gl_status status, gl_error *err) {
  if (status != GL_EINPUT || f->refused) return gl_fail(err, status, "%s", f->why.text);
  char path[PATH_SIZE];
  if (f->in_number)
    return gl_fail(err, GL_EINPUT, "%s; %s of this policy input must be a finite number",
                   f->why.text, path_of(f, path));
  return gl_fail(err, GL_EINPUT,
                 "%s: this policy input is not JSON; a group is {\"rewards\": [G], "
                 "\"logp\": [[T_1], …], \"logq\": [[T_1], …]}",
                 f->why.text);
}

static void start_tokens(arrays *a) {
  const ragged *logp = &a->field[INPUT_LOGP];
  a->token_start = MUST_ARRAY(size_t, logp->n_rows + 1, "a policy input");
  for (size_t i = 0; i < logp->n_rows; ++i)
    a->token_start[i + 1] = a->token_start[i] + logp->row[i].tokens;
}

static const double *given(const filler *f, field k) {
  return f->first_has[k] ? f->a->field[k].value : NULL;
}

gl_status group_record_read_text(group_record *record, const char *text, size_t size,
                                 const char *name, size_t line, gl_error *err) {
  group_file *out = &record->groups;
  *record = (group_record){.step = NAN, .time_s = NAN};
  filler f = {.a = MUST_ARRAY(arrays, 1, "a policy input"), .record = record};
  json_begin(&f.r, text, size, name, &f.why);
  f.r.first_line = line;
  read_top(&f);
  gl_status status = json_end(&f.r);
  if (status != GL_OK) {
    status = group_file_fail(&f, status, err);
    arrays_free(f.a);
    return status;
  }
  start_tokens(f.a);
  out->memory = f.a;
  out->listed = f.has_groups;
  out->input = (policy_input){.n_groups = f.a->n_groups,
                              .n_responses = f.a->field[INPUT_LOGP].n_rows,
                              .n_tokens = f.a->field[INPUT_LOGP].n,
                              .group_start = f.a->group_start,
                              .token_start = f.a->token_start,
                              .reward = f.a->field[INPUT_REWARDS].value,
                              .logp = f.a->field[INPUT_LOGP].value,
                              .logq = f.a->field[INPUT_LOGQ].value,
                              .logprox = given(&f, INPUT_LOGPROX),
                              .logref = given(&f, INPUT_LOGREF),
                              .entropy = given(&f, INPUT_ENTROPY),
                              .entropy_prox = given(&f, INPUT_ENTROPY_PROX),
                              .version_gap = given(&f, INPUT_GAP),
                              .log_denominator = given(&f, INPUT_DENOMINATOR),
                              .max_length = f.max_length};
  return GL_OK;
}

gl_status group_file_read_text(group_file *out, const char *text, size_t size, const char *name,
                               gl_error *err) {
  group_record record;
  const gl_status status = group_record_read_text(&record, text, size, name, 1, err);
  *out = record.groups;
  return status;
}

void group_file_fini(group_file *g) {
  arrays_free(g->memory);
  *g = (group_file){.listed = 0};
}
