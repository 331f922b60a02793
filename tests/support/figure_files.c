/* What tests of figures share. */
#include "tests/support/figure_files.h"
#include "tests/support/files.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *figure_script(const char *path) {
  static char room[2][16384]; /* the style, and the one shape */
  char *to = room[strcmp(path, "plots/page.gp") != 0];
  FILE *f = fopen(path, "r");
  if (f == NULL) return NULL;
  to[fread(to, 1, sizeof room[0] - 1, f)] = 0;
  fclose(f);
  return to;
}

char *figure_file(const char *folder, const char *name) {
  char path[FILES_PATH];
  char *text = files_text(files_path(folder, name, path));
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  return text;
}
