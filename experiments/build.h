/* Which build of the program this is. */
#ifndef GEPOLAB_EXPERIMENTS_BUILD_H
#define GEPOLAB_EXPERIMENTS_BUILD_H

#include <stdint.h>

/* Checksum of the program's file; 0 where it cannot be read. Copies of a file are one build. */
uint64_t build_checksum(void);

#endif
