/* Reads the `world` section of kind llm: model, task, warm-up, evaluation, place of computation. */
#include "llm/learner/run_spec.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/fields.h"
#include "llm/learner/llm_learner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A complaint about a file that the section names, with the place where it names it. */
static gl_status blame(const cfg_node *at, const gl_error *why, gl_error *err) {
  if (why->status == GL_ENOMEM) return gl_fail(err, GL_ENOMEM, "%s", why->text);
  return cfg_fail(at, err, "%s", why->text);
}

/* --- warm-up and evaluation --- */

static gl_status read_warmup(warmup_spec *w, const cfg_node *node, gl_error *err) {
  optimizer_spec *o = &w->optimizer;
  cfg_reader r;
  cfg_begin(&r, node, "world.warmup", err);
  w->steps = field_count(&r, "steps");
  w->batch = field_count(&r, "batch");
  o->kind = OPTIMIZER_ADAMW;
  o->lr = field_real(&r, "lr");
  o->beta1 = field_real(&r, "beta1");
  o->beta2 = field_real(&r, "beta2");
  o->eps = field_real(&r, "eps");
  o->weight_decay = field_real(&r, "weight_decay");
  o->clip_grad_norm = field_real(&r, "clip_grad_norm");
  o->warmup = cfg_count(&r, "rise", w->steps / 20, 0, w->steps);
  o->decay = (lr_decay)field_choice(&r, "decay");
  w->until = cfg_has(&r, "until") ? field_real_or(&r, "until", 0) : NAN;
  w->check_every = field_count(&r, "check_every");
  w->cache = field_flag(&r, "cache");
  return cfg_end(&r);
}

const evaluation_kind llm_evaluations[LLM_EVALUATIONS] = {EVALUATION_GREEDY, EVALUATION_SAMPLED};

static void read_evaluation(run_spec *s, cfg_reader *world) {
  eval_spec *e = &s->eval;
  cfg_reader r;
  if (world->status == GL_OK && cfg_has(world, "eval"))
    world->status = cfg_fail(cfg_find(world->map, "eval"), world->err,
                             "world.eval is called world.evaluation now, {kind: greedy | sampled, "
                             "temperature, top_k, top_p, prompts, samples}: what was samples: 0 is "
                             "kind: greedy, and other numbers of samples need kind: sampled");
  evaluation_read(&e->how, world, &r, llm_evaluations, LLM_EVALUATIONS);
  evaluation_sets_read(&s->sets, &r);
  e->prompts = field_count(&r, "prompts");
  e->samples = field_count(&r, "samples");
  if (r.status == GL_OK && e->how.kind == EVALUATION_GREEDY && cfg_has(&r, "samples"))
    r.status = cfg_fail(cfg_child(&r, "samples"), r.err,
                        "a greedy evaluation has one response to a problem; leave samples out, or "
                        "say kind: sampled");
  if (world->status == GL_OK) world->status = cfg_end(&r);
}

gl_status run_spec_bound_evaluation(eval_spec *e, const task *of, const cfg_node *at,
                                    gl_error *err) {
  size_t size = task_size(of, TASK_HELD_OUT);
  if (size < e->prompts) e->prompts = size;
  if (size == 0)
    return cfg_fail(at, err,
                    "the task has no held-out problems to evaluate on; give it some (task: "
                    "{held_out: 0.1, …})");
  return GL_OK;
}

/* --- the model --- */

static char *joined(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

static int folder_has(const char *folder, const char *name) {
  char *path = joined(folder, name);
  int has = path != NULL && access(path, F_OK) == 0;
  free(path);
  return has;
}

/* The configuration of a checkpoint's folder, whose parameters must be there too. */
static gl_status read_folder(model_config *out, char **folder, const cfg_node *at, uint64_t seed,
                             gl_error *err) {
  gl_error why = {0};
  *folder = run_spec_folder(at, seed);
  char *config = *folder != NULL ? joined(*folder, "config.json") : NULL;
  if (config == NULL) return gl_fail_memory(err, "a model's folder");
  gl_status status = GL_OK;
  if (access(*folder, F_OK) != 0)
    status = cfg_fail(at, err,
                      "there is no folder '%.300s'; it should hold config.json, model.safetensors "
                      "and tokenizer.json as Hugging Face writes them",
                      *folder);
  else if (model_config_load(out, config, &why) != GL_OK)
    status = blame(at, &why, err);
  else if (!folder_has(*folder, "model.safetensors") &&
           !folder_has(*folder, "model.safetensors.index.json"))
    status = cfg_fail(at, err,
                      "the folder '%.300s' has no parameters: neither model.safetensors nor "
                      "model.safetensors.index.json is there",
                      *folder);
  free(config);
  return status;
}

static gl_status read_path(run_spec *s, const cfg_node *section, uint64_t seed, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, section, "world.model", err);
  const cfg_node *at = cfg_child(&r, "path");
  const char *start = field_text(&r, "checksum");
  if (cfg_end(&r) != GL_OK) return r.status;
  if (cfg_kind_of(at) != CFG_SCALAR || *cfg_text(at) == '\0')
    return cfg_fail(at, err, "world.model.path must be the name of a folder");
  s->start = start != NULL ? strdup(start) : NULL;
  if (start != NULL && s->start == NULL) return gl_fail_memory(err, "a model's checksum");
  return read_folder(&s->model, &s->folder, at, seed, err);
}

static gl_status read_reference(run_spec *s, const cfg_node *node, uint64_t seed, gl_error *err) {
  s->has_reference = node != NULL && !cfg_is_null(node);
  if (!s->has_reference || strcmp(cfg_text(node), "initial") == 0) return GL_OK;
  if (cfg_kind_of(node) != CFG_SCALAR || *cfg_text(node) == '\0')
    return cfg_fail(node, err, "world.reference must be initial or the name of a folder");
  model_config other;
  return read_folder(&other, &s->reference, node, seed, err);
}

/* --- notes --- */

/* Adds to text what is to be said of the folder that a node names, if anything. */
static void note_folder(const cfg_node *at, char text[LLM_NOTE_SIZE]) {
  gl_error ignored = {0}; /* llm_check() has told */
  model_config c;
  if (at == NULL || cfg_kind_of(at) != CFG_SCALAR || *cfg_text(at) == '\0') return;
  char *folder = cfg_locate(at, cfg_text(at));
  char *path = folder != NULL ? joined(folder, "config.json") : NULL;
  const size_t used = strlen(text);
  if (path != NULL && model_config_load(&c, path, &ignored) == GL_OK && c.unknown[0] != '\0')
    snprintf(text + used, LLM_NOTE_SIZE - used,
             "%s%.200s has keys that gepolab does not know and passes over: %s; if one of them "
             "changes what the model computes, results here differ from its own",
             used > 0 ? "; " : "", path, c.unknown);
  free(path);
  free(folder);
}

const char *llm_note(const cfg_node *world, char text[LLM_NOTE_SIZE]) {
  const cfg_node *kind = world != NULL ? cfg_find(world, "kind") : NULL;
  text[0] = '\0';
  if (kind == NULL || !llm_is_kind(cfg_text(kind))) return NULL;
  const cfg_node *reference = cfg_find(world, "reference");
  note_folder(cfg_find(world, "model.path"), text);
  if (reference != NULL && strcmp(cfg_text(reference), "initial") != 0)
    note_folder(reference, text);
  return text[0] != '\0' ? text : NULL;
}

/* --- the whole section --- */

static const cfg_node *present(cfg_reader *r, const char *key) {
  const cfg_node *node = cfg_child(r, key);
  return node != NULL && cfg_is_null(node) ? NULL : node;
}

/* The sub-sections as they stand in the recipe; NULL where one is missing. */
typedef struct world_nodes {
  const cfg_node *world, *model, *tokenizer, *stop, *task, *warmup, *reference;
} world_nodes;

static gl_status read_model_and_language(run_spec *s, const world_nodes *n, const char *template,
                                         uint64_t seed, gl_error *err) {
  int described = n->model == NULL || cfg_find(n->model, "path") == NULL;
  const cfg_node *start = n->model != NULL ? cfg_find(n->model, "checksum") : NULL;
  if (described && start != NULL)
    return cfg_fail(start, err,
                    "world.model.checksum is that of a folder, and this model begins from none; "
                    "give world.model.path, or leave checksum out");
  gl_status status = described ? GL_OK : read_path(s, n->model, seed, err);
  if (status == GL_OK)
    status = run_spec_read_language(s, n->world, n->tokenizer, template, n->stop, err);
  if (status != GL_OK) return status;
  const size_t size = tokenizer_size(s->tokenizer);
  if (described) return model_config_read(&s->model, n->model, size, err);
  status = run_spec_check_tokens(s, cfg_find(n->model, "path"), err);
  if (status != GL_OK || size <= s->model.vocabulary) return status;
  return cfg_fail(n->tokenizer != NULL ? n->tokenizer : n->model, err,
                  "the tokenizer has %zu tokens, the model only %zu; take the tokenizer that the "
                  "model was trained with",
                  size, s->model.vocabulary);
}

/* What the parameters mean, and nothing of how fast or where they are computed. */
static gl_status take_fingerprint(run_spec *s, const cfg_node *world, const cfg_node *sampling,
                                  gl_error *err) {
  static const char *const keys[] = {"dtype",    "model", "tokenizer", "task",
                                     "template", "stop",  "max_tokens"};
  uint64_t hash = HASH_64_START;
  for (size_t i = 0; i <= sizeof keys / sizeof *keys; ++i) {
    const int last = i == sizeof keys / sizeof *keys;
    const cfg_node *node = last ? sampling : cfg_find(world, keys[i]);
    char *text = node != NULL ? cfg_canonical(node) : strdup("-");
    if (text == NULL) return gl_fail_memory(err, "a world's fingerprint");
    hash = hash_64(hash, text, strlen(text) + 1);
    free(text);
  }
  char *config = model_config_json(&s->model);
  if (config == NULL) return gl_fail_memory(err, "a world's fingerprint");
  s->fingerprint = hash_64(hash, config, strlen(config));
  free(config);
  return GL_OK;
}

static gl_status check_place(const run_spec *s, const cfg_node *world, gl_error *err) {
  const cfg_node *at = cfg_find(world, "dtype");
  if (s->backend == BACKEND_CPU && s->dtype == NUMBER_BF16)
    return cfg_fail(at, err, "dtype: bfloat16 needs backend: cuda; the CPU has float32");
  if (s->backend == BACKEND_CUDA && s->dtype == NUMBER_F64)
    return cfg_fail(at, err, "dtype: float64 needs backend: cpu; CUDA has float32 and bfloat16");
  if (s->rounds_stochastically && s->dtype != NUMBER_BF16)
    return cfg_fail(cfg_find(world, "stochastic_rounding"), err,
                    "stochastic_rounding is for the bfloat16 copy of the parameters, which only "
                    "dtype: bfloat16 has");
  at = cfg_find(world, "tf32");
  if (s->tf32 && s->dtype != NUMBER_F32)
    return cfg_fail(at, err, "tf32: true is for dtype: float32, whose products it rounds");
  if (s->tf32 && s->backend == BACKEND_CPU)
    return cfg_fail(at, err, "tf32: true needs a GPU; take it out, or say backend: auto or cuda");
  return GL_OK;
}

/* The longest response, and room for it behind the longest prompt where the task says how long
 * prompts are. */
static gl_status bound_response(run_spec *s, const world_nodes *n, gl_error *err) {
  if (s->max_tokens == 0 && task_max_answer(s->task) == 0)
    return cfg_fail(n->world, err,
                    "world.max_tokens must be given: task %s does not bound its answers",
                    task_kind(s->task));
  if (s->max_tokens == 0) s->max_tokens = task_max_answer(s->task) + 1;
  return run_spec_check_room(s, n->model != NULL ? n->model : n->world, err);
}

gl_status run_spec_check_room(const run_spec *s, const cfg_node *at, gl_error *err) {
  const size_t prompt = (s->begin >= 0) + s->around + task_max_prompt(s->task);
  const size_t most = s->model.max_positions;
  if (s->max_tokens < most && prompt <= most - s->max_tokens) return GL_OK;
  return cfg_fail(
      at, err,
      "a prompt of up to %zu tokens and a response of up to %zu (max_tokens) do not fit "
      "into the model's context of %zu; enlarge model.context or lower max_tokens",
      prompt, s->max_tokens, most);
}

static gl_status read_world(run_spec *s, const cfg_node *world, uint64_t seed, gl_error *err) {
  static const char *const kinds[] = {"llm"};
  cfg_reader r;
  cfg_begin(&r, world, "world", err);
  cfg_choice(&r, "kind", 0, kinds, 1);
  s->backend = (backend_kind)field_choice(&r, "backend");
  s->dtype = (number_type)field_choice(&r, "dtype");
  s->devices = field_count(&r, "devices");
  s->slots = field_count(&r, "slots");
  s->micro_batch = field_count(&r, "micro_batch");
  s->recompute = field_flag(&r, "recompute");
  s->rounds_stochastically = field_flag(&r, "stochastic_rounding");
  s->tf32 = field_flag(&r, "tf32");
  s->max_tokens = field_count(&r, "max_tokens");
  const char *template = cfg_string(&r, "template", NULL);
  const world_nodes n = {world,
                         present(&r, "model"),
                         present(&r, "tokenizer"),
                         present(&r, "stop"),
                         present(&r, "task"),
                         present(&r, "warmup"),
                         present(&r, "reference")};
  read_evaluation(s, &r);
  if (cfg_end(&r) != GL_OK) return r.status;
  if (n.task == NULL) return cfg_fail(world, err, "a world of kind llm needs a task: {kind: …}");
  gl_status status = check_place(s, world, err);
  if (status == GL_OK) status = task_new(&s->task, n.task, seed, err);
  if (status == GL_OK) status = read_model_and_language(s, &n, template, seed, err);
  if (status == GL_OK) status = bound_response(s, &n, err);
  if (status == GL_OK) status = read_warmup(&s->warmup, n.warmup, err);
  if (status == GL_OK) status = run_spec_read_sets(s, world, seed, err);
  if (status == GL_OK) status = run_spec_bound_evaluation(&s->eval, s->task, n.task, err);
  return status == GL_OK ? read_reference(s, n.reference, seed, err) : status;
}

/* Whether weights need the sets of kept tokens: those that replay them, or see truncated
 * distributions that the learner computes itself. */
static int weights_need_sets(const sampling_spec *dist) {
  return dist->weights == SAMPLING_REPLAY ||
         (dist->weights == SAMPLING_TRUNCATED && dist->logq == LOGQ_LEARNER);
}

/* The shape of the sets of kept tokens, where distributions are truncated and weights need the
 * sets. For the metrics alone they are recorded where a set is a few bits of a small vocabulary. */
static gl_status read_kept(run_spec *s, const cfg_node *sampling, gl_error *err) {
  const sampling_spec *dist = &s->sampling;
  if (!sampling_truncates(dist, s->model.vocabulary)) return GL_OK;
  s->kept_for_metrics = !weights_need_sets(dist);
  if (s->kept_for_metrics && s->model.vocabulary > KEPT_MOST_BITS) return GL_OK;
  return kept_shape_of(&s->kept, dist, s->model.vocabulary, sampling, err);
}

/* A response of the other policy is scored by a forward of the sampler's, which computes as the
 * learner does. */
static gl_status check_mixture(const run_spec *s, const cfg_node *sampling, gl_error *err) {
  const sampling_behaviour *b = &s->sampling.behaviour;
  if (b->with == OTHER_NONE || (b->noise == 0 && !b->rounds_to_bfloat16)) return GL_OK;
  return cfg_fail(cfg_find(sampling, "behaviour"), err,
                  "a transformer's behaviour_mixture needs the sampler's law of responses that "
                  "another policy drew, and behaviour.%s is only known where tokens are drawn; "
                  "leave one of them away",
                  b->noise > 0 ? "noise" : "precision");
}

gl_status run_spec_init(run_spec *s, const cfg_node *world, const cfg_node *sampling, uint64_t seed,
                        gl_error *err) {
  *s = (run_spec){.begin = -1};
  fields_add(&llm_fields);
  gl_status status = sampling_parse(&s->sampling, sampling, err);
  if (status == GL_OK) status = check_mixture(s, sampling, err);
  if (status == GL_OK) status = read_world(s, world, seed, err);
  if (status == GL_OK) status = read_kept(s, sampling, err);
  if (status == GL_OK) status = take_fingerprint(s, world, sampling, err);
  if (status != GL_OK) run_spec_fini(s);
  return status;
}

void run_spec_fini(run_spec *s) {
  run_spec_free_sets(s);
  tokenizer_free(s->tokenizer);
  task_free(s->task);
  free(s->folder);
  free(s->start);
  free(s->tokenizer_path);
  free(s->before);
  free(s->after);
  free(s->stop);
  free(s->reference);
  *s = (run_spec){0};
}
