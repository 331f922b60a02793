/* A folder with a recipe, and where its studies will be. */
#ifndef GEPOLAB_TESTS_SUPPORT_CLI_STUDY_H
#define GEPOLAB_TESTS_SUPPORT_CLI_STUDY_H

#include "tests/support/cli.h"

typedef struct cli_study {
  char folder[64], recipe[128], db[128], other[128];
} cli_study;

/* Writes the text as folder/name; no study is there yet. */
void cli_study_make(cli_study *s, const char *name, const char *text);

#endif
