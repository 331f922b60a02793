/* What becomes of units that are begun, by their lengths and their prompts: what is trained is not
 * what was drawn where slow units come too late. And, where the learner waits so that no unit is
 * ever too stale, when it must. */
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

int selection_init(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  c->selects = c->coupled.hooks != NULL || spec->stale != STALE_DISCARD;
  for (size_t i = 0; i < spec->n_groups; ++i)
    c->selects |= spec->groups[i].responses.lengths != NULL;
  for (size_t k = 0; spec->prompts != NULL && k + 1 < PROMPT_CLASSES; ++k)
    c->prompt_quarter[k] = delay_quantile(spec->prompts, (double)(k + 1) / PROMPT_CLASSES);
  if (spec->stale != STALE_WAIT) return 1;
  c->live = calloc(c->updates + 1, sizeof *c->live);
  c->waits = calloc(c->updates + 1, sizeof *c->waits);
  return c->live != NULL && c->waits != NULL;
}

void selection_fini(sim_clock *c) {
  free(c->live);
  free(c->waits);
  c->live = c->waits = NULL;
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
  while (k + 1 < PROMPT_CLASSES && factor > c->prompt_quarter[k]) ++k;
  return k;
}

static void count(const sim_clock *c, unit_counts *to, uint32_t slot) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  if (b->longest <= 0) return;
  to->tokens += b->tokens;
  to->longest += b->longest;
  ++to->by_length[length_class(b->longest)];
  if (c->stream.engines != NULL && c->spec->prompts != NULL) ++to->by_prompt[prompt_class(c, slot)];
}

void selection_forgets_lengths(sim_clock *c, uint32_t slot) {
  unit_counts one = {0};
  if (!c->selects) return;
  count(c, &one, slot);
  c->drawn.tokens -= one.tokens;
  c->drawn.longest -= one.longest;
  for (size_t k = 0; k < LENGTH_CLASSES; ++k) c->drawn.by_length[k] -= one.by_length[k];
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) c->drawn.by_prompt[k] -= one.by_prompt[k];
}

void selection_takes_lengths(sim_clock *c, uint32_t slot) {
  if (c->selects) count(c, &c->drawn, slot);
}

void selection_begins_unit(sim_clock *c, uint32_t slot) {
  count(c, &c->drawn, slot);
  if (c->live == NULL) return;
  const int64_t version = c->buffer.pool[slot].begun_with;
  ++c->live[version];
  if (version < c->least_live) c->least_live = version;
}

void selection_waits(sim_clock *c, uint32_t slot) {
  if (c->live != NULL) ++c->waits[c->buffer.pool[slot].begun_with];
}

void selection_ends_unit(sim_clock *c, uint32_t slot, unit_fate fate) {
  const pooled_batch *p = &c->buffer.pool[slot];
  count(c, &c->out->fate[fate], slot);
  if (c->live != NULL) {
    --c->live[p->begun_with];
    if (fate == FATE_TRAINED || fate == FATE_STALE || fate == FATE_EVICTED)
      --c->waits[p->begun_with];
    else
      c->wake_learner = 1; /* which may wait for it */
  }
  if (fate == FATE_TRAINED)
    c->out->weight_sum -=
        1 - cluster_stale_weight(c->spec, c->version - buffer_version(&c->buffer, slot));
}

/* A unit of version v has to be trained by the update that starts from v + window. An update at c
 * that takes the stalest first is safe if, for every version x up to c, what then is left of the
 * versions up to x fits into the x + window - c updates that remain for it. It waits where it is
 * not and a unit on its way could still help. With a gate whose `ahead` is not above the window
 * this always succeeds: all units that live when one of version x is begun fit into those updates.
 */
int selection_must_wait(sim_clock *c) {
  const uint64_t take = c->spec->take;
  uint64_t live = 0, waits = 0;
  while (c->least_live < c->version && c->live[c->least_live] == 0) ++c->least_live;
  for (int64_t x = c->least_live; x <= c->version; ++x) {
    live += c->live[x];
    waits += c->waits[x];
    const int64_t left = x + c->spec->window - c->version; /* updates after this one */
    const uint64_t taken = waits < take ? waits : take;
    const int is_safe = left > 0 && (live - taken + take - 1) / take <= (uint64_t)left;
    if (live > taken && !is_safe && taken < take && live > waits) return 1;
  }
  return 0;
}

void selection_count_pending(sim_clock *c) {
  unit_counts rest = c->drawn;
  rest.units = c->begun;
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
