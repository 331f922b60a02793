/* Messages that share a network: against a second simulation (tests/golden/network.py), closed
 * forms, the clock without a network where nothing is shared, and books that must balance. */
#include "sim/network.h"

#include "sim/closed_forms.h"
#include "sim/lossy_link.h"
#include "sim/shared_capacity.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a second simulation --- */

SUITE("sim: network");

static int same_update(const schedule *s, const schedule_update *u, FILE *golden) {
  double start;
  int64_t versions, order, own_versions = 0, own_order = 0;
  CU_ASSERT_FATAL(fscanf(golden, "%lf %" SCNd64 " %" SCNd64, &start, &versions, &order) == 3);
  for (size_t k = 0; k < u->n_batches; ++k) {
    const schedule_batch *b = &s->batches[u->first_batch + k];
    own_versions += s->segments[b->first_segment].version;
    own_order +=
        (int64_t)(k + 1) * (100000 * ((int64_t)b->sampler + 1) + (int64_t)(b->id & UINT32_MAX));
  }
  return fabs(u->start_s - start) <= 1e-9 * start && own_versions == versions && own_order == order;
}

TEST(schedules_and_times_are_those_of_a_second_simulation) {
  FILE *golden = fopen("tests/golden/network.txt", "r");
  static char text[4000];
  size_t updates, weights, batches, cases = 0;
  double weights_s, batches_s;
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  while (fscanf(golden, " %3999[^\n]", text) == 1) {
    CU_ASSERT_FATAL(fscanf(golden, "%zu %zu %lf %zu %lf", &updates, &weights, &weights_s, &batches,
                           &batches_s) == 5);
    schedule s = sim_must_build(text, 1, updates);
    CU_ASSERT_EQUAL_FATAL(s.n_updates, updates);
    size_t same = 0;
    for (size_t i = 0; i < updates; ++i) same += (size_t)same_update(&s, &s.updates[i], golden);
    CU_ASSERT_EQUAL(same, updates);
    if (same != updates) fprintf(stderr, "%zu of %zu updates agree: %s\n", same, updates, text);
    CU_ASSERT_EQUAL(s.network.weights.n, (double)weights);
    CU_ASSERT_EQUAL(s.network.batches.n, (double)batches);
    ASSERT_CLOSE(s.network.weights.mean * (double)weights, weights_s, 1e-9);
    ASSERT_CLOSE(s.network.batches.mean * (double)batches, batches_s, 1e-9);
    ++cases;
  }
  CU_ASSERT(cases >= 27);
  fclose(golden);
}

/* --- closed forms --- */

/* Four samplers are sent 300 bytes at once over 100 bytes a second: all have them after 12 s where
 * the bandwidth is shared, after 3, 6, 9 and 12 s one after the other. Generation takes so long
 * that a version is sent before the next is made, and the egress is used 12 s of every update. */
TEST(n_transfers_at_once_take_n_times_as_long_or_queue) {
  for (int queue = 0; queue < 2; ++queue) {
    char text[300];
    snprintf(text, sizeof text,
             "{preset: sync, samplers: 4, generation: 50, delay: 2, weights_bytes: 300, network: "
             "{egress: {bandwidth: 100, share: %s}}, learner: {step: 7}}",
             queue ? "queue" : "fair");
    schedule s = sim_must_build(text, 1, 20);
    const double first = queue ? 3 : 12, mean = queue ? 7.5 : 12;
    const double cycle = s.updates[19].start_s - s.updates[18].start_s;
    ASSERT_CLOSE(cycle, 7 + 12 + 2 + 50, 1e-12);
    ASSERT_CLOSE(s.network.weights.mean, mean + 2, 1e-12);
    ASSERT_CLOSE(s.network.weights.max, 14, 1e-12);
    CU_ASSERT_EQUAL(s.network.weights.n, 19 * 4);
    ASSERT_CLOSE(s.network.weights.p50, queue ? 8 : first + 2, 0.006);
    ASSERT_CLOSE(s.network.weights.p95, 14, 0.006);
    ASSERT_CLOSE(s.network.egress_utilisation, 19 * 12 / s.clock.simulated_s, 1e-12);
    CU_ASSERT_EQUAL(s.clock.bytes_down, 20 * 4 * 300 - (queue ? 900 : 0));
  }
}

/* Batches of equal size from 400 samplers with exponential generation times come to the learner's
 * ingress as a Poisson process. One after the other their mean time is that of M/D/1, S + rho S /
 * (2 (1 - rho)) (Pollaczek and Khinchine); shared it is S / (1 - rho), whatever the distribution of
 * sizes (Kleinrock, Queueing Systems II, 1976, §4.4). 60,000 batches; deviations beyond 4 % would
 * need more than four standard errors, by blocks of the same runs. */
TEST(poisson_batches_take_what_queueing_theory_says) {
  const double rho = 0.7, size = 1;
  for (int queue = 0; queue < 2; ++queue) {
    char text[400];
    snprintf(text, sizeof text,
             "{preset: fifo, samplers: 400, generation: {distribution: exponential, mean: %.17g}, "
             "rollout_bytes: 100, network: {ingress: {bandwidth: 100, share: %s}}, learner: {step: "
             "0, batches: 100}}",
             400 * size / rho, queue ? "queue" : "fair");
    schedule s = sim_must_build(text, 4, 600);
    const double expected = queue ? size + rho * size / (2 * (1 - rho)) : size / (1 - rho);
    CU_ASSERT(fabs(s.network.batches.mean / expected - 1) < 0.04);
    CU_ASSERT(fabs(s.network.ingress_utilisation / rho - 1) < 0.02);
  }
}

TEST(a_handshake_comes_before_every_transfer) {
  schedule s =
      sim_must_build("{preset: sync, samplers: 3, generation: 50, delay: 2, data_delay: 1, "
                     "network: {handshake: {round_trips: 3, rtt: 0.5}}, learner: {step: 7}}",
                     1, 30);
  ASSERT_CLOSE(s.updates[29].start_s - s.updates[28].start_s, 1.5 + 2 + 50 + 1.5 + 1 + 7, 1e-12);
  ASSERT_CLOSE(s.network.weights.p50, 3.5, 1e-12);
  ASSERT_CLOSE(s.network.batches.p95, 2.5, 1e-12);
  CU_ASSERT(isnan(s.network.egress_utilisation));
}

/* Of ten transfers to a sampler nine have a twentieth of the bytes: (9 / 20 + 1) / 10 on average.
 */
TEST(deltas_save_the_bytes_that_they_say) {
  const char *form = "{preset: sync, samplers: 2, generation: 5, weights_bytes: 1000, network: "
                     "{delta: {share: 0.05, full_every: %d}}, learner: {step: 1}}";
  for (int every = 0; every <= 10; every += 5) {
    char text[300];
    snprintf(text, sizeof text, form, every);
    schedule s = sim_must_build(text, 1, 100);
    const double full = every > 0 ? 100 / every : 0;
    CU_ASSERT_EQUAL(s.network.fulls, 2 * full);
    CU_ASSERT_EQUAL(s.network.deltas, 2 * (100 - full));
    ASSERT_CLOSE(s.clock.bytes_down, 2 * 1000 * (full + 0.05 * (100 - full)), 1e-12);
  }
}

/* --- sites --- */

/* Weights go 80 ms, batches 30 ms back, after a handshake of two round trips; two samplers share
 * 100 bytes a second to their site, and the one that is where the learner is shares nothing. */
TEST(sites_are_as_far_away_as_their_matrix_says) {
  schedule s = sim_must_build(
      "{preset: sync, samplers: [{count: 1}, {count: 2, site: far}], generation: 50, "
      "weights_bytes: "
      "300, rollout_bytes: 30, network: {handshake: {round_trips: 2}, sites: [{name: home, "
      "latency: "
      "[0, 0.08], bandwidth: [none, 100]}, {name: far, latency: 0.03, bandwidth: 10}]}, learner: "
      "{step: 7}}",
      1, 30);
  const double greeting = 2 * 0.11, weights = greeting + 6 + 0.08, batches = greeting + 6 + 0.03;
  ASSERT_CLOSE(s.updates[29].start_s - s.updates[28].start_s, 7 + weights + 50 + batches, 1e-9);
  ASSERT_CLOSE(s.network.weights.max, weights, 1e-9);
  ASSERT_CLOSE(s.network.weights.mean, weights * 2 / 3, 1e-9);
  ASSERT_CLOSE(s.network.batches.p50, batches, 0.006);
  CU_ASSERT_EQUAL(s.network.sites, 2);
}

/* Packets of 1,000 bytes that the link loses with 0.1 and the way with 0.2 are lost with 0.28: so
 * many repetitions are sent for each, 0.28 / 0.72. Four standard errors, sqrt(0.28) / 0.72 /
 * sqrt(n).
 */
TEST(losses_of_link_and_way_add_up) {
  schedule s = sim_must_build(
      "{preset: sync, samplers: [{site: far}], generation: 5, weights_bytes: 1e6, down: {loss: "
      "0.1, "
      "packet_bytes: 1000, max_retries: 60, rto: 0}, network: {sites: [{name: home, loss: 0.2}, "
      "{name: far}]}}",
      3, 200);
  const double n = 1000 * 200;
  CU_ASSERT(fabs(s.clock.retransmissions / n - 0.28 / 0.72) < 4 * sqrt(0.28) / 0.72 / sqrt(n));
}

/* One sampler: the first update starts at 80 and ends at 87, weights of 10 s follow, and an outage
 * from 90 to 150 interrupts them. Resumed, they have come at 157; lost, they begin anew and come at
 * 160. */
TEST(an_outage_stops_what_flows) {
  for (int lost = 0; lost < 2; ++lost) {
    char text[500];
    snprintf(
        text, sizeof text,
        "{preset: sync, samplers: [{site: far}], generation: 80, weights_bytes: 1000, down: "
        "{bandwidth: 100}, network: {sites: [{name: home}, {name: far, outages: [[90, 150]]}], "
        "interrupted: %s}, learner: {step: 7}}",
        lost ? "lost" : "resumed");
    schedule s = sim_must_build(text, 1, 3);
    ASSERT_CLOSE(s.updates[0].end_s, 87, 1e-12);
    ASSERT_CLOSE(s.updates[1].start_s, (lost ? 160 : 157) + 80, 1e-12);
    ASSERT_CLOSE(s.updates[2].start_s - s.updates[1].start_s, 97, 1e-12);
    CU_ASSERT_EQUAL(s.network.interrupted, 1);
    CU_ASSERT_EQUAL(s.network.outage_s, 60);
    ASSERT_CLOSE(s.clock.bytes_down, (lost ? 300 : 0) + 3 * 1000, 1e-12);
  }
}

/* Version 1 is sent from 60 to 66 s and from 95 to 99 s. Version 2, published at 90 s, follows to
 * 109 s. */
TEST(weights_that_an_outage_holds_back_are_followed_by_newer_ones) {
  schedule s = sim_must_build(
      "{preset: fifo, samplers: [{site: far}], generation: 10, weights_bytes: 1000, down: "
      "{bandwidth: 100}, network: {sites: [{name: home}, {name: far, outages: [[66, 95]]}]}, "
      "learner: {step: 30, batches: 3}}",
      1, 5);
  CU_ASSERT_EQUAL(s.batches[10].start_s, 100);
  CU_ASSERT_EQUAL(s.segments[s.batches[10].first_segment].version, 1);
  CU_ASSERT_EQUAL(s.segments[s.batches[11].first_segment].version, 2);
}

/* The outage stops a delta from 40 to 60 s, and at 45 s the sampler loses what it refers to. Full
 * weights follow from 64 to 74 s. */
TEST(a_crash_while_an_outage_holds_weights_back_asks_for_full_ones) {
  schedule s = sim_must_build(
      "{preset: sync, samplers: [{site: far, mtbf: 45, mttr: 2}], generation: 10, weights_bytes: "
      "1000, down: {bandwidth: 100}, network: {delta: {share: 0.9}, sites: [{name: home}, {name: "
      "far, outages: [[40, 60]]}]}, learner: {step: 3}}",
      1, 3);
  CU_ASSERT_EQUAL(s.updates[2].start_s, 74 + 10);
  CU_ASSERT_EQUAL(s.network.fulls, 1);
}

/* Messages of no size and no delay take no time. */
TEST(times_of_zero_have_quantiles_of_zero) {
  schedule s = sim_must_build("{preset: sync, samplers: 2, generation: 10, network: {egress: "
                              "{bandwidth: 10}}}",
                              1, 5);
  CU_ASSERT_EQUAL(s.network.batches.p50, 0);
  CU_ASSERT_EQUAL(s.network.batches.p95, 0);
}

/* Up for u = 300 s and down for d = 100 s on average, both exponential: cut off a quarter of the
 * time. The share over a time T has the variance 2 u^2 d^2 / ((u + d)^3 T) of an alternating
 * renewal process; four standard errors, the seed is fixed. */
TEST(drawn_outages_last_as_long_as_their_dists) {
  const char *text =
      "{preset: fifo, samplers: [{count: 3, site: far}], generation: 50, network: {sites: [{name: "
      "home}, {name: far, mtbf: {distribution: exponential, mean: 300}, mttr: {distribution: "
      "exponential, mean: "
      "100}}], interrupted: lost}}";
  schedule s = sim_must_build(text, 7, 12000), other = sim_must_build(text, 8, 200),
           again = sim_must_build(text, 8, 200);
  const double variance = 2 * 9e4 * 1e4 / (6.4e7 * s.clock.simulated_s);
  CU_ASSERT(fabs(s.network.outage_s / s.clock.simulated_s - 0.25) < 4 * sqrt(variance));
  CU_ASSERT_EQUAL(other.network.outage_s, again.network.outage_s);
  CU_ASSERT(other.network.outage_s != s.network.outage_s);
}

/* --- relays --- */

/* Two versions are sent, and the third at the clock's end. */
TEST(weights_come_through_relays_when_a_recurrence_says) {
  FILE *golden = fopen("tests/golden/relay.txt", "r");
  static char text[2000];
  double sum, most, sending, trained;
  size_t cases = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
  while (fscanf(golden, " %1999[^\n]", text) == 1) {
    CU_ASSERT_FATAL(fscanf(golden, "%lf %lf %lf %lf", &sum, &most, &sending, &trained) == 4);
    schedule s = sim_must_build(text, 1, 3);
    const double came = s.network.weights.n, busy = s.network.egress_utilisation * 61.7;
    CU_ASSERT_EQUAL(came, 2 * 21);
    ASSERT_CLOSE(s.network.weights.mean * came, 2 * sum, 1e-9);
    ASSERT_CLOSE(s.network.weights.max, most, 1e-9);
    ASSERT_CLOSE(s.updates[2].start_s - s.updates[1].end_s, trained, 1e-9);
    CU_ASSERT(busy * s.clock.simulated_s <= 2 * sending * 61.7 * (1 + 1e-9));
    ++cases;
  }
  CU_ASSERT(cases >= 30);
  fclose(golden);
}

/* By hand: sends of 10 s, to a far child (12 s of handshake, 6 of latency) and then a near one. The
 * near one's two shards go while the far one is greeted, and it has all at 20 s; the far one's
 * follow from 20 to 40 s and have come at 46 s. */
TEST(a_shard_that_is_greeted_holds_up_no_other) {
  schedule s = sim_must_build(
      "{preset: sync, samplers: [{count: 1, site: b}, {count: 1, site: a}], generation: 1000, "
      "weights_bytes: 200, network: {egress: {bandwidth: 10}, sites: [{name: a, latency: 6}, "
      "{name: b, latency: 6}], handshake: {round_trips: 1}, relay: {kind: tree, fanout: 2, "
      "shards: 2}}}",
      1, 2);
  CU_ASSERT_EQUAL(s.network.weights.n, 2);
  ASSERT_CLOSE(s.network.weights.mean, (20 + 46) / 2.0, 1e-12);
  ASSERT_CLOSE(s.network.weights.max, 46, 1e-12);
}

/* A full tree of depth d with S shards of W / S bytes, all at B bytes a second: a node's S f sends
 * follow each other without a gap, and a shard is at the last child of a node f sends after it has
 * come to it. So the last leaf has all after (S + d - 1) f W / (S B); a chain of d is f = 1. */
TEST(a_tree_of_relays_is_a_pipeline) {
  const size_t fanout[] = {1, 2, 3, 2}, depth[] = {6, 3, 2, 4}, shards[] = {5, 8, 1, 64};
  for (size_t i = 0; i < 4; ++i) {
    size_t samplers = 0, level = 1;
    for (size_t k = 0; k < depth[i]; ++k) samplers += level *= fanout[i];
    char text[400];
    snprintf(text, sizeof text,
             "{preset: sync, samplers: %zu, generation: 1e5, weights_bytes: 640, network: {egress: "
             "{bandwidth: 10}, relay: {kind: tree, fanout: %zu, shards: %zu, bandwidth: 10}}}",
             samplers, fanout[i], shards[i]);
    schedule s = sim_must_build(text, 1, 4);
    const double f = (double)fanout[i], d = (double)depth[i], n = (double)shards[i];
    ASSERT_CLOSE(s.network.weights.max, (n + d - 1) * f * 640 / (n * 10), 1e-9);
    CU_ASSERT_EQUAL(s.network.weights.n, 3 * (double)samplers);
  }
}

/* Versions come faster than the tree hands them on: nobody waits for ever, what is sent is the
 * newest there is, and shards that are lost are sent again. */
TEST(relays_skip_versions_that_they_cannot_keep_up_with) {
  const char *form =
      "{preset: %s, samplers: [{count: 9}, {count: 5, site: b}], generation: 20, weights_bytes: "
      "4e3, "
      "down: {bandwidth: 300, loss: 0.2, packet_bytes: 100, max_retries: 1}, up: {bandwidth: 100}, "
      "network: {relay: {kind: tree, fanout: 2, shards: 4}, delta: {share: 0.5, full_every: 3}, "
      "sites: [{name: a, latency: 1}, {name: b, mtbf: {distribution: exponential, mean: 600}, "
      "mttr: 60}], "
      "interrupted: %s}, learner: {step: 10, batches: 4}}";
  for (int i = 0; i < 4; ++i) {
    char text[900];
    snprintf(text, sizeof text, form, i % 2 ? "fifo" : "areal", i / 2 ? "lost" : "resumed");
    schedule s = sim_must_build(text, 2, 400);
    CU_ASSERT(s.network.weights.n > 50 && s.network.weights.n < 14 * 300);
    CU_ASSERT(s.network.fulls > 10 && s.network.deltas > s.network.fulls);
    CU_ASSERT(s.clock.retransmissions > 100 && s.network.interrupted > 2);
    CU_ASSERT_EQUAL((double)s.begun, s.clock.batches_trained + s.clock.batches_dropped +
                                         s.clock.batches_lost + (double)s.pending);
  }
}

/* --- nothing shared --- */

/* A bandwidth that nobody fills changes nothing: the clock without a network, with other code. */
TEST(a_network_of_plenty_is_no_network) {
  const char *clusters[] = {
      "preset: fifo, samplers: 5, mtbf: {distribution: exponential, mean: 900}, mttr: 40",
      "preset: heterorl, max_delay: none, delay: {distribution: uniform, min: 40, max: 90}",
      "preset: areal, samplers: 3, delay: {distribution: exponential, mean: 3}",
      ("preset: lifo, unit: group, lengths: {distribution: lognormal, mu: 5, sigma: 1}, "
       "tokens_per_s: 9")};
  for (size_t i = 0; i < 4; ++i) {
    char with[900], without[900];
    const char *form =
        "{%s%s, data_delay: {distribution: uniform, min: 0, max: 2}, weights_bytes: 2e6, "
        "rollout_bytes: 1e6, down: {bandwidth: 1e6, loss: 0.05}, up: {bandwidth: "
        "2e5, loss: 0.2, packet_bytes: 1e5, max_retries: 1}, %s learner: {step: {distribution: "
        "exponential, "
        "mean: 9}}}";
    const char *generation =
        i < 3 ? ", generation: {distribution: lognormal, mu: 3, sigma: 1}" : "";
    snprintf(without, sizeof without, form, clusters[i], generation, "");
    snprintf(with, sizeof with, form, clusters[i], generation,
             "network: {egress: {bandwidth: 1e15}, ingress: {bandwidth: 1e15}},");
    schedule a = sim_must_build(without, 3, 300), b = sim_must_build(with, 3, 300);
    CU_ASSERT(!a.network.is_on && b.network.is_on);
    CU_ASSERT_EQUAL_FATAL(a.n_batches, b.n_batches);
    size_t same = 0;
    for (size_t k = 0; k < a.n_batches; ++k)
      same += a.batches[k].id == b.batches[k].id &&
              fabs(a.batches[k].trained_s - b.batches[k].trained_s) < 1e-6 &&
              a.segments[a.batches[k].first_segment].version ==
                  b.segments[b.batches[k].first_segment].version;
    CU_ASSERT_EQUAL(same, a.n_batches);
    CU_ASSERT(a.clock.retransmissions > 0);
  }
}

/* --- books --- */

TEST(everything_balances_under_trouble) {
  const char *form =
      "{preset: %s, samplers: [{count: 3}, {count: 3, site: b}], unit: group, lengths: "
      "{distribution: "
      "lognormal, mu: 5, sigma: 1}, tokens_per_s: 9, mtbf: {distribution: exponential, mean: 300}, "
      "mttr: "
      "40, "
      "weights_bytes: 3e6, bytes_per_token: 400, delay: 5, down: {bandwidth: 1e6, loss: 0.3, "
      "max_retries: 1, packet_bytes: 1e6}, up: {loss: 0.3, max_retries: 1, packet_bytes: 1e6}, "
      "network: {egress: {bandwidth: 1.1e6, share: %s}, ingress: {bandwidth: 4e5, share: %s}, "
      "sites: "
      "[{name: a, latency: 0.1, bandwidth: 9e5}, {name: b, mtbf: {distribution: exponential, mean: "
      "200}, "
      "mttr: 20}], interrupted: %s, handshake: {round_trips: 2}, delta: {share: 0.3, full_every: "
      "7}}, learner: {step: 6}}";
  const char *presets[] = {"fifo", "heterorl", "areal, partial: drop", "one_step_off"};
  for (size_t i = 0; i < 16; ++i) {
    char text[1200];
    const char *share = i % 2 ? "fair" : "queue";
    snprintf(text, sizeof text, form, presets[i / 4], share, share, i % 4 < 2 ? "lost" : "resumed");
    schedule s = sim_must_build(text, 5, 150);
    CU_ASSERT_EQUAL((double)s.begun, s.clock.batches_trained + s.clock.batches_dropped +
                                         s.clock.batches_lost + (double)s.pending);
    CU_ASSERT(s.clock.batches_lost > 10);
    ASSERT_CLOSE(s.waited_s / s.waiting_integral_s, 1, 1e-9);
    CU_ASSERT(s.network.egress_utilisation > 0.05 && s.network.egress_utilisation <= 1);
    CU_ASSERT(s.network.ingress_utilisation > 0.02 && s.network.ingress_utilisation <= 1);
    CU_ASSERT(s.network.fulls > 10 && s.network.deltas > 10 && s.network.interrupted > 3);
  }
}

/* --- rates, by themselves --- */

/* Two resources of 10 and 8. One flow through both, capped at 1; two through the first; three
 * through the second; one through both. The second fills first: (8 - 1) / 4 for those through it;
 * the first leaves (10 - 1 - 1.75) / 2 for its own. */
TEST(rates_are_max_min_fair) {
  flow_net net;
  flow_init(&net);
  const uint32_t a = flow_resource_add(&net, 10), b = flow_resource_add(&net, 8);
  const uint32_t both[2] = {a, b};
  const uint32_t capped = flow_class_of(&net, both, 2, 1, 0),
                 first = flow_class_of(&net, &a, 1, INFINITY, 0),
                 second = flow_class_of(&net, &b, 1, 100, 0),
                 through = flow_class_of(&net, both, 2, INFINITY, 0);
  CU_ASSERT_EQUAL(flow_class_of(&net, &b, 1, 100, 0), second);
  CU_ASSERT_EQUAL_FATAL(net.n_classes, 4);
  CU_ASSERT(flow_join(&net, capped, 30, 0));
  for (uint64_t k = 1; k <= 2; ++k) CU_ASSERT(flow_join(&net, first, 3.625 * (double)k, k));
  for (uint64_t k = 3; k <= 5; ++k) CU_ASSERT(flow_join(&net, second, 1000, k));
  CU_ASSERT(flow_join(&net, through, 1000, 6));
  flow_share(&net);
  CU_ASSERT_EQUAL(net.classes[capped].rate, 1);
  CU_ASSERT_EQUAL(net.classes[first].rate, 3.625);
  CU_ASSERT_EQUAL(net.classes[second].rate, 1.75);
  CU_ASSERT_EQUAL(net.classes[through].rate, 1.75);
  double time;
  uint32_t class;
  CU_ASSERT(flow_next(&net, &time, &class) && time == 1 && class == first);
  flow_advance(&net, 1);
  CU_ASSERT_EQUAL(net.resources[a].carried, 10);
  CU_ASSERT_EQUAL(net.resources[b].carried, 8);
  CU_ASSERT_EQUAL(flow_finish(&net, first), 1);
  flow_share(&net);
  CU_ASSERT_EQUAL(net.classes[first].rate, 7.25); /* what the other had is its own now */
  uint64_t id;
  double bytes;
  CU_ASSERT(flow_take(&net, capped, &id, &bytes) && id == 0 && bytes == 29);
  CU_ASSERT(!flow_take(&net, capped, &id, &bytes));
  flow_fini(&net);
}

TEST(quantiles_of_times_are_within_half_a_percent) {
  tally *t = calloc(1, sizeof *t);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  CU_ASSERT(isnan(tally_quantile(t, 0.5)));
  for (int i = 1; i <= 1000; ++i) tally_add(t, 0.01 * i * i);
  ASSERT_CLOSE(tally_quantile(t, 0.5), 0.01 * 500 * 500, 0.006);
  ASSERT_CLOSE(tally_quantile(t, 0.95), 0.01 * 950 * 950, 0.006);
  CU_ASSERT_EQUAL(tally_quantile(t, 1), 0.01 * 1000 * 1000);
  *t = (tally){0};
  for (int i = 0; i < 7; ++i) tally_add(t, 0);
  CU_ASSERT_EQUAL(tally_quantile(t, 0.5), 0);
  free(t);
}

/* --- bad input --- */

TEST(what_is_no_network_is_refused_by_name) {
  sim_must_refuse("{network: {egres: {bandwidth: 1e9}}}");
  sim_must_refuse("{network: {egress: {bandwidth: 0}}}");
  sim_must_refuse("{network: {egress: {bandwidth: 1e9, share: fifo}}}");
  sim_must_refuse("{network: {ingress: {bandwith: 1e9}}}");
  sim_must_refuse("{network: {handshake: {round_trips: 3}}}");
  sim_must_refuse("{network: {handshake: {round_trips: -1, rtt: 1}}}");
  sim_must_refuse("{network: {delta: {share: 1.5}}}");
  sim_must_refuse("{network: {delta: {full_every: 4}}}");
  sim_must_refuse("{network: {sites: [{latency: 1}]}}");
  sim_must_refuse("{network: {sites: [{name: a}, {name: a}]}}");
  sim_must_refuse("{network: {sites: []}}");
  sim_must_refuse("{network: {sites: [{name: a, latency: [0, 1]}]}}");
  sim_must_refuse("{network: {sites: [{name: a, loss: 1.2}, {name: b}]}}");
  sim_must_refuse("{network: {sites: [{name: a, bandwidth: [none, 0]}, {name: b}]}}");
  sim_must_refuse("{network: {sites: [{name: a, outages: [7, 9]}]}}");
  sim_must_refuse("{network: {sites: [{name: a, outages: [[9, 7]]}]}}");
  sim_must_refuse("{network: {sites: [{name: a}], interrupted: paused}}");
  sim_must_refuse("{samplers: [{site: paris}]}");
  sim_must_refuse("{network: {relay: {kind: ring}}}");
  sim_must_refuse("{network: {relay: {fanout: 3}}}");
  sim_must_refuse("{network: {relay: {kind: tree, fanout: 0}}}");
  sim_must_refuse("{network: {relay: {kind: tree}, egress: {share: fair}}}");
  sim_must_refuse("{preset: heterorl, network: {relay: {kind: tree}}}");
  sim_must_refuse("{mtbf: 100, network: {relay: {kind: tree}}}");
  sim_must_refuse("{samplers: [{site: pariss}], network: {sites: [{name: paris}]}}");
}

TEST(no_closed_form_speaks_of_a_network) {
  const char *text = "{preset: sync, network: {egress: {bandwidth: 100}}}";
  cluster_spec *spec;
  schedule s;
  theory said;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(sim_build(&s, &spec, text, 1, 1, &err), GL_OK);
  CU_ASSERT_EQUAL(sim_theory_of(&said, spec, &err), GL_EINPUT);
  CU_ASSERT_STRING_EQUAL(
      err.text, "no closed form holds for this cluster: all need: cluster.network is left out");
}
