/* Token-level logs: the batches that a trainer trained on, with rewards or advantages and the
 * log-probabilities of their tokens. One interface for every format of TOKEN_FORMATS (formats.h).
 *
 *   token_log *log = NULL;
 *   const token_batch *batch = NULL;
 *   gl_status status = token_log_open(&log, paths, n, &request, err);
 *   while (status == GL_OK && (status = token_log_next(log, &batch, err)) == GL_OK && batch)
 *     use(batch);
 *   if (status == GL_OK) report(token_log_about(log));
 *   token_log_close(log);
 *
 * One batch is in memory at a time: about 40 bytes for each trained token of the largest batch, and
 * the longest line. The number of batches, lines and files does not matter. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_TOKEN_LOG_H
#define GEPOLAB_EXPERIMENTS_TOKENS_TOKEN_LOG_H

#include "core/base/error.h"
#include "core/policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

/* Maximum bytes of a line of a log. */
#define TOKEN_LOG_MOST_LINE ((size_t)1 << 28)

/* How the log says which responses belong to one prompt. */
typedef enum token_grouping {
  TOKEN_GROUPS_GIVEN,   /* the log has groups, or an identifier of them */
  TOKEN_GROUPS_PROMPT,  /* found by this reader: responses of a batch with the same prompt tokens */
  TOKEN_GROUPS_OF_SIZE, /* given by --group-size: groups are that many consecutive responses */
} token_grouping;

/* Position of a response in the log, and its numbers of untrained tokens. */
typedef struct token_sample {
  const char *file; /* name for messages; valid until the log is closed */
  size_t line;      /* line number in the file, from 1 */
  size_t n_prompt;  /* tokens before the first trained one; 0 where the log does not have them */
  size_t n_masked;  /* tokens after the first trained one that are not trained, such as the results
                       of tools; padding does not count */
} token_sample;

/* One optimiser step's batch. Arrays are in the order of `input`: n_responses, n_tokens. Only
 * trained tokens (loss mask 1) are in it. All pointers are valid until the next call of
 * token_log_next(). */
typedef struct token_batch {
  /* What policy_evaluate() takes. Differences to its description:
   * - logp and logq are NULL if has_logs is false: the log has no log-probabilities.
   * - reward: NaN for every response if has_rewards is false; then `advantage` is set.
   * - advantage: only set if has_rewards is false: the advantages that the trainer used.
   * - version_gap: NULL if the log does not say which version sampled the tokens, or which version
   *   the learner had. */
  policy_input input;
  double step;   /* the trainer's number of this optimiser step; NaN: not in the log */
  double time_s; /* seconds since the start of the run; NaN: not in the log */
  bool has_logs, has_rewards;
  token_grouping grouping;
  const token_sample *sample; /* [n_responses]; NULL: the format has no line for each response */
  /* [n_responses] the trainer's own advantage: the mean over the response's trained tokens. NULL:
   * not in the log. */
  const double *trainer_advantage;
  bool advantages_vary; /* some response has tokens with different advantages */
  /* [n_tokens] version of the weights that sampled the token, as the trainer counts; NULL: unknown.
   * version_gap is learner_version less this where both are known. */
  const double *version;
  /* The lines of the log that the batch was read from, blank ones not counted. The names live as
   * long as the log. */
  const char *first_file, *last_file;
  size_t first_line, last_line, n_lines;
  double learner_version;  /* before this step, counted like `version`; NaN: unknown */
  size_t n_untrained;      /* responses without trained tokens, which are not in the batch */
  double untrained_tokens; /* number of their tokens that training would use; NaN: unknown */
} token_batch;

typedef struct token_request {
  const char *format; /* name of the format of all files; NULL: detected from the content */
  size_t group_size;  /* responses of a group, which follow each other; 0: found in the log */
} token_request;

/* Summary of the data read so far, for reports. */
typedef struct token_log_summary {
  const char *format, *title; /* name for --format; title for people; NULL before the first file */
  size_t n_files, n_batches;
  size_t n_incomplete; /* files whose last line was cut off; that line is left out */
  size_t n_skipped;    /* files in the given folders that are no token-level logs */
  size_t n_untrained;  /* responses without trained tokens */
  bool drops; /* 1: the trainer dropped these; 0: it may have trained them with another loss */
  size_t n_restarts; /* batches with a smaller step than the one before: another run, or a restart
                      */
  double first_step, last_step, first_time, last_time; /* NaN: not in the log */
  size_t group_least, group_most; /* responses of the smallest and largest group */
  token_grouping grouping;        /* how the groups of the last batch were found */
  bool has_rewards;               /* the last batch has rewards */
  /* Fields of the log that are not read, separated by ", "; "": none. */
  char unread[256];
} token_log_summary;

typedef struct token_log token_log;

/* Opens files and folders (recursively, in the natural order of names: step_2 before step_10);
 * "-" is standard input. gzip and Zstandard are decompressed. The format is known by the keys of
 * the first line; files of a folder that have no known format are skipped. paths are borrowed.
 * Errors: GL_ENOMEM, GL_EIO (cannot be opened), GL_EINPUT (unknown format name). */
gl_status token_log_open(token_log **out, const char *const *paths, size_t n,
                         const token_request *request, gl_error *err);
/* The same for text[size] as the content of one file called `name`. Borrowed. */
gl_status token_log_open_text(token_log **out, const char *text, size_t size, const char *name,
                              const token_request *request, gl_error *err);
/* Reads the next batch; *batch is NULL after the last one. Errors: GL_ENOMEM, GL_EIO, GL_EINPUT
 * with file, line and remedy: damaged lines, a missing or renamed field (with the version of the
 * trainer that writes it), files of different formats, a file that several formats take, groups
 * that cannot be found, a log without any batch. */
gl_status token_log_next(token_log *log, const token_batch **batch, gl_error *err);
const token_log_summary *token_log_about(token_log *log);

enum { TOKEN_INCOMPLETE_SIZE = 80 };
/* "2 logs: last line incomplete, left out"; "" if there is none. */
void token_log_incomplete(char text[TOKEN_INCOMPLETE_SIZE], size_t n_incomplete);
/* Returns GL_EINPUT if --group-size is given (not 0) without a token-level log. path: the log that
 * is given. */
gl_status token_group_size_check(size_t group_size, bool has_log, const char *path, gl_error *err);
/* Errors: GL_EINPUT if algorithms cannot be evaluated on this batch of the log: it has no
 * log-probabilities, or only advantages that differ within a response. */
gl_status token_log_check(token_log *log, gl_error *err);
/* The i-th file of the given folders that was skipped so far; NULL past the last. Valid until the
 * log is closed. */
const char *token_log_skipped(const token_log *log, size_t i);
void token_log_close(token_log *log); /* NULL is allowed */

/* *is: the first line of the file, or of a file of the folder, has the keys of a format. Errors:
 * GL_ENOMEM, GL_EIO (cannot be read), GL_EINPUT (damaged compression, a line that is too long). */
gl_status token_log_recognises(bool *is, const char *path, gl_error *err);

/* Name of the format of a text, by its first line; NULL: none, or several. */
const char *token_format_of(const char *text, size_t size);

/* The table of formats: name for --format, and a title for people. */
size_t token_formats_count(void);
const char *token_format_name(size_t i);  /* "nemo_rl" */
const char *token_format_title(size_t i); /* "NeMo-RL 0.6: train_data_step*.jsonl" */

#endif
