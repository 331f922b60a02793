/* Readers of other trainers' token-level logs, against files that the trainers' own code wrote
 * (tests/golden/token_logs.py), and what they refuse. */
#include "experiments/tokens/token_log.h"

#include "core/base/json.h"
#include "experiments/tokens/scan.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("tokens: formats");

#define LOGS "tests/golden/token_logs/"

/* --- the trainers' own files --- */

static double item_number(const cJSON *list, size_t i) {
  const cJSON *item = cJSON_GetArrayItem(list, (int)i);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Numbers of a group's responses, exactly; NULL: the log does not have them. */
static void check_responses(const cJSON *expected, const double *got, size_t first, size_t n) {
  CU_ASSERT_EQUAL(expected != NULL, got != NULL);
  if (expected == NULL || got == NULL) return;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(expected), (int)n);
  for (size_t i = 0; i < n; ++i) CU_ASSERT_EQUAL(got[first + i], item_number(expected, i));
}

static void check_tokens(const cJSON *expected, const double *got, const policy_input *in,
                         size_t group) {
  const size_t first = in->group_start[group];
  CU_ASSERT_EQUAL(expected != NULL, got != NULL);
  if (expected == NULL || got == NULL) return;
  for (size_t i = first; i < in->group_start[group + 1]; ++i) {
    const cJSON *row = cJSON_GetArrayItem(expected, (int)(i - first));
    check_responses(row, got, in->token_start[i], in->token_start[i + 1] - in->token_start[i]);
  }
}

static void check_group(const cJSON *expected, const token_batch *b, size_t g) {
  const policy_input *in = &b->input;
  const size_t first = in->group_start[g], n = in->group_start[g + 1] - first;
  check_responses(cJSON_GetObjectItem(expected, "rewards"), b->has_rewards ? in->reward : NULL,
                  first, n);
  check_responses(cJSON_GetObjectItem(expected, "advantages"), b->trainer_advantage, first, n);
  check_tokens(cJSON_GetObjectItem(expected, "logp"), in->logp, in, g);
  check_tokens(cJSON_GetObjectItem(expected, "logq"), in->logq, in, g);
  check_tokens(cJSON_GetObjectItem(expected, "entropy"), in->entropy, in, g);
  check_tokens(cJSON_GetObjectItem(expected, "versions"), b->version, in, g);
}

static cJSON *expected_of(const char *name) {
  char path[128];
  snprintf(path, sizeof path, LOGS "expected-%s.json", name);
  char *text = cli_read(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  cJSON *tree = json_parsed(text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
  return tree;
}

/* All batches of the path are those expected. */
static void check_log(const char *path, const char *name, const char *format) {
  cJSON *batches = expected_of(name);
  token_log *log = NULL;
  const token_batch *b = NULL;
  const token_request any = {0};
  ASSERT_OK(token_log_open(&log, &path, 1, &any, &err));
  for (const cJSON *e = batches->child; e != NULL; e = e->next) {
    const cJSON *step = cJSON_GetObjectItem(e, "step"), *groups = cJSON_GetObjectItem(e, "groups");
    ASSERT_OK(token_log_next(log, &b, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT(step == NULL ? isnan(b->step) : b->step == step->valuedouble);
    CU_ASSERT_EQUAL_FATAL((int)b->input.n_groups, cJSON_GetArraySize(groups));
    for (size_t g = 0; g < b->input.n_groups; ++g)
      check_group(cJSON_GetArrayItem(groups, (int)g), b, g);
    const bool says_learner = strcmp(format, "prime_rl") == 0;
    CU_ASSERT(says_learner ? b->learner_version == b->step - 1 : isnan(b->learner_version));
    CU_ASSERT_PTR_NULL(b->input.version_gap);
  }
  ASSERT_OK(token_log_next(log, &b, &err));
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT_STRING_EQUAL(token_log_about(log)->format, format);
  CU_ASSERT_STRING_EQUAL(token_log_about(log)->unread, "");
  token_log_close(log);
}

TEST(files_that_the_trainers_wrote_give_their_numbers) {
  check_log(LOGS "nemo_rl", "nemo_rl", "nemo_rl");
  check_log(LOGS "nemo_rl_dynamic/train_data_step4.jsonl", "nemo_rl_dynamic", "nemo_rl");
  check_log(LOGS "nemo_rl_sync", "nemo_rl_sync", "nemo_rl");
  check_log(LOGS "prime_rl", "prime_rl", "prime_rl");
  check_log(LOGS "areal", "areal", "areal");
}

/* The first batch of a folder of files. */
TEST(prompts_and_masked_tokens_are_counted) {
  const char *path = LOGS "nemo_rl/train_data_step10.jsonl";
  const token_request any = {0};
  token_log *log = NULL;
  const token_batch *b = NULL;
  ASSERT_OK(token_log_open(&log, &path, 1, &any, &err));
  ASSERT_OK(token_log_next(log, &b, &err));
  char *text = cli_read(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  char *line = text;
  for (size_t i = 0; i < b->input.n_responses; ++i) {
    char *end = strchr(line, '\n');
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    *end = '\0';
    cJSON *sample = json_parsed(line);
    const cJSON *mask = cJSON_GetObjectItem(sample, "token_loss_mask")->child;
    const size_t length = (size_t)item_number(cJSON_GetObjectItem(sample, "input_lengths"), 0);
    const size_t trained = b->input.token_start[i + 1] - b->input.token_start[i];
    size_t prompt = 0;
    while (item_number(mask, prompt) == 0) ++prompt;
    CU_ASSERT_EQUAL(b->sample[i].line, i + 1);
    CU_ASSERT_EQUAL(b->sample[i].n_prompt, prompt);
    CU_ASSERT_EQUAL(b->sample[i].n_masked, length - prompt - trained);
    line = end + 1;
  }
  token_log_close(log);
}

/* Whole commands: the folder, and files of it that were compressed or come from a pipe. */
TEST(whatif_and_policy_take_them) {
  cli_result r = CLI("whatif", "-a", "grpo", "-a", "gepo", LOGS "nemo_rl");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "2 updates, 5 groups, 11 responses"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "NeMo-RL's train_data_step*.jsonl, 2 files"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "1 response left out, which the trainer masked"));
  r = CLI("whatif", "-a", "grpo", LOGS "prime_rl");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "no rewards in this log"));
  r = CLI("policy", "-a", "grpo", LOGS "nemo_rl/train_data_step9.jsonl", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *told = json_of(&r);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(told, "groups")), 2);
  REFUSED(2, "has no log-probabilities of tokens", "whatif", LOGS "areal");
  REFUSED(2, "has the format prime_rl, and the files before it nemo_rl", "whatif", LOGS "nemo_rl",
          LOGS "prime_rl");
  REFUSED(2, "--format nemo: there is no such format of token-level logs (did you mean 'nemo_rl'?)",
          "whatif", "--format", "nemo", LOGS "nemo_rl");
}

/* --- what is refused --- */

/* A sample of NeMo-RL, with parts that tests replace. */
typedef struct sample_text {
  const char *idx, *reward, *mask, *tokens, *logq, *logp, *advantages, *more;
} sample_text;

static size_t print_sample(char *to, sample_text s) {
  return (size_t)sprintf(
      to,
      "{\"rewards\": %s, \"input_lengths\": [3], \"token_ids\": %s, \"token_loss_mask\": %s, "
      "\"sample_loss_mask\": [1.0], \"advantages\": %s, \"generation_logprobs\": %s, "
      "\"prev_logprobs\": %s%s, \"idx\": %s}\n",
      s.reward, s.tokens, s.mask, s.advantages, s.logq, s.logp, s.more, s.idx);
}

static const sample_text plain = {.idx = "0",
                                  .reward = "[1.0]",
                                  .mask = "[[0, 1, 1]]",
                                  .tokens = "[[7, 8, 9]]",
                                  .logq = "[[0.0, -1.5, -2]]",
                                  .logp = "[[0.0, -1.25, -2]]",
                                  .advantages = "[[0.5, 0.5, 0.5]]",
                                  .more = ""};

/* Reads all batches of a text. */
static gl_status read_text(const char *text, size_t group_size, size_t *n_responses,
                           gl_error *err) {
  const token_request request = {.group_size = group_size};
  token_log *log = NULL;
  const token_batch *b = NULL;
  gl_status status = token_log_open_text(&log, text, strlen(text), "log", &request, err);
  *n_responses = 0;
  while (status == GL_OK && (status = token_log_next(log, &b, err)) == GL_OK && b != NULL)
    *n_responses += b->input.n_responses;
  token_log_close(log);
  return status;
}

static void expect_refusal(const char *text, size_t group_size, const char *why) {
  gl_error err = {0};
  size_t n = 0;
  CU_ASSERT_EQUAL(read_text(text, group_size, &n, &err), GL_EINPUT);
  const int found = strstr(err.text, why) != NULL;
  if (!found) fprintf(stderr, "%s\n  instead of: %s\n", err.text, why);
  CU_ASSERT(found);
}

static void refuses_sample(sample_text s, const char *why) {
  char text[1024];
  print_sample(text, s);
  expect_refusal(text, 0, why);
}

TEST(damaged_samples_are_refused_with_their_place) {
  sample_text s = plain;
  s.logp = "[[0.0, -1.25]]";
  refuses_sample(s, "prev_logprobs has fewer than the 3 elements of token_loss_mask");
  s.logp = "[[0.0, -1.25, -1, -2]]";
  refuses_sample(s, "prev_logprobs has more than the 3 elements of token_loss_mask");
  s.logp = "[[0.0, -1.25, NaN]]";
  refuses_sample(s, "prev_logprobs[2] of a trained token is nan");
  s.logp = "[[0.0, 0.25, -1]]";
  refuses_sample(s, "prev_logprobs[1] of a trained token is 0.25, which is no log-probability");
  s.logp = "[[0.0, -1.25, \"x\"]]";
  char text[1024], where[64];
  print_sample(text, s);
  snprintf(where, sizeof where, "log:1:%zu: prev_logprobs must be a list of numbers",
           (size_t)(strstr(text, "\"x\"") - text) + 1);
  refuses_sample(s, where);
  s.logp = "[[0.0, [-1.25], -1]]";
  refuses_sample(s, "prev_logprobs must be a list of numbers");
  s.logp = "[0.0, -1.25, -1]";
  refuses_sample(s, "prev_logprobs must be a list of one element, [x]");
  s = plain;
  s.mask = "[[0, 1, 2]]";
  refuses_sample(s, "token_loss_mask must be a list of 0 and 1");
  s = plain;
  s.reward = "[null]";
  refuses_sample(s, "rewards must be a finite number");
  s = plain;
  s.more = ", \"rewards\": [1.0]";
  refuses_sample(s, "field rewards is given twice");
  s = plain;
  s.more = " \"rewards\": [1.0]";
  refuses_sample(s, "damaged JSON: a comma or } is expected here");
  s = plain;
  s.idx = "3";
  refuses_sample(s, "idx is 3 where 0 is expected: lines of this step are missing");
}

TEST(a_renamed_field_is_named_with_the_nearest) {
  char text[1024];
  print_sample(text, plain);
  char *at = strstr(text, "\"prev_logprobs\"");
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  memcpy(at, "\"prev_logprops\"", 15);
  expect_refusal(text, 0,
                 "field prev_logprobs is missing, which NeMo-RL 0.6 writes (did you mean "
                 "'prev_logprops'?)");
}

/* Keys that are not read are reported once each, whatever they are. */
TEST(unread_fields_are_listed) {
  char text[1024];
  sample_text s = plain;
  s.more = ", \"\": 1, \"new\": [1, [2, \"]\"]], \"new_one\": {\"a\": 2}, \"new\": 3";
  const token_request any = {0};
  token_log *log = NULL;
  const token_batch *b = NULL;
  ASSERT_OK(token_log_open_text(&log, text, print_sample(text, s), "log", &any, &err));
  ASSERT_OK(token_log_next(log, &b, &err));
  CU_ASSERT_STRING_EQUAL(token_log_about(log)->unread, "new, new_one");
  token_log_close(log);
}

/* Zeros stand for log-probabilities that NeMo-RL did not compute. */
TEST(placeholders_are_not_probabilities_of_one) {
  sample_text s = plain;
  s.logp = "[[0.0, 0.0, 0.0]]";
  refuses_sample(s, "prev_logprobs are all 0: NeMo-RL does not compute them with");
  s = plain;
  s.logq = "[[0, 0, -0.0]]";
  refuses_sample(s, "generation_logprobs are all 0");
}

TEST(groups_are_found_by_prompt_or_by_size) {
  char text[4096];
  size_t n = 0, responses = 0;
  static const char *const ids[] = {"0", "1", "2", "3"};
  for (size_t i = 0; i < 4; ++i) {
    sample_text s = plain;
    s.idx = ids[i];
    s.tokens = i < 2 ? "[[7, 8, 9]]" : "[[6, 8, 9]]";
    n += print_sample(text + n, s);
  }
  ASSERT_OK(read_text(text, 0, &responses, &err));
  CU_ASSERT_EQUAL(responses, 4);
  ASSERT_OK(read_text(text, 2, &responses, &err));
  expect_refusal(text, 4, "responses 1 and 3 of the batch are in one group of --group-size 4");
  expect_refusal(text, 3, "a batch of 4 responses cannot be split into groups of 3");
  text[n - 30] = '\0'; /* the fourth response is cut off, and with it the second group */
  ASSERT_OK(read_text(text, 0, &responses, &err));
  CU_ASSERT_EQUAL(responses, 2);
  ASSERT_OK(read_text(text, 2, &responses, &err));
  CU_ASSERT_EQUAL(responses, 2);
}

TEST(without_prompts_the_size_is_needed) {
  char text[2048];
  size_t responses = 0;
  sample_text s = plain;
  size_t n = print_sample(text, s);
  s.idx = "1";
  print_sample(text + n, s);
  char *second = strstr(strstr(text, "token_ids") + 1, "token_ids");
  memcpy(second, "token_xxx", 9);
  expect_refusal(text, 0, "token_ids is missing, which the lines before have");
  memcpy(second, "token_ids", 9);
  for (char *at = text; (at = strstr(at, "\"token_ids\": [[7, 8, 9]], ")) != NULL;)
    memset(at, ' ', strlen("\"token_ids\": [[7, 8, 9]], "));
  expect_refusal(text, 0, "give the number of responses per prompt with --group-size");
  ASSERT_OK(read_text(text, 2, &responses, &err));
  CU_ASSERT_EQUAL(responses, 2);
}

TEST(a_file_of_two_formats_is_refused_by_name) {
  sample_text s = plain;
  s.more = ", \"version_rle\": [], \"head_version\": 1";
  refuses_sample(s, "this line has the keys of two formats, nemo_rl and areal; say which one with "
                    "--format");
}

/* One line of prime-rl in parts: up to its schema, then the rest. */
static const char prime_line[] =
    "{\"schema_version\":%s,\"step\":%d,\"rank\":%d,\"export_sequence_idx\":%d,\"token_ids\":[5,6],"
    "\"loss_mask\":[false,true],\"advantages\":%s,\"inference_logprobs\":[null,-1],"
    "\"trainer_logprobs\":[null,-1],\"entropy\":[null,%s],\"rl_weights\":%s}\n";

TEST(prime_rl_is_refused_where_it_means_something_else) {
  char text[2048];
  size_t n = 0;
  n = (size_t)sprintf(text, prime_line, "1", 3, 0, 0, "[0.5,0.5]", "2", "[null,null]");
  sprintf(text + n, prime_line, "2", 3, 0, 1, "[0.5,0.5]", "2", "[null,null]");
  expect_refusal(text, 0, "log:2:19: schema_version is 2; this reader knows 1");
  sprintf(text + n, prime_line, "1", 3, 0, 2, "[0.5,0.5]", "2", "[null,null]");
  expect_refusal(text, 0, "export_sequence_idx is 2 where 1 is expected for rank 0");
  sprintf(text, prime_line, "1", 3, 0, 0, "[0.5,0.5]", "null", "[null,null]");
  expect_refusal(text, 0, "entropy[1] of a trained token is not finite");
  sprintf(text, prime_line, "1", 3, 0, 0, "[0.5,0.5]", "2", "[0,0.5]");
  expect_refusal(text, 0, "rl_weights has 0.5; only 0 and 1 are supported");
}

/* Advantages that differ between tokens are readable, but algorithms have one for each response. */
TEST(token_advantages_without_rewards_are_refused_by_algorithms) {
  static const char line[] =
      "{\"schema_version\":1,\"step\":1,\"rank\":0,\"export_sequence_idx\":0,\"token_ids\":[5,6],"
      "\"loss_mask\":[true,true],\"advantages\":[1,3],\"inference_logprobs\":[-1,-1],"
      "\"trainer_logprobs\":[-1,-1],\"entropy\":[1,1]}\n";
  const token_request any = {0};
  token_log *log = NULL;
  const token_batch *b = NULL;
  gl_error why = {0};
  ASSERT_OK(token_log_open_text(&log, line, sizeof line - 1, "log", &any, &err));
  ASSERT_OK(token_log_next(log, &b, &err));
  CU_ASSERT(b->advantages_vary);
  CU_ASSERT_EQUAL(b->trainer_advantage[0], 2);
  CU_ASSERT_EQUAL(token_log_check(log, &why), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "its advantages differ between the tokens"));
  token_log_close(log);
}

TEST(hostile_areal_versions_take_no_memory) {
  static const char line[] =
      "{\"task_id\": 1, \"sample_idx\": 0, \"seqlen\": 5, \"prompt_len\": 2, \"head_version\": 1, "
      "\"tail_version\": 1, \"version_rle\": %s, \"reward\": 1.0}\n";
  char text[512];
  size_t responses = 0;
  sprintf(text, line, "[[1, 2], [2, 9000000000]]");
  expect_refusal(text, 0, "version_rle has more tokens than the 5 of seqlen");
  sprintf(text, line, "[[1, 2], [2]]");
  expect_refusal(text, 0, "version_rle must be a list of [version, tokens]");
  sprintf(text, line, "[[1, 2] [2, 1]]");
  expect_refusal(text, 0, "version_rle must be a list of [version, tokens]");
  sprintf(text, line, "[[1, 2], [2, 1]]");
  ASSERT_OK(read_text(text, 0, &responses, &err));
  CU_ASSERT_EQUAL(responses, 1);
}

/* Numbers of every length and exponent: the same doubles as strtod() gives. */
TEST(numbers_are_the_nearest_doubles) {
  enum { N = 200000 };
  uint64_t state = 1;
  size_t n_wrong = 0;
  for (size_t i = 0; i < N; ++i) {
    char text[64];
    double got = 0;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const unsigned digits = (unsigned)(state >> 59), kind = (unsigned)(state >> 56) % 8;
    const double x = ldexp((double)(state >> 11), -53 - (int)(state >> 50 & 31));
    if (kind < 3)
      snprintf(text, sizeof text, "%.*g", 1 + (int)digits % 20, -x);
    else if (kind < 5)
      snprintf(text, sizeof text, "%.*f", 1 + (int)digits % 26, x);
    else if (kind == 5)
      snprintf(text, sizeof text, "%.17g", (double)(float)-x);
    else if (kind == 6)
      snprintf(text, sizeof text, "%.*e", (int)digits % 22, x * 1e300);
    else
      snprintf(text, sizeof text, "-%llu", (unsigned long long)state);
    n_wrong +=
        scan_number((scan_piece){text, strlen(text)}, &got) != NULL || got != strtod(text, NULL);
  }
  CU_ASSERT_EQUAL(n_wrong, 0);
}

/* Halves between two doubles, whose quotient in extended precision is not the last rounding. */
TEST(halves_are_rounded_to_even) {
  static const char *const texts[] = {"9007199254740993",
                                      "9007199254740995",
                                      "9007199254740992.5",
                                      "0.50000000000000005551",
                                      "1.00000000000000011102230246251565404",
                                      "4503599627370497.5",
                                      "-0.0",
                                      "0",
                                      "1e-5",
                                      "123456789012345678"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    double got = NAN;
    CU_ASSERT_PTR_NULL(scan_number((scan_piece){texts[i], strlen(texts[i])}, &got));
    CU_ASSERT_EQUAL(got, strtod(texts[i], NULL));
  }
  static const char *const wrong[] = {"",    "-",  "01",   "1.",  ".5",  "1e",
                                      "1e+", "+1", "0x10", "1 2", "Inf", "--1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    double got = NAN;
    CU_ASSERT_PTR_NOT_NULL(scan_number((scan_piece){wrong[i], strlen(wrong[i])}, &got));
  }
}
