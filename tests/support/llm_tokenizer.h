/* The small tokenizer.json of the golden files, and changes to it. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_TOKENIZER_H
#define GEPOLAB_TESTS_SUPPORT_LLM_TOKENIZER_H

#include "llm/text/tokenizer.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>

/* A JSON file that must be there; the caller deletes it. */
cJSON *json_load(const char *path);
/* Puts value (which becomes the document's) at a JSON pointer; its parent must be there. */
void json_set(cJSON *document, const char *pointer, cJSON *value);
/* What tokenizer_parse() makes of a document. */
gl_status parse_document(tokenizer **out, const cJSON *document, gl_error *err);
/* tests/golden/tokenizer.json; the caller frees it. */
tokenizer *golden_tokenizer(void);

#endif
