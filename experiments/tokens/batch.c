/* Arranges responses by group: order, offsets, rewards and advantages of a token_batch. */
#include "experiments/tokens/batch.h"

#include "core/base/hash.h"
#include "experiments/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char what[] = "the batch of a log";

void token_builder_init(token_builder *b, const token_request *request) {
  *b = (token_builder){.request = request, .step = NAN, .learner_version = NAN};
}

void token_builder_clear(token_builder *b) {
  for (size_t i = 0; i < sizeof b->memory / sizeof *b->memory; ++i) {
    free(b->memory[i]);
    b->memory[i] = NULL;
  }
  if (b->has_record) group_file_fini(&b->record.groups);
  b->has_record = b->has_keys = b->advantages_vary = b->is_cut = false;
  b->has_rewards = b->has_advantages = false;
  memset(b->has, 0, sizeof b->has);
  b->step = b->learner_version = NAN;
  b->n = b->n_tokens = 0;
  b->batch = (token_batch){.step = NAN, .time_s = NAN, .learner_version = NAN};
}

void token_builder_fini(token_builder *b) {
  token_builder_clear(b);
  for (int c = 0; c < TOKEN_COLUMNS; ++c) free(b->column[c]);
  free(b->response);
  free(b->mask);
  free(b->space);
}

bool token_builder_is_empty(const token_builder *b) {
  return b->n == 0 && !b->has_record;
}

token_response *token_builder_add(token_builder *b) {
  MUST_RESERVE(b->response, b->response_room, b->n + 1, what);
  token_response *r = &b->response[b->n++];
  *r = (token_response){.first = b->n_tokens};
  return r;
}

void token_builder_reserve(token_builder *b, size_t n) {
  for (int c = 0; c < TOKEN_COLUMNS; ++c)
    if (b->has[c]) MUST_RESERVE(b->column[c], b->column_room[c], b->n_tokens + n, what);
}

double *token_builder_column(token_builder *b, token_column c) {
  return b->column[c] + b->n_tokens;
}

void token_builder_keep(token_builder *b, size_t n) {
  b->response[b->n - 1].tokens = n;
  b->n_tokens += n;
}

void token_builder_cut(token_builder *b, const char *file) {
  b->is_cut = b->n > 0 && b->response[b->n - 1].sample.file == file;
}

/* --- groups --- */

/* For --group-size: checks that the responses form groups of `size` consecutive responses, each
 * with one key. */
static gl_status check_group_size(token_builder *b, size_t size, gl_error *err) {
  if (b->is_cut) b->n -= b->n % size;
  const token_sample *first = &b->response[0].sample;
  if (b->n % size != 0)
    return gl_fail(err, GL_EINPUT,
                   "%s:%zu: a batch of %zu responses cannot be split into groups of %zu; is "
                   "--group-size the number of responses per prompt?",
                   first->file, first->line, b->n, size);
  for (size_t i = 0; i < b->n && b->has_keys; ++i)
    if (b->response[i].key != b->response[i - i % size].key)
      return gl_fail(err, GL_EINPUT,
                     "%s:%zu: responses %zu and %zu of the batch are in one group of --group-size "
                     "%zu and have different prompts; leave the option out, or correct it",
                     b->response[i].sample.file, b->response[i].sample.line, i - i % size + 1,
                     i + 1, size);
  return GL_OK;
}

typedef struct placed {
  size_t group, index;
} placed;

static int token_by_group(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Numbers groups in the order of their first responses; responses with equal keys are one group. */
static void number_by_key(const token_builder *b, placed *place) {
  hash_table groups = {0};
  size_t n = 0;
  for (size_t i = 0; i < b->n; ++i) {
    const uint64_t key = hash_mix(b->response[i].key);
    uint64_t *group = hash_table_find(&groups, key, NULL, NULL, NULL);
    place[i] = (placed){.group = group != NULL ? (size_t)*group : n, .index = i};
    if (group == NULL) must_succeed(hash_table_add(&groups, key, n++), what);
  }
  hash_table_fini(&groups);
}

/* Leaves out the group of the last response if the file ends within it: it has fewer responses
 * than the first group. */
static size_t drop_cut_group(const token_builder *b, const placed *place) {
  size_t first = 0, last = 0;
  const size_t group = place[b->n - 1].group;
  for (size_t i = 0; i < b->n; ++i) {
    first += place[i].group == 0;
    last += place[i].group == group;
  }
  return last < first ? group : SIZE_MAX;
}

/* Orders the trained responses by group. *n: their number. */
static gl_status place_in_groups(token_builder *b, placed *place, size_t *n, gl_error *err) {
  const size_t size = b->request->group_size;
  size_t kept = 0, dropped = SIZE_MAX;
  if (size > 0) {
    gl_status status = check_group_size(b, size, err);
    if (status != GL_OK) return status;
    for (size_t i = 0; i < b->n; ++i) place[i] = (placed){.group = i / size, .index = i};
  } else if (b->has_keys) {
    number_by_key(b, place);
    if (b->is_cut) dropped = drop_cut_group(b, place);
    qsort(place, b->n, sizeof *place, token_by_group);
  } else {
    return gl_fail(err, GL_EINPUT,
                   "%s: without the prompts the groups are unknown; give the number of responses "
                   "per prompt with --group-size",
                   b->response[0].sample.file);
  }
  for (size_t i = 0; i < b->n; ++i)
    if (b->response[place[i].index].tokens > 0 && place[i].group != dropped)
      place[kept++] = place[i];
  *n = kept;
  return GL_OK;
}

/* --- arrays --- */

static void *keep_memory(token_builder *b, size_t n, size_t size) {
  size_t i = 0;
  while (b->memory[i] != NULL) ++i;
  return b->memory[i] = must_alloc(n, size, what);
}

/* Writes the arranged responses to the batch: offsets of groups and responses, rewards and
 * advantages. */
static void fill_responses(token_builder *b, const placed *place, size_t n) {
  token_batch *out = &b->batch;
  size_t *group = keep_memory(b, n + 1, sizeof *group),
         *token = keep_memory(b, n + 1, sizeof *token);
  double *reward = keep_memory(b, n, sizeof *reward), *advantage = NULL;
  token_sample *sample = keep_memory(b, n, sizeof *sample);
  if (b->has_advantages) advantage = keep_memory(b, n, sizeof *advantage);
  size_t n_groups = 0;
  for (size_t i = 0; i < n; ++i) {
    const token_response *r = &b->response[place[i].index];
    if (i == 0 || place[i].group != place[i - 1].group) group[n_groups++] = i;
    token[i + 1] = token[i] + r->tokens;
    reward[i] = b->has_rewards ? r->reward : NAN;
    if (advantage != NULL) advantage[i] = r->advantage;
    sample[i] = r->sample;
  }
  group[n_groups] = n;
  out->input = (policy_input){.n_groups = n_groups,
                              .n_responses = n,
                              .n_tokens = token[n],
                              .group_start = group,
                              .token_start = token,
                              .reward = reward,
                              .advantage = b->has_rewards ? NULL : advantage};
  out->trainer_advantage = advantage;
  out->sample = sample;
}

/* Copies a column in the order of the arranged responses; NULL: the log does not have it. */
static const double *arrange_column(token_builder *b, token_column c, const placed *place,
                                    size_t n) {
  bool in_order = true;
  if (!b->has[c]) return NULL;
  for (size_t i = 0, at = 0; i < n; at += b->response[place[i++].index].tokens)
    in_order = in_order && b->response[place[i].index].first == at;
  if (in_order) return b->column[c];
  double *to = MUST_ARRAY(double, b->column_room[c], what);
  for (size_t i = 0, at = 0; i < n; ++i) {
    const token_response *r = &b->response[place[i].index];
    memcpy(to + at, b->column[c] + r->first, r->tokens * sizeof *to);
    at += r->tokens;
  }
  free(b->column[c]);
  return b->column[c] = to;
}

static const double *gap_of(token_builder *b, const double *version, size_t n) {
  if (version == NULL || isnan(b->learner_version)) return NULL;
  double *gap = keep_memory(b, n, sizeof *gap);
  for (size_t t = 0; t < n; ++t) gap[t] = b->learner_version - version[t];
  return gap;
}

/* Finishes a batch of the format gepolab, whose record already is a batch. */
static void finish_record(token_builder *b) {
  b->batch = (token_batch){.input = b->record.groups.input,
                           .step = b->record.step,
                           .time_s = b->record.time_s,
                           .learner_version = NAN,
                           .has_logs = true,
                           .has_rewards = true};
}

static void count_untrained(token_builder *b) {
  token_batch *out = &b->batch;
  for (size_t i = 0; i < b->n; ++i) {
    const token_response *r = &b->response[i];
    if (r->tokens > 0) continue;
    ++out->n_untrained;
    out->untrained_tokens += r->untrained > 0 ? (double)r->untrained : NAN;
  }
}

gl_status token_builder_finish(token_builder *b, gl_error *err) {
  token_batch *out = &b->batch;
  size_t n = 0;
  if (b->has_record) {
    finish_record(b);
    return GL_OK;
  }
  placed *place = MUST_ARRAY(placed, b->n, what);
  gl_status status = place_in_groups(b, place, &n, err);
  if (status == GL_OK) {
    fill_responses(b, place, n);
    out->input.logp = arrange_column(b, TOKEN_LOGP, place, n);
    out->input.logq = arrange_column(b, TOKEN_LOGQ, place, n);
    out->input.entropy = arrange_column(b, TOKEN_ENTROPY, place, n);
    out->version = arrange_column(b, TOKEN_VERSION, place, n);
    out->input.version_gap = gap_of(b, out->version, out->input.n_tokens);
    out->step = b->step;
    out->learner_version = b->learner_version;
    out->has_logs = b->has[TOKEN_LOGP] && b->has[TOKEN_LOGQ];
    out->has_rewards = b->has_rewards;
    out->grouping = b->request->group_size > 0 ? TOKEN_GROUPS_OF_SIZE : b->grouping;
    out->advantages_vary = b->advantages_vary;
    count_untrained(b);
  }
  free(place);
  return status;
}
