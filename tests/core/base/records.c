/* Tables as text: quoting, numbers, what is missing. */
#include "core/base/records.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

SUITE("core: tables as text");

static const table_column columns[] = {
    TABLE_FIELD("a,b", TABLE_TEXT, "", ""), TABLE_FIELD("n", TABLE_INTEGER, "", ""),
    TABLE_FIELD("x", TABLE_REAL, "", ""), TABLE_FIELD("ok", TABLE_FLAG, "", "")};

static void put(records_writer *w, const char *text, int64_t n, double x, int ok) {
  records_text(w, text);
  records_integer(w, n);
  records_number(w, x);
  records_flag(w, ok);
  CU_ASSERT_EQUAL(records_end(w, NULL), GL_OK);
}

static void check(records_format format, const char *wanted) {
  char *text = NULL;
  size_t size = 0;
  records_writer w;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  records_begin(&w, to, format, columns, 4);
  put(&w, "plain", 0, 0.1, 1);
  put(&w, "a,b\t\"c\"\nd", INT64_MAX, INFINITY, 0);
  put(&w, "", INT64_MIN, NAN, 0);
  put(&w, NULL, -1, -INFINITY, 1);
  for (int i = 0; i < 4; ++i) records_missing(&w);
  CU_ASSERT_EQUAL(records_end(&w, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_STRING_EQUAL(text, wanted);
  if (strcmp(text, wanted) != 0) fprintf(stderr, "%s", text);
  free(text);
}

TEST(records_are_csv) {
  check(RECORDS_CSV, "\"a,b\",n,x,ok\n"
                     "plain,0,0.1,true\n"
                     "\"a,b\t\"\"c\"\"\nd\",9223372036854775807,inf,false\n"
                     ",-9223372036854775808,,false\n"
                     ",-1,-inf,true\n"
                     ",,,\n");
}

TEST(records_are_tsv) {
  check(RECORDS_TSV, "a,b\tn\tx\tok\n"
                     "plain\t0\t0.1\ttrue\n"
                     "\"a,b\t\"\"c\"\"\nd\"\t9223372036854775807\tinf\tfalse\n"
                     "\t-9223372036854775808\t\tfalse\n"
                     "\t-1\t-inf\ttrue\n"
                     "\t\t\t\n");
}

TEST(records_are_lines_of_json) {
  check(RECORDS_JSONL,
        "{\"a,b\":\"plain\",\"n\":0,\"x\":0.1,\"ok\":true}\n"
        "{\"a,b\":\"a,b\\t\\\"c\\\"\\nd\",\"n\":9223372036854775807,\"x\":null,\"ok\":false}\n"
        "{\"a,b\":null,\"n\":-9223372036854775808,\"x\":null,\"ok\":false}\n"
        "{\"a,b\":null,\"n\":-1,\"x\":null,\"ok\":true}\n"
        "{\"a,b\":null,\"n\":null,\"x\":null,\"ok\":null}\n");
}

TEST(formats_have_names) {
  records_format format = RECORDS_CSV;
  for (int f = 0; f < RECORDS_FORMAT_COUNT; ++f) {
    CU_ASSERT(records_format_named(records_format_name((records_format)f), &format));
    CU_ASSERT_EQUAL((int)format, f);
  }
  CU_ASSERT_FALSE(records_format_named("cvs", &format));
}

/* --- reading: cells, one column of numbers, and what is refused --- */

SUITE("core: CSV");

static gl_status column_of(const char *text, const char *column, double **out, size_t *n,
                           gl_error *err) {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
  scratch_make(&at);
  scratch_write(scratch_path(&at, "test.csv", path), text);
  *err = (gl_error){0};
  gl_status status = csv_column(out, n, path, column, err);
  scratch_remove(&at);
  return status;
}

TEST(quotes_line_ends_and_empty_lines_are_read) {
  const char text[] = "\xEF\xBB\xBF"
                      "a,\"b,\"\"c\"\"\"\r\n\n,d\n";
  const char *const want[] = {"a", "b,\"c\"", "", "d"};
  const size_t lines[] = {1, 1, 3, 3}, places[] = {1, 3, 1, 2};
  csv_reader r;
  size_t n = 0;
  ASSERT_OK(csv_begin(&r, text, strlen(text), "f.csv", &err));
  while (csv_line(&r))
    for (int more = 1; more && n < 4; ++n) {
      CU_ASSERT_EQUAL(csv_cell(&r, &more), GL_OK);
      CU_ASSERT_STRING_EQUAL(r.cell, want[n]);
      CU_ASSERT(r.line == lines[n] && r.column == places[n]);
    }
  CU_ASSERT_EQUAL(n, 4);
  csv_end(&r);
}

/* Names of runs are whatever somebody called them. */
TEST(a_line_break_between_quotes_belongs_to_its_cell) {
  const char text[] = "\"a\nb\"\tc,d\n\"\n\n\"\t\"e\"\"\nf\"\r\n1\t2\n";
  const char *const want[] = {"a\nb", "c,d", "\n\n", "e\"\nf", "1", "2"};
  const size_t lines[] = {1, 1, 3, 3, 7, 7};
  gl_error err = {0};
  csv_reader r;
  size_t n = 0;
  CU_ASSERT_EQUAL_FATAL(csv_begin_separated(&r, text, strlen(text), '\t', "f.tsv", &err), GL_OK);
  while (csv_line(&r))
    for (int more = 1; more && n < 6; ++n) {
      CU_ASSERT_EQUAL(csv_cell(&r, &more), GL_OK);
      CU_ASSERT_STRING_EQUAL(r.cell, want[n]);
      CU_ASSERT_EQUAL(r.line, lines[n]);
    }
  CU_ASSERT_EQUAL(n, 6);
  csv_end(&r);
  const char open[] = "a\n1,\"b\n2,3\n";
  int more;
  CU_ASSERT_EQUAL_FATAL(csv_begin(&r, open, strlen(open), "f.csv", &err), GL_OK);
  CU_ASSERT(csv_line(&r) && csv_cell(&r, &more) == GL_OK && !more);
  CU_ASSERT(csv_line(&r) && csv_cell(&r, &more) == GL_OK && more);
  CU_ASSERT_EQUAL(csv_cell(&r, &more), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "f.csv:2:3: a quote opens here and does not close"));
  csv_end(&r);
}

TEST(a_column_is_read_with_and_without_a_heading) {
  double *v = NULL;
  size_t n = 0;
  ASSERT_OK(column_of("40\n\n 60 \n", NULL, &v, &n, &err));
  CU_ASSERT(n == 2 && v[0] == 40 && v[1] == 60);
  free(v);
  ASSERT_OK(column_of("seconds\n40\n", NULL, &v, &n, &err));
  CU_ASSERT(n == 1 && v[0] == 40);
  free(v);
  ASSERT_OK(column_of("a,b\n1,2\n3\n5,\n7,8\n", "b", &v, &n, &err));
  CU_ASSERT(n == 2 && v[0] == 2 && v[1] == 8);
  free(v);
}

/* Of several columns the first would be as good a guess as any, and a wrong one goes unseen. */
TEST(which_of_several_columns_is_meant_must_be_said) {
  const struct {
    const char *text, *column, *says;
  } cases[] = {
      {"step,A - d,B - d\n1,2,3\n", NULL, "name one of: step, A - d, B - d"},
      {"step,A - d\n1,2\n", "C - d", "no column is headed 'C - d'; the columns are: step, A - d"},
      {"a,a\n1,2\n", "a", "several columns are headed 'a'"},
      {"1,2\n3,4\n", NULL, "no heading names them"},
      {"1\n2\n", "a", "no heading names a column 'a'"},
      {"a,b\n1,2,3\n", "a", ":2:5: the line has more cells"},
      {"a\n1\ntwo\n", NULL, ":3:1: this cell is not a finite number"},
      {"a\n1\ninf\n", NULL, ":3:1: this cell is not a finite number"},
      {"a\n", NULL, "holds no numbers"},
      {"", NULL, "holds no numbers"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double *v = NULL;
    size_t n = 0;
    gl_error err;
    CU_ASSERT_EQUAL(column_of(cases[i].text, cases[i].column, &v, &n, &err), GL_EINPUT);
    CU_ASSERT(v == NULL && n == 0);
    if (!strstr(err.text, cases[i].says)) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
  }
  double *v;
  size_t n;
  CU_ASSERT_EQUAL(csv_column(&v, &n, "no/such/file.csv", NULL, NULL), GL_EIO);
}

/* Nobody writes into it, so opening it would wait for ever. */
TEST(a_pipe_is_refused_and_not_waited_for) {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
  double *v;
  size_t n;
  gl_error err = {0};
  scratch_make(&at);
  CU_ASSERT_EQUAL_FATAL(mkfifo(scratch_path(&at, "pipe.csv", path), 0600), 0);
  CU_ASSERT_EQUAL(csv_column(&v, &n, path, NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pipe.csv is no regular file; write its values to one"));
  scratch_remove(&at);
}

TEST(only_decimal_numbers_are_numbers) {
  const char *const not [] = {"", " ", "0x10", "1 2", "nan(1)", "INF", "1e", "--1", "e", "."};
  double x;
  for (size_t i = 0; i < sizeof not / sizeof *not ; i++) CU_ASSERT(!csv_number(not [i], &x));
  CU_ASSERT(csv_number(" -1.5e3\t", &x) && x == -1500);
  CU_ASSERT(csv_number("-Infinity", &x) && x == -INFINITY);
  CU_ASSERT(csv_number("NaN", &x) && isnan(x));
  CU_ASSERT(!csv_number("1e400", &x) && csv_overflows("1e400") && csv_overflows(" -1e999 "));
  CU_ASSERT(!csv_overflows("inf") && !csv_overflows("1e300") && !csv_overflows("1e400x"));
}
