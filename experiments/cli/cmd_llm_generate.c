/* gepolab llm generate: responses to prompts, as text or with their log-probabilities. */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/llm/session.h"
#include "llm/model/generate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROMPTS = 1 << 16, PROMPT_SIZE = 1 << 20 };

/* --- prompts --- */

typedef struct prompt_list {
  char **text; /* [n] */
  size_t n;
  size_t *start; /* [n + 1] their tokens */
  int32_t *token;
} prompt_list;

static void prompt_list_fini(prompt_list *p) {
  for (size_t i = 0; i < p->n; ++i) free(p->text[i]);
  free(p->text);
  free(p->start);
  free(p->token);
}

static gl_status generate_add_prompt(prompt_list *p, const char *text, gl_error *err) {
  if (p->n == MOST_PROMPTS)
    return gl_fail(err, GL_EINPUT, "more than %d prompts; give them in parts", MOST_PROMPTS);
  p->text[p->n] = strdup(text);
  return p->text[p->n++] != NULL ? GL_OK : gl_fail_memory(err, "a prompt");
}

/* One prompt a line. */
static gl_status generate_read_prompts(prompt_list *p, FILE *from, gl_error *err) {
  char *line = NULL;
  size_t room = 0;
  ssize_t got = 0;
  gl_status status = GL_OK;
  while (status == GL_OK && (got = getline(&line, &room, from)) >= 0) {
    if (strlen(line) != (size_t)got || got > PROMPT_SIZE)
      status = gl_fail(err, GL_EINPUT, "prompt %zu on standard input is %s", p->n + 1,
                       got > PROMPT_SIZE ? "longer than 1 MiB" : "no text: it holds a zero byte");
    if (got > 0 && line[got - 1] == '\n') line[got - 1] = '\0';
    if (status == GL_OK) status = generate_add_prompt(p, line, err);
  }
  if (status == GL_OK && ferror(from))
    status = gl_fail(err, GL_EIO, "cannot read standard input: %s", strerror(errno));
  free(line);
  return status;
}

static gl_status take_prompts(prompt_list *p, const args *a, gl_error *err) {
  p->text = calloc(MOST_PROMPTS, sizeof *p->text);
  if (p->text == NULL) return gl_fail_memory(err, "the prompts");
  if (a->n_words == 1) return generate_read_prompts(p, stdin, err);
  gl_status status = GL_OK;
  for (size_t i = 1; i < a->n_words && status == GL_OK; ++i)
    status = generate_add_prompt(p, a->words[i], err);
  return status;
}

static gl_status encode_prompts(prompt_list *p, const run_spec *spec, gl_error *err) {
  p->start = calloc(p->n + 1, sizeof *p->start);
  if (p->start == NULL) return gl_fail_memory(err, "the prompts");
  for (size_t i = 0; i < p->n; ++i) {
    int32_t *token = NULL;
    size_t n = 0, at = p->start[i];
    gl_status status = run_spec_prompt(spec, p->text[i], &token, &n, err);
    int32_t *longer = status == GL_OK ? realloc(p->token, (at + n) * sizeof *longer) : NULL;
    if (longer != NULL) {
      memcpy(longer + at, token, n * sizeof *token);
      p->token = longer;
      p->start[i + 1] = at + n;
    }
    free(token);
    if (status != GL_OK) return status;
    if (longer == NULL) return gl_fail_memory(err, "the prompts");
  }
  return GL_OK;
}

/* --- what is printed --- */

static gl_status generate_decode(char **text, const llm_session *s, const generate_result *r,
                                 size_t i, gl_error *err) {
  size_t n = r->length[i];
  return tokenizer_decode(s->spec.tokenizer, r->token + i * s->spec.max_tokens,
                          n > 0 && r->finished[i] ? n - 1 : n, 0, text, NULL, err);
}

static int response_json(cJSON *list, const char *prompt, const char *text, const llm_session *s,
                         const generate_result *r, size_t i) {
  size_t n = r->length[i], at = i * s->spec.max_tokens;
  double sum = 0;
  for (size_t k = 0; k < n; ++k) sum += r->logq[at + k];
  cJSON *o = cJSON_CreateObject();
  if (o == NULL || !cJSON_AddItemToArray(list, o)) {
    cJSON_Delete(o);
    return 0;
  }
  cJSON *tokens = cJSON_AddArrayToObject(o, "tokens");
  for (size_t k = 0; k < n && tokens != NULL; ++k)
    if (json_add_number(tokens, NULL, r->token[at + k]) == NULL) return 0;
  return tokens != NULL && json_add_string(o, "prompt", prompt) != NULL &&
         json_add_string(o, "text", text) != NULL &&
         cJSON_AddBoolToObject(o, "finished", r->finished[i]) != NULL &&
         json_add_number(o, "logp", sum) != NULL &&
         json_add_numbers(o, "logprobs", r->logq + at, n) != NULL &&
         json_add_numbers(o, "logprobs_truncated", r->logq_truncated + at, n) != NULL;
}

static gl_status generate_print_json(const llm_session *s, const prompt_list *p,
                                     const generate_result *r, size_t each, gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  cJSON *list = d != NULL ? cJSON_AddArrayToObject(d, "responses") : NULL;
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->n * each && list != NULL && status == GL_OK; ++i) {
    char *text = NULL;
    status = generate_decode(&text, s, r, i, err);
    if (status == GL_OK && !response_json(list, p->text[i / each], text, s, r, i)) list = NULL;
    free(text);
  }
  if (list == NULL || status != GL_OK) {
    cJSON_Delete(d);
    d = NULL;
  }
  return status == GL_OK ? report_json(d, err) : status;
}

static gl_status generate_print_text(const llm_session *s, const prompt_list *p,
                                     const generate_result *r, size_t each, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->n * each && status == GL_OK; ++i) {
    char *text = NULL;
    status = generate_decode(&text, s, r, i, err);
    if (status == GL_OK) {
      shown_write_lines(p->text[i / each], stdout);
      shown_write_lines(text, stdout);
      puts(r->finished[i] ? "" : "…");
    }
    free(text);
  }
  return status;
}

/* --- the command --- */

typedef struct generate_options {
  size_t n, seed, threads; /* responses to each prompt; 0: none given */
  int greedy, json;
} generate_options;

/* Prompt i's responses are numbered i * each …: the first are the same however many follow. */
static gl_status respond(llm_session *s, const prompt_list *p, const generate_options *o,
                         generate_result *r, gl_error *err) {
  const size_t each = o->n, n = p->n * each;
  size_t *prompt_of = calloc(n + 1, sizeof *prompt_of), *number = calloc(n + 1, sizeof *number);
  gl_status status = GL_OK;
  if (prompt_of == NULL || number == NULL) status = gl_fail_memory(err, "the responses");
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    prompt_of[i] = i / each;
    number[i] = (i / each) << 12 | i % each;
  }
  sampling_spec dist = s->spec.sampling;
  dist.behaviour = (sampling_behaviour){.with = OTHER_NONE}; /* that is for training */
  const generate_request q = {.n_prompts = p->n,
                              .prompt_start = p->start,
                              .prompt = p->token,
                              .n_responses = n,
                              .prompt_of = prompt_of,
                              .number = number,
                              .stream =
                                  rng_stream_at(s->recipe.seed, RNG_EVAL, UINT64_MAX - o->seed),
                              .sampling = dist,
                              .greedy = o->greedy,
                              .max_tokens = s->spec.max_tokens,
                              .up_to = s->spec.max_tokens,
                              .stop = s->spec.stop,
                              .n_stop = s->spec.n_stop,
                              .slots = s->spec.slots,
                              .must_be_finite = 1};
  if (status == GL_OK) status = generate_result_init(r, n, s->spec.max_tokens, err);
  if (status == GL_OK) status = generate(s->model, &q, r, err);
  free(prompt_of);
  free(number);
  return status;
}

static gl_status generate_and_print(const args *a, const generate_options *o, gl_error *err) {
  llm_session s;
  prompt_list p = {0};
  generate_result r = {0};
  gl_status status = llm_session_init(&s, a, o->threads, 1, err);
  if (status == GL_OK) llm_session_tell(&s);
  if (status == GL_OK) status = take_prompts(&p, a, err);
  if (status == GL_OK) status = encode_prompts(&p, &s.spec, err);
  if (status == GL_OK) status = llm_session_model(&s, err);
  if (status == GL_OK) status = respond(&s, &p, o, &r, err);
  if (status == GL_OK)
    status = o->json ? generate_print_json(&s, &p, &r, o->n, err)
                     : generate_print_text(&s, &p, &r, o->n, err);
  generate_result_fini(&r);
  prompt_list_fini(&p);
  llm_session_fini(&s);
  return status;
}

static gl_status run_generate(const command *self, int argc, char **argv, gl_error *err) {
  generate_options o = {.n = 1};
  const args_option options[] = {
      {"n", 'n', ARGS_COUNT, "N", "responses to each prompt (1)", &o.n},
      {"temperature", 't', ARGS_SET, "T", "divides the logits", "sampling.temperature"},
      {"top-k", 0, ARGS_SET, "K", "only the K most probable tokens; 0: all", "sampling.top_k"},
      {"top-p", 0, ARGS_SET, "P", "only the most probable tokens that make up P", "sampling.top_p"},
      {"max-tokens", 0, ARGS_SET, "N", "most tokens of a response", "world.max_tokens"},
      {"seed", 's', ARGS_COUNT, "N", "other draws", &o.seed},
      {"greedy", 'g', ARGS_FLAG, NULL, "the most probable token at each place", &o.greedy},
      {"set", 0, ARGS_SET, "KEY=VALUE", "overrides any field of the recipe", NULL},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"json", 0, ARGS_FLAG, NULL, "texts, tokens and log-probabilities as JSON", &o.json}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, SIZE_MAX, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && o.n > 4096)
    status = gl_fail(err, GL_EINPUT, "--n is at most 4096; use another --seed for more");
  if (status == GL_OK && !a.help) status = generate_and_print(&a, &o, err);
  args_fini(&a);
  return status;
}

const command command_llm_generate = {
    .name = "llm generate",
    .arguments = "FOLDER|RECIPE [PROMPT …]",
    .summary = "responses to prompts, with their log-probabilities",
    .about =
        "Continues each PROMPT, or each line of standard input. The model comes from a folder\n"
        "(config.json, model.safetensors, tokenizer.json; what `llm sft` and `llm rl` wrote also\n"
        "knows its template and stop tokens), or is made as a recipe says, warm-up included.\n"
        "The same seed gives the same responses; those to the first prompts do not change when\n"
        "more are asked. A response cut off at --max-tokens ends in `…`.",
    .examples = "  gepolab llm generate warm/ '305824=' -n 4\n"
                "  gepolab llm generate warm/ --greedy --json < prompts.txt\n"
                "  gepolab llm generate Qwen3-0.6B/ 'The capital of France is' --max-tokens 32 "
                "--top-p 0.9",
    .run = run_generate};
