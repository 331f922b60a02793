/* gepolab selection: the gradient of what arrives against the gradient of what was drawn. */
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/one_recipe.h"
#include "experiments/lab/arrivals.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A learner that a coupled clock asks for groups and that never learns: what its clock throws away
 * is then a matter of lengths under one policy. */
typedef struct probe {
  learner learner;
  size_t group_size, max_length;
  const cluster_spec *cluster; /* borrowed */
  uint64_t *trained, *missed;  /* [max_length + 1] groups by their longest response */
  double *weight;              /* [max_length + 1] of trained groups together: 1 each, or less */
  int64_t *begun;              /* [room] version at which groups were begun, by their number */
  size_t room;
} probe;

static gl_status note_version(probe *p, const schedule_batch *b, int64_t version, gl_error *err) {
  if (b->number >= p->room) {
    const size_t room = 2 * (size_t)b->number + 64;
    int64_t *more = realloc(p->begun, room * sizeof *more);
    if (more == NULL) return gl_fail_memory(err, "versions of groups");
    p->begun = more;
    p->room = room;
  }
  p->begun[b->number] = version;
  return GL_OK;
}

static gl_status draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                      gl_error *err) {
  probe *p = self;
  batch drawn = {0};
  gl_status status = note_version(p, b, version, err); /* the clock's; the policy stays */
  const draw_request request = {
      .batch_id = b->id, .n_groups = 1, .group_size = p->group_size, .from = 0, .to = 1};
  if (status == GL_OK) status = p->learner.ops->draw(p->learner.self, &request, &drawn, err);
  for (size_t i = 0; i < p->group_size && status == GL_OK; ++i)
    lengths[i] = (double)(drawn.token_start[i + 1] - drawn.token_start[i]);
  batch_fini(&drawn);
  return status;
}

static size_t longest_of(const probe *p, const schedule_batch *b) {
  const size_t longest = (size_t)b->longest;
  return longest < p->max_length ? longest : p->max_length;
}

static void discard(void *self, const schedule_batch *b, unit_fate fate) {
  const probe *p = self;
  (void)fate;
  ++p->missed[longest_of(p, b)];
}

static gl_status update(void *self, const schedule_update *u, const schedule_batch *batches,
                        int *stop, gl_error *err) {
  const probe *p = self;
  (void)err;
  for (size_t i = 0; i < u->n_batches; ++i) {
    const size_t m = longest_of(p, &batches[i]);
    ++p->trained[m];
    p->weight[m] += cluster_stale_weight(p->cluster, u->version - p->begun[batches[i].number]);
  }
  *stop = 0;
  return GL_OK;
}

static gl_status hold(void *self, int64_t version, gl_error *err) {
  (void)self, (void)version, (void)err;
  return GL_OK;
}

static void release(void *self, int64_t version) {
  (void)self, (void)version;
}

/* Lengths stay, for the policy does. */
static gl_status go_on(void *self, const schedule_batch *b, int64_t version, const size_t *from,
                       double *lengths, gl_error *err) {
  (void)self, (void)b, (void)version, (void)from, (void)lengths, (void)err;
  return GL_OK;
}

/* What the recipe must be for the question to have an answer. */
static gl_status check(const recipe *r, const cluster_spec *cluster, gl_error *err) {
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

/* The chance to arrive by longest response, from the clock; the mean weight, where stale groups are
 * trained with less. Where no group was drawn it is that of
 * the next shorter one that was. */
static void arrival_chances(const probe *p, double *arrives) {
  double last = 1;
  for (size_t m = 0; m <= p->max_length; ++m) {
    const double n = (double)(p->trained[m] + p->missed[m]);
    if (n > 0) last = p->weight[m] / n;
    arrives[m] = last;
  }
}

/* --- printing -----------------------------------------------------------------------------------
 */

static int add_side(cJSON *to, const char *name, const arrivals_side *side) {
  cJSON *row = cJSON_AddObjectToObject(to, name);
  return row != NULL && json_add_number(row, "reward", side->reward) != NULL &&
         json_add_number(row, "length", side->length) != NULL;
}

static gl_status print_json(const arrivals *a, const probe *p, const double *arrives,
                            gl_error *err) {
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_number(root, "probability", a->probability) != NULL &&
           json_add_number(root, "cosine", a->cosine) != NULL &&
           json_add_number(root, "norm_ratio", a->norm_ratio) != NULL &&
           json_add_number(root, "correlation", a->correlation) != NULL &&
           add_side(root, "drawn", &a->drawn) && add_side(root, "arrived", &a->arrived);
  cJSON *rows = ok ? cJSON_AddArrayToObject(root, "by_longest") : NULL;
  ok = rows != NULL;
  for (size_t m = 1; m <= a->max_length && ok; ++m) {
    cJSON *row = cJSON_CreateObject();
    ok = row != NULL && cJSON_AddItemToArray(rows, row) &&
         json_add_number(row, "tokens", (double)m) != NULL &&
         json_add_number(row, "share", a->longest[m]) != NULL &&
         json_add_number(row, "groups", (double)(p->trained[m] + p->missed[m])) != NULL &&
         json_add_number(row, "arrives", arrives[m]) != NULL;
  }
  return report_json_if(ok, root, err);
}

static void print_table(const arrivals *a, const probe *p, const double *arrives) {
  printf("%-26s %10s %10s\n", "", "drawn", "arrived");
  printf("%-26s %10.4f %10.4f\n", "share of groups", 1.0, a->probability);
  printf("%-26s %10.4f %10.4f\n", "mean reward", a->drawn.reward, a->arrived.reward);
  printf("%-26s %10.4f %10.4f\n", "mean length", a->drawn.length, a->arrived.length);
  printf("%-26s %10.4f\n", "length and reward", a->correlation);
  printf("%-26s %10s %10.4f\n", "gradient: cosine", "1", a->cosine);
  printf("%-26s %10s %10.4f\n\n", "gradient: norm", "1", a->norm_ratio);
  printf("%-16s %10s %10s %10s\n", "longest response", "share", "groups", "arrives");
  for (size_t m = 1; m <= a->max_length; ++m)
    printf("%-16zu %10.4f %10llu %8.2f %%\n", m, a->longest[m],
           (unsigned long long)(p->trained[m] + p->missed[m]), 100 * arrives[m]);
}

/* --- the command --------------------------------------------------------------------------------
 */

static gl_status run_clock(probe *p, const recipe *r, const cluster_spec *cluster, gl_error *err) {
  const schedule_hooks hooks = {p, draw, discard, update, hold, release, NULL, go_on};
  schedule s = {0};
  gl_status status = recipe_learner(&p->learner, r, NULL, err);
  if (status == GL_OK) status = schedule_build_coupled(&s, cluster, r->seed, r->steps, &hooks, err);
  schedule_fini(&s);
  return status;
}

static gl_status measure(const recipe *r, const cluster_spec *cluster, int json, gl_error *err) {
  toy_world *world = NULL;
  arrivals found = {0};
  probe p = {.group_size = r->group_size, .cluster = cluster};
  gl_status status = toy_world_new(&world, r->world, r->sampling, r->seed, err);
  if (status != GL_OK) return status;
  const enumerable view = toy_world_enumerable(world);
  p.max_length = view.max_length;
  p.trained = calloc(view.max_length + 1, sizeof *p.trained);
  p.missed = calloc(view.max_length + 1, sizeof *p.missed);
  p.weight = calloc(view.max_length + 1, sizeof *p.weight);
  double *arrives = calloc(view.max_length + 1, sizeof *arrives);
  double *theta = calloc(view.n_parameters + 1, sizeof *theta);
  if (p.trained == NULL || p.missed == NULL || p.weight == NULL || arrives == NULL || theta == NULL)
    status = gl_fail_memory(err, "what arrives");
  if (status == GL_OK && toy_world_is_counted(world))
    status = cfg_fail(r->world, err,
                      "this world has too many responses to list them; give it a shorter horizon");
  if (status == GL_OK) status = run_clock(&p, r, cluster, err);
  if (status == GL_OK) {
    arrival_chances(&p, arrives);
    toy_world_initial(world, r->seed, theta);
    status = arrivals_measure(&found, &view, theta, r->group_size, arrives, err);
  }
  if (status == GL_OK && json)
    status = print_json(&found, &p, arrives, err);
  else if (status == GL_OK)
    print_table(&found, &p, arrives);
  arrivals_fini(&found);
  learner_fini(&p.learner);
  free(p.trained);
  free(p.missed);
  free(p.weight);
  free(p.begun);
  free(arrives);
  free(theta);
  toy_world_free(world);
  return status;
}

static gl_status run_selection(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  one_recipe of;
  cluster_spec *cluster = NULL;
  gl_status status =
      one_recipe_args(&of, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !of.words.help) {
    const recipe *r = &of.r;
    status = one_recipe_read(&of, err);
    if (status == GL_OK)
      status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
    if (status == GL_OK) status = check(r, cluster, err);
    if (status == GL_OK) status = measure(r, cluster, json, err);
  }
  cluster_free(cluster);
  one_recipe_fini(&of);
  return status;
}

const command command_selection = {
    .name = "selection",
    .arguments = "RECIPE [key=value …]",
    .summary = "the gradient of groups that arrive against that of all that were drawn",
    .about =
        "Runs the clock of the recipe with groups of its toy world's initial policy, counts by "
        "the\n"
        "longest response which groups are trained and which are thrown away or lost, and gives\n"
        "for these chances the exact expected gradient, reward and length of groups that arrive\n"
        "beside those of all groups, and how reward goes with length in what was drawn\n"
        "(paper/methods.md 7.11). Groups that are trained with less weight (stale: downweight)\n"
        "count as much less. The policy does not learn meanwhile.",
    .examples = "  gepolab selection what_arrives\n"
                "  gepolab selection what_arrives cluster.window=1 --json",
    .run = run_selection};
