/* Scores on held-out problems: of the evaluation, and of its sets and their halves. */
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>

/* --- problems --- */

/* Reads the first held-out problems of the task in spec. */
static gl_status take_held_out(problem_set *set, const run_spec *spec, gl_error *err) {
  const size_t n = spec->eval.prompts;
  uint64_t *number = calloc(n + 1, sizeof *number);
  if (number == NULL) return gl_fail_memory(err, "the evaluation's prompts");
  for (size_t i = 0; i < n; ++i) number[i] = i;
  gl_status status = problem_set_init(set, spec, TASK_HELD_OUT, number, n, err);
  free(number);
  return status;
}

gl_status llm_learner_take_set_problems(llm_learner *l, gl_error *err) {
  const size_t n = l->spec.sets.n;
  if (n == 0) return GL_OK;
  l->set_problems = calloc(n, sizeof *l->set_problems);
  if (l->set_problems == NULL) return gl_fail_memory(err, "evaluation sets");
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const run_spec spec = run_spec_of_set(&l->spec, i);
    gl_error why = {0};
    status = take_held_out(&l->set_problems[i], &spec, &why);
    if (status == GL_EINPUT)
      status = cfg_fail(l->spec.set[i].at, err, "the evaluation set '%s': %s",
                        l->spec.sets.part[i * evaluation_sets_parts(&l->spec.sets)].set, why.text);
    else if (status != GL_OK)
      gl_fail(err, status, "%s", why.text);
  }
  return status;
}

gl_status llm_learner_take_problems(llm_learner *l, gl_error *err) {
  gl_status status = take_held_out(&l->held_out, &l->spec, err);
  return status == GL_OK ? llm_learner_take_set_problems(l, err) : status;
}

void llm_learner_free_problems(llm_learner *l) {
  problem_set_fini(&l->held_out);
  for (size_t i = 0; l->set_problems != NULL && i < l->spec.sets.n; ++i)
    problem_set_fini(&l->set_problems[i]);
  free(l->set_problems);
  l->set_problems = NULL;
}

/* --- scores of the evaluation, of its sets, and of their halves --- */

/* Computes rewards of complete responses, score[n * each]. Sets *broken to 1 if a log-probability
 * is NaN; then there are no rewards. */
static gl_status score_all(const run_spec *spec, const problem_set *problems,
                           const generate_result *r, double *score, int *broken, gl_error *err) {
  const size_t each = spec->eval.samples, width = spec->max_tokens;
  *broken = 0;
  for (size_t i = 0; i < problems->n * each; ++i) {
    for (size_t t = 0; t < r->length[i]; ++t)
      if (isnan(r->logq[i * width + t])) {
        *broken = 1;
        return GL_OK;
      }
    gl_status status = run_spec_score(spec, &problems->problem[i / each], r->token + i * width,
                                      r->length[i], r->finished[i], &score[i], err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* Computes the mean scores of one evaluation: out[1], or out[3] if `sets` requests its halves. */
static gl_status score_problems(llm_learner *l, const run_spec *spec, const problem_set *problems,
                                rng_stream stream, const evaluation_sets *sets, double *out,
                                gl_error *err) {
  const size_t each = spec->eval.samples, n = problems->n * each;
  const int greedy = spec->eval.how.kind == EVALUATION_GREEDY;
  const drawing_request asked = {
      .problems = problems, .each = each, .up_to = spec->max_tokens, .stream = stream};
  generate_result r;
  int broken = 0;
  gl_status status = generate_result_init(&r, n, spec->max_tokens, err);
  if (status != GL_OK) return status;
  double *score = calloc(n + 1, sizeof *score);
  if (score == NULL) status = gl_fail_memory(err, "an evaluation");
  if (status == GL_OK)
    status = generate_on_replicas(l, &asked, greedy ? NULL : &spec->eval.how.dist, spec->max_tokens,
                                  &r, err);
  if (status == GL_OK) status = score_all(spec, problems, &r, score, &broken, err);
  if (status == GL_OK && !broken) evaluation_sets_means(sets, score, problems->n, each, out);
  for (size_t i = 0; broken && i < evaluation_sets_parts(sets); ++i) out[i] = NAN;
  generate_result_fini(&r);
  free(score);
  return status;
}

gl_status llm_learner_score(llm_learner *l, uint64_t entity, double *score, gl_error *err) {
  static const evaluation_sets whole = {0};
  return score_problems(l, &l->spec, &l->held_out, rng_stream_at(l->update.seed, RNG_EVAL, entity),
                        &whole, score, err);
}

/* The first set uses the random stream of an evaluation without sets, at the learner's version. Set
 * i adds i to the upper bits of the entity, which no version reaches. */
static rng_stream stream_of_set(const llm_learner *l, size_t i) {
  return rng_stream_at(l->update.seed, RNG_EVAL, (uint64_t)l->update.version + ((uint64_t)i << 48));
}

static gl_status evaluate_set(llm_learner *l, size_t i, double *out, gl_error *err) {
  const run_spec spec = run_spec_of_set(&l->spec, i);
  return score_problems(l, &spec, &l->set_problems[i], stream_of_set(l, i), &l->spec.sets, out,
                        err);
}

gl_status llm_learner_evaluate(void *self, double *eval_score, gl_error *err) {
  llm_learner *l = self;
  double of_first[3];
  if (l->spec.sets.n == 0)
    return llm_learner_score(l, (uint64_t)l->update.version, eval_score, err);
  gl_status status = evaluate_set(l, 0, of_first, err);
  *eval_score = of_first[0];
  return status;
}

const evaluation_part *llm_learner_parts(const void *self, size_t *n) {
  const llm_learner *l = self;
  *n = l->spec.sets.n_parts;
  return l->spec.sets.part;
}

/* Writes for each set the mean score of its problems and, with `halves`, those of its odd and its
 * even problems. */
gl_status llm_learner_evaluate_parts(void *self, double *score, gl_error *err) {
  llm_learner *l = self;
  gl_status status = GL_OK;
  for (size_t i = 0; i < l->spec.sets.n && status == GL_OK; ++i)
    status = evaluate_set(l, i, score + i * evaluation_sets_parts(&l->spec.sets), err);
  return status;
}
