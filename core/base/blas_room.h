/* Room for OpenBLAS's working memory.
 *
 * A routine of OpenBLAS takes a working buffer, which it asks the system for when none of those it
 * has is free. Versions before 0.3.30 ask again without end where the system refuses (a limit on
 * the address space, `ulimit -v`, or on the data segment). So whoever is going to call it makes
 * sure of the buffers first; OpenBLAS keeps them until the process ends. Prefix: blas_. */
#ifndef GEPOLAB_CORE_BASE_BLAS_ROOM_H
#define GEPOLAB_CORE_BASE_BLAS_ROOM_H

#include "core/base/error.h"

#include <stddef.h>

/* Makes OpenBLAS compute with the calling thread alone, in the whole process, and gives it buffers
 * for `threads` threads that call it at the same time. GL_ENOMEM, with what is needed and the
 * limit, where there is no room for them. A BLAS that is not OpenBLAS is left alone. Not while
 * another thread calls a BLAS routine. */
gl_status blas_reserve(size_t threads, gl_error *err);

#endif
