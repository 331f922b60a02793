/* gepolab lab selection: the gradient of what arrives against the gradient of what was drawn. */
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/clock/selection.h"

#include <stdio.h>

/* --- printing --- */

static int add_side(cJSON *to, const char *name, const arrivals_side *side) {
  cJSON *row = cJSON_AddObjectToObject(to, name);
  return row != NULL && json_add_number(row, "reward", side->reward) != NULL &&
         json_add_number(row, "length", side->length) != NULL;
}

static gl_status selection_print_json(const selection_case *m, gl_error *err) {
  const arrivals *a = &m->found;
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_number(root, "probability", a->probability) != NULL &&
           json_add_number(root, "cosine", a->cosine) != NULL &&
           json_add_number(root, "norm_ratio", a->norm_ratio) != NULL &&
           json_add_number(root, "correlation", a->correlation) != NULL &&
           add_side(root, "drawn", &a->drawn) && add_side(root, "arrived", &a->arrived);
  cJSON *rows = ok ? cJSON_AddArrayToObject(root, "by_longest") : NULL;
  ok = rows != NULL;
  for (size_t k = 1; k <= a->max_length && ok; ++k) {
    cJSON *row = cJSON_CreateObject();
    ok = row != NULL && cJSON_AddItemToArray(rows, row) &&
         json_add_number(row, "tokens", (double)k) != NULL &&
         json_add_number(row, "share", a->longest[k]) != NULL &&
         json_add_number(row, "groups", (double)(m->trained[k] + m->missed[k])) != NULL &&
         json_add_number(row, "arrives", m->arrives[k]) != NULL;
  }
  return report_json_if(ok, root, err);
}

static void selection_print_table(const selection_case *m) {
  const arrivals *a = &m->found;
  printf("%-26s %10s %10s\n", "", "drawn", "arrived");
  printf("%-26s %10.4f %10.4f\n", "share of groups", 1.0, a->probability);
  printf("%-26s %10.4f %10.4f\n", "mean reward", a->drawn.reward, a->arrived.reward);
  printf("%-26s %10.4f %10.4f\n", "mean length", a->drawn.length, a->arrived.length);
  printf("%-26s %10.4f\n", "length and reward", a->correlation);
  printf("%-26s %10s %10.4f\n", "gradient: cosine", "1", a->cosine);
  printf("%-26s %10s %10.4f\n\n", "gradient: norm", "1", a->norm_ratio);
  printf("%-16s %10s %10s %10s\n", "longest response", "share", "groups", "arrives");
  for (size_t k = 1; k <= a->max_length; ++k)
    printf("%-16zu %10.4f %10llu %8.2f %%\n", k, a->longest[k],
           (unsigned long long)(m->trained[k] + m->missed[k]), 100 * m->arrives[k]);
}

/* --- the command --- */

/* Where the figure goes. */
typedef struct selection_drawing {
  const char *folder; /* NULL: no figure */
  figure_form form;
} selection_drawing;

static gl_status draw_selection(selection_case *m, const char *policy, const args *words,
                                const selection_drawing *to, gl_error *err) {
  const selection_recipe of = {words->words[0], words->overrides, words->n_overrides};
  figure_request request = tell_figures(to->folder);
  request.told = NULL; /* standard output holds the numbers, perhaps as JSON */
  gl_status status = tell_figures_form(&request, &to->form, err);
  return status == GL_OK ? selection_case_draw(m, policy, &of, &request, err) : status;
}

static gl_status run_selection(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  selection_drawing to = {.folder = NULL};
  const args_option options[] = {
      {"figures", 'f', ARGS_TEXT, "FOLDER", "draw the policies for stale data there", &to.folder},
      FIGURE_WIDTH_OPTION(to.form),
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  one_recipe of;
  cluster_spec *cluster = NULL;
  selection_case m = {.max_length = 0};
  gl_status status =
      one_recipe_args(&of, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !of.words.help) {
    const recipe *r = &of.r;
    status = one_recipe_read(&of, err);
    if (status == GL_OK)
      status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
    if (status == GL_OK) status = selection_case_measure(&m, r, cluster, err);
    if (status == GL_OK && json) status = selection_print_json(&m, err);
    if (status == GL_OK && !json) selection_print_table(&m);
    if (status == GL_OK && to.folder != NULL)
      status = draw_selection(&m, cluster_stale(cluster), &of.words, &to, err);
  }
  selection_case_fini(&m);
  cluster_free(cluster);
  one_recipe_fini(&of);
  return status;
}

const command command_selection = {
    .name = "lab selection",
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
    .examples = "  gepolab lab selection what_arrives\n"
                "  gepolab lab selection what_arrives --figures figures/\n"
                "  gepolab lab selection what_arrives cluster.window=1 --json",
    .run = run_selection};
