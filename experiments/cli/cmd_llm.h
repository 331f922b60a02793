/* The words of `gepolab llm`; each cmd_llm_*.c defines one or two. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_LLM_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_LLM_H

#include "experiments/base/command.h"

extern const command command_llm_info, command_llm_sft, command_llm_rl, command_llm_eval,
    command_llm_generate, command_llm_profile;

#endif
