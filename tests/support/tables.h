/* What a table says, as text and as JSON. */
#ifndef GEPOLAB_TESTS_SUPPORT_TABLES_H
#define GEPOLAB_TESTS_SUPPORT_TABLES_H

#include "core/base/table.h"

/* On the heap. */
char *written_table(const table *t, table_format form);
/* As a reader gets it: written and read again. */
cJSON *read_table(const table *t);

#endif
