/* Regular expressions, and the names that rules make. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "analysis/import/pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
  pcre2_code *code;
  pcre2_match_data *found;
  pcre2_match_context *limits;
  char *option; /* in errors */
  char *name;   /* the right side of a rule; NULL: an expression alone */
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

/* The name of a rule may refer to the groups that there are. */
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

int pattern_has_group(const pattern *p) {
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
