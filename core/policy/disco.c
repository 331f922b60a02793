/* DisCO (2505.12366): scores of right answers against those of wrong ones, and the penalty that
 * keeps the learner near the sampler. The score is the mean token log-probability (ratio: none) or
 * the mean token ratio (ratio: token). advantage is the score's weight h_i. */
#include "core/policy/internal.h"

static double score(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0;
  for (size_t t = lo; t < hi; t++)
    sum += s->algorithm->ratio == RATIO_TOKEN ? s->weight[t] : s->in->logp[t];
  return hi > lo ? sum / (double)(hi - lo) : 0;
}

static double question(policy_state *s, size_t g) {
  const policy_input *in = s->in;
  size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  double right = 0, wrong = 0, top = -INFINITY, sum = 0, gain = 0, lost = 0;
  int softmax = s->algorithm->negatives == NEGATIVES_SOFTMAX;
  for (size_t i = lo; i < hi; i++) {
    s->advantage[i] = 0;
    s->seq_x[i] = score(s, i);
    if (in->reward[i] == 1)
      right += 1;
    else
      wrong += 1;
    if (in->reward[i] == 0) top = fmax(top, s->seq_x[i] / s->algorithm->disco_tau);
  }
  if (right == 0 || wrong == 0) return 0;
  for (size_t i = lo; i < hi; i++) {
    if (in->reward[i] == 1)
      gain += s->seq_x[i] / right;
    else
      lost += s->seq_x[i] / wrong;
    double e = s->seq_x[i] / s->algorithm->disco_tau;
    if (in->reward[i] == 0) sum += e == top ? 1 : exp(e - top);
  }
  for (size_t i = lo; i < hi; i++) {
    double e = s->seq_x[i] / s->algorithm->disco_tau,
           share = e == top ? 1 / sum : exp(e - top) / sum;
    s->advantage[i] = in->reward[i] == 1 ? 1 / right : (softmax ? -share : -1 / wrong);
  }
  if (softmax) lost = s->algorithm->disco_tau * (top + log(sum / wrong));
  return isinf(gain) && isinf(lost) ? -lost : gain - lost;
}

gl_status policy_disco(policy_state *s, gl_error *err) {
  const policy_input *in = s->in;
  double drift = 0, questions = (double)in->n_groups, tokens = (double)in->n_tokens;
  if (policy_ratios(s, err) != GL_OK) return GL_EINPUT;
  for (size_t g = 0; g < in->n_groups; g++) {
    double j = question(s, g);
    s->objective += j / questions;
    s->baseline[g] = s->scale[g] = NAN;
  }
  for (size_t t = 0; t < in->n_tokens; t++) drift += (in->logq[t] - in->logp[t]) / tokens;
  double push = s->algorithm->penalty * fmax(0, drift - s->algorithm->penalty_margin);
  s->objective -= policy_times(push, drift);
  for (size_t i = 0; i < in->n_responses; i++) {
    double h = s->advantage[i] / (questions * fmax(1, s->kept[i]));
    s->z[i] = 1 / tokens;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++) {
      double d = s->algorithm->ratio == RATIO_TOKEN ? s->weight[t] : 1;
      if (s->algorithm->ratio == RATIO_TOKEN && !policy_token_open(s, t)) d = 0;
      s->coefficient[t] = policy_times(h, d) + push / tokens;
    }
  }
  return GL_OK;
}
