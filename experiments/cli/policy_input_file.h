/* Groups of responses from a JSON file, as `gepolab policy` reads them:
 *
 *   {"rewards": [1, 0], "logp": [[-0.1, -2], [-1]], "logq": [[-0.2, -2], [-1.5]]}
 *
 * for one group, or {"groups": [{…}, …]}; optionally "logprox" and "logref" shaped as logp,
 * "version_gap" likewise, "log_denominator" (a number) in a group, and "max_length" at the top.
 */
#ifndef GEPOLAB_EXPERIMENTS_CLI_POLICY_INPUT_FILE_H
#define GEPOLAB_EXPERIMENTS_CLI_POLICY_INPUT_FILE_H

#include "core/base/error.h"
#include "core/policy/policy.h"

typedef struct group_file {
  policy_input input; /* its arrays belong to this struct */
  int listed;         /* 1: the file had "groups" */
  void *memory;
} group_file;

/* Reads path, or standard input for "-". GL_EINPUT with file:line:column for text that is not JSON,
 * a shape that does not fit (naming both arrays), an unknown key, or a log-probability above 0. */
gl_status group_file_read(group_file *out, const char *path, gl_error *err);
void group_file_fini(group_file *g);

#endif
