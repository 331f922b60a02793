/* gepolab sim: the clock of a recipe, without any learning. */
#include "analysis/figures.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/base/resources.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule_print.h"

#include <stdio.h>
#include <string.h>

static gl_status print_json(const schedule *s, const cluster_spec *cluster, gl_error *err) {
  cJSON *document = NULL;
  gl_status status = schedule_to_json(s, cluster, &document, err);
  return status == GL_OK ? report_json(document, err) : status;
}

/* The staleness distribution as a figure, if a folder is given. */
static gl_status draw(const schedule *s, const figure_request *q, gl_error *err) {
  const staleness_histogram h = {.heading = "", .count = s->staleness, .n = s->n_staleness};
  return q->folder != NULL ? figure_staleness(&h, 1, q, err) : GL_OK;
}

/* A coupled clock asks the learner how long responses are, and there is none here. */
static gl_status stand_in(const recipe *r, const cluster_spec *cluster, gl_error *err) {
  if (!cluster_is_coupled(cluster)) return GL_OK;
  if (!cluster_has_lengths(cluster))
    return cfg_fail(cfg_find(r->cluster, "coupled"), err,
                    "the clock is coupled to the learner, and `gepolab sim` has none; give the "
                    "cluster a law of `lengths` to stand in for real responses, or use `gepolab "
                    "run`");
  fputs("gepolab: note: the cluster is coupled; response lengths are drawn from the law of "
        "`lengths` here, not from the learner\n",
        stderr);
  return GL_OK;
}

static gl_status simulate(const recipe *r, int json, int schedule_csv, const figure_request *q,
                          gl_error *err) {
  cluster_spec *cluster = NULL;
  schedule s = {0};
  gl_status status = cluster_parse(&cluster, r->cluster, r->groups * r->group_size, err);
  if (status == GL_OK) status = stand_in(r, cluster, err);
  if (status == GL_OK) status = schedule_build(&s, cluster, r->seed, r->steps, err);
  if (status == GL_OK && schedule_csv)
    schedule_print_csv(&s, stdout);
  else if (status == GL_OK && json)
    status = print_json(&s, cluster, err);
  else if (status == GL_OK)
    schedule_print_table(&s, cluster, stdout);
  if (status == GL_OK) status = draw(&s, q, err);
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

static gl_status run_sim(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *format = NULL;
  figure_request q = {.script = resources_text};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the summary as JSON", &json},
      {"schedule", 0, ARGS_TEXT, "csv", "every trained batch with its times, as CSV", &format},
      {"figures", 'f', ARGS_TEXT, "FOLDER", "draw the staleness distribution there", &q.folder},
      {"plot", 'p', ARGS_RENAMED, "--figures", NULL, NULL},
      {"measured", 'm', ARGS_TEXT, "EXPORT.csv", "beside it that of a W&B export", &q.measured}};
  args a;
  cfg_doc *doc = NULL;
  recipe r;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (format != NULL && strcmp(format, "csv") != 0)
      status = gl_fail(err, GL_EINPUT, "--schedule knows the format csv only, not '%s'", format);
    if (status == GL_OK && format != NULL && json)
      status = gl_fail(err, GL_EINPUT, "--schedule csv and --json exclude each other");
    if (status == GL_OK && q.measured != NULL && q.folder == NULL)
      status = gl_fail(err, GL_EINPUT, "--measured needs --plot FOLDER");
    if (status == GL_OK) status = recipe_load(&doc, a.words[0], a.overrides, a.n_overrides, err);
    if (status == GL_OK) status = recipe_read(&r, doc, err);
    if (status == GL_OK && r.sweep != NULL)
      fputs("gepolab: note: this is the clock of the base recipe; its sweep is left aside\n",
            stderr);
    if (status == GL_OK) status = simulate(&r, json, format != NULL, &q, err);
  }
  cfg_free(doc);
  args_fini(&a);
  return status;
}

const command command_sim = {
    .name = "sim",
    .arguments = "RECIPE [key=value …]",
    .summary = "timing only: staleness, throughput, utilisation, bytes; no learning",
    .about = "Runs the clock of the recipe's cluster until its number of learner updates is done.\n"
             "RECIPE is a file or the name of an embedded recipe; key=value overrides any field.",
    .examples = "  gepolab sim heterorl_trace --json\n"
                "  gepolab sim heterorl_trace cluster.window=4\n"
                "  gepolab sim heterorl_trace --figures figures/ --measured staleness.csv\n"
                "  gepolab sim quickstart --schedule csv > schedule.csv",
    .run = run_sim};
