/* The file of measured products (llm/backend/cuda/blas_plans.h): choices are found again and
 * never change, whoever writes first is right, and a file that is damaged or made for another
 * device is refused. */
#include "llm/backend/cuda/blas_plans.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("llm: cuda product choices");

static const char DEVICE[] = "a device, a library";

typedef struct place {
  char folder[64], path[96];
} place;

static void make(place *p) {
  snprintf(p->folder, sizeof p->folder, "/tmp/gepolab-products-XXXXXX");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(p->folder));
  snprintf(p->path, sizeof p->path, "%s/products", p->folder);
}

static void remove_all(const place *p) {
  unlink(p->path);
  rmdir(p->folder);
}

static product_choices *opened(const place *p) {
  product_choices *c = NULL;
  ASSERT_OK(product_choices_open(&c, p->path, DEVICE, &err));
  return c;
}

static product_choice choice(uint64_t m, uint64_t rank) {
  return (product_choice){.key = {m, 7, UINT64_MAX}, .rank = rank, .nanoseconds = 1000 + m};
}

/* Adds and returns the rank that holds. */
static uint64_t add(product_choices *c, uint64_t m, uint64_t rank) {
  const product_choice made = choice(m, rank);
  uint64_t holds = 99;
  ASSERT_OK(product_choices_add(c, &made, &holds, &err));
  return holds;
}

static uint64_t found(const product_choices *c, uint64_t m) {
  const product_choice asked = choice(m, 0), *there = product_choices_find(c, asked.key);
  if (there == NULL) return 99;
  CU_ASSERT_EQUAL(there->nanoseconds, 1000 + m);
  return there->rank;
}

TEST(choices_are_found_again) {
  place p;
  make(&p);
  product_choices *c = opened(&p);
  CU_ASSERT_EQUAL(found(c, 1), 99);
  for (uint64_t m = 0; m < 200; ++m) CU_ASSERT_EQUAL(add(c, m, m % 8), m % 8);
  CU_ASSERT_EQUAL(found(c, 13), 5);
  product_choices_free(c);
  c = opened(&p);
  for (uint64_t m = 0; m < 200; ++m) CU_ASSERT_EQUAL(found(c, m), m % 8);
  CU_ASSERT_EQUAL(found(c, 200), 99);
  product_choices_free(c);
  remove_all(&p);
}

TEST(whoever_writes_first_is_right) {
  place p;
  make(&p);
  product_choices *a = opened(&p), *b = opened(&p);
  CU_ASSERT_EQUAL(add(a, 1, 3), 3);
  CU_ASSERT_EQUAL(add(b, 2, 4), 4);
  CU_ASSERT_EQUAL(add(b, 1, 5), 3);
  CU_ASSERT_EQUAL(add(a, 2, 6), 4);
  CU_ASSERT(found(a, 1) == 3 && found(b, 1) == 3 && found(a, 2) == 4 && found(b, 2) == 4);
  product_choices_free(a);
  product_choices_free(b);
  remove_all(&p);
}

/* What a process leaves that is killed while it writes. */
TEST(half_a_line_is_replaced) {
  place p;
  make(&p);
  product_choices *c = opened(&p);
  add(c, 1, 3);
  add(c, 2, 4);
  product_choices_free(c);
  struct stat whole;
  CU_ASSERT_EQUAL_FATAL(stat(p.path, &whole), 0);
  for (off_t cut = 1; cut <= whole.st_size; ++cut) {
    CU_ASSERT_EQUAL_FATAL(truncate(p.path, whole.st_size - cut), 0);
    c = opened(&p);
    CU_ASSERT_EQUAL(add(c, 1, 3), 3);
    CU_ASSERT_EQUAL(add(c, 2, 4), 4);
    product_choices_free(c);
    c = opened(&p);
    CU_ASSERT(found(c, 1) == 3 && found(c, 2) == 4);
    product_choices_free(c);
    struct stat again;
    CU_ASSERT(stat(p.path, &again) == 0 && again.st_size == whole.st_size);
  }
  remove_all(&p);
}

static void refused(const place *p, const char *made_for, gl_status want, const char *word) {
  product_choices *c = NULL;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(product_choices_open(&c, p->path, made_for, &err), want);
  CU_ASSERT_PTR_NULL(c);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, p->path));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, word));
}

static void write_line(const place *p, const char *line) {
  FILE *f = fopen(p->path, "a");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs(line, f);
  fclose(f);
}

TEST(other_devices_and_damaged_files_are_refused) {
  static const char *const wrong[] = {"\n",
                                      "1 2 3\n",
                                      "1 7 18446744073709551615 0 0 0 0 0 0 0 0 0 3 1001\n",
                                      "1 7 0 0 0 0 0 0 0 0 0 0 -3 1001\n",
                                      "1 7 0 0 0 0 0 0 0 0 0 0 3 1001 5\n",
                                      "1 7 0 0 0 0 0 0 0 0 0 0 3 99999999999999999999\n",
                                      "1 7 0 0 0 0 0 0 0 0 0 0 3 x\n"};
  place p;
  make(&p);
  product_choices *c = opened(&p);
  add(c, 1, 3);
  product_choices_free(c);
  refused(&p, "another device, a library", GL_EINPUT, "another file");
  struct stat whole;
  CU_ASSERT_EQUAL_FATAL(stat(p.path, &whole), 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    write_line(&p, wrong[i]);
    refused(&p, DEVICE, GL_EINPUT, ":3:");
    CU_ASSERT_EQUAL_FATAL(truncate(p.path, whole.st_size), 0);
  }
  remove_all(&p);
}

TEST(a_file_that_cannot_be_written_is_told) {
  place p;
  make(&p);
  snprintf(p.path, sizeof p.path, "%s/none/products", p.folder);
  product_choices *c = opened(&p);
  const product_choice made = choice(1, 2);
  gl_error err = {.status = GL_OK};
  uint64_t rank;
  CU_ASSERT_EQUAL(product_choices_add(c, &made, &rank, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, p.path));
  product_choices_free(c);
  rmdir(p.folder);
}
