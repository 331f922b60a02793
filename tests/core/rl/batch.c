/* Batches survive a round trip, and no damaged one is taken; Philox gives its published words. */
#include "core/rl/batch.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: batches");

/* A small batch with every array filled, as bytes. The caller frees. */
static char *small_batch_bytes(size_t *size) {
  const size_t lengths[4] = {1, 2, 0, 3};
  batch b;
  char *bytes = NULL;
  CU_ASSERT_EQUAL_FATAL(batch_init(&b, 7, 2, 2, lengths, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(batch_reserve_dists(&b, 2, true, NULL), GL_OK);
  for (size_t t = 0; t < b.n_tokens; ++t) b.logq[t] = -0.25 * (double)t, b.token[t] = (int32_t)t;
  b.dist[1] = 5;
  FILE *to = open_memstream(&bytes, size);
  CU_ASSERT_EQUAL(batch_write(&b, to, NULL), GL_OK);
  fclose(to);
  batch_fini(&b);
  return bytes;
}

static gl_status read_bytes(batch *b, char *bytes, size_t size) {
  FILE *from = fmemopen(bytes, size, "rb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  gl_status status = batch_read(b, from, NULL);
  fclose(from);
  return status;
}

TEST(a_batch_reads_back_as_it_was_written) {
  size_t size;
  char *bytes = small_batch_bytes(&size);
  batch b;
  CU_ASSERT_EQUAL_FATAL(read_bytes(&b, bytes, size), GL_OK);
  CU_ASSERT(b.id == 7 && b.n_groups == 2 && b.n_responses == 4 && b.n_tokens == 6);
  CU_ASSERT(b.cache_bytes == 3 * sizeof(double) && b.n_dist == 0);
  CU_ASSERT(batch_assign_optional(&b, 0, 2, NULL) == GL_OK && b.cache_bytes == 0);
  CU_ASSERT(b.n_dist == 2 && b.own_dists);
  CU_ASSERT(batch_is_consistent(&b) && b.logq[5] == -1.25 && b.token[5] == 5 && b.dist[1] == 5);
  batch_fini(&b);
  free(bytes);
}

/* Sets of three words and a cache of two doubles, which the file has behind one another. */
TEST(sets_and_a_cache_are_told_apart_by_the_words_of_a_set) {
  const size_t lengths[2] = {2, 1};
  batch b, again;
  char *bytes = NULL;
  size_t size;
  CU_ASSERT_EQUAL_FATAL(batch_init(&b, 7, 1, 2, lengths, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(batch_reserve_kept(&b, 3, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(batch_reserve_cache(&b, 16, NULL), GL_OK);
  for (uint32_t w = 0; w < 9; ++w) b.kept[w] = w + 1;
  for (unsigned char i = 0; i < 16; ++i) b.cache[i] = (unsigned char)(i + 100);
  FILE *to = open_memstream(&bytes, &size);
  CU_ASSERT_EQUAL(batch_write(&b, to, NULL), GL_OK);
  fclose(to);
  for (size_t words = 0; words < 8; ++words) {
    CU_ASSERT_EQUAL_FATAL(read_bytes(&again, bytes, size), GL_OK);
    CU_ASSERT_EQUAL_FATAL(batch_assign_optional(&again, words, 0, NULL), GL_OK);
    if (words == 3)
      CU_ASSERT(again.kept_words == 3 && again.cache_bytes == 16 &&
                memcmp(again.kept, b.kept, 9 * sizeof *b.kept) == 0 &&
                memcmp(again.cache, b.cache, 16) == 0);
    /* the file has room for no sets of more words */
    if (words > 4) CU_ASSERT(again.kept_words == 0 && again.cache_bytes == 64);
    batch_fini(&again);
  }
  batch_fini(&b);
  free(bytes);
}

/* Responses of a batch with room for three tokens each are cut in place. */
TEST(a_cut_batch_has_what_it_had_of_each_response) {
  const size_t room[3] = {3, 3, 3}, lengths[3] = {2, 3, 1};
  static const int32_t left[6] = {0, 1, 3, 4, 5, 6};
  batch b;
  CU_ASSERT_EQUAL_FATAL(batch_init(&b, 7, 1, 3, room, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(batch_reserve_kept(&b, 2, NULL), GL_OK);
  for (int32_t k = 0; k < 9; ++k) {
    b.token[k] = k, b.version[k] = 10 + k, b.logq[k] = -k, b.logq_trunc[k] = -2 * k;
    b.kept[2 * k] = (uint32_t)k, b.kept[2 * k + 1] = (uint32_t)k + 100;
  }
  batch_cut(&b, lengths);
  CU_ASSERT(batch_is_consistent(&b) && b.n_tokens == 6);
  CU_ASSERT(b.token_start[1] == 2 && b.token_start[2] == 5 && b.token_start[3] == 6);
  for (size_t k = 0; k < 6; ++k) {
    const int32_t was = left[k];
    CU_ASSERT(b.token[k] == was && b.version[k] == 10 + was && b.logq[k] == -was &&
              b.logq_trunc[k] == -2 * was && b.kept[2 * k] == (uint32_t)was &&
              b.kept[2 * k + 1] == (uint32_t)was + 100);
  }
  batch_fini(&b);
}

TEST(every_flipped_byte_and_every_cut_is_refused) {
  size_t size;
  char *bytes = small_batch_bytes(&size);
  for (size_t i = 0; i < size; ++i) {
    batch b;
    bytes[i] = (char)(bytes[i] ^ 0x41);
    CU_ASSERT_EQUAL(read_bytes(&b, bytes, size), GL_EINPUT);
    CU_ASSERT(b.n_tokens == 0 && b.logq == NULL);
    bytes[i] = (char)(bytes[i] ^ 0x41);
    if (i != 0) CU_ASSERT_EQUAL(read_bytes(&b, bytes, i), GL_EINPUT);
  }
  free(bytes);
}

/* The three vectors published with Random123 (kat_vectors, philox4x32-10). */
TEST(philox_gives_its_published_words) {
  static const uint32_t kat[3][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int k = 0; k < 3; ++k) {
    const uint32_t *w = kat[k];
    rng_stream s = {(uint64_t)w[5] << 32 | w[4], (uint64_t)w[2] << 32 | w[1], w[3] >> 16};
    rng_words out = rng_block(s, (uint64_t)(w[3] & 0xffff) << 32 | w[0]);
    CU_ASSERT_EQUAL(memcmp(out.v, w + 6, sizeof out.v), 0);
  }
}

TEST(the_gsl_generator_gives_the_inline_words_in_order) {
  rng_stream s = rng_stream_at(5, RNG_TEST, 9);
  gsl_rng *r = rng_gsl_new(s);
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t i = 0; i < 40; ++i) CU_ASSERT_EQUAL(gsl_rng_get(r), rng_block(s, i / 4).v[i % 4]);
  rng_gsl_seek(r, s, 3);
  CU_ASSERT_EQUAL(gsl_rng_get(r), rng_block(s, 3).v[0]);
  for (int i = 0; i < 10000; ++i) {
    double u = gsl_rng_uniform(r);
    CU_ASSERT(u >= 0 && u < 1);
  }
  gsl_rng_free(r);
}

TEST(weights_multiply_the_coefficients_of_their_responses) {
  const size_t start[] = {0, 2, 2, 5};
  const double weight[] = {0.5, 7, 1};
  double c[] = {1, -3, 5, -0.1, 0};
  batch_weigh(weight, start, 3, c);
  const double expected[] = {0.5, -1.5, 5, -0.1, 0};
  for (size_t k = 0; k < 5; ++k) CU_ASSERT_EQUAL(c[k], expected[k]);
}

TEST(a_batch_is_as_old_as_its_oldest_token) {
  batch b;
  const size_t lengths[] = {2, 3};
  ASSERT_OK(batch_init(&b, 1, 1, 2, lengths, &err));
  const int64_t version[] = {7, 7, 5, 6, 9};
  memcpy(b.version, version, sizeof version);
  CU_ASSERT_EQUAL(b.loss_weight, 1);
  CU_ASSERT_EQUAL(batch_oldest_version(&b), 5);
  batch_fini(&b);
  CU_ASSERT_EQUAL(batch_oldest_version(&b), INT64_MAX);
}
