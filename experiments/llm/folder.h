/* A model's folder as gepolab writes it: Hugging Face's config.json and model.safetensors, the
 * tokenizer.json it was trained with where it has one, and gepolab.json, the world it was trained
 * in, with which `gepolab llm eval FOLDER` needs no recipe. Prefix: llm_folder_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_FOLDER_H
#define GEPOLAB_EXPERIMENTS_LLM_FOLDER_H

#include "core/config/config.h"
#include "llm/learner/run_spec.h"

/* folder/name, malloc'd; NULL if memory is short. */
char *llm_folder_file(const char *folder, const char *name);
/* Makes the folder if it is not there (*made is 1 then) and tries to write into it, so that a
 * folder that cannot be written is found before the training and not after it. GL_EIO naming
 * folder, reason and remedy. */
gl_status llm_folder_prepare(const char *folder, int *made, gl_error *err);
/* After a failure: removes the folder if llm_folder_prepare() made it (made is 1) and it is empty.
 */
void llm_folder_abandon(const char *folder, int made);
/* Writes all of it; doc is the recipe the model came from. Files that are there are replaced one
 * by one, each atomically. */
gl_status llm_folder_save(const char *folder, const cfg_doc *doc, const run_spec *spec,
                          const model *m, gl_error *err);

#endif
