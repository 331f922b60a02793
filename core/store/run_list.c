/* The list of a file's runs and the fields in which they differ. */
#include "core/base/array.h"
#include "core/store/export.h"
#include "core/store/internal.h"

#include <stdlib.h>
#include <string.h>

/* --- reading --- */

/* Texts owned by the list for each run, in this order; the first two are public. */
enum {
  TEXT_STUDY,
  TEXT_KEY,
  TEXT_ALGORITHM,
  TEXT_RECIPE,
  TEXT_SWEPT,
  TEXT_CHOSEN,
  TEXT_IN_EFFECT,
  TEXTS
};
static const char sql[] =
    "SELECT study, key, algorithm, recipe, swept, chosen, in_effect, id, ordinal, seed, lr, meaning"
    " FROM runs r WHERE r.key NOT IN (SELECT key FROM superseded) ORDER BY study, ordinal, key";

/* Reserves space for one more run. */
static bool run_list_make_room(run_list *l, axes_run **compared, size_t room[3]) {
  return ARRAY_RESERVE(l->run, room[0], l->n + 1) && ARRAY_RESERVE(*compared, room[1], l->n + 1) &&
         ARRAY_RESERVE(l->texts, room[2], (l->n + 1) * TEXTS);
}

static gl_status add_listed_run(run_list *l, axes_run *compared, const query *q) {
  char **text = l->texts + l->n_texts;
  for (int i = 0; i < TEXTS; ++i, ++l->n_texts) {
    const char *from = row_text(q, i);
    text[i] = from != NULL ? strdup(from) : NULL;
    if (from != NULL && text[i] == NULL) {
      ++l->n_texts;
      return gl_fail_memory(q->err, "the runs of a study");
    }
  }
  if (text[TEXT_STUDY] == NULL || text[TEXT_KEY] == NULL || text[TEXT_ALGORITHM] == NULL ||
      text[TEXT_RECIPE] == NULL)
    return gl_fail(q->err, GL_EIO, "a run of %s has no name, key or recipe; is the file damaged?",
                   q->s->path);
  const uint64_t seed = (uint64_t)row_whole(q, TEXTS + 2);
  l->run[l->n] = (listed_run){.id = row_whole(q, TEXTS),
                              .ordinal = row_whole(q, TEXTS + 1),
                              .study = text[TEXT_STUDY],
                              .key = text[TEXT_KEY],
                              .seed = seed,
                              .lr = row_real(q, TEXTS + 3)};
  compared[l->n++] = (axes_run){.study = text[TEXT_STUDY],
                                .algorithm = text[TEXT_ALGORITHM],
                                .recipe = text[TEXT_RECIPE],
                                .swept = text[TEXT_SWEPT],
                                .chosen = text[TEXT_CHOSEN],
                                .in_effect = text[TEXT_IN_EFFECT],
                                .meaning = row_whole(q, TEXTS + 4),
                                .seed = seed};
  return GL_OK;
}

static gl_status run_list_read_runs(run_list *l, axes_run **compared, store *s, gl_error *err) {
  size_t room[3] = {0};
  query q;
  query_begin(&q, s, sql, err);
  while (query_next(&q))
    q.status = run_list_make_room(l, compared, room) ? add_listed_run(l, *compared, &q)
                                                     : gl_fail_memory(err, "the runs of a study");
  return query_end(&q);
}

/* --- finding a run by its number --- */

static int compare_numbers(const void *a, const void *b) {
  const int64_t x = ((const run_number *)a)->id, y = ((const run_number *)b)->id;
  return (x > y) - (x < y);
}

static gl_status sort_by_id(run_list *l, gl_error *err) {
  l->by_id = calloc(l->n + 1, sizeof *l->by_id);
  if (l->by_id == NULL) return gl_fail_memory(err, "the runs of a study");
  for (size_t i = 0; i < l->n; ++i) l->by_id[i] = (run_number){l->run[i].id, i};
  if (l->n > 0) qsort(l->by_id, l->n, sizeof *l->by_id, compare_numbers);
  return GL_OK;
}

size_t run_list_find(const run_list *l, int64_t id) {
  const run_number key = {id, 0};
  const run_number *found =
      l->n > 0 ? bsearch(&key, l->by_id, l->n, sizeof key, compare_numbers) : NULL;
  return found != NULL ? found->run : l->n;
}

gl_status run_list_init(run_list *l, store *s, gl_error *err) {
  axes_run *compared = NULL;
  *l = (run_list){0};
  gl_status status = run_list_read_runs(l, &compared, s, err);
  if (status == GL_OK) status = axes_find(&l->axes, compared, l->n, err);
  if (status == GL_OK) status = sort_by_id(l, err);
  free(compared);
  return status;
}

void run_list_fini(run_list *l) {
  axes_fini(&l->axes);
  for (size_t i = 0; i < l->n_texts; ++i) free(l->texts[i]);
  free(l->texts), free(l->run), free(l->by_id);
  *l = (run_list){0};
}

/* --- columns --- */

static const table_column fixed[RUN_LIST_COLUMNS] = {
    TABLE_FIELD("study", TABLE_TEXT, "", "the recipe's name"),
    TABLE_FIELD("ordinal", TABLE_WHOLE, "", "position in the grid of the study, from 0"),
    TABLE_FIELD("key", TABLE_TEXT, "",
                "32 hex digits that name the run: the hash of its complete recipe"),
    TABLE_FIELD("algorithm", TABLE_TEXT, "",
                "the shown name; if one name means several algorithms of a study, followed by the "
                "fields that "
                "differ"),
    TABLE_FIELD("seed", TABLE_WHOLE, "", "the seed of all random draws, a whole number below 2^63"),
    TABLE_FIELD("optimizer.lr", TABLE_REAL, "", "learning rate of the recipe")};

const table_column *run_list_fixed(void) {
  return fixed;
}

static const axis_value *run_list_value_of(const run_list *l, size_t run, size_t a) {
  return &l->axes.value[run * l->axes.n + a];
}

static int is_number(const char *text) {
  char *end = NULL;
  strtod(text, &end);
  return end != text && *end == '\0';
}

static int is_flag(const char *text) {
  return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

/* The common type of all values of axis a: number, truth value, otherwise text. */
static table_type run_list_axis_type(const run_list *l, size_t a) {
  const field_kind kind = l->axes.axis[a].kind;
  int numbers = kind == VALUE_NUMBER || kind == VALUE_DIST || kind == VALUE_LIST;
  int flags = kind == VALUE_FLAG;
  for (size_t i = 0; i < l->n; ++i) {
    const char *text = run_list_value_of(l, i, a)->text;
    if (text == NULL) continue;
    numbers = numbers && is_number(text);
    flags = flags && is_flag(text);
  }
  return numbers ? TABLE_REAL : flags ? TABLE_FLAG : TABLE_TEXT;
}

/* Whether axis a needs a column; the learning rate always has its own. */
static int has_column(const run_list *l, size_t a) {
  return strcmp(l->axes.axis[a].path, "optimizer.lr") != 0;
}

size_t run_list_axes(const run_list *l) {
  size_t n = 0;
  for (size_t a = 0; a < l->axes.n; ++a) n += (size_t)has_column(l, a);
  return n;
}

table_column run_list_axis(const run_list *l, size_t i) {
  size_t a = 0;
  while (!has_column(l, a) || i-- > 0) ++a;
  const axis *of = &l->axes.axis[a];
  return (table_column){
      .name = of->path, .type = run_list_axis_type(l, a), .unit = of->unit, .about = of->label};
}

void run_list_put_axes(const run_list *l, size_t run, records_writer *w) {
  for (size_t a = 0; a < l->axes.n; ++a) {
    if (!has_column(l, a)) continue;
    const char *text = run_list_value_of(l, run, a)->text;
    if (text == NULL)
      records_missing(w);
    else if (w->columns[w->at].type == TABLE_REAL)
      records_number(w, strtod(text, NULL));
    else if (w->columns[w->at].type == TABLE_FLAG)
      records_flag(w, text[0] == 't');
    else
      records_text(w, text);
  }
}

void run_list_put(const run_list *l, size_t run, records_writer *w) {
  const listed_run *r = &l->run[run];
  records_text(w, r->study);
  records_whole(w, r->ordinal);
  records_text(w, r->key);
  records_text(w, l->axes.algorithm[run]);
  records_whole(w, (int64_t)r->seed);
  records_number(w, r->lr);
  run_list_put_axes(l, run, w);
}
