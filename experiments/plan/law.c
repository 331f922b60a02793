/* A distribution times a factor. */
#include "experiments/plan/law.h"

#include "core/base/json.h"
#include "sim/delay_distributions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The file that the distribution at node reads, as a path that holds from everywhere. NULL if
 * memory is short. */
static char *whole_path(const cfg_node *node) {
  const cfg_node *file = cfg_find(node, "file");
  char *found = cfg_locate(file, cfg_text(file));
  char *whole = found != NULL ? realpath(found, NULL) : NULL;
  if (whole == NULL) return found;
  free(found);
  return whole;
}

static int add_empirical(cJSON *to, const cfg_node *node, double factor) {
  const cfg_node *column = cfg_find(node, "column"), *scale = cfg_find(node, "scale");
  double own = 1;
  char *path = whole_path(node);
  int ok = path != NULL && json_add_string(to, "file", path) != NULL;
  if (ok && column != NULL) ok = json_add_string(to, "column", cfg_text(column)) != NULL;
  if (ok && scale != NULL) ok = cfg_number(scale, &own);
  free(path);
  return ok && json_add_number(to, "scale", own * factor) != NULL;
}

static int scaled_add_dist(cJSON *to, const delay_dist *dist, const cfg_node *node, double factor);

static int add_state(cJSON *to, const char *key, const delay_dist *dist, const cfg_node *node,
                     double factor) {
  cJSON *state = cJSON_AddObjectToObject(to, key);
  return state != NULL && scaled_add_dist(state, dist, cfg_find(node, key), factor);
}

static int add_two(cJSON *to, const char *a, double x, const char *b, double y) {
  return json_add_number(to, a, x) != NULL && json_add_number(to, b, y) != NULL;
}

static int scaled_add_parameters(cJSON *to, const delay_dist *dist, const cfg_node *node,
                                 double factor) {
  switch (dist->kind) {
  case DELAY_NONE:
    return 1;
  case DELAY_CONSTANT:
    return json_add_number(to, "value", dist->constant.value * factor) != NULL;
  case DELAY_UNIFORM:
    return add_two(to, "min", dist->uniform.min * factor, "max", dist->uniform.max * factor);
  case DELAY_EXPONENTIAL:
    return add_two(to, "mean", dist->exponential.mean * factor, "shift",
                   dist->exponential.shift * factor);
  case DELAY_LOGNORMAL:
    return add_two(to, "mu", dist->lognormal.mu + log(factor), "sigma", dist->lognormal.sigma);
  case DELAY_WEIBULL:
    return add_two(to, "shape", dist->weibull.shape, "scale", dist->weibull.scale * factor);
  case DELAY_GAMMA:
    return add_two(to, "shape", dist->gamma.shape, "scale", dist->gamma.scale * factor);
  case DELAY_PARETO:
    return add_two(to, "shape", dist->pareto.shape, "scale", dist->pareto.scale * factor);
  case DELAY_EMPIRICAL:
    return add_empirical(to, node, factor);
  case DELAY_GILBERT_ELLIOTT:
    return add_two(to, "to_bad", dist->gilbert_elliott.to_bad, "to_good",
                   dist->gilbert_elliott.to_good) &&
           add_state(to, "good", dist->gilbert_elliott.good, node, factor) &&
           add_state(to, "bad", dist->gilbert_elliott.bad, node, factor);
  case DELAY_KINDS:
    return 0;
  }
  return 0;
}

/* A clamp without an upper end has none in JSON, which knows no infinity. */
static int add_limits(cJSON *to, const delay_dist *dist, double factor) {
  static const double longest = 1e15;
  if (dist->offset != 0 && json_add_number(to, "offset", dist->offset * factor) == NULL) return 0;
  if (dist->clamp_lo <= 0 && isinf(dist->clamp_hi)) return 1;
  const double ends[] = {dist->clamp_lo * factor, fmin(dist->clamp_hi * factor, longest)};
  return json_add_numbers(to, "clamp", ends, 2) != NULL;
}

static int scaled_add_dist(cJSON *to, const delay_dist *dist, const cfg_node *node, double factor) {
  return json_add_string(to, "law", delay_dist_about(dist->kind)->name) != NULL &&
         scaled_add_parameters(to, dist, node, factor) && add_limits(to, dist, factor);
}

/* A constant is written as the number that it is. */
static cJSON *scaled_number_of(const delay_dist *dist, double factor) {
  char text[NUMBER_TEXT_SIZE];
  const double value = dist->kind == DELAY_NONE ? 0 : dist->constant.value;
  return cJSON_CreateRaw(number_text(value * factor, text));
}

gl_status plan_dist_times(char **out, const cfg_node *node, double factor, gl_error *err) {
  delay_dist *dist = NULL;
  *out = NULL;
  gl_status status = delay_parse(&dist, node, "law", NAN, err);
  if (status != GL_OK) return status;
  const int plain = (dist->kind == DELAY_NONE || dist->kind == DELAY_CONSTANT) &&
                    dist->offset == 0 && dist->clamp_lo <= 0 && isinf(dist->clamp_hi);
  cJSON *item = plain ? scaled_number_of(dist, factor) : cJSON_CreateObject();
  if (item != NULL && (plain || scaled_add_dist(item, dist, node, factor)))
    *out = cJSON_PrintUnformatted(item);
  cJSON_Delete(item);
  delay_free(dist);
  return *out != NULL ? GL_OK : gl_fail_memory(err, "a law");
}
