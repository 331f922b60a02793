/* Code shared by several commands: a recipe on the command line, options for other programs' files,
 * messages about figures and unfinished studies, and tables of fates. */
#include "experiments/cli/common.h"

#include "core/base/display_text.h"
#include "core/base/file.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/tokens/token_log.h"
#include "sim/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- commands of one recipe --- */

gl_status one_recipe_load(one_recipe *o, gl_error *err) {
  args *a = o->words;
  for (size_t i = 0; i < a->n_overrides; ++i)
    if (strncmp(a->overrides[i], "algorithm.kl_coef=", 18) == 0)
      fputs(
          "gepolab: note: algorithm.kl_coef is of the divergence from the sampler; the kl_coef of "
          "verl and OpenRLHF, of that from a reference policy, is algorithm.ref_kl_coef (in the "
          "loss) or algorithm.reward_kl_coef (in rewards)\n",
          stderr);
  gl_status status = recipe_load(&o->doc, a->words[0], a->overrides, a->n_overrides, err);
  return status == GL_OK ? args_read_files(a, o->doc, err) : status;
}

/* Returns 1 the first time that it is called with this bit of the notes. */
static int is_new_note(unsigned *told, unsigned bit) {
  const int is_new = (*told & bit) == 0;
  *told |= bit;
  return is_new;
}

void note_unused(const recipe *r, unsigned *told) {
  static const unsigned NO_CLIP = 1, NO_LOWER_SIDE = 4,
                        WARMUP = 8; /* NO_CLIP << 1 for the second width */
  static const char *const widths[] = {"eps_low", "eps_high"};
  const policy_algorithm *a = &r->algorithm;
  for (size_t i = 0; i < 2 && r->algorithm_at != NULL; ++i) {
    const cfg_node *stated = cfg_find(r->algorithm_at, widths[i]);
    if (stated == NULL || cfg_is_null(stated)) continue;
    if (a->clip == CLIP_NONE && is_new_note(told, NO_CLIP << i))
      fprintf(
          stderr,
          "gepolab: note: algorithm.%s is the width of a clip and has no effect with clip: none; "
          "set algorithm.clip, or leave it out\n",
          widths[i]);
    else if (i == 0 && a->clip == CLIP_PPO && a->eps_low >= 1 && is_new_note(told, NO_LOWER_SIDE))
      fprintf(
          stderr,
          "gepolab: note: algorithm.eps_low is %g, and a ratio is never below 1 - %g: the lower "
          "side of the clip has no effect\n",
          a->eps_low, a->eps_low);
  }
  const cfg_node *warmup = r->optimizer != NULL ? cfg_find(r->optimizer, "warmup") : NULL;
  const double steps = (double)r->steps;
  double rise = 0;
  if (warmup != NULL && cfg_overridden(warmup) != NULL && cfg_number(warmup, &rise) &&
      rise > steps && is_new_note(told, WARMUP))
    fprintf(stderr,
            "gepolab: note: optimizer.warmup is %g updates and the run has %g: the rate never "
            "reaches optimizer.lr\n",
            rise, steps);
}

gl_status one_recipe_read(one_recipe *o, gl_error *err) {
  const gl_status status = one_recipe_load(o, err);
  if (status != GL_OK) return status;
  const gl_status read =
      recipe_say_command(o->doc, o->words->command->name, recipe_read(&o->r, o->doc, err), err);
  unsigned told = 0;
  if (read == GL_OK) note_unused(&o->r, &told);
  return read;
}

/* --- options for several files --- */

void import_options_list(import_options *o, args_option *list) {
  const args_option own[IMPORT_OPTION_COUNT] = {
      {"label", 'l', ARGS_EACH, "EXPORT=NAME", "the benchmark or study that a file is of",
       &o->labels},
      {"rename", 'r', ARGS_EACH, "REGEX=NAME", "what runs that match are called; $1: a group",
       &o->renames},
      {"group-by", 'g', ARGS_TEXT, "REGEX",
       "runs whose first group is equal are seeds of one method", &o->group_by},
      {"metric", 'M', ARGS_TEXT, "METRIC", "the quantity asked for, or what unnamed numbers are",
       &o->metric},
      {"read-as", 0, ARGS_EACH, "REGEX=NAME", "which of `gepolab list metrics` a metric is",
       &o->read_as},
      {"lower-is-better", 0, ARGS_FLAG, NULL, "of metrics that gepolab does not know",
       &o->lower_is_better},
      {"at", 0, ARGS_TEXT, "common", "all series end at the last step that all have", &o->at},
      {"set", 0, ARGS_TEXT, "SET", "of studies: the evaluation set whose score is shown, or mean",
       &o->set},
      {"each-set", 0, ARGS_FLAG, NULL, "of studies: all evaluation sets, as labels", &o->each_set},
      {"columns", 0, ARGS_TEXT, "runs|metrics", "what columns are", &o->columns},
      {"x", 'x', ARGS_TEXT, "COLUMN", "the column that holds the step", &o->step},
      {"log-format", 0, ARGS_TEXT, "NAME", "of the files (`gepolab list formats`)", &o->format}};
  memcpy(list, own, sizeof own);
}

gl_status import_options_request(const import_options *o, const char *const *files, size_t n_files,
                                 gather_request *out, gl_error *err) {
  static const char *const columns[] = {"runs", "metrics"}, *const ends[] = {"common"};
  static const shape_columns kinds[] = {COLUMNS_ARE_RUNS, COLUMNS_ARE_METRICS};
  size_t kind = 0, end = 0;
  gl_status status = GL_OK;
  if (o->columns) status = args_choose(&kind, "--columns", o->columns, columns, 2, err);
  if (status == GL_OK && o->at) status = args_choose(&end, "--at", o->at, ends, 1, err);
  if (status == GL_OK && o->set && o->each_set)
    status = gl_fail(err, GL_EINPUT, "--set shows one evaluation set and --each-set all; give one");
  *out = (gather_request){.files = files,
                          .n_files = n_files,
                          .labels = o->labels.item,
                          .n_labels = o->labels.n,
                          .renames = o->renames.item,
                          .n_renames = o->renames.n,
                          .read_as = o->read_as.item,
                          .n_read_as = o->read_as.n,
                          .group_by = o->group_by,
                          .metric = o->metric,
                          .lower_is_better = o->lower_is_better,
                          .at_common = o->at != NULL,
                          .set = o->set,
                          .each_set = o->each_set,
                          .shape = {.step = o->step,
                                    .columns = o->columns ? kinds[kind] : COLUMNS_BY_NAME,
                                    .format = o->format}};
  return status;
}

int import_options_given(const import_options *o) {
  return o->labels.n || o->renames.n || o->read_as.n || o->group_by || o->metric || o->columns ||
         o->step || o->format || o->at || o->lower_is_better || o->each_set;
}

void tell_gathered(const gathered *g) {
  for (size_t i = 0; i < g->n_notes; ++i)
    fprintf(stderr, "gepolab: note: %s\n", shown(g->notes[i]).text);
}

void tell_incomplete(size_t n_incomplete) {
  char text[TOKEN_INCOMPLETE_SIZE];
  token_log_incomplete(text, n_incomplete);
  if (text[0] != '\0') fprintf(stderr, "gepolab: note: %s\n", text);
}

/* --- figures --- */

/* Prints the files of a drawn figure, or why it was skipped. context: the folder (const char *). */
static void figures_printed(void *context, const char *file, const char *why) {
  const char *folder = context;
  const size_t length = strlen(folder);
  const char *between = length > 0 && folder[length - 1] == '/' ? "" : "/";
  if (why == NULL)
    printf("%s%s%s.pdf, .png, .svg, .tsv, .gp\n", shown(folder).text, between, shown(file).text);
  else
    printf("no %s: %s\n", shown(file).text, why);
}

static void figures_noted(void *context, const char *file, const char *left_out) {
  (void)context;
  fprintf(stderr, "gepolab: note: the figure %s does not show ", shown(file).text);
  shown_write(left_out, strlen(left_out), stderr);
  fputc('\n', stderr);
}

figure_request figures_request_to(const char *folder) {
  return (figure_request){.folder = folder,
                          .script = resources_text,
                          .report = figures_printed,
                          .noted = figures_noted,
                          .context = (void *)(uintptr_t)folder};
}

void note_left_sweep(const cfg_node *sweep) {
  if (sweep != NULL && !cfg_is_null(sweep))
    fputs("gepolab: note: this is the clock of the base recipe; its sweep is left aside\n", stderr);
}

gl_status figure_form_check(const figure_form *form, const char *folder, gl_error *err) {
  double width_cm = 0;
  if (folder == NULL && (form->width != NULL || form->highlight != NULL))
    return gl_fail(err, GL_EINPUT, "--%s is of figures, and needs --figures FOLDER",
                   form->width != NULL ? "width" : "highlight");
  return form->width != NULL ? figure_width(form->width, &width_cm, err) : GL_OK;
}

gl_status figures_request_form(figure_request *q, const figure_form *form, gl_error *err) {
  q->highlight = form->highlight;
  if (form->given != NULL) {
    q->reads = form->given->reads;
    q->n_reads = form->given->n_reads;
  }
  return form->width != NULL ? figure_width(form->width, &q->width_cm, err) : GL_OK;
}

/* --- studies that are not finished --- */

char *unfinished_text(const char *study, const study_progress *p) {
  char *text = NULL;
  size_t size = 0;
  if (p->missing == 0 && p->shards_missing == 0) return NULL;
  FILE *to = must_have(open_memstream(&text, &size), "a warning");
  fprintf(to, "%s has %zu of %zu cells", shown(study).text, p->planned - p->missing, p->planned);
  if (p->failed > 0) fprintf(to, ", %zu run%s failed", p->failed, p->failed == 1 ? "" : "s");
  if (p->shards_missing == 1)
    fprintf(to, "; shard %zu/%zu is missing", p->first_missing_shard, p->shards);
  if (p->shards_missing > 1)
    fprintf(to, "; %zu of %zu shards are missing, the first is %zu/%zu", p->shards_missing,
            p->shards, p->first_missing_shard, p->shards);
  must_succeed(fclose(to) == 0, "a warning");
  return text;
}

static void unfinished_print_study(const char *path, const char *study, const study_progress *p) {
  char *text = unfinished_text(study, p);
  if (text != NULL)
    fprintf(stderr, "gepolab: warning: %s: %s; `gepolab study status` says which\n",
            shown(path).text, text);
  free(text);
  if (p->superseded > 0)
    fprintf(
        stderr,
        "gepolab: note: %s: %zu run%s of %s %s superseded by newer ones of the same place (other "
        "learning rates chosen) and left out\n",
        shown(path).text, p->superseded, p->superseded == 1 ? "" : "s", shown(study).text,
        p->superseded == 1 ? "is" : "are");
}

gl_status print_unfinished(store *s, const char *path, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_studies(s, &names, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    study_progress p;
    status = store_progress(s, names[i], &p, err);
    if (status == GL_OK) unfinished_print_study(path, names[i], &p);
  }
  free(names);
  return status;
}

void print_unfinished_file(const char *path) {
  store *s = NULL;
  if (file_is_database(path) && store_open(&s, path, STORE_READ, NULL) == GL_OK)
    print_unfinished(s, path, NULL);
  store_close(s);
}

/* --- fates of responses --- */

typedef struct total {
  double responses, tokens, reward;
} total;

/* Selects the records that a total sums; NULL and 0 match all. */
typedef struct choice {
  const char *fate;
  int32_t quarter;
  int64_t tokens_from;
} choice;

static total fates_total_of(const fate_record *fates, size_t n, choice which) {
  total sum = {0};
  for (size_t i = 0; i < n; ++i) {
    const fate_record *r = &fates[i];
    if ((which.fate != NULL && strcmp(r->fate, which.fate) != 0) ||
        (which.quarter != 0 && r->quarter != which.quarter) ||
        (which.tokens_from != 0 && r->tokens_from != which.tokens_from))
      continue;
    sum.responses += (double)r->responses;
    sum.tokens += r->tokens;
    sum.reward += r->reward;
  }
  return sum;
}

static double fates_mean(double sum, total of) {
  return of.responses > 0 ? sum / of.responses : NAN;
}

static double fates_fraction(total part, total of) {
  return of.responses > 0 ? part.responses / of.responses : NAN;
}

/* Selects the k-th row of a table by quarter of prompts or by length. */
static choice class_at(size_t k, bool by_length, const char *fate) {
  return by_length ? (choice){.fate = fate, .tokens_from = (int64_t)1 << k}
                   : (choice){.fate = fate, .quarter = (int32_t)k + 1};
}

static size_t classes(bool by_length) {
  return by_length ? LENGTH_CLASSES : STORE_QUARTERS;
}

/* Adds a table by quarter of prompts or by length of responses: a row for each class that has
 * responses. */
static void fates_report_classes(table *document, const fate_record *fates, size_t n,
                                 bool by_length) {
  const table_column columns[] = {
      {by_length ? "tokens_from" : "quarter", TABLE_INTEGER,
       .head = by_length ? "tokens" : "quarter of prompts", .width = -18},
      {"drawn", TABLE_REAL, .head = "drawn", .format = "%.0f", .width = 10},
      {"trained", TABLE_REAL, .head = "trained", .width = 11},
      {"mean_reward", TABLE_REAL, .head = "reward", .format = "%.4f", .width = 10},
      {"trained_reward", TABLE_REAL, .head = "trained's", .format = "%.4f", .width = 10}};
  table *t = table_rows(table_field(document, by_length ? "drawn_by_length" : "drawn_by_prompt"),
                        columns, sizeof columns / sizeof *columns);
  table_plain(t, 4);
  for (size_t k = 0; k < classes(by_length); ++k) {
    const total drawn = fates_total_of(fates, n, class_at(k, by_length, NULL)),
                trained = fates_total_of(fates, n, class_at(k, by_length, "trained"));
    const int64_t from = INT64_C(1) << k;
    if (drawn.responses == 0) continue;
    table_row(t);
    table_integer(t, by_length ? from : (int64_t)k + 1);
    if (by_length)
      table_shown(t, "%" PRId64 " to %" PRId64, from, 2 * from - 1);
    else if (k == 0 || k + 1 == STORE_QUARTERS)
      table_shown(t, "%zu (%s)", k + 1, k == 0 ? "hardest" : "easiest");
    table_real(t, drawn.responses), table_real(t, trained.responses);
    table_shown(t, "%.2f %%", 100 * fates_fraction(trained, drawn));
    table_real(t, fates_mean(drawn.reward, drawn));
    table_real(t, fates_mean(trained.reward, trained));
  }
}

static void put_total(table *t, const char *name, total of, total drawn) {
  table_row(t);
  if (of.responses == 0) table_hide_row(t);
  table_text(t, name), table_real(t, of.responses), table_real(t, fates_fraction(of, drawn));
  table_shown(t, "%.2f %%", 100 * fates_fraction(of, drawn));
  table_real(t, fates_mean(of.tokens, of)), table_real(t, fates_mean(of.reward, of));
}

void fates_report(table *document, const fate_record *fates, size_t n) {
  static const table_column columns[] = {
      {"fate", TABLE_TEXT, .head = "fate", .width = -18},
      {"responses", TABLE_REAL, .head = "responses", .format = "%.0f", .width = 10},
      {"share", TABLE_REAL, .head = "share", .width = 11},
      {"mean_tokens", TABLE_REAL, .head = "tokens", .format = "%.1f", .width = 10},
      {"mean_reward", TABLE_REAL, .head = "reward", .format = "%.4f", .width = 10}};
  if (n == 0) return;
  const total drawn = fates_total_of(fates, n, (choice){0});
  table *t = table_rows(table_field(document, "fates"), columns, sizeof columns / sizeof *columns);
  table_title(t, "  what was sampled and what became of it");
  table_plain(t, 4);
  put_total(t, "drawn", drawn, drawn);
  for (int f = 0; f < FATES; ++f) {
    const char *name = unit_fate_name((unit_fate)f);
    put_total(t, name, fates_total_of(fates, n, (choice){.fate = name}), drawn);
  }
  fates_report_classes(document, fates, n, true);
  fates_report_classes(document, fates, n, false);
}
