/* What several commands share: a recipe on the command line, options for files of others, what is
 * said of figures and of unfinished studies, and tables of fates. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_COMMON_H
#define GEPOLAB_EXPERIMENTS_CLI_COMMON_H

#include "analysis/import/gather.h"
#include "analysis/plot/page.h"
#include "core/base/table.h"
#include "core/config/config.h"
#include "core/rl/learner.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/recipe/recipe.h"

#include <stddef.h>
#include <stdio.h>

/* --- commands of one recipe --- */

typedef struct one_recipe {
  args words; /* words.help: help was asked for and printed, and there is nothing to do */
  cfg_doc *doc;
  recipe r;
} one_recipe;

/* Parses `RECIPE [key=value …]` and the options. GL_EINPUT as args_parse(). Release with
 * one_recipe_fini() in any case. */
gl_status one_recipe_args(one_recipe *o, const command *c, const args_option *options,
                          size_t n_options, int argc, char **argv, gl_error *err);
/* Fills in doc, for commands that read other sections than those of a run. GL_EINPUT as
 * recipe_load(). */
gl_status one_recipe_load(one_recipe *o, gl_error *err);
/* Fills in doc and r. GL_EINPUT as recipe_load() and recipe_read(). */
gl_status one_recipe_read(one_recipe *o, gl_error *err);
void one_recipe_fini(one_recipe *o);

/* --- options for several files --- */

enum { IMPORT_OPTION_COUNT = 12 };

/* The values of the options; starts as {0}. */
typedef struct import_options {
  args_list labels, renames, read_as;
  const char *group_by, *metric, *columns, *step, *at, *set, *format;
  int lower_is_better, each_set;
} import_options;

/* Fills IMPORT_OPTION_COUNT lines of a command's options. */
void import_options_list(import_options *o, args_option *list);
/* The request for those files; it borrows from both. GL_EINPUT for words that are none of an
 * option's. */
gl_status import_options_request(const import_options *o, const char *const *files, size_t n_files,
                                 gather_request *out, gl_error *err);
/* Whether any option was given but --set, which is for studies alone. */
int import_options_given(const import_options *o);

/* What was left out or replaced while the files were read, as notes on standard error. */
void tell_gathered(const gathered *g);

/* --- figures --- */

/* A request for all figures into the folder, with the embedded scripts; drawn files, and figures
 * that lack their data, are told on standard output, what a figure leaves out on standard error. */
figure_request figures_request_to(const char *folder);

/* What a command line says about the form of figures: the texts of --width and --highlight, or NULL
 * where they are not given. The options themselves stand in FIGURE_FORM_OPTIONS. */
typedef struct figure_form {
  const char *width, *highlight;
  const args *words; /* whose files no figure may be written onto; NULL: none */
} figure_form;

#define FIGURE_WIDTH_OPTION(form)                                                                  \
  {                                                                                                \
    "width", 0, ARGS_TEXT, "WIDTH",                                                                \
        "of a figure: neurips (13.97 cm, the default), icml (8.25 cm), a4 (16 cm), or "            \
        "centimetres",                                                                             \
        &(form).width                                                                              \
  }
#define FIGURE_FORM_OPTIONS(form)                                                                  \
  FIGURE_WIDTH_OPTION(form), {                                                                     \
    "highlight", 0, ARGS_TEXT, "NAME,...", "these algorithms in colour, all others grey",          \
        &(form).highlight                                                                          \
  }

/* Sets q->width_cm and q->highlight. GL_EINPUT says which widths there are. */
gl_status figures_request_form(figure_request *q, const figure_form *form, gl_error *err);

/* --- studies that are not finished --- */

/* "delay_sweep has 10 of 24 cells, 2 runs failed; shard 2/4 is missing":
 * what of a study is missing, on the heap; NULL where nothing is, or memory is short. */
char *unfinished_text(const char *study, const study_progress *p);
/* Warns on stderr of every study of the store that is not finished, and tells of superseded runs;
 * path is what the messages call the file. The command goes on with what is there: no exit code and
 * nothing on stdout changes. */
gl_status print_unfinished(store *s, const char *path, gl_error *err);
/* The same of the file at path, if it is a study; what keeps it from being read is left to the
 * command to say. */
void print_unfinished_file(const char *path);

/* --- fates of responses --- */

/* Adds tables to a document: `fates` [{fate, responses, share, mean_tokens, mean_reward}] with
 * `drawn` as the first; `drawn_by_length` and `drawn_by_prompt` [{tokens_from or quarter, drawn,
 * trained, mean_reward, trained_reward}] for the classes that have responses. Nothing where n is
 * 0. */
void fates_report(table *document, const fate_record *fates, size_t n);

/* --- training once --- */

/* One training run of a recipe, for `gepolab run` and `gepolab llm rl`. */
typedef struct run_options {
  const char *file, *checkpoints, *save_to;
  size_t every, threads; /* 0: as the recipe says, all */
  int json, quiet;
  /* Called with the learner after its last update; or NULL. */
  gl_status (*at_end)(void *self, const learner *l, gl_error *err);
  void *self; /* of at_end */
} run_options;

/* Checks the recipe, trains as it says, keeps the run in the study file and prints the summary. */
gl_status run_recipe(const cfg_doc *doc, const recipe *r, const run_options *q, gl_error *err);

#endif
