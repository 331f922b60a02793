/* Members of JSON that the program wrote, by dotted paths: "axes.0.name". */
#ifndef GEPOLAB_TESTS_SUPPORT_JSON_H
#define GEPOLAB_TESTS_SUPPORT_JSON_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL if there is none. A path that is itself a key ("optimizer.lr") names that key; in arrays a
 * part of the path is an index. */
static inline const cJSON *member_at(const cJSON *json, const char *path) {
  while (json != NULL && *path != '\0') {
    const cJSON *whole = cJSON_GetObjectItemCaseSensitive(json, path);
    if (whole != NULL) return whole;
    char part[64];
    const size_t n = strcspn(path, ".");
    snprintf(part, sizeof part, "%.*s", (int)n, path);
    json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(part))
                               : cJSON_GetObjectItemCaseSensitive(json, part);
    path += n + (path[n] == '.');
  }
  return json;
}

/* NaN if it is no number. */
static inline double number_at(const cJSON *json, const char *path) {
  const cJSON *item = member_at(json, path);
  if (cJSON_IsRaw(item)) return strtod(item->valuestring, NULL);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* "" if it is no text. */
static inline const char *text_at(const cJSON *json, const char *path) {
  const cJSON *item = member_at(json, path);
  return cJSON_IsString(item) ? item->valuestring : "";
}

static inline int is_true_at(const cJSON *json, const char *path) {
  return cJSON_IsTrue(member_at(json, path));
}

#endif
