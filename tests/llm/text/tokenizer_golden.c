/* Byte-level BPE against Hugging Face's library: tests/golden/tokenizer.py says how its strings are
 * made and what the library gave for them. */
#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "core/random/rng.h"
#include "tests/support/json.h"
#include "tests/support/llm_tokenizer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: tokenizer golden cases");

static const char cases_path[] = "tests/golden/tokenizer_cases.json";

/* --- pieces under variants of the tokenizer --- */

static int same_tokens(const cJSON *expected, const int32_t *token, size_t n) {
  size_t i = 0;
  const cJSON *number;
  cJSON_ArrayForEach(number, expected) {
    if (i == n || token[i] != (int32_t)number->valuedouble) return 0;
    ++i;
  }
  return i == n;
}

static void check_pieces(const tokenizer *t, const cJSON *pieces, const cJSON *variant) {
  const cJSON *tokens = member_at(variant, "tokens")->child, *piece;
  cJSON_ArrayForEach(piece, pieces) {
    gl_error err = {0};
    int32_t *token;
    size_t n;
    CU_ASSERT_FATAL(tokenizer_encode(t, piece->valuestring, strlen(piece->valuestring), &token, &n,
                                     &err) == GL_OK);
    int same = same_tokens(tokens, token, n);
    if (!same)
      fprintf(stderr, "\"%s\": \"%s\" has other tokens than the library's\n",
              text_at(variant, "name"), piece->valuestring);
    CU_ASSERT(same);
    free(token);
    tokens = tokens->next;
  }
}

/* ["a", "b"] becomes "a b", as files had it before the library's version 0.20. */
static void join_merges(cJSON *document) {
  cJSON *model = cJSON_GetObjectItem(document, "model"), *joined = cJSON_CreateArray(), *merge;
  cJSON_ArrayForEach(merge, member_at(model, "merges")) {
    char text[256];
    snprintf(text, sizeof text, "%s %s", merge->child->valuestring,
             merge->child->next->valuestring);
    cJSON_AddItemToArray(joined, cJSON_CreateString(text));
  }
  cJSON_ReplaceItemInObject(model, "merges", joined);
}

static void check_variant(const cJSON *pieces, const cJSON *variant, int joined) {
  cJSON *document = json_load("tests/golden/tokenizer.json");
  const cJSON *change;
  gl_error err = {0};
  tokenizer *t;
  cJSON_ArrayForEach(change, member_at(variant, "changes"))
      json_set(document, change->string, cJSON_Duplicate(change, 1));
  if (joined) join_merges(document);
  if (parse_document(&t, document, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  check_pieces(t, pieces, variant);
  tokenizer_free(t);
  cJSON_Delete(document);
}

TEST(pieces_have_the_library_s_tokens_under_every_variant) {
  cJSON *cases = json_load(cases_path);
  const cJSON *pieces = member_at(cases, "pieces"), *variant;
  int n = 0;
  cJSON_ArrayForEach(variant, member_at(cases, "variants")) {
    check_variant(pieces, variant, 0);
    check_variant(pieces, variant, 1);
    ++n;
  }
  CU_ASSERT(n == 6 && cJSON_GetArraySize(pieces) > 200);
  cJSON_Delete(cases);
}

/* --- the strings --- */

enum { KINDS = 16, PIECE_KINDS = 6, MOST_PARTS = 12, LONGEST_PART = 64, STRAY = 8 };
enum { TEXT_ROOM = MOST_PARTS * LONGEST_PART };

/* Code points a run draws from. */
typedef struct code_set {
  const cJSON *ranges;
  uint32_t weight, longest, total;
} code_set;

typedef struct golden {
  cJSON *cases;
  const char **piece;
  uint32_t n_pieces, n_sets;
  uint64_t seed;
  code_set set[8];
} golden;

static uint32_t range_size(const cJSON *range) {
  return (uint32_t)(range->child->next->valuedouble - range->child->valuedouble) + 1;
}

static golden load_golden(void) {
  golden g = {.cases = json_load(cases_path)};
  const cJSON *pieces = member_at(g.cases, "pieces"), *item, *range;
  g.seed = (uint64_t)number_at(g.cases, "seed");
  g.piece = calloc((size_t)cJSON_GetArraySize(pieces), sizeof *g.piece);
  CU_ASSERT_PTR_NOT_NULL_FATAL(g.piece);
  cJSON_ArrayForEach(item, pieces) {
    CU_ASSERT_FATAL(strlen(item->valuestring) <= LONGEST_PART);
    g.piece[g.n_pieces++] = item->valuestring;
  }
  cJSON_ArrayForEach(item, member_at(g.cases, "sets")) {
    code_set *s = &g.set[g.n_sets++];
    s->weight = (uint32_t)number_at(item, "weight");
    s->longest = (uint32_t)number_at(item, "longest");
    CU_ASSERT_FATAL(s->longest * UTF8_LONGEST <= LONGEST_PART);
    s->ranges = member_at(item, "ranges");
    cJSON_ArrayForEach(range, s->ranges) s->total += range_size(range);
  }
  return g;
}

static uint32_t pick(const code_set *s, uint32_t word) {
  const cJSON *range;
  word %= s->total;
  cJSON_ArrayForEach(range, s->ranges) {
    if (word < range_size(range)) return (uint32_t)range->child->valuedouble + word;
    word -= range_size(range);
  }
  return 0;
}

static size_t write_part(const golden *g, rng_stream stream, uint64_t part, char *to) {
  const rng_words w = rng_block(stream, part << 8);
  uint32_t kind = w.v[0] % KINDS;
  size_t size = 0;
  if (kind < PIECE_KINDS) {
    const char *piece = g->piece[w.v[1] % g->n_pieces];
    memcpy(to, piece, strlen(piece));
    return strlen(piece);
  }
  kind -= PIECE_KINDS;
  const code_set *s = g->set;
  for (; kind >= s->weight; ++s) kind -= s->weight;
  for (uint32_t j = 0; j < 1 + w.v[2] % s->longest; ++j)
    size += utf8_write(pick(s, rng_block(stream, part << 8 | (j + 1)).v[0]), to + size);
  return size;
}

/* 1 to 12 parts: a piece (6 times of 16) or a run of characters of one set. */
static size_t write_text(const golden *g, rng_stream stream, char *to) {
  const uint32_t parts = 1 + rng_block(stream, 0).v[0] % MOST_PARTS;
  size_t size = 0;
  for (uint64_t part = 1; part <= parts; ++part) size += write_part(g, stream, part, to + size);
  return size;
}

static uint64_t hash_tokens(const int32_t *token, size_t n) {
  uint64_t hash = HASH_64_START;
  for (size_t i = 0; i < n; ++i) {
    const unsigned char bytes[4] = {(unsigned char)token[i], (unsigned char)(token[i] >> 8),
                                    (unsigned char)(token[i] >> 16),
                                    (unsigned char)(token[i] >> 24)};
    hash = hash_64(hash, bytes, sizeof bytes);
  }
  return hash;
}

/* Goes on from *hash with the text of token[n]. Returns 0 if there is none, or it is not UTF-8. */
static int hash_decoded(uint64_t *hash, const tokenizer *t, const int32_t *token, size_t n,
                        int skip) {
  gl_error err = {0};
  char *text;
  size_t size;
  if (tokenizer_decode(t, token, n, skip, &text, &size, &err) != GL_OK) return 0;
  *hash = hash_64(*hash, text, size);
  const int valid = utf8_valid_prefix(text, size) == size;
  free(text);
  return valid;
}

/* 8 hexadecimal digits of string i, 16 of its tokens, 8 of what they and stray tokens decode to; ""
 * if something failed. Makes no assertion, because threads call it. */
static void describe(const golden *g, const tokenizer *t, uint64_t i, char line[33]) {
  char text[TEXT_ROOM];
  const rng_stream stream = rng_stream_at(g->seed, RNG_TEST, i);
  const size_t size = write_text(g, stream, text);
  int32_t *token, stray[STRAY];
  size_t n;
  gl_error err = {0};
  line[0] = '\0';
  if (tokenizer_encode(t, text, size, &token, &n, &err) != GL_OK) return;
  for (uint64_t k = 0; k < STRAY; ++k)
    stray[k] = (int32_t)(rng_block(stream, 1 + k / 4).v[k % 4] % tokenizer_size(t));
  uint64_t decoded = HASH_64_START;
  if (hash_decoded(&decoded, t, token, n, 0) && hash_decoded(&decoded, t, token, n, 1) &&
      hash_decoded(&decoded, t, stray, STRAY, 0))
    snprintf(line, 33, "%08x%016llx%08x", (unsigned)hash_64(HASH_64_START, text, size),
             (unsigned long long)hash_tokens(token, n), (unsigned)decoded);
  free(token);
}

TEST(ten_thousand_strings_have_the_library_s_tokens_and_texts) {
  golden g = load_golden();
  tokenizer *t = golden_tokenizer();
  uint64_t i = 0, wrong = 0;
  const cJSON *expected;
  cJSON_ArrayForEach(expected, member_at(g.cases, "cases")) {
    char line[33];
    describe(&g, t, i, line);
    if (strcmp(line, expected->valuestring) != 0 && ++wrong <= 5)
      fprintf(stderr, "string %u gives %s, not %s: see tests/golden/tokenizer.py --show %u\n",
              (unsigned)i, line, expected->valuestring, (unsigned)i);
    ++i;
  }
  CU_ASSERT(i == 10000 && wrong == 0);
  tokenizer_free(t);
  free(g.piece);
  cJSON_Delete(g.cases);
}

/* --- threads --- */

typedef struct worker {
  const golden *g;
  const tokenizer *t;
  uint64_t first;
  size_t wrong;
} worker;

static void *describe_some(void *argument) {
  worker *w = argument;
  const cJSON *cases = member_at(w->g->cases, "cases");
  for (uint64_t i = w->first; i < w->first + 300; ++i) {
    char line[33];
    describe(w->g, w->t, i, line);
    w->wrong += strcmp(line, cJSON_GetArrayItem(cases, (int)i)->valuestring) != 0;
  }
  return NULL;
}

TEST(threads_share_a_tokenizer) {
  enum { THREADS = 4 };
  golden g = load_golden();
  tokenizer *t = golden_tokenizer();
  worker w[THREADS];
  pthread_t thread[THREADS];
  for (size_t i = 0; i < THREADS; ++i) {
    w[i] = (worker){&g, t, 100 * i, 0};
    CU_ASSERT_FATAL(pthread_create(&thread[i], NULL, describe_some, &w[i]) == 0);
  }
  for (size_t i = 0; i < THREADS; ++i) {
    pthread_join(thread[i], NULL);
    CU_ASSERT(w[i].wrong == 0);
  }
  tokenizer_free(t);
  free(g.piece);
  cJSON_Delete(g.cases);
}
