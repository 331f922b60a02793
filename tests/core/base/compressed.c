/* Compressed files: those of the programs gzip and zstd (tests/golden/compressed.py), of several
 * parts, across the borders of buffers, cut off, damaged. */
#include "core/base/compressed.h"
#include "core/base/records.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

SUITE("core: compressed files");

#define FIXTURE(name) "tests/golden/compressed/" name
static const char *const fixtures[] = {FIXTURE("text.gz"), FIXTURE("text.zst"), FIXTURE("parts.gz"),
                                       FIXTURE("parts.zst"), FIXTURE("checked.zst")};
enum { N_FIXTURES = sizeof fixtures / sizeof *fixtures, FIXTURE_LINES = 200, MOST = 1 << 20 };

/* Line i of the fixtures' text, as compressed.py builds it. */
static void expected_line(int i, char line[200]) {
  const int n = snprintf(line, 200, "line %d: ", i), x = i * 37 % 101;
  memset(line + n, 'x', (size_t)x);
  line[n + x] = '\0';
}

TEST(files_of_gzip_and_zstd_are_read_by_line) {
  for (int f = 0; f < N_FIXTURES; ++f) {
    compressed_reader *r = NULL;
    compressed_text line;
    char expected[200];
    size_t wrong = 0;
    CU_ASSERT_FATAL(compressed_open(&r, fixtures[f], NULL) == GL_OK);
    for (int i = 1; i <= FIXTURE_LINES; ++i) {
      expected_line(i, expected);
      CU_ASSERT_FATAL(compressed_line(r, &line, MOST, NULL) == GL_OK && line.text != NULL);
      wrong += strcmp(line.text, expected) != 0 || line.size != strlen(expected) || !line.has_end ||
               compressed_line_number(r) != (size_t)i;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(compressed_line(r, &line, MOST, NULL) == GL_OK && !line.has_end);
    CU_ASSERT_STRING_EQUAL(line.text, "the last line has no end");
    CU_ASSERT(compressed_line(r, &line, MOST, NULL) == GL_OK && line.text == NULL);
    CU_ASSERT_STRING_EQUAL(compressed_format(r),
                           strstr(fixtures[f], ".gz") != NULL ? "gzip" : "Zstandard");
    compressed_close(r);
  }
}

/* Text in which every number occurs once: longer than all buffers, and hardly compressible. */
static char *long_text(size_t *size) {
  enum { LINES = 200000 };
  char *text = malloc(LINES * 24u);
  uint64_t x = 88172645463325252u;
  *size = 0;
  for (int i = 0; text != NULL && i < LINES; ++i) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    *size += (size_t)sprintf(text + *size, "%016llx%s", (unsigned long long)x, x % 3 ? "\n" : "");
  }
  return text;
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *to = fopen(path, "wb");
  CU_ASSERT_FATAL(to != NULL && fwrite(bytes, 1, size, to) == size && fclose(to) == 0);
}

TEST(long_files_are_read_whole_in_pieces_of_any_size) {
  scratch s;
  char path[2][SCRATCH_PATH_SIZE];
  size_t size;
  char *text = long_text(&size);
  scratch_make(&s);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  gzFile gz = gzopen(scratch_path(&s, "a", path[0]), "wb1");
  CU_ASSERT(gzwrite(gz, text, (unsigned)size) == (int)size && gzclose(gz) == Z_OK);
  const size_t bound = ZSTD_compressBound(size);
  char *packed = malloc(bound);
  write_bytes(scratch_path(&s, "b", path[1]), packed, ZSTD_compress(packed, bound, text, size, 1));
  free(packed);
  for (int f = 0; f < 2; ++f) {
    compressed_reader *r = NULL;
    compressed_text line;
    size_t at = 0, n = 1, wrong = 0;
    char piece[7001];
    CU_ASSERT_FATAL(compressed_open(&r, path[f], NULL) == GL_OK);
    /* pieces and lines in turn */
    for (size_t k = 0; n > 0; ++k) {
      if (k % 3 == 0) {
        CU_ASSERT_FATAL(compressed_read(r, piece, 1 + k * 997 % sizeof piece, &n, NULL) == GL_OK);
        wrong += memcmp(piece, text + at, n) != 0;
        at += n;
        continue;
      }
      CU_ASSERT_FATAL(compressed_line(r, &line, MOST, NULL) == GL_OK);
      if (line.text == NULL) break;
      wrong += memcmp(line.text, text + at, line.size) != 0 ||
               (line.has_end && text[at + line.size] != '\n');
      at += line.size + line.has_end;
    }
    CU_ASSERT(at == size && wrong == 0);
    compressed_close(r);
    char *loaded = NULL;
    CU_ASSERT_FATAL(csv_load(&loaded, &at, path[f], NULL) == GL_OK);
    CU_ASSERT(at == size && memcmp(loaded, text, size) == 0);
    free(loaded);
  }
  free(text);
  scratch_remove(&s);
}

/* The error of reading the whole file; "" if there is none. */
static const char *read_error(const char *path, char text[1024]) {
  gl_error err = {0};
  char *loaded = NULL;
  size_t size;
  if (csv_load(&loaded, &size, path, &err) == GL_OK) free(loaded);
  return strcpy(text, err.text);
}

TEST(cut_off_and_damaged_files_are_refused_by_name) {
  scratch s;
  char path[SCRATCH_PATH_SIZE], text[1024], bytes[1024];
  scratch_make(&s);
  scratch_path(&s, "copy", path);
  for (int f = 0; f < N_FIXTURES; ++f) {
    FILE *from = fopen(fixtures[f], "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    size_t silent = 0;
    /* A part that ends at the border of two parts is whole. */
    for (size_t cut = 4; cut < size; ++cut) {
      write_bytes(path, bytes, cut);
      silent += strstr(read_error(path, text), "is cut off") == NULL ||
                strncmp(text, path, strlen(path)) != 0;
    }
    CU_ASSERT_EQUAL(silent, strstr(fixtures[f], "parts.") != NULL);
    if (strstr(fixtures[f], "parts.") != NULL || strstr(fixtures[f], "text.zst") != NULL) continue;
    bytes[size / 2] ^= 4; /* these two have a checksum */
    write_bytes(path, bytes, size);
    CU_ASSERT_PTR_NOT_NULL(strstr(read_error(path, text), "data are damaged; copy the file again"));
  }
  scratch_remove(&s);
}

TEST(what_follows_the_last_part_is_refused_unless_it_is_zeros) {
  scratch s;
  char path[SCRATCH_PATH_SIZE], text[1024], bytes[2048] = {0};
  scratch_make(&s);
  scratch_path(&s, "copy", path);
  for (int f = 0; f < 2; ++f) {
    FILE *from = fopen(fixtures[f], "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    memcpy(bytes + size, "rest", 4);
    write_bytes(path, bytes, size + 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(read_error(path, text), "damaged"));
    memset(bytes + size, 0, 512);
    write_bytes(path, bytes, size + 512);
    CU_ASSERT_EQUAL(strcmp(read_error(path, text), "") == 0, f == 0);
  }
  scratch_remove(&s);
}

TEST(plain_files_and_long_lines) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  compressed_reader *r = NULL;
  compressed_text line;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "plain", path), "one\n\n12345678\nlast\n");
  CU_ASSERT_FATAL(compressed_open(&r, path, NULL) == GL_OK);
  CU_ASSERT(compressed_line(r, &line, 7, &err) == GL_OK && strcmp(line.text, "one") == 0);
  CU_ASSERT(compressed_line(r, &line, 7, &err) == GL_OK && line.size == 0 && line.has_end);
  CU_ASSERT(compressed_line(r, &line, 7, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plain:3: the line is longer than 7 bytes"));
  CU_ASSERT_PTR_NULL(compressed_format(r));
  compressed_close(r);
  CU_ASSERT(compressed_open(&r, "nowhere/at/all", NULL) == GL_EIO && r == NULL);
  CU_ASSERT_FATAL(compressed_open(&r, s.folder, NULL) == GL_OK);
  CU_ASSERT(compressed_line(r, &line, 7, NULL) == GL_EIO);
  compressed_close(r);
  scratch_remove(&s);
}
