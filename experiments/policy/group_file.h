/* Groups of responses from a JSON file, as `gepolab policy` reads them:
 *
 *   {"rewards": [1, 0], "logp": [[-0.1, -2], [-1]], "logq": [[-0.2, -2], [-1.5]]}
 *
 * for one group, or {"groups": [{…}, …]}; optionally "logprox" and "logref" shaped as logp,
 * "version_gap" likewise, "log_denominator" (a number) in a group, and "max_length" at the top.
 *
 * The text is read once, by the strict JSON reader, into the arrays; no tree is built. So memory is
 * the text itself and eight bytes for each of its numbers, up to twice that while arrays grow, and
 * some 100 bytes a response.
 */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_GROUP_FILE_H
#define GEPOLAB_EXPERIMENTS_POLICY_GROUP_FILE_H

#include "core/base/error.h"
#include "core/policy/policy.h"

/* Most bytes of a policy input: 1 GiB. A batch of 64 groups of 8 responses of 1,024 tokens takes
 * some 20 MiB. */
#define POLICY_INPUT_MOST_BYTES ((size_t)1 << 30)

/* The smallest log-probability that is taken, in nats. Nothing samples a token that is less
 * probable: smaller numbers are those that trainers fill masked positions with (-1e9, the smallest
 * float32), and sums of them are of no use. */
#define POLICY_INPUT_LEAST_LOG (-1e6)

typedef struct group_file {
  policy_input input; /* its arrays belong to this struct */
  int listed;         /* 1: the file had "groups" */
  void *memory;
} group_file;

/* Reads path, or standard input for "-". GL_EINPUT with file:line:column for text that is not JSON,
 * a shape that does not fit (naming both arrays), an unknown key or one that is there twice, a
 * number that is not finite, a log-probability above 0 or below POLICY_INPUT_LEAST_LOG, naming the
 * field (groups[0].logp[1][2]), and for a text above POLICY_INPUT_MOST_BYTES. GL_EIO. */
gl_status group_file_read(group_file *out, const char *path, gl_error *err);
/* The same from text[size], called `name` in messages; the text may be released afterwards. */
gl_status group_file_read_text(group_file *out, const char *text, size_t size, const char *name,
                               gl_error *err);
void group_file_fini(group_file *g);

/* One update of a recorded run, as `gepolab whatif` reads it: a policy input with two more members
 * at its top, "step" and "time_s". */
typedef struct group_record {
  group_file groups;
  double step, time_s; /* NaN: not in the record */
} group_record;

/* Reads one record, whose text begins at that line of the file `name`. Release its groups with
 * group_file_fini(). Errors as group_file_read_text(). */
gl_status group_record_read_text(group_record *out, const char *text, size_t size, const char *name,
                                 size_t line, gl_error *err);

#endif
