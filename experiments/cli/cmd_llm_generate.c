/* gepolab llm generate and llm answer: samples responses of a transformer, and checks answers. */
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/config/fields.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/llm/session.h"
#include "llm/answer/answer.h"
#include "llm/model/generate.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- generate --- */

enum { MOST_PROMPTS = 1 << 16, PROMPT_SIZE = 1 << 20 };

/* --- prompts --- */

typedef struct prompt_list {
  char **text; /* [n] */
  size_t n;
  size_t *start; /* [n + 1] offsets of the prompts' tokens */
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
  p->text[p->n++] = must_copy(text, "a prompt");
  return GL_OK;
}

/* Reads prompts, one per line. */
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
  p->text = must_alloc(MOST_PROMPTS, sizeof *p->text, "the prompts");
  gl_status status = a->n_words == 1 ? generate_read_prompts(p, stdin, err) : GL_OK;
  for (size_t i = 1; i < a->n_words && status == GL_OK; ++i) {
    char key[FIELD_HINT_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(a->words[i], "="), a->words[i]);
    if (strchr(a->words[i], '=') != NULL && fields_named(key) != NULL)
      return gl_fail(err, GL_EINPUT, "'%s' is a field of the recipe and no prompt; write --set %s",
                     a->words[i], a->words[i]);
    status = generate_add_prompt(p, a->words[i], err);
  }
  if (status == GL_OK && p->n == 0)
    return gl_fail(err, GL_EINPUT, "no prompt; give one behind %s, or lines on standard input",
                   a->words[0]);
  return status;
}

static gl_status encode_prompts(prompt_list *p, const run_spec *spec, gl_error *err) {
  p->start = must_alloc(p->n + 1, sizeof *p->start, "the prompts");
  for (size_t i = 0; i < p->n; ++i) {
    int32_t *token = NULL;
    size_t n = 0, at = p->start[i];
    gl_status status = run_spec_prompt(spec, p->text[i], &token, &n, err);
    if (status != GL_OK) return status;
    p->token = must_resize(p->token, at + n + 1, sizeof *p->token, "the prompts");
    memcpy(p->token + at, token, n * sizeof *token);
    p->start[i + 1] = at + n;
    free(token);
  }
  return GL_OK;
}

/* --- printing --- */

/* Decodes response i. Tokens that the model has but its tokenizer does not give no text, as in
 * Hugging Face's tokenizers. */
static gl_status generate_decode(char **text, const llm_session *s, const generate_result *r,
                                 size_t i, gl_error *err) {
  const int32_t *token = r->token + i * s->spec.max_tokens;
  const size_t length = r->length[i], end = length > 0 && r->finished[i] ? length - 1 : length;
  int32_t *known = MUST_ARRAY(int32_t, end + 1, "a response");
  size_t n = 0;
  for (size_t t = 0; t < end; ++t)
    if (tokenizer_has(s->spec.tokenizer, token[t])) known[n++] = token[t];
  const gl_status status = tokenizer_decode(s->spec.tokenizer, known, n, 0, text, NULL, err);
  free(known);
  return status;
}

static void response_json(cJSON *list, const char *prompt, const char *text, const llm_session *s,
                          const generate_result *r, size_t i) {
  const size_t n = r->length[i], at = i * s->spec.max_tokens;
  double sum = 0;
  for (size_t k = 0; k < n; ++k) sum += r->logq[at + k];
  cJSON *o = json_object(list, NULL), *tokens = json_list(o, "tokens");
  for (size_t k = 0; k < n; ++k) json_number(tokens, NULL, r->token[at + k]);
  json_put(o, "prompt %s, text %s, finished %i, logp %g", prompt, text, r->finished[i], sum);
  json_numbers(o, "logprobs", r->logq + at, n);
  json_numbers(o, "logprobs_truncated", r->logq_truncated + at, n);
}

static gl_status generate_print_json(const llm_session *s, const prompt_list *p,
                                     const generate_result *r, size_t each, gl_error *err) {
  cJSON *d = json_new(), *list = json_list(d, "responses");
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->n * each && status == GL_OK; ++i) {
    char *text = NULL;
    status = generate_decode(&text, s, r, i, err);
    if (status == GL_OK) response_json(list, p->text[i / each], text, s, r, i);
    free(text);
  }
  if (status == GL_OK) return report_json(d, err);
  cJSON_Delete(d);
  return status;
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
  size_t n, threads; /* n: responses to each prompt; 0: not given */
  uint64_t seed;
  int greedy, json;
} generate_options;

/* Samples the responses. Response k to prompt p has the number p * 4096 + k, so the first ones do
 * not depend on how many follow. */
static gl_status respond(llm_session *s, const prompt_list *p, const generate_options *o,
                         generate_result *r, gl_error *err) {
  const size_t each = o->n, n = p->n * each;
  size_t *prompt_of = must_alloc(n + 1, sizeof *prompt_of, "the responses"),
         *number = must_alloc(n + 1, sizeof *number, "the responses");
  for (size_t i = 0; i < n; ++i) {
    prompt_of[i] = i / each;
    number[i] = (i / each) << 12 | i % each;
  }
  sampling_spec dist = s->spec.sampling;
  dist.behaviour = (sampling_behaviour){.with = OTHER_NONE}; /* for training only */
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
  gl_status status = generate_result_init(r, n, s->spec.max_tokens, err);
  if (status == GL_OK) status = generate(s->model, &q, r, err);
  free(prompt_of);
  free(number);
  return status;
}

static gl_status generate_and_print(args *a, const generate_options *o, gl_error *err) {
  llm_session s;
  prompt_list p = {0};
  generate_result r = {0};
  gl_status status = llm_session_init(&s, a, o->threads, 1, err);
  if (status == GL_OK) status = take_prompts(&p, a, err);
  if (status == GL_OK) llm_session_print(&s);
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

static gl_status run_generate(args *a, gl_error *err) {
  generate_options o = {.n = 1};
  const args_option options[] = {
      {"n", 'n', ARGS_COUNT, "N", "responses to each prompt, at most 4096 (1)", &o.n},
      {"temperature", ARGS_OLD('t'), ARGS_SET, "T", "divides the logits", "sampling.temperature"},
      {"top-k", 0, ARGS_SET, "K", "only the K most probable tokens; 0: all", "sampling.top_k"},
      {"top-p", 0, ARGS_SET, "P", "only the most probable tokens that make up P", "sampling.top_p"},
      {"max-tokens", 0, ARGS_SET, "N", "most tokens of a response", "world.max_tokens"},
      {"seed", 's', ARGS_SEED, "N", "other draws (0)", &o.seed},
      {"greedy", 'g', ARGS_FLAG, NULL, "the most probable token at each place", &o.greedy},
      {"set", 0, ARGS_SET, "KEY=VALUE", "overrides any field of the recipe", NULL},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"json", 0, ARGS_FLAG, NULL, "texts, tokens and log-probabilities as JSON", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (o.n > 4096)
    status = gl_fail(err, GL_EINPUT, "--n is at most 4096; use another --seed for more");
  if (status == GL_OK) status = generate_and_print(a, &o, err);
  return status;
}

const command command_llm_generate = {
    .name = "llm generate",
    .arguments = "FOLDER|RECIPE [PROMPT …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = SIZE_MAX},
    .summary = "responses to prompts, with their log-probabilities",
    .about =
        "Continues each PROMPT, or each line of standard input. The model comes from a folder\n"
        "(config.json, model.safetensors, tokenizer.json; what `llm sft` and `llm rl` wrote also\n"
        "knows its template and stop tokens), or is made as a recipe says, warm-up included.\n"
        "The same seed gives the same responses; those to the first prompts do not change when\n"
        "more are asked. A response cut off at --max-tokens ends in `…`.",
    .examples = "  gepolab llm generate warm/ '305824=' -n 4\n"
                "  gepolab llm generate warm/ --greedy --json < prompts.txt\n"
                "  gepolab llm generate Qwen3-0.6B/ 'The capital of France is' --max-tokens 32",
    .run = run_generate};

/* --- answer --- */

enum { MOST_BYTES = 1 << 20 };

/* The place in a text where its answer is searched. */
typedef enum place { BOX_OR_ALL, BOXED, LAST_NUMBER } place;
static const char *const place_names[] = {
    [BOX_OR_ALL] = "auto", [BOXED] = "boxed", [LAST_NUMBER] = "last_number"};
enum { N_PLACES = sizeof place_names / sizeof *place_names };

/* A text, the answer found in it, and the parsed answer. */
typedef struct side {
  const char *what;   /* "reference" or "response" */
  const char *answer; /* inside the text; NULL: none was found */
  size_t n;
  const char *found; /* "boxed", "last_number" or "all"; NULL: none was found */
  answer_reading reading;
} side;

/* --- reading --- */

static void find_answer(side *out, const char *what, const char *text, place where) {
  size_t size = strlen(text);
  *out = (side){.what = what};
  answer_pattern pattern = where == LAST_NUMBER ? ANSWER_LAST_NUMBER : ANSWER_BOXED;
  const char *at;
  if (answer_find(text, size, ANSWER_BOXED, &at, &out->n))
    out->found = place_names[BOXED];
  else if (answer_find(text, size, pattern, &at, &out->n))
    out->found = place_names[LAST_NUMBER];
  else if (where == BOX_OR_ALL) {
    out->found = "all";
    at = text;
    out->n = size;
  } else
    return;
  out->answer = at;
  answer_read(&out->reading, at, out->n);
}

/* Reads all of standard input; the caller frees *out. */
static gl_status read_input(char **out, gl_error *err) {
  *out = must_alloc(MOST_BYTES + 2, 1, "a response");
  size_t n = fread(*out, 1, MOST_BYTES + 1, stdin);
  if (ferror(stdin)) return gl_fail(err, GL_EIO, "cannot read standard input: %s", strerror(errno));
  if (n > MOST_BYTES) return gl_fail(err, GL_EINPUT, "the response is longer than 1 MiB");
  if (memchr(*out, '\0', n) != NULL)
    return gl_fail(err, GL_EINPUT, "the response is no text: it holds a zero byte");
  (*out)[n] = '\0';
  return GL_OK;
}

/* --- as text --- */

static void print_node(const answer_reading *r, const answer_node *node) {
  int indent = 2 * (int)node->depth + 2;
  printf("%*s%-*s ", indent, "", 24 - indent, answer_kind_name(node->kind));
  shown_write(r->text + node->name_begin, node->name_n, stdout);
  if (node->name_n > 0) printf(": ");
  shown_write(r->text + node->begin, node->n, stdout);
  int same = node->n == strlen(node->written) &&
             memcmp(r->text + node->begin, node->written, node->n) == 0;
  if (node->has_value && !same) printf("  = %s", shown(node->written).text);
  putchar('\n');
}

static void print_side(const side *s) {
  if (s->answer == NULL) {
    printf("%s: no answer found\n", s->what);
    return;
  }
  printf("%s: ", s->what);
  shown_write(s->answer, s->n, stdout);
  printf(" (%s)\n", strcmp(s->found, "all") == 0 ? "all of the text" : s->found);
  for (size_t i = 0; i < s->reading.nodes; ++i) print_node(&s->reading, &s->reading.node[i]);
  if (s->reading.is_cut_off) printf("  … and more\n");
}

/* --- as JSON --- */

static void answer_add_text(cJSON *to, const char *key, const char *text, size_t n) {
  char *copy = must_alloc(n + 1, 1, "a part of an answer");
  memcpy(copy, text, n);
  (void)json_add_string(to, key, copy);
  free(copy);
}

/* Adds node *i and its parts, which follow it, and advances *i past them. */
static void node_json(cJSON *o, const answer_reading *r, size_t *i) {
  const answer_node *node = &r->node[(*i)++];
  json_put(o, "kind %s", answer_kind_name(node->kind));
  answer_add_text(o, "text", r->text + node->begin, node->n);
  if (node->name_n > 0) answer_add_text(o, "name", r->text + node->name_begin, node->name_n);
  if (node->has_value) json_put(o, "value %g, value_text %s", node->value, node->written);
  cJSON *parts = NULL;
  while (*i < r->nodes && r->node[*i].depth > node->depth) {
    if (parts == NULL) parts = json_list(o, "parts");
    node_json(json_object(parts, NULL), r, i);
  }
}

static void side_json(cJSON *d, const side *s) {
  cJSON *o = json_object(d, s->what);
  size_t i = 0;
  if (s->answer == NULL) {
    json_attach(o, "found", cJSON_CreateNull());
    json_attach(o, "answer", cJSON_CreateNull());
    return;
  }
  json_put(o, "found %s", s->found);
  answer_add_text(o, "answer", s->answer, s->n);
  node_json(json_object(o, "reading"), &s->reading, &i);
  json_put(o, "cut_off %i", s->reading.is_cut_off);
}

static gl_status answer_print_json(int equal, const side *reference, const side *response,
                                   gl_error *err) {
  cJSON *d = json_new();
  json_put(d, "equal %i", equal);
  side_json(d, reference);
  side_json(d, response);
  return report_json(d, err);
}

/* --- the command --- */

static gl_status answer_check(const char *reference, const char *response, place where, int json,
                              gl_error *err) {
  side *sides = must_alloc(2, sizeof *sides, "two answers");
  find_answer(&sides[0], "reference", reference, BOX_OR_ALL);
  find_answer(&sides[1], "response", response, where);
  int equal = sides[1].answer != NULL &&
              answer_equal(sides[0].answer, sides[0].n, sides[1].answer, sides[1].n);
  gl_status status = GL_OK;
  if (json)
    status = answer_print_json(equal, &sides[0], &sides[1], err);
  else {
    puts(equal ? "equal" : "not equal");
    print_side(&sides[0]);
    print_side(&sides[1]);
  }
  free(sides);
  return status;
}

static gl_status run_answer(args *a, gl_error *err) {
  int json = 0;
  const char *reference = NULL, *pattern = place_names[BOX_OR_ALL];
  const args_option options[] = {
      {"reference", 'r', ARGS_TEXT, "ANSWER", "the right answer, or a text with it in a box",
       &reference},
      {"pattern", 0, ARGS_TEXT, "WHERE",
       "where the response's answer is: boxed or last_number, as `answer_pattern` of a recipe; "
       "auto (default): in a box, or else all of it",
       &pattern},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  char *input = NULL;
  size_t where = 0;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (reference == NULL)
    status = gl_fail(err, GL_EINPUT, "llm answer needs --reference ANSWER, the right answer");
  if (status == GL_OK)
    status = args_choose(&where, "--pattern", pattern, place_names, N_PLACES, err);
  if (status == GL_OK && strcmp(a->words[0], "-") == 0) status = read_input(&input, err);
  if (status == GL_OK)
    status = answer_check(reference, input != NULL ? input : a->words[0], (place)where, json, err);
  free(input);
  return status;
}

const command command_llm_answer = {
    .name = "llm answer",
    .arguments = "RESPONSE --reference ANSWER",
    .words = {.input = ARGS_ANY, .min = 1, .max = 1},
    .summary = "whether a response's final answer is right, and how it was read",
    .about =
        "Compares as `kind: math` of a task does, so it shows why a response gets its reward. "
        "Prints\n"
        "the verdict (equal or not equal) and, for reference and response, what was taken as the\n"
        "answer and what each part of it was read as, with the value of numbers. Exits with 0\n"
        "whatever the verdict is; --json has it as `equal`. RESPONSE `-` reads standard input; "
        "put\n"
        "`--` before one that begins with a minus.",
    .examples = "  gepolab llm answer 'so \\boxed{\\frac{1}{2}}' --reference 0.5\n"
                "  gepolab llm answer 'x=6 or x=-6' --reference 'x=-6, x=6' --json\n"
                "  gepolab llm answer --reference -5 -- -5",
    .run = run_answer};
