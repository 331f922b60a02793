/* The small ones: hashes, numbers as text, whole files, errors. */
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/metrics.h"
#include "core/base/root.h"
#include "core/random/rng.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- hashes --- */

SUITE("core: files, hashes, numbers");

/* The vectors of the algorithm's authors (Fowler, Noll, Vo; draft-eastlake-fnv). */
TEST(hashes_are_fnv_1a_of_128_bits) {
  static const char *const known[][2] = {{"", "6c62272e07bb014262b821756295c58d"},
                                         {"a", "d228cb696f1a8caf78912b704e4a8964"},
                                         {"foobar", "343e1662793c64bf6f0d3597ba446f18"}};
  char hex[HASH_HEX_SIZE];
  for (size_t i = 0; i < 3; ++i) {
    hash_hex(known[i][0], strlen(known[i][0]), hex);
    CU_ASSERT_STRING_EQUAL(hex, known[i][1]);
  }
  hash_hex("a\0b", 3, hex); /* bytes after a NUL count */
  CU_ASSERT_STRING_NOT_EQUAL(hex, known[1][1]);
}

static uint64_t checksum_in_pieces(const unsigned char *bytes, size_t size, size_t piece) {
  checksum sum;
  checksum_begin(&sum);
  for (size_t at = 0; at < size; at += piece)
    checksum_add(&sum, bytes + at, size - at < piece ? size - at : piece);
  return checksum_of(&sum);
}

/* Values published for xxHash's reference implementation. */
TEST(checksums_are_xxh3_of_64_bits_however_the_bytes_come) {
  static unsigned char bytes[5000];
  size_t differ = 0, unnoticed = 0;
  CU_ASSERT_EQUAL(checksum_in_pieces(bytes, 0, 1), UINT64_C(0x2d06800538d394c2));
  CU_ASSERT_EQUAL(checksum_in_pieces((const unsigned char *)"a", 1, 1),
                  UINT64_C(0xe6c632b61e964e1f));
  CU_ASSERT_EQUAL(checksum_in_pieces((const unsigned char *)"abc", 3, 2),
                  UINT64_C(0x78af5f94892f3950));
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)(i * i >> 3);
  const uint64_t whole = checksum_in_pieces(bytes, sizeof bytes, sizeof bytes);
  for (size_t piece = 1; piece < sizeof bytes; piece += 1 + piece / 3)
    differ += checksum_in_pieces(bytes, sizeof bytes, piece) != whole;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    bytes[i] ^= 16;
    unnoticed += checksum_in_pieces(bytes, sizeof bytes, sizeof bytes) == whole;
    bytes[i] ^= 16;
  }
  CU_ASSERT(differ == 0 && unnoticed == 0);
}

/* --- numbers --- */

/* Digits of a number's text without leading and trailing zeros. */
static int significant_digits(const char *text) {
  int n = 0, up_to_last = 0;
  for (; *text != '\0' && *text != 'e'; ++text) {
    if (*text < '0' || *text > '9' || (n == 0 && *text == '0')) continue;
    ++n;
    if (*text != '0') up_to_last = n;
  }
  return up_to_last;
}

/* Whether the text reads back to another number, or one of fewer digits would do. */
static size_t is_wrong(double value) {
  char text[NUMBER_TEXT_SIZE], shorter[64];
  if (strtod(number_text(value, text), NULL) != value) return 1;
  int digits = significant_digits(text);
  if (digits < 2) return 0;
  snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
  return strtod(shorter, NULL) == value;
}

TEST(numbers_read_back_from_their_shortest_text) {
  static const double special[] = {0,
                                   1,
                                   0.1,
                                   1 / 3.0,
                                   1e22,
                                   1e23,
                                   123456,
                                   DBL_MAX,
                                   DBL_MIN,
                                   0x1p-1074,
                                   5e-320,
                                   1e-5,
                                   1e100,
                                   0x1p53,
                                   0x1p53 - 1,
                                   2.5e-310,
                                   DBL_MIN - 0x1p-1074,
                                   0x1p-44,
                                   9.5e-322,
                                   1e15,
                                   1e16,
                                   1e17,
                                   0.3 - 0.1};
  rng_stream s = rng_stream_at(3, RNG_TEST, 0);
  size_t wrong = 0;
  for (size_t i = 0; i < sizeof special / sizeof *special; ++i)
    wrong += is_wrong(special[i]) + is_wrong(-special[i]);
  for (uint64_t i = 0; i < 20000; ++i) { /* any bits: every magnitude, subnormal ones too */
    rng_words w = rng_block(s, i);
    double value;
    uint64_t bits = (uint64_t)w.v[0] << 32 | w.v[1];
    if (i % 8 == 0) bits &= ~(UINT64_C(0x7ff) << 52); /* subnormal */
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value)) wrong += is_wrong(value);
    wrong += is_wrong((double)(int32_t)w.v[2] / 1000);
  }
  CU_ASSERT_EQUAL(wrong, 0);
}

TEST(numbers_have_their_documented_spelling) {
  char text[NUMBER_TEXT_SIZE];
  CU_ASSERT_STRING_EQUAL(number_text(3, text), "3");
  CU_ASSERT_STRING_EQUAL(number_text(0.1, text), "0.1");
  CU_ASSERT_STRING_EQUAL(number_text(1e-5, text), "1e-05");
  CU_ASSERT_STRING_EQUAL(number_text(0x1p-1074, text), "5e-324");
  CU_ASSERT_STRING_EQUAL(number_text(NAN, text), "nan");
  CU_ASSERT_STRING_EQUAL(number_text(-NAN, text), "nan");
  CU_ASSERT_STRING_EQUAL(number_text(INFINITY, text), "inf");
  CU_ASSERT_STRING_EQUAL(number_text(-INFINITY, text), "-inf");
}

TEST(json_has_null_where_it_has_no_number) {
  const double values[] = {0.1, NAN, -INFINITY, 1e-300};
  cJSON *object = cJSON_CreateObject();
  CU_ASSERT_PTR_NOT_NULL(json_add_numbers(object, "list", values, 4));
  CU_ASSERT_PTR_NOT_NULL(json_add_number(object, "x", INFINITY));
  CU_ASSERT_PTR_NOT_NULL(json_add_string(object, "s", "a\"b"));
  char *text = cJSON_PrintUnformatted(object);
  CU_ASSERT_STRING_EQUAL(text, "{\"list\":[0.1,null,null,1e-300],\"x\":null,\"s\":\"a\\\"b\"}");
  cJSON_free(text);
  cJSON_Delete(object);
}

/* --- files --- */

static void check_file(const char *path, const char *wanted) {
  char *text = scratch_read(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT_STRING_EQUAL(text, wanted);
  free(text);
}

TEST(a_file_is_the_old_one_until_it_is_the_new_one) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  file_writer w;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, path, NULL), GL_OK);
  fputs("new", w.stream);
  fflush(w.stream);
  check_file(path, "old");
  CU_ASSERT_EQUAL(scratch_count(&s), 2);
  CU_ASSERT_EQUAL(file_commit(&w, NULL), GL_OK);
  check_file(path, "new");
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  file_abandon(&w); /* after a commit: nothing */
  check_file(path, "new");
  scratch_remove(&s);
}

TEST(an_abandoned_file_leaves_the_old_one) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  file_writer w;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, path, NULL), GL_OK);
  fputs("half of the n", w.stream);
  file_abandon(&w);
  check_file(path, "old");
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  scratch_remove(&s);
}

TEST(a_new_name_is_not_taken_from_another_file) {
  scratch s;
  char made[SCRATCH_PATH_SIZE], path[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.db.1.tmp", made), "whole");
  scratch_write(scratch_path(&s, "f.db", path), "a letter");
  CU_ASSERT_EQUAL(file_name_new(made, path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is there already"));
  check_file(path, "a letter");
  check_file(made, "whole");
  unlink(path);
  CU_ASSERT_EQUAL(file_name_new(made, path, NULL), GL_OK);
  check_file(path, "whole");
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  err = (gl_error){0};
  CU_ASSERT_EQUAL(file_name_new(made, scratch_path(&s, "nowhere/f.db", made), &err), GL_EIO);
  scratch_remove(&s);
}

/* A limit on the size of files makes the last write fail, as a full disk does. */
TEST(a_file_that_cannot_be_written_whole_leaves_the_old_one) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  file_writer w;
  gl_error err = {0};
  struct rlimit before, small;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, path, NULL), GL_OK);
  for (int i = 0; i < 1000; ++i) fputs("0123456789", w.stream);
  CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
  gl_status status = file_commit(&w, &err);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  CU_ASSERT_EQUAL(status, GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "File too large"));
  check_file(path, "old");
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  scratch_remove(&s);
}

/* The stream met the trouble long before the commit, and its errno is gone. */
TEST(a_write_that_failed_on_the_way_is_told_with_its_reason) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  file_writer w;
  gl_error err = {0};
  struct rlimit before, small;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, path, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 2000; ++i) fputs("0123456789", w.stream);
  CU_ASSERT(ferror(w.stream));
  errno = 0;
  gl_status status = file_commit(&w, &err);
  CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  CU_ASSERT_EQUAL(status, GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "File too large"));
  check_file(path, "old");
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  scratch_remove(&s);
}

static void check_refused(const char *path, const char *says) {
  file_writer w;
  gl_error err = {0};
  CU_ASSERT_EQUAL(file_begin(&w, path, &err), GL_EIO);
  CU_ASSERT_PTR_NULL(w.stream);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
}

TEST(places_that_cannot_hold_a_file_are_named_with_a_remedy) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  scratch_make(&s);
  check_refused(s.folder, "it is a folder");
  check_refused(scratch_path(&s, "missing/f.json", path), "make its folder first");
  scratch_write(scratch_path(&s, "file", path), "");
  check_refused(scratch_path(&s, "file/f.json", path), "not a folder");
  static const struct {
    int reason;
    const char *remedy;
  } reasons[] = {{ENOSPC, "the disk is full"},
                 {EROFS, "the file system is read-only"},
                 {EACCES, "you may not write there"},
                 {EIO, "check the device"}};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; ++i) {
    gl_error err = {0};
    CU_ASSERT_EQUAL(file_fail("f", "written", reasons[i].reason, &err), GL_EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, reasons[i].remedy));
  }
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  scratch_remove(&s);
}

TEST(a_link_stays_a_link_and_permissions_stay) {
  scratch s;
  char path[SCRATCH_PATH_SIZE], link[SCRATCH_PATH_SIZE];
  file_writer w;
  struct stat is;
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(chmod(path, 0600), 0);
  CU_ASSERT_EQUAL_FATAL(symlink("f.json", scratch_path(&s, "link", link)), 0);
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, link, NULL), GL_OK);
  fputs("new", w.stream);
  CU_ASSERT_EQUAL(file_commit(&w, NULL), GL_OK);
  check_file(path, "new");
  CU_ASSERT(lstat(link, &is) == 0 && S_ISLNK(is.st_mode));
  CU_ASSERT(stat(path, &is) == 0 && (is.st_mode & 0777) == 0600);
  CU_ASSERT_EQUAL(scratch_count(&s), 2);
  scratch_remove(&s);
}

/* A rename would put a file in the place of /dev/null. The reader of a pipe that a check opened
 * would see its end. */
TEST(devices_and_pipes_are_written_to) {
  scratch s;
  char path[SCRATCH_PATH_SIZE], text[8] = "";
  file_writer w;
  struct stat is;
  scratch_make(&s);
  CU_ASSERT_EQUAL_FATAL(mkfifo(scratch_path(&s, "pipe", path), 0600), 0);
  int reader = open(path, O_RDONLY | O_NONBLOCK);
  CU_ASSERT_EQUAL(file_check(path, NULL), GL_OK);
  CU_ASSERT_EQUAL(poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, 0), 0);
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, path, NULL), GL_OK);
  fputs("text", w.stream);
  CU_ASSERT_EQUAL(file_commit(&w, NULL), GL_OK);
  CU_ASSERT(read(reader, text, 7) == 4 && strcmp(text, "text") == 0);
  close(reader);
  CU_ASSERT(stat(path, &is) == 0 && S_ISFIFO(is.st_mode));
  CU_ASSERT_EQUAL_FATAL(file_begin(&w, "/dev/null", NULL), GL_OK);
  file_abandon(&w);
  CU_ASSERT(stat("/dev/null", &is) == 0 && S_ISCHR(is.st_mode));
  CU_ASSERT_EQUAL(scratch_count(&s), 1);
  scratch_remove(&s);
}

TEST(a_file_that_may_not_be_written_is_not_replaced) {
  scratch s;
  char path[SCRATCH_PATH_SIZE];
  if (geteuid() == 0) SKIP("root may write everything");
  scratch_make(&s);
  scratch_write(scratch_path(&s, "f.json", path), "old");
  CU_ASSERT_EQUAL_FATAL(chmod(path, 0400), 0);
  check_refused(path, "you may not write there");
  check_file(path, "old");
  scratch_remove(&s);
}

/* --- errors and metrics --- */

TEST(the_first_error_stays_and_long_ones_are_cut) {
  gl_error err = {0};
  CU_ASSERT_EQUAL(gl_fail(&err, GL_EINPUT, "%02000d", 7), GL_EINPUT);
  CU_ASSERT_EQUAL(strlen(err.text), sizeof err.text - 1);
  CU_ASSERT_EQUAL(gl_fail(&err, GL_EIO, "second"), GL_EIO);
  CU_ASSERT_EQUAL(err.status, GL_EINPUT);
  CU_ASSERT_PTR_NULL(strstr(err.text, "second"));
  gl_error_clear(&err);
  CU_ASSERT(err.status == GL_OK && err.text[0] == '\0');
  CU_ASSERT_EQUAL(gl_fail(NULL, GL_EIO, "nobody asks"), GL_EIO);
  CU_ASSERT(gl_exit_code(GL_OK) == 0 && gl_exit_code(GL_EINPUT) == 2);
  CU_ASSERT(gl_exit_code(GL_EIO) == 1 && gl_exit_code(GL_EINTERRUPTED) == 130);
}

TEST(every_metric_has_a_name_of_its_own_a_meaning_and_a_source) {
  double value[METRIC_COUNT];
  for (int m = 0; m < METRIC_COUNT; ++m) {
    const metric_info *info = metric_about((metric)m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(info->name);
    CU_ASSERT_EQUAL(metric_find(info->name), (metric)m);
    CU_ASSERT(info->unit != NULL && info->meaning != NULL && info->meaning[0] != '\0');
    CU_ASSERT(info->source != NULL && info->source[0] != '\0');
    CU_ASSERT_EQUAL(strspn(info->name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                    strlen(info->name));
  }
  CU_ASSERT_EQUAL(metric_find("nonsense"), METRIC_COUNT);
  metrics_clear(value);
  for (int m = 0; m < METRIC_COUNT; ++m) CU_ASSERT(isnan(value[m]));
}

/* --- roots --- */

/* cos(x), which is no number between the two bounds at `hole`. */
static double cosine(double x, void *hole) {
  const double *bounds = hole;
  return x > bounds[0] && x < bounds[1] ? NAN : cos(x);
}

TEST(a_root_is_found_or_the_failure_is_told) {
  double none[] = {1, 1}, hole[] = {0.5, 3}, x;
  gsl_function f = {cosine, none};
  ASSERT_OK(root_find(&f, 0, 3, 0, 1e-15, &x, &err));
  ASSERT_CLOSE(x, acos(0), 1e-15);
  gl_error same = {0}, nan = {0};
  CU_ASSERT_EQUAL(root_find(&f, 0, 1, 0, 1e-15, &x, &same), GL_ENUMERIC);
  f.params = hole;
  CU_ASSERT_EQUAL(root_find(&f, 0, 3, 0, 1e-15, &x, &nan), GL_ENUMERIC);
  CU_ASSERT_PTR_NOT_NULL(strstr(nan.text, "between 0 and 3"));
}
