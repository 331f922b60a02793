/* Lists of different texts, in the order in which they came. */
#ifndef GEPOLAB_ANALYSIS_TEXT_LIST_H
#define GEPOLAB_ANALYSIS_TEXT_LIST_H

#include <stddef.h>

/* Where the text stands in list[n]; n: nowhere. */
size_t text_list_find(const char *const *list, size_t n, const char *text);
/* The same after it has been put at the end where it was nowhere. The list has room for it, and
 * borrows it. */
size_t text_list_add(const char **list, size_t *n, const char *text);

#endif
