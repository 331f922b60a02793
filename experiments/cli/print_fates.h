/* What became of the responses of a run, as gepolab run prints it. Inside experiments/cli only. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_PRINT_FATES_H
#define GEPOLAB_EXPERIMENTS_CLI_PRINT_FATES_H

#include "core/store/store.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

/* An array "fates" of what was drawn and of each fate, and what of each quarter of prompts and of
 * each length was drawn and trained; nothing for n 0. 0 if memory is short. */
int fates_to_json(cJSON *to, const fate_record *fates, size_t n);
/* The same as tables; nothing for n 0. */
void fates_print(const fate_record *fates, size_t n, FILE *to);

#endif
