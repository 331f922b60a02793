/* gepolab llm info: what a world of kind llm is and what memory it needs. */
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/llm/session.h"
#include "llm/learner/memory_need.h"

#include <stdio.h>

typedef struct memory_row {
  const char *name;
  size_t bytes;
} memory_row;

enum { N_ROWS = 8 };

static void list_memory(memory_row row[N_ROWS], const memory_need *n) {
  const memory_row all[N_ROWS] = {
      {"parameters", n->parameters},   {"gradients", n->gradients},
      {"moments", n->moments},         {"reference", n->reference},
      {"activations", n->activations}, {"generation", n->generation},
      {"scratch", n->scratch},         {"total", n->total},
  };
  for (size_t i = 0; i < N_ROWS; ++i) row[i] = all[i];
}

/* --- as text --- */

static void print_model(const llm_session *s) {
  const model_config *c = &s->spec.model;
  char about[LLM_ABOUT_SIZE];
  printf("%s: %s\n", shown(s->source).text, shown(llm_session_about(s, about)).text);
  printf(
      "  model        %zu layers of %zu, %zu heads (%zu for keys and values) of %zu, feed-forward "
      "%zu\n"
      "               vocabulary %zu, context %zu, output embedding %s\n",
      c->layers, c->hidden, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
      c->max_positions, c->tied ? "tied" : "of its own");
  if (s->spec.folder != NULL)
    printf("  starts from  %s\n", shown(s->spec.folder).text);
  else
    printf("  starts from  parameters drawn from seed %llu\n", (unsigned long long)s->recipe.seed);
  if (c->unknown[0] != '\0')
    printf("  config.json  keys that are not known and passed over: %s\n", shown(c->unknown).text);
  if (s->spec.warmup.steps > 0)
    printf("  warm-up      %zu steps of %zu problems\n", s->spec.warmup.steps,
           s->spec.warmup.batch);
  printf("  tokenizer    %s, %zu tokens%s%s\n", tokenizer_kind(s->spec.tokenizer),
         tokenizer_size(s->spec.tokenizer), s->spec.tokenizer_path != NULL ? ", " : "",
         shown(s->spec.tokenizer_path).text);
  if (s->has_task)
    printf("  task         %s, responses of up to %zu tokens, %zu held-out problems\n",
           task_kind(s->spec.task), s->spec.max_tokens, s->spec.eval.prompts);
  else
    printf("  task         not known; responses of up to %zu tokens\n", s->spec.max_tokens);
}

static void model_print_memory(const memory_need *n, const backend *on) {
  memory_row row[N_ROWS];
  list_memory(row, n);
  if (n->devices > 1)
    printf("  memory       MiB on each of %zu devices\n", n->devices);
  else
    puts("  memory       MiB");
  for (size_t i = 0; i < N_ROWS; ++i) {
    printf("    %-11s %9.1f", row[i].name, (double)row[i].bytes / 0x1p20);
    if (i == 4) printf("  micro-batches of %zu tokens", n->micro_batch);
    if (i == 5) printf("  %zu sequences of %zu positions side by side", n->slots, n->capacity);
    putchar('\n');
  }
  printf("    %-11s %9.1f  of %.1f\n", "free", (double)n->device_free / 0x1p20,
         (double)n->device_total / 0x1p20);
  printf("  each version that a coupled clock holds adds %.1f MiB; %zu find room beside a step%s\n",
         (double)n->one_version / 0x1p20, n->versions,
         on->kind == BACKEND_CUDA ? ",\n  later ones in pinned memory of the host" : "");
}

/* --- as JSON --- */

static int model_json(cJSON *d, const llm_session *s) {
  const model_config *c = &s->spec.model;
  cJSON *m = cJSON_AddObjectToObject(d, "model");
  const struct {
    const char *name;
    size_t value;
  } sizes[] = {{"parameters", model_config_parameters(c)},
               {"layers", c->layers},
               {"hidden", c->hidden},
               {"intermediate", c->intermediate},
               {"heads", c->heads},
               {"kv_heads", c->kv_heads},
               {"head_dim", c->head_dim},
               {"vocabulary", c->vocabulary},
               {"context", c->max_positions}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && m != NULL; ++i)
    if (json_add_number(m, sizes[i].name, (double)sizes[i].value) == NULL) m = NULL;
  return m != NULL && cJSON_AddBoolToObject(m, "tied", c->tied) != NULL &&
         json_add_string(m, "unknown_keys", c->unknown) != NULL;
}

static int memory_json(cJSON *d, const memory_need *n) {
  memory_row row[N_ROWS];
  cJSON *m = cJSON_AddObjectToObject(d, "memory_bytes");
  list_memory(row, n);
  for (size_t i = 0; i < N_ROWS && m != NULL; ++i)
    if (json_add_number(m, row[i].name, (double)row[i].bytes) == NULL) m = NULL;
  return m != NULL && json_add_number(m, "held_version", (double)n->one_version) != NULL &&
         json_add_number(m, "versions_beside_step", (double)n->versions) != NULL &&
         json_add_number(m, "free", (double)n->device_free) != NULL &&
         json_add_number(m, "device", (double)n->device_total) != NULL;
}

static gl_status model_print_json(const llm_session *s, const memory_need *n, gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  int ok =
      d != NULL && json_add_string(d, "source", s->source) != NULL &&
      json_add_string(d, "backend", s->backend->kind == BACKEND_CUDA ? "cuda" : "cpu") != NULL &&
      json_add_string(d, "device", s->backend->device) != NULL &&
      json_add_string(d, "tokenizer", tokenizer_kind(s->spec.tokenizer)) != NULL &&
      json_add_string(d, "task", s->has_task ? task_kind(s->spec.task) : "") != NULL &&
      json_add_number(d, "max_tokens", (double)s->spec.max_tokens) != NULL &&
      json_add_number(d, "devices", (double)n->devices) != NULL &&
      json_add_number(d, "slots", (double)n->slots) != NULL &&
      json_add_number(d, "micro_batch", (double)n->micro_batch) != NULL && model_json(d, s) &&
      memory_json(d, n) && cJSON_AddBoolToObject(d, "fits", n->total <= n->device_free) != NULL;
  return report_json_if(ok, d, err);
}

/* --- the command --- */

static gl_status run_llm_info(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    llm_session s;
    memory_need n;
    status = llm_session_init(&s, &a, 0, 1, err);
    if (status == GL_OK) status = llm_session_need(&n, &s, err);
    if (status == GL_OK && json) status = model_print_json(&s, &n, err);
    if (status == GL_OK && !json) {
      print_model(&s);
      model_print_memory(&n, s.backend);
    }
    if (status == GL_OK) status = memory_need_check(&n, &s.spec, s.backend, err);
    llm_session_fini(&s);
  }
  args_fini(&a);
  return status;
}

const command command_llm_info = {
    .name = "llm info",
    .arguments = "RECIPE|FOLDER [key=value …]",
    .summary = "size, tokenizer, task, and whether the memory needed is there",
    .about =
        "Takes no memory itself and starts nothing. `activations` are those of training or of\n"
        "prompts, whichever are more: one memory serves both and stays, so `total` is the sum of\n"
        "all rows. What does not fit is refused (exit 1) with what to lower; `run`, `llm sft` and\n"
        "`llm rl` refuse it the same way before they start.",
    .examples = "  gepolab llm info llm_quick\n"
                "  gepolab llm info Qwen3-0.6B/ world.backend=cuda world.dtype=bfloat16 --json",
    .run = run_llm_info};
