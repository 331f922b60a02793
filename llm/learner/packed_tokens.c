/* Builds packed sequences, and tokenizes problems. */
#include "llm/learner/packed_tokens.h"

#include "core/base/arena.h"
#include "core/base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- packed tokens --- */

static bool reserve_sequence(token_pack *p, size_t tokens) {
  size_t first = p->cap_sequences, second = first;
  return ARRAY_RESERVE(p->parent, first, p->n_sequences + 2) &&
         ARRAY_RESERVE(p->before, second, p->n_sequences + 2) &&
         ARRAY_RESERVE(p->start, p->cap_sequences, p->n_sequences + 2) &&
         ARRAY_RESERVE(p->tree, p->cap_trees, p->n_trees + 2) &&
         ARRAY_RESERVE(p->token, p->cap_tokens, p->n_tokens + tokens);
}

static bool reserve_watched(token_pack *p, size_t n) {
  const size_t words = p->watched.words;
  return words == 0 ||
         (p->n_watched + n <= SIZE_MAX / words &&
          ARRAY_RESERVE(p->watched_set, p->cap_watched_sets, (p->n_watched + n) * words) &&
          ARRAY_RESERVE(p->watched_target, p->cap_watched, p->n_watched + n) &&
          ARRAY_RESERVE(p->watched_of, p->cap_watched_of, p->n_asked + n));
}

static bool reserve_targets(token_pack *p, size_t n) {
  size_t first = p->cap_targets, second = first;
  const size_t words = p->shape.words;
  return (words == 0 || (p->n_targets + n <= SIZE_MAX / words &&
                         ARRAY_RESERVE(p->kept, p->cap_kept, (p->n_targets + n) * words))) &&
         ARRAY_RESERVE(p->target_after, first, p->n_targets + n) &&
         ARRAY_RESERVE(p->target, second, p->n_targets + n) &&
         ARRAY_RESERVE(p->place, p->cap_targets, p->n_targets + n) &&
         ARRAY_RESERVE(p->target_of, p->cap_asked, p->n_asked + n) &&
         ARRAY_RESERVE(p->member, p->cap_members, p->n_members + 1);
}

void token_pack_clear(token_pack *p, int shares) {
  p->n_sequences = p->n_trees = p->n_tokens = p->n_targets = p->n_asked = p->n_members = 0;
  p->n_watched = 0;
  p->shares = shares;
  p->any_shared = p->unordered = 0;
  p->shape = p->watched = (kept_shape){0};
}

void token_pack_keep(token_pack *p, const kept_shape *shape) {
  p->shape = *shape;
}

void token_pack_watch(token_pack *p, const kept_shape *shape) {
  p->watched = *shape;
}

void token_pack_prompt(token_pack *p, const int32_t *prompt, size_t n) {
  assert(n > 0);
  p->prompt = prompt;
  p->n_prompt = n;
  p->n_members = 0;
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The prefix that a new response shares with a packed response to the same prompt. */
typedef struct common_part {
  const pack_member *with; /* NULL: no packed response to compare with */
  size_t tokens;           /* common tokens of the responses */
  size_t rows; /* leading rows (prompt and common tokens) that `with` has already packed */
} common_part;

/* Finds the response with the longest common prefix; the first one on ties. */
static common_part find_common(const token_pack *p, const int32_t *response, size_t n) {
  common_part best = {0};
  for (size_t i = 0; i < p->n_members; ++i) {
    const pack_member *m = &p->member[i];
    const size_t most = least(n, m->n);
    size_t k = 0;
    while (k < most && response[k] == m->response[k]) ++k;
    if (best.with == NULL || k > best.tokens)
      best = (common_part){m, k, p->n_prompt + least(k, most - 1)};
  }
  return p->shares || best.rows == p->n_prompt + n - 1 ? best : (common_part){0};
}

/* The row of a sequence's token at a position. */
static size_t row_of_position(const token_pack *p, size_t sequence, size_t position) {
  while (position < p->before[sequence]) sequence = p->parent[sequence];
  return p->start[sequence] + position - p->before[sequence];
}

/* Packs a sequence without the rows it shares; returns its number. */
static size_t pack_sequence(token_pack *p, common_part common, const int32_t *response,
                            size_t rows) {
  const size_t s = p->n_sequences++;
  if (common.with == NULL) p->tree[p->n_trees++] = s;
  p->any_shared |= common.with != NULL;
  p->parent[s] = common.with != NULL ? common.with->sequence : s;
  p->before[s] = common.rows;
  p->start[s] = p->n_tokens;
  for (size_t i = common.rows; i < rows; ++i)
    p->token[p->n_tokens++] = i < p->n_prompt ? p->prompt[i] : response[i - p->n_prompt];
  p->start[s + 1] = p->n_tokens;
  p->tree[p->n_trees] = p->n_sequences;
  return s;
}

/* 1 if the target's set equals that set. */
static int has_set(const token_pack *p, size_t target, const uint32_t *set) {
  const size_t words = p->shape.words;
  return words == 0 || memcmp(p->kept + target * words, set, words * sizeof *set) == 0;
}

/* Adds a target that follows a row; returns its number. */
static size_t add_target(token_pack *p, size_t row, int32_t token, const uint32_t *set) {
  const size_t words = p->shape.words;
  p->unordered |= p->n_targets > 0 && row < p->target_after[p->n_targets - 1];
  p->target_after[p->n_targets] = row;
  p->target[p->n_targets] = token;
  if (words > 0) memcpy(p->kept + p->n_targets * words, set, words * sizeof *set);
  return p->n_targets++;
}

/* Requests that a target's distribution be split into the tokens of a kept set and the others.
 * Returns the number of this request, which is `old` if that one has the same set. old: an
 * existing request for the distribution after the same tokens; SIZE_MAX: none. */
static size_t watch_dist(token_pack *p, size_t target, size_t old, const uint32_t *set) {
  const size_t words = p->watched.words;
  if (old != SIZE_MAX && memcmp(p->watched_set + old * words, set, words * sizeof *set) == 0)
    return old;
  p->watched_target[p->n_watched] = target;
  memcpy(p->watched_set + p->n_watched * words, set, words * sizeof *set);
  return p->n_watched++;
}

gl_status token_pack_add(token_pack *p, const int32_t *response, size_t n, size_t most, int *added,
                         gl_error *err) {
  return token_pack_add_kept(p, response, NULL, n, most, added, err);
}

gl_status token_pack_add_kept(token_pack *p, const int32_t *response, const uint32_t *kept,
                              size_t n, size_t most, int *added, gl_error *err) {
  const size_t words = p->shape.words > 0 ? p->shape.words : p->watched.words;
  assert(n > 0 && (kept != NULL) == (words > 0));
  assert(p->shape.words == 0 || p->watched.words == 0 || p->shape.words == p->watched.words);
  const size_t rows = p->n_prompt + n - 1;
  const common_part common = find_common(p, response, n);
  *added =
      p->n_sequences == 0 || (p->n_tokens + rows - common.rows <= most && p->n_targets + n <= most);
  if (!*added) return GL_OK;
  const size_t first = common.with != NULL ? common.with->first : 0;
  size_t sequence = common.with != NULL ? common.with->sequence : 0;
  if (!reserve_sequence(p, rows)) return gl_fail_memory(err, "packed sequences");
  if (common.rows < rows) sequence = pack_sequence(p, common, response, rows);
  if (!reserve_targets(p, n) || !reserve_watched(p, n)) /* reallocation may move p->member */
    return gl_fail_memory(err, "packed sequences");
  p->member[p->n_members++] = (pack_member){response, n, sequence, p->n_asked};
  for (size_t t = 0; t < n; ++t) {
    const uint32_t *set = kept != NULL ? kept + t * words : NULL;
    const int shared = t < common.tokens;
    const size_t old = shared ? p->target_of[first + t] : SIZE_MAX;
    p->target_of[p->n_asked + t] =
        old != SIZE_MAX && has_set(p, old, set)
            ? old
            : add_target(p, row_of_position(p, sequence, p->n_prompt + t - 1), response[t], set);
    if (p->watched.words > 0)
      p->watched_of[p->n_asked + t] = watch_dist(p, p->target_of[p->n_asked + t],
                                                 shared ? p->watched_of[first + t] : SIZE_MAX, set);
  }
  p->n_asked += n;
  return GL_OK;
}

/* Sorts the targets by the rows that they follow. A target after a shared row may have been added
 * after targets of later rows. */
gl_status token_pack_finish(token_pack *p, gl_error *err) {
  if (!p->unordered) return GL_OK;
  const size_t n = p->n_targets, words = p->shape.words;
  arena a = {0};
  size_t *count = ARENA_ARRAY(&a, size_t, p->n_tokens + 1);
  size_t *after = arena_copy(&a, p->target_after, n, sizeof *after);
  const int32_t *target = arena_copy(&a, p->target, n, sizeof *target);
  const uint32_t *kept = words > 0 ? arena_copy(&a, p->kept, n * words, sizeof *kept) : NULL;
  const gl_status status = arena_check(&a, "packed sequences", err);
  if (status == GL_OK) {
    for (size_t j = 0; j < n; ++j) ++count[after[j] + 1];
    for (size_t r = 1; r <= p->n_tokens; ++r) count[r] += count[r - 1];
    for (size_t j = 0; j < n; ++j) {
      const size_t to = p->place[j] = count[after[j]]++;
      p->target_after[to] = after[j];
      p->target[to] = target[j];
      if (words > 0) memcpy(p->kept + to * words, kept + j * words, words * sizeof *kept);
    }
    for (size_t k = 0; k < p->n_asked; ++k) p->target_of[k] = p->place[p->target_of[k]];
    for (size_t j = 0; j < p->n_watched; ++j) p->watched_target[j] = p->place[p->watched_target[j]];
    p->unordered = 0;
  }
  arena_fini(&a);
  return status;
}

gl_status token_pack_forward(const token_pack *p, model *m, double temperature, int keep,
                             double *logp, double *entropy, gl_error *err) {
  assert(!p->unordered);
  const packed_tokens rows = {p->n_tokens, p->n_sequences,  p->n_targets, p->start,
                              p->token,    p->target_after, p->target};
  const shared_tokens shared = {p->n_trees, p->tree, p->parent, p->before};
  const kept_tokens kept = {&p->shape, p->kept};
  const forward_options o = {.shared = p->any_shared ? &shared : NULL,
                             .kept = p->shape.words > 0 ? &kept : NULL,
                             .temperature = temperature,
                             .keep = keep};
  return model_forward_with(m, &rows, &o, logp, entropy, err);
}

gl_status token_pack_parts(const token_pack *p, model *m, double *const part[3], gl_error *err) {
  const kept_tokens kept = {&p->watched, p->watched_set};
  return model_kept_parts(m, p->watched_target, &kept, p->n_watched, part, err);
}

void token_pack_fini(token_pack *p) {
  free(p->start);
  free(p->parent);
  free(p->before);
  free(p->tree);
  free(p->token);
  free(p->target_after);
  free(p->target);
  free(p->kept);
  free(p->watched_target);
  free(p->watched_set);
  free(p->watched_of);
  free(p->place);
  free(p->target_of);
  free(p->member);
  *p = (token_pack){0};
}

/* --- problems --- */

static gl_status add_problem(problem_set *set, const run_spec *spec, task_split split,
                             uint64_t number, size_t *capacity, gl_error *err) {
  int32_t *token = NULL;
  size_t n = 0, i = set->n, first = set->start[i];
  gl_status status = task_problem(spec->task, split, number, &set->problem[i], err);
  if (status != GL_OK) return status;
  ++set->n;
  status = run_spec_prompt(spec, set->problem[i].prompt, &token, &n, err);
  if (status == GL_OK && !ARRAY_RESERVE(set->token, *capacity, first + n))
    status = gl_fail_memory(err, "prompts");
  if (status == GL_OK) {
    memcpy(set->token + first, token, n * sizeof *token);
    set->start[i + 1] = first + n;
  }
  free(token);
  return status;
}

gl_status problem_set_init(problem_set *set, const run_spec *spec, task_split split,
                           const uint64_t *number, size_t n, gl_error *err) {
  size_t capacity = 0;
  *set = (problem_set){.problem = calloc(n + 1, sizeof *set->problem),
                       .start = calloc(n + 1, sizeof *set->start)};
  gl_status status =
      set->problem != NULL && set->start != NULL ? GL_OK : gl_fail_memory(err, "prompts");
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = add_problem(set, spec, split, number[i], &capacity, err);
  if (status != GL_OK) problem_set_fini(set);
  return status;
}

void problem_set_fini(problem_set *set) {
  for (size_t i = 0; i < set->n; ++i) problem_fini(&set->problem[i]);
  free(set->problem);
  free(set->start);
  free(set->token);
  *set = (problem_set){0};
}
