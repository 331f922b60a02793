/* The rules of queues and presets, books that must balance, and what is printed. */
#include "sim/delay.h"
#include "sim/lossy_link.h"
#include "sim/schedule.h"
#include "tests/support/files.h"
#include "tests/support/json.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("sim: rules of queues and dispatch");

/* Samplers at speeds 1 and 2: 80 s to generate, 3 to send, 30 to train, 5 for the weights. */
TEST(sync_updates_take_the_sum_of_their_parts) {
  schedule s = sim_must_build("{preset: sync, samplers: [{count: 2}, {speed: 2}], generation: 80, "
                              "data_delay: 3, delay: 5, learner: {step: 30}}",
                              1, 50);
  for (size_t u = 0; u < 50; ++u) {
    CU_ASSERT_EQUAL(s.updates[u].n_batches, 3);
    CU_ASSERT_EQUAL(s.updates[u].end_s, (double)(u + 1) * 118 - 5);
  }
  CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
}

static const char noise[] = "generation: {distribution: lognormal, interval: [20, 200]}, delay: "
                            "{distribution: exponential, mean: 40}, "
                            "data_delay: {distribution: pareto, shape: 1.5, scale: 2}";

TEST(bounded_staleness_holds_for_many_unequal_samplers) {
  const struct {
    const char *preset;
    int ahead;
  } cases[] = {{"one_step_off", 1}, {"areal", 0}, {"areal", 2}, {"areal", 6}};
  for (size_t i = 0; i < 4; ++i) {
    char text[600];
    snprintf(text, sizeof text,
             "{preset: %s, ahead: %d, samplers: [{count: 5}, {count: 3, speed: 0.3, mtbf: "
             "{distribution: "
             "exponential, mean: 2000}}], %s, up: {loss: 0.2, max_retries: 1}, rollout_bytes: 1e4, "
             "learner: {step: 10, batches: 4}}",
             cases[i].preset, cases[i].ahead, noise);
    schedule s = sim_must_build(text, 2, 300);
    CU_ASSERT(s.clock.staleness_max <= cases[i].ahead);
    if (cases[i].ahead > 1) CU_ASSERT(s.clock.staleness_max > 1);
  }
}

/* At each start the chosen batch is the first (last) to have arrived of those trained later. */
TEST(fifo_and_lifo_train_in_their_order_of_arrival) {
  for (int lifo = 0; lifo < 2; ++lifo) {
    char text[400];
    snprintf(text, sizeof text, "{preset: %s, samplers: 6, %s, learner: {step: 15}}",
             lifo ? "lifo" : "fifo", noise);
    schedule s = sim_must_build(text, 3, 200);
    size_t waited = 0;
    for (size_t i = 0; i < s.n_batches; ++i)
      for (size_t k = i + 1; k < s.n_batches; ++k) {
        if (s.batches[k].arrived_s > s.batches[i].trained_s) continue;
        ++waited;
        CU_ASSERT(lifo ? s.batches[i].arrived_s >= s.batches[k].arrived_s
                       : s.batches[i].arrived_s <= s.batches[k].arrived_s);
      }
    CU_ASSERT(waited > 50);
  }
}

TEST(batches_and_waiting_times_balance_under_every_rule) {
  const char *rules[] = {"preset: sync",
                         "preset: areal",
                         "preset: one_step_off",
                         "preset: fifo, window: 3",
                         "preset: lifo, window: 5",
                         "preset: heterorl, window: 4",
                         "preset: areal, window: 1"};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    char text[700];
    snprintf(text, sizeof text,
             "{%s, samplers: 6, %s, mtbf: {distribution: exponential, mean: 900}, mttr: 60, up: "
             "{loss: 0.3, "
             "max_retries: 1}, rollout_bytes: 1e4, learner: {step: 20, batches: 2, capacity: 5}}",
             rules[i], noise);
    schedule s = sim_must_build(text, 5, 300);
    double accounted = s.clock.batches_trained + s.clock.batches_dropped + s.clock.batches_lost +
                       (double)s.pending;
    CU_ASSERT_EQUAL((double)s.begun, accounted);
    CU_ASSERT(s.clock.batches_lost > 10);
    CU_ASSERT(s.waiting_integral_s > 0);
    ASSERT_CLOSE(s.waited_s / s.waiting_integral_s, 1, 1e-9);
  }
}

/* A sampler fills the buffer while an update takes 1000 s: the newest three remain. */
TEST(a_full_buffer_drops_its_oldest_batch) {
  schedule s = sim_must_build(
      "{preset: fifo, samplers: 1, generation: 100, learner: {step: 1000, capacity: 3}}", 1, 3);
  CU_ASSERT_EQUAL(s.batches[0].arrived_s, 100);
  CU_ASSERT_EQUAL(s.batches[1].arrived_s, 900); /* of 200 to 1100, 900, 1000 and 1100 are left */
  CU_ASSERT_EQUAL(s.batches[2].arrived_s, 1900);
  CU_ASSERT_EQUAL(s.clock.batches_dropped, 7 + 9 + 8); /* the run ends as 3100 arrives */
}

TEST(empirical_dists_interpolate_what_was_measured) {
  char path[] = "/tmp/gepolab-lawXXXXXX";
  int file = mkstemp(path);
  CU_ASSERT_FATAL(file >= 0);
  const char csv[] = "node,\"delay\"\na,30\nb,10\nc,\nd,20\n";
  CU_ASSERT_EQUAL(write(file, csv, sizeof csv - 1), (ssize_t)sizeof csv - 1);
  close(file);
  char text[200];
  snprintf(text, sizeof text,
           "{distribution: empirical, file: %s, column: delay, scale: 2, offset: 5}", path);
  cfg_doc *doc = NULL;
  delay_dist *dist = NULL;
  ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "test", &err));
  ASSERT_OK(delay_parse(&dist, cfg_root(doc), "delay", NAN, &err));
  ASSERT_CLOSE(delay_quantile(dist, 0.25), 30 - 5, 1e-12);
  ASSERT_CLOSE(delay_quantile(dist, 0.5), 40 - 5, 1e-12);
  ASSERT_CLOSE(delay_quantile(dist, 0.9), 56 - 5, 1e-12);
  delay_free(dist);
  cfg_free(doc);
  unlink(path);
}

static void put_file(const char *folder, const char *name, const char *text) {
  char path[FILES_PATH];
  files_put(files_path(folder, name, path), text);
}

TEST(measured_files_are_found_beside_the_recipe) {
  char folder[] = "/tmp/gepolab-recipeXXXXXX", recipe[100], csv[100];
  CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
  put_file(folder, "lengths.csv", "40\n60\n");
  put_file(folder, "r.yaml",
           "{preset: fifo, lengths: {distribution: empirical, file: lengths.csv}}");
  snprintf(recipe, sizeof recipe, "%s/r.yaml", folder);
  snprintf(csv, sizeof csv, "%s/lengths.csv", folder);
  cfg_doc *doc = NULL;
  cluster_spec *spec = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL(cfg_load_file(&doc, recipe, &err), GL_OK);
  CU_ASSERT_EQUAL(cluster_parse(&spec, cfg_root(doc), 8, 8, &err), GL_OK);
  cluster_free(spec);
  unlink(csv);
  CU_ASSERT_EQUAL(cluster_parse(&spec, cfg_root(doc), 8, 8, &err), GL_EINPUT);
  CU_ASSERT(strncmp(err.text, recipe, strlen(recipe)) == 0);
  cluster_free(spec);
  cfg_free(doc);
  unlink(recipe);
  rmdir(folder);
}

/* Bad share to_bad / (to_bad + to_good) = 1/6: losses 0.01 * 5/6 + 0.4 / 6 = 0.075 of the packets
 * of a first round. A run of bad packets has mean 20, so 10^6 packets hold some 8,300 runs and the
 * rate's standard error is below 0.4 * sqrt(2 * 20 / 6 / 10^6) = 0.0011; four of them: 6e-5. */
TEST(bursts_lose_the_share_their_states_say) {
  link_spec spec = {.bandwidth = INFINITY,
                    .packet_bytes = 1,
                    .loss = 0.01,
                    .loss_bad = 0.4,
                    .to_bad = 0.01,
                    .to_good = 0.05,
                    .max_retries = 0};
  link_state state = {0};
  gsl_rng *g = rng_gsl_new(rng_stream_at(0, RNG_LOSS, 0));
  double lost = 0;
  spec.max_retries = 1; /* what the second round sends is what the first lost */
  for (int i = 0; i < 1000; ++i)
    lost += link_send(&spec, &state, rng_stream_at(8, RNG_LOSS, 4), g, 0, 1000).retransmissions;
  CU_ASSERT(fabs(lost / 1e6 - 0.075) < 0.0044);
  gsl_rng_free(g);
}

TEST(summaries_have_the_documented_keys) {
  schedule s;
  cluster_spec *spec;
  cJSON *json = NULL;
  ASSERT_OK(sim_build(&s, &spec, "{preset: fifo}", 1, 40, &err));
  ASSERT_OK(schedule_to_json(&s, spec, &json, &err));
  char *text = cJSON_PrintUnformatted(json);
  cJSON_Delete(json);
  json = cJSON_Parse(text);
  free(text);
  const char *keys[] = {
      "learner_utilisation", "sampler_utilisation", "batches_generated", "batches_trained",
      "batches_dropped",     "batches_lost",        "samples_per_s",     "bytes_up",
      "bytes_down",          "retransmissions",     "simulated_s",       "updates"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    CU_ASSERT(cJSON_IsNumber(member_at(json, keys[i])));
  const cJSON *staleness = member_at(json, "staleness");
  const char *parts[] = {"mean", "max", "p50", "p95"};
  for (size_t i = 0; i < 4; ++i) CU_ASSERT(cJSON_IsNumber(member_at(staleness, parts[i])));
  double total = 0, sum = 0;
  int tau = 0;
  const cJSON *count;
  cJSON_ArrayForEach(count, member_at(staleness, "histogram")) {
    total += count->valuedouble;
    sum += tau++ * count->valuedouble;
  }
  CU_ASSERT_EQUAL(total, 40);
  ASSERT_CLOSE(number_at(staleness, "mean"), sum / 40, 1e-12);
  CU_ASSERT(member_at(json, "ks_distance") == NULL);
  cJSON_Delete(json);
}

/* A preset is its defaults: written out, they give the same schedule. */
TEST(a_preset_is_its_defaults_written_out) {
  schedule a = sim_must_build("{preset: fifo, window: 3}", 1, 40);
  schedule b = sim_must_build(
      "{learner: {batches: 1, queue: fifo, step: 30}, window: 3, samplers: 4, sync: "
      "push, preset: sync, ahead: 1000000, generation: {distribution: constant, value: 120}}",
      1, 40);
  CU_ASSERT_EQUAL_FATAL(a.n_batches, b.n_batches);
  for (size_t i = 0; i < a.n_updates; ++i) CU_ASSERT(a.updates[i].end_s == b.updates[i].end_s);
  for (size_t i = 0; i < a.n_batches; ++i)
    CU_ASSERT(a.batches[i].id == b.batches[i].id && a.batches[i].start_s == b.batches[i].start_s);
  CU_ASSERT(a.clock.staleness_mean == b.clock.staleness_mean && a.clock.staleness_max > 0);
}

TEST(names_that_no_table_has_are_refused_with_the_nearest) {
  static const struct {
    const char *text, *says;
  } wrong[] = {
      {"{preset: heterrl}", "did you mean 'heterorl'"},
      {"{delay: {distribution: lognorml, interval: [60, 90]}}", "did you mean 'lognormal'"},
      {"{delay: {distribution: gilbert_eliott}}", "did you mean 'gilbert_elliott'"},
      {"{delay: {distribution: weibull, mean: 3}}", "it knows: distribution, shape, scale"},
      {"{delay: {distribution: empirical, interval: [60, 90]}}",
       "a distribution of kind empirical has no interval"},
      {"{network: {sites: [{name: a}, {name: b, latency: 1}]}, samplers: [{site: zz}]}",
       "'zz' is none of cluster.network.sites: a, b"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    schedule s;
    cluster_spec *spec;
    gl_error err = {0};
    CU_ASSERT_EQUAL(sim_build(&s, &spec, wrong[i].text, 1, 1, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i].says));
    if (strstr(err.text, wrong[i].says) == NULL) fprintf(stderr, "%s\n", err.text);
  }
}

/* What the reference of fields prints as a default may be written. */
TEST(none_and_inf_are_no_limit) {
  static const char *const fields[] = {
      "ahead: %s",
      "window: %s",
      "up: {bandwidth: %s}",
      "samplers: [{count: 4, down: {bandwidth: %s}}]",
      "grader: {time: 1, timeout: %s}",
      "network: {egress: {bandwidth: %s}, ingress: {bandwidth: %s}}",
      "unit: group, lengths: 9, environment: {turns: 2, time: 3, places: %s}",
      "unit: group, lengths: 9, decoding: {running: [1], tokens_per_s: [9], kv_tokens: %s}",
      "unit: group, lengths: 9, prompt_tokens: 9, decoding: {kind: roofline, parameters: 1e9, "
      "kv_bytes: 1, memory_bandwidth: 1e12, flops: 1e15, memory: %s}"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i)
    for (int inf = 0; inf < 2; ++inf) {
      const char *word = inf ? "inf" : "none";
      char section[300], text[400];
      snprintf(section, sizeof section, fields[i], word, word);
      snprintf(text, sizeof text, "{preset: areal, %s}", section);
      sim_must_build(text, 1, 3);
    }
  const schedule s = sim_must_build("{preset: areal, ahead: none, learner: {step: 1000}}", 1, 40);
  CU_ASSERT(s.clock.staleness_max > 4);
}

TEST(hostile_sections_are_refused_at_their_place) {
  const char *wrong[] = {
      "{preset: fifo, generation: -1}",
      "{preset: fifo, generation: nan}",
      "{preset: fifo, learner: {step: -0.5}}",
      "{preset: fifo, samplers: -4}",
      "{preset: fifo, samplers: 99999999}",
      "{preset: fifo, samplers: [{speed: 0}]}",
      "{preset: fifo, window: -1}",
      "{preset: fifo, ahead: -inf}",
      "{preset: fifo, learner: {publish_every: none}}",
      "{preset: fifo, up: {bandwidth: 0}}",
      "{preset: fifo, up: {loss: 1.5}}",
      "{preset: fifo, delay: {distribution: gamma, interval: [1, 1.0000001]}}",
      "{preset: fifo, delay: {distribution: lognormal, interval: [60, 30], confidence: 2}}",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) sim_must_refuse(wrong[i]);
}

/* --- queues that wait for units in progress --- */

#define IN_ORDER_CLUSTER                                                                           \
  "samplers: [{count: 2}, {count: 1, speed: 0.4}], concurrency: 12, lengths: {distribution: "      \
  "lognormal, "                                                                                    \
  "mu: "                                                                                           \
  "5.5, sigma: 1}, tokens_per_s: 20, ahead: 2, delay: 3, learner: {batches: 1, step: 4, queue: "

/* The number of trained units whose version is older than that of a unit of an earlier update, and
 * of those that another update trained than the one they were begun for. */
static void count_out_of_order(const char *queue, const char *more, size_t *versions,
                               size_t *places) {
  char text[600];
  snprintf(text, sizeof text, "{preset: nemo_rl, %s" IN_ORDER_CLUSTER "%s}}", more, queue);
  schedule s = sim_must_build(text, 5, 150);
  int64_t newest = 0;
  *versions = *places = 0;
  for (size_t i = 0; i < s.n_updates; ++i) {
    const schedule_update *u = &s.updates[i];
    int64_t next = newest;
    for (size_t k = 0; k < u->n_batches; ++k) {
      const schedule_batch *b = &s.batches[u->first_batch + k];
      const int64_t version = s.segments[b->first_segment].version;
      *versions += version < newest;
      *places += b->number / u->n_batches != i;
      if (version > next) next = version;
    }
    newest = next;
  }
  uint64_t units = 0;
  for (int f = 0; f < FATES; ++f) units += s.fate[f].units;
  CU_ASSERT_EQUAL(units, s.begun);
}

/* Groups of slow samplers come late: the queue oldest_version, which does not wait for them, trains
 * newer ones before them, and the other two do not. */
TEST(queues_in_order_wait_for_what_is_in_progress) {
  size_t versions, places;
  count_out_of_order("oldest_version", "", &versions, &places);
  CU_ASSERT(versions > 20 && places > 20);
  count_out_of_order("version_order", "", &versions, &places);
  CU_ASSERT_EQUAL(versions, 0);
  CU_ASSERT(places > 20);
  count_out_of_order("in_order", "", &versions, &places);
  CU_ASSERT_EQUAL(places, 0);
  /* what is lost does not stop them */
  count_out_of_order("version_order", "mtbf: {distribution: exponential, mean: 400}, mttr: 30, ",
                     &versions, &places);
  CU_ASSERT_EQUAL(versions, 0);
  count_out_of_order("in_order", "mtbf: {distribution: exponential, mean: 400}, mttr: 30, ",
                     &versions, &places);
  CU_ASSERT(places > 0);
}

TEST(what_order_does_not_go_with_is_refused) {
  sim_must_refuse("{preset: nemo_rl_in_order, window: 3}");
  sim_must_refuse("{preset: nemo_rl_in_order, oversample: 2}");
  sim_must_refuse("{preset: nemo_rl_weight_fifo, stale: wait, window: 3}");
  sim_must_refuse("{preset: nemo_rl_weight_fifo, learner: {capacity: 900}}");
  sim_must_refuse("{preset: nemo_rl_weight_fifo, colocated: {to_training: 3}}");
}
