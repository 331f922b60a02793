/* What a subcommand of `gepolab llm` works on: a world of kind llm, from a recipe or from a model's
 * folder, and the model in it.
 *
 * A folder that gepolab wrote holds, besides Hugging Face's files, gepolab.json: the world it was
 * trained in, so that it can be evaluated without its recipe. Of any other folder only model and
 * tokenizer are known; overrides say the rest. Prefixes: llm_session_, llm_folder_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_SESSION_H
#define GEPOLAB_EXPERIMENTS_LLM_SESSION_H

#include "core/config/config.h"
#include "core/rl/learner.h"
#include "experiments/base/args.h"
#include "experiments/recipe/recipe.h"
#include "llm/learner/run_spec.h"
#include "llm/llm.h"

typedef struct llm_session {
  const char *source; /* as named on the command line */
  cfg_doc *doc;
  recipe recipe;
  run_spec spec;
  int has_spec, has_task;
  /* NULL until one of the functions below makes them; borrowed from their owners: */
  backend *backend; /* where the model is, or would be */
  model *model;
  /* the session itself, or a learner where training is needed */
  backend *own_backend;
  model *own_model;
  learner learner;
} llm_session;

/* Reads recipe or folder a->words[0] with the overrides of a. without_task: a folder whose task is
 * not known is taken as it is (has_task 0, and spec.task stands for nothing); else that is
 * GL_EINPUT. threads: 0 for all cores. Release with llm_session_fini() in any case. */
gl_status llm_session_init(llm_session *s, const args *a, size_t threads, int without_task,
                           gl_error *err);
/* Tells on standard error what the user should know of the session's models (llm_note). */
void llm_session_tell(const llm_session *s);
/* Sets another field of the recipe after llm_session_init() and reads the recipe again. */
gl_status llm_session_override(llm_session *s, const char *assignment, gl_error *err);
void llm_session_fini(llm_session *s);

/* Opens the backend and computes what memory the recipe's training and generation need there. */
gl_status llm_session_need(memory_need *out, llm_session *s, gl_error *err);
/* The model with its parameters, to answer: read from its folder, or drawn, and warmed up where the
 * recipe says so. */
gl_status llm_session_model(llm_session *s, gl_error *err);
/* The recipe's learner, and the model in it. watch (NULL: none) sees its warm-up, which is then
 * really made, not taken from where it was kept. */
gl_status llm_session_learner(llm_session *s, const llm_watch *watch, gl_error *err);

/* "25248 parameters, float32 on AMD EPYC, 2 threads": returns text. Needs a backend. */
enum { LLM_ABOUT_SIZE = 256 };
const char *llm_session_about(const llm_session *s, char text[LLM_ABOUT_SIZE]);

/* --- writing a model's folder --- */
/* A model's folder as gepolab writes it: Hugging Face's config.json and model.safetensors, the
 * tokenizer.json it was trained with where it has one, and gepolab.json, the world it was trained
 * in, with which `gepolab llm eval FOLDER` needs no recipe. */

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
