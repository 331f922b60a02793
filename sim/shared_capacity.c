/* Flows with max-min fair rates. */
#include "sim/shared_capacity.h"

#include "core/base/array.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void flow_init(flow_net *net) {
  *net = (flow_net){0};
}

void flow_fini(flow_net *net) {
  for (size_t i = 0; i < net->n_classes; ++i) eq_fini(&net->classes[i].flows);
  free(net->classes);
  free(net->resources);
  flow_init(net);
}

uint32_t flow_resource_add(flow_net *net, double capacity) {
  assert(capacity > 0 && isfinite(capacity));
  flow_resource *added =
      net->n_resources < FLOW_NONE - 1 ? ARRAY_ADD(net->resources, net->n_resources) : NULL;
  if (added == NULL) return FLOW_NONE;
  added->capacity = capacity;
  return (uint32_t)net->n_resources - 1;
}

uint32_t flow_class_of(flow_net *net, const uint32_t *via, size_t n_via, double cap,
                       uint32_t label) {
  assert(n_via <= FLOW_MOST_VIA && cap > 0);
  for (size_t i = 0; i < net->n_classes; ++i) {
    const flow_class *k = &net->classes[i];
    if (k->label == label && k->n_via == n_via && k->cap == cap &&
        memcmp(k->via, via, n_via * sizeof *via) == 0)
      return (uint32_t)i;
  }
  if (net->n_classes >= FLOW_NONE - 1 ||
      !ARRAY_RESERVE(net->classes, net->capacity, net->n_classes + 1))
    return FLOW_NONE;
  flow_class *k = &net->classes[net->n_classes];
  *k = (flow_class){.n_via = n_via, .label = label, .cap = cap};
  memcpy(k->via, via, n_via * sizeof *via);
  eq_init(&k->flows);
  return (uint32_t)net->n_classes++;
}

/* Adds the bytes that have flowed since net->now. A flow with an infinite rate takes no time, so
 * none is left when time passes. */
void flow_advance(flow_net *net, double now) {
  const double dt = now - net->now;
  net->now = now;
  if (!(dt > 0)) return;
  for (size_t i = 0; i < net->n_classes; ++i) {
    flow_class *k = &net->classes[i];
    if (k->flows.size == 0) continue;
    const double bytes = k->rate * dt;
    k->service += bytes;
    for (size_t v = 0; v < k->n_via; ++v)
      net->resources[k->via[v]].carried += bytes * (double)k->flows.size;
  }
}

bool flow_join(flow_net *net, uint32_t class, double bytes, uint64_t id) {
  flow_class *k = &net->classes[class];
  if (k->flows.size == 0) k->service = 0; /* resetting keeps the numbers small and exact */
  return eq_push(&k->flows, k->service + bytes, 0, 0, 0, id);
}

/* Progressive filling: the level at which the next resource is exhausted or the next class reaches
 * its cap. */
static double next_level(const flow_net *net) {
  double level = INFINITY;
  for (size_t r = 0; r < net->n_resources; ++r) {
    const flow_resource *at = &net->resources[r];
    if (at->open > 0) level = fmin(level, at->left / (double)at->open);
  }
  for (size_t i = 0; i < net->n_classes; ++i)
    if (net->classes[i].is_open) level = fmin(level, net->classes[i].cap);
  return level;
}

/* Whether the class stops at this level: at its cap, or because a resource is exhausted. */
static bool stops(const flow_net *net, const flow_class *k, double level) {
  if (k->cap <= level) return true;
  for (size_t v = 0; v < k->n_via; ++v) {
    const flow_resource *at = &net->resources[k->via[v]];
    if (at->left / (double)at->open <= level) return true;
  }
  return false;
}

/* Fixes the rate of the classes that stop at this level. All of them are found before any capacity
 * is subtracted. */
static size_t fill_to(flow_net *net, double level) {
  size_t stopped = 0;
  for (size_t i = 0; i < net->n_classes; ++i) {
    flow_class *k = &net->classes[i];
    if (k->is_open && stops(net, k, level)) k->is_open = -1;
  }
  for (size_t i = 0; i < net->n_classes; ++i) {
    flow_class *k = &net->classes[i];
    if (k->is_open != -1) continue;
    k->is_open = 0;
    k->rate = level;
    ++stopped;
    for (size_t v = 0; v < k->n_via; ++v) {
      flow_resource *at = &net->resources[k->via[v]];
      at->open -= k->flows.size;
      at->left = fmax(0, at->left - level * (double)k->flows.size);
    }
  }
  return stopped;
}

void flow_share(flow_net *net) {
  size_t open = 0;
  for (size_t r = 0; r < net->n_resources; ++r) {
    net->resources[r].left = net->resources[r].capacity;
    net->resources[r].open = 0;
  }
  for (size_t i = 0; i < net->n_classes; ++i) {
    flow_class *k = &net->classes[i];
    k->rate = 0;
    k->is_open = k->flows.size > 0;
    open += k->flows.size > 0;
    for (size_t v = 0; v < k->n_via; ++v) net->resources[k->via[v]].open += k->flows.size;
  }
  while (open > 0) open -= fill_to(net, next_level(net));
}

bool flow_next(const flow_net *net, double *time, uint32_t *class) {
  double first = INFINITY;
  for (size_t i = 0; i < net->n_classes; ++i) {
    const flow_class *k = &net->classes[i];
    if (k->flows.size == 0) continue;
    const double left = eq_top(&k->flows)->time - k->service;
    const double wait = left > 0 ? left / k->rate : 0;
    if (wait < first) {
      first = wait;
      *class = (uint32_t)i;
    }
  }
  *time = net->now + first;
  return first < INFINITY;
}

uint64_t flow_finish(flow_net *net, uint32_t class) {
  flow_class *k = &net->classes[class];
  const sim_event e = eq_pop(&k->flows);
  k->service = fmax(k->service, e.time);
  return e.data;
}

bool flow_take(flow_net *net, uint32_t class, uint64_t *id, double *bytes) {
  flow_class *k = &net->classes[class];
  if (k->flows.size == 0) return false;
  const sim_event e = eq_pop(&k->flows);
  *id = e.data;
  *bytes = fmax(0, e.time - k->service);
  return true;
}
