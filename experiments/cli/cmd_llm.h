/* The words of `gepolab llm`, each a command of its own, defined in cmd_llm_WORD.c. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_LLM_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_LLM_H

#include "experiments/base/command.h"

#define LLM_WORD(name) extern const command command_llm_##name;
#include "experiments/cli/cmd_llm_words.h"
#undef LLM_WORD

#endif
