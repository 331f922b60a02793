/* The words of `gepolab bench` that are commands of their own. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_BENCH_H

#include "experiments/base/command.h"

extern const command command_bench_gpu;

#endif
