/* Reads the golden cases of the policy module and evaluates them. */
#include "tests/support/policy_fixture.h"
#include "tests/support/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double fixture_number(const cJSON *value) {
  return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static void fill(double *to, size_t *n, const cJSON *from) {
  const cJSON *v;
  cJSON_ArrayForEach(v, from) to[(*n)++] = fixture_number(v);
}

static void read_input(fixture_input *a, const cJSON *from) {
  const struct {
    const char *name;
    double *to;
  } token[] = {{"logp", a->logp},
               {"logq", a->logq},
               {"logprox", a->logprox},
               {"logref", a->logref},
               {"version_gap", a->version_gap},
               {"entropy", a->entropy},
               {"entropy_prox", a->entropy_prox}};
  const cJSON *group, *response;
  size_t g = 0, i = 0, t = 0, n = 0;
  cJSON_ArrayForEach(group, cJSON_GetObjectItem(from, "groups")) {
    cJSON_ArrayForEach(response, group) {
      size_t from_token = t;
      a->reward[i++] = cJSON_GetObjectItem(response, "reward")->valuedouble;
      for (size_t k = 0; k < sizeof token / sizeof token[0]; k++) {
        t = from_token;
        fill(token[k].to, &t, cJSON_GetObjectItem(response, token[k].name));
      }
      a->token_start[i] = t;
    }
    a->group_start[++g] = i;
  }
  fill(a->log_denominator, &n, cJSON_GetObjectItem(from, "log_denominator"));
  a->in = (policy_input){.n_groups = g,
                         .n_responses = i,
                         .n_tokens = t,
                         .group_start = a->group_start,
                         .token_start = a->token_start,
                         .reward = a->reward,
                         .logp = a->logp,
                         .logq = a->logq,
                         .logprox = a->logprox,
                         .logref = a->logref,
                         .entropy = a->entropy,
                         .entropy_prox = a->entropy_prox,
                         .version_gap = a->version_gap,
                         .log_denominator = a->log_denominator,
                         .max_length = (size_t)cJSON_GetObjectItem(from, "max_length")->valueint};
}

static cJSON *load(const char *path) {
  char *text = files_text(path);
  cJSON *root = text != NULL ? cJSON_Parse(text) : NULL;
  free(text);
  return root;
}

fixture *fixture_open(void) {
  fixture *f = calloc(1, sizeof *f);
  size_t n = 0;
  const cJSON *input;
  if (f == NULL || (f->root = load("tests/golden/policy_cases.json")) == NULL) {
    free(f);
    return NULL;
  }
  f->cases = cJSON_GetObjectItem(f->root, "cases");
  f->workspace = policy_workspace_new();
  cJSON_ArrayForEach(input, cJSON_GetObjectItem(f->root, "inputs")) {
    if (n < FIXTURE_INPUTS) read_input(&f->input[n++], input);
  }
  return f;
}

void fixture_free(fixture *f) {
  if (f == NULL) return;
  policy_workspace_free(f->workspace);
  cJSON_Delete(f->root);
  free(f);
}

static int set_field(policy_algorithm *algorithm, const cJSON *v) {
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *f = policy_fields_at(i);
    void *at = (char *)algorithm + f->offset;
    if (strcmp(f->name, v->string) != 0) continue;
    if (f->kind == POLICY_FIELD_NUMBER) *(double *)at = v->valuedouble;
    if (f->kind == POLICY_FIELD_COUNT) *(size_t *)at = (size_t)v->valueint;
    if (f->kind == POLICY_FIELD_FLAG) *(int *)at = cJSON_IsTrue(v);
    if (f->kind != POLICY_FIELD_CHOICE) return 1;
    for (int k = 0; k < f->n_choices; k++)
      if (strcmp(f->choice(k), v->valuestring) == 0) {
        *(int *)at = k;
        return 1;
      }
  }
  return 0;
}

int fixture_row(const cJSON *a_case, policy_algorithm *algorithm) {
  const policy_algorithm *base =
      policy_algorithms_find(cJSON_GetObjectItem(a_case, "algorithm")->valuestring);
  const cJSON *v;
  if (base == NULL) return 0;
  *algorithm = *base;
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(a_case, "change")) {
    if (!set_field(algorithm, v)) return 0;
  }
  return 1;
}

const policy_input *fixture_input_of(const fixture *f, const cJSON *a_case, const cJSON **json) {
  int k = cJSON_GetObjectItem(a_case, "input")->valueint;
  if (json != NULL) *json = cJSON_GetArrayItem(cJSON_GetObjectItem(f->root, "inputs"), k);
  return &f->input[k].in;
}

int fixture_evaluate(const fixture *f, const policy_algorithm *algorithm, const policy_input *in,
                     fixture_output *to) {
  gl_error err = {0};
  memset(to, 0, sizeof *to);
  to->out = (policy_output){.advantage = to->advantage,
                            .weight = to->weight,
                            .coefficient = to->coefficient,
                            .baseline = to->baseline,
                            .scale = to->scale,
                            .mean_aw = to->mean_aw};
  if (policy_evaluate(algorithm, in, &to->out, f->workspace, &err) == GL_OK) return 1;
  fprintf(stderr, "%s\n", err.text);
  return 0;
}
