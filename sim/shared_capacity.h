/* Transfers that share capacity, simulated exactly by events.
 *
 * A flow is a number of bytes that pass simultaneously through a few resources, each with a
 * capacity in bytes per second, and at most at `cap` bytes per second. Rates are max-min fair
 * (Bertsekas and Gallager, Data Networks, 1992, §6.5.2): no flow can get faster unless one that is
 * not faster gets slower. A single resource is processor sharing. Rates change only when a flow
 * joins or leaves, so in between bytes grow linearly and the next end is known exactly.
 *
 * Flows with the same resources and the same cap form a class with one rate. A class stores the
 * bytes that each of its flows has received since the class was last empty, and its flows in the
 * order of their ends, so a change costs O(classes x resources + log flows), however many flows
 * there are.
 *
 * The owner controls time: call flow_advance() to the current time, then flow_join() and
 * flow_finish(), then flow_share() and flow_next(). Units are bytes and non-negative seconds. Not
 * thread-safe. Prefix: flow_. */
#ifndef GEPOLAB_SIM_SHARED_CAPACITY_H
#define GEPOLAB_SIM_SHARED_CAPACITY_H

#include "sim/event_queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOW_MOST_VIA = 3, FLOW_NONE = UINT32_MAX };

typedef struct flow_resource {
  double capacity; /* bytes per second, finite */
  double carried;  /* bytes, until `now` */
  double left;     /* scratch of flow_share: capacity not yet assigned */
  size_t open;     /* scratch of flow_share: number of flows without a rate */
} flow_resource;

typedef struct flow_class {
  uint32_t via[FLOW_MOST_VIA]; /* [n_via] resources */
  size_t n_via;
  uint32_t label;    /* the owner's label */
  double cap;        /* bytes per second of one flow; may be infinite */
  double rate;       /* rate of each flow; 0 without flows */
  double service;    /* bytes received by a flow that joined when the class was last empty */
  event_queue flows; /* ordered by the service at which they end */
  int is_open;       /* scratch of flow_share */
} flow_class;

typedef struct flow_net {
  flow_class *classes; /* [n_classes] owned */
  size_t n_classes, capacity;
  flow_resource *resources; /* [n_resources] owned */
  size_t n_resources;
  double now; /* time up to which bytes have been counted */
} flow_net;

void flow_init(flow_net *net);
void flow_fini(flow_net *net);
/* Adds a resource of `capacity` bytes per second (positive, finite); FLOW_NONE if out of memory. */
uint32_t flow_resource_add(flow_net *net, double capacity);
/* Returns the class of flows through via[n_via] (at most FLOW_MOST_VIA) with this cap and label,
 * creating it if needed; FLOW_NONE if out of memory. */
uint32_t flow_class_of(flow_net *net, const uint32_t *via, size_t n_via, double cap,
                       uint32_t label);
/* Advances time at the current rates. */
void flow_advance(flow_net *net, double now);
/* Adds a flow of `bytes` bytes, identified to the owner by a number; returns false if out of
 * memory. Rates do not change until flow_share(). */
bool flow_join(flow_net *net, uint32_t class, double bytes, uint64_t id);
/* Computes the rate of every class. */
void flow_share(flow_net *net);
/* Returns when and in which class the next flow ends if none joins before; false without flows. */
bool flow_next(const flow_net *net, double *time, uint32_t *class);
/* Removes the first flow of a non-empty class, which must be at its end; returns its number. */
uint64_t flow_finish(flow_net *net, uint32_t class);
/* Removes some flow of the class, and returns the bytes it still lacks; false if the class is
 * empty. */
bool flow_take(flow_net *net, uint32_t class, uint64_t *id, double *bytes);

#endif
