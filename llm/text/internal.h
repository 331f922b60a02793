/* Shared by the files of the tokenizer. Immutable after it is made, except where a function says
 * that it builds. */
#ifndef GEPOLAB_LLM_TEXT_INTERNAL_H
#define GEPOLAB_LLM_TEXT_INTERNAL_H

#include "core/base/hash.h"
#include "llm/text/tokenizer.h"

#include <stdbool.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* --- tokens --- */

enum {
  ENTRY_HERE = 1,    /* the number is in use */
  ENTRY_ADDED = 2,   /* recognised as a whole in the text, before anything else */
  ENTRY_SPECIAL = 4, /* decoding may leave it out */
  ENTRY_BYTES = 8    /* of the vocabulary, and made of byte letters: merges can reach it */
};

/* The meaning of a token number. */
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

/* --- steps of byte-level BPE --- */

/* Normalisation form C of valid UTF-8: malloc'd into *out, or NULL where text[size] is known to be
 * in that form already; *n is its size either way. */
gl_status nfc_text(const char *text, size_t size, char **out, size_t *n, gl_error *err);

/* A splitting rule; see tokenizer_split.c for the patterns it takes. */
typedef struct split_rule {
  pcre2_code *code;
} split_rule;

/* GL_EINPUT for a pattern that is not supported, in words that lack file and place. After a failure
 * nothing needs releasing. */
gl_status split_rule_init(split_rule *r, const char *pattern, gl_error *err);
void split_rule_fini(split_rule *r);

/* Memory of matching; each thread has its own. */
typedef struct split_match {
  pcre2_match_data *found;
  pcre2_match_context *limits;
} split_match;

/* For texts of up to `size` bytes. One match may take a number of steps that is linear in size: a
 * sound rule needs a few per byte, and one that backtracks exponentially is stopped. After a
 * failure nothing needs releasing. */
gl_status split_match_init(split_match *m, size_t size, gl_error *err);
void split_match_fini(split_match *m);
typedef struct split_place {
  size_t start, end; /* SIZE_MAX both: no match */
} split_place;

/* The first match in text[size] (valid UTF-8) that starts at `from` or later. GL_EINPUT if the rule
 * takes too many steps. */
gl_status split_rule_find(const split_rule *r, const split_match *m, const char *text, size_t size,
                          size_t from, split_place *out, gl_error *err);

/* Texts looked for before anything else; sorted by bytes. */
typedef struct added_set {
  struct added_text {
    char *text; /* owned */
    size_t size;
    int32_t token;
  } * at;
  size_t n;
  unsigned char starts[256]; /* 1 for the first bytes of texts */
} added_set;

/* While building: sorts the texts and marks their first bytes. Returns the token of a text that is
 * there twice, or -1. */
int32_t added_set_sort(added_set *s);
void added_set_fini(added_set *s);

/* Memory of merging; each thread has its own. Grows as it is used. */
typedef struct merge_work {
  struct merge_symbol *symbol; /* [symbols] */
  uint64_t *heap;              /* [queue] */
  size_t symbols, queue;
} merge_work;

void merge_work_fini(merge_work *w);
/* Appends the tokens of one piece. */
gl_status merge_piece(const tokenizer *t, merge_work *w, const char *piece, size_t size,
                      token_list *out, gl_error *err);
/* Appends the tokens of text[size], valid UTF-8. */
gl_status encode_bpe(const tokenizer *t, const char *text, size_t size, token_list *out,
                     gl_error *err);

/* --- the tokenizer --- */

typedef enum tokenizer_type { TOKENIZER_CHAR, TOKENIZER_BYTE, TOKENIZER_BPE } tokenizer_type;

/* Bytes that are encoded as one token. An added token's entry may have others: its content. */
typedef struct token_bytes {
  const char *bytes; /* borrowed from the tokenizer's content */
  uint32_t size;
  int32_t token;
} token_bytes;

struct tokenizer {
  tokenizer_type type;
  size_t size;        /* one more than the largest number */
  token_entry *entry; /* [size] */
  char *content;      /* the bytes of all entries */
  int32_t *added;     /* [n_added] numbers of the added tokens */
  size_t n_added;
  /* char: every character. bpe: every token that its own bytes are encoded as; most pieces of a
   * text are such a token and need no merging. */
  hash_table by_bytes;       /* to indices of piece */
  struct token_bytes *piece; /* [n_pieces] */
  size_t n_pieces;
  uint64_t seed; /* of the tables: keeps a crafted file from choosing keys that collide */
  /* bpe only */
  bool nfc, splits; /* whether text is normalised; whether there is a rule */
  split_rule rule;
  added_set raw, normal; /* looked for before and after normalisation */
  hash_table merges;     /* pairs of neighbours to the token that replaces them and its rank */
  int32_t byte_token[256];
};

/* --- look-up --- */

/* Makes room for n tokens in by_bytes, or for n merges. */
gl_status tokenizer_reserve_bytes(tokenizer *t, size_t n, gl_error *err);
gl_status tokenizer_reserve_merges(tokenizer *t, size_t n, gl_error *err);
/* While building: adds a token by the bytes of its entry; false if another one has these. */
bool tokenizer_add_bytes(tokenizer *t, int32_t token);
/* The token with these bytes, or -1. */
int32_t tokenizer_find_bytes(const tokenizer *t, const char *bytes, size_t size);
/* While building: sets the merge of two neighbours; one that is set twice keeps the last. */
void tokenizer_set_merge(tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged);

#endif
