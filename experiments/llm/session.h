/* The input of a subcommand of `gepolab llm`: a world of kind llm, from a recipe or from a model's
 * folder, and its model.
 *
 * Besides Hugging Face's files a folder written by gepolab has gepolab.json: the world in which the
 * model was trained, so that it can be evaluated without its recipe. Any other folder gives only
 * model and tokenizer; overrides supply the rest. Prefixes: llm_session_, llm_folder_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_SESSION_H
#define GEPOLAB_EXPERIMENTS_LLM_SESSION_H

#include "core/config/config.h"
#include "core/rl/learner.h"
#include "experiments/base/args.h"
#include "experiments/recipe/recipe.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/run_spec.h"

typedef struct llm_session {
  const char *source; /* as given on the command line */
  cfg_doc *doc;
  recipe recipe;
  run_spec spec;
  int has_spec, has_task;
  /* NULL until one of the functions below makes them; borrowed from their owners: */
  backend *backend; /* the backend of the model, also before the model is made */
  model *model;
  /* Owners of backend and model: these members, or the learner if training is needed. */
  backend *own_backend;
  model *own_model;
  learner learner;
} llm_session;

/* Reads the recipe or folder a->words[0] with the overrides of a. A folder with an unknown task is
 * GL_EINPUT. With without_task it is accepted: has_task is 0 then, and spec.task is a placeholder.
 * threads: 0 for all cores. Release with llm_session_fini() in any case. */
gl_status llm_session_init(llm_session *s, args *a, size_t threads, int without_task,
                           gl_error *err);
/* Prints warnings about the session's models (llm_note) on standard error. */
void llm_session_print(const llm_session *s);
/* Sets another field of the recipe after llm_session_init(), and reads the recipe again. */
gl_status llm_session_override(llm_session *s, const char *assignment, gl_error *err);
void llm_session_fini(llm_session *s);

/* Opens the backend and computes the memory that the recipe's training and generation need on it.
 */
gl_status llm_session_need(memory_need *out, llm_session *s, gl_error *err);
/* Makes the model for generation: loads its parameters from its folder, or initialises them and
 * runs the recipe's warm-up, if it has one. */
gl_status llm_session_model(llm_session *s, gl_error *err);
/* Makes the recipe's learner with its model. watch (NULL: none) observes the warm-up, which is then
 * run even if a cached result exists. */
gl_status llm_session_learner(llm_session *s, const llm_watch *watch, gl_error *err);

/* Writes a description such as "25248 parameters, float32 on AMD EPYC, 2 threads" and returns text.
 * Needs a backend. */
enum { LLM_ABOUT_SIZE = 256 };
const char *llm_session_about(const llm_session *s, char text[LLM_ABOUT_SIZE]);

/* --- writing a model's folder --- */
/* A model's folder as gepolab writes it: Hugging Face's config.json and model.safetensors;
 * tokenizer.json, if the model was trained with one; and gepolab.json, the world in which it was
 * trained. With the last one `gepolab llm eval FOLDER` needs no recipe. */

/* Makes the folder if it does not exist (then *made is 1) and tests whether it is writable and
 * has none of the files of a model, so that these errors are found before training. Errors: GL_EIO,
 * GL_EINPUT (the message gives folder, reason and remedy). */
gl_status llm_folder_prepare(const char *folder, int *made, gl_error *err);
/* To be called after an error: removes the folder if llm_folder_prepare() made it (made is 1) and
 * it is empty. */
void llm_folder_abandon(const char *folder, int made);
/* Writes all files; doc is the model's recipe. Existing files are replaced one by one, each
 * atomically. */
gl_status llm_folder_save(const char *folder, const cfg_doc *doc, const run_spec *spec,
                          const model *m, gl_error *err);

#endif
