/* AReaL's <version>/<task_id>.jsonl, a line for each trajectory of a task, written by
 * _dump_trajectory() of areal/infra/workflow_executor.py (line 917) of AReaL 2.0.0 at commit
 * cbff54d. It has rewards, lengths and the version of every trained token, and no
 * log-probabilities. The learner's version is unknown: the folder is named after the newest version
 * that took part in the generation of the task. A task that is generated again, after a restart, is
 * appended to the same file (line 1000), and is another group. */
#include "experiments/tokens/formats.h"

#include "core/base/hash.h"

#include <string.h>

static const char *const marks[] = {"version_rle", "head_version", "tail_version", "seqlen", NULL};

typedef enum areal_field {
  AREAL_TASK,
  AREAL_SAMPLE,
  AREAL_LENGTH,
  AREAL_PROMPT,
  AREAL_HEAD,
  AREAL_TAIL,
  AREAL_RLE,
  AREAL_REWARD,
  AREAL_READ, /* the fields from here on are known and not read */
  AREAL_FIELDS = AREAL_READ + 4
} areal_field;
static const token_field fields[AREAL_FIELDS] = {[AREAL_TASK] = {"task_id", true},
                                                 [AREAL_SAMPLE] = {"sample_idx", true},
                                                 [AREAL_LENGTH] = {"seqlen", true},
                                                 [AREAL_PROMPT] = {"prompt_len", true},
                                                 [AREAL_HEAD] = {"head_version", true},
                                                 [AREAL_TAIL] = {"tail_version", true},
                                                 [AREAL_RLE] = {"version_rle", true},
                                                 [AREAL_REWARD] = {"reward", true},
                                                 [AREAL_READ] = {"prompt", false},
                                                 {"completion", false},
                                                 {"segments", false},
                                                 {"original_reward", false}};

/* Tasks of one folder are a batch. */
static bool same_folder(const char *a, const char *b) {
  const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
  if (x == NULL || y == NULL) return x == y;
  return x - a == y - b && memcmp(a, b, (size_t)(x - a)) == 0;
}

/* The i-th run [version, tokens] of version_rle; false: it is none. */
static bool read_version_run(scan_piece run, double *version, uint64_t *tokens) {
  scan_piece first, second, none;
  if (!scan_element(&run, &first) || !scan_element(&run, &second) || scan_element(&run, &none))
    return false;
  return scan_number(first, version) == NULL && *version >= 0 && *version <= 9007199254740992.0 &&
         scan_whole(second, tokens) == NULL && *tokens > 0;
}

/* Versions of trained tokens, in the order of tokens. */
static gl_status read_versions(token_builder *b, const token_line *line, scan_piece rle,
                               uint64_t length, gl_error *err) {
  size_t n = 0;
  scan_piece run, rest = rle;
  while (scan_element(&rest, &run)) {
    double version = 0;
    uint64_t tokens = 0;
    if (!read_version_run(run, &version, &tokens))
      return token_refuse(line, run.text, err, "version_rle must be a list of [version, tokens]");
    if (tokens > length || n + (size_t)tokens > (size_t)length)
      return token_refuse(line, run.text, err,
                          "version_rle has more tokens than the %.0f of seqlen", (double)length);
    token_builder_reserve(b, n + (size_t)tokens);
    double *to = token_builder_column(b, TOKEN_VERSION) + n;
    for (uint64_t t = 0; t < tokens; ++t) to[t] = version;
    n += (size_t)tokens;
  }
  if (rest.size != 1 || *rest.text != ']')
    return token_refuse(line, rle.text, err, "version_rle must be a list of [version, tokens]");
  token_builder_keep(b, n);
  return GL_OK;
}

/* Hash of the task and of how often its file began it again. */
static gl_status areal_key(token_builder *b, uint64_t *key, const token_line *line,
                           const scan_piece *piece, gl_error *err) {
  uint64_t sample = 0;
  const token_response *last = b->n > 0 ? &b->response[b->n - 1] : NULL;
  if (scan_whole(piece[AREAL_SAMPLE], &sample) != NULL)
    return token_refuse(line, piece[AREAL_SAMPLE].text, err, "sample_idx must be a whole number");
  const bool is_new = last == NULL || last->sample.file != line->file;
  b->rank = is_new ? 0 : b->rank + (sample <= b->index);
  b->index = sample;
  *key = hash_64(hash_64_text(HASH_64_START, line->file), piece[AREAL_TASK].text,
                 piece[AREAL_TASK].size);
  *key = hash_64(*key, &b->rank, sizeof b->rank);
  return GL_OK;
}

static gl_status areal_read(token_builder *b, const token_line *line, bool *next, gl_error *err) {
  scan_piece piece[AREAL_FIELDS];
  uint64_t length = 0, prompt = 0;
  gl_status status =
      token_find_fields(b, &token_format_areal, line, fields, piece, AREAL_FIELDS, err);
  if (status != GL_OK) return status;
  *next = b->n > 0 && !same_folder(b->response[b->n - 1].sample.file, line->file);
  if (*next) return GL_OK;
  if (scan_whole(piece[AREAL_LENGTH], &length) != NULL || length > TOKEN_LOG_MOST_LINE)
    return token_refuse(line, piece[AREAL_LENGTH].text, err, "seqlen must be a number of tokens");
  if (scan_whole(piece[AREAL_PROMPT], &prompt) != NULL || prompt > length)
    return token_refuse(line, piece[AREAL_PROMPT].text, err,
                        "prompt_len must be a number of tokens, at most seqlen");
  b->has[TOKEN_VERSION] = b->has_rewards = b->has_keys = true;
  b->grouping = TOKEN_GROUPS_GIVEN;
  uint64_t key = 0;
  status = areal_key(b, &key, line, piece, err);
  if (status != GL_OK) return status;
  token_response *r = token_builder_add(b);
  r->sample = (token_sample){.file = line->file, .line = line->number, .n_prompt = (size_t)prompt};
  r->key = key;
  status = token_read_finite(line, "reward", piece[AREAL_REWARD], &r->reward, err);
  if (status == GL_OK) status = read_versions(b, line, piece[AREAL_RLE], length, err);
  if (status == GL_OK && r->tokens + r->sample.n_prompt <= length)
    r->sample.n_masked = (size_t)length - r->tokens - r->sample.n_prompt;
  return status;
}

const token_format token_format_areal = {.name = "areal",
                                         .title = "AReaL's <version>/<task_id>.jsonl",
                                         .writer = "AReaL 2.0",
                                         .marks = marks,
                                         .least = 2,
                                         .evaluation = "/eval-rollout/",
                                         .read = areal_read};
