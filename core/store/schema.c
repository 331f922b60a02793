/* The tables of a study: columns with their valid values and meaning, conversion between C records
 * and rows, and checking the format and schema of a file. */
#include "core/base/metrics.h"
#include "core/store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- columns --- */

/* Maximum lengths of names and keys, of sentences and command lines, and of recipes. */
#define NAME_BYTES 4096
#define WORDS_BYTES (1 << 20)
#define RECIPE_BYTES (16 << 20)
#define MANY ((int64_t)1 << 53) /* a double represents integers exactly up to here */

#define MEMBER_OF(record, field)                                                                   \
  _Generic(((record *)0)->field, int32_t                                                           \
           : MEMBER_INT32, int64_t                                                                 \
           : MEMBER_INT64, uint64_t                                                                \
           : MEMBER_UINT64, double                                                                 \
           : MEMBER_REAL, const char *                                                             \
           : MEMBER_TEXT, char *                                                                   \
           : MEMBER_CHARS)
/* A column and the member of a record that holds its value. Columns with a description are
 * exported. */
#define COLUMN(name, record, field, type, needed, least, most, unit, about)                        \
  {                                                                                                \
    name, COLUMN_##type, needed, least, most, MEMBER_OF(record, field), offsetof(record, field),   \
        unit, about                                                                                \
  }
#define INTEGER(record, field, least, most, unit, about)                                           \
  COLUMN(#field, record, field, INTEGER, true, least, most, unit, about)
#define INTEGER_OR_NULL(record, field, least, most, unit, about)                                   \
  COLUMN(#field, record, field, INTEGER, false, least, most, unit, about)
#define REAL(record, field, unit, about)                                                           \
  COLUMN(#field, record, field, REAL, false, 0, 0, unit, about)
#define TEXT(record, field, most, about)                                                           \
  COLUMN(#field, record, field, TEXT, true, 0, most, "", about)
#define TEXT_OR_NULL(record, field, most, about)                                                   \
  COLUMN(#field, record, field, TEXT, false, 0, most, "", about)
#define NAME(record, field, about)                                                                 \
  COLUMN(#field, record, field, TEXT, true, 1, NAME_BYTES, "", about)
#define SEED(record, field) /* any 64 bits */ INTEGER(record, field, INT64_MIN, INT64_MAX, "", NULL)
/* Columns without a member in a record. */
#define SUM(name)                                                                                  \
  { name, COLUMN_INTEGER, true, INT64_MIN, INT64_MAX, MEMBER_NONE, 0, "", NULL }
#define KEY_NAME(name)                                                                             \
  { name, COLUMN_TEXT, true, 1, NAME_BYTES, MEMBER_NONE, 0, "", NULL }
#define RUN                                                                                        \
  { "run", COLUMN_INTEGER, true, 1, INT64_MAX, MEMBER_RUN, 0, "", NULL }
#define END                                                                                        \
  { NULL, COLUMN_TEXT, false, 0, 0, MEMBER_NONE, 0, "", NULL }

static const store_column runs_columns[] = {
    {"id", COLUMN_INTEGER, true, 1, INT64_MAX, MEMBER_NONE, 0, "", NULL},
    NAME(store_run, key, NULL),
    INTEGER(store_run, ordinal, 0, MANY, "", NULL),
    NAME(store_run, study, NULL),
    NAME(store_run, algorithm, NULL),
    TEXT(store_run, swept, RECIPE_BYTES, NULL),
    TEXT_OR_NULL(store_run, chosen, RECIPE_BYTES, NULL),
    SEED(store_run, seed),
    REAL(store_run, lr, "", NULL),
    NAME(store_run, status, "`done`, `diverged` (a result) or `failed` (an accident)"),
    TEXT(store_run, reason, WORDS_BYTES, "why a run diverged or failed; empty when done"),
    TEXT(store_run, recipe, RECIPE_BYTES, NULL),
    TEXT_OR_NULL(store_run, in_effect, RECIPE_BYTES, NULL),
    TEXT(store_run, code_version, NAME_BYTES, "of the gepolab that made it"),
    INTEGER(store_run, meaning, 0, INT32_MAX, "", "version of the meaning of recipes"),
    TEXT(store_run, machine, NAME_BYTES, NULL),
    REAL(store_run, wall_s, "s", NULL),
    NAME(store_run, place, NULL),
    TEXT_OR_NULL(store_run, provenance, NAME_BYTES, NULL),
    TEXT_OR_NULL(store_run, finished, NAME_BYTES, NULL),
    INTEGER_OR_NULL(store_run, peak_bytes, 0, INT64_MAX, "bytes", NULL),
    SUM("sum"),
    END};
static const store_column steps_columns[] = {
    RUN,
    INTEGER(step_record, step, 0, MANY, "updates", "of the learner, from 1"),
    INTEGER_OR_NULL(step_record, sampler, -1, INT32_MAX, "",
                    "number of the sampler of the first batch trained"),
    REAL(step_record, time_s, "s", "simulated time at the end of the update"),
    REAL(step_record, wait_s, "s", "simulated time that the learner idled before it"),
    END};
static const store_column evals_columns[] = {
    RUN,
    INTEGER(eval_record, step, 0, MANY, "updates",
            "made before the evaluation; 0: before the first"),
    REAL(eval_record, time_s, "s", "simulated time"),
    REAL(eval_record, eval_score, "", "score of the learner"), END};
static const store_column set_evals_columns[] = {
    RUN,
    {"place", COLUMN_INTEGER, true, 0, INT32_MAX, MEMBER_INT32, offsetof(set_eval_record, place),
     "", NULL},
    INTEGER(set_eval_record, step, 0, MANY, "updates",
            "made before the evaluation; 0: before the first"),
    COLUMN("eval_set", set_eval_record, set, TEXT, true, 1, STORE_SET_NAME_SIZE - 1, "",
           "the evaluation set's name"),
    INTEGER(set_eval_record, half, 0, 2, "",
            "0: the score of all problems of the set; 1 and 2: of its first, third, … and of its "
            "second, fourth, … problems, where the recipe says `halves: true`"),
    REAL(set_eval_record, time_s, "s", "simulated time"),
    COLUMN("eval_score", set_eval_record, score, REAL, false, 0, 0, "",
           "score of the learner on these problems"),
    END};
static const store_column staleness_columns[] = {
    RUN,
    {"staleness", COLUMN_INTEGER, true, 0, STORE_MAX_STALENESS, MEMBER_INDEX, 0, "versions",
     "learner's version minus the batch's oldest version"},
    {"count", COLUMN_INTEGER, true, 0, INT64_MAX, MEMBER_UINT64, 0, "batches",
     "trained at that staleness"},
    END};
static const store_column fates_columns[] = {
    RUN,
    COLUMN("fate", fate_record, fate, TEXT, true, 1, STORE_FATE_SIZE - 1, "",
           "`trained`; thrown away because `stale`, `evicted` from a full queue or `aborted` at "
           "the sampler; `lost`; or `pending` at the run's end"),
    INTEGER(fate_record, quarter, 1, STORE_QUARTERS, "",
            "of the run's prompts by the mean reward of all responses sampled for them, from the "
            "lowest, 1, to the highest, 4"),
    INTEGER(fate_record, tokens_from, 1, MANY, "tokens",
            "a power of two; responses have so many and less than twice it"),
    INTEGER(fate_record, responses, 1, MANY, "", "of this fate, quarter and length"),
    REAL(fate_record, tokens, "tokens", "of all of them"),
    REAL(fate_record, reward, "",
         "sum over them; of a response that was not finished, what it would have "
         "earned by the weights it last had"),
    END};
#define CLOCK_COLUMN(name, unit, meaning) REAL(clock_record, name, unit, meaning),
static const store_column clock_columns[] = {RUN, CLOCK_RECORD(CLOCK_COLUMN) END};
static const store_column tuned_columns[] = {
    NAME(tuned_record, study, "the recipe's name"),
    NAME(tuned_record, algorithm, "the shown name"),
    REAL(tuned_record, lr, "", "the learning rate that `tune` chose"),
    REAL(tuned_record, score, "", "what that rate scored on the seeds it was chosen on"),
    SUM("sum"),
    END};
static const store_column tuning_scores_columns[] = {
    NAME(score_record, key, NULL),
    TEXT(score_record, recipe, RECIPE_BYTES, NULL),
    REAL(score_record, score, "", NULL),
    REAL(score_record, wall_s, "s", NULL),
    TEXT_OR_NULL(score_record, finished, NAME_BYTES, NULL),
    SUM("sum"),
    END};
static const store_column bias_columns[] = {
    NAME(bias_record, study,
         "the recipe's name; of a run's checkpoint with how many updates it had"),
    INTEGER(bias_record, ordinal, 0, MANY, "", "place among the study's measurements, from 0"),
    TEXT_OR_NULL(bias_record, algorithm, NAME_BYTES, "the shown name"),
    TEXT_OR_NULL(bias_record, method, NAME_BYTES,
                 "how it was measured: exact, Monte Carlo, or the population limit"),
    REAL(bias_record, group_size, "responses", "in a group; empty: the population limit"),
    REAL(bias_record, kl_exact, "nat", "KL(p||q) per response, mean over prompts"),
    REAL(bias_record, kl_exact_qp, "nat", "KL(q||p) per response, mean over prompts"),
    REAL(bias_record, staleness, "versions",
         "of the pair of policies, where it comes from training"),
    REAL(bias_record, groups, "groups", "enumerated or sampled, over all prompts"),
    REAL(bias_record, bias, "", "norm of the expected estimate minus the gradient"),
    REAL(bias_record, cosine, "", "between the expected estimate and the gradient"),
    REAL(bias_record, scaled_bias, "", "sqrt(1 - cosine^2): what the best common factor leaves"),
    REAL(bias_record, variance, "", "trace of the estimate's covariance"),
    REAL(bias_record, mse, "", "bias^2 + variance"),
    REAL(bias_record, scaled_mse, "", "relative mean squared error after the best common factor"),
    REAL(bias_record, snr, "", "squared norm of the expected estimate over the variance"),
    REAL(bias_record, iw_mean, "", "mean of the algorithm's own ratio"),
    REAL(bias_record, iw_variance, "", "variance of the algorithm's own ratio"),
    REAL(bias_record, aw_variance, "", "variance of advantage times own ratio"),
    REAL(bias_record, ess, "", "expected (sum w)^2 / (n sum w^2) of the own ratio"),
    SUM("sum"),
    END};
static const store_column sweeps_columns[] = {NAME(sweep_record, study, NULL),
                                              NAME(sweep_record, recipe_hash, NULL),
                                              INTEGER(sweep_record, shard, 0, INT32_MAX, "", NULL),
                                              INTEGER(sweep_record, shards, 1, INT32_MAX, "", NULL),
                                              TEXT(sweep_record, recipe, RECIPE_BYTES, NULL),
                                              SUM("sum"),
                                              END};
static const store_column plan_columns[] = {NAME(planned_cell, study, NULL),
                                            INTEGER(planned_cell, tuning, 0, 1, "", NULL),
                                            NAME(planned_cell, place, NULL),
                                            INTEGER(planned_cell, ordinal, 0, MANY, "", NULL),
                                            NAME(planned_cell, algorithm, NULL),
                                            SEED(planned_cell, seed),
                                            TEXT(planned_cell, swept, RECIPE_BYTES, NULL),
                                            SUM("sum"),
                                            END};
static const store_column superseded_columns[] = {KEY_NAME("key"), KEY_NAME("by"), SUM("sum"), END};
static const store_column provenance_columns[] = {
    NAME(run_provenance, hash, "names what `execution` refers to"),
    TEXT(run_provenance, version, NAME_BYTES, "of gepolab"),
    TEXT(run_provenance, source, NAME_BYTES, "the commit it was built from, in hex"),
    INTEGER_OR_NULL(run_provenance, dirty, 0, 1, "",
                    "true: built from files that differed from the commit"),
    TEXT(run_provenance, command, WORDS_BYTES, "the command line, quoted for a shell"),
    TEXT(run_provenance, processor, NAME_BYTES, "its name and the threads it has"),
    TEXT(run_provenance, system, NAME_BYTES, "operating system and architecture"),
    TEXT(run_provenance, compiler, NAME_BYTES, "its name and version"),
    TEXT(run_provenance, libraries, WORDS_BYTES, NULL),
    SUM("sum"),
    END};
static const store_column laboratory_columns[] = {
    NAME(laboratory_record, study, NULL),
    TEXT_OR_NULL(laboratory_record, provenance, NAME_BYTES, NULL),
    TEXT_OR_NULL(laboratory_record, finished, NAME_BYTES, NULL),
    REAL(laboratory_record, wall_s, "s", NULL),
    SUM("sum"),
    END};
static const store_column seals_columns[] = {
    NAME(seal_record, name, NULL), INTEGER(seal_record, records, 0, MANY, "", NULL),
    INTEGER(seal_record, content, INT64_MIN, INT64_MAX, "", NULL), SUM("sum"), END};

#define OF_A_RUN(name, what, key, optional, records, count, size)                                  \
  {                                                                                                \
#name, TABLE_OF_A_RUN, what, name##_columns, key, false, optional, "sum_" #name,               \
        offsetof(run_record, records), count, size                                                 \
  }
#define LIST(name, what, key, optional)                                                            \
  OF_A_RUN(name, what, key, optional, name, offsetof(run_record, n_##name),                        \
           sizeof *((run_record *)0)->name)
#define ALONE(name, what, key)                                                                     \
  { #name, TABLE_ALONE, what, name##_columns, key, true, false, NULL, 0, 0, 0 }

static const store_table tables[] = {
    {"runs", TABLE_OF_RUNS, "a run", runs_columns, NULL, false, false, NULL, 0, 0, 0},
    LIST(steps, "steps", "run, step", false),
    LIST(evals, "evaluations", "run, step", false),
    LIST(set_evals, "evaluation sets", "run, place, half, step", true),
    LIST(staleness, "the staleness histogram", "run, staleness", false),
    LIST(fates, "what became of responses", "run, fate, quarter, tokens_from", true),
    OF_A_RUN(clock, "the clock", NULL, false, clock, ONE_RECORD, sizeof(clock_record)),
    ALONE(tuned, "a learning rate", "study, algorithm"),
    ALONE(tuning_scores, "a tuning score", "key"),
    ALONE(bias, "measurements of the laboratory", "study, ordinal"),
    ALONE(sweeps, "a plan", "study, recipe_hash, shards, shard"),
    ALONE(plan, "a plan", "study, tuning, place"),
    ALONE(superseded, "the order of runs", "key"),
    ALONE(provenance, "how a run came about", "hash"),
    ALONE(laboratory, "measurements of the laboratory", "study"),
    {"seals", TABLE_ALONE, "checksums", seals_columns, "name", false, false, NULL, 0, 0, 0},
};

const store_table *schema_at(size_t i) {
  return i < sizeof tables / sizeof *tables ? &tables[i] : NULL;
}

const store_table *schema_named(const char *name) {
  for (size_t i = 0; schema_at(i) != NULL; ++i)
    if (strcmp(tables[i].name, name) == 0) return &tables[i];
  return NULL;
}

static size_t listed_columns(const store_table *t) {
  size_t n = 0;
  while (t->columns[n].name != NULL) ++n;
  return n;
}

/* The checksum column in runs for the i-th table that belongs to runs. */
static bool column_of_sum(size_t i, store_column *c) {
  for (size_t k = 0; schema_at(k) != NULL; ++k)
    if (tables[k].kind == TABLE_OF_A_RUN && i-- == 0) {
      *c = (store_column)SUM(tables[k].sum);
      c->needed = !tables[k].optional;
      return true;
    }
  return false;
}

/* Sets *c to the i-th column of the table, listed or derived (checksums in runs, metrics in steps);
 * returns false past the last. */
static bool column_if_any(const store_table *t, size_t i, store_column *c) {
  const size_t listed = listed_columns(t);
  if (i < listed) {
    *c = t->columns[i];
    return true;
  }
  i -= listed;
  if (t->kind == TABLE_OF_RUNS) return column_of_sum(i, c);
  if (t->columns != steps_columns || i >= METRIC_COUNT) return false;
  const metric_info *about = metric_about((metric)i);
  *c = (store_column){.name = about->name,
                      .type = COLUMN_REAL,
                      .member = MEMBER_REAL,
                      .at = offsetof(step_record, metric) + i * sizeof(double),
                      .unit = about->unit,
                      .about = about->meaning};
  return true;
}

size_t schema_columns(const store_table *t) {
  store_column c;
  size_t n = listed_columns(t);
  while (column_if_any(t, n, &c)) ++n;
  return n;
}

store_column schema_column_at(const store_table *t, size_t i) {
  store_column c = END;
  column_if_any(t, i, &c);
  return c;
}

bool schema_column(const store_table *t, const char *name, store_column *c) {
  for (size_t i = 0; column_if_any(t, i, c); ++i)
    if (strcmp(c->name, name) == 0) return true;
  return false;
}

/* --- records in memory --- */

/* Binds the member of the record that holds the column's value to parameter `at`. */
static void bind_member(sqlite3_stmt *q, int at, const store_column *c, const void *record) {
  const void *member = (const char *)record + c->at;
  int64_t whole = 0;
  switch (c->member) {
  case MEMBER_INT32: {
    int32_t narrow;
    memcpy(&narrow, member, sizeof narrow);
    whole = narrow;
    break;
  }
  case MEMBER_INT64:
  case MEMBER_UINT64:
    memcpy(&whole, member, sizeof whole);
    break;
  case MEMBER_REAL: {
    double x;
    memcpy(&x, member, sizeof x);
    sqlite3_bind_double(q, at, x); /* SQLite binds NaN as NULL */
    return;
  }
  case MEMBER_TEXT: {
    const char *text;
    memcpy(&text, member, sizeof text);
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
    return;
  }
  case MEMBER_CHARS:
    sqlite3_bind_text(q, at, member, -1, SQLITE_STATIC);
    return;
  case MEMBER_NONE:
  case MEMBER_RUN:
  case MEMBER_INDEX:
    return;
  }
  if (!c->needed && c->member != MEMBER_UINT64 && whole < c->least)
    sqlite3_bind_null(q, at);
  else
    sqlite3_bind_int64(q, at, whole);
}

void record_writer_begin(record_writer *w, store *s, const char *table, const char *how,
                         gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  *w = (record_writer){.table = schema_named(table), .q = {.s = s, .err = err}};
  snprintf(w->doing, sizeof w->doing, "writing %s to", w->table->what);
  for (size_t i = 0, n = schema_columns(w->table); i < n; ++i) {
    const store_column c = schema_column_at(w->table, i);
    if (c.member != MEMBER_NONE) w->column[w->n++] = c;
  }
  if (to != NULL) {
    fprintf(to, "INSERT %s INTO %s(", how, table);
    for (size_t i = 0; i < w->n; ++i) fprintf(to, "%s\"%s\"", i > 0 ? ", " : "", w->column[i].name);
    fputs(") VALUES(", to);
    for (size_t i = 0; i < w->n; ++i) fputs(i > 0 ? ", ?" : "?", to);
    fputs(")", to);
  }
  if (to != NULL && fclose(to) == 0)
    query_begin(&w->q, s, text, err);
  else
    w->q.status = gl_fail_memory(err, "an insertion");
  w->q.doing = w->doing;
  free(text);
}

gl_status record_writer_put(record_writer *w, int64_t run, size_t index, const void *record) {
  if (w->q.status != GL_OK) return w->q.status;
  for (size_t i = 0; i < w->n; ++i) {
    const store_column *c = &w->column[i];
    if (c->member == MEMBER_RUN || c->member == MEMBER_INDEX)
      query_bind_integer(&w->q, (int)i + 1, c->member == MEMBER_RUN ? run : (int64_t)index);
    else
      bind_member(w->q.stmt, (int)i + 1, c, record);
  }
  return query_run(&w->q);
}

gl_status record_writer_end(record_writer *w) {
  return query_end(&w->q);
}

gl_status store_put_record(store *s, const char *table, const char *how, const void *record,
                           gl_error *err) {
  record_writer w;
  record_writer_begin(&w, s, table, how, err);
  record_writer_put(&w, 0, 0, record);
  return record_writer_end(&w);
}

char *store_record_columns(const char *table, const char *alias) {
  const store_table *t = schema_named(table);
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  for (size_t i = 0, put = 0; to != NULL && i < schema_columns(t); ++i) {
    const store_column c = schema_column_at(t, i);
    if (c.member != MEMBER_NONE) fprintf(to, "%s%s.\"%s\"", put++ > 0 ? ", " : "", alias, c.name);
  }
  if (to != NULL && fclose(to) == 0) return text;
  free(text);
  return NULL;
}

/* Sets the member of the record from column `at` of the query. */
static void read_member(const query *q, int at, const store_column *c, void *record) {
  void *member = (char *)record + c->at;
  const bool missing = sqlite3_column_type(q->stmt, at) == SQLITE_NULL;
  const int64_t whole = missing && !c->needed ? c->least - 1 : query_get_integer(q, at);
  switch (c->member) {
  case MEMBER_INT32: {
    const int32_t narrow = (int32_t)whole;
    memcpy(member, &narrow, sizeof narrow);
    break;
  }
  case MEMBER_INT64:
  case MEMBER_UINT64:
    memcpy(member, &whole, sizeof whole);
    break;
  case MEMBER_REAL: {
    const double x = query_get_real(q, at);
    memcpy(member, &x, sizeof x);
    break;
  }
  case MEMBER_TEXT: {
    const char *text = missing && c->needed ? "" : query_get_text(q, at);
    memcpy(member, &text, sizeof text);
    break;
  }
  case MEMBER_CHARS:
  case MEMBER_NONE:
  case MEMBER_RUN:
  case MEMBER_INDEX:
    break;
  }
}

int store_read_record(const char *table, const query *q, int at, void *record) {
  const store_table *t = schema_named(table);
  for (size_t i = 0; i < schema_columns(t); ++i) {
    const store_column c = schema_column_at(t, i);
    if (c.member != MEMBER_NONE) read_member(q, at++, &c, record);
  }
  return at;
}

/* --- SQL --- */

static const char *const type_names[] = {
    [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};

/* Column types are not constrained in SQL; values are validated when they are read. */
static void put_table_definition(FILE *to, const store_table *t) {
  fprintf(to, "CREATE TABLE %s(", t->name);
  for (size_t i = 0; i < schema_columns(t); ++i) {
    const store_column c = schema_column_at(t, i);
    fprintf(to, "%s\"%s\" %s", i == 0 ? "" : ", ", c.name, type_names[c.type]);
    if (i == 0 && t->key == NULL) fputs(" PRIMARY KEY", to);
    if (i == 0 && t->kind == TABLE_OF_A_RUN) fputs(" REFERENCES runs(id) ON DELETE CASCADE", to);
    if (t->kind == TABLE_OF_RUNS && strcmp(c.name, "key") == 0) fputs(" NOT NULL UNIQUE", to);
  }
  if (t->key != NULL)
    fprintf(to, ", PRIMARY KEY(%s)) WITHOUT ROWID;", t->key);
  else
    fputs(");", to);
}

/* Views for other programs (experiments/DATA.md); nothing here reads them. The columns of a view
 * and their meaning never change: a changed view gets the next number, and the old one stays in
 * this list, because check_others() accepts only these texts. steps_v1 selects s.*, so that a new
 * metric does not change its text. */
#define OF_A_RUN_V1 "r.study, r.\"key\", r.algorithm, r.seed, "
static const struct {
  const char *name, *sql;
} views[] = {
    {"runs_v1",
     "CREATE VIEW runs_v1 AS SELECT r.id AS run, r.study, r.\"key\", r.ordinal, r.algorithm, "
     "r.seed,"
     " r.lr AS learning_rate, r.status, r.reason, r.swept AS settings, r.recipe, r.code_version,"
     " r.wall_s, r.finished FROM runs AS r WHERE r.\"key\" NOT IN (SELECT \"key\" FROM "
     "superseded)"},
    {"steps_v1", "CREATE VIEW steps_v1 AS SELECT " OF_A_RUN_V1
                 "s.* FROM runs_v1 AS r JOIN steps AS s ON s.run = r.run"},
    {"evals_v1", "CREATE VIEW evals_v1 AS SELECT " OF_A_RUN_V1
                 "e.run, e.step, e.time_s, e.eval_score AS score FROM runs_v1 AS r JOIN evals AS e"
                 " ON e.run = r.run"},
    {"set_evals_v1",
     "CREATE VIEW set_evals_v1 AS SELECT " OF_A_RUN_V1
     "e.run, e.eval_set, e.half, e.step, e.time_s, e.eval_score AS score FROM runs_v1 AS r JOIN"
     " set_evals AS e ON e.run = r.run"},
    {"staleness_v1",
     "CREATE VIEW staleness_v1 AS SELECT " OF_A_RUN_V1
     "c.run, c.staleness, c.\"count\" AS batches FROM runs_v1 AS r JOIN staleness AS"
     " c ON c.run = r.run"},
};
enum { VIEWS = sizeof views / sizeof *views };

static bool schema_is_view(const char *sql) {
  for (size_t i = 0; sql != NULL && i < VIEWS; ++i)
    if (strcmp(views[i].sql, sql) == 0) return true;
  return false;
}

gl_status schema_add_views(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < VIEWS && status == GL_OK; ++i) {
    query q;
    query_begin(&q, s, "SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ?1", err);
    query_bind_text(&q, 1, views[i].name);
    const bool is_there = query_next(&q);
    status = query_end(&q);
    if (status == GL_OK && !is_there) status = store_exec(s, views[i].sql, "adding a view to", err);
  }
  return status;
}

char *schema_sql(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  for (size_t i = 0; schema_at(i) != NULL; ++i) put_table_definition(to, schema_at(i));
  fputs(SCHEMA_INDEX ";", to);
  for (size_t i = 0; i < VIEWS; ++i) fprintf(to, "%s;", views[i].sql);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

/* --- schema check --- */

static gl_status schema_refuse(store *s, const char *what, const char *name, gl_error *err) {
  return gl_fail(err, GL_EIO,
                 "%s is not a study that gepolab wrote: %s '%.80s'; restore a copy, or take away "
                 "what was added",
                 s->path, what, name != NULL ? name : "");
}

/* Checks the columns of the table in the file: none computed, unknown or of another type, and none
 * missing except metrics. */
static gl_status check_columns(store *s, const store_table *t, gl_error *err) {
  query q;
  query_begin(&q, s, "SELECT name, type, hidden FROM pragma_table_xinfo(?1, 'main')", err);
  query_bind_text(&q, 1, t->name);
  while (query_next(&q)) {
    const char *name = query_get_text(&q, 0), *type = query_get_text(&q, 1);
    store_column c;
    if (name == NULL || !schema_column(t, name, &c))
      q.status = schema_refuse(s, "it has a column that is not known here", name, err);
    else if (type == NULL || strcasecmp(type, type_names[c.type]) != 0 ||
             query_get_integer(&q, 2) != 0)
      q.status = schema_refuse(s, "of another type, or computed, is its column", name, err);
  }
  gl_status status = query_end(&q);
  const size_t n = t->columns == steps_columns ? listed_columns(t) : schema_columns(t);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    if (!store_has_column(s, "main", t->name, schema_column_at(t, i).name))
      status = schema_refuse(s, "it lacks the column", schema_column_at(t, i).name, err);
  return status;
}

/* Refuses a file without this table, or with a view or virtual table instead. */
static gl_status check_kind(store *s, const char *table, gl_error *err) {
  query q;
  query_begin(&q, s,
              "SELECT type, name FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE"
              " NOCASE",
              err);
  query_bind_text(&q, 1, table);
  if (query_next(&q)) {
    const char *type = query_get_text(&q, 0), *name = query_get_text(&q, 1);
    if (type == NULL || name == NULL || strcmp(type, "table") != 0 || strcmp(name, table) != 0)
      q.status =
          schema_refuse(s, "a view or virtual table stands in the place of its table", table, err);
  } else if (q.status == GL_OK) {
    q.status = schema_refuse(s, "it lacks the table", table, err);
  }
  return query_end(&q);
}

/* Refuses triggers, views of another text than ours, and indices that SQLite did not create. A
 * study has none, and their expressions would run on reads or writes. */
static gl_status check_others(store *s, gl_error *err) {
  query q;
  query_begin(&q, s,
              "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type"
              " = 'index' AND sql IS NOT NULL AND sql != '" SCHEMA_INDEX "')",
              err);
  while (query_next(&q)) {
    const char *type = query_get_text(&q, 0);
    if (type != NULL && strcmp(type, "view") == 0 && schema_is_view(query_get_text(&q, 2)))
      continue;
    char what[64];
    snprintf(what, sizeof what, "a study has no %.20s such as", type != NULL ? type : "object");
    q.status = schema_refuse(s, what, query_get_text(&q, 1), err);
  }
  return query_end(&q);
}

static gl_status check_schema(store *s, gl_error *err) {
  gl_status status = check_others(s, err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    status = check_kind(s, schema_at(i)->name, err);
    if (status == GL_OK) status = check_columns(s, schema_at(i), err);
  }
  return status;
}

gl_status store_check_format(store *s, int *empty, gl_error *err) {
  int64_t id = 0, format = 0, n_tables = 0;
  gl_status status =
      store_query_integer(s, &n_tables, "SELECT count(*) FROM sqlite_schema", NULL, err);
  if (status == GL_OK) status = store_query_integer(s, &id, "PRAGMA application_id", NULL, err);
  if (status == GL_OK) status = store_query_integer(s, &format, "PRAGMA user_version", NULL, err);
  if (status != GL_OK) return status;
  *empty = n_tables == 0 && id == 0;
  if (*empty) return GL_OK;
  if (id != STORE_APPLICATION_ID)
    return gl_fail(err, GL_EIO,
                   "%s is an SQLite database, but not a gepolab study; choose another file",
                   s->path);
  if (format < STORE_FORMAT && format > 0)
    return gl_fail(
        err, GL_EIO,
        "%s has the older study format %lld, this gepolab reads format %d alone; read it "
        "with the commit 3d57e88 of gepolab, which reads formats 1 to 6, or run its "
        "sweep again into another file",
        s->path, (long long)format, STORE_FORMAT);
  if (format != STORE_FORMAT)
    return gl_fail(err, GL_EIO,
                   "%s has study format %lld, this gepolab reads format %d; use the version of "
                   "gepolab that wrote it, or another file",
                   s->path, (long long)format, STORE_FORMAT);
  return check_schema(s, err);
}
