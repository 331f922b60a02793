/* Names of metrics in other programs' logs. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "analysis/import/metric_names.h"

#include "analysis/import/read.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Name components that correspond to one of gepolab's metrics, in logs whose program is not known.
 * Whole names of known programs are in trainer_metrics.c, which comes first. */
static const struct {
  const char *component;
  metric known;
} foreign[] = {
    /* released GEPO code */
    {"step_diff", METRIC_STALENESS},
    {"ratio_pEqQ", METRIC_IW_VARIANCE_GEPO},
    /* TRL */
    {"reward", METRIC_REWARD_MEAN},
    {"kl", METRIC_KL_REF},
    {"approx_kl", METRIC_KL_K3},
    {"approxkl_avg", METRIC_KL_K3},
    {"learning_rate", METRIC_LR},
    {"completion_length", METRIC_RESPONSE_LENGTH},
    {"clip_ratio", METRIC_CLIP_FRACTION},
    /* verl */
    {"kl_loss", METRIC_KL_REF},
    /* others */
    {"kl_div", METRIC_KL_REF},
    {"kl_divergence", METRIC_KL_REF},
    {"mean_kl", METRIC_KL_REF},
    {"pg_loss", METRIC_LOSS},
    {"pg_clipfrac", METRIC_CLIP_FRACTION},
    {"response_length", METRIC_RESPONSE_LENGTH},
};
enum { N_FOREIGN = sizeof foreign / sizeof *foreign };

/* First components, or whole names, of scores. */
static const char *const evaluations[] = {"eval",       "evaluation", "test",    "val",
                                          "validation", "benchmark",  "val-core"};
static const char *const scores[] = {"eval_score",   "score",       "accuracy",
                                     "acc",          "pass@1",      "pass_rate",
                                     "success_rate", "exact_match", "mean_score"};

static bool is_component(const char *at, size_t n, const char *word) {
  return strlen(word) == n && strncasecmp(at, word, n) == 0;
}

static metric known_component(const char *at, size_t n) {
  for (int m = 0; m < METRIC_COUNT; m++)
    if (is_component(at, n, metric_about((metric)m)->name)) return (metric)m;
  for (size_t i = 0; i < N_FOREIGN; i++)
    if (is_component(at, n, foreign[i].component)) return foreign[i].known;
  return METRIC_COUNT;
}

/* The metric of the last known component. After it only a word for "mean" may follow, because
 * "response_length/max" and "response_length/clip_ratio" are other quantities. */
static metric known_metric(const char *name) {
  static const char *const means[] = {"mean", "avg", "average"};
  const foreign_metric *f = foreign_find(name);
  if (f) return f->known;
  metric found = METRIC_COUNT;
  for (const char *at = name;;) {
    const size_t n = strcspn(at, "/");
    const metric here = known_component(at, n);
    bool is_mean = false;
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
      is_mean |= is_component(at, n, means[i]);
    if (here < METRIC_COUNT)
      found = here;
    else if (!is_mean)
      found = METRIC_COUNT;
    if (at[n] == '\0') return found;
    at += n + 1;
  }
}

static bool is_evaluation(const char *name) {
  const size_t n = strcspn(name, "/");
  for (size_t i = 0; i < sizeof evaluations / sizeof *evaluations; i++)
    if (name[n] == '/' && is_component(name, n, evaluations[i])) return true;
  return false;
}

static bool is_score_word(const char *name) {
  const char *slash = strrchr(name, '/');
  const char *last = slash ? slash + 1 : name;
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
    if (is_component(last, strlen(last), scores[i])) return true;
  return false;
}

quantity quantity_of(const char *name) {
  const metric known = known_metric(name);
  const int evaluation = is_evaluation(name), word = is_score_word(name);
  quantity q = {.known = evaluation ? METRIC_COUNT : known, .better = METRIC_HIGHER_IS_BETTER};
  if (known < METRIC_COUNT) q.better = metric_better(known);
  /* A loss on an evaluation set is not a score. */
  q.is_score =
      (evaluation || (word && known == METRIC_COUNT)) && q.better == METRIC_HIGHER_IS_BETTER;
  q.is_guessed = known == METRIC_COUNT && !q.is_score;
  return q;
}

bool quantity_is_named(const char *heading) {
  static const char *const phases[] = {"train",  "training", "rollout", "actor",
                                       "critic", "timing",   "perf"};
  const size_t n = strcspn(heading, "/");
  for (size_t i = 0; heading[n] == '/' && i < sizeof phases / sizeof *phases; i++)
    if (is_component(heading, n, phases[i])) return true;
  return !quantity_of(heading).is_guessed;
}

/* --- regular expressions and rename rules --- */

struct pattern {
  pcre2_code *code;
  pcre2_match_data *found;
  pcre2_match_context *limits;
  char *option; /* name of the option, for error messages */
  char *name;   /* replacement of a rule; NULL: an expression alone */
  uint32_t groups;
};

enum { MOST_STEPS = 1000000, MOST_REGEX = 4096 };

void pattern_free(pattern *p) {
  if (!p) return;
  pcre2_code_free(p->code);
  pcre2_match_data_free(p->found);
  pcre2_match_context_free(p->limits);
  free(p->option), free(p->name), free(p);
}

/* --- compiling --- */

static gl_status compile(pattern *p, const char *regex, size_t size, gl_error *err) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  if (size > MOST_REGEX)
    return gl_fail(err, GL_EINPUT, "%s: the regular expression has more than %d bytes", p->option,
                   (int)MOST_REGEX);
  p->code = pcre2_compile((PCRE2_SPTR)regex, size,
                          PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &error,
                          &offset, NULL);
  if (!p->code) {
    PCRE2_UCHAR message[160] = "";
    pcre2_get_error_message(error, message, sizeof message);
    return gl_fail(err, GL_EINPUT, "%s: '%.*s' is no regular expression: %s at character %zu",
                   p->option, (int)size, regex, (const char *)message, (size_t)offset + 1);
  }
  p->found = pcre2_match_data_create_from_pattern(p->code, NULL);
  p->limits = pcre2_match_context_create(NULL);
  if (!p->found || !p->limits) return gl_fail_memory(err, "a regular expression");
  pcre2_set_match_limit(p->limits, MOST_STEPS);
  pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &p->groups);
  return GL_OK;
}

/* Checks that the replacement refers only to capture groups that the regular expression has. */
static gl_status check_name(const pattern *p, gl_error *err) {
  for (const char *c = p->name; *c; c++) {
    if (*c != '$') continue;
    c++;
    if (*c == '$') continue;
    if (*c < '0' || *c > '9')
      return gl_fail(err, GL_EINPUT,
                     "%s: in the name '%s' a digit or another $ must follow each $ ($1 stands for "
                     "the first group)",
                     p->option, p->name);
    if ((uint32_t)(*c - '0') > p->groups)
      return gl_fail(err, GL_EINPUT,
                     "%s: the name '%s' asks for group %c, and the expression has %u groups; put "
                     "parentheses around what is meant",
                     p->option, p->name, *c, (unsigned)p->groups);
  }
  return GL_OK;
}

static gl_status make(pattern **out, const char *regex, size_t size, const char *name,
                      const char *option, gl_error *err) {
  *out = NULL;
  pattern *p = calloc(1, sizeof *p);
  if (!p) return gl_fail_memory(err, "a regular expression");
  p->option = strdup(option);
  p->name = name ? strdup(name) : NULL;
  gl_status status = GL_OK;
  if (!p->option || (name && !p->name)) status = gl_fail_memory(err, "a regular expression");
  if (status == GL_OK) status = compile(p, regex, size, err);
  if (status == GL_OK && name) status = check_name(p, err);
  if (status == GL_OK)
    *out = p;
  else
    pattern_free(p);
  return status;
}

gl_status pattern_new(pattern **out, const char *regex, const char *option, gl_error *err) {
  return make(out, regex, strlen(regex), NULL, option, err);
}

gl_status pattern_new_rule(pattern **out, const char *rule, const char *option, gl_error *err) {
  const char *equals = strchr(rule, '=');
  *out = NULL;
  if (!equals || equals == rule || equals[1] == '\0')
    return gl_fail(err, GL_EINPUT, "%s needs REGEX=NAME, such as '^GEPO_.*=gepo', but got '%s'",
                   option, rule);
  return make(out, rule, (size_t)(equals - rule), equals + 1, option, err);
}

bool pattern_has_group(const pattern *p) {
  return p->groups > 0;
}

/* --- matching --- */

static gl_status match(const pattern *p, const char *text, int *found, gl_error *err) {
  const int rc = pcre2_match(p->code, (PCRE2_SPTR)text, strlen(text), 0, 0, p->found, p->limits);
  *found = rc > 0;
  if (rc > 0 || rc == PCRE2_ERROR_NOMATCH) return GL_OK;
  if (rc == PCRE2_ERROR_NOMEMORY) return gl_fail_memory(err, "matching a name");
  PCRE2_UCHAR message[160] = "";
  pcre2_get_error_message(rc, message, sizeof message);
  return gl_fail(err, GL_EINPUT,
                 "%s: matching '%.100s' was given up: %s; write a simpler expression", p->option,
                 text, (const char *)message);
}

gl_status pattern_matches(const pattern *p, const char *text, int *found, gl_error *err) {
  return match(p, text, found, err);
}

static void write_group(const pattern *p, const char *text, uint32_t group, FILE *to) {
  const PCRE2_SIZE *span = pcre2_get_ovector_pointer(p->found) + 2 * group;
  if (span[0] != PCRE2_UNSET && span[1] >= span[0])
    fwrite(text + span[0], 1, span[1] - span[0], to);
}

static void write_name(const pattern *p, const char *text, FILE *to) {
  if (!p->name) write_group(p, text, 1, to);
  for (const char *c = p->name; c && *c; c++) {
    if (*c != '$')
      fputc(*c, to);
    else if (*++c == '$')
      fputc('$', to);
    else
      write_group(p, text, (uint32_t)(*c - '0'), to);
  }
}

gl_status pattern_apply(const pattern *p, const char *text, char **out, gl_error *err) {
  int found = 0;
  size_t size = 0;
  *out = NULL;
  gl_status status = match(p, text, &found, err);
  if (status != GL_OK || !found) return status;
  FILE *to = open_memstream(out, &size);
  if (!to) return gl_fail_memory(err, "a name");
  write_name(p, text, to);
  if (fclose(to) != 0) {
    free(*out);
    *out = NULL;
    return gl_fail_memory(err, "a name");
  }
  if (size > 0) return GL_OK;
  free(*out);
  *out = NULL;
  return gl_fail(err, GL_EINPUT, "%s: nothing is left of the name '%.100s'", p->option, text);
}
