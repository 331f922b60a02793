/* Every algorithm, and every value of every field, against losses differentiated by PyTorch, and
 * every metric against its definition in extended precision (tests/golden/policy_oracle.py,
 * metrics_oracle.py). */
#include "tests/support/policy_fixture.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("policy: golden");

static const double tolerance = 1e-10;

/* Both NaN, the same infinity, or closer than `tolerance` of size. */
static int close_to(double mine, double want, double size) {
  if (isnan(want)) return isnan(mine);
  return mine == want || fabs(mine - want) <= tolerance * size;
}

/* Agreement to `tolerance` of the largest entry (and at least 1). */
static int agree(const char *what, const double *mine, const cJSON *theirs, size_t n) {
  double size = 1;
  const cJSON *v;
  size_t i = 0;
  cJSON_ArrayForEach(v, theirs) {
    double want = fixture_number(v);
    size = isfinite(want) ? fmax(size, fabs(want)) : size;
  }
  cJSON_ArrayForEach(v, theirs) {
    if (i >= n || !close_to(mine[i], fixture_number(v), size)) {
      fprintf(stderr, "%s %zu: %.17g, oracle %.17g\n", what, i, i < n ? mine[i] : NAN,
              fixture_number(v));
      return 0;
    }
    i++;
  }
  return i == n;
}

/* The oracle has one log weight per token, or one per response for a response's ratio. */
static int weights_agree(const policy_input *in, const double *mine, const cJSON *logs) {
  size_t n = (size_t)cJSON_GetArraySize(logs);
  int tokens = n == in->n_tokens;
  const cJSON *v = logs->child;
  for (size_t i = 0; i < in->n_responses; i++) {
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++) {
      double want = exp(fixture_number(v));
      if (!close_to(mine[t], want, fmax(1, want))) {
        fprintf(stderr, "weight %zu: %.17g, oracle %.17g\n", t, mine[t], want);
        return 0;
      }
      if (tokens) v = v->next;
    }
    if (!tokens) v = v->next;
  }
  return v == NULL && (tokens || n == in->n_responses);
}

static int metric_agrees(const char *name, double mine, double want) {
  int ok = close_to(mine, want, fmax(1, fabs(want)));
  if (!ok) fprintf(stderr, "%s: %.17g, oracle %.17g\n", name, mine, want);
  return ok;
}

static int metrics_agree(const fixture *f, const cJSON *c, const cJSON *input, const double *mine) {
  const cJSON *names = cJSON_GetObjectItem(f->root, "metrics"), *v;
  const cJSON *own = cJSON_GetObjectItem(c, "metrics");
  int ok = cJSON_GetArraySize(own) == cJSON_GetArraySize(names);
  for (int k = 0; k < cJSON_GetArraySize(names); k++) {
    const char *name = cJSON_GetArrayItem(names, k)->valuestring;
    ok = metric_agrees(name, mine[metric_find(name)], fixture_number(cJSON_GetArrayItem(own, k))) &&
         ok;
  }
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(input, "metrics")) {
    ok = metric_agrees(v->string, mine[metric_find(v->string)], fixture_number(v)) && ok;
  }
  return ok;
}

/* A = (r - b) / s wherever both are defined and the group was not dropped. */
static int advantage_is_reward_less_baseline_over_scale(const policy_input *in,
                                                        const fixture_output *o) {
  for (size_t g = 0; g < in->n_groups; g++)
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; i++) {
      double a = (in->reward[i] - o->baseline[g]) / o->scale[g];
      if (!isnan(a) && o->advantage[i] != 0 && fabs(a - o->advantage[i]) > 1e-12 * fmax(1, fabs(a)))
        return 0;
    }
  return 1;
}

static int check_case(const fixture *f, const cJSON *c) {
  static fixture_output o;
  policy_algorithm algorithm;
  const cJSON *json;
  const policy_input *in = fixture_input_of(f, c, &json);
  if (!fixture_row(c, &algorithm) || !fixture_evaluate(f, &algorithm, in, &o)) return 0;
  double loss = fixture_number(cJSON_GetObjectItem(c, "loss"));
  int ok = metric_agrees("loss", o.out.loss, loss) && o.out.metric[METRIC_LOSS] == o.out.loss;
  ok = agree("advantage", o.advantage, cJSON_GetObjectItem(c, "advantages"), in->n_responses) && ok;
  ok = weights_agree(in, o.weight, cJSON_GetObjectItem(c, "log_weights")) && ok;
  ok = agree("coefficient", o.coefficient, cJSON_GetObjectItem(c, "coefficients"), in->n_tokens) &&
       ok;
  ok = agree("mean_aw", o.mean_aw, cJSON_GetObjectItem(c, "mean_aw"), in->n_groups) && ok;
  ok = advantage_is_reward_less_baseline_over_scale(in, &o) && ok;
  return metrics_agree(f, c, json, o.out.metric) && ok;
}

TEST(every_row_field_and_metric_agrees_with_autograd_and_definitions) {
  fixture *f = fixture_open();
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  const cJSON *c;
  int n = 0;
  cJSON_ArrayForEach(c, f->cases) {
    int ok = check_case(f, c);
    if (!ok) {
      char *change = cJSON_PrintUnformatted(cJSON_GetObjectItem(c, "change"));
      fprintf(stderr, "case %d: %s %s input %d\n", n,
              cJSON_GetObjectItem(c, "algorithm")->valuestring, change,
              cJSON_GetObjectItem(c, "input")->valueint);
      free(change);
    }
    CU_ASSERT(ok);
    n++;
  }
  CU_ASSERT(n > 700);
  fixture_free(f);
}
