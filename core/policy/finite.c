/* Results that are no numbers, or none that their arrays can hold: the first one, by its place. */
#include "core/policy/policy.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static int fits(double value, policy_kept kept) {
  switch (kept) {
  case POLICY_DOUBLE:
    return isfinite(value);
  case POLICY_SINGLE:
    return fabs(value) <= (double)FLT_MAX;
  }
  return 0;
}

enum { PLACE_SIZE = 80 };

/* "group 2, response 1", or "response 9" of the batch. */
static const char *place_of(const policy_input *in, size_t group, size_t i, int by_group,
                            char text[PLACE_SIZE]) {
  if (by_group)
    snprintf(text, PLACE_SIZE, "group %zu, response %zu", group, i - in->group_start[group]);
  else
    snprintf(text, PLACE_SIZE, "response %zu", i);
  return text;
}

static const char *limit_of(double value) {
  return isfinite(value) ? "single precision ends at 3.4e38, a log-ratio of 88"
                         : "double precision ends at a log-ratio of 709";
}

static gl_status refuse_token(const policy_input *in, const char *name, double value,
                              const char *place, size_t i, size_t t, gl_error *err) {
  double sum = 0;
  for (size_t k = in->token_start[i]; k < in->token_start[i + 1]; ++k)
    sum += in->logp[k] - in->logq[k];
  return gl_fail(err, GL_ENUMERIC,
                 "the %s of %s, token %zu is %g: %s, and logp - logq is %.6g at this token and "
                 "%.6g over the response; look for a wrong logp or logq in it or its group",
                 name, place, t - in->token_start[i], value, limit_of(value),
                 in->logp[t] - in->logq[t], sum);
}

static gl_status check_response(const policy_input *in, const policy_output *out,
                                const policy_keeping *keeping, size_t group, size_t i,
                                gl_error *err) {
  char place[PLACE_SIZE];
  (void)place_of(in, group, i, keeping->by_group, place);
  if (out->advantage != NULL && !fits(out->advantage[i], keeping->advantage))
    return gl_fail(err, GL_ENUMERIC,
                   "the advantage of %s is %g: the rewards of its group are too far apart for %s "
                   "precision",
                   place, out->advantage[i], isfinite(out->advantage[i]) ? "single" : "double");
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    if (out->weight != NULL && !fits(out->weight[t], keeping->weight))
      return refuse_token(in, "weight", out->weight[t], place, i, t, err);
    if (out->coefficient != NULL && !fits(out->coefficient[t], keeping->coefficient))
      return refuse_token(in, "coefficient", out->coefficient[t], place, i, t, err);
  }
  return GL_OK;
}

gl_status policy_check_finite(const policy_input *in, const policy_output *out,
                              const policy_keeping *keeping, gl_error *err) {
  for (size_t group = 0; group < in->n_groups; ++group)
    for (size_t i = in->group_start[group]; i < in->group_start[group + 1]; ++i) {
      const gl_status status = check_response(in, out, keeping, group, i, err);
      if (status != GL_OK) return status;
    }
  if (!isfinite(out->loss))
    return gl_fail(err, GL_ENUMERIC,
                   "the loss is %g although every coefficient is finite: its terms are too large "
                   "for a sum in double precision",
                   out->loss);
  return GL_OK;
}
