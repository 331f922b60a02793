/* Writes JSON as YAML that is readable and that `gepolab` can parse. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_YAML_H
#define GEPOLAB_EXPERIMENTS_REPORT_YAML_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Writes an object's members as block YAML: first the n keys of `first`, then the others in their
 * order. Short maps and lists stay on one line; words are quoted where YAML requires it. Write
 * errors are kept by the stream. */
void yaml_write(const cJSON *map, const char *const *first, size_t n, FILE *to);

#endif
