/* A number that identifies this build of the program, kept with checkpoints and caches. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_BUILD_H
#define GEPOLAB_EXPERIMENTS_BASE_BUILD_H

#include <stdint.h>

/* A hash of the build identifier that the linker put into the program (--build-id), which differs
 * between programs of different code or data and is the same for every copy of one. 0 where the
 * program carries none. */
uint64_t build_number(void);

#endif
