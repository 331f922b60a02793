/* Writes the whole page: head, contents, and the sections of each study. */
#include "experiments/report/report.h"

#include "core/base/array.h"
#include "experiments/base/memory.h"
#include "experiments/report/study_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct study_names {
  char **name; /* [n] owned, and so is each name */
  size_t n;
} study_names;

typedef struct section {
  const char *id, *heading;
  int (*applies)(const report_study *t);
  section_writer *write;
} section;

static const section sections[] = {
    {"summary", "Summary", has_grid, section_summary},
    {"figures", "Figures", has_figures, section_figures},
    {"scores", "Scores", has_runs, section_scores},
    {"sets", "Evaluation sets", has_sets, section_sets},
    {"rates", "Learning rates", has_rates, section_rates},
    {"clock", "Clock", has_runs, section_clock},
    {"relations", "Delay, divergence and variance", has_relations, section_relations},
    {"problems", "Diverged, failed, missing", has_problems, section_problems},
    {"laboratory", "Exact laboratory", has_laboratory, section_laboratory},
    {"recipe", "Recipe", has_recipe, section_recipe},
    {"provenance", "Provenance", has_runs, section_provenance},
    {"rerun", "Run it again", has_recipe, section_rerun}};
enum { SECTION_COUNT = sizeof sections / sizeof *sections };

/* --- a study --- */

static void write_contents(html *h, const report_study *t) {
  html_markup(h, "<nav aria-label=\"Contents of ");
  html_text(h, t->name);
  html_markup(h, "\"><ul class=\"contents\">\n");
  for (size_t i = 0; i < SECTION_COUNT; ++i) {
    if (!sections[i].applies(t)) continue;
    html_markup(h, "<li><a href=\"#");
    html_textf(h, "%s-%s", t->id, sections[i].id);
    html_markup(h, "\">"), html_text(h, sections[i].heading), html_markup(h, "</a></li>\n");
  }
  html_markup(h, "</ul></nav>\n");
}

static gl_status write_sections(html *h, const report_study *t, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < SECTION_COUNT && status == GL_OK; ++i) {
    char id[64];
    if (!sections[i].applies(t)) continue;
    snprintf(id, sizeof id, "%s-%s", t->id, sections[i].id);
    html_markup(h, "<section aria-labelledby=\""), html_text(h, id), html_markup(h, "\">\n");
    html_heading(h, id, "%s", sections[i].heading);
    status = sections[i].write(h, t, err);
    html_markup(h, "</section>\n");
  }
  return status;
}

/* Writes the sections of a study. alone: the page has no other study, so the page's heading serves
 * as the study's. */
static gl_status write_study(html *h, const report_request *q, store *from, const char *name,
                             size_t number, int alone, gl_error *err) {
  report_study t;
  gl_status status = study_init(&t, q, from, name, number, err);
  if (status == GL_OK) {
    if (!alone) {
      html_markup(h, "<article aria-labelledby=\""), html_text(h, t.id), html_markup(h, "\">\n");
      h->level = 2;
      html_heading(h, t.id, "%s", name);
    }
    write_contents(h, &t);
    h->level = alone ? 2 : 3;
    status = write_sections(h, &t, err);
    if (!alone) html_markup(h, "</article>\n");
  }
  study_fini(&t);
  return status;
}

/* --- the page --- */

static void write_study_list(html *h, char *const *names, size_t n) {
  html_markup(h, "<nav aria-label=\"Studies\"><ul class=\"contents\">\n");
  for (size_t i = 0; i < n; ++i) {
    html_markup(h, "<li><a href=\"#");
    html_textf(h, "s%zu", i + 1);
    html_markup(h, "\">"), html_text(h, names[i]), html_markup(h, "</a></li>\n");
  }
  html_markup(h, "</ul></nav>\n");
}

static gl_status write_report_page(html *h, const report_request *q, store *from,
                                   char *const *names, size_t n, gl_error *err) {
  char title[64];
  snprintf(title, sizeof title, "%zu studies", n);
  gl_status status = html_page_begin(h, q->text_of("experiments/report/report.css"),
                                     "gepolab report", n == 1 ? names[0] : title, err);
  if (status == GL_OK && n > 1) write_study_list(h, names, n);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = write_study(h, q, from, names[i], i + 1, n == 1, err);
  if (!q->no_figures) html_script(h, q->text_of(REPORT_CHART));
  html_script(h, q->text_of("experiments/report/report.js"));
  html_page_end(h, "from the study alone: the same study gives the same page.");
  return status;
}

/* --- studies --- */

static gl_status take_name(void *context, sqlite3_stmt *record, gl_error *err) {
  study_names *to = context;
  (void)err;
  *MUST_ADD(to->name, to->n, "the names of studies") =
      must_copy(query_text(record, 0), "the names of studies");
  return GL_OK;
}

/* Lists the studies that have runs, a plan, or measurements of the laboratory. */
static gl_status find_studies(study_names *to, store *from, gl_error *err) {
  static const char *const tables[] = {"runs", "plan", "bias", NULL};
  gl_status status = query_each(from, tables,
                                "SELECT study FROM runs UNION SELECT study FROM plan UNION SELECT"
                                " study FROM bias ORDER BY 1",
                                NULL, take_name, to, err);
  if (status == GL_OK && to->n == 0)
    status = gl_fail(err, GL_EINPUT, "the file holds no study yet; sweep a recipe into it first");
  return status;
}

/* Selects the requested studies: index of the first, and number. */
static gl_status choose_sections(const study_names *all, const char *only, size_t *first, size_t *n,
                                 gl_error *err) {
  char list[512];
  *first = 0, *n = all->n;
  if (only == NULL) return GL_OK;
  for (size_t i = 0; i < all->n; ++i) {
    if (strcmp(all->name[i], only) != 0) continue;
    *first = i, *n = 1;
    return GL_OK;
  }
  return gl_fail(err, GL_EINPUT, "the file has no study '%s'; it has %s", only,
                 cfg_listed((const char *const *)all->name, all->n, list, sizeof list));
}

gl_status report_write(FILE *to, store *from, const report_request *q, gl_error *err) {
  study_names all = {NULL, 0};
  size_t first = 0, n = 0;
  html h = {.to = to, .level = 1};
  gl_status status = find_studies(&all, from, err);
  if (status == GL_OK) status = choose_sections(&all, q->only, &first, &n, err);
  if (status == GL_OK) status = write_report_page(&h, q, from, all.name + first, n, err);
  for (size_t i = 0; i < all.n; ++i) free(all.name[i]);
  free(all.name);
  return status;
}
