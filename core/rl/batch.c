/* Batches of responses: memory, shape and binary form. */
#include "core/rl/batch.h"

#include "core/base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- shape --- */

/* Allocates every array for the counts in *b; on failure *b is empty. */
static gl_status allocate(batch *b, gl_error *err) {
  /* n + 1 below must not wrap; calloc itself checks the product */
  if (b->n_groups > SIZE_MAX / 2 || b->n_responses > SIZE_MAX / 2 || b->n_tokens > SIZE_MAX / 2) {
    *b = (batch){0};
    return gl_fail_memory(err, "a batch");
  }
  size_t groups = b->n_groups, responses = b->n_responses, tokens = b->n_tokens;
  b->group_start = calloc(groups + 1, sizeof *b->group_start);
  b->token_start = calloc(responses + 1, sizeof *b->token_start);
  b->prompt = calloc(groups + 1, sizeof *b->prompt);
  b->reward = calloc(responses + 1, sizeof *b->reward);
  b->token = calloc(tokens + 1, sizeof *b->token);
  b->version = calloc(tokens + 1, sizeof *b->version);
  b->logq = calloc(tokens + 1, sizeof *b->logq);
  b->logq_trunc = calloc(tokens + 1, sizeof *b->logq_trunc);
  if (b->group_start != NULL && b->token_start != NULL && b->prompt != NULL && b->reward != NULL &&
      b->token != NULL && b->version != NULL && b->logq != NULL && b->logq_trunc != NULL)
    return GL_OK;
  batch_fini(b);
  return gl_fail_memory(err, "a batch");
}

gl_status batch_init(batch *b, uint64_t id, size_t n_groups, size_t group_size,
                     const size_t *lengths, gl_error *err) {
  *b = (batch){.id = id, .n_groups = n_groups, .loss_weight = 1};
  int fits = group_size == 0 || n_groups <= SIZE_MAX / group_size;
  b->n_responses = fits ? n_groups * group_size : 0;
  for (size_t i = 0; i < b->n_responses && fits; ++i) {
    fits = lengths[i] <= SIZE_MAX - b->n_tokens;
    b->n_tokens += lengths[i];
  }
  if (!fits) {
    *b = (batch){0};
    return gl_fail_memory(err, "a batch");
  }
  gl_status status = allocate(b, err);
  if (status != GL_OK) return status;
  for (size_t g = 0; g < n_groups; ++g) b->group_start[g + 1] = (g + 1) * group_size;
  for (size_t i = 0; i < b->n_responses; ++i)
    b->token_start[i + 1] = b->token_start[i] + lengths[i];
  return GL_OK;
}

gl_status batch_reserve_kept(batch *b, size_t words, gl_error *err) {
  size_t n;
  free(b->kept);
  b->kept = NULL;
  b->kept_words = 0;
  if (words == 0) return GL_OK;
  if (!__builtin_mul_overflow(b->n_tokens, words, &n)) b->kept = calloc(n + 1, sizeof *b->kept);
  if (b->kept == NULL) return gl_fail_memory(err, "a batch's sets of kept tokens");
  b->kept_words = words;
  return GL_OK;
}

gl_status batch_reserve_cache(batch *b, size_t bytes, gl_error *err) {
  assert(bytes % sizeof(double) == 0);
  free(b->cache);
  b->cache = bytes > 0 ? calloc(bytes, 1) : NULL;
  b->cache_bytes = b->cache != NULL ? bytes : 0;
  return b->cache_bytes == bytes ? GL_OK : gl_fail_memory(err, "keys and values");
}

gl_status batch_reserve_dists(batch *b, size_t n, bool own, gl_error *err) {
  free(b->dist);
  b->dist = calloc(n + 1, sizeof *b->dist);
  b->n_dist = b->dist != NULL ? n : 0;
  b->own_dists = own;
  return b->dist != NULL ? GL_OK
                         : gl_fail_memory(err, "the distributions that a batch was sampled from");
}

/* Frees the unused end of a column. If realloc() fails the column stays as it is. */
static void batch_shrink(void *column, size_t n, size_t size) {
  void **slot = column;
  void *smaller = realloc(*slot, (n + 1) * size);
  if (smaller != NULL) *slot = smaller;
}

void batch_cut(batch *b, const size_t *lengths) {
  size_t to = 0;
  for (size_t i = 0; i < b->n_responses; to += lengths[i++]) {
    const size_t from = b->token_start[i], n = lengths[i], words = b->kept_words;
    assert(n <= b->token_start[i + 1] - from);
    b->token_start[i] = to;
    memmove(b->token + to, b->token + from, n * sizeof *b->token);
    memmove(b->version + to, b->version + from, n * sizeof *b->version);
    memmove(b->logq + to, b->logq + from, n * sizeof *b->logq);
    memmove(b->logq_trunc + to, b->logq_trunc + from, n * sizeof *b->logq_trunc);
    if (words > 0)
      memmove(b->kept + to * words, b->kept + from * words, n * words * sizeof *b->kept);
  }
  b->token_start[b->n_responses] = b->n_tokens = to;
  batch_shrink(&b->token, to, sizeof *b->token);
  batch_shrink(&b->version, to, sizeof *b->version);
  batch_shrink(&b->logq, to, sizeof *b->logq);
  batch_shrink(&b->logq_trunc, to, sizeof *b->logq_trunc);
  if (b->kept_words > 0) batch_shrink(&b->kept, to * b->kept_words, sizeof *b->kept);
  free(b->cache);
  b->cache = NULL;
  b->cache_bytes = 0;
}

void batch_fini(batch *b) {
  free(b->group_start);
  free(b->token_start);
  free(b->prompt);
  free(b->reward);
  free(b->token);
  free(b->version);
  free(b->logq);
  free(b->logq_trunc);
  free(b->kept);
  free(b->cache);
  free(b->dist);
  *b = (batch){0};
}

/* --- groups --- */

static size_t responses_of(const batch_group *g) {
  return g->from->group_start[g->group + 1] - g->from->group_start[g->group];
}

static gl_status take_shape(batch *b, uint64_t id, const batch_group *group, size_t n,
                            gl_error *err) {
  const size_t each = n > 0 ? responses_of(group) : 0;
  size_t *lengths = calloc(
      n * each + 1, sizeof *lengths); /* no overflow: these responses are already in memory */
  if (lengths == NULL) return gl_fail_memory(err, "a batch");
  for (size_t g = 0, i = 0; g < n; ++g) {
    const batch *from = group[g].from;
    assert(responses_of(&group[g]) == each);
    for (size_t k = 0; k < each; ++k) {
      const size_t r = from->group_start[group[g].group] + k;
      lengths[i++] = from->token_start[r + 1] - from->token_start[r];
    }
  }
  gl_status status = batch_init(b, id, n, each, lengths, err);
  free(lengths);
  return status;
}

/* Copies n tokens, from token `at` of the source to token `to`. */
static void copy_tokens(batch *b, size_t to, const batch *from, size_t at, size_t n) {
  const size_t words = b->kept_words;
  assert(from->kept_words == words);
  memcpy(b->token + to, from->token + at, n * sizeof *b->token);
  memcpy(b->version + to, from->version + at, n * sizeof *b->version);
  memcpy(b->logq + to, from->logq + at, n * sizeof *b->logq);
  memcpy(b->logq_trunc + to, from->logq_trunc + at, n * sizeof *b->logq_trunc);
  if (words > 0) memcpy(b->kept + to * words, from->kept + at * words, n * words * sizeof *b->kept);
}

gl_status batch_take_groups(batch *b, uint64_t id, const batch_group *group, size_t n,
                            gl_error *err) {
  gl_status status = take_shape(b, id, group, n, err);
  if (status == GL_OK && n > 0) status = batch_reserve_kept(b, group[0].from->kept_words, err);
  for (size_t g = 0; g < n && status == GL_OK; ++g) {
    const batch *from = group[g].from;
    const size_t first = from->group_start[group[g].group], i = b->group_start[g];
    const size_t token = from->token_start[first], k = b->token_start[i];
    const size_t n_tokens = b->token_start[b->group_start[g + 1]] - k;
    b->prompt[g] = from->prompt[group[g].group];
    memcpy(b->reward + i, from->reward + first, responses_of(&group[g]) * sizeof *b->reward);
    copy_tokens(b, k, from, token, n_tokens);
  }
  return status;
}

/* The group of a response. */
static size_t group_with(const batch *b, size_t response) {
  size_t first = 0, end = b->n_groups;
  while (end - first > 1) {
    const size_t middle = first + (end - first) / 2;
    *(b->group_start[middle] <= response ? &first : &end) = middle;
  }
  return first;
}

gl_status batch_take_responses(batch *b, uint64_t id, const batch_response *response, size_t n,
                               gl_error *err) {
  size_t *lengths = calloc(n + 1, sizeof *lengths);
  if (lengths == NULL) return gl_fail_memory(err, "a batch");
  for (size_t i = 0; i < n; ++i) {
    const size_t *start = response[i].from->token_start + response[i].response;
    lengths[i] = start[1] - start[0];
  }
  gl_status status = batch_init(b, id, n, 1, lengths, err);
  if (status == GL_OK && n > 0) status = batch_reserve_kept(b, response[0].from->kept_words, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const batch *from = response[i].from;
    const size_t r = response[i].response;
    b->prompt[i] = from->prompt[group_with(from, r)];
    b->reward[i] = from->reward[r];
    copy_tokens(b, b->token_start[i], from, from->token_start[r], lengths[i]);
  }
  free(lengths);
  return status;
}

int batch_rewards_differ(const batch *b, size_t group) {
  for (size_t i = b->group_start[group] + 1; i < b->group_start[group + 1]; ++i)
    if (b->reward[i] != b->reward[b->group_start[group]]) return 1;
  return 0;
}

void batch_weigh(const double *loss_weight, const size_t *token_start, size_t n,
                 double *coefficient) {
  for (size_t i = 0; i < n; ++i)
    for (size_t k = token_start[i]; k < token_start[i + 1]; ++k) coefficient[k] *= loss_weight[i];
}

size_t batches_groups(const batch *const *batches, size_t n) {
  size_t groups = 0;
  for (size_t b = 0; b < n; ++b) {
    assert(!batches[b]->continues || (b > 0 && groups > 0 && batches[b]->n_groups > 0));
    groups += batches[b]->n_groups - (size_t)batches[b]->continues;
  }
  return groups;
}

int64_t batch_oldest_version(const batch *b) {
  int64_t oldest = INT64_MAX;
  for (size_t k = 0; k < b->n_tokens; ++k)
    if (b->version[k] < oldest) oldest = b->version[k];
  return oldest;
}

static int is_monotone(const size_t *start, size_t n, size_t end) {
  if (start[0] != 0 || start[n] != end) return 0;
  for (size_t i = 0; i < n; ++i)
    if (start[i] > start[i + 1]) return 0;
  return 1;
}

int batch_is_consistent(const batch *b) {
  return b->group_start != NULL && b->token_start != NULL &&
         is_monotone(b->group_start, b->n_groups, b->n_responses) &&
         is_monotone(b->token_start, b->n_responses, b->n_tokens);
}

/* --- binary form --- */

/* The binary form: magic, id, four counts, the columns in the order of the struct, doubles that
 * only the batch's learner can interpret, and the FNV-1a hash of all bytes before it. These doubles
 * are the sets of kept tokens, each padded to whole doubles, and keys and values; or
 * distributions, followed by a zero if each response has its own. */
static const char magic[8] = {'G', 'L', 'B', 'A', 'T', 'C', 'H', '1'};

typedef struct channel {
  FILE *file;
  uint64_t hash;
  int ok;
} channel;

static void write_channel(channel *c, const void *data, size_t size, size_t n) {
  c->ok = c->ok && fwrite(data, size, n, c->file) == n;
  c->hash = hash_64(c->hash, data, size * n);
}

/* Reads n items into new memory. It reads in pieces, so that a wrong count in a damaged file
 * reaches the end of the file before memory is exhausted. The array has one spare item, like those
 * of allocate(). */
static void *get_array(channel *c, size_t size, size_t n) {
  enum { PIECE = 1 << 16 };
  char *data = NULL;
  size_t have = 0, room = 0;
  while (c->ok && (have < n || data == NULL)) {
    size_t want = n - have < PIECE ? n - have : PIECE;
    if (have + want + 1 > room) {
      room = have + want + 1 > 2 * room ? have + want + 1 : 2 * room;
      char *bigger = room > SIZE_MAX / size ? NULL : realloc(data, room * size);
      c->ok = bigger != NULL;
      if (!c->ok) break;
      data = bigger;
    }
    c->ok = fread(data + have * size, size, want, c->file) == want;
    have += want;
  }
  if (!c->ok) {
    free(data);
    return NULL;
  }
  c->hash = hash_64(c->hash, data, size * n);
  return data;
}

gl_status batch_write(const batch *b, FILE *to, gl_error *err) {
  channel c = {to, HASH_64_START, 1};
  const size_t words = b->kept_words, set_doubles = (words + 1) / 2;
  const double own = 0;
  const uint64_t head[5] = {b->id, b->n_groups, b->n_responses, b->n_tokens,
                            b->n_tokens * set_doubles + b->cache_bytes / sizeof(double) +
                                b->n_dist + b->own_dists};
  write_channel(&c, magic, 1, sizeof magic);
  write_channel(&c, head, sizeof *head, 5);
  write_channel(&c, b->group_start, sizeof *b->group_start, b->n_groups + 1);
  write_channel(&c, b->token_start, sizeof *b->token_start, b->n_responses + 1);
  write_channel(&c, b->prompt, sizeof *b->prompt, b->n_groups);
  write_channel(&c, b->reward, sizeof *b->reward, b->n_responses);
  write_channel(&c, b->token, sizeof *b->token, b->n_tokens);
  write_channel(&c, b->version, sizeof *b->version, b->n_tokens);
  write_channel(&c, b->logq, sizeof *b->logq, b->n_tokens);
  write_channel(&c, b->logq_trunc, sizeof *b->logq_trunc, b->n_tokens);
  for (size_t k = 0; k < b->n_tokens && words > 0; ++k) {
    const uint32_t fill = 0;
    write_channel(&c, b->kept + k * words, sizeof *b->kept, words);
    if (words % 2 != 0) write_channel(&c, &fill, sizeof fill, 1);
  }
  if (b->cache_bytes > 0) write_channel(&c, b->cache, 1, b->cache_bytes);
  if (b->n_dist > 0) write_channel(&c, b->dist, sizeof *b->dist, b->n_dist);
  if (b->own_dists) write_channel(&c, &own, sizeof own, 1);
  uint64_t hash = c.hash;
  write_channel(&c, &hash, sizeof hash, 1);
  return c.ok ? GL_OK : gl_fail(err, GL_EIO, "writing a batch failed: %s", strerror(errno));
}

static void get_arrays(channel *c, batch *b) {
  b->group_start = get_array(c, sizeof *b->group_start, b->n_groups + 1);
  b->token_start = get_array(c, sizeof *b->token_start, b->n_responses + 1);
  b->prompt = get_array(c, sizeof *b->prompt, b->n_groups);
  b->reward = get_array(c, sizeof *b->reward, b->n_responses);
  b->token = get_array(c, sizeof *b->token, b->n_tokens);
  b->version = get_array(c, sizeof *b->version, b->n_tokens);
  b->logq = get_array(c, sizeof *b->logq, b->n_tokens);
  b->logq_trunc = get_array(c, sizeof *b->logq_trunc, b->n_tokens);
  if (b->cache_bytes != 0) b->cache = get_array(c, sizeof(double), b->cache_bytes / sizeof(double));
}

gl_status batch_read(batch *b, FILE *from, gl_error *err) {
  *b = (batch){.loss_weight = 1};
  channel c = {from, HASH_64_START, 1};
  char start[sizeof magic];
  uint64_t head[5];
  c.ok = fread(start, 1, sizeof start, from) == sizeof start &&
         memcmp(start, magic, sizeof magic) == 0 && fread(head, sizeof *head, 5, from) == 5;
  if (!c.ok) return gl_fail(err, GL_EINPUT, "not a batch: its first bytes are wrong or missing");
  c.hash = hash_64(c.hash, start, sizeof start);
  c.hash = hash_64(c.hash, head, sizeof head);
  for (int i = 1; i < 5; ++i) c.ok = c.ok && head[i] < SIZE_MAX / 16;
  b->id = head[0];
  b->n_groups = (size_t)head[1];
  b->n_responses = (size_t)head[2];
  b->n_tokens = (size_t)head[3];
  b->cache_bytes = (size_t)head[4] * sizeof(double);
  get_arrays(&c, b);
  uint64_t hash = 0;
  c.ok = c.ok && fread(&hash, sizeof hash, 1, from) == 1 && hash == c.hash;
  if (c.ok && batch_is_consistent(b)) return GL_OK;
  batch_fini(b);
  return gl_fail(err, GL_EINPUT, "a batch is truncated or damaged; go back to the file before it");
}

gl_status batch_assign_optional(batch *b, size_t kept_words, size_t dist_doubles, gl_error *err) {
  const size_t doubles = b->cache_bytes / sizeof(double), set = (kept_words + 1) / 2;
  if (dist_doubles > 0) {
    b->own_dists =
        doubles % dist_doubles == 1; /* unambiguous: a distribution has at least two doubles */
    b->n_dist = doubles - b->own_dists;
    b->dist = (double *)(void *)b->cache;
    b->cache = NULL;
    b->cache_bytes = 0;
    return GL_OK;
  }
  if (set == 0 || doubles / set < b->n_tokens || doubles == 0) return GL_OK;
  gl_status status = batch_reserve_kept(b, kept_words, err);
  if (status != GL_OK) return status;
  for (size_t k = 0; k < b->n_tokens; ++k)
    memcpy(b->kept + k * kept_words, b->cache + k * set * sizeof(double),
           kept_words * sizeof *b->kept);
  b->cache_bytes -= b->n_tokens * set * sizeof(double);
  memmove(b->cache, b->cache + b->n_tokens * set * sizeof(double), b->cache_bytes);
  return GL_OK;
}
