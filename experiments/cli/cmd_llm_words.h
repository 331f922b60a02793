/* The words of `gepolab llm`, in the order of its help: LLM_WORD(name) for a file cmd_llm_NAME.c
 * that defines `const command command_llm_name`. No include guard: who includes this says what the
 * lines become. */
LLM_WORD(info)
LLM_WORD(tasks)
LLM_WORD(sft)
LLM_WORD(rl)
LLM_WORD(eval)
LLM_WORD(generate)
LLM_WORD(answer)
LLM_WORD(profile)
LLM_WORD(bias)
