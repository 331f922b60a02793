/* Presets: each runs by itself, says where it comes from, and at a bound of 0 is synchronous. */
#include "core/config/user_defined.h"
#include "sim/cluster.h"
#include "tests/support/files.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("sim: presets");

TEST(every_preset_runs_without_further_fields) {
  size_t n = 0;
  for (const cluster_preset *p; (p = cluster_preset_at(n)) != NULL; ++n) {
    char text[100];
    snprintf(text, sizeof text, "{preset: %s}", p->name);
    schedule s = sim_must_build(text, 1, 60);
    CU_ASSERT_EQUAL(s.n_updates, 60);
    CU_ASSERT(s.clock.samples_per_s > 0);
    if (p->ahead == 0) CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
  }
  CU_ASSERT(n >= 33);
}

TEST(every_preset_says_where_it_comes_from_and_what_it_leaves_out) {
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i) {
    const cluster_preset *p = cluster_preset_at(i);
    const char *const texts[] = {p->about, p->source, p->mapping, p->not_modelled};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; ++k) {
      CU_ASSERT_PTR_NOT_NULL_FATAL(texts[k]);
      CU_ASSERT(texts[k][0] != '\0');
      CU_ASSERT_PTR_NULL(strchr(texts[k], '|')); /* they are cells of Markdown tables */
    }
    for (size_t k = 0; k < i; ++k) CU_ASSERT(strcmp(cluster_preset_at(k)->name, p->name) != 0);
  }
}

/* What the table says of relays is a cluster that runs, and whose weights take as long as the tree
 * says: W / B times (S + d - 1) f / S. */
TEST(presets_with_relays_hand_weights_on) {
  const char *names[] = {"intellect2", "laminar"};
  const int fanout[] = {2, 1}, depth[] = {2, 6}, shards = 8;
  for (size_t i = 0; i < 2; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "{preset: %s, sync: push, samplers: 6, weights_bytes: 640, network: {egress: "
             "{bandwidth: 100}, relay: {kind: tree, fanout: %d, shards: %d, bandwidth: 100}}}",
             names[i], fanout[i], shards);
    schedule s = sim_must_build(text, 1, 60);
    ASSERT_CLOSE(s.network.weights.max, 6.4 * (shards + depth[i] - 1) * fanout[i] / shards, 1e-9);
  }
}

/* The same units, by the same samplers, of the same versions at the same times. */
static int same_schedule(const schedule *a, const schedule *b) {
  if (a->n_updates != b->n_updates || a->n_batches != b->n_batches) return 0;
  for (size_t u = 0; u < a->n_updates; ++u)
    if (a->updates[u].start_s != b->updates[u].start_s ||
        a->updates[u].end_s != b->updates[u].end_s ||
        a->updates[u].n_batches != b->updates[u].n_batches)
      return 0;
  for (size_t i = 0; i < a->n_batches; ++i) {
    const schedule_batch *x = &a->batches[i], *y = &b->batches[i];
    if (x->id != y->id || x->sampler != y->sampler || x->arrived_s != y->arrived_s ||
        a->segments[x->first_segment].version != b->segments[y->first_segment].version)
      return 0;
  }
  return 1;
}

/* Random lengths, unlike samplers, fewer slots than responses, and times on the way. */
#define REST                                                                                       \
  "samplers: [{count: 2}, {speed: 2}], lengths: {distribution: lognormal, mu: 5, sigma: 0.7}, "    \
  "concurrency: 24, data_delay: 3, learner: {step: 11, publish_every: 1}"

TEST(every_gated_preset_is_synchronous_at_a_bound_of_zero) {
  static const char *const units[] = {"batch", "group", "response"};
  size_t gated = 0;
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i) {
    const cluster_preset *p = cluster_preset_at(i);
    if (p->ahead == INT64_MAX) continue;
    ++gated;
    for (size_t k = 0; k < 3; ++k) {
      char sync[400], text[400];
      /* Samplers that pull look for weights whenever they begin, and finish all groups first. */
      if (p->sync == SYNC_PULL && (unit_kind)k != p->unit) continue;
      /* Weights that are pulled are fetched without delay; pushed ones may take their time. */
      const char *delay = p->sync == SYNC_PUSH ? "delay: 4, " : "";
      snprintf(sync, sizeof sync, "{preset: sync, unit: %s, %s" REST "}", units[k], delay);
      snprintf(text, sizeof text, "{preset: %s, ahead: 0, unit: %s, %s" REST "}", p->name, units[k],
               delay);
      schedule in_turns = sim_must_build(sync, 3, 50), s = sim_must_build(text, 3, 50);
      if (!same_schedule(&in_turns, &s)) fprintf(stderr, "%s is not synchronous\n", text);
      CU_ASSERT(same_schedule(&in_turns, &s));
      CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
      CU_ASSERT_EQUAL(s.clock.samples_per_s, in_turns.clock.samples_per_s);
    }
  }
  CU_ASSERT(gated >= 14);
}

/* staleness_threshold s and trigger_parameter_sync_step n let (1 + s) n updates' groups be begun
 * between two publications. */
TEST(verl_s_bound_is_a_share_of_what_is_published_at_once) {
  static const struct {
    int ahead, publish_every;
    double most; /* updates behind: of the last of n updates that use a version */
  } cases[] = {{3, 4, 3}, {5, 4, 5}, {7, 4, 7}};
  for (size_t i = 0; i < 3; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "{preset: verl_async, ahead: %d, lengths: 40, learner: {step: 25, publish_every: %d}}",
             cases[i].ahead, cases[i].publish_every);
    schedule s = sim_must_build(text, 1, 80);
    CU_ASSERT_EQUAL(s.clock.staleness_max, cases[i].most);
    size_t begun_early = 0;
    for (size_t u = 0; u < s.n_updates; ++u)
      for (size_t k = 0; k < s.updates[u].n_batches; ++k) {
        const schedule_batch *b = &s.batches[s.updates[u].first_batch + k];
        const int64_t version = s.segments[b->first_segment].version;
        CU_ASSERT_EQUAL(version % cases[i].publish_every, 0);
        begun_early += (int64_t)u - version > cases[i].publish_every - 1;
      }
    CU_ASSERT_EQUAL(begun_early > 0, cases[i].ahead > 3);
  }
}

TEST(a_preset_of_groups_takes_other_units_and_lengths) {
  schedule s = sim_must_build("{preset: skyrl, unit: batch, generation: 50, ahead: 0}", 1, 10);
  CU_ASSERT_EQUAL(s.updates[0].start_s, 50);
  s = sim_must_build("{preset: roll_flash, lengths: 100, tokens_per_s: 10, ahead: 0}", 1, 10);
  CU_ASSERT_EQUAL(s.updates[0].start_s, 10);
  sim_must_refuse("{preset: skyrl, generation: 50}");
  sim_must_refuse("{preset: skyrl, in_flight: true}");
}

/* verl V1 drops prompts that would be trained in the eighth global step after theirs (of four
 * updates each): staleness of at most seven syncs. One sampler is too slow. */
TEST(verl_v1_drops_by_global_steps) {
  schedule s = sim_must_build("{preset: verl_v1, samplers: [{count: 3}, {count: 1, speed: 0.05}], "
                              "concurrency: 16, learner: {batches: 1, step: 2}}",
                              1, 400);
  int64_t most = 0;
  for (size_t i = 0; i < s.n_updates; ++i)
    for (size_t k = 0; k < s.updates[i].n_batches; ++k) {
      const schedule_batch *b = &s.batches[s.updates[i].first_batch + k];
      const int64_t syncs = (s.updates[i].published - s.segments[b->first_segment].version) / 4;
      if (syncs > most) most = syncs;
    }
  CU_ASSERT_EQUAL(most, 7);
  CU_ASSERT(s.fate[FATE_STALE].units > 0);
}

/* prime-rl 0.8 cancels what its predecessor finished in vain. */
TEST(prime_rl_08_cancels) {
  static const char form[] = "{preset: %s, samplers: [{count: 3}, {count: 1, speed: 0.02}], "
                             "concurrency: 16, window: 8, learner: {batches: 1, step: 2}}";
  char text[256];
  snprintf(text, sizeof text, form, "prime_rl_08");
  schedule s = sim_must_build(text, 1, 400);
  CU_ASSERT(s.aborted > 0);
  CU_ASSERT(s.clock.staleness_max <= 8);
  snprintf(text, sizeof text, form, "prime_rl");
  s = sim_must_build(text, 1, 400);
  CU_ASSERT_EQUAL(s.aborted, 0);
}

/* torchtitan: with strict FIFO no update trains what is more than target_offpolicy_steps behind,
 * and a learner that is the bottleneck reaches it (docs/windowed_fifo.md). */
TEST(torchtitan_s_target_bounds_staleness) {
  for (int ahead = 0; ahead <= 3; ++ahead) {
    char text[200];
    snprintf(text, sizeof text,
             "{preset: torchtitan_rl, ahead: %d, samplers: [{count: 3}, {count: 1, speed: 0.1}], "
             "concurrency: 64, learner: {batches: 1, step: 500}}",
             ahead);
    schedule s = sim_must_build(text, 1, 200);
    CU_ASSERT_EQUAL(s.clock.staleness_max, ahead);
  }
}

/* --- presets of one's own --- */

static const char own_path[] = "build/tests/own_presets.yaml";
static const char own_text[] =
    "algorithms: {mine: {base: grpo, clip: none}}\n"
    "presets:\n"
    "  mine: {base: areal, samplers: 8, delay: 2m, learner: {step: 3, queue: fifo}}\n"
    "  far: {base: mine, delay: {distribution: gamma, shape: 4, scale: 15s}}\n";

/* Reads a text as the file of presets. */
static gl_status read_own(cfg_own **own, const char *text, gl_error *err) {
  files_put(own_path, text);
  const gl_status status = cfg_own_new(own, err);
  return status == GL_OK ? cfg_own_add_file(*own, own_path, "presets", err) : status;
}

/* The canonical text of a recipe after its own names have been replaced; NULL after an error. */
static char *replaced(const char *recipe, const cfg_own *own, gl_error *err) {
  cfg_doc *doc = NULL;
  char *text = NULL;
  gl_status status = cfg_load_text(&doc, recipe, strlen(recipe), "recipe", err);
  if (status == GL_OK) status = cfg_include(doc, NULL, err);
  if (status == GL_OK) status = cfg_resolve(doc, err);
  if (status == GL_OK) status = cfg_own_expand(own, doc, err);
  if (status == GL_OK) text = cfg_canonical(cfg_root(doc));
  cfg_free(doc);
  return text;
}

#define MINE "preset: areal, samplers: 8, learner: {step: 3, queue: fifo}"
#define GAMMA "delay: {distribution: gamma, shape: 4, scale: 15}"

TEST(own_presets_become_their_fields_wherever_a_recipe_has_clusters) {
  static const char *const pairs[][2] = {
      {"cluster: {preset: mine}", "cluster: {" MINE ", delay: 120}"},
      {"cluster: {preset: mine, samplers: 2, delay: null}",
       "cluster: {preset: areal, samplers: 2, delay: null, learner: {step: 3, queue: fifo}}"},
      {"cluster: {preset: mine, learner: {step: 5}, window: 4}",
       "cluster: {preset: areal, samplers: 8, delay: 120, learner: {step: 5, queue: fifo}, window: "
       "4}"},
      {"cluster: {preset: far}", "cluster: {" MINE ", " GAMMA "}"},
      {"cluster: {preset: far, delay: 1h}", "cluster: {" MINE ", delay: 3600}"},
      {"cluster: {preset: sync}\nalgorithm: mine",
       "cluster: {preset: sync}\nalgorithm: {base: grpo, clip: none, name: mine}"},
      {"sweep: {cluster: [{preset: mine}, {preset: sync}], seed: [1]}",
       "sweep: {cluster: [{" MINE ", delay: 120}, {preset: sync}], seed: [1]}"},
      {"sweep: {settings: [{cluster: {preset: far}, seed: 2}]}",
       "sweep: {settings: [{cluster: {" MINE ", " GAMMA "}, seed: 2}]}"},
      {"presets: {here: {base: far, delay: 2h}}\ncluster: {preset: here}",
       "cluster: {" MINE ", delay: 7200}"}};
  cfg_own *own = NULL, *none = NULL;
  ASSERT_OK(read_own(&own, own_text, &err));
  ASSERT_OK(cfg_own_new(&none, &err));
  CU_ASSERT_EQUAL(cfg_own_count(own, "presets"), 2);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    gl_error err = {0};
    char *a = replaced(pairs[i][0], own, &err), *b = replaced(pairs[i][1], none, &err);
    if (a == NULL || b == NULL) fprintf(stderr, "%s: %s\n", pairs[i][0], err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_STRING_EQUAL(a, b);
    free(a), free(b);
  }
  cfg_own_free(own);
  cfg_own_free(none);
}

TEST(what_no_own_preset_can_be_is_refused_with_its_place) {
  static const char *const wrong[][2] = {
      {"presets: {Areal: {base: sync}}", ":1:18: 'areal' is a published preset"},
      {"presets: {a b: {base: sync}}", ":1:16: 'a b' cannot be the name of your own preset"},
      {"presets: {x: {samplers: 2}}", "'x' has no 'base', the preset whose fields it changes"},
      {"presets: {x: sync}", "'x' must be a map of fields, as in my_cluster: {base: areal"},
      {"presets: {x: {base: sync, preset: areal}}", ":1:35: in the definition of 'x' the preset"},
      {"presets: {x: {base: snyc}}", ":1:21: 'cluster.preset' is text ('snyc')"},
      {"presets: {x: {base: y}, y: {base: sync}}", ":1:21: the base of 'x' is 'y', which is not"},
      {"presets: {x: {base: x}}", "which is not defined before it"},
      {"presets: {x: {base: sync, sampler: 2}}", ":1:27: unknown key 'sampler' in 'cluster'"},
      {"presets: {x: {base: sync, samplers: 0}}", ":1:37: "},
      {"presets: {x: {base: sync, delay: 2GiB}}", ":1:34: "},
      {"presets: {x: {base: sync}, x: {base: areal}}", "'x'"},
      {"presets: {x: {base: sync}}\nsteps: 3", ":2:8: a file of your own definitions"},
      {"algorithms: {x: {base: grpo}}", "defines no preset; write presets: {my_cluster:"},
      {"presets: {}", "defines no preset"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    cfg_own *own = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(read_own(&own, wrong[i][0], &err), GL_EINPUT);
    if (strstr(err.text, wrong[i][1]) == NULL) fprintf(stderr, "%s: %s\n", wrong[i][0], err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, own_path));
    cfg_own_free(own);
  }
  static const char *const recipes[][2] = {
      {"presets: {mine: {base: sync}}", "'mine' is defined here and, differently, in "},
      {"sweep: {cluster.preset: [sync, mine]}", "write sweep.cluster: [{preset: mine}, ...]"}};
  cfg_own *own = NULL;
  ASSERT_OK(read_own(&own, own_text, &err));
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; ++i) {
    gl_error err = {0};
    CU_ASSERT_PTR_NULL(replaced(recipes[i][0], own, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, recipes[i][1]));
  }
  cfg_own_free(own);
}
