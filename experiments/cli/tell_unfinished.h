/* What every command that reads a study says when not all of it is there. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_TELL_UNFINISHED_H
#define GEPOLAB_EXPERIMENTS_CLI_TELL_UNFINISHED_H

#include "core/store/plan.h"

/* "delay_sweep has 10 of 24 cells, 2 runs failed; shard 2/4 is missing":
 * what of a study is missing, on the heap; NULL where nothing is, or memory is short. */
char *unfinished_text(const char *study, const study_progress *p);
/* Warns on stderr of every study of the store that is not finished, and tells of superseded runs;
 * path is what the messages call the file. The command goes on with what is there: no exit code and
 * nothing on stdout changes. */
gl_status tell_unfinished(store *s, const char *path, gl_error *err);
/* The same of the file at path, if it is a study; what keeps it from being read is left to the
 * command to say. */
void tell_unfinished_file(const char *path);

#endif
