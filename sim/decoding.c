/* Decoding speed that depends on the load (cluster.decoding): the responses that a sampler decodes
 * get one token per step, and the time of a step depends on their number and on the tokens whose
 * keys and values it holds. Where the memory for these is limited, responses are preempted. With
 * prefix_cache the prompts' prefill takes time, once for the responses that share it. */
#include "core/base/array.h"
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

enum { NO_RESPONSE = UINT32_MAX };
/* Fraction of the memory that stays free when a response begins or continues (vLLM's watermark). */
static const double watermark = 0.01;
/* A response with fewer steps left has ended: the rest is rounding error. */
static const double rounding = 1e-9;

/* --- time of steps --- */

static double measured_step(const decoding_spec *d, double n) {
  const double *x = d->running, *y = d->step_s;
  size_t k = 1;
  if (d->n_points == 1 || n <= x[0]) return y[0];
  while (k + 1 < d->n_points && n > x[k]) ++k;
  const double slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1]);
  return n > x[k] ? y[k] + fmax(slope, 0) * (n - x[k]) : y[k - 1] + slope * (n - x[k - 1]);
}

/* Seconds of a step at speed 1, without the time that depends on the held tokens (cached_s). */
static double step_s(const decoding_spec *d, double running) {
  if (d->n_points > 0) return measured_step(d, running);
  return d->overhead_s + fmax(d->least_s, running * d->response_s);
}

/* Each step takes a + c held seconds and adds `rate` tokens to those that are held, so that m steps
 * take (a + c held) m + c rate m^2 / 2 seconds. */
typedef struct pace {
  double linear, half; /* seconds = linear m + half m^2 */
} pace;

static pace pace_of(const sim_clock *c, uint32_t i) {
  const decoding_spec *d = c->spec->decoding;
  const engine_load *l = &c->stream.loads[i];
  const double speed = c->samplers[i].group->speed;
  const double step = step_s(d, (double)l->active) + d->cached_s * fmax(l->held + l->shared, 0);
  return (pace){step / speed, d->cached_s * fmax(l->rate, 0) / 2 / speed};
}

static double steps_in(pace p, double seconds) {
  if (seconds <= 0) return 0;
  return 2 * seconds / (p.linear + sqrt(p.linear * p.linear + 4 * p.half * seconds));
}

static double load_seconds(pace p, double steps) {
  return steps > 0 ? (p.linear + p.half * steps) * steps : 0;
}

/* --- a sampler's load --- */

static bool is_stale(const sim_clock *c, const sim_event *e) {
  return c->stream.running[e->node].serial != (uint32_t)e->data;
}

/* The response that ends next, NO_RESPONSE: none is decoded. */
static uint32_t next_end(sim_clock *c, engine_load *l) {
  while (!eq_is_empty(&l->ends) && is_stale(c, eq_top(&l->ends))) eq_pop(&l->ends);
  return eq_is_empty(&l->ends) ? NO_RESPONSE : eq_top(&l->ends)->node;
}

/* Brings the state up to now. */
static void load_advance(sim_clock *c, uint32_t i) {
  engine_load *l = &c->stream.loads[i];
  if (c->now <= l->at_s) return;
  double steps = l->active > 0 ? steps_in(pace_of(c, i), c->now - l->at_s) : 0;
  const uint32_t next = steps > 0 ? next_end(c, l) : NO_RESPONSE;
  if (next != NO_RESPONSE) { /* rounding: no response is decoded beyond its end */
    const double left = c->stream.loaded[next].to - l->steps;
    if (steps > left - rounding) steps = fmax(left, 0);
  }
  c->stream.decoded_s += l->active > 0 ? c->now - l->at_s : 0;
  c->stream.decoded_tokens += l->rate * steps;
  l->steps += steps;
  l->held += l->rate * steps;
  l->at_s = c->now;
}

static double steps_now(const sim_clock *c, uint32_t i) {
  const engine_load *l = &c->stream.loads[i];
  if (l->active == 0 || c->now <= l->at_s) return l->steps;
  return l->steps + steps_in(pace_of(c, i), c->now - l->at_s);
}

/* Tokens that the response has decoded once its sampler has made `steps` steps. */
static double own_tokens(const sim_clock *c, uint32_t index, double steps) {
  const loaded_response *r = &c->stream.loaded[index];
  return r->rate * (steps - r->from);
}

/* --- prompts and their cache --- */

static bool shares_prompts(const sim_clock *c) {
  return c->spec->decoding->prefix_cache >= PREFIX_CACHE_VERSION;
}

/* The group of a unit, by its id. */
static uint64_t prompt_group(const sim_clock *c, uint64_t unit) {
  return cluster_unit_draw(c->spec, unit, 1).id;
}

static double prompt_tokens(const sim_clock *c, uint32_t i) {
  return c->samplers[i].group->responses.prompt_tokens;
}

/* Whether what these weights computed is used by the sampler. */
static bool version_is_usable(const sim_clock *c, uint32_t i, int64_t version) {
  return version >= 0 &&
         (c->spec->decoding->prefix_cache == PREFIX_CACHE_ALL || version == c->samplers[i].version);
}

/* The cached prompt of a group; NULL if it must be computed. */
static cached_prompt *prompt_find(const sim_clock *c, uint32_t i, uint64_t group) {
  const engine_load *l = &c->stream.loads[i];
  for (size_t k = 0; k < l->n_prompts; ++k)
    if (l->prompts[k].group == group && version_is_usable(c, i, l->prompts[k].version))
      return &l->prompts[k];
  return NULL;
}

/* Tokens of a prompt that would have to be added to memory. */
static double prompt_needs(const sim_clock *c, uint32_t i, uint64_t group) {
  const cached_prompt *p = shares_prompts(c) ? prompt_find(c, i, group) : NULL;
  return p != NULL && p->holders > 0 ? 0 : prompt_tokens(c, i);
}

/* Whether a response of the group may still need its cached prompt. */
static bool prompt_is_in_use(const engine_load *l, uint64_t group) {
  bool in_use = l->prompts[l->newest].group == group;
  for (size_t k = 0; k < l->n_prompts && !in_use; ++k)
    in_use = l->prompts[k].users > 0 && l->prompts[k].group == group;
  return in_use;
}

/* A new entry for a prompt that the sampler's weights compute; NULL if out of memory. */
static cached_prompt *prompt_add(sim_clock *c, uint32_t i, uint64_t group) {
  engine_load *l = &c->stream.loads[i];
  size_t k = 0;
  while (k < l->n_prompts && (l->prompts[k].users > 0 || prompt_is_in_use(l, l->prompts[k].group)))
    ++k;
  if (k == l->n_prompts && !ARRAY_RESERVE(l->prompts, l->prompt_capacity, k + 1)) return NULL;
  if (k == l->n_prompts) ++l->n_prompts;
  l->prompts[k] = (cached_prompt){.group = group, .version = c->samplers[i].version};
  return &l->prompts[k];
}

/* The response's prompt is now held. *computed, *added: tokens of it that must be computed, and
 * that memory did not have. Returns false if out of memory. */
static bool prompt_hold(sim_clock *c, uint32_t i, uint32_t index, uint64_t group, double *computed,
                        double *added) {
  *computed = *added = prompt_tokens(c, i);
  if (!shares_prompts(c)) return true;
  cached_prompt *p = prompt_find(c, i, group);
  if (p != NULL) *computed = 0;
  if (p == NULL) p = prompt_add(c, i, group);
  if (p == NULL) return false;
  c->stream.loaded[index].prompt = (uint32_t)(p - c->stream.loads[i].prompts);
  ++p->users;
  if (p->holders++ == 0) return true;
  *added = 0;
  c->stream.loads[i].shared += prompt_tokens(c, i);
  return true;
}

/* Frees what the response holds once its sampler has made `steps` steps. A prompt in the cache
 * stays in memory as long as another response holds it. */
static void load_free(sim_clock *c, uint32_t i, uint32_t index, double steps) {
  engine_load *l = &c->stream.loads[i];
  const double own = own_tokens(c, index, steps);
  const bool others = shares_prompts(c) && --l->prompts[c->stream.loaded[index].prompt].holders > 0;
  l->held -= others ? own : prompt_tokens(c, i) + own;
  l->shared -= others ? prompt_tokens(c, i) : 0;
}

/* Memory is full: what nobody holds is no longer in the cache. */
static void cache_evict(sim_clock *c, uint32_t i) {
  const streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  for (size_t k = 0; k < l->n_prompts; ++k)
    if (l->prompts[k].holders == 0) l->prompts[k].version = -1;
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE; k = t->running[k].next)
    t->loaded[k].cached = -1;
}

/* Decoding stands still while keys and values of the response's tokens are computed. */
static void load_prefill(sim_clock *c, uint32_t i, uint32_t index, double tokens) {
  engine_load *l = &c->stream.loads[i];
  const sampler_group *g = c->samplers[i].group;
  const double prefill = g->responses.prefill_tokens_per_s * g->speed, from = l->at_s;
  if (prefill > 0) l->at_s += tokens / prefill;
  if (c->spec->decoding->prefix_cache == PREFIX_CACHE_FREE) return;
  const schedule_batch *b = &c->buffer.pool[c->stream.running[index].slot].facts;
  clock_trace(c, (schedule_span){SPAN_PREFILL, SPAN_DONE, i, from, l->at_s, b->number, -1});
}

void load_recompute(sim_clock *c, uint32_t i) {
  engine_load *l = &c->stream.loads[i];
  for (size_t k = 0; k < l->n_prompts; ++k)
    if (l->prompts[k].holders > 0) l->prompts[k].version = c->samplers[i].version;
}

void load_crash(sim_clock *c, uint32_t i) {
  c->stream.loads[i].n_prompts = 0;
}

/* --- responses that come and go --- */

double load_fraction(const sim_clock *c, uint32_t i, uint32_t index) {
  const loaded_response *r = &c->stream.loaded[index];
  const double steps = r->preempted ? 0 : steps_now(c, i);
  const double from = c->calls.turns != NULL ? r->to - r->turn : r->from;
  return r->to - steps <= rounding ? 1 : (steps - from) / (r->to - from);
}

static bool push_end(sim_clock *c, engine_load *l, uint32_t index) {
  return eq_push(&l->ends, c->stream.loaded[index].to, 0, 0, index,
                 c->stream.running[index].serial) != 0;
}

/* Counts steps from 0 again when no response is decoded, because none then refers to them. */
static void load_forget(engine_load *l) {
  if (l->active > 0) return;
  l->steps = 0;
  l->ends.size = 0;
}

/* The prompt of a response that begins. Returns false if out of memory. */
static bool prompt_begin(sim_clock *c, uint32_t i, uint32_t index) {
  streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  const uint64_t group = prompt_group(c, c->buffer.pool[t->running[index].slot].facts.id);
  double computed, added;
  if (!prompt_hold(c, i, index, group, &computed, &added)) return false;
  l->newest = t->loaded[index].prompt;
  l->held += added;
  t->prompts += prompt_tokens(c, i);
  t->cached_prompts += prompt_tokens(c, i) - computed;
  load_prefill(c, i, index, computed);
  return true;
}

bool load_join(sim_clock *c, uint32_t i, uint32_t index, double tokens, double factor) {
  streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  const double turns = c->calls.turns != NULL ? c->calls.turns[index].n : 1;
  if (!ARRAY_RESERVE(t->loaded, t->loaded_capacity, t->n_running)) return false;
  load_advance(c, i);
  load_forget(l);
  t->loaded[index] = (loaded_response){.from = l->steps,
                                       .to = l->steps + tokens * factor / turns,
                                       .turn = tokens * factor / turns,
                                       .rate = 1 / factor,
                                       .cached = -1};
  ++l->active;
  l->rate += 1 / factor;
  l->changed = true;
  if (c->spec->decoding->prefix_cache == PREFIX_CACHE_FREE)
    l->held += prompt_tokens(c, i);
  else if (!prompt_begin(c, i, index))
    return false;
  return push_end(c, l, index);
}

/* Sets sums over no responses to exactly 0, which removes accumulated rounding errors. */
static void load_empty(engine_load *l) {
  if (l->active == 0) l->rate = 0;
  if (l->active == 0 && l->calling == 0) l->held = l->shared = 0;
}

void load_leave(sim_clock *c, uint32_t i, uint32_t index) {
  engine_load *l = &c->stream.loads[i];
  const loaded_response *r = &c->stream.loaded[index];
  load_advance(c, i);
  l->changed = true;
  if (r->preempted) {
    --l->preempted;
  } else if (!turns_decodes(c, index)) {
    if (turns_hold_slot(c, index)) load_free(c, i, index, 0), --l->calling;
  } else {
    load_free(c, i, index, l->steps);
    l->rate -= r->rate;
    --l->active;
  }
  if (shares_prompts(c)) --l->prompts[r->prompt].users;
  load_empty(l);
  if (l->active == 0 && l->preempted == 0) l->at_s = c->now;
}

void load_call(sim_clock *c, uint32_t i, uint32_t index) {
  engine_load *l = &c->stream.loads[i];
  loaded_response *r = &c->stream.loaded[index];
  load_advance(c, i);
  l->changed = true;
  if (c->spec->environment->frees_slot) {
    load_free(c, i, index, l->steps);
    if (shares_prompts(c)) r->cached = l->prompts[r->prompt].version;
  } else {
    ++l->calling;
  }
  l->rate -= r->rate;
  --l->active;
  r->from -= l->steps, r->to -= l->steps;
  ++c->stream.running[index].serial;
  load_empty(l);
}

bool load_rescale(sim_clock *c, uint32_t i, uint32_t index, double factor) {
  engine_load *l = &c->stream.loads[i];
  loaded_response *r = &c->stream.loaded[index];
  load_advance(c, i);
  r->to = r->from + (r->to - r->from) * factor;
  l->changed = true;
  return r->preempted || push_end(c, l, index);
}

void load_pause(sim_clock *c, uint32_t i, double seconds) {
  engine_load *l = &c->stream.loads[i];
  load_advance(c, i);
  l->at_s = fmax(l->at_s, c->now) + seconds;
  l->changed = true;
}

double load_held(const sim_clock *c, uint32_t i) {
  const engine_load *l = &c->stream.loads[i];
  return l->held + l->rate * (steps_now(c, i) - l->steps);
}

/* The group of the response that the sampler begins next. */
static uint64_t next_prompt_group(const sim_clock *c, uint32_t i) {
  const uint32_t open = c->stream.engines[i].open;
  return prompt_group(c, open != BUFFER_NONE ? c->buffer.pool[open].facts.id
                                             : (uint64_t)i << 32 | c->samplers[i].ordinal);
}

bool load_has_room(const sim_clock *c, uint32_t i) {
  const decoding_spec *d = c->spec->decoding;
  const engine_load *l = &c->stream.loads[i];
  if (l->active == 0 && l->preempted == 0 && l->calling == 0) return true;
  const double prompt =
      shares_prompts(c) ? prompt_needs(c, i, next_prompt_group(c, i)) : prompt_tokens(c, i);
  return l->preempted == 0 && load_held(c, i) + prompt <= (1 - watermark) * d->kv_tokens;
}

/* --- preemption --- */

static void trace_preempted(const sim_clock *c, uint32_t i, uint32_t index, span_end end) {
  if (c->stream.loaded[index].since_s == c->now) return; /* back from a call, and there is memory */
  const schedule_batch *b = &c->buffer.pool[c->stream.running[index].slot].facts;
  clock_trace(c, (schedule_span){SPAN_PREEMPTED, end, i, c->stream.loaded[index].since_s, c->now,
                                 b->number, -1});
}

/* Preempts the response that started last, as vLLM does: its keys and values are freed, and it
 * keeps its tokens. */
static void preempt_last(sim_clock *c, uint32_t i) {
  streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  uint32_t k = t->engines[i].first;
  while (t->loaded[k].preempted || !turns_decodes(c, k)) k = t->running[k].next;
  loaded_response *r = &t->loaded[k];
  load_free(c, i, k, l->steps);
  l->rate -= r->rate;
  --l->active;
  ++l->preempted;
  ++t->preemptions;
  ++t->running[k].serial;
  r->from -= l->steps, r->to -= l->steps;
  r->since_s = c->now;
  r->preempted = true;
  cache_evict(c, i);
}

/* Resumes a preempted response, whose tokens are computed again as far as they are not in the
 * cache. *fits: whether there was memory. Returns false if out of memory. */
static bool resume(sim_clock *c, uint32_t i, uint32_t index, bool *fits) {
  streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  loaded_response *r = &t->loaded[index];
  const double own = own_tokens(c, index, 0);
  const uint64_t group = shares_prompts(c) ? l->prompts[r->prompt].group : 0;
  double computed, added;
  *fits = l->active == 0 || prompt_needs(c, i, group) + own <=
                                (1 - watermark) * c->spec->decoding->kv_tokens - l->held;
  if (!*fits) return true;
  if (shares_prompts(c)) --l->prompts[r->prompt].users;
  if (!prompt_hold(c, i, index, group, &computed, &added)) return false;
  if (!version_is_usable(c, i, r->cached)) computed += own;
  trace_preempted(c, i, index, SPAN_DONE);
  r->from += l->steps, r->to += l->steps;
  r->since_s = 0;
  r->preempted = false;
  r->cached = -1;
  l->held += added + own;
  l->rate += r->rate;
  ++l->active;
  --l->preempted;
  t->preempted_tokens += computed;
  load_prefill(c, i, index, computed);
  return push_end(c, l, index);
}

/* Resumes preempted responses as far as memory allows, in the order in which they were started. */
static bool resume_preempted(sim_clock *c, uint32_t i) {
  streaming *t = &c->stream;
  engine_load *l = &t->loads[i];
  uint32_t k = t->engines[i].first;
  if (l->preempted == 0) return true;
  while (t->running[k].next != NO_RESPONSE) k = t->running[k].next;
  for (; k != NO_RESPONSE && l->preempted > 0; k = t->running[k].previous) {
    bool fits = true;
    if (t->loaded[k].preempted && !resume(c, i, k, &fits)) return false;
    if (!fits) return true;
  }
  return true;
}

bool load_return(sim_clock *c, uint32_t i, uint32_t index) {
  engine_load *l = &c->stream.loads[i];
  loaded_response *r = &c->stream.loaded[index];
  load_advance(c, i);
  load_forget(l);
  l->changed = true;
  r->to += r->turn;
  if (c->spec->environment->frees_slot) {
    r->preempted = true;
    r->since_s = c->now;
    ++l->preempted;
    return resume_preempted(c, i);
  }
  r->from += l->steps, r->to += l->steps;
  l->rate += r->rate;
  ++l->active;
  --l->calling;
  return push_end(c, l, index);
}

/* --- events --- */

/* Steps until the held tokens fill the memory; infinite if they cannot before a response ends. */
static double steps_to_full(const sim_clock *c, const engine_load *l) {
  return l->active > 1 && l->rate > 0 ? fmax((c->spec->decoding->kv_tokens - l->held) / l->rate, 0)
                                      : INFINITY;
}

gl_status load_post(sim_clock *c, uint32_t i, gl_error *err) {
  engine_load *l = &c->stream.loads[i];
  if (!l->changed) return GL_OK;
  l->changed = false;
  ++l->serial;
  load_advance(c, i);
  if (!resume_preempted(c, i)) return gl_fail_memory(err, "responses under way");
  const uint32_t next = next_end(c, l);
  if (next == NO_RESPONSE) return GL_OK;
  const double left = c->stream.loaded[next].to - l->steps, full = steps_to_full(c, l);
  const double time = left <= rounding
                          ? c->now
                          : fmax(l->at_s, c->now) + load_seconds(pace_of(c, i), fmin(left, full));
  return clock_post(c, time, DECODING_MOVES, i, l->serial, err);
}

gl_status load_moves(sim_clock *c, uint32_t i, uint64_t serial, uint32_t *ended, gl_error *err) {
  engine_load *l = &c->stream.loads[i];
  *ended = NO_RESPONSE;
  if (l->serial != (uint32_t)serial) return GL_OK;
  load_advance(c, i);
  l->changed = true;
  const uint32_t next = next_end(c, l);
  if (next == NO_RESPONSE) return GL_OK;
  const double left = c->stream.loaded[next].to - l->steps;
  if (left > rounding && steps_to_full(c, l) > left) { /* the time was rounded down */
    l->held += l->rate * left;
    l->steps = c->stream.loaded[next].to;
  }
  if (c->stream.loaded[next].to - l->steps <= rounding) {
    *ended = next;
    return GL_OK;
  }
  preempt_last(c, i);
  return load_post(c, i, err);
}

/* --- memory and the end of the clock --- */

void load_init(sim_clock *c) {
  if (c->spec->decoding != NULL)
    c->stream.loads = ARENA_ARRAY(&c->memory, engine_load, c->spec->n_samplers);
}

void load_fini(sim_clock *c) {
  for (size_t i = 0; c->stream.loads != NULL && i < c->spec->n_samplers; ++i)
    eq_fini(&c->stream.loads[i].ends), free(c->stream.loads[i].prompts);
  free(c->stream.loaded);
}

size_t load_bytes(const sim_clock *c) {
  size_t bytes = c->stream.loaded_capacity * sizeof *c->stream.loaded;
  for (size_t i = 0; c->stream.loads != NULL && i < c->spec->n_samplers; ++i)
    bytes += c->stream.loads[i].ends.capacity * sizeof(sim_event) +
             c->stream.loads[i].prompt_capacity * sizeof(cached_prompt);
  return bytes;
}

void load_trace_open(const sim_clock *c, uint32_t i) {
  const streaming *t = &c->stream;
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE; k = t->running[k].next)
    if (t->loaded[k].preempted) trace_preempted(c, i, k, SPAN_OPEN);
}
