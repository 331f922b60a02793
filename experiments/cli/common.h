/* Code shared by several commands: a recipe on the command line, options for other programs' files,
 * messages about figures and unfinished studies, and tables of fates. */
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

/* --- commands of one recipe --- */

typedef struct one_recipe {
  args *words;  /* `RECIPE [key=value …]` and the options, parsed; borrowed */
  cfg_doc *doc; /* owned */
  recipe r;
} one_recipe;

/* Fills in doc, for commands that read other sections than those of a run. GL_EINPUT as
 * recipe_load(). */
gl_status one_recipe_load(one_recipe *o, gl_error *err);
/* Fills in doc and r. GL_EINPUT as recipe_load() and recipe_read(). */
gl_status one_recipe_read(one_recipe *o, gl_error *err);
/* Says of a stated width that the algorithm's clip does not use it, and of a stated warm-up that it
 * is longer than the run. *told: the notes that were printed, which are not repeated; at first 0.
 */
void note_unused(const recipe *r, unsigned *told);

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
/* Fills the request for those files, which borrows from both. GL_EINPUT for a value that an option
 * does not have. */
gl_status import_options_request(const import_options *o, const char *const *files, size_t n_files,
                                 gather_request *out, gl_error *err);
/* Returns 1 if any option other than --set (for studies only) was given. */
int import_options_given(const import_options *o);

/* Prints notes on standard error about data that reading left out or replaced. */
void tell_gathered(const gathered *g);
/* Prints one about token-level logs whose last line is incomplete, if there are such logs. */
void tell_incomplete(size_t n_incomplete);

/* --- figures --- */

/* A request for all figures into the folder, with the embedded scripts. Drawn files and figures
 * without data are reported on standard output; omissions of a figure on standard error. */
figure_request figures_request_to(const char *folder);

/* Values of the options for the form of figures (FIGURE_FORM_OPTIONS), such as --width and
 * --highlight; NULL if not given. */
typedef struct figure_form {
  const char *width, *highlight;
  const args *given; /* of the command; no figure is written onto its files. NULL: none */
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

/* Notes on stderr that a command of one clock leaves the recipe's sweep aside; NULL or null: it has
 * none. */
void note_left_sweep(const cfg_node *sweep);
/* Checks the options before anything is computed or printed. GL_EINPUT for a width that there is
 * not, and for an option of figures where none is drawn (folder NULL). */
gl_status figure_form_check(const figure_form *form, const char *folder, gl_error *err);
/* Sets q->width_cm and q->highlight. GL_EINPUT lists the valid widths. */
gl_status figures_request_form(figure_request *q, const figure_form *form, gl_error *err);

/* --- token-level logs --- */

/* Options of commands that read token-level logs. */
#define LOG_OPTIONS(WORD, REQUEST)                                                                 \
  {"format",                                                                                       \
   0,                                                                                              \
   ARGS_TEXT,                                                                                      \
   "NAME",                                                                                         \
   "read " WORD " as this format of `gepolab list formats`; without it by its content",            \
   &(REQUEST).format},                                                                             \
  {                                                                                                \
    "group-size", 0, ARGS_COUNT, "N",                                                              \
        "responses per prompt, which follow each other; without it by the prompts",                \
        &(REQUEST).group_size                                                                      \
  }

/* --- studies that are not finished --- */

/* Returns what a study lacks, malloc'd: "delay_sweep has 10 of 24 cells, 2 runs failed; shard 2/4
 * is missing". NULL if nothing is missing or memory runs out. */
char *unfinished_text(const char *study, const study_progress *p);
/* Warns on stderr of every unfinished study of the store and of superseded runs; path: name of the
 * file in messages. Neither the exit code nor stdout changes. */
gl_status print_unfinished(store *s, const char *path, gl_error *err);
/* The same for the file at path, if it is a study. A file that cannot be read is ignored; the
 * command itself reports it. */
void print_unfinished_file(const char *path);
/* Adds the runs of n study files to `into`, which is created if needed. */
gl_status merge_files(const char *into, const char *const *files, size_t n, gl_error *err);

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
  size_t every, threads; /* every 0: as in the recipe; threads 0: all cores */
  int json, quiet;
  /* Called with the learner after its last update; or NULL. */
  gl_status (*at_end)(void *self, const learner *l, gl_error *err);
  void *self; /* first argument of at_end */
} run_options;

/* Checks the recipe, trains, stores the run in the study file and prints the summary. */
gl_status run_recipe(const cfg_doc *doc, const recipe *r, const run_options *q, gl_error *err);

#endif
