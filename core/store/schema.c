/* The tables of a study: their columns and what these may hold. */
#include "core/store/schema_internal.h"

#include "core/base/metrics.h"
#include "core/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- columns --- */

/* Longest texts: of names and keys, of sentences and command lines, of recipes. */
#define NAME_BYTES 4096
#define WORDS_BYTES (1 << 20)
#define RECIPE_BYTES (16 << 20)
#define MANY ((int64_t)1 << 53) /* a double counts that far */

#define WHOLE(name, least, most)                                                                   \
  { name, COLUMN_INTEGER, 1, least, most, 0 }
#define WHOLE_OR_NULL(name, least, most)                                                           \
  { name, COLUMN_INTEGER, 0, least, most, 0 }
#define NUMBER(name)                                                                               \
  { name, COLUMN_REAL, 0, 0, 0, 0 }
#define NUMBER_SINCE(name, format)                                                                 \
  { name, COLUMN_REAL, 0, 0, 0, format }
#define TEXT_SINCE(name, most, format)                                                             \
  { name, COLUMN_TEXT, 0, 0, most, format }
#define TEXT(name, most)                                                                           \
  { name, COLUMN_TEXT, 1, 0, most, 0 }
#define NAME(name)                                                                                 \
  { name, COLUMN_TEXT, 1, 1, NAME_BYTES, 0 }
#define TEXT_OR_NULL(name, most)                                                                   \
  { name, COLUMN_TEXT, 0, 0, most, 0 }
#define SUM_SINCE(name, format)                                                                    \
  { name, COLUMN_INTEGER, 0, INT64_MIN, INT64_MAX, format }
#define SUM(name)                                                                                  \
  { name, COLUMN_INTEGER, 1, INT64_MIN, INT64_MAX, 0 }
#define SEED(name)                                                                                 \
  { name, COLUMN_INTEGER, 1, INT64_MIN, INT64_MAX, 0 } /* 64 bits, as they are */
#define RUN WHOLE("run", 1, INT64_MAX)
#define END                                                                                        \
  { NULL, COLUMN_TEXT, 0, 0, 0, 0 }

static const store_column runs_columns[] = {WHOLE("id", 1, INT64_MAX),
                                            NAME("key"),
                                            WHOLE("ordinal", 0, MANY),
                                            NAME("study"),
                                            NAME("algorithm"),
                                            TEXT("swept", RECIPE_BYTES),
                                            TEXT_OR_NULL("chosen", RECIPE_BYTES),
                                            WHOLE("meaning", 0, INT32_MAX),
                                            SEED("seed"),
                                            NUMBER("lr"),
                                            NAME("status"),
                                            TEXT("reason", WORDS_BYTES),
                                            TEXT("recipe", RECIPE_BYTES),
                                            TEXT("code_version", NAME_BYTES),
                                            TEXT("machine", NAME_BYTES),
                                            NUMBER("wall_s"),
                                            NAME("place"),
                                            TEXT_OR_NULL("provenance", NAME_BYTES),
                                            TEXT_OR_NULL("finished", NAME_BYTES),
                                            WHOLE_OR_NULL("peak_bytes", 0, INT64_MAX),
                                            SUM("sum_steps"),
                                            SUM("sum_evals"),
                                            SUM("sum_staleness"),
                                            SUM("sum_clock"),
                                            SUM("sum"),
                                            SUM_SINCE("sum_set_evals", 5),
                                            SUM_SINCE("sum_fates", 6),
                                            END};
static const store_column steps_columns[] = {RUN,
                                             WHOLE("step", 0, MANY),
                                             WHOLE_OR_NULL("sampler", -1, INT32_MAX),
                                             NUMBER("time_s"),
                                             NUMBER("wait_s"),
                                             END};
static const store_column evals_columns[] = {RUN, WHOLE("step", 0, MANY), NUMBER("time_s"),
                                             NUMBER("eval_score"), END};
static const store_column set_evals_columns[] = {
    RUN,
    WHOLE("place", 0, INT32_MAX),
    WHOLE("half", 0, 2),
    WHOLE("step", 0, MANY),
    {"eval_set", COLUMN_TEXT, 1, 1, STORE_SET_NAME_SIZE - 1, 0},
    NUMBER("time_s"),
    NUMBER("eval_score"),
    END};
static const store_column staleness_columns[] = {RUN, WHOLE("staleness", 0, STORE_MAX_STALENESS),
                                                 WHOLE("count", 0, INT64_MAX), END};
static const store_column fates_columns[] = {RUN,
                                             {"fate", COLUMN_TEXT, 1, 1, STORE_FATE_SIZE - 1, 0},
                                             WHOLE("quarter", 1, STORE_QUARTERS),
                                             WHOLE("tokens_from", 1, MANY),
                                             WHOLE("responses", 1, MANY),
                                             NUMBER("tokens"),
                                             NUMBER("reward"),
                                             END};
#define CLOCK_COLUMN(name, unit, meaning) NUMBER(#name),
static const store_column clock_columns[] = {RUN, CLOCK_RECORD(CLOCK_COLUMN) END};
static const store_column tuned_columns[] = {NAME("study"),   NAME("algorithm"), NUMBER("lr"),
                                             NUMBER("score"), SUM("sum"),        END};
static const store_column scores_columns[] = {NAME("key"),
                                              TEXT("recipe", RECIPE_BYTES),
                                              NUMBER("score"),
                                              NUMBER_SINCE("wall_s", 4),
                                              TEXT_SINCE("finished", NAME_BYTES, 4),
                                              SUM("sum"),
                                              END};
static const store_column bias_columns[] = {NAME("study"),
                                            WHOLE("ordinal", 0, MANY),
                                            TEXT_OR_NULL("algorithm", NAME_BYTES),
                                            TEXT_OR_NULL("method", NAME_BYTES),
                                            NUMBER("group_size"),
                                            NUMBER("kl_exact"),
                                            NUMBER("kl_exact_qp"),
                                            NUMBER("staleness"),
                                            NUMBER("groups"),
                                            NUMBER("bias"),
                                            NUMBER("cosine"),
                                            NUMBER("scaled_bias"),
                                            NUMBER("variance"),
                                            NUMBER("mse"),
                                            NUMBER("scaled_mse"),
                                            NUMBER("snr"),
                                            NUMBER("iw_mean"),
                                            NUMBER("iw_variance"),
                                            NUMBER("aw_variance"),
                                            NUMBER("ess"),
                                            SUM("sum"),
                                            END};
static const store_column sweeps_columns[] = {NAME("study"),
                                              NAME("recipe_hash"),
                                              WHOLE("shard", 0, INT32_MAX),
                                              WHOLE("shards", 1, INT32_MAX),
                                              TEXT("recipe", RECIPE_BYTES),
                                              SUM("sum"),
                                              END};
static const store_column plan_columns[] = {NAME("study"),
                                            WHOLE("tuning", 0, 1),
                                            NAME("place"),
                                            WHOLE("ordinal", 0, MANY),
                                            NAME("algorithm"),
                                            SEED("seed"),
                                            TEXT("swept", RECIPE_BYTES),
                                            SUM("sum"),
                                            END};
static const store_column superseded_columns[] = {NAME("key"), NAME("by"), SUM("sum"), END};
static const store_column provenance_columns[] = {NAME("hash"),
                                                  TEXT("version", NAME_BYTES),
                                                  TEXT("source", NAME_BYTES),
                                                  WHOLE_OR_NULL("dirty", 0, 1),
                                                  TEXT("command", WORDS_BYTES),
                                                  TEXT("processor", NAME_BYTES),
                                                  TEXT("system", NAME_BYTES),
                                                  TEXT("compiler", NAME_BYTES),
                                                  TEXT("libraries", WORDS_BYTES),
                                                  SUM("sum"),
                                                  END};

static const store_column laboratory_columns[] = {NAME("study"),
                                                  TEXT_OR_NULL("provenance", NAME_BYTES),
                                                  TEXT_OR_NULL("finished", NAME_BYTES),
                                                  NUMBER("wall_s"),
                                                  SUM("sum"),
                                                  END};
static const store_column seals_columns[] = {NAME("name"), WHOLE("records", 0, MANY),
                                             SUM("content"), SUM("sum"), END};

static const store_table tables[] = {
    {"runs", TABLE_OF_RUNS, runs_columns, NULL, 0, 0},
    {"steps", TABLE_OF_A_RUN, steps_columns, "run, step", 0, 0},
    {"evals", TABLE_OF_A_RUN, evals_columns, "run, step", 0, 0},
    {"set_evals", TABLE_OF_A_RUN, set_evals_columns, "run, place, half, step", 0, 5},
    {"staleness", TABLE_OF_A_RUN, staleness_columns, "run, staleness", 0, 0},
    {"fates", TABLE_OF_A_RUN, fates_columns, "run, fate, quarter, tokens_from", 0, 6},
    {"clock", TABLE_OF_A_RUN, clock_columns, NULL, 0, 0},
    {"tuned", TABLE_ALONE, tuned_columns, "study, algorithm", 1, 0},
    {"tuning_scores", TABLE_ALONE, scores_columns, "key", 1, 0},
    {"bias", TABLE_ALONE, bias_columns, "study, ordinal", 1, 0},
    {"sweeps", TABLE_ALONE, sweeps_columns, "study, recipe_hash, shards, shard", 1, 0},
    {"plan", TABLE_ALONE, plan_columns, "study, tuning, place", 1, 0},
    {"superseded", TABLE_ALONE, superseded_columns, "key", 1, 0},
    {"provenance", TABLE_ALONE, provenance_columns, "hash", 1, 0},
    {"laboratory", TABLE_ALONE, laboratory_columns, "study", 1, 4},
    {"seals", TABLE_ALONE, seals_columns, "name", 0, 4},
};

const store_table *schema_at(size_t i) {
  return i < sizeof tables / sizeof *tables ? &tables[i] : NULL;
}

const store_table *schema_named(const char *name) {
  for (size_t i = 0; schema_at(i) != NULL; ++i)
    if (strcmp(tables[i].name, name) == 0) return &tables[i];
  return NULL;
}

const store_column *schema_column(const store_table *t, const char *name) {
  static const store_column measured = NUMBER("metric");
  for (const store_column *c = t->columns; c->name != NULL; ++c)
    if (strcmp(c->name, name) == 0) return c;
  return t->columns == steps_columns && metric_find(name) != METRIC_COUNT ? &measured : NULL;
}

/* SQL --- */

static const char *const type_names[] = {
    [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};

/* Columns that came with a later format are NULL where a file is brought up to it, and filled then:
 * so none is NOT NULL to SQLite but those of the first format. */
static void put_column(FILE *to, const store_table *t, const store_column *c) {
  const int first = c == t->columns;
  fprintf(to, "%s\"%s\" %s", first ? "" : ", ", c->name, type_names[c->type]);
  if (first && t->key == NULL) fputs(" PRIMARY KEY", to);
  if (first && t->kind == TABLE_OF_A_RUN) fputs(" REFERENCES runs(id) ON DELETE CASCADE", to);
  if (t->kind == TABLE_OF_RUNS && strcmp(c->name, "key") == 0) fputs(" NOT NULL UNIQUE", to);
}

static void put_table(FILE *to, const store_table *t) {
  fprintf(to, "CREATE TABLE %s(", t->name);
  for (const store_column *c = t->columns; c->name != NULL; ++c) put_column(to, t, c);
  for (int m = 0; m < METRIC_COUNT && t->columns == steps_columns; ++m)
    fprintf(to, ", \"%s\" REAL", metric_about((metric)m)->name);
  if (t->key != NULL)
    fprintf(to, ", PRIMARY KEY(%s)) WITHOUT ROWID;", t->key);
  else
    fputs(");", to);
}

/* The SQL of one table, or of all with t NULL. */
static char *create_text(const store_table *t) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  for (size_t i = 0; schema_at(i) != NULL; ++i)
    if (t == NULL || t == schema_at(i)) put_table(to, schema_at(i));
  if (t == NULL) fputs(SCHEMA_INDEX ";", to);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

char *schema_sql(void) {
  return create_text(NULL);
}

char *schema_table_sql(const store_table *t) {
  return create_text(t);
}
