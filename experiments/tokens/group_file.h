/* Parses groups of responses from JSON for `gepolab policy`:
 *
 *   {"rewards": [1, 0], "logp": [[-0.1, -2], [-1]], "logq": [[-0.2, -2], [-1.5]]}
 *
 * for one group, or {"groups": [{…}, …]}. Optional: "logprox", "logref", "entropy", "entropy_prox"
 * and "version_gap" with the shape of logp, "log_denominator" (a number) in a group, and
 * "max_length" at the top level.
 *
 * A strict JSON reader processes the text once and fills the arrays; no tree is built. Memory use
 * is the text plus eight bytes for each number (up to twice that while arrays grow) and about 100
 * bytes per response. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_GROUP_FILE_H
#define GEPOLAB_EXPERIMENTS_TOKENS_GROUP_FILE_H

#include "core/base/error.h"
#include "core/policy/policy.h"

/* Maximum size of a policy input: 1 GiB. A batch of 64 groups of 8 responses of 1,024 tokens takes
 * about 20 MiB. */
#define GROUP_FILE_MOST_BYTES ((size_t)1 << 30)

/* The smallest accepted log-probability, in nats. No sampled token is less probable. Smaller
 * numbers are fill values of masked positions (-1e9, the smallest float32), and sums of them are
 * meaningless. */
#define GROUP_FILE_LEAST_LOG (-1e6)

typedef struct group_file {
  policy_input input; /* points into this struct's memory */
  int listed;         /* 1: the file had "groups" */
  void *memory;
} group_file;

/* Reads the text of path, or of standard input for "-", decompressed; the caller frees *text.
 * Errors: GL_ENOMEM, GL_EIO, GL_EINPUT for more than GROUP_FILE_MOST_BYTES. */
gl_status group_file_load(char **text, size_t *size, const char *path, gl_error *err);
/* Parses text[size], with `name` as file name in messages. The text may be freed afterwards.
 * Errors: GL_ENOMEM, GL_EINPUT with file:line:column and the field (groups[0].logp[1][2]): invalid
 * JSON, arrays whose shapes do not match (both are named), an unknown or duplicate key, a
 * non-finite number, a log-probability above POLICY_MOST_LOG or below GROUP_FILE_LEAST_LOG, a
 * negative version_gap, an entropy below POLICY_LEAST_ENTROPY. Log-probabilities up to
 * POLICY_MOST_LOG are read as 0. The members "step" and "time_s" of a record are checked and not
 * kept. */
gl_status group_file_read_text(group_file *out, const char *text, size_t size, const char *name,
                               gl_error *err);
void group_file_fini(group_file *g);

/* One update of a recorded run, for `gepolab whatif`: a policy input and its two top-level members
 * "step" and "time_s". */
typedef struct group_record {
  group_file groups;
  double step, time_s; /* NaN: absent */
} group_record;

/* Parses one record; its text begins at that line of the file `name`. Release its groups with
 * group_file_fini(). Errors: as for group_file_read_text(). */
gl_status group_record_read_text(group_record *out, const char *text, size_t size, const char *name,
                                 size_t line, gl_error *err);

#endif
