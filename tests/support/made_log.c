#include "tests/support/made_log.h"

#include "core/random/rng.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>

made_plan made_healthy(void) {
  return (made_plan){
      .floor = 5e-4, .slope = 5e-4, .lags = 4, .groups = 8, .size = 8, .updates = 16};
}

made_plan made_with(diagnose_cause cause) {
  made_plan p = made_healthy();
  switch (cause) {
  case CAUSE_MISMATCH:
    p.floor = 0.02;
    break;
  case CAUSE_AGE:
    p.slope = 0.01, p.lags = 8;
    break;
  case CAUSE_RATE:
    p.slope = 0.06;
    break;
  case CAUSE_SMALL_BATCH:
    p.groups = 2, p.size = 4;
    break;
  case CAUSE_DISCARD:
    p.dropped = 0.25, p.dropped_length = 2;
    break;
  case CAUSE_GENERATION:
  case CAUSE_SYNC:
  case CAUSE_ENVIRONMENT:
  case CAUSE_COUNT:
    break;
  }
  return p;
}

enum { LEAST_TOKENS = 8, TOKENS = 16 }; /* lengths are uniform on 8 .. 23 */

static double uniform(rng_stream s, uint64_t index) {
  return rng_u01(rng_block(s, index).v[0]);
}

made_update made_update_of(const made_plan *plan, size_t u) {
  const size_t responses = plan->groups * plan->size, most = responses * (LEAST_TOKENS + TOKENS);
  const rng_stream draw = rng_stream_at(27, RNG_TEST, 2 * u),
                   noise = rng_stream_at(27, RNG_TEST, 2 * u + 1);
  made_update m = {.memory = calloc(3 * most + responses, sizeof(double)),
                   .starts = calloc(responses + plan->groups + 2, sizeof(size_t))};
  CU_ASSERT_PTR_NOT_NULL_FATAL(m.memory);
  CU_ASSERT_PTR_NOT_NULL_FATAL(m.starts);
  double *logp = m.memory, *logq = logp + most, *gap = logq + most, *reward = gap + most;
  size_t *tokens = m.starts, *groups = tokens + responses + 1, t = 0;
  for (size_t g = 0; g < plan->groups; ++g) {
    const double lag = fmin(floor(uniform(draw, g) * (double)plan->lags), (double)u);
    const double variance = 2 * (plan->floor + plan->slope * lag);
    groups[g + 1] = (g + 1) * plan->size;
    for (size_t i = g * plan->size; i < groups[g + 1]; ++i) {
      const size_t n = LEAST_TOKENS + (size_t)(uniform(draw, 1000 + i) * TOKENS);
      reward[i] = i % 2 == 0 ? 1 : 0;
      for (const size_t end = t + n; t < end; ++t) {
        gap[t] = lag;
        logq[t] = -0.7 - 2.3 * uniform(draw, 100000 + t);
        logp[t] =
            fmin(logq[t] - variance / 2 + sqrt(variance) * rng_normal(rng_block(noise, t)), -1e-6);
      }
      tokens[i + 1] = t;
    }
  }
  m.in = (policy_input){.n_groups = plan->groups,
                        .n_responses = responses,
                        .n_tokens = t,
                        .group_start = groups,
                        .token_start = tokens,
                        .reward = reward,
                        .logp = logp,
                        .logq = logq,
                        .version_gap = gap};
  const double dropped = floor(plan->dropped * (double)responses);
  const double length = plan->dropped_length * (double)t / (double)responses;
  m.batch = (diagnose_batch){.step = (double)u + 1,
                             .n_dropped = plan->dropped > 0 ? dropped : NAN,
                             .dropped_tokens = dropped * length};
  return m;
}

void made_update_fini(made_update *u) {
  free(u->memory);
  free(u->starts);
}

/* --- files --- */

static void write_rows(FILE *to, const char *name, const policy_input *in, size_t g,
                       const double *value) {
  fprintf(to, ", \"%s\": [", name);
  for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i) {
    fputs(i > in->group_start[g] ? ", [" : "[", to);
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      fprintf(to, "%s%.9g", t > in->token_start[i] ? ", " : "", value[t]);
    fputc(']', to);
  }
  fputc(']', to);
}

static void write_group(FILE *to, const policy_input *in, size_t g, bool has_versions) {
  fputs("{\"rewards\": [", to);
  for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i)
    fprintf(to, "%s%g", i > in->group_start[g] ? ", " : "", in->reward[i]);
  fputc(']', to);
  write_rows(to, "logp", in, g, in->logp);
  write_rows(to, "logq", in, g, in->logq);
  if (has_versions) write_rows(to, "version_gap", in, g, in->version_gap);
  fputc('}', to);
}

void made_write(const made_plan *plan, const char *path, bool has_versions) {
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (size_t u = 0; u < plan->updates; ++u) {
    made_update m = made_update_of(plan, u);
    fprintf(to, "{\"step\": %zu, \"groups\": [", u + 1);
    for (size_t g = 0; g < m.in.n_groups; ++g) {
      if (g > 0) fputs(", ", to);
      write_group(to, &m.in, g, has_versions);
    }
    fputs("]}\n", to);
    made_update_fini(&m);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
}

/* A list in a list, as NeMo-RL writes it: two tokens of the prompt, then n values. */
static void write_nested(FILE *to, const char *name, const double *value, size_t n, double prompt) {
  fprintf(to, ", \"%s\": [[%g, %g", name, prompt, prompt);
  for (size_t t = 0; t < n; ++t) fprintf(to, ", %.9g", value[t]);
  fputs("]]", to);
}

static void write_sample(FILE *to, const policy_input *in, size_t i, size_t idx, bool is_kept,
                         size_t n) {
  double one[256] = {0};
  const size_t first = in->token_start[i], group = i / (in->n_responses / in->n_groups);
  CU_ASSERT_FATAL(n < 256 && first + n <= in->n_tokens);
  fprintf(to, "{\"content\": [\"\"], \"rewards\": [%g], \"input_lengths\": [%zu]", in->reward[i],
          n + 2);
  for (size_t t = 0; t < n; ++t) one[t] = 1;
  write_nested(to, "token_ids", one, n, (double)group + 2);
  write_nested(to, "token_loss_mask", one, n, 0);
  fprintf(to, ", \"sample_loss_mask\": [%d]", is_kept);
  for (size_t t = 0; t < n; ++t) one[t] = 2 * in->reward[i] - 1;
  write_nested(to, "advantages", one, n, 0);
  write_nested(to, "generation_logprobs", in->logq + first, n, 0);
  write_nested(to, "prev_logprobs", in->logp + first, n, 0);
  fprintf(to, ", \"idx\": %zu}\n", idx);
}

/* Dropped responses repeat trained ones, of the given length. */
static void write_nemo_step(FILE *to, const made_plan *plan, const policy_input *in) {
  const size_t dropped = (size_t)(plan->dropped * (double)in->n_responses);
  size_t idx = 0;
  for (size_t i = 0; i < in->n_responses; ++i)
    write_sample(to, in, i, idx++, true, in->token_start[i + 1] - in->token_start[i]);
  for (size_t i = 0; i < dropped; ++i)
    write_sample(
        to, in, i, idx++, false,
        (size_t)(plan->dropped_length * (double)(in->token_start[i + 1] - in->token_start[i])));
}

void made_write_nemo(const made_plan *plan, const char *folder) {
  for (size_t u = 0; u < plan->updates; ++u) {
    char path[512];
    made_update m = made_update_of(plan, u);
    snprintf(path, sizeof path, "%s/train_data_step%zu.jsonl", folder, u + 1);
    FILE *to = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    write_nemo_step(to, plan, &m.in);
    CU_ASSERT_EQUAL(fclose(to), 0);
    made_update_fini(&m);
  }
}

void made_series(const char *path, double wait, double sync) {
  const rng_stream noise = rng_stream_at(28, RNG_TEST, 0);
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (size_t u = 0; u < 24; ++u) {
    const double step = 100 + rng_normal(rng_block(noise, u));
    fprintf(to,
            "{\"step\": %zu, \"perf/step_s\": %.6g, \"perf/rollout_wait_s\": %.6g, "
            "\"perf/weight_sync_s\": %.6g, \"perf/fwd_bwd_s\": %.6g, "
            "\"sample/staleness_mean\": %.6g, \"kl_k3\": %.6g}\n",
            u + 1, step, wait * step, sync * step, (1 - wait - sync) * step,
            1 + 0.1 * (double)(u % 3), 1e-3);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
}
