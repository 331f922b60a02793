/* Folders of studies. */
#include "tests/support/cli_study.h"

#include <string.h>

void cli_study_make(cli_study *s, const char *name, const char *text) {
  cli_scratch_make(s->folder);
  cli_path(s->recipe, s->folder, name);
  cli_path(s->db, s->folder, "study.db");
  cli_path(s->other, s->folder, "other.db");
  cli_write(s->recipe, text, strlen(text));
}
