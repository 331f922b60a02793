/* What the files of the tokenizer share. Immutable after it is made, except where a function says
 * that it builds. */
#ifndef GEPOLAB_LLM_TOKENIZER_INTERNAL_H
#define GEPOLAB_LLM_TOKENIZER_INTERNAL_H

#include "llm/tokenizer.h"

/* --- tokens --------------------------------------------------------------------------------------
 */

enum {
  ENTRY_HERE = 1,    /* the number is in use */
  ENTRY_ADDED = 2,   /* recognised as a whole in the text, before anything else */
  ENTRY_SPECIAL = 4, /* decoding may leave it out */
  ENTRY_WHOLE = 8    /* a piece of text that reads so becomes this one token */
};

/* What a token number stands for. */
typedef struct token_entry {
  const char *bytes; /* borrowed from the tokenizer's content */
  uint32_t size;
  uint32_t flags;
} token_entry;

/* A growing list of token numbers; owned by whoever holds it. */
typedef struct token_list {
  int32_t *at;
  size_t n, room;
} token_list;

gl_status token_list_push(token_list *list, int32_t token, gl_error *err);

/* --- look-up -------------------------------------------------------------------------------------
 */

/* From bytes to a token number: open addressing, at most half full. Keys are borrowed. The seed
 * keeps a crafted file from choosing keys that collide. */
typedef struct token_table {
  struct token_slot {
    const char *key; /* NULL: empty */
    uint32_t size;
    int32_t token;
  } * slot;
  size_t mask; /* slots less one */
  uint64_t seed;
} token_table;

gl_status token_table_init(token_table *t, size_t n, uint64_t seed, gl_error *err);
void token_table_fini(token_table *t);
/* Builds: adds one of the n keys promised. Returns 0 if the key is there already. */
int token_table_add(token_table *t, const char *key, size_t size, int32_t token);
/* The token of key[size], or -1. */
int32_t token_table_find(const token_table *t, const char *key, size_t size);

/* --- the tokenizer -------------------------------------------------------------------------------
 */

typedef enum tokenizer_type { TOKENIZER_CHAR, TOKENIZER_BYTE, TOKENIZER_BPE } tokenizer_type;

struct tokenizer {
  tokenizer_type type;
  size_t size;        /* one more than the largest number */
  token_entry *entry; /* [size] */
  char *content;      /* the bytes of all entries */
  int32_t *added;     /* [n_added] numbers of the added tokens */
  size_t n_added;
  token_table by_bytes; /* char: every character; bpe: every token of the vocabulary */
};

#endif
