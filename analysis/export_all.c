/* All tables of a study in a folder, with a description of them. */
#include "analysis/export.h"
#include "core/base/file.h"
#include "core/base/json.h"

#include <stdlib.h>
#include <string.h>

/* --- the description, a tabular data package of Frictionless Data --- */

static const char *type_name(table_type type) {
  switch (type) {
  case TABLE_TEXT:
    return "string";
  case TABLE_WHOLE:
    return "integer";
  case TABLE_REAL:
    return "number";
  case TABLE_FLAG:
    return "boolean";
  case TABLE_INTERVAL:
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
  return "";
}

static int add_field(cJSON *fields, const table_column *c) {
  cJSON *o = json_append_object(fields);
  return o != NULL && json_add_string(o, "name", c->name) != NULL &&
         json_add_string(o, "type", type_name(c->type)) != NULL &&
         (*c->unit == '\0' || json_add_string(o, "unit", c->unit) != NULL) &&
         json_add_string(o, "description", c->about) != NULL;
}

static int has_own(const export_table *t, const char *name) {
  for (size_t i = 0; i < export_columns(t); ++i)
    if (strcmp(export_column(t, i).name, name) == 0) return 1;
  return 0;
}

/* The column joins the one of the same name in another table. */
static int add_reference(cJSON *references, const char *column, const char *other) {
  cJSON *o = json_append_object(references);
  if (o == NULL || json_add_string(o, "fields", column) == NULL) return 0;
  cJSON *to = cJSON_AddObjectToObject(o, "reference");
  return to != NULL && json_add_string(to, "resource", other) != NULL &&
         json_add_string(to, "fields", column) != NULL;
}

static int add_references(cJSON *schema, const export_table *t) {
  const int of_runs = (t->lead == EXPORT_OF_RUNS || has_own(t, "key")) && strcmp(t->name, "runs");
  const int of_cells = has_own(t, "cell");
  if (!of_runs && !of_cells) return 1;
  cJSON *references = cJSON_AddArrayToObject(schema, "foreignKeys");
  return references != NULL && (!of_runs || add_reference(references, "key", "runs")) &&
         (!of_cells || add_reference(references, "cell", "cells"));
}

/* "key, step" as a list of names. */
static int add_key(cJSON *schema, const char *names) {
  cJSON *list = cJSON_AddArrayToObject(schema, "primaryKey");
  for (const char *at = names; list != NULL && *at != '\0';) {
    char name[64];
    const size_t n = strcspn(at, ",");
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    cJSON *item = cJSON_CreateString(name);
    if (item == NULL || !cJSON_AddItemToArray(list, item)) {
      cJSON_Delete(item);
      return 0;
    }
    at += n + strspn(at + n, ", ");
  }
  return list != NULL;
}

static int add_schema(cJSON *resource, const export_table *t, const run_list *runs) {
  size_t n = 0;
  table_column *columns = export_header(t, runs, &n);
  cJSON *schema = columns != NULL ? cJSON_AddObjectToObject(resource, "schema") : NULL;
  cJSON *fields = schema != NULL ? cJSON_AddArrayToObject(schema, "fields") : NULL;
  int ok = fields != NULL;
  for (size_t i = 0; i < n && ok; ++i) ok = add_field(fields, &columns[i]);
  free(columns);
  const char *const missing[] = {""};
  cJSON *none = ok ? cJSON_CreateStringArray(missing, 1) : NULL;
  return ok && cJSON_AddItemToObject(schema, "missingValues", none) && add_key(schema, t->key) &&
         add_references(schema, t);
}

static const char *media_type(records_format format) {
  switch (format) {
  case RECORDS_CSV:
    return "text/csv";
  case RECORDS_TSV:
    return "text/tab-separated-values";
  case RECORDS_JSONL:
  case RECORDS_FORMAT_COUNT:
    break;
  }
  return "application/x-ndjson";
}

static int add_resource(cJSON *resources, const export_table *t, const run_list *runs,
                        records_format format, long bytes) {
  char path[80];
  cJSON *o = json_append_object(resources);
  snprintf(path, sizeof path, "%s.%s", t->name, records_format_name(format));
  int ok = o != NULL && json_add_string(o, "profile", "tabular-data-resource") != NULL &&
           json_add_string(o, "name", t->name) != NULL &&
           json_add_string(o, "description", t->about) != NULL &&
           json_add_string(o, "path", path) != NULL &&
           json_add_string(o, "format", records_format_name(format)) != NULL &&
           json_add_string(o, "mediatype", media_type(format)) != NULL &&
           json_add_string(o, "encoding", "utf-8") != NULL &&
           json_add_number(o, "bytes", (double)bytes) != NULL;
  if (ok && format == RECORDS_TSV) {
    cJSON *dialect = cJSON_AddObjectToObject(o, "dialect");
    ok = dialect != NULL && json_add_string(dialect, "delimiter", "\t") != NULL;
  }
  return ok && add_schema(o, t, runs);
}

/* --- the files --- */

enum { MOST_FILES = 32 };

typedef struct exporting {
  const char *folder;
  records_format format;
  file_writer file[MOST_FILES]; /* [n], of the tables so far */
  size_t n;
  cJSON *package, *resources;
} exporting;

static gl_status begin_file(exporting *e, const char *name, const char *suffix, gl_error *err) {
  const size_t size = strlen(e->folder) + strlen(name) + strlen(suffix) + 3;
  char *path = malloc(size);
  if (path == NULL) return gl_fail_memory(err, "a file's name");
  snprintf(path, size, "%s/%s.%s", e->folder, name, suffix);
  gl_status status = file_begin(&e->file[e->n], path, err);
  if (status == GL_OK) ++e->n;
  free(path);
  return status;
}

static gl_status write_table(exporting *e, store *s, const export_table *t, const run_list *runs,
                             gl_error *err) {
  gl_status status = begin_file(e, t->name, records_format_name(e->format), err);
  if (status != GL_OK) return status;
  FILE *to = e->file[e->n - 1].stream;
  gl_error why = {.status = GL_OK};
  status = study_export(s, t, e->format, to, &why);
  if (status != GL_OK && ferror(to)) return file_commit(&e->file[--e->n], err); /* names the file */
  if (status != GL_OK && err != NULL) *err = why;
  if (status == GL_OK && !add_resource(e->resources, t, runs, e->format, ftell(to)))
    status = gl_fail_memory(err, "the description of a table");
  return status;
}

static gl_status write_package(exporting *e, gl_error *err) {
  gl_status status = begin_file(e, "datapackage", "json", err);
  if (status != GL_OK) return status;
  char *text = cJSON_Print(e->package);
  if (text == NULL) return gl_fail_memory(err, "the description of the tables");
  FILE *to = e->file[e->n - 1].stream;
  const int whole = fprintf(to, "%s\n", text) > 0 && fflush(to) == 0;
  cJSON_free(text);
  return whole ? GL_OK : file_commit(&e->file[--e->n], err);
}

/* All tables of one state of the file; regular files, so nobody makes this wait. */
static gl_status write_held(exporting *e, store *s, gl_error *err) {
  run_list runs = {0};
  gl_status status = store_begin_reading(s, err);
  if (status != GL_OK) return status;
  status = run_list_init(&runs, s, err);
  for (size_t i = 0; study_export_at(i) != NULL && status == GL_OK; ++i)
    if (study_export_at(i)->reproducible)
      status = write_table(e, s, study_export_at(i), &runs, err);
  store_end_reading(s);
  run_list_fini(&runs);
  return status;
}

static gl_status begin_package(exporting *e, gl_error *err) {
  e->package = cJSON_CreateObject();
  int ok = e->package != NULL &&
           json_add_string(e->package, "profile", "tabular-data-package") != NULL &&
           json_add_string(e->package, "name", "gepolab-study") != NULL;
  e->resources = ok ? cJSON_AddArrayToObject(e->package, "resources") : NULL;
  return e->resources != NULL ? GL_OK : gl_fail_memory(err, "the description of the tables");
}

gl_status study_export_all(store *s, records_format format, const char *folder, gl_error *err) {
  exporting e = {.folder = folder, .format = format};
  gl_status status = file_make_folder(folder, err);
  if (status == GL_OK) status = begin_package(&e, err);
  if (status == GL_OK) status = write_held(&e, s, err);
  if (status == GL_OK) status = write_package(&e, err);
  size_t done = 0;
  while (status == GL_OK && done < e.n) status = file_commit(&e.file[done++], err);
  while (done < e.n) file_abandon(&e.file[done++]);
  cJSON_Delete(e.package);
  return status;
}
