/* Tables as text: quoting, numbers, what is missing. */
#include "core/base/records.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const table_column columns[] = {
    TABLE_FIELD("a,b", TABLE_TEXT, "", ""), TABLE_FIELD("n", TABLE_WHOLE, "", ""),
    TABLE_FIELD("x", TABLE_REAL, "", ""), TABLE_FIELD("ok", TABLE_FLAG, "", "")};

static void put(records_writer *w, const char *text, int64_t n, double x, int ok) {
  records_text(w, text);
  records_whole(w, n);
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

static void records_are_csv(void) {
  check(RECORDS_CSV, "\"a,b\",n,x,ok\n"
                     "plain,0,0.1,true\n"
                     "\"a,b\t\"\"c\"\"\nd\",9223372036854775807,inf,false\n"
                     ",-9223372036854775808,,false\n"
                     ",-1,-inf,true\n"
                     ",,,\n");
}

static void records_are_tsv(void) {
  check(RECORDS_TSV, "a,b\tn\tx\tok\n"
                     "plain\t0\t0.1\ttrue\n"
                     "\"a,b\t\"\"c\"\"\nd\"\t9223372036854775807\tinf\tfalse\n"
                     "\t-9223372036854775808\t\tfalse\n"
                     "\t-1\t-inf\ttrue\n"
                     "\t\t\t\n");
}

static void records_are_lines_of_json(void) {
  check(RECORDS_JSONL,
        "{\"a,b\":\"plain\",\"n\":0,\"x\":0.1,\"ok\":true}\n"
        "{\"a,b\":\"a,b\\t\\\"c\\\"\\nd\",\"n\":9223372036854775807,\"x\":null,\"ok\":false}\n"
        "{\"a,b\":null,\"n\":-9223372036854775808,\"x\":null,\"ok\":false}\n"
        "{\"a,b\":null,\"n\":-1,\"x\":null,\"ok\":true}\n"
        "{\"a,b\":null,\"n\":null,\"x\":null,\"ok\":null}\n");
}

static void formats_have_names(void) {
  records_format format = RECORDS_CSV;
  for (int f = 0; f < RECORDS_FORMAT_COUNT; ++f) {
    CU_ASSERT(records_format_named(records_format_name((records_format)f), &format));
    CU_ASSERT_EQUAL((int)format, f);
  }
  CU_ASSERT_FALSE(records_format_named("cvs", &format));
}

SUITE(core_records, "core: tables as text", TEST(records_are_csv), TEST(records_are_tsv),
      TEST(records_are_lines_of_json), TEST(formats_have_names));
