/* Another name of program.h, for files that still include it. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_BUILD_H
#define GEPOLAB_EXPERIMENTS_BASE_BUILD_H

#include "experiments/base/program.h"

#endif
