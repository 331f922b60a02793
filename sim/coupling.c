/* What couples a clock to a learner: which versions can still be drawn from, so that no parameters
 * are kept longer than that. */
#include "sim/clock.h"

#include <stdlib.h>

int coupling_init(coupling *k, const schedule_hooks *hooks, size_t updates, size_t responses) {
  *k = (coupling){.hooks = hooks};
  if (hooks == NULL) return 1;
  k->lengths = calloc(responses, sizeof *k->lengths);
  k->users = calloc(updates + 1, sizeof *k->users);
  k->held = calloc(updates + 1, sizeof *k->held);
  return k->lengths != NULL && k->users != NULL && k->held != NULL;
}

static void release(coupling *k, int64_t version) {
  if (!k->held[version]) return;
  k->held[version] = 0;
  k->hooks->release(k->hooks->self, version);
}

void coupling_fini(coupling *k, size_t updates) {
  for (size_t v = 0; k->held != NULL && v <= updates; ++v) release(k, (int64_t)v);
  free(k->lengths);
  free(k->users);
  free(k->held);
  *k = (coupling){0};
}

void coupling_take(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0) ++c->coupled.users[version];
}

void coupling_leave(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0 && --c->coupled.users[version] == 0)
    release(&c->coupled, version);
}

/* Holds the version that this update leaves, if batches may still be begun with it, and releases
 * the one that no batch may be begun with any more. That one is `ahead` + 1 versions back: the gate
 * (sampler_gate_is_open) compares a version with gate_count / batches, which is never below the
 * learner's version, so it is closed for versions with c->version - version > ahead. Where
 * responses go on with whatever weights come, the gate says nothing of these. */
gl_status coupling_update(sim_clock *c, gl_error *err) {
  coupling *k = &c->coupled;
  if (k->hooks == NULL) return GL_OK;
  const int any = c->stream.engines != NULL && c->spec->partial == PARTIAL_CONTINUE;
  const int64_t before = c->version - 1, ahead = any ? INT64_MAX : c->spec->ahead;
  const schedule_update *u = &c->out->updates[before];
  gl_status status = GL_OK;
  if (k->users[before] > 0 && ahead >= 1 && (size_t)c->version < c->updates) {
    status = k->hooks->hold(k->hooks->self, before, err);
    k->held[before] = status == GL_OK;
  }
  if (status == GL_OK)
    status =
        k->hooks->update(k->hooks->self, u, &c->out->batches[u->first_batch], &k->stopped, err);
  if (ahead < c->version) release(k, c->version - ahead - 1);
  return status;
}
