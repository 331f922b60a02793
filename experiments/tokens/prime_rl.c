/* prime-rl's token_exports/step_N/rank_R.jsonl, a line for each sequence, written with
 * trainer.enable_token_export by src/prime_rl/trainer/rl/token_export.py (schema_version 1) at
 * commit 559b447. The file has advantages and no rewards, and neither groups nor versions of the
 * sampler; step N trains version N - 1 (train.py:271 and 575). Log-probabilities stand at the token
 * that they are of (shift_tensor_right, train.py:446).
 *
 * Groups: sequences of a step with the same prompt tokens, on all ranks. */
#include "experiments/tokens/formats.h"

#include <math.h>
#include <string.h>

static const char *const marks[] = {"inference_logprobs", "trainer_logprobs", "schema_version",
                                    "export_sequence_idx", NULL};

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
static const token_field fields[PRIME_FIELDS] = {[PRIME_SCHEMA] = {"schema_version", true},
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

static gl_status prime_whole(const token_line *line, const scan_piece *piece, prime_field f,
                             uint64_t *out, gl_error *err) {
  if (scan_whole(piece[f], out) == NULL) return GL_OK;
  return token_refuse(line, piece[f].text, err, "%s must be a whole number", fields[f].name);
}

/* Whether this sequence is the next one of its step and rank. */
static gl_status follow_sequence(token_builder *b, const token_line *line, const scan_piece *piece,
                                 bool *next, gl_error *err) {
  uint64_t schema = 0, step = 0, rank = 0, index = 0;
  gl_status status = prime_whole(line, piece, PRIME_SCHEMA, &schema, err);
  if (status == GL_OK && schema != 1)
    return token_refuse(line, piece[PRIME_SCHEMA].text, err,
                        "schema_version is %.0f; this reader knows 1, of prime-rl 0.8",
                        (double)schema);
  if (status == GL_OK) status = prime_whole(line, piece, PRIME_STEP, &step, err);
  if (status == GL_OK) status = prime_whole(line, piece, PRIME_RANK, &rank, err);
  if (status == GL_OK) status = prime_whole(line, piece, PRIME_INDEX, &index, err);
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

/* rl_weights are null where all tokens of the loss mask have the weight 1. Tokens with weight 0
 * belong to another loss (cross-entropy on tokens of another model). */
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
      token_find_fields(b, &token_format_prime_rl, line, fields, piece, PRIME_FIELDS, err);
  const bool is_first = token_builder_is_empty(b);
  if (status == GL_OK) status = follow_sequence(b, line, piece, next, err);
  if (status != GL_OK || *next) return status;
  if (is_first) begin_step(b);
  return read_sequence(b, line, piece, err);
}

const token_format token_format_prime_rl = {.name = "prime_rl",
                                            .title = "prime-rl's token_exports/",
                                            .writer = "prime-rl 0.8",
                                            .marks = marks,
                                            .least = 2,
                                            .read = prime_read};
