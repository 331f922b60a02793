/* The learner's replicas: their backends, models and optimisers, how work is divided among them,
 * and the step that they take together. With one replica there are no further threads and no sums:
 * everything runs on the caller's thread. */
#include "llm/backend/open/open.h"
#include "llm/learner/learner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- division of work --- */

/* Cuts the total work into `ranks` equal intervals; an item goes to the rank whose interval holds
 * the middle of the item's own work. */
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
  if (n <= r->cap_scratch) return GL_OK;
  free(r->scratch);
  r->scratch = calloc(n, sizeof *r->scratch);
  r->cap_scratch = r->scratch != NULL ? n : 0;
  return r->scratch != NULL ? GL_OK : gl_fail_memory(err, "an update");
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

static gl_status join(llm_learner *l, gl_error *err) {
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
  /* One after the other, so that an error that all would have names the first device. */
  for (size_t rank = 0; rank < n && status == GL_OK; ++rank)
    status = rank_threads_run_at(l->threads, rank, open_one, &o, err);
  l->backend = l->replica[0].backend;
  return status;
}

static gl_status make_model(void *context, size_t rank, gl_error *err) {
  llm_learner *l = context;
  replica *r = &l->replica[rank];
  return model_new(&r->model, &l->spec.model, r->backend, l->spec.recompute, err);
}

gl_status llm_learner_models(llm_learner *l, gl_error *err) {
  gl_status status = join(l, err);
  if (status == GL_OK) status = rank_threads_run(l->threads, make_model, l, err);
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
  collective_free(l->sums); /* before the backends that it sums over */
  if (l->threads != NULL) {
    rank_threads_set_sums(l->threads, NULL);
    (void)rank_threads_run(l->threads, close_one, l, NULL);
  }
  rank_threads_free(l->threads);
  free(l->replica);
  free(l->share);
  free(l->norm);
}
