/* Token-level logs: files, folders, formats and batches. */
#include "experiments/tokens/token_log.h"

#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static void a_folder_is_read_in_the_natural_order_of_names(void) {
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
  cli_scratch_remove(folder);
}

SUITE(tokens_logs, "tokens: logs", TEST(a_folder_is_read_in_the_natural_order_of_names));
