/* Several replicas of a learner: threads, sums, and that they learn what one learns. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_learner_fixture.h"

#include <unistd.h>

/* --- threads --- */

SUITE("llm: replicas");

typedef struct roll_call {
  size_t calls[5];
  size_t fails; /* this rank */
} roll_call;

static gl_status answer(void *context, size_t rank, gl_error *err) {
  roll_call *r = context;
  ++r->calls[rank];
  return rank == r->fails ? gl_fail(err, GL_ENUMERIC, "rank has had enough") : GL_OK;
}

TEST(every_rank_runs_every_task_once) {
  for (size_t n = 1; n <= 5; ++n) {
    rank_threads *r = NULL;
    gl_error err = {0};
    roll_call c = {.fails = SIZE_MAX};
    CU_ASSERT_FATAL(rank_threads_new(&r, n, &err) == GL_OK);
    CU_ASSERT(rank_threads_count(r) == n);
    for (int i = 0; i < 200; ++i) CU_ASSERT(rank_threads_run(r, answer, &c, &err) == GL_OK);
    for (size_t rank = 0; rank < n; ++rank)
      CU_ASSERT(rank_threads_run_at(r, rank, answer, &c, &err) == GL_OK);
    for (size_t rank = 0; rank < 5; ++rank) CU_ASSERT(c.calls[rank] == (rank < n ? 201 : 0));
    rank_threads_free(r);
  }
}

TEST(a_failure_is_told_with_its_device_and_does_not_last) {
  rank_threads *r = NULL;
  gl_error err = {0}, again = {0};
  roll_call c = {.fails = 2};
  CU_ASSERT_FATAL(rank_threads_new(&r, 3, &err) == GL_OK);
  CU_ASSERT(rank_threads_run(r, answer, &c, &err) == GL_ENUMERIC);
  CU_ASSERT_STRING_EQUAL(err.text, "device 2: rank has had enough");
  CU_ASSERT(rank_threads_run_at(r, 1, answer, &c, &again) == GL_OK);
  c.fails = 0;
  CU_ASSERT(rank_threads_run(r, answer, &c, &again) == GL_ENUMERIC);
  CU_ASSERT_STRING_EQUAL(again.text, "device 0: rank has had enough");
  c.fails = SIZE_MAX;
  CU_ASSERT(rank_threads_run(r, answer, &c, &again) == GL_OK);
  rank_threads_free(r);
}

/* --- sums --- */

enum { RANKS = 3 };

typedef struct adding {
  collective *sums;
  backend *member[RANKS];
  void *memory[RANKS];
  size_t n, fails, sums_made[RANKS];
} adding;

static gl_status add(void *context, size_t rank, gl_error *err) {
  adding *a = context;
  for (int i = 0; i < 3; ++i) {
    if (rank == a->fails && i == 1) return gl_fail(err, GL_ENOMEM, "no memory here");
    gl_status status = collective_sum(a->sums, rank, a->memory[rank], a->n, err);
    if (status != GL_OK) return status;
    ++a->sums_made[rank];
  }
  return GL_OK;
}

/* Number i of a rank: of very different sizes, so that the order of a sum shows. */
static double number_of(size_t rank, size_t i) {
  static const double size[RANKS] = {1e9, 1, -1e9};
  return size[rank] * (1 + (double)(i % 1001) / 1000) + (double)(i % 7) / 3;
}

static void fill(adding *a, number_type type) {
  void *host = malloc(a->n * sizeof(double));
  CU_ASSERT_PTR_NOT_NULL_FATAL(host);
  for (size_t rank = 0; rank < RANKS; ++rank) {
    for (size_t i = 0; i < a->n; ++i)
      if (type == NUMBER_F64)
        ((double *)host)[i] = number_of(rank, i);
      else
        ((float *)host)[i] = (float)number_of(rank, i);
    a->member[rank]->ops->upload(a->member[rank], a->memory[rank], host,
                                 a->n * a->member[rank]->element);
  }
  free(host);
}

static adding begin(number_type type, size_t n) {
  adding a = {.n = n, .fails = SIZE_MAX};
  gl_error err = {0};
  for (size_t rank = 0; rank < RANKS; ++rank) {
    CU_ASSERT_FATAL(backend_new(&a.member[rank], BACKEND_CPU, type, 1, &err) == GL_OK);
    a.memory[rank] = a.member[rank]->ops->allocate(a.member[rank], n * a.member[rank]->element);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a.memory[rank]);
  }
  CU_ASSERT_FATAL(collective_new(&a.sums, a.member, RANKS, &err) == GL_OK);
  fill(&a, type);
  return a;
}

static void end(adding *a) {
  collective_free(a->sums);
  for (size_t rank = 0; rank < RANKS; ++rank) {
    a->member[rank]->ops->release(a->member[rank], a->memory[rank]);
    backend_free(a->member[rank]);
  }
}

/* Three sums in a row: of the numbers, then twice of equal sums. More numbers than one piece has,
 * and no multiple of the ranks. */
static void check_sum(number_type type) {
  adding a = begin(type, ((size_t)1 << 19) + 77);
  rank_threads *r = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(rank_threads_new(&r, RANKS, &err) == GL_OK);
  rank_threads_set_sums(r, a.sums);
  CU_ASSERT(rank_threads_run(r, add, &a, &err) == GL_OK);
  size_t wrong = 0;
  for (size_t i = 0; i < a.n; ++i) {
    double sum = 0;
    for (size_t rank = 0; rank < RANKS; ++rank)
      sum += type == NUMBER_F64 ? number_of(rank, i) : (double)(float)number_of(rank, i);
    if (type != NUMBER_F64) sum = (double)(float)sum;
    for (int again = 0; again < 2; ++again) {
      sum = sum + sum + sum;
      if (type != NUMBER_F64) sum = (double)(float)sum;
    }
    for (size_t rank = 0; rank < RANKS; ++rank)
      wrong += type == NUMBER_F64 ? ((double *)a.memory[rank])[i] != sum
                                  : (double)((float *)a.memory[rank])[i] != sum;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  rank_threads_free(r);
  end(&a);
}

TEST(sums_are_made_in_the_order_of_ranks) {
  check_sum(NUMBER_F64);
  check_sum(NUMBER_F32);
}

TEST(a_rank_that_fails_wakes_those_who_wait_for_it) {
  rank_threads *r = NULL;
  gl_error err = {0}, none = {0};
  adding a = begin(NUMBER_F32, 1000);
  CU_ASSERT_FATAL(rank_threads_new(&r, RANKS, &err) == GL_OK);
  rank_threads_set_sums(r, a.sums);
  for (a.fails = 0; a.fails < RANKS; ++a.fails) {
    char wanted[64];
    gl_error_clear(&err);
    memset(a.sums_made, 0, sizeof a.sums_made);
    CU_ASSERT(rank_threads_run(r, add, &a, &err) == GL_ENOMEM);
    snprintf(wanted, sizeof wanted, "device %zu: no memory here", a.fails);
    CU_ASSERT_STRING_EQUAL(err.text, wanted);
    for (size_t rank = 0; rank < RANKS; ++rank) CU_ASSERT(a.sums_made[rank] == 1);
  }
  memset(a.sums_made, 0, sizeof a.sums_made);
  fill(&a, NUMBER_F32);
  CU_ASSERT(rank_threads_run(r, add, &a, &none) == GL_OK); /* what failed once is not broken */
  rank_threads_free(r);
  end(&a);
}

/* --- learning --- */

#define MODEL "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, intermediate: 24, context: 24}"
#define TASK "task: {kind: sorting, length: 3, values: 4, reward: graded}, max_tokens: 8"
#define WORLD                                                                                      \
  "world: {kind: llm, backend: cpu, " MODEL ", " TASK                                              \
  ", evaluation: {kind: sampled, prompts: 30, samples: 2}"

static llm_fixture open_on(size_t devices, size_t threads, const char *world, const char *rest) {
  char text[1200];
  snprintf(text, sizeof text, WORLD ", devices: %zu%s}\n%s", devices, world, rest);
  return llm_open_with(text, (llm_choice){.seed = 4, .threads = threads});
}

/* The replicas of a learner hold the same parameters. */
static void check_replicas(const llm_fixture *f) {
  gl_error err = {0};
  double *first = llm_theta(f), *other = llm_doubles(f->n);
  for (size_t rank = 1; rank < f->llm->spec.devices; ++rank) {
    CU_ASSERT(model_get(f->llm->replica[rank].model, other, &err) == GL_OK);
    CU_ASSERT(memcmp(first, other, f->n * sizeof *other) == 0);
  }
}

/* Three updates with a draw each; the last batch into *b. */
static double *learned(size_t devices, size_t threads, const char *world, const char *rest,
                       batch *b, double metrics[METRIC_COUNT], double *score) {
  llm_fixture f = open_on(devices, threads, world, rest);
  llm_train(&f, 0, 3, metrics);
  *b = llm_draw(&f, 3);
  *score = llm_score(&f);
  check_replicas(&f);
  double *theta = llm_theta(&f);
  return theta;
}

typedef struct course {
  const char *world, *rest;
} course;

static const course courses[] = {
    {", dtype: float64", "optimizer: {kind: sgd, lr: 0.3}\nalgorithm: gepo"},
    {", dtype: float64, micro_batch: 30",
     "optimizer: {kind: sgd, lr: 0.3, momentum: 0.9}\nalgorithm: {base: grpo, ref_kl_coef: 0.2}"},
    {", dtype: float64, micro_batch: 1, recompute: true, slots: 2",
     "optimizer: {kind: sgd, lr: 0.3, clip_grad_norm: 0.01}\nalgorithm: gspo"},
    {", dtype: float64, warmup: {steps: 4, batch: 5, lr: 0.01}",
     "optimizer: {kind: sgd, lr: 0.1}\nalgorithm: gepo\ntrain: {groups: 3, minibatches: 2, epochs: "
     "2}"},
    /* fewer responses than replicas: some have nothing to do */
    {", dtype: float64",
     "optimizer: {kind: sgd, lr: 0.1}\nalgorithm: reinforce\ntrain: {groups: 1, group_size: 2}"},
};

TEST(any_number_of_replicas_learns_the_same) {
  for (size_t i = 0; i < sizeof courses / sizeof *courses; ++i) {
    const course *c = &courses[i];
    batch one, several;
    double score, other, metrics[METRIC_COUNT], seen[METRIC_COUNT];
    double *alone = learned(1, 1, c->world, c->rest, &one, metrics, &score);
    for (size_t devices = 2; devices <= 4; ++devices) {
      double *theta = learned(devices, 3, c->world, c->rest, &several, seen, &other);
      llm_fixture f = open_on(1, 1, c->world, c->rest);
      CU_ASSERT(llm_distance(theta, alone, f.n) < 1e-12);
      CU_ASSERT(one.n_tokens == several.n_tokens &&
                memcmp(one.token, several.token, one.n_tokens * sizeof *one.token) == 0);
      CU_ASSERT(score == other);
      ASSERT_CLOSE(seen[METRIC_LOSS], metrics[METRIC_LOSS], 1e-10);
      ASSERT_CLOSE(seen[METRIC_GRAD_NORM], metrics[METRIC_GRAD_NORM], 1e-10);
      ASSERT_CLOSE(seen[METRIC_ENTROPY], metrics[METRIC_ENTROPY], 1e-10);
      CU_ASSERT(seen[METRIC_REWARD_MEAN] == metrics[METRIC_REWARD_MEAN]);
      batch_fini(&several);
    }
    batch_fini(&one);
  }
}

TEST(two_runs_are_the_same_bit_for_bit) {
  const char *world = ", warmup: {steps: 3, batch: 8}, micro_batch: 40",
             *rest = "optimizer: {lr: 0.01}\nalgorithm: gepo";
  batch b[2];
  double score[2], metrics[2][METRIC_COUNT];
  llm_fixture f = open_on(3, 1, world, rest);
  const size_t n = f.n;
  double *theta[2] = {learned(3, 1, world, rest, &b[0], metrics[0], &score[0]),
                      learned(3, 7, world, rest, &b[1], metrics[1], &score[1])};
  CU_ASSERT(memcmp(theta[0], theta[1], n * sizeof(double)) == 0);
  CU_ASSERT(memcmp(metrics[0], metrics[1], sizeof metrics[0]) == 0);
  CU_ASSERT(llm_same_batch(&b[0], &b[1]) && score[0] == score[1]);
  for (int i = 0; i < 2; ++i) batch_fini(&b[i]);
}

TEST(held_versions_and_parts_of_a_batch_work_on_all) {
  llm_fixture f = open_on(3, 2, "", "optimizer: {lr: 0.05}\nalgorithm: reinforce");
  llm_fixture one = open_on(1, 1, "", "optimizer: {lr: 0.05}\nalgorithm: reinforce");
  gl_error err = {0};
  double metrics[METRIC_COUNT];
  batch before = llm_draw(&f, 3), alone = llm_draw(&one, 3), held = {0}, parts = {0};
  CU_ASSERT(llm_same_batch(&before, &alone));
  llm_draw_part(&f, 3, 0, 0, 0.5, &parts);
  llm_draw_part(&f, 3, 0, 0.5, 1, &parts);
  CU_ASSERT(parts.n_tokens == before.n_tokens &&
            memcmp(parts.token, before.token, before.n_tokens * sizeof *parts.token) == 0);
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  llm_train(&f, 10, 12, metrics);
  llm_draw_part(&f, 3, 0, 0, 1, &held);
  batch after = llm_draw(&f, 3);
  CU_ASSERT(llm_same_batch(&before, &held) && !llm_same_batch(&before, &after));
  check_replicas(&f);
  f.learner.ops->release(f.llm, 0);
  for (size_t rank = 0; rank < 3; ++rank) CU_ASSERT(f.llm->replica[rank].n_held == 0);
  batch_fini(&before);
  batch_fini(&alone);
  batch_fini(&held);
  batch_fini(&parts);
  batch_fini(&after);
}

/* A learner that loads what another saved goes on like it: with as many replicas bit for bit. */
TEST(a_checkpoint_serves_every_replica) {
  const char *rest = "optimizer: {kind: adamw, lr: 0.01}\nalgorithm: gepo";
  llm_fixture f = open_on(2, 2, "", rest), g = open_on(2, 1, "", rest), h = open_on(1, 1, "", rest);
  gl_error err = {0};
  double metrics[METRIC_COUNT];
  FILE *file = tmpfile();
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  llm_train(&f, 0, 2, metrics);
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  fputs("before ", file);
  CU_ASSERT(f.learner.ops->save(f.llm, file, &err) == GL_OK);
  fputs("after", file);
  llm_train(&f, 2, 4, metrics);
  llm_fixture *const others[] = {&g, &h};
  for (size_t i = 0; i < 2; ++i) {
    char rest_of_file[6] = "";
    CU_ASSERT(fseek(file, 7, SEEK_SET) == 0);
    CU_ASSERT(others[i]->learner.ops->load(others[i]->llm, file, &err) == GL_OK);
    CU_ASSERT(fread(rest_of_file, 1, 5, file) == 5 && strcmp(rest_of_file, "after") == 0);
    check_replicas(others[i]);
    llm_train(others[i], 2, 4, metrics);
    check_replicas(others[i]);
  }
  double *a = llm_theta(&f), *b = llm_theta(&g), *c = llm_theta(&h);
  CU_ASSERT(memcmp(a, b, f.n * sizeof *a) == 0);
  CU_ASSERT(llm_distance(c, a, f.n) < 1e-3); /* single precision, other sums */
  CU_ASSERT(llm_draw_alike(&f, &g, 9, 2));
  fclose(file);
}

/* --- failures --- */

/* Parameters that are no longer the same on all replicas are noticed at the next step. */
TEST(replicas_that_drift_apart_are_noticed) {
  llm_fixture f = open_on(2, 2, "", "optimizer: {lr: 0.01}\nalgorithm: reinforce");
  batch b = llm_draw(&f, 0), *one = &b;
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  f.llm->norm[1] = f.llm->norm[0] = 2;
  double norm = 0;
  CU_ASSERT(llm_learner_norm(f.llm, &norm, &err) == GL_OK && norm == 2);
  f.llm->norm[1] = nextafter(2, 3);
  CU_ASSERT(llm_learner_norm(f.llm, &norm, &err) == GL_EINTERNAL);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no longer the same"));
  gl_error_clear(&err);
  CU_ASSERT(f.learner.ops->update(f.llm, &one, 1, metrics, &err) == GL_OK);
  batch_fini(&b);
}

/* One replica's backend fails inside an update: the others do not wait for it for ever. */
TEST(a_replica_that_fails_ends_the_update_of_all) {
  for (size_t rank = 0; rank < 3; ++rank) {
    llm_fixture f = open_on(3, 1, "", "optimizer: {lr: 0.01}\nalgorithm: reinforce");
    batch b = llm_draw(&f, 0), *one = &b;
    double metrics[METRIC_COUNT];
    gl_error err = {0};
    char device[16];
    backend *broken = f.llm->replica[rank].backend;
    CU_ASSERT_PTR_NULL(broken->ops->allocate(broken, SIZE_MAX)); /* a failure that stays */
    CU_ASSERT(f.learner.ops->update(f.llm, &one, 1, metrics, &err) == GL_ENOMEM);
    snprintf(device, sizeof device, "device %zu: ", rank);
    CU_ASSERT(strncmp(err.text, device, strlen(device)) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "out of memory"));
    CU_ASSERT(f.llm->update.version == 0);
    batch_fini(&b);
  }
}

TEST(devices_that_are_not_there_are_counted) {
  backend *b = NULL;
  gl_error err = {0};
  const size_t there = backend_devices();
  CU_ASSERT(backend_new_at(&b, BACKEND_CUDA, NUMBER_F32, (backend_place){0, there + 1}, 1, &err) ==
            GL_EIO);
  CU_ASSERT_PTR_NULL(b);
  if (there == 0) {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
  } else {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "were asked for"));
  }
}
