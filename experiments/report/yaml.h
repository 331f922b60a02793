/* JSON as YAML that a person reads and `gepolab` reads back. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_YAML_H
#define GEPOLAB_EXPERIMENTS_REPORT_YAML_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Writes the members of an object as block YAML, in the order of `first` (n keys) and then their
 * own. Short maps and lists stay on their line; words are quoted where YAML would take them for
 * something else. Trouble stays in the stream. */
void yaml_write(const cJSON *map, const char *const *first, size_t n, FILE *to);

#endif
