/* How commands make JSON documents, and print them and tables. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_PRINT_JSON_H
#define GEPOLAB_EXPERIMENTS_BASE_PRINT_JSON_H

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/table.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- making documents --- */

/* These functions end the program if memory runs out (memory.h), so none of them returns NULL. */

cJSON *json_new(void);
/* Adds a new object or list to `to`: at the key, or at the end of a list (key NULL). */
cJSON *json_object(cJSON *to, const char *key);
cJSON *json_list(cJSON *to, const char *key);
/* Adds a tree made elsewhere and takes ownership of it. NULL: making it ran out of memory, which
 * ends the program. */
void json_attach(cJSON *to, const char *key, cJSON *tree);
/* Adds a text that is valid JSON. */
void json_raw(cJSON *to, const char *key, const char *text);
/* Adds members by name, as in json_put(to, "name %s, steps %zu, loss %g, complete %i", …): %s text
 * (NULL: null), %zu, %llu, %d and %g numbers (not finite: null), %i true or false. In a
 * list the conversions stand alone. */
__attribute__((format(printf, 2, 3))) void json_put(cJSON *to, const char *format, ...);
void json_number(cJSON *to, const char *key, double value);
void json_numbers(cJSON *to, const char *key, const double *values, size_t n);

/* --- printing them --- */

/* Prints a JSON document and a newline on stdout and deletes it, also after a failure. A NULL
 * document means that building it ran out of memory. */
gl_status report_json(cJSON *document, gl_error *err);
/* Prints a table on stdout and frees it, also after a failure: as JSON where is_json, else in the
 * form. */
gl_status report_table(table *t, table_format form, bool is_json, gl_error *err);

/* --- JSON as YAML --- */

/* Writes an object's members as block YAML: first the n keys of `first`, then the others in their
 * order. Short maps and lists stay on one line; words are quoted where YAML requires it. Write
 * errors are kept by the stream. */
void yaml_write(const cJSON *map, const char *const *first, size_t n, FILE *to);

#endif
