/* Reads groups of responses for `gepolab policy`: JSON into the arrays of a policy_input. */
#include "experiments/cli/policy_input_file.h"

#include "core/base/json_read.h"
#include "core/config/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text ---------------------------------------------------------------------------------------
 */

static gl_status read_all(char **text, size_t *size, const char *path, gl_error *err) {
  FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (from == NULL)
    return gl_fail(err, GL_EINPUT, "%s:1:1: cannot be read: %s", path, strerror(errno));
  size_t room = 0;
  gl_status status = GL_OK;
  *text = NULL;
  *size = 0;
  for (;;) {
    if (*size + 1 >= room) {
      room = room == 0 ? 65536 : 2 * room;
      char *more = realloc(*text, room);
      if (more == NULL) {
        status = gl_fail_memory(err, "the groups' text");
        break;
      }
      *text = more;
    }
    size_t got = fread(*text + *size, 1, room - *size - 1, from);
    if (got == 0) break;
    *size += got;
  }
  if (status == GL_OK && ferror(from))
    status = gl_fail(err, GL_EIO, "%s:1:1: cannot be read: %s", path, strerror(errno));
  if (from != stdin) fclose(from);
  if (status == GL_OK) (*text)[*size] = '\0';
  return status;
}

/* The tree below is read by the YAML reader, which knows every value's place but would let pass
 * what is YAML and not JSON. */
static gl_status must_be_json(const char *text, size_t size, const char *name, gl_error *err) {
  gl_error why = {0};
  json_reader r;
  json_begin(&r, text, size, name, &why);
  json_skip(&r);
  const gl_status status = json_end(&r);
  if (status != GL_EINPUT) return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
  return gl_fail(err, GL_EINPUT,
                 "%s: this is not JSON; a group is {\"rewards\": [G], "
                 "\"logp\": [[T_1], …], \"logq\": [[T_1], …]}",
                 why.text);
}

/* --- shapes -------------------------------------------------------------------------------------
 */

typedef struct filler {
  size_t *group_start, *token_start;
  double *reward, *log_denominator;
  double *values[5]; /* per token: logp, logq, logprox, logref, version_gap */
  int has[5];        /* whether the first group has it */
  int has_denominator;
  gl_error *err;
} filler;
static const char *const array_names[5] = {"logp", "logq", "logprox", "logref", "version_gap"};
enum { ARRAY_LOGP, ARRAY_LOGQ, ARRAY_LOGPROX, ARRAY_LOGREF, ARRAY_GAP };

static gl_status must_be_list(const cfg_node *node, const char *where, const char *key,
                              gl_error *err) {
  if (cfg_kind_of(node) == CFG_LIST) return GL_OK;
  return cfg_fail(node, err, "%s%s must be a list", where, key);
}

/* Counts a group's responses and tokens by its logp. */
static gl_status count_group(const cfg_node *group, const char *where, size_t *responses,
                             size_t *tokens, gl_error *err) {
  const cfg_node *logp = cfg_find(group, "logp");
  if (cfg_kind_of(group) != CFG_MAP || logp == NULL)
    return cfg_fail(group, err, "a group needs rewards, logp and logq; %slogp is missing", where);
  gl_status status = must_be_list(logp, where, "logp", err);
  if (status != GL_OK) return status;
  if (cfg_size(logp) == 0)
    return cfg_fail(logp, err, "%slogp is empty; a group has responses", where);
  for (size_t i = 0; i < cfg_size(logp); ++i) {
    const cfg_node *per_token = cfg_at(logp, i);
    if (cfg_kind_of(per_token) != CFG_LIST || cfg_size(per_token) == 0)
      return cfg_fail(per_token, err, "%slogp[%zu] must be a list of one number per token", where,
                      i);
    *tokens += cfg_size(per_token);
  }
  *responses += cfg_size(logp);
  return GL_OK;
}

static gl_status fill_array(filler *f, const cfg_node *list, int which, const char *where,
                            size_t first, size_t n) {
  const char *name = array_names[which];
  gl_status status = must_be_list(list, where, name, f->err);
  if (status != GL_OK) return status;
  if (cfg_size(list) != n)
    return cfg_fail(list, f->err, "%s%s has %zu responses, but %slogp has %zu", where, name,
                    cfg_size(list), where, n);
  for (size_t i = 0; i < n; ++i) {
    const cfg_node *per_token = cfg_at(list, i);
    size_t start = f->token_start[first + i], length = f->token_start[first + i + 1] - start;
    if (cfg_kind_of(per_token) != CFG_LIST || cfg_size(per_token) != length)
      return cfg_fail(per_token, f->err, "%s%s[%zu] has %zu tokens, but %slogp[%zu] has %zu", where,
                      name, i, cfg_kind_of(per_token) == CFG_LIST ? cfg_size(per_token) : 0, where,
                      i, length);
    for (size_t t = 0; t < length; ++t) {
      double *value = &f->values[which][start + t];
      int is_number = cfg_number(cfg_at(per_token, t), value) && isfinite(*value);
      if (!is_number || (which != ARRAY_GAP && *value > 0))
        return cfg_fail(cfg_at(per_token, t), f->err, "%s%s[%zu][%zu] must be a finite number%s",
                        where, name, i, t,
                        which != ARRAY_GAP ? " that is not above 0 (a log-probability)" : "");
    }
  }
  return GL_OK;
}

static gl_status fill_rewards(filler *f, const cfg_node *group, const char *where, size_t first,
                              size_t n) {
  const cfg_node *rewards = cfg_find(group, "rewards");
  if (rewards == NULL) return cfg_fail(group, f->err, "%srewards is missing", where);
  gl_status status = must_be_list(rewards, where, "rewards", f->err);
  if (status != GL_OK) return status;
  if (cfg_size(rewards) != n)
    return cfg_fail(rewards, f->err, "%srewards has %zu numbers, but %slogp has %zu responses",
                    where, cfg_size(rewards), where, n);
  for (size_t i = 0; i < n; ++i)
    if (!cfg_number(cfg_at(rewards, i), &f->reward[first + i]) || !isfinite(f->reward[first + i]))
      return cfg_fail(cfg_at(rewards, i), f->err, "%srewards[%zu] must be a finite number", where,
                      i);
  return GL_OK;
}

static gl_status refuse_unknown(const cfg_node *group, int top, gl_error *err) {
  static const char *const known[] = {"rewards",         "logp",       "logq",
                                      "logprox",         "logref",     "version_gap",
                                      "log_denominator", "max_length", "groups"};
  size_t n = top ? 9 : 7;
  for (size_t i = 0; i < cfg_size(group); ++i) {
    const char *key = cfg_key_at(group, i);
    size_t k = 0;
    while (k < n && strcmp(known[k], key) != 0) ++k;
    if (k < n) continue;
    char hint[CFG_HINT_SIZE];
    return cfg_fail(cfg_at(group, i), err, "unknown key '%s'%s", key,
                    cfg_hint(key, known, n, hint));
  }
  return GL_OK;
}

/* A group's optional arrays must be in all groups or in none. */
static gl_status must_agree(const cfg_node *group, size_t g, int *has, int here, const char *name,
                            const char *where, gl_error *err) {
  if (g == 0) *has = here;
  if (*has == here) return GL_OK;
  return cfg_fail(group, err, "%s%s is %s, unlike in groups[0]; give it in all groups or in none",
                  where, name, here ? "given" : "missing");
}

static gl_status fill_group(filler *f, const cfg_node *group, size_t g, const char *where) {
  size_t first = f->group_start[g];
  const cfg_node *logp = cfg_find(group, "logp");
  size_t n = cfg_size(logp);
  f->group_start[g + 1] = first + n;
  for (size_t i = 0; i < n; ++i)
    f->token_start[first + i + 1] = f->token_start[first + i] + cfg_size(cfg_at(logp, i));
  gl_status status = fill_rewards(f, group, where, first, n);
  for (int k = ARRAY_LOGP; k <= ARRAY_GAP && status == GL_OK; ++k) {
    const cfg_node *list = cfg_find(group, array_names[k]);
    if (list == NULL && k == ARRAY_LOGQ)
      return cfg_fail(group, f->err, "%slogq is missing: the sampler's log-probabilities", where);
    status = must_agree(group, g, &f->has[k], list != NULL, array_names[k], where, f->err);
    if (status == GL_OK && list != NULL) status = fill_array(f, list, k, where, first, n);
  }
  const cfg_node *denominator = cfg_find(group, "log_denominator");
  if (status == GL_OK)
    status = must_agree(group, g, &f->has_denominator, denominator != NULL, "log_denominator",
                        where, f->err);
  if (status == GL_OK && denominator != NULL && !cfg_number(denominator, &f->log_denominator[g]))
    status = cfg_fail(denominator, f->err, "%slog_denominator must be a number", where);
  return status;
}

/* --- the whole file -----------------------------------------------------------------------------
 */

/* One block for all arrays: counts first, then doubles, both eight bytes wide. */
static gl_status allocate(group_file *out, filler *f, size_t groups, size_t responses,
                          size_t tokens) {
  size_t cells = (groups + 1) + (responses + 1) + responses + groups + 5 * tokens;
  double *memory = calloc(cells, sizeof(double) > sizeof(size_t) ? sizeof(double) : sizeof(size_t));
  if (memory == NULL) return gl_fail_memory(f->err, "the groups");
  out->memory = memory;
  f->reward = memory;
  f->log_denominator = f->reward + responses;
  for (int k = 0; k < 5; ++k) f->values[k] = f->log_denominator + groups + (size_t)k * tokens;
  f->group_start = (size_t *)(void *)(f->values[4] + tokens);
  f->token_start = f->group_start + groups + 1;
  return GL_OK;
}

static void place(char where[32], int listed, size_t g) {
  if (listed)
    snprintf(where, 32, "groups[%zu].", g);
  else
    where[0] = '\0';
}

static gl_status read_max_length(size_t *out, const cfg_node *root, gl_error *err) {
  const cfg_node *node = cfg_find(root, "max_length");
  double value = 0;
  if (node == NULL) return GL_OK;
  if (!cfg_number(node, &value) || !(value >= 1 && value <= 1e9) || value != floor(value))
    return cfg_fail(node, err, "max_length must be a whole number from 1");
  *out = (size_t)value;
  return GL_OK;
}

static gl_status read_groups(group_file *out, const cfg_node *root, gl_error *err) {
  const cfg_node *list = cfg_find(root, "groups");
  gl_status status = refuse_unknown(root, 1, err);
  if (status == GL_OK && list != NULL) status = must_be_list(list, "", "groups", err);
  if (status != GL_OK) return status;
  out->listed = list != NULL;
  size_t n = out->listed ? cfg_size(list) : 1, responses = 0, tokens = 0;
  if (n == 0) return cfg_fail(list, err, "groups is empty");
  char where[32];
  for (size_t g = 0; g < n && status == GL_OK; ++g) {
    const cfg_node *group = out->listed ? cfg_at(list, g) : root;
    place(where, out->listed, g);
    status = count_group(group, where, &responses, &tokens, err);
    if (status == GL_OK && out->listed) status = refuse_unknown(group, 0, err);
  }
  filler f = {.err = err};
  if (status == GL_OK) status = allocate(out, &f, n, responses, tokens);
  for (size_t g = 0; g < n && status == GL_OK; ++g) {
    place(where, out->listed, g);
    status = fill_group(&f, out->listed ? cfg_at(list, g) : root, g, where);
  }
  if (status != GL_OK) return status;
  out->input = (policy_input){.n_groups = n,
                              .n_responses = responses,
                              .n_tokens = tokens,
                              .group_start = f.group_start,
                              .token_start = f.token_start,
                              .reward = f.reward,
                              .logp = f.values[ARRAY_LOGP],
                              .logq = f.values[ARRAY_LOGQ],
                              .logprox = f.has[ARRAY_LOGPROX] ? f.values[ARRAY_LOGPROX] : NULL,
                              .logref = f.has[ARRAY_LOGREF] ? f.values[ARRAY_LOGREF] : NULL,
                              .version_gap = f.has[ARRAY_GAP] ? f.values[ARRAY_GAP] : NULL,
                              .log_denominator = f.has_denominator ? f.log_denominator : NULL};
  return read_max_length(&out->input.max_length, root, err);
}

gl_status group_file_read(group_file *out, const char *path, gl_error *err) {
  *out = (group_file){.listed = 0};
  const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
  char *text = NULL;
  size_t size = 0;
  cfg_doc *doc = NULL;
  gl_status status = read_all(&text, &size, path, err);
  if (status == GL_OK) status = must_be_json(text, size, name, err);
  if (status == GL_OK) status = cfg_load_text(&doc, text, size, name, err);
  if (status == GL_OK) status = read_groups(out, cfg_root(doc), err);
  cfg_free(doc);
  free(text);
  if (status != GL_OK) group_file_fini(out);
  return status;
}

void group_file_fini(group_file *g) {
  free(g->memory);
  *g = (group_file){.listed = 0};
}
