/* Selection bias: which groups reach the learner, counted by a coupled clock under a fixed policy,
 * and how this changes the expected gradient. */
#include "experiments/clock/selection.h"

#include "analysis/figures/without_study.h"
#include "experiments/base/memory.h"
#include "sim/schedule.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A learner for a coupled clock that samples groups but never changes its policy. The groups that
 * the clock drops then depend only on their lengths. */
typedef struct selection_run {
  selection_case *of;
  learner learner;
  size_t group_size;
  const cluster_spec *cluster; /* borrowed */
  double *weight; /* [of->max_length + 1] sum of the weights of trained groups; a weight is 1, or
                     less if stale groups are downweighted */
  int64_t *begun; /* [room] the version at which each group was started, indexed by group number */
  size_t room;
} selection_run;

/* Samples a group when the clock begins it, and returns the lengths of its responses. */
static gl_status on_draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                         gl_error *err) {
  selection_run *p = self;
  batch drawn = {0};
  MUST_RESERVE(p->begun, p->room, (size_t)b->number + 1, "versions of groups");
  p->begun[b->number] = version; /* the clock's version; the policy does not change */
  const draw_request request = {
      .batch_id = b->id, .n_groups = 1, .group_size = p->group_size, .from = 0, .to = 1};
  const gl_status status = p->learner.ops->draw(p->learner.self, &request, &drawn, err);
  for (size_t i = 0; i < p->group_size && status == GL_OK; ++i)
    lengths[i] = (double)(drawn.token_start[i + 1] - drawn.token_start[i]);
  batch_fini(&drawn);
  return status;
}

static size_t longest_of(const selection_run *p, const schedule_batch *b) {
  const size_t longest = (size_t)b->longest;
  return longest < p->of->max_length ? longest : p->of->max_length;
}

static void on_discard(void *self, const schedule_batch *b, unit_fate fate) {
  const selection_run *p = self;
  (void)fate;
  ++p->of->missed[longest_of(p, b)];
}

/* Counts the groups of an update, and adds their weights, by the length of their longest
 * response. */
static gl_status on_update(void *self, const schedule_update *u, const schedule_batch *batches,
                           bool *stop, gl_error *err) {
  const selection_run *p = self;
  (void)err;
  for (size_t i = 0; i < u->n_batches; ++i) {
    const size_t m = longest_of(p, &batches[i]);
    ++p->of->trained[m];
    p->weight[m] += cluster_stale_weight(p->cluster, u->version - p->begun[batches[i].number]);
  }
  *stop = 0;
  return GL_OK;
}

static gl_status on_hold(void *self, int64_t version, gl_error *err) {
  (void)self, (void)version, (void)err;
  return GL_OK;
}

static void on_release(void *self, int64_t version) {
  (void)self, (void)version;
}

/* New weights belong to the same policy, so lengths do not change. */
static gl_status on_resume(void *self, const schedule_batch *b, int64_t version, const size_t *from,
                           double *lengths, gl_error *err) {
  (void)self, (void)b, (void)version, (void)from, (void)lengths, (void)err;
  return GL_OK;
}

/* --- measurement --- */

/* Errors: GL_EINPUT unless the recipe has an exact world, groups of several responses, and a
 * coupled clock whose unit is a group. */
static gl_status check_selection(const recipe *r, const cluster_spec *cluster, gl_error *err) {
  const cfg_node *kind = r->world != NULL ? cfg_find(r->world, "kind") : NULL;
  if (kind == NULL || !toy_is_kind(cfg_text(kind)))
    return cfg_fail(
        r->world != NULL ? r->world : r->root, err,
        "gradients of what arrives are exact in toy worlds alone; give the recipe a world "
        "of kind bandit, sequence or mdp");
  if (r->group_size < 2)
    return cfg_fail(r->train, err,
                    "a group of one response has no advantage; give train.group_size: 2 or more");
  const unit_draw unit = cluster_unit_draw(cluster, 0, r->groups);
  if (!cluster_is_coupled(cluster) || unit.n_groups != 1 || unit.group_size != r->group_size)
    return cfg_fail(r->cluster, err,
                    "which groups arrive is a matter of their real lengths; give the cluster unit: "
                    "group and coupled: true");
  return GL_OK;
}

/* Computes the probability that a group reaches the learner, by the length of its longest response,
 * or the mean weight if stale groups are downweighted. Lengths that were never sampled use the
 * value of the next shorter length that was. */
static void arrival_chances(selection_case *m, const double *weight) {
  double last = 1;
  for (size_t k = 0; k <= m->max_length; ++k) {
    const double n = (double)(m->trained[k] + m->missed[k]);
    if (n > 0) last = weight[k] / n;
    m->arrives[k] = last;
  }
}

static gl_status selection_run_clock(selection_run *p, const recipe *r, const cluster_spec *cluster,
                                     gl_error *err) {
  const schedule_hooks hooks = {p,       on_draw,    on_discard, on_update,
                                on_hold, on_release, NULL,       on_resume};
  schedule s = {0};
  gl_status status = recipe_learner(&p->learner, r, NULL, err);
  if (status == GL_OK) status = schedule_build_coupled(&s, cluster, r->seed, r->steps, &hooks, err);
  schedule_fini(&s);
  return status;
}

static gl_status measure_in(selection_run *p, toy_world *world, const recipe *r, gl_error *err) {
  const enumerable view = toy_world_enumerable(world);
  const size_t n = view.max_length + 1;
  if (toy_world_is_counted(world))
    return cfg_fail(r->world, err,
                    "this world has too many responses to list them; give it a shorter horizon");
  p->of->max_length = view.max_length;
  p->of->trained = MUST_ARRAY(uint64_t, n, "trained groups");
  p->of->missed = MUST_ARRAY(uint64_t, n, "lost groups");
  p->of->arrives = MUST_ARRAY(double, n, "probabilities to reach the learner");
  p->weight = MUST_ARRAY(double, n, "weights of groups");
  gl_status status = selection_run_clock(p, r, p->cluster, err);
  if (status == GL_OK) {
    double *theta = MUST_ARRAY(double, view.n_parameters + 1, "parameters");
    arrival_chances(p->of, p->weight);
    toy_world_initial(world, r->seed, theta);
    status = arrivals_measure(&p->of->found, &view, theta, r->group_size, p->of->arrives, err);
    free(theta);
  }
  return status;
}

gl_status selection_case_measure(selection_case *m, const recipe *r, const cluster_spec *cluster,
                                 gl_error *err) {
  toy_world *world = NULL;
  selection_run p = {.of = m, .group_size = r->group_size, .cluster = cluster};
  *m = (selection_case){.max_length = 0};
  gl_status status = check_selection(r, cluster, err);
  if (status == GL_OK) status = toy_world_new(&world, r->world, r->sampling, r->seed, err);
  if (status == GL_OK) status = measure_in(&p, world, r, err);
  learner_fini(&p.learner);
  free(p.weight);
  free(p.begun);
  toy_world_free(world);
  return status;
}

void selection_case_fini(selection_case *m) {
  arrivals_fini(&m->found);
  free(m->trained);
  free(m->missed);
  free(m->arrives);
}

/* --- the figure --- */

#define POLICIES 3

static const struct {
  const char *name, *stale; /* stale: a recipe override */
  const char
      *decay; /* second override: decay of the weights, which only `downweight` has; NULL: none */
} policies[POLICIES] = {
    {"discard", "cluster.stale=discard", "cluster.stale_decay=null"},
    {"wait", "cluster.stale=wait", "cluster.stale_decay=null"},
    {"downweight", "cluster.stale=downweight", NULL},
};

/* Loads the recipe as given, with another policy for stale groups. */
static gl_status load_policy(cfg_doc **out, const selection_recipe *of, size_t policy,
                             gl_error *err) {
  const char **overrides = MUST_ARRAY(const char *, of->n_overrides + 2, "overrides");
  size_t n = 0;
  for (; n < of->n_overrides; ++n) overrides[n] = of->overrides[n];
  overrides[n++] = policies[policy].stale;
  if (policies[policy].decay != NULL) overrides[n++] = policies[policy].decay;
  const gl_status status = recipe_load(out, of->source, overrides, n, err);
  free(overrides);
  return status;
}

/* Measures a policy other than the recipe's. *why: NULL, or the reason, as a clause, why the figure
 * omits this policy. */
static gl_status measure_policy(selection_case *m, const char **why, const selection_recipe *of,
                                size_t policy, gl_error *err) {
  cfg_doc *doc = NULL;
  cluster_spec *cluster = NULL;
  recipe r;
  *why = "which this cluster refuses";
  gl_status status = load_policy(&doc, of, policy, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK) {
    *why = "under which nothing arrives";
    status = selection_case_measure(m, &r, cluster, err);
  }
  cluster_free(cluster);
  cfg_free(doc);
  if (status == GL_EINPUT) { /* omitted, with the reason */
    gl_error_clear(err);
    return GL_OK;
  }
  *why = NULL;
  return status;
}

static void blank_lengths_never_sampled(selection_case *m) {
  for (size_t k = 0; k <= m->max_length; ++k)
    if (m->trained[k] + m->missed[k] == 0) m->arrives[k] = NAN;
}

gl_status selection_case_draw(selection_case *own, const char *policy, const selection_recipe *of,
                              const figure_request *q, gl_error *err) {
  selection_case others[POLICIES] = {0};
  selection_policy shown[POLICIES];
  char texts[POLICIES][128];
  const char *left_out[POLICIES];
  selection_policies d = {.of = shown, .max_length = own->max_length, .left_out = left_out};
  gl_status status = GL_OK;
  for (size_t i = 0; i < POLICIES && status == GL_OK; ++i) {
    selection_case *m = strcmp(policies[i].name, policy) == 0 ? own : &others[i];
    const char *why = NULL;
    if (m != own) status = measure_policy(m, &why, of, i, err);
    if (status == GL_OK && why != NULL) {
      snprintf(texts[i], sizeof texts[i], "%s, %s", policies[i].name, why);
      left_out[d.n_left_out++] = texts[i];
    } else if (status == GL_OK) {
      blank_lengths_never_sampled(m);
      shown[d.n++] =
          (selection_policy){policies[i].name, m->arrives, m->found.cosine, m->found.norm_ratio};
    }
  }
  if (status == GL_OK) status = figure_of_selection(&d, q, err);
  for (size_t i = 0; i < POLICIES; ++i) selection_case_fini(&others[i]);
  return status;
}
