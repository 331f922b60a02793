/* Transfers that share capacity, exactly and by events.
 *
 * A flow is so many bytes that go at once through a few resources, each of so many bytes a second,
 * and are at most `cap` bytes a second by themselves. Rates are max-min fair (Bertsekas and
 * Gallager, Data Networks, 1992, §6.5.2): no flow could be faster without one that is not faster
 * becoming slower. One resource alone is processor sharing. Rates change only when a flow joins or
 * leaves, so between these moments bytes grow linearly and the next end is known without error.
 *
 * Flows of the same resources and the same cap are a class: they all have one rate. A class keeps
 * the bytes that each of its flows has had since it was last empty, and its flows in the order in
 * which they reach theirs; so a change costs O(classes x resources + log flows), however many flows
 * there are.
 *
 * The owner keeps the clock: flow_advance to the moment, flow_join and flow_finish, then flow_share
 * and flow_next. Prefix: flow_. Bytes, and seconds that are not negative; no more than one owner at
 * a time. */
#ifndef GEPOLAB_SIM_FLOW_H
#define GEPOLAB_SIM_FLOW_H

#include "sim/event_queue.h"

#include <stdbool.h>

enum { FLOW_MOST_VIA = 3, FLOW_NONE = UINT32_MAX };

typedef struct flow_resource {
  double capacity; /* bytes per second, finite */
  double carried;  /* bytes, until `now` */
  double left;     /* scratch of flow_share: capacity that is not given away */
  size_t open;     /* scratch of flow_share: flows without a rate */
} flow_resource;

typedef struct flow_class {
  uint32_t via[FLOW_MOST_VIA]; /* [n_via] resources */
  size_t n_via;
  uint32_t label;    /* the owner's */
  double cap;        /* bytes per second of one flow; may be infinite */
  double rate;       /* of each flow; 0 while there is none */
  double service;    /* bytes that a flow has had that joined when the class was last empty */
  event_queue flows; /* by the service at which they end */
  int is_open;       /* scratch of flow_share */
} flow_class;

typedef struct flow_net {
  flow_class *classes; /* [n_classes] owned */
  size_t n_classes, capacity;
  flow_resource *resources; /* [n_resources] owned */
  size_t n_resources;
  double now; /* rates have held since */
} flow_net;

void flow_init(flow_net *net);
void flow_fini(flow_net *net);
/* A resource of so many bytes per second (positive, finite); FLOW_NONE if memory is short. */
uint32_t flow_resource_add(flow_net *net, double capacity);
/* The class of flows through via[n_via] (at most FLOW_MOST_VIA) with this cap and the owner's
 * label; FLOW_NONE if memory is short. */
uint32_t flow_class_of(flow_net *net, const uint32_t *via, size_t n_via, double cap,
                       uint32_t label);
/* Lets time pass at the present rates. */
void flow_advance(flow_net *net, double now);
/* Adds a flow of so many bytes, known to the owner by a number; false if memory is short. Rates are
 * those of before until flow_share. */
bool flow_join(flow_net *net, uint32_t class, double bytes, uint64_t id);
/* Gives every class its rate. */
void flow_share(flow_net *net);
/* When the next flow ends if nothing joins before, and in which class; false: there is no flow. */
bool flow_next(const flow_net *net, double *time, uint32_t *class);
/* Takes the first flow of a class that has one, which is at its end. */
uint64_t flow_finish(flow_net *net, uint32_t class);
/* Takes any flow of the class, wherever it stands, with the bytes that it still lacks; false: the
 * class has none. */
bool flow_take(flow_net *net, uint32_t class, uint64_t *id, double *bytes);

#endif
