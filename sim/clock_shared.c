/* Used by all files of the clock: posting events; the pool of units (a unit is a batch, a group
 * or a response); the ledger, which counts units by fate, length and prompt and so shows selection
 * bias if slow units are dropped; the rule for a learner that waits instead of dropping units; the
 * weight versions that a coupled learner (one trained inside the simulation) keeps, each until no
 * sampler can use it any more; and a sampler's state, sampled times and pauses. */
#include "sim/clock.h"

#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status clock_post(sim_clock *c, double time, event_kind kind, uint32_t node, uint64_t data,
                     gl_error *err) {
  if (!isfinite(time)) return gl_fail(err, GL_ENUMERIC, "a simulated time overflows");
  const uint32_t rank = kind == LEARNER_STARTS ? RANK_LEARNER : RANK_ARRIVAL;
  const bool fits = kind == SAMPLER_STARTS
                        ? fel_push_by_node(&c->events, time, RANK_SAMPLER, kind, node, data)
                        : fel_push(&c->events, time, rank, kind, node, data);
  if (fits) return GL_OK;
  return gl_fail_memory(err, "events");
}

/* --- the pool of units --- */

void buffer_init(buffer *b, bool by_time) {
  *b = (buffer){
      .by_time = by_time, .free_slot = BUFFER_NONE, .oldest = BUFFER_NONE, .newest = BUFFER_NONE};
  for (size_t l = 0; l < INDEX_LEVELS; ++l) b->first_above[l] = BUFFER_NONE;
}

void buffer_fini(buffer *b) {
  for (size_t i = 0; i < b->n_pool; ++i) free(b->pool[i].segments);
  free(b->pool);
  free(b->above);
  buffer_init(b, b->by_time);
}

size_t buffer_bytes(const buffer *b) {
  size_t bytes = b->capacity * (sizeof *b->pool + (b->by_time ? sizeof *b->above : 0));
  for (size_t i = 0; i < b->n_pool; ++i)
    bytes += b->pool[i].segment_capacity * sizeof *b->pool[i].segments;
  return bytes;
}

size_t buffer_in_use(const buffer *b) {
  size_t n = b->n_pool;
  for (uint32_t i = b->free_slot; i != BUFFER_NONE; i = b->pool[i].newer) --n;
  return n;
}

/* The links of a batch are in its second cache line, and sim/clock.c prefetches all of it. It must
 * not extend into a third line, so the pool is not grown with realloc(). With pointers of 32 bits
 * it is shorter. */
_Static_assert(sizeof(pooled_batch) == 2 * CACHE_LINE || sizeof(void *) < 8,
               "a batch is two cache lines");

/* Makes room for one more batch, doubling the capacity if needed; false if out of memory. */
static bool buffer_grow(buffer *b) {
  if (b->n_pool < b->capacity) return true;
  size_t capacity = b->capacity == 0 ? 64 : 2 * b->capacity;
  if (capacity >= BUFFER_NONE || capacity > SIZE_MAX / sizeof *b->pool) return false;
  if (b->by_time) {
    uint32_t(*above)[INDEX_LEVELS] = realloc(b->above, capacity * sizeof *above);
    if (above == NULL) return false;
    b->above = above;
  }
  pooled_batch *pool = aligned_alloc(CACHE_LINE, capacity * sizeof *pool);
  if (pool == NULL) return false;
  if (b->n_pool > 0) memcpy(pool, b->pool, b->n_pool * sizeof *pool);
  free(b->pool);
  b->pool = pool;
  b->capacity = capacity;
  return true;
}

static bool buffer_add_segment(pooled_batch *p, int64_t version, double from, int64_t response) {
  uint32_t n = p->facts.n_segments;
  if (n == p->segment_capacity) {
    uint32_t capacity = n == 0 ? 1 : 2 * n;
    schedule_segment *s = realloc(p->segments, capacity * sizeof *s);
    if (s == NULL) return false;
    p->segments = s;
    p->segment_capacity = capacity;
  }
  p->segments[p->facts.n_segments++] = (schedule_segment){version, from, 1, response};
  return true;
}

/* Prefetches the next free slot for a later event, because it is in main memory, not in the cache.
 */
static void ask_for_free(const buffer *b) {
  if (b->free_slot == BUFFER_NONE) return;
  const char *next = (const char *)&b->pool[b->free_slot];
  __builtin_prefetch(next, 1);
  __builtin_prefetch(next + CACHE_LINE, 1);
}

uint32_t buffer_take(buffer *b, int64_t version) {
  uint32_t slot = b->free_slot;
  if (slot == BUFFER_NONE) {
    if (!buffer_grow(b)) return BUFFER_NONE;
    slot = (uint32_t)b->n_pool++;
    b->pool[slot] = (pooled_batch){0};
  } else {
    b->free_slot = b->pool[slot].newer;
    ask_for_free(b);
  }
  pooled_batch *p = &b->pool[slot];
  p->facts = (schedule_batch){0};
  p->begun_with = version;
  p->older = p->newer = BUFFER_NONE;
  if (buffer_add_segment(p, version, 0, SEGMENT_OF_ALL)) return slot;
  buffer_release(b, slot);
  return BUFFER_NONE;
}

bool buffer_switch(buffer *b, uint32_t slot, double at, int64_t version) {
  pooled_batch *p = &b->pool[slot];
  schedule_segment *last = &p->segments[p->facts.n_segments - 1];
  if (at <= last->from) { /* nothing was generated with the previous version */
    last->version = version;
    return true;
  }
  last->to = at;
  return buffer_add_segment(p, version, at, SEGMENT_OF_ALL);
}

uint32_t buffer_begin_response(buffer *b, uint32_t slot, int64_t response, int64_t version) {
  pooled_batch *p = &b->pool[slot];
  if (p->segments[0].response == SEGMENT_OF_ALL) {
    p->segments[0].response = response;
    p->segments[0].version = version;
    return 0;
  }
  return buffer_add_segment(p, version, 0, response) ? p->facts.n_segments - 1 : UINT32_MAX;
}

uint32_t buffer_switch_response(buffer *b, uint32_t slot, uint32_t segment, double at,
                                int64_t version) {
  pooled_batch *p = &b->pool[slot];
  const int64_t response = p->segments[segment].response;
  if (at <= p->segments[segment].from) {
    p->segments[segment].version = version;
    return segment;
  }
  p->segments[segment].to = at;
  return buffer_add_segment(p, version, at, response) ? p->facts.n_segments - 1 : UINT32_MAX;
}

void buffer_rescale_response(buffer *b, uint32_t slot, int64_t response, double factor) {
  pooled_batch *p = &b->pool[slot];
  for (uint32_t i = 0; i < p->facts.n_segments; ++i) {
    schedule_segment *s = &p->segments[i];
    if (s->response != response) continue;
    s->from *= factor;
    if (s->to < 1) s->to *= factor;
  }
}

void buffer_join_segments(buffer *b, uint32_t slot) {
  pooled_batch *p = &b->pool[slot];
  for (uint32_t i = 1; i < p->facts.n_segments; ++i)
    if (p->segments[i].version != p->segments[0].version) return;
  p->segments[0] = (schedule_segment){p->segments[0].version, 0, 1, SEGMENT_OF_ALL};
  p->facts.n_segments = 1;
}

void buffer_release(buffer *b, uint32_t slot) {
  b->pool[slot].newer = b->free_slot;
  b->free_slot = slot;
}

/* The number of levels above the list that a batch is on. Each level has a quarter of the batches
 * of the level below, selected by a hash of their arrivals (the finaliser of MurmurHash3), so that
 * results do not depend on addresses. */
static size_t index_levels_of(uint64_t arrival) {
  arrival ^= arrival >> 33;
  arrival *= UINT64_C(0xff51afd7ed558ccd);
  arrival ^= arrival >> 33;
  size_t n = 0;
  while (n < INDEX_LEVELS && (arrival >> 2 * n & 3) == 0) ++n;
  return n;
}

static bool comes_before(const pooled_batch *a, const pooled_batch *b) {
  return a->facts.generated_s < b->facts.generated_s ||
         (a->facts.generated_s == b->facts.generated_s && a->arrival < b->arrival);
}

/* Sets before[l] to the last batch of level l that comes before the batch in this slot
 * (BUFFER_NONE: none), and returns the last such batch of the whole list. */
static uint32_t find_before(const buffer *b, uint32_t slot, uint32_t before[INDEX_LEVELS]) {
  uint32_t at = BUFFER_NONE;
  for (size_t l = INDEX_LEVELS; l-- > 0; before[l] = at)
    for (uint32_t next = at == BUFFER_NONE ? b->first_above[l] : b->above[at][l];
         next != BUFFER_NONE && comes_before(&b->pool[next], &b->pool[slot]);
         next = b->above[at][l])
      at = next;
  for (uint32_t next = at == BUFFER_NONE ? b->oldest : b->pool[at].newer;
       next != BUFFER_NONE && comes_before(&b->pool[next], &b->pool[slot]);
       next = b->pool[at].newer)
    at = next;
  return at;
}

static uint32_t *next_above(buffer *b, uint32_t of, size_t level) {
  return of == BUFFER_NONE ? &b->first_above[level] : &b->above[of][level];
}

/* Adds the batch to its levels; returns its predecessor in the list. */
static uint32_t index_insert(buffer *b, uint32_t slot) {
  uint32_t before[INDEX_LEVELS];
  const uint32_t older = find_before(b, slot, before);
  const size_t n = index_levels_of(b->pool[slot].arrival);
  for (size_t l = 0; l < n; ++l) {
    uint32_t *next = next_above(b, before[l], l);
    b->above[slot][l] = *next;
    *next = slot;
  }
  return older;
}

static void index_remove(buffer *b, uint32_t slot) {
  uint32_t before[INDEX_LEVELS];
  const size_t n = index_levels_of(b->pool[slot].arrival);
  if (n == 0) return;
  find_before(b, slot, before);
  for (size_t l = 0; l < n; ++l) *next_above(b, before[l], l) = b->above[slot][l];
}

void buffer_insert(buffer *b, uint32_t slot) {
  pooled_batch *pool = b->pool;
  pool[slot].arrival = ++b->arrivals;
  const uint32_t before = b->by_time ? index_insert(b, slot) : b->newest;
  const uint32_t after =
      before == BUFFER_NONE ? (b->by_time ? b->oldest : BUFFER_NONE) : pool[before].newer;
  pool[slot].older = before;
  pool[slot].newer = after;
  *(before == BUFFER_NONE ? &b->oldest : &pool[before].newer) = slot;
  *(after == BUFFER_NONE ? &b->newest : &pool[after].older) = slot;
  ++b->waiting;
}

void buffer_remove(buffer *b, uint32_t slot) {
  pooled_batch *p = &b->pool[slot];
  assert(slot < b->n_pool && p->arrival != 0);
  if (b->by_time) index_remove(b, slot);
  p->arrival = 0;
  *(p->older == BUFFER_NONE ? &b->oldest : &b->pool[p->older].newer) = p->newer;
  *(p->newer == BUFFER_NONE ? &b->newest : &b->pool[p->newer].older) = p->older;
  --b->waiting;
}

int64_t buffer_version(const buffer *b, uint32_t slot) {
  return b->pool[slot].segments[0].version;
}

/* --- prompts --- */

delay_source response_prompts(uint64_t seed, uint64_t group) {
  return (delay_source){rng_stream_at(seed, RNG_LENGTH, group + RESPONSE_PROMPTS), 0, 0};
}

double response_prompt(const response_spec *spec, uint64_t seed, uint64_t group) {
  delay_source prompts = response_prompts(seed, group);
  return spec->prompts != NULL ? delay_draw(spec->prompts, &prompts) : 1;
}

/* --- the ledger of units --- */

void ledger_init(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  c->ledger.selects = c->coupled.hooks != NULL || spec->stale != STALE_DISCARD ||
                      cluster_keeps_order(spec) || spec->n_sources > 0;
  c->out->n_sources = spec->n_sources;
  for (size_t i = 0; i < spec->n_groups; ++i)
    c->ledger.selects |= spec->groups[i].responses.lengths != NULL;
  for (size_t k = 0; spec->prompts != NULL && k + 1 < PROMPT_CLASSES; ++k)
    c->ledger.prompt_quarter[k] = delay_quantile(spec->prompts, (double)(k + 1) / PROMPT_CLASSES);
  if (spec->stale != STALE_WAIT && !cluster_keeps_order(spec)) return;
  c->ledger.live = ARENA_ARRAY(&c->memory, uint32_t, c->updates + 1);
  c->ledger.waits = ARENA_ARRAY(&c->memory, uint32_t, c->updates + 1);
}

static size_t length_class(double longest) {
  const int k = longest >= 1 ? ilogb(longest) : 0;
  return k < LENGTH_CLASSES ? (size_t)k : LENGTH_CLASSES - 1;
}

static size_t prompt_class(const sim_clock *c, double factor) {
  size_t k = 0;
  while (k + 1 < PROMPT_CLASSES && factor > c->ledger.prompt_quarter[k]) ++k;
  return k;
}

static void count_lengths_of(const sim_clock *c, unit_counts *to, const schedule_batch *b,
                             double prompt) {
  if (b->longest <= 0) return;
  to->tokens += b->tokens;
  to->longest += b->longest;
  ++to->by_length[length_class(b->longest)];
  if (c->stream.engines != NULL && c->spec->prompts != NULL)
    ++to->by_prompt[prompt_class(c, prompt)];
}

static void count_lengths(const sim_clock *c, unit_counts *to, uint32_t slot) {
  const double prompt = c->stream.engines != NULL ? c->stream.units[slot].prompt : 1;
  count_lengths_of(c, to, &c->buffer.pool[slot].facts, prompt);
}

static void subtract_lengths(unit_counts *from, const unit_counts *one) {
  from->tokens -= one->tokens;
  from->longest -= one->longest;
  for (size_t k = 0; k < LENGTH_CLASSES; ++k) from->by_length[k] -= one->by_length[k];
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) from->by_prompt[k] -= one->by_prompt[k];
}

void ledger_remove_lengths(sim_clock *c, uint32_t slot) {
  unit_counts one = {0};
  if (!c->ledger.selects) return;
  count_lengths(c, &one, slot);
  subtract_lengths(&c->ledger.drawn, &one);
}

void ledger_add_lengths(sim_clock *c, uint32_t slot) {
  if (c->ledger.selects) count_lengths(c, &c->ledger.drawn, slot);
}

/* The index of a unit in live[] and waits[]. */
static int64_t live_index(const sim_clock *c, uint32_t slot) {
  const pooled_batch *p = &c->buffer.pool[slot];
  if (c->spec->queue != QUEUE_IN_ORDER) return p->begun_with;
  const uint64_t update = p->facts.number / c->spec->take;
  return update < c->updates ? (int64_t)update : (int64_t)c->updates;
}

uint32_t ledger_next_source(const sim_clock *c) {
  const cluster_spec *spec = c->spec;
  const uint64_t *n = c->ledger.gate_of;
  uint32_t s = 0;
  if (spec->quotas) {
    for (uint32_t k = 1; k < spec->n_sources; ++k)
      if (n[k] * spec->sources[s].quota < n[s] * spec->sources[k].quota) s = k;
    return s;
  }
  const rng_words w =
      rng_block(rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_SOURCES + c->ledger.begun), 0);
  double rest = rng_u01_53(w.v[0], w.v[1]);
  while (s + 1 < spec->n_sources && rest >= spec->sources[s].fraction)
    rest -= spec->sources[s++].fraction;
  return s;
}

/* Adds a unit that has ended to the report of its source, and what a trained unit waited. */
static void count_source(sim_clock *c, uint32_t slot, unit_fate fate) {
  const pooled_batch *p = &c->buffer.pool[slot];
  source_report *of = &c->out->sources[p->source];
  ++of->fate[fate];
  if (fate != FATE_TRAINED) {
    --c->ledger.gate_of[p->source];
    return;
  }
  of->staleness += c->learner.version - buffer_version(&c->buffer, slot);
  of->waited_s += c->now - p->facts.arrived_s;
}

void ledger_begin_unit(sim_clock *c, uint32_t slot) {
  count_lengths(c, &c->ledger.drawn, slot);
  if (c->spec->n_sources > 0) {
    ++c->out->sources[c->buffer.pool[slot].source].begun;
    ++c->ledger.gate_of[c->buffer.pool[slot].source];
  }
  if (c->ledger.live == NULL) return;
  const int64_t index = live_index(c, slot);
  ++c->ledger.live[index];
  if (index < c->ledger.least_live) c->ledger.least_live = index;
}

void ledger_wait(sim_clock *c, uint32_t slot, int sign) {
  if (c->ledger.live != NULL) c->ledger.waits[live_index(c, slot)] += (uint32_t)sign;
}

void ledger_end_unit(sim_clock *c, uint32_t slot, unit_fate fate) {
  count_lengths(c, &c->out->fate[fate], slot);
  if (c->spec->n_sources > 0) count_source(c, slot, fate);
  if (c->ledger.live != NULL) {
    --c->ledger.live[live_index(c, slot)];
    if (fate != FATE_TRAINED && fate != FATE_STALE && fate != FATE_EVICTED)
      c->ledger.wake_learner = true; /* the learner may be waiting for it */
  }
  if (fate == FATE_TRAINED)
    c->out->weight_sum -=
        1 - cluster_stale_weight(c->spec, c->learner.version - buffer_version(&c->buffer, slot));
}

void ledger_untrain(sim_clock *c, const schedule_batch *b, int64_t staleness) {
  schedule *out = c->out;
  --out->fate[FATE_TRAINED].units;
  ++out->fate[FATE_LOST].units;
  if (c->ledger.selects) {
    unit_counts one = {0};
    const double prompt = response_prompt(&c->samplers[b->sampler].group->responses, c->seed,
                                          cluster_unit_draw(c->spec, b->id, 1).id);
    count_lengths_of(c, &one, b, prompt);
    subtract_lengths(&out->fate[FATE_TRAINED], &one);
    count_lengths_of(c, &out->fate[FATE_LOST], b, prompt);
    out->weight_sum += 1 - cluster_stale_weight(c->spec, staleness);
  }
  if (out->n_sources > 0) {
    const uint8_t source = out->source_of[b - out->batches];
    source_report *of = &out->sources[source];
    --of->fate[FATE_TRAINED];
    ++of->fate[FATE_LOST];
    of->staleness -= staleness;
    of->waited_s -= b->trained_s - b->arrived_s;
    --c->ledger.gate_of[source];
  }
  if (c->coupled.hooks != NULL) c->coupled.hooks->discard(c->coupled.hooks->self, b, FATE_LOST);
  --c->ledger.gate_count;
  ++c->ledger.freed;
}

void ledger_discard(sim_clock *c, uint32_t slot, unit_fate fate) {
  ledger_end(c, slot, fate);
  if (c->coupled.hooks != NULL)
    c->coupled.hooks->discard(c->coupled.hooks->self, &c->buffer.pool[slot].facts, fate);
  buffer_release(&c->buffer, slot);
  --c->ledger.gate_count;
  ++c->ledger.freed;
}

/* A unit of version v must be trained at the latest by the update that starts from v + window. An
 * update that starts from version c and takes the stalest units first is safe if, for every version
 * x up to c, the remaining units of versions up to x fit into the x + window - c updates that
 * remain for them. Otherwise the learner waits if a unit in progress could still help. If the
 * gate's `ahead` is at most the window this always succeeds: all live units when one of version x
 * is started fit into those updates. */
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

/* Indices are those of live_index(): versions, or with queue: in_order updates. Units in progress
 * that are staler than the window will be dropped: nothing waits for them. */
bool ledger_next_is_ready(sim_clock *c) {
  unit_ledger *l = &c->ledger;
  uint64_t ready = 0;
  while (l->least_live < (int64_t)c->updates && l->live[l->least_live] == 0) ++l->least_live;
  int64_t x = l->least_live;
  if (c->spec->stale == STALE_DISCARD && c->spec->window < c->learner.version - x)
    x = c->learner.version - c->spec->window;
  for (; x <= (int64_t)c->updates && ready < c->spec->take; ++x) {
    ready += l->waits[x];
    if (l->live[x] > l->waits[x]) break;
  }
  return ready >= c->spec->take;
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

/* --- versions held by a coupled learner --- */

void coupling_init(sim_clock *c, const schedule_hooks *hooks) {
  coupling *k = &c->coupled;
  *k = (coupling){.hooks = hooks};
  if (hooks == NULL) return;
  k->lengths = ARENA_ARRAY(&c->memory, double, c->spec->unit_responses);
  k->users = ARENA_ARRAY(&c->memory, uint32_t, c->updates + 1);
  k->held = ARENA_ARRAY(&c->memory, bool, c->updates + 1);
}

static void release_held(coupling *k, int64_t version) {
  if (!k->held[version]) return;
  k->held[version] = false;
  k->hooks->release(k->hooks->self, version);
}

void coupling_fini(sim_clock *c) {
  coupling *k = &c->coupled;
  for (size_t v = 0; k->held != NULL && v <= c->updates; ++v) release_held(k, (int64_t)v);
}

void version_add_ref(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0) ++c->coupled.users[version];
}

void version_release(sim_clock *c, int64_t version) {
  if (c->coupled.hooks != NULL && version >= 0 && --c->coupled.users[version] == 0)
    release_held(&c->coupled, version);
}

/* The most versions behind the learner that a sampler may be when it begins a unit. */
static int64_t oldest_begun(const cluster_spec *spec) {
  if (spec->ahead == INT64_MAX) return INT64_MAX;
  return spec->ahead + (int64_t)((spec->surplus + spec->take - 1) / spec->take);
}

/* Holds the version that this update replaces if batches may still be started with it, and releases
 * the version that the gate has just excluded. Without a surplus that one is `ahead` + 1 versions
 * back: sampler_gate_is_open() compares a version with gate_count / batches, which is never below
 * the learner's version, so the gate is closed if c->learner.version - version > ahead. Responses
 * that continue under new weights are not subject to the gate. */
gl_status coupling_update(sim_clock *c, gl_error *err) {
  coupling *k = &c->coupled;
  if (k->hooks == NULL) return GL_OK;
  const bool any = c->stream.engines != NULL && c->spec->partial == PARTIAL_CONTINUE;
  const int64_t before = c->learner.version - 1, ahead = any ? INT64_MAX : oldest_begun(c->spec);
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

/* --- sampled quantities of a sampler --- */

/* RNG_DELAY entity of all links down with shared_delays. */
static const uint64_t shared_link = UINT64_MAX;

/* The next sample of a sampler's distribution, from a compact state. */
static double sampler_draw(const delay_dist *dist, uint64_t seed, rng_purpose purpose,
                           uint64_t entity, draw_state *state) {
  delay_source source = {rng_stream_at(seed, purpose, entity), state->index, (int)state->bad};
  double x = delay_draw(dist, &source);
  *state = (draw_state){(uint32_t)source.index, (uint32_t)source.bad};
  return x;
}

double sampler_weights_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  uint64_t link = c->spec->shared_delays ? shared_link : 2 * (uint64_t)i + 1;
  return sampler_draw(s->group->delay, c->seed, RNG_DELAY, link, &s->delay);
}

double sampler_data_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->data_delay, c->seed, RNG_DELAY, 2 * (uint64_t)i, &s->data_delay);
}

double sampler_generation(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->generation, c->seed, RNG_GENERATION, 2 * (uint64_t)i,
                      &s->generation);
}

double sampler_jitter(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->jitter, c->seed, RNG_GENERATION, 2 * (uint64_t)i + 1, &s->jitter);
}

rng_stream sampler_losses(const sim_clock *c, uint32_t i, bool up) {
  return rng_stream_at(c->seed, RNG_LOSS, 2 * (uint64_t)i + !up);
}

/* --- a sampler's state --- */

void sampler_trace(const sim_clock *c, uint32_t i, span_end end) {
  const sampler *s = &c->samplers[i];
  switch (s->state) {
  case SAMPLER_READY:
    return;
  case SAMPLER_GENERATING:
    if (c->stream.engines != NULL) return; /* streamed units are traced individually */
    clock_trace(c, (schedule_span){SPAN_GENERATION, end, i, s->begun_s, c->now,
                                   c->buffer.pool[s->slot].facts.number, -1});
    return;
  case SAMPLER_GATED:
    clock_trace(c, (schedule_span){SPAN_GATED, end, i, s->begun_s, c->now, 0, -1});
    return;
  case SAMPLER_LOADING:
    clock_trace(c, (schedule_span){SPAN_FETCH, end, i, s->begun_s, c->now, 0, -1});
    return;
  case SAMPLER_DOWN:
    clock_trace(c, (schedule_span){SPAN_DOWN, end, i, s->begun_s, c->now, 0, -1});
    return;
  }
}

void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end) {
  sampler *s = &c->samplers[i];
  if (s->state == state) return;
  if (c->trace != NULL) sampler_trace(c, i, end);
  c->n_gated += state == SAMPLER_GATED;
  c->n_gated -= s->state == SAMPLER_GATED;
  s->state = state;
  s->begun_s = c->now;
}

gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_LOADING || s->ends_s != c->now) { /* the sampler crashed meanwhile */
    version_release(c, version != UINT64_MAX ? (int64_t)version : -1);
    return GL_OK;
  }
  if (version != UINT64_MAX) {
    version_release(c, s->version);
    s->version = (int64_t)version;
  }
  s->due_s = c->now + sampler_weights_delay(c, i);
  sampler_enter(c, i, SAMPLER_READY, version != UINT64_MAX ? SPAN_DONE : SPAN_LOST);
  return clock_post(c, c->now, SAMPLER_STARTS, i, 1, err);
}

/* The update that the next unit to be started belongs to. If surplus units are dropped, `surplus`
 * units more than an update takes are started for every update. If they are carried over to the
 * next update, they are started only once, at the beginning. */
static int64_t update_of_next(const sim_clock *c) {
  const cluster_spec *spec = c->spec;
  const uint64_t count = c->ledger.gate_count, started = c->out->n_updates;
  if (spec->aborts_surplus)
    return (int64_t)(started + (count - spec->take * started) / (spec->take + spec->surplus));
  return (int64_t)((count > spec->surplus ? count - spec->surplus : 0) / spec->take);
}

/* Bounded staleness: a unit's update may be at most `ahead` versions after the version that it is
 * generated with. */
bool sampler_gate_is_open(const sim_clock *c, const sampler *s) {
  if (s->version < 0) return false; /* returned from a crash, has no weights yet */
  return update_of_next(c) - s->version <= c->spec->ahead;
}

/* --- a sampler's pauses --- */

/* Pauses when weights arrive at a decoding sampler: decoding stops for cluster.interrupt and, if
 * keys and values are recomputed (kv_cache: recompute), for a prefill of all running tokens.
 * Weights that arrive during the pause are used at its end. If neither takes time, weights are used
 * at once and no state is stored. */

static bool interrupting_takes_time(const cluster_spec *spec) {
  bool prefills = false;
  for (size_t i = 0; i < spec->n_groups; ++i)
    prefills |= spec->groups[i].responses.prefill_tokens_per_s > 0;
  return spec->interrupt > 0 || (spec->kv_cache == KV_CACHE_RECOMPUTE && prefills);
}

void interrupt_init(sim_clock *c) {
  c->interrupts.by_weights = interrupting_takes_time(c->spec);
  if (!c->interrupts.by_weights && c->spec->colocated == NULL) return;
  c->interrupts.of = ARENA_ARRAY(&c->memory, interruption, c->spec->n_samplers);
  for (size_t i = 0; c->interrupts.of != NULL && i < c->spec->n_samplers; ++i)
    c->interrupts.of[i].coming = -1;
}

gl_status interrupt_begin(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err) {
  interruption *p = &c->interrupts.of[i];
  ++c->interrupts.n;
  c->interrupts.tokens += tokens;
  if (seconds <= 0) return GL_OK;
  p->begun_s = c->now;
  p->ends_s = p->weights_until_s = c->now + seconds;
  p->paused_s += seconds;
  c->interrupts.seconds += seconds;
  c->samplers[i].busy_s -= seconds;
  return clock_post(c, p->ends_s, INTERRUPTION_ENDS, i, 0, err);
}

gl_status interrupt_prolong(sim_clock *c, uint32_t i, double seconds, gl_error *err) {
  interruption *p = &c->interrupts.of[i];
  if (!interrupt_is_on(c, i)) p->begun_s = c->now;
  p->ends_s = interrupt_decoded_to(c, i) + seconds;
  p->paused_s += seconds;
  if (c->samplers[i].state == SAMPLER_GENERATING) c->samplers[i].busy_s -= seconds;
  return clock_post(c, p->ends_s, INTERRUPTION_ENDS, i, 0, err);
}

void interrupt_hold(sim_clock *c, uint32_t i, int64_t version) {
  interruption *p = &c->interrupts.of[i];
  const bool newer = version > p->coming;
  version_release(c, newer ? p->coming : version);
  if (newer) p->coming = version;
}

void interrupt_trace(const sim_clock *c, uint32_t i, span_end end) {
  if (interrupt_is_on(c, i))
    clock_trace(c, (schedule_span){SPAN_INTERRUPT, end, i, c->interrupts.of[i].begun_s, c->now, 0,
                                   c->samplers[i].version});
}

void interrupt_reset(sim_clock *c, uint32_t i) {
  if (c->interrupts.of != NULL) c->interrupts.of[i].paused_s = 0;
}

bool interrupt_end(sim_clock *c, uint32_t i, int64_t *next) {
  interruption *p = &c->interrupts.of[i];
  if (p->ends_s != c->now) return false;
  *next = p->coming;
  interrupt_trace(c, i, SPAN_DONE);
  p->ends_s = 0;
  p->coming = -1;
  return true;
}

void interrupt_crash(sim_clock *c, uint32_t i, bool generated) {
  if (c->interrupts.of == NULL) return;
  interruption *p = &c->interrupts.of[i];
  interrupt_trace(c, i, SPAN_LOST);
  c->interrupts.seconds -= interrupt_weights_rest(c, i);
  if (c->spec->colocated == NULL || generated) c->samplers[i].busy_s += interrupt_rest(c, i);
  version_release(c, p->coming);
  *p = (interruption){.coming = -1};
}
