/* Every row, and every value of every field, against losses differentiated by PyTorch
 * (tests/golden/policy_oracle.py). */
#include "core/policy.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 1e-10;

static cJSON *load(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) return NULL;
  fseek(f, 0, SEEK_END);
  size_t size = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(size + 1);
  size_t got = fread(text, 1, size, f);
  text[got] = 0;
  cJSON *root = cJSON_Parse(text);
  free(text);
  fclose(f);
  return root;
}

typedef struct arrays {
  size_t group_start[16], token_start[64];
  double reward[64], logp[512], logq[512], logprox[512], logref[512], denominator[16];
  policy_input in;
} arrays;

static void fill(double *to, size_t *n, const cJSON *from) {
  const cJSON *v;
  cJSON_ArrayForEach(v, from) to[(*n)++] = v->valuedouble;
}

static void read_input(arrays *a, const cJSON *from) {
  const cJSON *group, *response;
  size_t g = 0, i = 0, p = 0, q = 0, x = 0, r = 0, d = 0;
  memset(a, 0, sizeof *a);
  cJSON_ArrayForEach(group, cJSON_GetObjectItem(from, "groups")) {
    cJSON_ArrayForEach(response, group) {
      a->reward[i++] = cJSON_GetObjectItem(response, "reward")->valuedouble;
      fill(a->logp, &p, cJSON_GetObjectItem(response, "logp"));
      fill(a->logq, &q, cJSON_GetObjectItem(response, "logq"));
      fill(a->logprox, &x, cJSON_GetObjectItem(response, "logprox"));
      fill(a->logref, &r, cJSON_GetObjectItem(response, "logref"));
      a->token_start[i] = p;
    }
    a->group_start[++g] = i;
  }
  fill(a->denominator, &d, cJSON_GetObjectItem(from, "log_denominator"));
  a->in = (policy_input){.n_groups = g, .n_responses = i, .n_tokens = p};
  a->in.group_start = a->group_start;
  a->in.token_start = a->token_start;
  a->in.reward = a->reward;
  a->in.logp = a->logp;
  a->in.logq = a->logq;
  a->in.logprox = a->logprox;
  a->in.logref = a->logref;
  a->in.log_denominator = a->denominator;
  a->in.max_length = (size_t)cJSON_GetObjectItem(from, "max_length")->valueint;
}

static int set_field(policy_row *row, const cJSON *v) {
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *f = policy_fields_at(i);
    void *at = (char *)row + f->offset;
    if (strcmp(f->name, v->string) != 0) continue;
    if (f->kind == FIELD_NUMBER) *(double *)at = v->valuedouble;
    if (f->kind == FIELD_COUNT) *(size_t *)at = (size_t)v->valueint;
    if (f->kind == FIELD_BOOL) *(int *)at = cJSON_IsTrue(v);
    for (int k = 0; f->kind == FIELD_CHOICE && k < f->n_choices; k++)
      if (strcmp(f->choices[k], v->valuestring) == 0) *(int *)at = k;
    return 1;
  }
  return 0;
}

/* Agreement to `tolerance` of the largest entry (and at least 1). Infinities must match. */
static int agree(const double *mine, const cJSON *theirs, size_t n) {
  double size = 1;
  const cJSON *v;
  size_t i = 0;
  cJSON_ArrayForEach(v, theirs) size =
      fmax(size, isfinite(v->valuedouble) ? fabs(v->valuedouble) : 0);
  cJSON_ArrayForEach(v, theirs) {
    double want = v->valuedouble;
    int same = mine[i] == want || fabs(mine[i] - want) <= tolerance * size;
    if (!same) {
      fprintf(stderr, "entry %zu: %.17g, oracle %.17g\n", i, mine[i], want);
      return 0;
    }
    i++;
  }
  return i == n;
}

static int check_case(const cJSON *c, const cJSON *inputs, policy_workspace *ws) {
  static arrays a;
  double advantage[64], weight[512], coefficient[512];
  gl_error err = {0};
  policy_output out = {.advantage = advantage, .weight = weight, .coefficient = coefficient};
  policy_row row = *policy_rows_find(cJSON_GetObjectItem(c, "row")->valuestring);
  const cJSON *v, *loss = cJSON_GetObjectItem(c, "loss");
  int ok = 1;
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(c, "change")) ok = ok && set_field(&row, v);
  read_input(&a, cJSON_GetArrayItem(inputs, cJSON_GetObjectItem(c, "input")->valueint));
  if (policy_evaluate(&row, &a.in, &out, ws, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 0;
  }
  double want = loss->valuedouble;
  int loss_agrees = out.loss == want || fabs(out.loss - want) <= tolerance * fmax(1, fabs(want));
  if (!loss_agrees) fprintf(stderr, "loss %.17g, oracle %.17g\n", out.loss, want);
  return ok && loss_agrees &&
         agree(advantage, cJSON_GetObjectItem(c, "advantages"), a.in.n_responses) &&
         agree(weight, cJSON_GetObjectItem(c, "weights"), a.in.n_tokens) &&
         agree(coefficient, cJSON_GetObjectItem(c, "coefficients"), a.in.n_tokens);
}

static void every_row_and_field_agrees_with_autograd(void) {
  cJSON *root = load("tests/golden/policy_cases.json");
  CU_ASSERT_PTR_NOT_NULL_FATAL(root);
  policy_workspace *ws = policy_workspace_new();
  const cJSON *c, *inputs = cJSON_GetObjectItem(root, "inputs");
  int n = 0;
  cJSON_ArrayForEach(c, cJSON_GetObjectItem(root, "cases")) {
    int ok = check_case(c, inputs, ws);
    if (!ok) {
      char *change = cJSON_PrintUnformatted(cJSON_GetObjectItem(c, "change"));
      fprintf(stderr, "case %d: %s %s input %d\n", n, cJSON_GetObjectItem(c, "row")->valuestring,
              change, cJSON_GetObjectItem(c, "input")->valueint);
      free(change);
    }
    CU_ASSERT(ok);
    n++;
  }
  CU_ASSERT(n > 300);
  policy_workspace_free(ws);
  cJSON_Delete(root);
}

static void every_published_row_is_in_the_fixture(void) {
  cJSON *root = load("tests/golden/policy_cases.json");
  CU_ASSERT_PTR_NOT_NULL_FATAL(root);
  for (size_t i = 0; i < policy_rows_count(); i++) {
    const cJSON *c;
    int found = 0;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(root, "cases")) found =
        found || strcmp(cJSON_GetObjectItem(c, "row")->valuestring, policy_rows_at(i)->name) == 0;
    CU_ASSERT(found);
  }
  cJSON_Delete(root);
}

SUITE(policy_golden, "policy: golden", TEST(every_row_and_field_agrees_with_autograd),
      TEST(every_published_row_is_in_the_fixture));
