/* That a value of an enumeration without its line in a table does not build: ratios by the
 * compiler, other tables by tests/arrows/tables.awk, which the build runs. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("policy: tables");

/* Runs a command line; what it prints is in text. Its exit code is not 0. */
static void fails(const char *line, char text[4096]) {
  FILE *from = popen(line, "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  text[fread(text, 1, 4095, from)] = '\0';
  CU_ASSERT_NOT_EQUAL(pclose(from), 0);
}

TEST(a_hole_in_a_table_is_named) {
  static const char source[] =
      "enum { A, B, C, COUNT }; /* names[COUNT] = {\"x\"} */\n"
      "static const char *const whole[COUNT] = {\"a, b\", \"{\", \"c\"};\n"
      "static const char *const all[COUNT] = {[A] = \"a\", [C] = \"c\", [B] = \"b\"};\n"
      "static int none[COUNT] = {0};\n"
      "static const char *const holed[COUNT] = {[A] = \"a\", [C] = \"[B] = \"};\n"
      "static const char *const cut[COUNT] = {\"a\", \"b\"};\n";
  char folder[64], path[128], line[256], text[4096];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "source.c"), source, sizeof source - 1);
  snprintf(line, sizeof line, "awk -f tests/arrows/tables.awk %s", path);
  fails(line, text);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "the table holed has no line for B\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "the table cut has 2 lines for the 3 values before COUNT\n"));
  CU_ASSERT_PTR_NULL(strstr(text, "whole"));
  CU_ASSERT_PTR_NULL(strstr(text, "all"));
  CU_ASSERT_PTR_NULL(strstr(text, "none"));
}

TEST(a_ratio_without_its_line_does_not_compile) {
  char folder[64], line[512], text[4096];
  cli_scratch_make(folder);
  snprintf(line, sizeof line,
           "sed '/^LINE(RATIO_GROUP_MEAN/,/)$/d' core/policy/ratio.c > %s/ratio.c && cc -std=c11 "
           "-fsyntax-only -I. %s/ratio.c 2>&1",
           folder, folder);
  fails(line, text);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "line_RATIO_GROUP_MEAN"));
}
