/* gepolab llm rl: what `gepolab run` does with a transformer, and the model it ends with. */
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/cli/cmd_run.h"
#include "experiments/llm/folder.h"
#include "experiments/llm/session.h"

typedef struct rl_end {
  const llm_session *session;
  const char *folder;
} rl_end;

static gl_status save_model(void *self, const learner *l, gl_error *err) {
  const rl_end *end = self;
  const llm_session *s = end->session;
  return llm_folder_save(end->folder, s->doc, &s->spec, llm_learner_model(l), err);
}

static gl_status rl_session(llm_session *s, run_options *q, const char *folder, gl_error *err) {
  rl_end end = {s, folder};
  int made = 0;
  if (folder == NULL) return run_recipe(s->doc, &s->recipe, q, err);
  gl_status status = llm_folder_prepare(folder, &made, err);
  if (status != GL_OK) return status;
  q->at_end = save_model;
  q->self = &end;
  status = run_recipe(s->doc, &s->recipe, q, err);
  if (status != GL_OK) llm_folder_abandon(folder, made);
  return status;
}

static gl_status run_rl(const command *self, int argc, char **argv, gl_error *err) {
  run_options q = {0};
  const char *folder = NULL;
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where the model goes after the last update", &folder},
      {"study", 0, ARGS_TEXT, "FILE.db", "keep the run in this study file", &q.file},
      {"checkpoint", 0, ARGS_TEXT, "DIR", "keep checkpoints there, and go on from them",
       &q.checkpoints},
      {"checkpoint-every", 0, ARGS_COUNT, "N", "one every N updates (default: 300 s)", &q.every},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &q.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &q.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the summary as JSON", &q.json}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    llm_session s;
    status = llm_session_init(&s, &a, q.threads, 0, err);
    if (status == GL_OK) status = rl_session(&s, &q, folder, err);
    llm_session_fini(&s);
  }
  args_fini(&a);
  return status;
}

const command command_llm_rl = {
    .name = "llm rl",
    .arguments = "RECIPE|FOLDER [-o FOLDER] [key=value …]",
    .summary = "reinforcement learning under a recipe's delays; keeps the model",
    .about = "What `gepolab run` does, with a folder for the model the last update leaves, as `llm "
             "sft`\n"
             "writes it. Starting from a FOLDER, what the recipe would say is given by overrides.\n"
             "With --checkpoint the same command goes on after Ctrl-C, kill or a crash.",
    .examples =
        "  gepolab llm rl llm_quick -o trained/\n"
        "  gepolab llm rl llm_quick algorithm=gepo cluster.max_delay=600 --study runs.db\n"
        "  gepolab llm rl warm/ -o trained/ steps=200 optimizer.lr=1e-3 --checkpoint going/",
    .run = run_rl};
