/* gepolab policy on two groups typed by hand against sums written out in plain Python
 * (tests/golden/policy_by_hand.py). */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>

/* Numbers of `want` at any depth against the same places of `got`. Returns how many agree, or -1 at
 * the first that does not. */
static int compare(const cJSON *want, const cJSON *got) {
  int n = 0;
  const cJSON *w, *g = got == NULL ? NULL : got->child;
  if (cJSON_IsNumber(want))
    return cJSON_IsNumber(got) && fabs(want->valuedouble - got->valuedouble) <= 1e-12 ? 1 : -1;
  cJSON_ArrayForEach(w, want) {
    const cJSON *other = w->string != NULL ? member_at(got, w->string) : g;
    int k = compare(w, other);
    if (k < 0) {
      fprintf(stderr, "differs at %s\n", w->string != NULL ? w->string : "an array's entry");
      return -1;
    }
    n += k;
    if (g != NULL) g = g->next;
  }
  return n;
}

static cJSON *load(const char *path) {
  static char text[65536];
  FILE *f = fopen(path, "rb");
  if (f == NULL) return NULL;
  size_t size = fread(text, 1, sizeof text, f);
  fclose(f);
  return cJSON_ParseWithLength(text, size);
}

static void two_groups_agree_with_sums_written_out(void) {
  cJSON *root = load("tests/golden/policy_by_hand.json");
  CU_ASSERT_PTR_NOT_NULL_FATAL(root);
  char *input = cJSON_PrintUnformatted(member_at(root, "input"));
  const cJSON *c, *word;
  int cases = 0;
  cJSON_ArrayForEach(c, member_at(root, "cases")) {
    const char *arguments[CLI_MAX_ARGUMENTS] = {"policy", "-", "--json", "--algorithm"};
    int n = 4;
    cJSON_ArrayForEach(word, member_at(c, "arguments")) arguments[n++] = word->valuestring;
    cli_result r = cli_run(input, arguments);
    cJSON *got = cJSON_Parse(r.out);
    CU_ASSERT_EQUAL(r.code, 0);
    /* 11 tokens: a weight and a coefficient each, and 5 advantages */
    CU_ASSERT_EQUAL(compare(member_at(c, "groups"), member_at(got, "groups")), 27);
    CU_ASSERT_EQUAL(compare(member_at(c, "metrics"), got), 12);
    cJSON_Delete(got);
    cli_result_fini(&r);
    cases++;
  }
  CU_ASSERT_EQUAL(cases, 3);
  free(input);
  cJSON_Delete(root);
}

SUITE(cli_policy_by_hand, "cli: policy by hand", TEST(two_groups_agree_with_sums_written_out));
