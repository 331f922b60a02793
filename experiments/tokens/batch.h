/* Builds a token_batch from responses that a format's reader adds one after the other. Private to
 * this folder. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_BATCH_H
#define GEPOLAB_EXPERIMENTS_TOKENS_BATCH_H

#include "core/base/error.h"
#include "experiments/tokens/group_file.h"
#include "experiments/tokens/token_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers that a log may have for each trained token. */
typedef enum token_column {
  TOKEN_LOGP,
  TOKEN_LOGQ,
  TOKEN_ENTROPY,
  TOKEN_VERSION,
  TOKEN_COLUMNS
} token_column;

typedef struct token_response {
  uint64_t key; /* equal for the responses of a group */
  double reward, advantage;
  token_sample sample;
  size_t first, tokens; /* range of its trained tokens in the columns; tokens 0: not trained */
  size_t untrained; /* if the response is not trained: number of tokens that training would use; 0:
                       unknown */
} token_response;

typedef struct token_builder {
  const token_request *request; /* borrowed */
  /* Set by the reader with the first response of a batch. */
  bool has[TOKEN_COLUMNS], has_rewards, has_advantages;
  bool has_keys;           /* responses have keys */
  token_grouping grouping; /* how the log identifies groups */
  double step, learner_version;
  /* Set by the reader at any response. */
  bool advantages_vary;
  uint64_t index, rank; /* sample index and rank, in the log, of the last response read; readers use
                           them to detect missing lines */
  bool is_cut;          /* the file ends within a line: the last group may be incomplete */
  char unread[256];     /* keys of the log so far that are not read, separated by ", " */
  /* Responses so far. */
  token_response *response;
  size_t n, n_tokens, response_room, column_room[TOKEN_COLUMNS];
  double *column[TOKEN_COLUMNS];
  unsigned char *mask; /* [mask_room] loss mask of the current response; workspace of readers */
  size_t mask_room;
  double *space; /* [space_room] workspace for numbers */
  size_t space_room;
  /* For the format gepolab, whose record is the whole batch. */
  group_record record;
  bool has_record;
  /* Results of the last token_builder_finish(). */
  token_batch batch;
  void *memory[8]; /* arrays that batch.input points to; owned, NULL beyond the last */
} token_builder;

void token_builder_init(token_builder *b, const token_request *request);
void token_builder_fini(token_builder *b);
/* Starts the next batch: releases the last one, keeps the workspace and the list of unread keys. */
void token_builder_clear(token_builder *b);
bool token_builder_is_empty(const token_builder *b);

/* Adds a response with zeroed fields. */
token_response *token_builder_add(token_builder *b);
/* Makes room for n more tokens in each column that the log has (b->has). token_builder_keep()
 * counts them. */
void token_builder_reserve(token_builder *b, size_t n);
/* Returns the address for the next tokens of the column. */
double *token_builder_column(token_builder *b, token_column c);
/* Says that the n tokens just written to the columns belong to the last response. */
void token_builder_keep(token_builder *b, size_t n);
/* Call if the file ends within a line: the last group of the batch may be incomplete if it is from
 * this file. */
void token_builder_cut(token_builder *b, const char *file);

/* Arranges the responses by group in b->batch. Responses without trained tokens are left out and
 * counted; a batch may have none left. Errors: GL_EINPUT if the groups cannot be found, with the
 * remedy. */
gl_status token_builder_finish(token_builder *b, gl_error *err);

#endif
