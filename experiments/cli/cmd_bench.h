/* The words of `gepolab bench` that are commands of their own, and how numbers are shown. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H

#include "experiments/base/command.h"

#include "experiments/bench/bench.h"

#include <cjson/cJSON.h>

extern const command command_bench_gpu;

/* The table's head and lines, on stdout. */
void bench_print(const bench *b);
/* All numbers as a tree, which the caller deletes; NULL: memory is short. */
cJSON *bench_document(const bench *b);

#endif
