/* How `gepolab bench` and `gepolab bench gpu` show numbers. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H

#include "experiments/bench/bench.h"

#include <cjson/cJSON.h>

/* The table's head and lines, on stdout. */
void bench_print(const bench *b);
/* All numbers as a tree, which the caller deletes; NULL: memory is short. */
cJSON *bench_document(const bench *b);

#endif
