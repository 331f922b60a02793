/* Readers of token-level logs: NeMo-RL, prime-rl, AReaL, and gepolab itself. */
#include "core/base/hash.h"
#include "experiments/tokens/formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- NeMo-RL --- */

/* NeMo-RL's train_data_step{N}.jsonl, a line for each sample of an optimiser step. Written by
 * nemo_rl/algorithms/grpo.py (lines 3630 and 5250), grpo_sync.py (1235) and ppo.py (2900) through
 * log_batched_dict_as_jsonl() of nemo_rl/utils/logger.py (1071) at commit 7ea279a, unless
 * env.should_log_nemo_gym_responses is set. Each value is a batch of one, [x], except idx. Lists of
 * tokens include the prompt and are padded to the longest sample.
 *
 * Groups: responses with the same prompt, anywhere in the step, which is NeMo-RL's own rule
 * (calculate_baseline_and_std_per_prompt, nemo_rl/algorithms/utils.py:104). The version of the
 * weights that sampled is not in the file. */

static const char *const nemo_rl_marks[] = {"generation_logprobs", "prev_logprobs",
                                            "token_loss_mask", "sample_loss_mask", NULL};

typedef enum nemo_field {
  NEMO_IDX,
  NEMO_REWARDS,
  NEMO_FILTERED,
  NEMO_LENGTHS,
  NEMO_TOKENS,
  NEMO_MASK,
  NEMO_SAMPLE_MASK,
  NEMO_ADVANTAGES,
  NEMO_LOGQ,
  NEMO_LOGP,
  NEMO_CONTENT,
  NEMO_AGENT,
  NEMO_FIELDS
} nemo_field;
static const token_field nemo_rl_fields[NEMO_FIELDS] = {
    [NEMO_IDX] = {"idx", true},
    [NEMO_REWARDS] = {"rewards", true},
    [NEMO_FILTERED] = {"filtered_rewards", false},
    [NEMO_LENGTHS] = {"input_lengths", true},
    [NEMO_TOKENS] = {"token_ids", false},
    [NEMO_MASK] = {"token_loss_mask", true},
    [NEMO_SAMPLE_MASK] = {"sample_loss_mask", true},
    [NEMO_ADVANTAGES] = {"advantages", true},
    [NEMO_LOGQ] = {"generation_logprobs", true},
    [NEMO_LOGP] = {"prev_logprobs", true},
    [NEMO_CONTENT] = {"content", false},
    [NEMO_AGENT] = {"agent_ref", false}};

/* The number N in a file name train_data_stepN; NaN: the file has another name. */
static double step_of_name(const char *file) {
  static const char stem[] = "train_data_step";
  const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
  if (strncmp(name, stem, sizeof stem - 1) != 0) return NAN;
  const char *digits = name + sizeof stem - 1;
  const size_t n = strspn(digits, "0123456789");
  return n > 0 && n < 16 ? strtod(digits, NULL) : NAN;
}

/* Checks that this sample follows the last one, by its index within the step. *next: the line
 * begins another batch. */
static gl_status follow_index(token_builder *b, const token_line *line, scan_piece idx, bool *next,
                              gl_error *err) {
  uint64_t index = 0;
  if (scan_integer(idx, &index) != NULL)
    return token_refuse(line, idx.text, err, "idx must be a whole number");
  *next = !token_builder_is_empty(b) && index == 0;
  if (*next) return GL_OK;
  const uint64_t expected = token_builder_is_empty(b) ? 0 : b->index + 1;
  if (index != expected)
    return token_refuse(
        line, idx.text, err,
        "idx is %.0f where %.0f is expected: lines of this step are missing, or two "
        "steps are mixed",
        (double)index, (double)expected);
  b->index = index;
  return GL_OK;
}

static gl_status unwrap(const token_line *line, scan_piece *piece, gl_error *err) {
  for (int f = 0; f < NEMO_FIELDS; ++f)
    if (piece[f].text != NULL && f != NEMO_IDX && f != NEMO_CONTENT && f != NEMO_AGENT &&
        !scan_unwrap(&piece[f]))
      return token_refuse(line, piece[f].text, err, "%s must be a list of one element, [x]",
                          nemo_rl_fields[f].name);
  return GL_OK;
}

static void begin_nemo_step(token_builder *b, const token_line *line, bool has_prompts) {
  b->has[TOKEN_LOGP] = b->has[TOKEN_LOGQ] = true;
  b->has_rewards = b->has_advantages = true;
  b->has_keys = has_prompts;
  b->grouping = TOKEN_GROUPS_PROMPT;
  b->step = step_of_name(line->file);
}

/* Whether a line has a generated sample that is not in the batch. With dynamic sampling `rewards`
 * are those of all generated samples and filtered_rewards those of the batch; beyond the batch the
 * lists of filtered_rewards are empty. */
static bool is_beyond_batch(const scan_piece *piece) {
  const scan_piece *p = &piece[NEMO_FILTERED];
  return p->text != NULL && p->size == 2 && memcmp(p->text, "[]", 2) == 0;
}

static gl_status read_sample(token_builder *b, const token_line *line, const scan_piece *piece,
                             gl_error *err) {
  token_response *r = token_builder_add(b);
  double kept = NAN, length = NAN;
  const scan_piece reward = piece[piece[NEMO_FILTERED].text != NULL ? NEMO_FILTERED : NEMO_REWARDS];
  r->sample = (token_sample){.file = line->file, .line = line->number};
  gl_status status = token_read_finite(line, "rewards", reward, &r->reward, err);
  if (status == GL_OK)
    status = token_read_finite(line, "sample_loss_mask", piece[NEMO_SAMPLE_MASK], &kept, err);
  if (status == GL_OK)
    status = token_read_finite(line, "input_lengths", piece[NEMO_LENGTHS], &length, err);
  if (status == GL_OK && kept != 0 && kept != 1)
    return token_refuse(line, piece[NEMO_SAMPLE_MASK].text, err,
                        "sample_loss_mask is %g; only 0 and 1 are supported, because algorithms "
                        "do not weight responses",
                        kept);
  token_tokens t = {.mask_name = "token_loss_mask", .length = length};
  if (status == GL_OK) status = token_read_mask(b, &t, line, piece[NEMO_MASK], err);
  if (status == GL_OK && piece[NEMO_TOKENS].text != NULL)
    status = token_read_prompt(b, &t, line, "token_ids", piece[NEMO_TOKENS], err);
  r->untrained = kept == 0 ? t.n : 0;
  if (status != GL_OK || kept == 0 || t.n == 0) return status;
  token_builder_reserve(b, t.n);
  status = token_read_logs(b, &t, line, "prev_logprobs", piece[NEMO_LOGP], TOKEN_LOGP, err);
  if (status == GL_OK)
    status = token_read_logs(b, &t, line, "generation_logprobs", piece[NEMO_LOGQ], TOKEN_LOGQ, err);
  if (status == GL_OK) status = token_read_advantages(b, &t, line, piece[NEMO_ADVANTAGES], err);
  if (status == GL_OK) token_builder_keep(b, t.n);
  return status;
}

static gl_status nemo_read(token_builder *b, const token_line *line, bool *next, gl_error *err) {
  scan_piece piece[NEMO_FIELDS];
  gl_status status =
      token_find_fields(b, &token_format_nemo_rl, line, nemo_rl_fields, piece, NEMO_FIELDS, err);
  if (status == GL_OK) status = follow_index(b, line, piece[NEMO_IDX], next, err);
  if (status != GL_OK || *next || is_beyond_batch(piece)) return status;
  if (token_builder_is_empty(b)) begin_nemo_step(b, line, piece[NEMO_TOKENS].text != NULL);
  if (b->has_keys != (piece[NEMO_TOKENS].text != NULL))
    return token_refuse(line, line->text, err, "token_ids %s, which the lines before %s",
                        b->has_keys ? "is missing" : "is given", b->has_keys ? "have" : "lack");
  status = unwrap(line, piece, err);
  return status == GL_OK ? read_sample(b, line, piece, err) : status;
}

/* NeMo-RL writes zeros for log-probabilities that it did not compute. */
static gl_status nemo_check(const token_builder *b, gl_error *err) {
  static const struct {
    token_column column;
    const char *what;
  } placeholders[] = {
      {TOKEN_LOGP, "prev_logprobs are all 0: NeMo-RL does not compute them with "
                   "loss_fn.force_on_policy_ratio: true; set it to false to log them"},
      {TOKEN_LOGQ, "generation_logprobs are all 0: the generation backend of this run did not "
                   "return log-probabilities"}};
  for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders && b->n_tokens > 0; ++i) {
    const double *value = b->column[placeholders[i].column];
    size_t t = 0;
    while (t < b->n_tokens && value[t] == 0) ++t;
    if (t == b->n_tokens)
      return gl_fail(err, GL_EINPUT, "%s: %s", b->response[0].sample.file, placeholders[i].what);
  }
  return GL_OK;
}

const token_format token_format_nemo_rl = {.name = "nemo_rl",
                                           .title = "NeMo-RL's train_data_step*.jsonl",
                                           .writer = "NeMo-RL 0.6",
                                           .marks = nemo_rl_marks,
                                           .least = 2,
                                           .drops = true,
                                           .read = nemo_read,
                                           .check = nemo_check};

/* --- prime-rl --- */

/* prime-rl's token_exports/step_N/rank_R.jsonl, a line for each sequence, written with
 * trainer.enable_token_export by src/prime_rl/trainer/rl/token_export.py (schema_version 1) at
 * commit 559b447. The file has advantages and no rewards, and neither groups nor versions of the
 * sampler; step N trains version N - 1 (train.py:271 and 575). A log-probability is at the index of
 * its own token (shift_tensor_right, train.py:446).
 *
 * Groups: sequences of a step with the same prompt tokens, on all ranks. */

static const char *const prime_rl_marks[] = {"inference_logprobs", "trainer_logprobs",
                                             "schema_version", "export_sequence_idx", NULL};

typedef enum prime_field {
  PRIME_SCHEMA,
  PRIME_STEP,
  PRIME_RANK,
  PRIME_INDEX,
  PRIME_TOKENS,
  PRIME_MASK,
  PRIME_ADVANTAGES,
  PRIME_LOGQ,
  PRIME_LOGP,
  PRIME_ENTROPY,
  PRIME_RL_WEIGHTS,
  PRIME_READ, /* the fields from here on are known and not read */
  PRIME_FIELDS = PRIME_READ + 13
} prime_field;
static const token_field prime_rl_fields[PRIME_FIELDS] = {
    [PRIME_SCHEMA] = {"schema_version", true},
    [PRIME_STEP] = {"step", true},
    [PRIME_RANK] = {"rank", true},
    [PRIME_INDEX] = {"export_sequence_idx", true},
    [PRIME_TOKENS] = {"token_ids", true},
    [PRIME_MASK] = {"loss_mask", true},
    [PRIME_ADVANTAGES] = {"advantages", true},
    [PRIME_LOGQ] = {"inference_logprobs", true},
    [PRIME_LOGP] = {"trainer_logprobs", true},
    [PRIME_ENTROPY] = {"entropy", true},
    [PRIME_RL_WEIGHTS] = {"rl_weights", false},
    [PRIME_READ] = {"position_ids", false},
    {"micro_step", false},
    {"micro_sequence_idx", false},
    {"env_name", false},
    {"mismatch_kl", false},
    {"log_importance_ratio", false},
    {"importance_ratio", false},
    {"prob_delta", false},
    {"is_masked", false},
    {"is_masked_high", false},
    {"is_masked_low", false},
    {"ce_weights", false},
    {"ref_kl_weights", false}};

static gl_status prime_integer(const token_line *line, const scan_piece *piece, prime_field f,
                               uint64_t *out, gl_error *err) {
  if (scan_integer(piece[f], out) == NULL) return GL_OK;
  return token_refuse(line, piece[f].text, err, "%s must be a whole number",
                      prime_rl_fields[f].name);
}

/* Checks that this sequence is the next one of its step and rank. *next: the line begins another
 * batch. */
static gl_status follow_sequence(token_builder *b, const token_line *line, const scan_piece *piece,
                                 bool *next, gl_error *err) {
  uint64_t schema = 0, step = 0, rank = 0, index = 0;
  gl_status status = prime_integer(line, piece, PRIME_SCHEMA, &schema, err);
  if (status == GL_OK && schema != 1)
    return token_refuse(line, piece[PRIME_SCHEMA].text, err,
                        "schema_version is %.0f; this reader knows 1, of prime-rl 0.8",
                        (double)schema);
  if (status == GL_OK) status = prime_integer(line, piece, PRIME_STEP, &step, err);
  if (status == GL_OK) status = prime_integer(line, piece, PRIME_RANK, &rank, err);
  if (status == GL_OK) status = prime_integer(line, piece, PRIME_INDEX, &index, err);
  if (status != GL_OK) return status;
  const bool is_first = token_builder_is_empty(b), same_rank = !is_first && b->rank == rank;
  *next = !is_first && b->step != (double)step;
  if (*next) return GL_OK;
  const uint64_t expected = same_rank ? b->index + 1 : 0;
  if (index != expected)
    return token_refuse(line, piece[PRIME_INDEX].text, err,
                        "export_sequence_idx is %.0f where %.0f is expected for rank %.0f: lines "
                        "are missing, or two runs are mixed",
                        (double)index, (double)expected, (double)rank);
  b->step = (double)step;
  b->learner_version = (double)step - 1;
  b->rank = rank;
  b->index = index;
  return GL_OK;
}

static void begin_step(token_builder *b) {
  b->has[TOKEN_LOGP] = b->has[TOKEN_LOGQ] = b->has[TOKEN_ENTROPY] = true;
  b->has_advantages = b->has_keys = true;
  b->grouping = TOKEN_GROUPS_PROMPT;
}

/* Masks tokens by rl_weights, which are null if all tokens of the loss mask have the weight 1.
 * Tokens with weight 0 belong to another loss (cross-entropy on tokens of another model). */
static gl_status apply_weights(token_builder *b, token_tokens *t, const token_line *line,
                               scan_piece weights, gl_error *err) {
  double value = NAN;
  if (weights.text == NULL || (scan_constant(weights, &value) && isnan(value))) return GL_OK;
  double *weight = token_workspace(b, t->n);
  gl_status status = token_read_numbers(b, t, line, "rl_weights", weights, weight, err);
  for (size_t i = 0, k = 0; i < t->n_list && status == GL_OK; ++i) {
    if (b->mask[i] == 0) continue;
    if (weight[k] != 0 && weight[k] != 1)
      return token_refuse(line, weights.text, err,
                          "rl_weights has %g; only 0 and 1 are supported, because algorithms do "
                          "not weight tokens",
                          weight[k]);
    b->mask[i] = weight[k++] == 1;
  }
  token_count(b, t);
  return status;
}

static gl_status read_sequence(token_builder *b, const token_line *line, const scan_piece *piece,
                               gl_error *err) {
  token_response *r = token_builder_add(b);
  token_tokens t = {.mask_name = "loss_mask", .length = NAN};
  r->sample = (token_sample){.file = line->file, .line = line->number};
  gl_status status = token_read_mask(b, &t, line, piece[PRIME_MASK], err);
  if (status == GL_OK)
    status = token_read_prompt(b, &t, line, "token_ids", piece[PRIME_TOKENS], err);
  if (status == GL_OK) status = apply_weights(b, &t, line, piece[PRIME_RL_WEIGHTS], err);
  if (status != GL_OK || t.n == 0) return status;
  token_builder_reserve(b, t.n);
  status = token_read_logs(b, &t, line, "trainer_logprobs", piece[PRIME_LOGP], TOKEN_LOGP, err);
  if (status == GL_OK)
    status = token_read_logs(b, &t, line, "inference_logprobs", piece[PRIME_LOGQ], TOKEN_LOGQ, err);
  if (status == GL_OK)
    status = token_read_numbers(b, &t, line, "entropy", piece[PRIME_ENTROPY],
                                token_builder_column(b, TOKEN_ENTROPY), err);
  if (status == GL_OK) status = token_read_advantages(b, &t, line, piece[PRIME_ADVANTAGES], err);
  if (status == GL_OK) token_builder_keep(b, t.n);
  return status;
}

static gl_status prime_read(token_builder *b, const token_line *line, bool *next, gl_error *err) {
  scan_piece piece[PRIME_FIELDS];
  gl_status status =
      token_find_fields(b, &token_format_prime_rl, line, prime_rl_fields, piece, PRIME_FIELDS, err);
  const bool is_first = token_builder_is_empty(b);
  if (status == GL_OK) status = follow_sequence(b, line, piece, next, err);
  if (status != GL_OK || *next) return status;
  if (is_first) begin_step(b);
  return read_sequence(b, line, piece, err);
}

const token_format token_format_prime_rl = {.name = "prime_rl",
                                            .title = "prime-rl's token_exports/",
                                            .writer = "prime-rl 0.8",
                                            .marks = prime_rl_marks,
                                            .least = 2,
                                            .read = prime_read};

/* --- AReaL --- */

/* AReaL's <version>/<task_id>.jsonl, a line for each trajectory of a task, written by
 * _dump_trajectory() of areal/infra/workflow_executor.py (line 917) of AReaL 2.0.0 at commit
 * cbff54d. It has rewards, lengths and the version of every trained token, and no
 * log-probabilities. The learner's version is unknown: the folder is named after the newest version
 * that took part in the generation of the task. A task that is generated again, after a restart, is
 * appended to the same file (line 1000), and is another group. */

static const char *const areal_marks[] = {"version_rle", "head_version", "tail_version", "seqlen",
                                          NULL};

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
static const token_field areal_fields[AREAL_FIELDS] = {[AREAL_TASK] = {"task_id", true},
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

/* Whether two files are in one folder. The tasks of one folder are a batch. */
static bool same_folder(const char *a, const char *b) {
  const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
  if (x == NULL || y == NULL) return x == y;
  return x - a == y - b && memcmp(a, b, (size_t)(x - a)) == 0;
}

/* Reads an element [version, tokens] of version_rle; false if it is not such a pair. */
static bool read_version_run(scan_piece run, double *version, uint64_t *tokens) {
  scan_piece first, second, none;
  if (!scan_element(&run, &first) || !scan_element(&run, &second) || scan_element(&run, &none))
    return false;
  return scan_number(first, version) == NULL && *version >= 0 && *version <= 9007199254740992.0 &&
         scan_integer(second, tokens) == NULL && *tokens > 0;
}

/* Reads the versions of the trained tokens, in the order of tokens. */
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

/* Key of a group: hash of the task and of how often the file begins it again. */
static gl_status areal_key(token_builder *b, uint64_t *key, const token_line *line,
                           const scan_piece *piece, gl_error *err) {
  uint64_t sample = 0;
  const token_response *last = b->n > 0 ? &b->response[b->n - 1] : NULL;
  if (scan_integer(piece[AREAL_SAMPLE], &sample) != NULL)
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
      token_find_fields(b, &token_format_areal, line, areal_fields, piece, AREAL_FIELDS, err);
  if (status != GL_OK) return status;
  *next = b->n > 0 && !same_folder(b->response[b->n - 1].sample.file, line->file);
  if (*next) return GL_OK;
  if (scan_integer(piece[AREAL_LENGTH], &length) != NULL || length > TOKEN_LOG_MOST_LINE)
    return token_refuse(line, piece[AREAL_LENGTH].text, err, "seqlen must be a number of tokens");
  if (scan_integer(piece[AREAL_PROMPT], &prompt) != NULL || prompt > length)
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
                                         .marks = areal_marks,
                                         .least = 2,
                                         .evaluation = "/eval-rollout/",
                                         .read = areal_read};

/* --- gepolab --- */

/* gepolab's own format: a line of JSON for each update, as log_groups of the Python package writes
 * it (experiments/DATA.md, "The log of a run"). */

static const char *const gepolab_marks[] = {"groups", "logp", "logq", NULL};

static gl_status read_record(token_builder *b, const token_line *line, bool *next, gl_error *err) {
  *next = !token_builder_is_empty(b);
  if (*next) return GL_OK;
  if (b->request->group_size > 0)
    return token_refuse(line, line->text, err,
                        "this log has groups (format gepolab); leave --group-size out");
  gl_status status =
      group_record_read_text(&b->record, line->text, line->size, line->file, line->number, err);
  b->has_record = status == GL_OK;
  return status;
}

const token_format token_format_gepolab = {.name = "gepolab",
                                           .title = "log_groups of gepolab's Python package",
                                           .writer = "gepolab",
                                           .marks = gepolab_marks,
                                           .least = 1,
                                           .read = read_record};
