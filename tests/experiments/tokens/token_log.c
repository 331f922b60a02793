/* Token-level logs: files, folders, formats and batches. */
#include "experiments/tokens/token_log.h"

#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

SUITE("tokens: logs");

static const char record[] =
    "{\"step\": %d, \"rewards\": [1, 0], \"logp\": [[-1, -2], [-3]], \"logq\": [[-1, -2], [-4]]}\n";

static size_t write_steps(char *to, int first, int last) {
  size_t n = 0;
  for (int s = first; s <= last; ++s) n += (size_t)sprintf(to + n, record, s);
  return n;
}

/* Steps of all batches, separated by blanks. */
static void steps_of(const char *path, const token_request *request, char *out) {
  token_log *log = NULL;
  const token_batch *batch = NULL;
  ASSERT_OK(token_log_open(&log, &path, 1, request, &err));
  for (*out = '\0';;) {
    ASSERT_OK(token_log_next(log, &batch, &err));
    if (batch == NULL) break;
    CU_ASSERT_EQUAL(batch->input.n_tokens, 3);
    out += sprintf(out, "%g ", batch->step);
  }
  CU_ASSERT_STRING_EQUAL(token_log_about(log)->format, "gepolab");
  token_log_close(log);
}

TEST(a_folder_is_read_in_the_natural_order_of_names) {
  static const char *const names[] = {"step_10/rank_0.jsonl", "step_2/rank_10.jsonl",
                                      "step_2/rank_9.jsonl", "a.json"};
  char folder[64], path[128], text[1024], steps[256];
  const token_request any = {0};
  cli_scratch_make(folder);
  CU_ASSERT_EQUAL_FATAL(mkdir(cli_path(path, folder, "step_10"), 0700), 0);
  CU_ASSERT_EQUAL_FATAL(mkdir(cli_path(path, folder, "step_2"), 0700), 0);
  for (int i = 0; i < 4; ++i)
    cli_write(cli_path(path, folder, names[i]), text, write_steps(text, 10 * i, 10 * i + 1));
  cli_write(cli_path(path, folder, "notes.json"), "{\"a\": 1}\n", 9);
  steps_of(folder, &any, steps);
  CU_ASSERT_STRING_EQUAL(steps, "30 31 20 21 10 11 0 1 ");
}

#define NEMO "tests/golden/token_logs/nemo_rl/train_data_step"

/* Everything that whatif says, but for the name and number of files. */
static char *said_of(const char *const *arguments, const char *input) {
  cli_result r = cli_run(input, arguments);
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  return strstr(r.out, "Means over updates");
}

/* A compressed file and two files through a pipe give the same numbers. The steps of a pipe are
 * unknown, because NeMo-RL has them in the names of its files. */
TEST(compressed_files_and_pipes_give_the_same) {
  char folder[64], packed[128];
  char *nine = cli_read(NEMO "9.jsonl"), *ten = cli_read(NEMO "10.jsonl");
  CU_ASSERT_FATAL(nine != NULL && ten != NULL);
  cli_scratch_make(folder);
  gzFile to = gzopen(cli_path(packed, folder, "train_data_step9.jsonl.gz"), "wb");
  gzwrite(to, nine, (unsigned)strlen(nine));
  gzclose(to);
  char *both = malloc(strlen(nine) + strlen(ten) + 1);
  sprintf(both, "%s%s", nine, ten);
  char *plain = said_of((const char *[]){"whatif", NEMO "9.jsonl", NEMO "10.jsonl", NULL}, NULL);
  char *mixed = said_of((const char *[]){"whatif", folder, NEMO "10.jsonl", NULL}, NULL);
  char *piped = said_of((const char *[]){"whatif", "-", NULL}, both);
  CU_ASSERT_STRING_EQUAL(plain, mixed);
  CU_ASSERT_STRING_EQUAL(plain, piped);
  free(both);
}

TEST(every_format_is_listed) {
  cli_result r = CLI("list", "formats");
  for (size_t i = 0; i < token_formats_count(); ++i) {
    char line[160];
    snprintf(line, sizeof line, "\n%-16s tokens (whatif, policy): %s\n", token_format_name(i),
             token_format_title(i));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, line));
  }
}

TEST(folders_without_logs_are_refused) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  REFUSED(2, "there is no .jsonl or .json file in this folder", "whatif", folder);
  cli_write(cli_path(path, folder, "other.jsonl"), "{\"loss\": 1}\n", 12);
  REFUSED(2, "no format of token-level logs", "whatif", folder);
  REFUSED(2, "this line has the keys of no known format", "whatif", path);
  cli_write(cli_path(path, folder, "empty.jsonl"), "\n", 1);
  REFUSED(2, "empty.jsonl: there is no record in it", "whatif", NEMO "9.jsonl", path);
  char text[1024];
  cli_write(cli_path(path, folder, "own.jsonl"), text, write_steps(text, 1, 1));
  REFUSED(2, "this log has groups (format gepolab); leave --group-size out", "whatif", path,
          "--group-size", "2");
}
