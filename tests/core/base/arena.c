/* Arenas, growing arrays and the hash table. */
#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/hash.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- arena --- */

SUITE("core: arenas, arrays, hash tables");

static size_t differing(const unsigned char *p, size_t n, unsigned char from) {
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) count += p[i] != from;
  return count;
}

/* Sizes on both sides of what shares a block, and more of them than one block holds. */
TEST(an_arenas_memory_is_zeroed_aligned_and_apart) {
  enum { N = 400 };
  static unsigned char *piece[N];
  arena a = {0};
  size_t dirty = 0, unaligned = 0, overlapping = 0;
  for (size_t i = 0; i < N; ++i) {
    const size_t size = i * 7 % 1300;
    piece[i] = ARENA_ARRAY(&a, unsigned char, size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece[i]);
    dirty += differing(piece[i], size, 0);
    unaligned += (uintptr_t)piece[i] % _Alignof(max_align_t) != 0;
    memset(piece[i], (int)(i % 251 + 1), size);
  }
  for (size_t i = 0; i < N; ++i)
    overlapping += differing(piece[i], i * 7 % 1300, (unsigned char)(i % 251 + 1));
  CU_ASSERT(dirty == 0 && unaligned == 0 && overlapping == 0);
  CU_ASSERT_EQUAL(arena_check(&a, "pieces", NULL), GL_OK);
  arena_fini(&a);
  CU_ASSERT(a.blocks == NULL && a.left == 0);
}

TEST(an_arena_remembers_its_first_failure) {
  arena a = {0};
  gl_error err = {0};
  CU_ASSERT_PTR_NOT_NULL(ARENA_ARRAY(&a, double, 3));
  CU_ASSERT_PTR_NULL(ARENA_ARRAY(&a, double, SIZE_MAX / 4)); /* its bytes overflow */
  CU_ASSERT_PTR_NULL(ARENA_ARRAY(&a, double, 3));
  CU_ASSERT_PTR_NULL(arena_text(&a, "text"));
  CU_ASSERT_EQUAL(arena_check(&a, "numbers", &err), GL_ENOMEM);
  CU_ASSERT_STRING_EQUAL(err.text, "out of memory while allocating numbers");
  arena_fini(&a);
  CU_ASSERT_PTR_NULL(ARENA_GRID(&a, char, SIZE_MAX / 2, 3));
  arena_fini(&a);
  CU_ASSERT_PTR_NULL(ARENA_ARRAY(&a, char, SIZE_MAX)); /* with its header it overflows */
  arena_fini(&a);
  CU_ASSERT_PTR_NOT_NULL(ARENA_GRID(&a, double, 3, 5)); /* usable again */
  CU_ASSERT_EQUAL(arena_check(&a, "numbers", NULL), GL_OK);
  arena_fini(&a);
}

typedef struct owner {
  arena memory;
  char *name;
  double *value;
} owner;

TEST(a_struct_may_lie_in_the_arena_that_it_owns) {
  static const double given[] = {1.0, 2.0, 3.0};
  arena a = {0};
  owner *o = ARENA_ARRAY(&a, owner, 1);
  char *name = arena_text(&a, "a name");
  double *value = arena_copy(&a, given, 3, sizeof *given);
  CU_ASSERT_EQUAL_FATAL(arena_check(&a, "an owner", NULL), GL_OK);
  *o = (owner){a, name, value};
  CU_ASSERT_STRING_EQUAL(o->name, "a name");
  CU_ASSERT_EQUAL(memcmp(o->value, given, sizeof given), 0);
  CU_ASSERT_PTR_NULL(arena_text(&o->memory, NULL));
  CU_ASSERT_PTR_NULL(arena_copy(&o->memory, NULL, 3, 8));
  CU_ASSERT_EQUAL(arena_check(&o->memory, "", NULL), GL_OK); /* nothing to copy is no failure */
  arena_free_owner(&o->memory);
}

/* --- growing arrays --- */

TEST(arrays_grow_item_by_item_and_many_at_once) {
  struct {
    uint32_t *item;
    size_t n;
  } list = {0};
  size_t wrong = 0;
  for (uint32_t i = 0; i < 5000; ++i) {
    uint32_t *added = ARRAY_ADD(list.item, list.n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(added);
    wrong += *added != 0 || list.n != i + 1u;
    *added = i * i;
  }
  for (uint32_t i = 0; i < 5000; ++i) wrong += list.item[i] != i * i;
  CU_ASSERT_EQUAL(wrong, 0);
  free(list.item);

  char *text = NULL;
  size_t room = 0, times = 0;
  for (size_t n = 0; n < 100000; n += 10) {
    const size_t before = room;
    CU_ASSERT_FATAL(ARRAY_RESERVE(text, room, n + 10));
    times += room != before;
    memset(text + n, 'x', 10);
  }
  CU_ASSERT(room >= 100000 && times < 15);
  CU_ASSERT_FALSE(ARRAY_RESERVE(text, room, SIZE_MAX));
  CU_ASSERT(room >= 100000 && text[99999] == 'x'); /* as it was */
  size_t exact = room;
  CU_ASSERT(ARRAY_FIT(text, exact, room - 1) && exact == room);
  CU_ASSERT(ARRAY_FIT(text, exact, room + 1) && exact == room + 1 && text[99999] == 'x');
  free(text);
  size_t n = SIZE_MAX / 2 + 1;
  CU_ASSERT_PTR_NULL(array_add(&text, &n, 1));
}

/* --- the hash table --- */

static bool is_text(const void *texts, uint64_t i, const void *key) {
  return strcmp(((char(*)[16])texts)[i], key) == 0;
}

/* With hashes that are cut to three bits most keys share theirs with others. */
TEST(a_hash_table_finds_what_was_added_and_nothing_else) {
  enum { N = 700 };
  static char text[N][16];
  for (uint64_t mask = 7;; mask = UINT64_MAX) {
    hash_table t = {0};
    size_t wrong = 0;
    CU_ASSERT_PTR_NULL(hash_table_find(&t, 1, NULL, NULL, NULL));
    for (size_t i = 0; i < N; ++i) {
      snprintf(text[i], sizeof text[i], "key %zu", i * i);
      const uint64_t hash = hash_64_text(HASH_64_START, text[i]) & mask;
      wrong += hash_table_find(&t, hash, is_text, text, text[i]) != NULL;
      CU_ASSERT_FATAL(hash_table_add(&t, hash, i));
    }
    for (size_t i = 0; i < N; ++i) {
      char same[16];
      memcpy(same, text[i], sizeof same);
      const uint64_t hash = hash_64_text(HASH_64_START, same) & mask;
      const uint64_t *value = hash_table_find(&t, hash, is_text, text, same);
      wrong += value == NULL || *value != i;
    }
    CU_ASSERT(wrong == 0 && t.n == N);
    hash_table_fini(&t);
    if (mask == UINT64_MAX) break;
  }
}

TEST(numbers_are_keys_by_themselves) {
  hash_table t = {0};
  size_t wrong = 0;
  CU_ASSERT_FATAL(hash_table_reserve(&t, 3000));
  const hash_entry *before = t.entry;
  for (uint64_t i = 0; i < 3000; ++i) hash_table_add(&t, hash_mix(i << 32), 2 * i);
  CU_ASSERT_PTR_EQUAL(t.entry, before); /* room was there */
  for (uint64_t i = 0; i < 6000; ++i) {
    uint64_t *value = hash_table_find(&t, hash_mix(i << 32), NULL, NULL, NULL);
    wrong += i < 3000 ? value == NULL || *value != 2 * i : value != NULL;
    if (value != NULL) *value = i; /* may be replaced */
  }
  for (uint64_t i = 0; i < 3000; ++i)
    wrong += *hash_table_find(&t, hash_mix(i << 32), NULL, NULL, NULL) != i;
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT_FALSE(hash_table_reserve(&t, SIZE_MAX / 2));
  hash_table_fini(&t);
}
