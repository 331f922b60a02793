/* Writing JSON: numbers in the shortest decimal form that reads back to the same double, as in CSV;
 * NaN and infinities, which JSON does not have, become null. json_read.h and json_tree.h read. */
#ifndef GEPOLAB_CORE_BASE_JSON_H
#define GEPOLAB_CORE_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

enum { NUMBER_TEXT_SIZE = 32 };
/* Writes the shortest round-trip form ("0.1", "1e-05", "3") into text and returns it. "nan", "inf"
 * and "-inf" for the rest. */
char *number_text(double value, char text[NUMBER_TEXT_SIZE]);

/* Adds a number (raw shortest form, or null) to an object or an array (key NULL). Returns the item
 * or NULL if memory is short. */
cJSON *json_add_number(cJSON *to, const char *key, double value);
cJSON *json_add_numbers(cJSON *to, const char *key, const double *values, size_t n);
/* A new object at the end of an array, or NULL if memory is short. */
cJSON *json_append_object(cJSON *array);
cJSON *json_add_string(cJSON *to, const char *key, const char *value);

#endif
