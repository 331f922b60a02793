/* Which build of the program this is. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_BUILD_H
#define GEPOLAB_EXPERIMENTS_BASE_BUILD_H

#include <stdint.h>

/* A number that differs between builds that differ in anything, made of the identifier that the
 * linker puts into the program; 0 where it put none. Copies of a program are one build. */
uint64_t build_number(void);

#endif
