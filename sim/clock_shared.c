/* What all parts of the clock share: posting events; what becomes of units, by their lengths and
 * prompts (what is trained is not what was sampled where slow units come too late), and when a
 * learner that never drops a unit must wait; the versions that a coupled learner keeps, so that no
 * parameters are kept longer than somebody may sample from them. */
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

gl_status clock_post(sim_clock *c, double time, event_kind kind, uint32_t node, uint64_t data,
                     gl_error *err) {
  const uint32_t rank = kind == SAMPLER_STARTS   ? RANK_SAMPLER
                        : kind == LEARNER_STARTS ? RANK_LEARNER
                                                 : RANK_ARRIVAL;
  if (!isfinite(time)) return gl_fail(err, GL_ENUMERIC, "a simulated time overflows");
  if (fel_push(&c->events, time, rank, kind, node, data)) return GL_OK;
  return gl_fail_memory(err, "events");
}

/* --- the ledger of units --- */

bool ledger_init(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  c->ledger.selects = c->coupled.hooks != NULL || spec->stale != STALE_DISCARD;
  for (size_t i = 0; i < spec->n_groups; ++i)
    c->ledger.selects |= spec->groups[i].responses.lengths != NULL;
  for (size_t k = 0; spec->prompts != NULL && k + 1 < PROMPT_CLASSES; ++k)
    c->ledger.prompt_quarter[k] = delay_quantile(spec->prompts, (double)(k + 1) / PROMPT_CLASSES);
  if (spec->stale != STALE_WAIT) return true;
  c->ledger.live = calloc(c->updates + 1, sizeof *c->ledger.live);
  c->ledger.waits = calloc(c->updates + 1, sizeof *c->ledger.waits);
  return c->ledger.live != NULL && c->ledger.waits != NULL;
}

void ledger_fini(sim_clock *c) {
  free(c->ledger.live);
  free(c->ledger.waits);
  c->ledger.live = c->ledger.waits = NULL;
}

const char *unit_fate_name(unit_fate fate) {
  switch (fate) {
  case FATE_TRAINED:
    return "trained";
  case FATE_STALE:
    return "stale";
  case FATE_EVICTED:
    return "evicted";
  case FATE_ABORTED:
    return "aborted";
  case FATE_LOST:
    return "lost";
  case FATE_PENDING:
    return "pending";
  case FATES:
    break;
  }
  return "";
}

static size_t length_class(double longest) {
  const int k = longest >= 1 ? ilogb(longest) : 0;
  return k < LENGTH_CLASSES ? (size_t)k : LENGTH_CLASSES - 1;
}

static size_t prompt_class(const sim_clock *c, uint32_t slot) {
  const double factor = c->stream.units[slot].prompt;
  size_t k = 0;
  while (k + 1 < PROMPT_CLASSES && factor > c->ledger.prompt_quarter[k]) ++k;
  return k;
}

static void count_lengths(const sim_clock *c, unit_counts *to, uint32_t slot) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  if (b->longest <= 0) return;
  to->tokens += b->tokens;
  to->longest += b->longest;
  ++to->by_length[length_class(b->longest)];
  if (c->stream.engines != NULL && c->spec->prompts != NULL) ++to->by_prompt[prompt_class(c, slot)];
}

void ledger_remove_lengths(sim_clock *c, uint32_t slot) {
  unit_counts one = {0};
  if (!c->ledger.selects) return;
  count_lengths(c, &one, slot);
  c->ledger.drawn.tokens -= one.tokens;
  c->ledger.drawn.longest -= one.longest;
  for (size_t k = 0; k < LENGTH_CLASSES; ++k) c->ledger.drawn.by_length[k] -= one.by_length[k];
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) c->ledger.drawn.by_prompt[k] -= one.by_prompt[k];
}

void ledger_add_lengths(sim_clock *c, uint32_t slot) {
  if (c->ledger.selects) count_lengths(c, &c->ledger.drawn, slot);
}

void ledger_begin_unit(sim_clock *c, uint32_t slot) {
  count_lengths(c, &c->ledger.drawn, slot);
  if (c->ledger.live == NULL) return;
  const int64_t version = c->buffer.pool[slot].begun_with;
  ++c->ledger.live[version];
  if (version < c->ledger.least_live) c->ledger.least_live = version;
}

void ledger_wait(sim_clock *c, uint32_t slot) {
  if (c->ledger.live != NULL) ++c->ledger.waits[c->buffer.pool[slot].begun_with];
}

void ledger_end_unit(sim_clock *c, uint32_t slot, unit_fate fate) {
  const pooled_batch *p = &c->buffer.pool[slot];
  count_lengths(c, &c->out->fate[fate], slot);
  if (c->ledger.live != NULL) {
    --c->ledger.live[p->begun_with];
    if (fate == FATE_TRAINED || fate == FATE_STALE || fate == FATE_EVICTED)
      --c->ledger.waits[p->begun_with];
    else
      c->ledger.wake_learner = true; /* which may wait for it */
  }
  if (fate == FATE_TRAINED)
    c->out->weight_sum -=
        1 - cluster_stale_weight(c->spec, c->learner.version - buffer_version(&c->buffer, slot));
}

void ledger_discard(sim_clock *c, uint32_t slot, unit_fate fate) {
  ledger_end(c, slot, fate);
  if (c->coupled.hooks != NULL)
    c->coupled.hooks->discard(c->coupled.hooks->self, &c->buffer.pool[slot].facts, fate);
  buffer_release(&c->buffer, slot);
  --c->ledger.gate_count;
  ++c->ledger.freed;
}

/* A unit of version v has to be trained by the update that starts from v + window. An update at c
 * that takes the stalest first is safe if, for every version x up to c, what then is left of the
 * versions up to x fits into the x + window - c updates that remain for it. It waits where it is
 * not and a unit on its way could still help. With a gate whose `ahead` is not above the window
 * this always succeeds: all units that live when one of version x is begun fit into those updates.
 */
bool ledger_must_wait(sim_clock *c) {
  const uint64_t take = c->spec->take;
  uint64_t live = 0, waits = 0;
  while (c->ledger.least_live < c->learner.version && c->ledger.live[c->ledger.least_live] == 0)
    ++c->ledger.least_live;
  for (int64_t x = c->ledger.least_live; x <= c->learner.version; ++x) {
    live += c->ledger.live[x];
    waits += c->ledger.waits[x];
    const int64_t left = x + c->spec->window - c->learner.version; /* updates after this one */
    const uint64_t taken = waits < take ? waits : take;
    const bool is_safe = left > 0 && (live - taken + take - 1) / take <= (uint64_t)left;
    if (live > taken && !is_safe && taken < take && live > waits) return true;
  }
  return false;
}

void ledger_count_pending(sim_clock *c) {
  unit_counts rest = c->ledger.drawn;
  rest.units = c->ledger.begun;
  for (int f = 0; f < FATE_PENDING; ++f) {
    const unit_counts *of = &c->out->fate[f];
    rest.units -= of->units;
    rest.tokens -= of->tokens;
    rest.longest -= of->longest;
    for (size_t k = 0; k < LENGTH_CLASSES; ++k) rest.by_length[k] -= of->by_length[k];
    for (size_t k = 0; k < PROMPT_CLASSES; ++k) rest.by_prompt[k] -= of->by_prompt[k];
  }
  c->out->fate[FATE_PENDING] = rest;
  c->out->weight_sum += (double)c->out->fate[FATE_TRAINED].units;
}

/* --- versions that a coupled learner keeps --- */

bool coupling_init(sim_clock *c, const schedule_hooks *hooks) {
  coupling *k = &c->coupled;
  *k = (coupling){.hooks = hooks};
  if (hooks == NULL) return true;
  k->lengths = calloc(c->spec->unit_responses, sizeof *k->lengths);
  k->users = calloc(c->updates + 1, sizeof *k->users);
  k->held = calloc(c->updates + 1, sizeof *k->held);
  return k->lengths != NULL && k->users != NULL && k->held != NULL;
}

static void release_held(coupling *k, int64_t version) {
  if (!k->held[version]) return;
  k->held[version] = false;
  k->hooks->release(k->hooks->self, version);
}

void coupling_fini(sim_clock *c) {
  coupling *k = &c->coupled;
  for (size_t v = 0; k->held != NULL && v <= c->updates; ++v) release_held(k, (int64_t)v);
  free(k->lengths);
  free(k->users);
  free(k->held);
  *k = (coupling){0};
}

void version_add_ref(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0) ++c->coupled.users[version];
}

void version_release(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0 && --c->coupled.users[version] == 0)
    release_held(&c->coupled, version);
}

/* Holds the version that this update leaves, if batches may still be begun with it, and releases
 * the one that no batch may be begun with any more. That one is `ahead` + 1 versions back: the gate
 * (sampler_gate_is_open) compares a version with gate_count / batches, which is never below the
 * learner's version, so it is closed for versions with c->learner.version - version > ahead. Where
 * responses go on with whatever weights come, the gate says nothing of these. */
gl_status coupling_update(sim_clock *c, gl_error *err) {
  coupling *k = &c->coupled;
  if (k->hooks == NULL) return GL_OK;
  const bool any = c->stream.engines != NULL && c->spec->partial == PARTIAL_CONTINUE;
  const int64_t before = c->learner.version - 1, ahead = any ? INT64_MAX : c->spec->ahead;
  const schedule_update *u = &c->out->updates[before];
  gl_status status = GL_OK;
  if (k->users[before] > 0 && ahead >= 1 && (size_t)c->learner.version < c->updates) {
    status = k->hooks->hold(k->hooks->self, before, err);
    k->held[before] = status == GL_OK;
  }
  if (status == GL_OK)
    status =
        k->hooks->update(k->hooks->self, u, &c->out->batches[u->first_batch], &k->stopped, err);
  if (ahead < c->learner.version) release_held(k, c->learner.version - ahead - 1);
  return status;
}
