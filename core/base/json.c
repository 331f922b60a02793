/* Writes numbers and strings into JSON. */
#include "core/base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

char *number_text(double value, char text[NUMBER_TEXT_SIZE]) {
  if (isnan(value)) {
    snprintf(text, NUMBER_TEXT_SIZE, "nan");
    return text;
  }
  /* %g drops trailing zeros, so 15 digits already give every shorter form of a normal number, and
   * 17 always read back; a subnormal one has fewer digits to tell. */
  for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; ++digits) {
    snprintf(text, NUMBER_TEXT_SIZE, "%.*g", digits, value);
    if (isinf(value) || strtod(text, NULL) == value) break;
  }
  return text;
}

/* Hangs item under key (or onto an array) and returns it; deletes it and returns NULL on failure.
 */
static cJSON *attach(cJSON *to, const char *key, cJSON *item) {
  if (item == NULL) return NULL;
  if (key != NULL ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item))
    return item;
  cJSON_Delete(item);
  return NULL;
}

static cJSON *number_item(double value) {
  char text[NUMBER_TEXT_SIZE];
  return isfinite(value) ? cJSON_CreateRaw(number_text(value, text)) : cJSON_CreateNull();
}

cJSON *json_add_number(cJSON *to, const char *key, double value) {
  return attach(to, key, number_item(value));
}

cJSON *json_add_numbers(cJSON *to, const char *key, const double *values, size_t n) {
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; array != NULL && i < n; ++i)
    if (json_add_number(array, NULL, values[i]) == NULL) {
      cJSON_Delete(array);
      array = NULL;
    }
  return attach(to, key, array);
}

cJSON *json_add_string(cJSON *to, const char *key, const char *value) {
  return attach(to, key, cJSON_CreateString(value));
}

cJSON *json_append_object(cJSON *array) {
  cJSON *o = cJSON_CreateObject();
  if (o && cJSON_AddItemToArray(array, o)) return o;
  cJSON_Delete(o);
  return NULL;
}
