/* NeMo-RL's train_data_step{N}.jsonl, a line for each sample of an optimiser step. Written by
 * nemo_rl/algorithms/grpo.py (lines 3630 and 5250), grpo_sync.py (1235) and ppo.py (2900) through
 * log_batched_dict_as_jsonl() of nemo_rl/utils/logger.py (1071) at commit 7ea279a, unless
 * env.should_log_nemo_gym_responses is set. Each value is a batch of one, [x], except idx. Lists of
 * tokens include the prompt and are padded to the longest sample.
 *
 * Groups: responses with the same prompt, anywhere in the step, which is NeMo-RL's own rule
 * (calculate_baseline_and_std_per_prompt, nemo_rl/algorithms/utils.py:104). The version of the
 * weights that sampled is not in the file. */
#include "experiments/tokens/formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const marks[] = {"generation_logprobs", "prev_logprobs", "token_loss_mask",
                                    "sample_loss_mask", NULL};

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
static const token_field fields[NEMO_FIELDS] = {[NEMO_IDX] = {"idx", true},
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

/* N of train_data_stepN; NaN: the file has another name. */
static double step_of_name(const char *file) {
  static const char stem[] = "train_data_step";
  const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
  if (strncmp(name, stem, sizeof stem - 1) != 0) return NAN;
  const char *digits = name + sizeof stem - 1;
  const size_t n = strspn(digits, "0123456789");
  return n > 0 && n < 16 ? strtod(digits, NULL) : NAN;
}

/* Whether this sample is the next one of the batch; lines are numbered within a step. */
static gl_status follow_index(token_builder *b, const token_line *line, scan_piece idx, bool *next,
                              gl_error *err) {
  uint64_t index = 0;
  if (scan_whole(idx, &index) != NULL)
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
                          fields[f].name);
  return GL_OK;
}

static void begin_nemo_step(token_builder *b, const token_line *line, bool has_prompts) {
  b->has[TOKEN_LOGP] = b->has[TOKEN_LOGQ] = true;
  b->has_rewards = b->has_advantages = true;
  b->has_keys = has_prompts;
  b->grouping = TOKEN_GROUPS_PROMPT;
  b->step = step_of_name(line->file);
}

/* With dynamic sampling `rewards` are those of all generated samples, and filtered_rewards belong
 * to the samples of the batch; if there are fewer of them, their lists are empty in the last lines.
 */
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
      token_find_fields(b, &token_format_nemo_rl, line, fields, piece, NEMO_FIELDS, err);
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
                                           .marks = marks,
                                           .least = 2,
                                           .drops = true,
                                           .read = nemo_read,
                                           .check = nemo_check};
