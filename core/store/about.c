/* Reads what a study file says about itself: its progress, provenance and cost, and its list of
 * runs.
 */
#include "core/base/array.h"
#include "core/store/export.h"
#include "core/store/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *text_or_empty(const query *q, int column) {
  const char *text = query_get_text(q, column);
  return text != NULL ? text : "";
}

static int64_t bytes_at(const query *q, int column) {
  return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? -1 : query_get_integer(q, column);
}

/* --- progress --- */

/* Runs of the study ?1 that are not superseded. */
#define STANDING " FROM runs r WHERE r.study = ?1 AND r.key NOT IN (SELECT key FROM superseded)"
#define FINISHED " r.status IN ('done', 'diverged')"
/* Cells of the study's plan without a finished run. */
#define MISSING                                                                                    \
  " FROM plan p WHERE p.study = ?1 AND p.tuning = 0 AND p.place NOT IN (SELECT r.place" STANDING   \
  " AND" FINISHED ")"
/* Shards that were swept into this file, among sweeps with the largest number of shards. */
#define KNOWN_SHARDS                                                                               \
  " FROM sweeps WHERE study = ?1 AND shards = (SELECT max(shards) FROM sweeps WHERE study = ?1)"

gl_status store_progress(store *s, const char *study, study_progress *out, gl_error *err) {
  size_t whole = 0, known = 0;
  *out = (study_progress){0};
  const struct {
    size_t *n;
    const char *sql;
  } counts[] = {
      {&out->planned, "SELECT count(*) FROM plan WHERE study = ?1 AND tuning = 0"},
      {&out->tuning_planned, "SELECT count(*) FROM plan WHERE study = ?1 AND tuning = 1"},
      {&out->tuning_known,
       "SELECT count(*) FROM plan p JOIN tuning_scores t ON t.key = p.place WHERE p.study = ?1 AND"
       " p.tuning = 1"},
      {&out->done, "SELECT count(*)" STANDING " AND r.status = 'done'"},
      {&out->diverged, "SELECT count(*)" STANDING " AND r.status = 'diverged'"},
      {&out->failed, "SELECT count(*)" STANDING " AND r.status = 'failed'"},
      {&out->superseded,
       "SELECT count(*) FROM superseded x JOIN runs r ON r.key = x.key WHERE r.study = ?1"},
      {&out->missing, "SELECT count(*)" MISSING},
      {&out->shards, "SELECT coalesce(max(shards), 1) FROM sweeps WHERE study = ?1"},
      {&whole, "SELECT count(*) FROM sweeps WHERE study = ?1 AND shards = 1"},
      {&known, "SELECT count(DISTINCT shard)" KNOWN_SHARDS},
      {&out->first_missing_shard,
       "WITH known(i) AS (SELECT DISTINCT shard" KNOWN_SHARDS ") SELECT CASE WHEN 0 NOT IN (SELECT"
       " i FROM known) THEN 0 ELSE (SELECT min(i) + 1 FROM known WHERE i + 1 NOT IN (SELECT i FROM"
       " known)) END"},
  };
  gl_status status = GL_OK;
  for (size_t i = 0; i < sizeof counts / sizeof *counts && status == GL_OK; ++i) {
    int64_t n = 0;
    status = store_query_integer(s, &n, counts[i].sql, study, err);
    *counts[i].n = (size_t)n;
  }
  /* No shard is missing if one sweep into the file was not sharded (`whole`). */
  if (out->shards == 1) out->shards = 0;
  if (out->shards > 0 && whole == 0 && known < out->shards)
    out->shards_missing = out->shards - known;
  if (out->shards_missing == 0) out->first_missing_shard = 0;
  return status;
}

gl_status store_missing(store *s, const char *study,
                        int (*each)(void *self, const planned_cell *cell), void *self,
                        gl_error *err) {
  char *columns = store_record_columns("plan", "p");
  query q;
  if (columns == NULL) return gl_fail_memory(err, "a query");
  query_beginf(&q, s, err, "SELECT %s" MISSING " ORDER BY p.ordinal", columns);
  free(columns);
  query_bind_text(&q, 1, study);
  for (planned_cell cell; query_next(&q);) {
    store_read_record("plan", &q, 0, &cell);
    if (!each(self, &cell)) break;
  }
  return query_end(&q);
}

gl_status store_choices(store *s, const char *study,
                        int (*each)(void *self, const char *algorithm, const char *chosen),
                        void *self, gl_error *err) {
  query q;
  query_begin(&q, s,
              "SELECT DISTINCT algorithm, chosen" STANDING
              " AND chosen IS NOT NULL ORDER BY algorithm, chosen",
              err);
  query_bind_text(&q, 1, study);
  while (query_next(&q) && each(self, query_get_text(&q, 0), query_get_text(&q, 1))) continue;
  return query_end(&q);
}

gl_status store_recipes(store *s, const char *study, int (*each)(void *self, const char *recipe),
                        void *self, gl_error *err) {
  query q;
  query_begin(&q, s, "SELECT DISTINCT recipe FROM sweeps WHERE study = ?1 ORDER BY recipe_hash",
              err);
  query_bind_text(&q, 1, study);
  while (query_next(&q) && each(self, query_get_text(&q, 0))) continue;
  return query_end(&q);
}

gl_status store_studies(store *s, char ***names, size_t *n, gl_error *err) {
  query q;
  size_t size = 0, used = 0;
  *names = NULL;
  *n = 0;
  query_begin(&q, s,
              "WITH all_studies AS (SELECT study FROM runs UNION SELECT study FROM plan) SELECT"
              " study, (SELECT count(*) FROM all_studies), (SELECT sum(length(CAST(study AS BLOB))"
              " + 1) FROM all_studies) FROM all_studies ORDER BY study",
              err);
  while (query_next(&q)) {
    const size_t many = (size_t)query_get_integer(&q, 1);
    const char *name = query_get_text(&q, 0);
    const size_t length = (size_t)sqlite3_column_bytes(q.stmt, 0);
    if (*names == NULL) {
      size = (size_t)query_get_integer(&q, 2);
      *names = malloc(many * sizeof **names + size);
    }
    if (*names == NULL) {
      q.status = gl_fail_memory(err, "the names of studies");
    } else if (name == NULL || *n == many || used + length + 1 > size) {
      q.status = gl_fail(err, GL_EIO, "a study of %s has no name; is the file damaged?", s->path);
    } else {
      char *to = (char *)(*names + many) + used;
      memcpy(to, name, length);
      to[length] = '\0';
      used += length + 1;
      (*names)[(*n)++] = to;
    }
  }
  if (query_end(&q) == GL_OK) return GL_OK;
  free(*names);
  *names = NULL;
  *n = 0;
  return q.status;
}

/* --- provenance --- */

gl_status store_origins(store *s, int (*each)(void *self, const store_origin *origin), void *self,
                        gl_error *err) {
  char *columns = store_record_columns("provenance", "p");
  query q;
  if (columns == NULL) return gl_fail_memory(err, "a query");
  query_beginf(
      &q, s, err,
      "WITH made(provenance, finished, code_version, run) AS (SELECT provenance, finished,"
      " code_version, 1 FROM runs UNION ALL SELECT provenance, finished, '', 0 FROM laboratory"
      " WHERE provenance IS NOT NULL) SELECT %s, sum(r.run), min(r.finished),"
      " max(r.finished), p.hash IS NOT NULL, r.code_version, sum(1 - r.run) FROM made r LEFT JOIN"
      " provenance p ON p.hash = r.provenance GROUP BY p.hash, CASE WHEN p.hash IS NULL THEN"
      " r.code_version END ORDER BY sum(r.run) DESC, min(r.finished), p.hash, r.code_version",
      columns);
  free(columns);
  while (query_next(&q)) {
    store_origin o = {0};
    const int at = store_read_record("provenance", &q, 0, &o.how);
    o.runs = (size_t)query_get_integer(&q, at);
    o.first = query_get_text(&q, at + 1);
    o.last = query_get_text(&q, at + 2);
    o.known = query_get_integer(&q, at + 3) != 0;
    if (!o.known) o.how.version = text_or_empty(&q, at + 4);
    o.measured = (size_t)query_get_integer(&q, at + 5);
    if (!each(self, &o)) break;
  }
  return query_end(&q);
}

/* --- costs --- */

/* The median of n values is the mean of those at ranks (n + 1) / 2 and (n + 2) / 2, which are equal
 * for odd n. Seeds are unsigned 64-bit numbers, so those that SQLite stores as negative are the
 * largest. */
static const char costs[] =
    "WITH o AS (SELECT study, algorithm, ordinal, seed, wall_s, peak_bytes, row_number() OVER w AS"
    " i, count(wall_s) OVER (PARTITION BY study, algorithm) AS n FROM runs WINDOW w AS (PARTITION "
    "BY"
    " study, algorithm ORDER BY wall_s IS NULL, wall_s)) SELECT study, algorithm, count(*),"
    " sum(wall_s), avg(CASE WHEN i IN ((n + 1) / 2, (n + 2) / 2) THEN wall_s END), max(wall_s),"
    " max(peak_bytes), count(DISTINCT seed), coalesce(min(CASE WHEN seed >= 0 THEN seed END),"
    " min(seed)), coalesce(max(CASE WHEN seed < 0 THEN seed END), max(seed)) FROM o GROUP BY study,"
    " algorithm ORDER BY study, min(ordinal), algorithm";

gl_status store_costs(store *s, int (*each)(void *self, const store_cost *cost), void *self,
                      gl_error *err) {
  query q;
  query_begin(&q, s, costs, err);
  while (query_next(&q)) {
    const store_cost c = {.study = text_or_empty(&q, 0),
                          .algorithm = text_or_empty(&q, 1),
                          .runs = (size_t)query_get_integer(&q, 2),
                          .wall_s = query_get_real(&q, 3),
                          .median_s = query_get_real(&q, 4),
                          .largest_s = query_get_real(&q, 5),
                          .peak_bytes = bytes_at(&q, 6),
                          .seeds = (size_t)query_get_integer(&q, 7),
                          .least_seed = (uint64_t)query_get_integer(&q, 8),
                          .largest_seed = (uint64_t)query_get_integer(&q, 9)};
    if (!each(self, &c)) break;
  }
  return query_end(&q);
}

/* --- one run --- */

enum { NAMED = 4 }; /* the most keys that a message lists */

/* Sets *id to the only run whose key begins with `prefix`. */
static gl_status find_by_prefix(store *s, const char *prefix, int64_t *id, gl_error *err) {
  query q;
  char keys[256] = "";
  size_t n = 0;
  query_begin(&q, s, "SELECT id, key FROM runs WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
              err);
  query_bind_text(&q, 1, prefix);
  while (query_next(&q)) {
    const size_t used = strlen(keys);
    *id = query_get_integer(&q, 0);
    if (n++ < NAMED)
      snprintf(keys + used, sizeof keys - used, "%s%.40s", n > 1 ? ", " : "", text_or_empty(&q, 1));
  }
  gl_status status = query_end(&q);
  if (status != GL_OK || n == 1) return status;
  if (n == 0)
    return gl_fail(
        err, GL_EINPUT,
        "no run of %s has a key that begins with '%s'; `gepolab study export --table runs` "
        "lists the keys",
        s->path, prefix);
  return gl_fail(err, GL_EINPUT,
                 "%zu runs of %s have keys that begin with '%s': %s%s; give more "
                 "of the one you mean",
                 n, s->path, prefix, keys, n > NAMED ? ", …" : "");
}

gl_status store_find_run(store *s, const char *prefix, void (*found)(void *self, const store_run *),
                         void *self, gl_error *err) {
  int64_t id = 0;
  gl_status status = find_by_prefix(s, prefix, &id, err);
  if (status != GL_OK) return status;
  char *run = store_record_columns("runs", "r"), *how = store_record_columns("provenance", "p");
  query q = {.status = GL_ENOMEM};
  if (run != NULL && how != NULL)
    query_beginf(
        &q, s, err,
        "SELECT %s, %s, x.by, (SELECT count(*) FROM steps t WHERE t.run = r.id),"
        " (SELECT count(*) FROM evals t WHERE t.run = r.id), (SELECT eval_score FROM evals t WHERE"
        " t.run = r.id ORDER BY step LIMIT 1), (SELECT max(eval_score) FROM evals t WHERE t.run ="
        " r.id), (SELECT eval_score FROM evals t WHERE t.run = r.id ORDER BY step DESC LIMIT 1)"
        " FROM runs r LEFT JOIN superseded x ON x.key = r.key LEFT JOIN provenance p ON p.hash ="
        " r.provenance WHERE r.id = %lld",
        run, how, (long long)id);
  else
    gl_fail_memory(err, "a query");
  free(run), free(how);
  if (query_next(&q)) {
    store_run of;
    const int at =
        store_read_record("provenance", &q, store_read_record("runs", &q, 0, &of), &of.how);
    of.superseded_by = query_get_text(&q, at);
    of.n_steps = (size_t)query_get_integer(&q, at + 1);
    of.n_evals = (size_t)query_get_integer(&q, at + 2);
    of.eval_first = query_get_real(&q, at + 3);
    of.eval_best = query_get_real(&q, at + 4);
    of.eval_last = query_get_real(&q, at + 5);
    found(self, &of);
  } else if (q.status == GL_OK) {
    q.status = gl_fail(err, GL_EIO, "%s is being changed; ask again when that is done", s->path);
  }
  return query_end(&q);
}

/* --- lists of runs --- */

/* The list of a file's runs and the fields in which they differ. */

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
/* The columns are those of the enum, in its order, and then id, ordinal, seed, lr, meaning. */
static const char sql_of_runs[] =
    "SELECT study, key, algorithm, recipe, swept, chosen, in_effect, id, ordinal, seed, lr, meaning"
    " FROM runs r WHERE r.key NOT IN (SELECT key FROM superseded) ORDER BY study, ordinal, key";

/* Reserves space for one more run. compared [l->n]: the runs as axes_find() compares them. */
static bool run_list_make_room(run_list *l, axes_run **compared, size_t room[3]) {
  return ARRAY_RESERVE(l->run, room[0], l->n + 1) && ARRAY_RESERVE(*compared, room[1], l->n + 1) &&
         ARRAY_RESERVE(l->texts, room[2], (l->n + 1) * TEXTS);
}

static gl_status add_listed_run(run_list *l, axes_run *compared, const query *q) {
  char **text = l->texts + l->n_texts;
  for (int i = 0; i < TEXTS; ++i, ++l->n_texts) {
    const char *from = query_get_text(q, i);
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
  const uint64_t seed = (uint64_t)query_get_integer(q, TEXTS + 2);
  l->run[l->n] = (listed_run){.id = query_get_integer(q, TEXTS),
                              .ordinal = query_get_integer(q, TEXTS + 1),
                              .study = text[TEXT_STUDY],
                              .key = text[TEXT_KEY],
                              .seed = seed,
                              .lr = query_get_real(q, TEXTS + 3)};
  compared[l->n++] = (axes_run){.study = text[TEXT_STUDY],
                                .algorithm = text[TEXT_ALGORITHM],
                                .recipe = text[TEXT_RECIPE],
                                .swept = text[TEXT_SWEPT],
                                .chosen = text[TEXT_CHOSEN],
                                .in_effect = text[TEXT_IN_EFFECT],
                                .meaning = query_get_integer(q, TEXTS + 4),
                                .seed = seed};
  return GL_OK;
}

static gl_status run_list_read_runs(run_list *l, axes_run **compared, store *s, gl_error *err) {
  size_t room[3] = {0};
  query q;
  query_begin(&q, s, sql_of_runs, err);
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
    TABLE_FIELD("ordinal", TABLE_INTEGER, "", "position in the grid of the study, from 0"),
    TABLE_FIELD("key", TABLE_TEXT, "",
                "32 hex digits that name the run: the hash of its complete recipe"),
    TABLE_FIELD("algorithm", TABLE_TEXT, "",
                "the shown name; if one name means several algorithms of a study, followed by the "
                "fields that "
                "differ"),
    TABLE_FIELD("seed", TABLE_INTEGER, "",
                "the seed of all random draws, a whole number below 2^63"),
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
  records_integer(w, r->ordinal);
  records_text(w, r->key);
  records_text(w, l->axes.algorithm[run]);
  records_integer(w, (int64_t)r->seed);
  records_number(w, r->lr);
  run_list_put_axes(l, run, w);
}
