/* Exponentials of many numbers. */
#ifndef GEPOLAB_CORE_BASE_VECTOR_EXP_H
#define GEPOLAB_CORE_BASE_VECTOR_EXP_H

#include <stddef.h>

/* out[k] = e^x[k] for all n, which is the same array or another one that does not overlap. Within
 * 1.1 units in the last place; 1 for 0; infinity, 0 and not-a-number as exp() has them. A number's
 * bits depend neither on its place nor on the machine. */
void vector_exp(const double *x, size_t n, double *out);

#endif
