/* Builds packed sequences, and reads problems as tokens. */
#include "llm/learner/packed_tokens.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- packed tokens --- */

/* Grows *array, which holds elements of `size`, to at least n of them; contents are kept. */
static int grow(void *array, size_t *capacity, size_t n, size_t size) {
  void **slot = array;
  if (n <= *capacity) return 1;
  size_t wanted = n < SIZE_MAX / 2 ? n + n / 2 + 16 : n;
  if (wanted > SIZE_MAX / size) return 0;
  void *larger = realloc(*slot, wanted * size);
  if (larger == NULL) return 0;
  *slot = larger;
  *capacity = wanted;
  return 1;
}

static int reserve_sequence(token_pack *p, size_t tokens) {
  size_t first = p->cap_sequences, second = first;
  return grow(&p->parent, &first, p->n_sequences + 2, sizeof *p->parent) &&
         grow(&p->before, &second, p->n_sequences + 2, sizeof *p->before) &&
         grow(&p->start, &p->cap_sequences, p->n_sequences + 2, sizeof *p->start) &&
         grow(&p->tree, &p->cap_trees, p->n_trees + 2, sizeof *p->tree) &&
         grow(&p->token, &p->cap_tokens, p->n_tokens + tokens, sizeof *p->token);
}

static int reserve_watched(token_pack *p, size_t n) {
  const size_t words = p->watched.words;
  if (words == 0) return 1;
  return p->n_watched + n <= SIZE_MAX / words &&
         grow(&p->watched_set, &p->cap_watched_sets, (p->n_watched + n) * words,
              sizeof *p->watched_set) &&
         grow(&p->watched_target, &p->cap_watched, p->n_watched + n, sizeof *p->watched_target) &&
         grow(&p->watched_of, &p->cap_watched_of, p->n_asked + n, sizeof *p->watched_of);
}

static int reserve_targets(token_pack *p, size_t n) {
  size_t first = p->cap_targets, second = first;
  const size_t words = p->shape.words;
  if (words > 0 && (p->n_targets + n > SIZE_MAX / words ||
                    !grow(&p->kept, &p->cap_kept, (p->n_targets + n) * words, sizeof *p->kept)))
    return 0;
  return grow(&p->target_after, &first, p->n_targets + n, sizeof *p->target_after) &&
         grow(&p->target, &second, p->n_targets + n, sizeof *p->target) &&
         grow(&p->place, &p->cap_targets, p->n_targets + n, sizeof *p->place) &&
         grow(&p->target_of, &p->cap_asked, p->n_asked + n, sizeof *p->target_of) &&
         grow(&p->member, &p->cap_members, p->n_members + 1, sizeof *p->member);
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

/* What a new response has in common with one to the same prompt that is packed already. */
typedef struct common_part {
  const pack_member *with; /* NULL: nothing */
  size_t tokens;           /* of the responses */
  size_t rows;             /* rows that need not be packed again */
} common_part;

/* With the one that has most in common; of equals the first. */
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

/* A sequence with the tokens that are not there yet; returns its number. */
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

/* Whether a target has that set. */
static int has_set(const token_pack *p, size_t target, const uint32_t *set) {
  const size_t words = p->shape.words;
  return words == 0 || memcmp(p->kept + target * words, set, words * sizeof *set) == 0;
}

/* Makes the token behind a row a target; returns its number. */
static size_t add_target(token_pack *p, size_t row, int32_t token, const uint32_t *set) {
  const size_t words = p->shape.words;
  p->unordered |= p->n_targets > 0 && row < p->target_after[p->n_targets - 1];
  p->target_after[p->n_targets] = row;
  p->target[p->n_targets] = token;
  if (words > 0) memcpy(p->kept + p->n_targets * words, set, words * sizeof *set);
  return p->n_targets++;
}

/* Makes the distribution before a target one to be cut by a set, if it is not `old` (SIZE_MAX:
 * there is none), which stands before the same tokens; returns its number. */
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
  *added = p->n_sequences == 0 || p->n_tokens + rows - common.rows <= most;
  if (!*added) return GL_OK;
  const size_t first = common.with != NULL ? common.with->first : 0;
  size_t sequence = common.with != NULL ? common.with->sequence : 0;
  if (!reserve_sequence(p, rows)) return gl_fail_memory(err, "packed sequences");
  if (common.rows < rows) sequence = pack_sequence(p, common, response, rows);
  if (!reserve_targets(p, n) || !reserve_watched(p, n)) /* moves members */
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

/* Puts the targets' sets into the order that `place` says; 0 if memory is short. */
static int order_sets(token_pack *p) {
  const size_t n = p->n_targets, words = p->shape.words;
  if (words == 0) return 1;
  uint32_t *kept = malloc((n * words + 1) * sizeof *kept); /* reserve_targets() has checked sizes */
  if (kept == NULL) return 0;
  for (size_t j = 0; j < n; ++j)
    memcpy(kept + p->place[j] * words, p->kept + j * words, words * sizeof *kept);
  memcpy(p->kept, kept, n * words * sizeof *kept);
  free(kept);
  return 1;
}

/* Orders the targets by the rows that they follow: those of shared rows come late. */
gl_status token_pack_finish(token_pack *p, gl_error *err) {
  if (!p->unordered) return GL_OK;
  const size_t n = p->n_targets;
  size_t *count = calloc(p->n_tokens + 1, sizeof *count);
  size_t *after = malloc((n + 1) * sizeof *after);
  int32_t *target = malloc((n + 1) * sizeof *target);
  int enough = count != NULL && after != NULL && target != NULL;
  if (enough) {
    for (size_t j = 0; j < n; ++j) ++count[p->target_after[j] + 1];
    for (size_t r = 1; r <= p->n_tokens; ++r) count[r] += count[r - 1];
    for (size_t j = 0; j < n; ++j) {
      p->place[j] = count[p->target_after[j]]++;
      after[p->place[j]] = p->target_after[j];
      target[p->place[j]] = p->target[j];
    }
    memcpy(p->target_after, after, n * sizeof *after);
    memcpy(p->target, target, n * sizeof *target);
    for (size_t k = 0; k < p->n_asked; ++k) p->target_of[k] = p->place[p->target_of[k]];
    for (size_t j = 0; j < p->n_watched; ++j) p->watched_target[j] = p->place[p->watched_target[j]];
    enough = order_sets(p);
    p->unordered = !enough;
  }
  free(count);
  free(after);
  free(target);
  return enough ? GL_OK : gl_fail_memory(err, "packed sequences");
}

gl_status token_pack_forward(const token_pack *p, model *m, double temperature, int keep,
                             double *logp, double *entropy, gl_error *err) {
  assert(!p->unordered);
  const packed_tokens rows = {p->n_tokens, p->n_sequences,  p->n_targets, p->start,
                              p->token,    p->target_after, p->target};
  const shared_tokens shared = {p->n_trees, p->tree, p->parent, p->before};
  const kept_tokens kept = {&p->shape, p->kept};
  return model_forward_kept(m, &rows, p->any_shared ? &shared : NULL,
                            p->shape.words > 0 ? &kept : NULL, temperature, keep, logp, entropy,
                            err);
}

gl_status token_pack_parts(const token_pack *p, model *m, double *mass, double *entropy_kept,
                           double *entropy_tail, gl_error *err) {
  const kept_tokens kept = {&p->watched, p->watched_set};
  return model_kept_parts(m, p->watched_target, &kept, p->n_watched, mass, entropy_kept,
                          entropy_tail, err);
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
  if (status == GL_OK && !grow(&set->token, capacity, first + n, sizeof *set->token))
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
