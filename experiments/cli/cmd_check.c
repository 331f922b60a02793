/* gepolab study check: whether a study is as it was written, and what can be done where it is not.
 */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- damage --- */

typedef struct damage {
  char *key, *text; /* key NULL: of no run */
} damage;

typedef struct damages {
  damage *list; /* [n] */
  size_t n;
} damages;

static void damages_fini(damages *d) {
  for (size_t i = 0; i < d->n; ++i) {
    free(d->list[i].key);
    free(d->list[i].text);
  }
  free(d->list);
  *d = (damages){0};
}

/* The shown form: a damaged file may hold bytes that are no text. */
static char *shown_copy(const char *text) {
  char *copy = NULL;
  size_t size = 0;
  FILE *to = must_have(open_memstream(&copy, &size), "the list of damage");
  shown_write(text, strlen(text), to);
  must_succeed(fclose(to) == 0, "the list of damage");
  return copy;
}

static void note_damage(void *self, const char *key, const char *text) {
  damages *d = self;
  *MUST_ADD(d->list, d->n, "the list of damage") =
      (damage){.key = key != NULL ? shown_copy(key) : NULL, .text = shown_copy(text)};
}

/* --- looking --- */

typedef struct outcome {
  const char *path;
  int64_t runs;
  damages found, left; /* left: after a repair */
  int repaired;
  store_removed removed;
} outcome;

static void outcome_fini(outcome *o) {
  damages_fini(&o->found);
  damages_fini(&o->left);
}

static gl_status find_damage(store *s, damages *d, int64_t *runs, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_check(s, note_damage, d, err);
  *runs = -1; /* where even that cannot be counted */
  if (status == GL_OK &&
      sqlite3_prepare_v2(store_handle(s), "SELECT count(*) FROM runs", -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    *runs = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  store_end_reading(s);
  return status;
}

/* A file without damage is not written, also with --repair. */
static gl_status examine(outcome *o, const char *path, int repair, gl_error *err) {
  store *s = NULL;
  *o = (outcome){.path = path};
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = find_damage(s, &o->found, &o->runs, err);
  store_close(s);
  s = NULL;
  if (status != GL_OK || !repair || o->found.n == 0) return status;
  status = store_open(&s, path, STORE_WRITE, err);
  if (status == GL_OK) status = store_repair(s, &o->removed, err);
  o->repaired = status == GL_OK;
  if (status == GL_OK) status = find_damage(s, &o->left, &o->runs, err);
  store_close(s);
  return status;
}

/* --- what is printed --- */

/* How records that a repair removed are made again, by table. */
static const struct {
  const char *name, *says;
  size_t offset;
} remedies[] = {
    {"runs", "the same sweep makes them again", offsetof(store_removed, runs)},
    {"orphans", "they belonged to no run", offsetof(store_removed, orphans)},
    {"tuned", "the same sweep writes the chosen learning rates again",
     offsetof(store_removed, tuned)},
    {"tuning_scores", "the same sweep makes these tuning runs again",
     offsetof(store_removed, tuning_scores)},
    {"bias",
     "all measurements of the laboratory are gone; the same `gepolab lab bias` makes them again",
     offsetof(store_removed, bias)},
    {"sweeps", "the same sweep writes its plan again; until then cells may be missing unnoticed",
     offsetof(store_removed, sweeps)},
    {"plan", "the same sweep writes its plan again; until then cells may be missing unnoticed",
     offsetof(store_removed, plan)},
    {"superseded", "of several runs of a cell the one that was stored last is valid now",
     offsetof(store_removed, superseded)},
    {"provenance", "how some runs came about is not known any more",
     offsetof(store_removed, provenance)},
};
enum { N_REMEDIES = sizeof remedies / sizeof *remedies };

static size_t removed_of(const store_removed *r, size_t i) {
  size_t n;
  memcpy(&n, (const char *)r + remedies[i].offset, sizeof n);
  return n;
}

static void put_damages(table *d, const char *name, const char *before, const damages *list) {
  table *t = table_list(table_field(d, name));
  for (size_t i = 0; i < list->n; ++i) {
    table_put(table_object(table_field(t, "")), "run %s, text %s", list->list[i].key,
              list->list[i].text);
    table_line(t, "%s%s", before, list->list[i].text);
  }
}

static table *outcome_table(const outcome *o) {
  table *d = table_document();
  table_put(d, "file %s, format %d, has_checksums %i, runs %g", o->path, (int)STORE_FORMAT, 1,
            (double)o->runs);
  put_damages(d, "damage", "", &o->found);
  table *removed = o->repaired ? table_object(table_field(d, "removed")) : NULL;
  for (size_t i = 0; i < N_REMEDIES && o->repaired; ++i) {
    const size_t n = removed_of(&o->removed, i);
    table_count(table_field(removed, remedies[i].name), n);
    if (n > 0) table_line(removed, "removed %zu of %s: %s", n, remedies[i].name, remedies[i].says);
  }
  if (o->repaired) put_damages(d, "left", "left: ", &o->left);
  if (o->repaired ? o->left.n == 0 : o->found.n == 0)
    table_line(d, "%s: %lld run%s, all as they were written", o->path, (long long)o->runs,
               o->runs == 1 ? "" : "s");
  return d;
}

/* --- the command --- */

static gl_status fail_if_damaged(const outcome *o, gl_error *err) {
  if (o->repaired && o->left.n > 0)
    return gl_fail(err, GL_EIO, "%s: %zu damages are left; restore a copy", o->path, o->left.n);
  if (o->repaired || o->found.n == 0) return GL_OK;
  return gl_fail(
      err, GL_EIO,
      "%s: %zu damages; restore a copy, or let `gepolab study check %s --repair` remove what "
      "is damaged, so that the same sweep makes it again",
      o->path, o->found.n, o->path);
}

static gl_status check_study(const char *path, int repair, int json, gl_error *err) {
  outcome o;
  gl_error why = {0};
  gl_status status = examine(&o, path, repair, &why);
  /* Damage that was found is reported also where it cannot be repaired. */
  if (status == GL_OK || o.found.n > 0) {
    const gl_status printed = report_table(outcome_table(&o), TABLE_AS_TEXT, json, err);
    if (printed != GL_OK) status = printed;
  }
  if (status == GL_OK)
    status = fail_if_damaged(&o, err);
  else if (why.text[0] != '\0')
    gl_fail(err, status, "%s", why.text);
  outcome_fini(&o);
  return status;
}

static gl_status salvage(const char *from, const char *to, int json, gl_error *err) {
  store_salvaged n;
  gl_status status = store_salvage(from, to, &n, err);
  if (status != GL_OK) return status;
  table *d = table_document();
  table_put(d, "file %s, runs %zu, lost_runs %zu, lost_records %zu", to, n.runs, n.lost_runs,
            n.lost);
  table_line(d,
             "%s: %zu run%s, all as they were written in %s; %zu damaged runs and %zu other "
             "records were left behind, and there may be more that could not be seen",
             to, n.runs, n.runs == 1 ? "" : "s", from, n.lost_runs, n.lost);
  table_line(d, "The same sweep into %s makes what is missing again.", to);
  return report_table(d, TABLE_AS_TEXT, json, err);
}

static gl_status run_check(const command *self, int argc, char **argv, gl_error *err) {
  const char *to = NULL;
  int repair = 0, json = 0;
  const args_option options[] = {
      {"repair", 0, ARGS_FLAG, NULL, "remove what is damaged", &repair},
      {"salvage", 0, ARGS_TEXT, "NEW.db", "copy what is whole into a new study", &to},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  args a;
  gl_status status =
      args_parse(&a, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (repair && to != NULL)
      status = gl_fail(err, GL_EINPUT,
                       "--repair changes the file and --salvage leaves it alone; "
                       "give one of them");
    else if (to != NULL)
      status = salvage(a.words[0], to, json, err);
    else
      status = check_study(a.words[0], repair, json, err);
  }
  args_fini(&a);
  return status;
}

const command command_check = {
    .name = "study check",
    .arguments = "STUDY.db",
    .words = {ARGS_RUNS, 1, 1, false},
    .summary = "whether a study is as it was written; --repair, --salvage",
    .about =
        "Compares every record with its checksum and every key with the recipe that it is the\n"
        "hash of, and checks the structure of the file. Each damage is listed, and the exit\n"
        "code is 1 if there is any.\n"
        "--repair removes damaged runs and records, and says how each kind is made again,\n"
        "mostly by the same sweep. If the structure of the file is damaged, --salvage copies\n"
        "every readable run with a correct checksum into a new study.",
    .examples = "  gepolab study check study.db && cp study.db archive/\n"
                "  gepolab study check study.db --repair\n"
                "  gepolab study check study.db --salvage saved.db",
    .run = run_check};
