/* The words of `gepolab bench` that are commands of their own. */
#ifndef GEPOLAB_EXPERIMENTS_CMD_BENCH_H
#define GEPOLAB_EXPERIMENTS_CMD_BENCH_H

#include "experiments/command.h"

extern const command command_bench_gpu;

#endif
