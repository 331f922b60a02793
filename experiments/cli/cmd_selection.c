/* gepolab selection: the gradient of what arrives against the gradient of what was drawn. */
#include "analysis/figures/selection.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/one_recipe.h"
#include "experiments/cli/tell_figures.h"
#include "experiments/lab/arrivals.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- what is measured --- */

/* Of one recipe. Release with finding_fini(), also after an error. */
typedef struct finding {
  probe p;
  arrivals found;
  double *arrives; /* [p.max_length + 1] chances, or mean weights */
} finding;

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

static gl_status run_clock(probe *p, const recipe *r, const cluster_spec *cluster, gl_error *err) {
  const schedule_hooks hooks = {p, draw, discard, update, hold, release, NULL, go_on};
  schedule s = {0};
  gl_status status = recipe_learner(&p->learner, r, NULL, err);
  if (status == GL_OK) status = schedule_build_coupled(&s, cluster, r->seed, r->steps, &hooks, err);
  schedule_fini(&s);
  return status;
}

static gl_status make_room(finding *m, const enumerable *view, gl_error *err) {
  const size_t n = view->max_length + 1;
  m->p.max_length = view->max_length;
  m->p.trained = calloc(n, sizeof *m->p.trained);
  m->p.missed = calloc(n, sizeof *m->p.missed);
  m->p.weight = calloc(n, sizeof *m->p.weight);
  m->arrives = calloc(n, sizeof *m->arrives);
  const int ok =
      m->p.trained != NULL && m->p.missed != NULL && m->p.weight != NULL && m->arrives != NULL;
  return ok ? GL_OK : gl_fail_memory(err, "what arrives");
}

static gl_status measure_in(finding *m, toy_world *world, const recipe *r, gl_error *err) {
  const enumerable view = toy_world_enumerable(world);
  double *theta = calloc(view.n_parameters + 1, sizeof *theta);
  gl_status status = theta != NULL ? GL_OK : gl_fail_memory(err, "what arrives");
  if (status == GL_OK) status = make_room(m, &view, err);
  if (status == GL_OK && toy_world_is_counted(world))
    status = cfg_fail(r->world, err,
                      "this world has too many responses to list them; give it a shorter horizon");
  if (status == GL_OK) status = run_clock(&m->p, r, m->p.cluster, err);
  if (status == GL_OK) {
    arrival_chances(&m->p, m->arrives);
    toy_world_initial(world, r->seed, theta);
    status = arrivals_measure(&m->found, &view, theta, r->group_size, m->arrives, err);
  }
  free(theta);
  return status;
}

/* GL_EINPUT where nothing arrives, too. */
static gl_status measure(finding *m, const recipe *r, const cluster_spec *cluster, gl_error *err) {
  toy_world *world = NULL;
  *m = (finding){.p = {.group_size = r->group_size, .cluster = cluster}};
  gl_status status = check(r, cluster, err);
  if (status == GL_OK) status = toy_world_new(&world, r->world, r->sampling, r->seed, err);
  if (status == GL_OK) status = measure_in(m, world, r, err);
  learner_fini(&m->p.learner);
  m->p.learner = (learner){.ops = NULL};
  m->p.cluster = NULL;
  toy_world_free(world);
  return status;
}

static void finding_fini(finding *m) {
  arrivals_fini(&m->found);
  free(m->p.trained);
  free(m->p.missed);
  free(m->p.weight);
  free(m->p.begun);
  free(m->arrives);
}

/* --- printing --- */

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

/* --- the figure --- */

#define POLICIES 3

static const struct {
  const char *name, *stale; /* stale: an override */
  const char *decay;        /* a second one; NULL: none. A weight is stated for downweight alone */
} policies[POLICIES] = {
    {"discard", "cluster.stale=discard", "cluster.stale_decay=null"},
    {"wait", "cluster.stale=wait", "cluster.stale_decay=null"},
    {"downweight", "cluster.stale=downweight", NULL},
};

/* The recipe as it was given, but for what becomes of stale groups. */
static gl_status load_with(cfg_doc **out, const one_recipe *of, size_t policy, gl_error *err) {
  const args *words = &of->words;
  const char **overrides = calloc(words->n_overrides + 2, sizeof *overrides);
  if (overrides == NULL) return gl_fail_memory(err, "overrides");
  size_t n = 0;
  for (; n < words->n_overrides; ++n) overrides[n] = words->overrides[n];
  overrides[n++] = policies[policy].stale;
  if (policies[policy].decay != NULL) overrides[n++] = policies[policy].decay;
  const gl_status status = recipe_load(out, words->words[0], overrides, n, err);
  free(overrides);
  return status;
}

/* Measures another policy than the recipe's. *why: half a sentence where this cluster has no such
 * policy, or nothing arrives under it, or NULL. */
static gl_status measure_with(finding *m, const char **why, const one_recipe *of, size_t policy,
                              gl_error *err) {
  cfg_doc *doc = NULL;
  cluster_spec *cluster = NULL;
  recipe r;
  *why = "which this cluster refuses";
  gl_status status = load_with(&doc, of, policy, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK) {
    *why = "under which nothing arrives";
    status = measure(m, &r, cluster, err);
  }
  cluster_free(cluster);
  cfg_free(doc);
  if (status == GL_EINPUT) { /* left out with the reason */
    gl_error_clear(err);
    return GL_OK;
  }
  *why = NULL;
  return status;
}

static void no_share_where_none_was_drawn(finding *m) {
  for (size_t k = 0; k <= m->p.max_length; ++k)
    if (m->p.trained[k] + m->p.missed[k] == 0) m->arrives[k] = NAN;
}

typedef struct drawing {
  const char *folder; /* NULL: no figure */
  figure_form form;
} drawing;

/* `own` is what the policy `owned` of the recipe gives, after printing. */
static gl_status draw_figure(finding *own, const char *owned, const one_recipe *of,
                             const drawing *to, gl_error *err) {
  finding others[POLICIES] = {0};
  selection_policy shown[POLICIES];
  char texts[POLICIES][128];
  const char *left_out[POLICIES];
  selection_policies d = {.of = shown, .max_length = own->p.max_length, .left_out = left_out};
  gl_status status = GL_OK;
  for (size_t i = 0; i < POLICIES && status == GL_OK; ++i) {
    finding *m = strcmp(policies[i].name, owned) == 0 ? own : &others[i];
    const char *why = NULL;
    if (m != own) status = measure_with(m, &why, of, i, err);
    if (status == GL_OK && why != NULL) {
      snprintf(texts[i], sizeof texts[i], "%s, %s", policies[i].name, why);
      left_out[d.n_left_out++] = texts[i];
    } else if (status == GL_OK) {
      no_share_where_none_was_drawn(m);
      shown[d.n++] =
          (selection_policy){policies[i].name, m->arrives, m->found.cosine, m->found.norm_ratio};
    }
  }
  figure_request request = tell_figures(to->folder);
  request.told = NULL; /* standard output holds the numbers, perhaps as JSON */
  if (status == GL_OK) status = tell_figures_form(&request, &to->form, err);
  if (status == GL_OK) status = figure_of_selection(&d, &request, err);
  for (size_t i = 0; i < POLICIES; ++i) finding_fini(&others[i]);
  return status;
}

/* --- the command --- */

static gl_status tell(const one_recipe *of, const cluster_spec *cluster, int json,
                      const drawing *to, gl_error *err) {
  finding m;
  gl_status status = measure(&m, &of->r, cluster, err);
  if (status == GL_OK && json)
    status = print_json(&m.found, &m.p, m.arrives, err);
  else if (status == GL_OK)
    print_table(&m.found, &m.p, m.arrives);
  if (status == GL_OK && to->folder != NULL)
    status = draw_figure(&m, cluster_stale(cluster), of, to, err);
  finding_fini(&m);
  return status;
}

static gl_status run_selection(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  drawing to = {.folder = NULL};
  const args_option options[] = {
      {"figures", 'f', ARGS_TEXT, "FOLDER", "draw the policies for stale data there", &to.folder},
      FIGURE_WIDTH_OPTION(to.form),
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  one_recipe of;
  cluster_spec *cluster = NULL;
  gl_status status =
      one_recipe_args(&of, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !of.words.help) {
    const recipe *r = &of.r;
    status = one_recipe_read(&of, err);
    if (status == GL_OK)
      status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
    if (status == GL_OK) status = tell(&of, cluster, json, &to, err);
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
        "count as much less. The policy does not learn meanwhile.\n"
        "With --figures, the recipe's policy for stale data is drawn beside the others that its\n"
        "cluster can have (discard, wait, downweight).",
    .examples = "  gepolab selection what_arrives\n"
                "  gepolab selection what_arrives --figures figures/\n"
                "  gepolab selection what_arrives cluster.window=1 --json",
    .run = run_selection};
