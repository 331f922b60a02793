/* The emulated tensor cores, and the operands that kernels load for them, against a second
 * statement of their layouts (tests/golden/fragments.py). */
#include "emulate_control.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: emulated fragments");

/* A row and a column of each element that a lane holds. */
typedef struct places {
  int at[32][8][2];
} places;

/* The golden places called `name`, n elements a lane. */
static places golden(const char *name, int n) {
  places p;
  char line[256], word[32];
  int lanes = 0;
  FILE *f = fopen("tests/golden/fragments.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  while (fgets(line, sizeof line, f) != NULL) {
    int lane, used, here;
    if (sscanf(line, "%31s %d%n", word, &lane, &used) != 2 || strcmp(word, name) != 0) continue;
    for (int i = 0; i < n; ++i, used += here)
      CU_ASSERT_EQUAL_FATAL(
          sscanf(line + used, " %d,%d%n", &p.at[lane][i][0], &p.at[lane][i][1], &here), 2);
    ++lanes;
  }
  fclose(f);
  CU_ASSERT_EQUAL_FATAL(lanes, 32);
  return p;
}

static uint16_t half(int x) { /* a small integer as bfloat16 */
  const float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return (uint16_t)(u >> 16);
}
/* Element i of registers with two numbers each. */
static uint16_t element(const uint32_t *r, int i) {
  return (uint16_t)(r[i / 2] >> (i % 2 * 16));
}
static void set_element(uint32_t *r, int i, uint16_t x) {
  r[i / 2] |= (uint32_t)x << (i % 2 * 16);
}

TEST(a_product_is_the_matrices) {
  const places a = golden("a", 8), b = golden("b", 4), c = golden("c", 4);
  emulate_fragments *f = calloc(1, sizeof *f);
  int A[16][16], B[16][8];
  for (int i = 0; i < 256; ++i) A[i / 16][i % 16] = (i * 7 + i / 16 * 3) % 23 - 11;
  for (int i = 0; i < 128; ++i) B[i / 8][i % 8] = (i * 5 + i / 8 * 2) % 19 - 9;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i)
      set_element(f->a[lane], i, half(A[a.at[lane][i][0]][a.at[lane][i][1]]));
    for (int i = 0; i < 4; ++i) {
      set_element(f->b[lane], i, half(B[b.at[lane][i][0]][b.at[lane][i][1]]));
      f->c[lane][i] = (float)(1000 * c.at[lane][i][0] + c.at[lane][i][1]);
    }
  }
  emulate_run_fragments(f);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = c.at[lane][i][0], column = c.at[lane][i][1];
      int sum = 1000 * row + column;
      for (int k = 0; k < 16; ++k) sum += A[row][k] * B[k][column];
      CU_ASSERT_EQUAL(f->c[lane][i], (float)sum);
    }
  free(f);
}

/* The operands of every place of a tile; its numbers are all different. */
TEST(loaded_operands_are_parts_of_the_tile) {
  const places a = golden("a", 8), b = golden("b", 4), m = golden("ldmatrix", 2);
  const places t = golden("transposed", 2);
  emulate_fragments *f = calloc(1, sizeof *f);
  int wrong = 0;
  for (int i = 0; i < 64 * 64; ++i) f->tile[i / 64][i % 64] = (uint16_t)(i * 3 + 1);
  for (unsigned at = 0; at < 4 * 4; ++at) {
    const int r = (int)(f->row = at / 4 * 16), k = (int)(f->column = at % 4 * 16);
    emulate_run_fragments(f);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 8; ++i) { /* two Bs follow one another in four registers */
        const int *ca = a.at[lane][i], *cb = b.at[lane][i % 4], next = i / 4 * 8;
        wrong += element(f->as_a[lane], i) != f->tile[r + ca[0]][k + ca[1]];
        wrong += element(f->as_columns[lane], i) != f->tile[r + next + cb[1]][k + cb[0]];
        wrong += element(f->as_rows[lane], i) != f->tile[r + cb[0]][k + next + cb[1]];
      }
      for (int i = 0; k < 48 && i < 8; ++i) { /* four matrices side by side */
        const int *cm = m.at[lane][i % 2], *ct = t.at[lane][i % 2], matrix = i / 2 * 8;
        wrong += element(f->matrices[lane], i) != f->tile[r + cm[0]][k + matrix + cm[1]];
        wrong += element(f->transposed[lane], i) != f->tile[r + ct[0]][k + matrix + ct[1]];
      }
    }
  }
  CU_ASSERT_EQUAL(wrong, 0);
  free(f);
}

/* Positions of vectors, and the descriptors that hand them to a warpgroup's products. */
TEST(tiles_and_descriptors_are_as_wgmma_reads_them) {
  emulate_fragments *g = calloc(1, sizeof *g);
  char line[256], word[32];
  int rows = 0, descriptors = 0;
  emulate_run_fragments(g);
  FILE *f = fopen("tests/golden/fragments.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  while (fgets(line, sizeof line, f) != NULL) {
    unsigned row, panel;
    unsigned long long number;
    int used, here;
    CU_ASSERT_EQUAL_FATAL(sscanf(line, "%31s %u%n", word, &row, &used), 2);
    for (int v = 0; strcmp(word, "swizzled") == 0 && v < 8; ++v, used += here) {
      unsigned offset;
      CU_ASSERT_EQUAL_FATAL(sscanf(line + used, " %u%n", &offset, &here), 1);
      CU_ASSERT_EQUAL(g->offset[row][v], offset);
      ++rows;
    }
    if (strcmp(word, "descriptor") == 0 && sscanf(line + used, " %u %llu", &panel, &number) == 2) {
      CU_ASSERT_EQUAL(emulate_descriptor(row, panel), number);
      ++descriptors;
    }
  }
  fclose(f);
  CU_ASSERT(rows == 64 * 8 && descriptors == 5);
  free(g);
}
