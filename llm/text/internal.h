/* Shared by the files of the tokenizer. Objects are immutable after they are made, except in
 * functions marked "while building". */
#ifndef GEPOLAB_LLM_TEXT_INTERNAL_H
#define GEPOLAB_LLM_TEXT_INTERNAL_H

#include "core/base/hash.h"
#include "llm/text/tokenizer.h"

#include <stdbool.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* --- tokens --- */

enum {
  ENTRY_HERE = 1,    /* the tokenizer has a token of this number */
  ENTRY_ADDED = 2,   /* matched as a whole in the text, before anything else */
  ENTRY_SPECIAL = 4, /* decoding may omit it */
  ENTRY_BYTES = 8    /* in the vocabulary and written in byte letters, so merges can produce it */
};

/* The meaning of a token number. */
typedef struct token_entry {
  const char *bytes; /* borrowed from the tokenizer's content */
  uint32_t size;
  uint32_t flags;
} token_entry;

/* A growing list of token numbers. */
typedef struct token_list {
  int32_t *at;
  size_t n, room;
} token_list;

/* --- steps of byte-level BPE --- */

/* Converts valid UTF-8 to normalisation form C: malloc'd into *out, or NULL if text[size] is known
 * to be in that form. *n is the size in both cases. */
gl_status nfc_text(const char *text, size_t size, char **out, size_t *n, gl_error *err);

/* A splitting rule; tokenizer_split.c describes the supported patterns. */
typedef struct split_rule {
  pcre2_code *code;
} split_rule;

/* Translates and compiles the pattern of a tokenizer.json. Errors: GL_EINPUT (unsupported pattern;
 * the message lacks file and position). After an error nothing needs releasing. */
gl_status split_rule_init(split_rule *r, const char *pattern, gl_error *err);
void split_rule_fini(split_rule *r);

/* Workspace of matching, one per thread. */
typedef struct split_match {
  pcre2_match_data *found;
  pcre2_match_context *limits;
} split_match;

/* Makes the workspace for texts of up to `size` bytes. The number of steps of one match is limited
 * to a linear function of size: a reasonable rule needs a few per byte, and one that backtracks
 * exponentially is stopped. After an error nothing needs releasing. */
gl_status split_match_init(split_match *m, size_t size, gl_error *err);
void split_match_fini(split_match *m);
typedef struct split_place {
  size_t start, end; /* both SIZE_MAX: no match */
} split_place;

/* Finds the first match in text[size] (valid UTF-8) that starts at `from` or later. Errors:
 * GL_EINPUT (the rule takes too many steps). */
gl_status split_rule_find(const split_rule *r, const split_match *m, const char *text, size_t size,
                          size_t from, split_place *out, gl_error *err);

/* Texts to search for before anything else; sorted by bytes. */
typedef struct added_set {
  struct added_text {
    char *text; /* owned */
    size_t size;
    int32_t token;
  } * at;
  size_t n;
  unsigned char starts[256]; /* 1 for the first bytes of the texts */
} added_set;

/* While building: sorts the texts and marks their first bytes. Returns the token of a duplicate
 * text, or -1. */
int32_t added_set_sort(added_set *s);

/* Workspace of merging, one per thread; grows as needed. */
typedef struct merge_work {
  struct merge_symbol *symbol; /* [symbols] linked list of the piece's tokens */
  uint64_t *heap;              /* [queue] possible merges by (rank, position) */
  size_t symbols, queue;
} merge_work;

void merge_work_fini(merge_work *w);
/* Appends the tokens of one piece. */
gl_status merge_piece(const tokenizer *t, merge_work *w, const char *piece, size_t size,
                      token_list *out, gl_error *err);

/* --- the tokenizer --- */

typedef enum tokenizer_type { TOKENIZER_CHAR, TOKENIZER_BYTE, TOKENIZER_BPE } tokenizer_type;

/* Bytes that are encoded as one token. An added token's entry may have different bytes: its
 * content. */
typedef struct token_bytes {
  const char *bytes; /* borrowed from the tokenizer's content */
  uint32_t size;
  int32_t token;
} token_bytes;

struct tokenizer {
  tokenizer_type type;
  size_t size;        /* largest token number plus one */
  token_entry *entry; /* [size] the meaning of each token number */
  char *content;      /* the bytes of all entries */
  int32_t *added;     /* [n_added] numbers of the added tokens */
  size_t n_added;
  /* char: all characters. bpe: every token that is the result of encoding its own bytes. Most
   * pieces of a text are such a token, so they need no merging. */
  hash_table by_bytes;       /* from bytes to indices of piece */
  struct token_bytes *piece; /* [n_pieces] tokens that by_bytes finds */
  size_t n_pieces;
  uint64_t seed; /* seed of the hash tables; prevents a crafted file from causing collisions */
  /* Used for bpe only: */
  bool nfc, splits; /* whether text is normalised; whether there is a splitting rule */
  split_rule rule;
  added_set raw, normal; /* searched before and after normalisation */
  hash_table merges;     /* adjacent pairs to the token that replaces them and its rank */
  int32_t byte_token[256];
};

/* --- look-up --- */

/* Reserve space for n tokens in by_bytes, or for n merges. */
gl_status tokenizer_reserve_bytes(tokenizer *t, size_t n, gl_error *err);
gl_status tokenizer_reserve_merges(tokenizer *t, size_t n, gl_error *err);
/* While building: adds a token under the bytes of its entry; false if another token has the same.
 */
bool tokenizer_add_bytes(tokenizer *t, int32_t token);
/* While building: sets the merge of two adjacent tokens; a later call for the same pair replaces
 * it. */
void tokenizer_set_merge(tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged);

#endif
