/* What a table says, as text and as JSON. */
#ifndef GEPOLAB_TESTS_SUPPORT_TABLES_H
#define GEPOLAB_TESTS_SUPPORT_TABLES_H

#include "core/base/table.h"

#include <stdbool.h>

/* On the heap. */
char *written_table(const table *t, table_format form);
/* Whether the text has these words, which lines may divide. */
bool table_says(const char *text, const char *words);
/* As a reader gets it: written and read again. */
cJSON *read_table(const table *t);

#endif
