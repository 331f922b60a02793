/* Supervised warm-up: cross-entropy of answers and their end token on drawn training problems.
 *
 * Step s draws its problems from the random stream (seed, RNG_SHUFFLE, entity 2^63 + s), one block
 * of numbers for each problem. The shuffles of reinforcement learning use the learner's version as
 * the entity, which is below 2^63, so that the two never share numbers. The result depends on the
 * recipe's `warmup` section and seed alone. */
#include "llm/learner/warmup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The problems of one step with their answers' tokens. */
typedef struct lesson {
  problem_set problems;
  int32_t **answer;      /* [batch] */
  size_t *answer_length; /* [batch] */
  uint64_t *number;      /* [batch] */
  size_t n_targets;
} lesson;

static void lesson_clear(lesson *s, size_t n) {
  for (size_t i = 0; i < n && s->answer != NULL; ++i) {
    free(s->answer[i]);
    s->answer[i] = NULL;
  }
  problem_set_fini(&s->problems);
  s->n_targets = 0;
}

static void lesson_fini(lesson *s, size_t n) {
  lesson_clear(s, n);
  free(s->answer);
  free(s->answer_length);
  free(s->number);
}

static gl_status draw_lesson(const llm_learner *l, lesson *s, uint64_t step, gl_error *err) {
  const size_t n = l->spec.warmup.batch;
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_SHUFFLE, UINT64_C(1) << 63 | step);
  lesson_clear(s, n);
  for (size_t i = 0; i < n; ++i) {
    rng_words w = rng_block(stream, i);
    s->number[i] = run_spec_pick(&l->spec, rng_u01_53(w.v[0], w.v[1]));
  }
  gl_status status = problem_set_init(&s->problems, &l->spec, TASK_TRAIN, s->number, n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    status = run_spec_answer(&l->spec, s->problems.problem[i].answer, &s->answer[i],
                             &s->answer_length[i], err);
    if (status == GL_OK) s->n_targets += s->answer_length[i];
  }
  return status;
}

/* The problems of one step, of which every replica takes a share. */
typedef struct teaching {
  llm_learner *l;
  const lesson *s;
  double lr;
  double loss[LLM_MOST_DEVICES]; /* of each share */
} teaching;

static size_t problem_tokens(const void *context, size_t i) {
  const lesson *s = ((const teaching *)context)->s;
  return s->problems.start[i + 1] - s->problems.start[i] + s->answer_length[i] - 1;
}

/* Packs problems from *next on, before `end`, until the micro-batch is full; at least one. */
static gl_status pack_lesson(const teaching *t, token_pack *pack, size_t *next, size_t end,
                             gl_error *err) {
  const problem_set *p = &t->s->problems;
  token_pack_clear(pack, 0);
  for (; *next < end; ++*next) {
    const size_t i = *next;
    int added;
    token_pack_prompt(pack, p->token + p->start[i], p->start[i + 1] - p->start[i]);
    gl_status status = token_pack_add(pack, t->s->answer[i], t->s->answer_length[i],
                                      t->l->spec.micro_batch, &added, err);
    if (status != GL_OK) return status;
    if (!added) break;
  }
  return token_pack_finish(pack, err);
}

/* Adds a share's part of the gradient of the step's mean cross-entropy, and of its value. */
static gl_status teach_share(teaching *t, size_t rank, gl_error *err) {
  replica *r = &t->l->replica[rank];
  const size_t targets = t->s->n_targets, end = t->l->share[rank + 1];
  gl_status status = replica_scratch(r, 2 * targets, err);
  if (status == GL_OK) status = model_zero_gradient(r->model, err);
  double *dlogp = r->scratch, *logp = r->scratch + targets;
  for (size_t k = 0; k < targets && status == GL_OK; ++k) dlogp[k] = -1 / (double)targets;
  t->loss[rank] = 0;
  for (size_t next = t->l->share[rank]; next < end && status == GL_OK;) {
    status = pack_lesson(t, &r->pack, &next, end, err);
    if (status != GL_OK) break;
    status = token_pack_forward(&r->pack, r->model, 1, 1, logp, NULL, err);
    if (status == GL_OK) status = model_backward(r->model, dlogp, err);
    for (size_t k = 0; k < r->pack.n_targets && status == GL_OK; ++k)
      t->loss[rank] -= logp[k] / (double)targets;
  }
  return status;
}

static gl_status learn_share(void *context, size_t rank, gl_error *err) {
  teaching *t = context;
  gl_status status = teach_share(t, rank, err);
  if (status != GL_OK) return status;
  return llm_learner_step(t->l, rank, t->lr, &t->l->norm[rank], err);
}

/* One step down the gradient of the mean cross-entropy; gives that and the gradient's norm. */
static gl_status teach(llm_learner *l, const lesson *s, double lr, double *loss, double *norm,
                       gl_error *err) {
  teaching t = {.l = l, .s = s, .lr = lr};
  llm_learner_divide(l, problem_tokens, &t, s->problems.n);
  gl_status status = rank_threads_run(l->threads, learn_share, &t, err);
  if (status == GL_OK) status = llm_learner_norm(l, norm, err);
  *loss = t.loss[0];
  for (size_t rank = 1; rank < l->spec.devices; ++rank) *loss += t.loss[rank];
  return status;
}

/* Sets *enough to 1 if the held-out score is measured after this step and has reached warmup.until,
 * or if the watch wants to stop. */
static gl_status look(llm_learner *l, size_t steps_done, double loss, int *enough, gl_error *err) {
  const warmup_spec *w = &l->spec.warmup;
  const llm_watch *watch = l->watch;
  const int checks = !isnan(w->until) && steps_done % w->check_every == 0;
  const int shows = watch != NULL && watch->score_every > 0 &&
                    (steps_done % watch->score_every == 0 || steps_done == w->steps);
  double score = NAN;
  gl_status status = GL_OK;
  if (checks || shows) status = llm_learner_score(l, UINT64_C(1) << 63 | steps_done, &score, err);
  *enough = checks && score >= w->until;
  if (status == GL_OK && watch != NULL && watch->after_step(watch->self, steps_done, loss, score))
    *enough = 1;
  return status;
}

/* --- a warm-up on its way --- */

typedef struct warming {
  llm_learner *learner;
  const learner_preparation *watch; /* NULL: no progress is shown and nothing is kept for the run */
  warmup_entry own;                 /* where it is kept for the run */
  lesson lesson;
  size_t done; /* steps */
  double kept_s;
} warming;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static gl_status keep(warming *w, gl_error *err) {
  w->kept_s = now_s();
  return warmup_own_keep(&w->own, w->learner, w->done, err);
}

/* After a step: reports it, keeps the state if it is time to, and stops if asked to. */
static gl_status pause_after(warming *w, double loss, gl_error *err) {
  const learner_preparation *p = w->watch;
  const size_t steps = w->learner->spec.warmup.steps;
  if (p == NULL) return GL_OK;
  if (p->after_step != NULL && p->after_step(p->self, w->done, steps, loss)) {
    gl_status status = keep(w, err);
    if (status != GL_OK) return status;
    return gl_fail(err, GL_EINTERRUPTED, "stopped after %zu of %zu steps of the warm-up%s", w->done,
                   steps, w->own.path != NULL ? "; the same command goes on from there" : "");
  }
  const int due = p->every > 0 ? w->done % p->every == 0 : now_s() - w->kept_s >= p->seconds;
  return due && w->done < steps ? keep(w, err) : GL_OK;
}

static gl_status step_once(warming *w, int *enough, gl_error *err) {
  llm_learner *l = w->learner;
  const warmup_spec *spec = &l->spec.warmup;
  double norm = NAN, loss = NAN;
  gl_status status = draw_lesson(l, &w->lesson, w->done, err);
  if (status == GL_OK)
    status = teach(l, &w->lesson, optimizer_lr(&spec->optimizer, w->done, spec->steps), &loss,
                   &norm, err);
  if (status == GL_OK && !isfinite(norm))
    status = gl_fail(err, GL_ENUMERIC,
                     "the warm-up's gradient stopped being a number at step %zu; lower "
                     "world.warmup.lr",
                     w->done + 1);
  if (status == GL_OK) status = look(l, ++w->done, loss, enough, err);
  return status == GL_OK && !*enough ? pause_after(w, loss, err) : status;
}

static gl_status learn(warming *w, gl_error *err) {
  llm_learner *l = w->learner;
  const size_t n = l->spec.warmup.batch;
  int enough = 0;
  lesson *s = &w->lesson;
  s->answer = calloc(n, sizeof *s->answer);
  s->answer_length = calloc(n, sizeof *s->answer_length);
  s->number = calloc(n, sizeof *s->number);
  gl_status status = GL_OK;
  if (s->answer == NULL || s->answer_length == NULL || s->number == NULL)
    status = gl_fail_memory(err, "a warm-up");
  if (status == GL_OK) status = llm_learner_optimizer(l, &l->spec.warmup.optimizer, err);
  if (status == GL_OK) (void)warmup_own_resume(&w->own, l, &w->done);
  w->kept_s = now_s();
  while (w->done < l->spec.warmup.steps && !enough && status == GL_OK)
    status = step_once(w, &enough, err);
  (void)llm_learner_optimizer(l, NULL, NULL);
  lesson_fini(s, n);
  return status;
}

gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err) {
  if (l->spec.warmup.steps == 0) return GL_OK;
  const int shares = l->spec.warmup.cache && l->watch == NULL;
  warming w = {.learner = l, .watch = setup->preparation};
  warmup_entry shared;
  gl_status status = GL_OK;
  warmup_entry_init(&shared, l, shares ? setup->cache : NULL, setup->code);
  warmup_entry_init(&w.own, l, w.watch != NULL ? w.watch->folder : NULL, setup->code);
  if (!warmup_entry_read(&w.own, l)) {
    if (!warmup_entry_read(&shared, l)) {
      status = learn(&w, err);
      if (status == GL_OK) warmup_entry_write(&shared, l);
    }
    if (status == GL_OK) status = warmup_own_write(&w.own, l, err);
  }
  warmup_entry_fini(&shared);
  warmup_entry_fini(&w.own);
  return status;
}
