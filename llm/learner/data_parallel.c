/* The learner's replicas: their backends, models and optimisers, division of work, the common step,
 * held versions, and checkpoints. With one replica there are no further threads and no sums:
 * everything runs on the caller's thread. */
#include "core/base/array.h"
#include "core/base/hash.h"
#include "llm/backend/open/open.h"
#include "llm/learner/learner.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- a thread for each rank --- */

/* The target of a task that all ranks run. */
static const size_t all_ranks = SIZE_MAX;

typedef struct rank_thread {
  rank_threads *owner;
  size_t rank;
  pthread_t thread;
} rank_thread;

struct rank_threads {
  size_t n, started; /* number of ranks; number of threads beside the caller's */
  collective *sums;
  rank_thread *thread; /* [n], the first is unused */
  pthread_mutex_t lock;
  pthread_cond_t begun, ended;
  /* The running task, if busy > 0; protected by the lock. */
  uint64_t number;
  rank_task work;
  void *context;
  size_t target, busy; /* target: the only rank to run it, or SIZE_MAX for all; busy: threads still
                         running it */
  gl_error failed;     /* the error of the first rank that failed */
  int stop;
};

static void keep_failure(rank_threads *r, size_t rank, gl_status status, const gl_error *err) {
  pthread_mutex_lock(&r->lock);
  if (r->n > 1)
    gl_fail(&r->failed, status, "device %zu: %s", rank, err->text);
  else
    gl_fail(&r->failed, status, "%s", err->text);
  pthread_mutex_unlock(&r->lock);
  if (r->sums != NULL) collective_abort(r->sums);
}

/* Stores the error before collective_abort() wakes the other ranks, so that it remains the first
 * one. */
static void run_rank(rank_threads *r, size_t rank, rank_task work, void *context) {
  gl_error err = {.status = GL_OK};
  const gl_status status = work(context, rank, &err);
  if (status != GL_OK) keep_failure(r, rank, status, &err);
}

/* A rank's thread: waits for tasks that it has to run, until `stop` is set. */
static void *thread_main(void *argument) {
  const rank_thread *self = argument;
  rank_threads *r = self->owner;
  uint64_t seen = 0;
  pthread_mutex_lock(&r->lock);
  for (;;) {
    while (!r->stop && r->number == seen) pthread_cond_wait(&r->begun, &r->lock);
    if (r->stop) break;
    seen = r->number;
    if (r->target != all_ranks && r->target != self->rank) continue;
    const rank_task work = r->work;
    void *context = r->context;
    pthread_mutex_unlock(&r->lock);
    run_rank(r, self->rank, work, context);
    pthread_mutex_lock(&r->lock);
    if (--r->busy == 0) pthread_cond_signal(&r->ended);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

/* Runs the task on the target rank or on all ranks, waits for it, and returns the first error. */
static gl_status run_on_ranks(rank_threads *r, size_t target, rank_task work, void *context,
                              gl_error *err) {
  assert(target == all_ranks || target < r->n);
  if (r->n == 1)
    return work(context, 0, err); /* one rank runs on this thread, its error is unchanged */
  if (r->sums != NULL) collective_ready(r->sums);
  pthread_mutex_lock(&r->lock);
  r->work = work;
  r->context = context;
  r->target = target;
  r->busy = target == all_ranks ? r->n - 1 : target != 0;
  r->failed = (gl_error){.status = GL_OK};
  ++r->number;
  pthread_cond_broadcast(&r->begun);
  pthread_mutex_unlock(&r->lock);
  if (target == all_ranks || target == 0) run_rank(r, 0, work, context);
  pthread_mutex_lock(&r->lock);
  while (r->busy > 0) pthread_cond_wait(&r->ended, &r->lock);
  pthread_mutex_unlock(&r->lock);
  return r->failed.status == GL_OK ? GL_OK : gl_fail(err, r->failed.status, "%s", r->failed.text);
}

gl_status rank_threads_run(rank_threads *r, rank_task work, void *context, gl_error *err) {
  return run_on_ranks(r, all_ranks, work, context, err);
}

gl_status rank_threads_run_at(rank_threads *r, size_t rank, rank_task work, void *context,
                              gl_error *err) {
  return run_on_ranks(r, rank, work, context, err);
}

void rank_threads_set_sums(rank_threads *r, collective *sums) {
  r->sums = sums;
}

size_t rank_threads_count(const rank_threads *r) {
  return r->n;
}

gl_status rank_threads_new(rank_threads **out, size_t n, gl_error *err) {
  *out = NULL;
  rank_threads *r = calloc(1, sizeof *r);
  rank_thread *thread = calloc(n, sizeof *thread);
  if (r == NULL || thread == NULL) {
    free(r);
    free(thread);
    return gl_fail_memory(err, "a learner's replicas");
  }
  r->n = n;
  r->thread = thread;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->begun, NULL);
  pthread_cond_init(&r->ended, NULL);
  for (size_t rank = 1; rank < n; ++rank) {
    thread[rank] = (rank_thread){.owner = r, .rank = rank};
    if (pthread_create(&thread[rank].thread, NULL, thread_main, &thread[rank]) != 0) {
      rank_threads_free(r);
      return gl_fail(err, GL_EIO, "the thread of device %zu of %zu could not be started", rank, n);
    }
    r->started = rank;
  }
  *out = r;
  return GL_OK;
}

void rank_threads_free(rank_threads *r) {
  if (r == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->stop = 1;
  pthread_cond_broadcast(&r->begun);
  pthread_mutex_unlock(&r->lock);
  for (size_t rank = 1; rank <= r->started; ++rank) pthread_join(r->thread[rank].thread, NULL);
  pthread_cond_destroy(&r->begun);
  pthread_cond_destroy(&r->ended);
  pthread_mutex_destroy(&r->lock);
  free(r->thread);
  free(r);
}

/* --- division of work --- */

/* Cuts the total work into `ranks` equal intervals. An item belongs to the rank whose interval
 * contains the middle of the item's work. */
void llm_learner_divide(llm_learner *l, item_work work, const void *context, size_t n) {
  const size_t ranks = l->spec.devices;
  size_t total = 0, before = 0, rank = 0;
  l->share[0] = 0;
  for (size_t i = 0; i < n && ranks > 1; ++i) total += work(context, i);
  for (size_t i = 0; i < n && total > 0; ++i) {
    const size_t own = work(context, i);
    const uint64_t middle = (2 * (uint64_t)before + own) * ranks / (2 * (uint64_t)total);
    while (rank < middle && rank + 1 < ranks) l->share[++rank] = i;
    before += own;
  }
  while (rank < ranks) l->share[++rank] = n;
}

/* --- the common step --- */

gl_status llm_learner_step(llm_learner *l, size_t rank, double lr, double *norm, gl_error *err) {
  const replica *r = &l->replica[rank];
  gl_status status = GL_OK;
  if (l->sums != NULL)
    status =
        collective_sum(l->sums, rank, model_gradient(r->model), model_parameters(r->model), err);
  return status == GL_OK ? model_optimizer_step(r->optimizer, lr, norm, err) : status;
}

gl_status llm_learner_norm(const llm_learner *l, double *norm, gl_error *err) {
  *norm = l->norm[0];
  for (size_t rank = 1; rank < l->spec.devices; ++rank)
    if (memcmp(&l->norm[rank], norm, sizeof *norm) != 0)
      return gl_fail(err, GL_EINTERNAL,
                     "devices 0 and %zu saw gradients of norm %.17g and %.17g: their parameters "
                     "are no longer the same; devices of one kind are needed",
                     rank, *norm, l->norm[rank]);
  return GL_OK;
}

gl_status replica_scratch(replica *r, size_t n, gl_error *err) {
  return ARRAY_FIT(r->scratch, r->cap_scratch, n) ? GL_OK : gl_fail_memory(err, "an update");
}

/* --- held versions --- */

/* 1 if enough memory for a step stays free after storing one more version in device memory. The
 * memory that the model has already allocated for its passes counts as part of the step's. */
static int fits_on_device(const replica *r) {
  size_t total = 0, available = 0;
  const size_t kept = model_kept_bytes(r->model);
  const size_t step = r->step_bytes > kept ? r->step_bytes - kept : 0;
  r->backend->ops->memory(r->backend, &total, &available);
  return available > step && available - step >= model_values_bytes(r->model);
}

/* Stores a copy of the model's present parameters as that version. */
static gl_status replica_add_held(replica *r, int64_t version, gl_error *err) {
  if (!ARRAY_RESERVE(r->held, r->cap_held, r->n_held + 1))
    return gl_fail_memory(err, "a held version");
  model_values *values = NULL;
  gl_status status = fits_on_device(r) ? model_values_copy(&values, r->model, err)
                                       : model_values_put_aside(&values, r->model, err);
  if (status == GL_OK) r->held[r->n_held++] = (held_version){version, values};
  return status;
}

static gl_status hold_on_rank(void *context, size_t rank, gl_error *err) {
  const llm_learner *l = context;
  return replica_add_held(&l->replica[rank], l->update.version, err);
}

gl_status llm_learner_hold(void *self, gl_error *err) {
  llm_learner *l = self;
  return rank_threads_run(l->threads, hold_on_rank, l, err);
}

static void release_version(replica *r, int64_t version) {
  size_t i = 0;
  while (i < r->n_held && r->held[i].version != version) ++i;
  if (i == r->n_held) return;
  model_values_free(r->held[i].values, r->model);
  memmove(&r->held[i], &r->held[i + 1], (r->n_held - i - 1) * sizeof *r->held);
  --r->n_held;
}

typedef struct releasing {
  llm_learner *l;
  int64_t version;
} releasing;

static gl_status release_one(void *context, size_t rank, gl_error *err) {
  const releasing *what = context;
  (void)err;
  release_version(&what->l->replica[rank], what->version);
  return GL_OK;
}

void llm_learner_release(void *self, int64_t version) {
  releasing what = {self, version};
  (void)rank_threads_run(what.l->threads, release_one, &what, NULL);
}

/* Releases all held versions of a replica. */
static void replica_release_all(replica *r) {
  while (r->n_held > 0) release_version(r, r->held[0].version);
}

/* --- backends, models, optimisers --- */

typedef struct opening {
  llm_learner *l;
  size_t threads;
} opening;

static gl_status open_one(void *context, size_t rank, gl_error *err) {
  const opening *o = context;
  const run_spec *s = &o->l->spec;
  backend **b = &o->l->replica[rank].backend;
  gl_status status =
      backend_new_at(b, s->backend, s->dtype, (backend_place){rank, s->devices}, o->threads, err);
  if (status == GL_OK) (*b)->tf32 = s->tf32;
  return status;
}

static gl_status connect_replicas(llm_learner *l, gl_error *err) {
  backend *member[LLM_MOST_DEVICES];
  const size_t n = l->spec.devices;
  if (n == 1) return GL_OK;
  for (size_t rank = 0; rank < n; ++rank) member[rank] = l->replica[rank].backend;
  gl_status status = collective_new(&l->sums, member, n, err);
  if (status == GL_OK) rank_threads_set_sums(l->threads, l->sums);
  return status;
}

gl_status llm_learner_open(llm_learner *l, size_t threads, gl_error *err) {
  const size_t n = l->spec.devices;
  opening o = {l, threads};
  l->replica = calloc(n, sizeof *l->replica);
  l->share = calloc(n + 1, sizeof *l->share);
  l->norm = calloc(n, sizeof *l->norm);
  if (l->replica == NULL || l->share == NULL || l->norm == NULL)
    return gl_fail_memory(err, "a learner's replicas");
  gl_status status = rank_threads_new(&l->threads, n, err);
  /* Sequentially, so that an error common to all names the first device. */
  for (size_t rank = 0; rank < n && status == GL_OK; ++rank)
    status = rank_threads_run_at(l->threads, rank, open_one, &o, err);
  l->backend = l->replica[0].backend;
  return status;
}

static gl_status make_replica_model(void *context, size_t rank, gl_error *err) {
  llm_learner *l = context;
  replica *r = &l->replica[rank];
  return model_new(&r->model, &l->spec.model, r->backend, r->stores, err);
}

gl_status llm_learner_models(llm_learner *l, gl_error *err) {
  gl_status status = connect_replicas(l, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, make_replica_model, l, err);
  l->model = l->replica[0].model;
  return status;
}

typedef struct optimizer_choice {
  llm_learner *l;
  const optimizer_spec *spec;
} optimizer_choice;

static gl_status make_optimizer(void *context, size_t rank, gl_error *err) {
  const optimizer_choice *c = context;
  replica *r = &c->l->replica[rank];
  model_optimizer_free(r->optimizer);
  r->optimizer = NULL;
  return c->spec != NULL ? model_optimizer_new(&r->optimizer, r->model, c->spec, err) : GL_OK;
}

gl_status llm_learner_optimizer(llm_learner *l, const optimizer_spec *spec, gl_error *err) {
  optimizer_choice c = {l, spec};
  return rank_threads_run(l->threads, make_optimizer, &c, err);
}

typedef struct reading {
  llm_learner *l;
  FILE *from;
  off_t at;
} reading;

static gl_status read_one(void *context, size_t rank, gl_error *err) {
  const reading *f = context;
  const replica *r = &f->l->replica[rank];
  if (rank > 0 && fseeko(f->from, f->at, SEEK_SET) != 0)
    return gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno));
  return model_read(r->model, r->optimizer, f->from, err);
}

/* Reads into one replica after the other, each from the same position of the file. */
gl_status llm_learner_read(llm_learner *l, FILE *from, gl_error *err) {
  reading f = {l, from, l->spec.devices > 1 ? ftello(from) : 0};
  gl_status status = GL_OK;
  if (f.at < 0) return gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno));
  for (size_t rank = 0; rank < l->spec.devices && status == GL_OK; ++rank)
    status = rank_threads_run_at(l->threads, rank, read_one, &f, err);
  return status;
}

static gl_status close_one(void *context, size_t rank, gl_error *err) {
  replica *r = &((llm_learner *)context)->replica[rank];
  (void)err;
  replica_release_all(r);
  free(r->held);
  if (r->reference != NULL) model_values_free(r->reference, r->model);
  if (r->initial != NULL) model_values_free(r->initial, r->model);
  model_optimizer_free(r->optimizer);
  model_free(r->model);
  backend_free(r->backend);
  token_pack_fini(&r->pack);
  free(r->scratch);
  return GL_OK;
}

void llm_learner_close(llm_learner *l) {
  collective_free(l->sums); /* before the backends, which it uses */
  if (l->threads != NULL) {
    rank_threads_set_sums(l->threads, NULL);
    (void)rank_threads_run(l->threads, close_one, l, NULL);
  }
  rank_threads_free(l->threads);
  free(l->replica);
  free(l->share);
  free(l->norm);
}

/* --- checkpoints --- */
/* A learner's checkpoint: a header; held versions, each with its number and its parameters as
 * doubles; the stored elements of the last gradient, if there was an update; a checksum of
 * everything before it; then the model's parameters and moments (model_write) with their own
 * checksum. Native byte order. Everything else follows from the recipe and the seed; construction
 * restores the reference policy. */

typedef struct checkpoint_header {
  char magic[8];
  uint64_t format, fingerprint, seed, optimizer_kind;
  uint64_t n_parameters, n_held, has_gradient;
  int64_t version;
  char form[16]; /* instruction set of the CPU's kernels; zeros for a device */
} checkpoint_header;

/* Format 3 did not store the last gradient. */
enum { CHECKPOINT_FORMAT = 4 };
static const char checkpoint_magic[8] = "GLllm\r\n\x1a";

static checkpoint_header checkpoint_header_of(const llm_learner *l) {
  checkpoint_header h = {.format = CHECKPOINT_FORMAT,
                         .fingerprint = l->spec.fingerprint,
                         .seed = l->update.seed,
                         .optimizer_kind = (uint64_t)l->update.optimizer.kind,
                         .n_parameters = model_parameters(l->model),
                         .n_held = l->replica[0].n_held,
                         .has_gradient = l->update.trail.has_last,
                         .version = l->update.version};
  const char *form = l->replica[0].backend->form;
  memcpy(h.magic, checkpoint_magic, sizeof h.magic);
  if (form != NULL) snprintf(h.form, sizeof h.form, "%s", form);
  return h;
}

static gl_status put_held(const llm_learner *l, FILE *to, checksum *sum, gl_error *err) {
  const size_t n = model_parameters(l->model);
  double *host = calloc(n, sizeof *host);
  gl_status status = host != NULL ? GL_OK : gl_fail_memory(err, "a checkpoint");
  const replica *r = &l->replica[0]; /* all replicas have the same values */
  for (size_t i = 0; i < r->n_held && status == GL_OK; ++i) {
    status = model_values_get(r->held[i].values, r->model, host, err);
    if (status == GL_OK)
      status = checksum_put(to, &r->held[i].version, sizeof r->held[i].version, sum, err);
    if (status == GL_OK) status = checksum_put(to, host, n * sizeof *host, sum, err);
  }
  free(host);
  return status;
}

gl_status llm_learner_save(void *self, FILE *to, gl_error *err) {
  const llm_learner *l = self;
  const checkpoint_header h = checkpoint_header_of(l);
  checksum sum;
  checksum_begin(&sum);
  gl_status status = checksum_put(to, &h, sizeof h, &sum, err);
  if (status == GL_OK && h.n_held > 0) status = put_held(l, to, &sum, err);
  if (status == GL_OK && h.has_gradient)
    status = checksum_put(to, l->update.trail.last,
                          l->update.trail.n * sizeof *l->update.trail.last, &sum, err);
  const uint64_t end = checksum_of(&sum);
  if (status == GL_OK) status = checksum_put(to, &end, sizeof end, NULL, err);
  return status == GL_OK ? model_write(l->model, l->replica[0].optimizer, to, err) : status;
}

/* Refuses to resume with kernels of another instruction set: the last bits would differ from those
 * of an uninterrupted run. All x86 processors of the last ten years support avx2. */
static gl_status other_form(const checkpoint_header *h, const checkpoint_header *expected,
                            gl_error *err) {
  static const char device[] = "a GPU";
  const char *was = h->form[0] != '\0' ? h->form : device;
  const char *is = expected->form[0] != '\0' ? expected->form : device;
  return gl_fail(
      err, GL_EINPUT,
      "the checkpoint was computed in another arithmetic (%.15s) than this run's (%.15s), "
      "so last bits would differ; resume where it was written%s%.15s, or start anew",
      was, is, h->form[0] != '\0' ? ", or with GEPOLAB_CPU_FORM=" : "", h->form);
}

static gl_status check_checkpoint_header(const llm_learner *l, const checkpoint_header *h,
                                         gl_error *err) {
  const checkpoint_header expected = checkpoint_header_of(l);
  if (memcmp(h->magic, expected.magic, sizeof expected.magic) != 0 || h->format != expected.format)
    return gl_fail(err, GL_EINPUT,
                   "this is not the state of a transformer learner, or one of another version of "
                   "gepolab");
  if (h->fingerprint != expected.fingerprint || h->seed != expected.seed ||
      h->n_parameters != expected.n_parameters)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint belongs to another world, sampling or seed; start from the "
                   "recipe it was written with");
  if (h->optimizer_kind != expected.optimizer_kind)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint was written with another optimizer; use the one it has");
  if (memcmp(h->form, expected.form, sizeof h->form) != 0) return other_form(h, &expected, err);
  if (h->version < 0)
    return gl_fail(err, GL_EINPUT, "the checkpoint has a negative version: it is damaged");
  return GL_OK;
}

/* Held versions read from the file, before the checksum shows that it is undamaged. */
typedef struct held_values {
  int64_t version;
  double *host; /* [n_parameters] parameters of the version */
} held_values;

static void held_free(held_values *held, size_t n) {
  for (size_t i = 0; i < n; ++i) free(held[i].host);
  free(held);
}

/* Reads one held version. If the count is too large, reading stops at the end of the file. */
static gl_status get_held(FILE *from, held_values **held, size_t *n_held, size_t n, checksum *sum,
                          gl_error *err) {
  held_values *one = ARRAY_ADD(*held, *n_held);
  if (one == NULL || (one->host = calloc(n, sizeof *one->host)) == NULL)
    return gl_fail_memory(err, "a checkpoint's held versions");
  gl_status status = checksum_get(from, &one->version, sizeof one->version, sum, err);
  return status == GL_OK ? checksum_get(from, one->host, n * sizeof *one->host, sum, err) : status;
}

/* Reads held versions, and the stored elements of the last gradient into gradient[n]. */
static gl_status read_held(FILE *from, const checkpoint_header *h, held_values **held,
                           size_t *n_held, double *gradient, size_t n, gl_error *err) {
  uint64_t written = 0;
  checksum sum;
  checksum_begin(&sum);
  checksum_add(&sum, h, sizeof *h);
  gl_status status = GL_OK;
  for (uint64_t i = 0; i < h->n_held && status == GL_OK; ++i)
    status = get_held(from, held, n_held, h->n_parameters, &sum, err);
  if (status == GL_OK && h->has_gradient)
    status = checksum_get(from, gradient, n * sizeof *gradient, &sum, err);
  if (status == GL_OK) status = checksum_get(from, &written, sizeof written, NULL, err);
  if (status == GL_OK && written != checksum_of(&sum))
    status = gl_fail(err, GL_EINPUT, "the checkpoint is damaged: its checksum does not match");
  return status;
}

/* Held versions that were read, for copying to the replicas. */
typedef struct loading {
  llm_learner *l;
  const held_values *held;
  size_t n_held;
} loading;

/* Copies each held version by setting the model's parameters to it first, because copies can only
 * be made from a model's own parameters. The model's own parameters are restored at the end. */
static gl_status take_held(void *context, size_t rank, gl_error *err) {
  const loading *f = context;
  replica *r = &f->l->replica[rank];
  replica_release_all(r);
  if (f->n_held == 0) return GL_OK;
  double *own = calloc(model_parameters(r->model), sizeof *own);
  if (own == NULL) return gl_fail_memory(err, "a checkpoint's held versions");
  gl_status status = model_get(r->model, own, err);
  for (size_t i = 0; i < f->n_held && status == GL_OK; ++i) {
    status = model_set(r->model, f->held[i].host, err);
    if (status == GL_OK) status = replica_add_held(r, f->held[i].version, err);
  }
  if (status == GL_OK) status = model_set(r->model, own, err);
  free(own);
  return status;
}

gl_status llm_learner_load(void *self, FILE *from, gl_error *err) {
  llm_learner *l = self;
  checkpoint_header h;
  held_values *held = NULL;
  size_t n_held = 0;
  gl_status status = checksum_get(from, &h, sizeof h, NULL, err);
  if (status == GL_OK) status = check_checkpoint_header(l, &h, err);
  /* The next gradient's memory serves as buffer; it holds nothing between updates. */
  if (status == GL_OK)
    status = read_held(from, &h, &held, &n_held, l->update.trail.now, l->update.trail.n, err);
  if (status == GL_OK) status = llm_learner_read(l, from, err);
  loading f = {l, held, n_held};
  if (status == GL_OK) status = rank_threads_run(l->threads, take_held, &f, err);
  if (status == GL_OK) {
    l->update.version = h.version;
    l->update.trail.has_last = h.has_gradient != 0;
    if (l->update.trail.has_last)
      memcpy(l->update.trail.last, l->update.trail.now,
             l->update.trail.n * sizeof *l->update.trail.last);
  }
  held_free(held, n_held);
  return status;
}
