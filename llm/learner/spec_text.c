/* Between text and tokens: the tokenizer that a section names, prompts and answers as tokens,
 * scores of responses. */
#include "llm/learner/run_spec.h"

#include "core/config/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the tokenizer --- */

static int is_bpe(const run_spec *s) {
  return strcmp(tokenizer_kind(s->tokenizer), "bpe") == 0;
}

static gl_status new_char(run_spec *s, const cfg_node *at, gl_error *err) {
  const char *alphabet = task_alphabet(s->task);
  if (alphabet == NULL)
    return cfg_fail(at, err,
                    "tokenizer: char needs a task with a known alphabet, and task %s is over free "
                    "text; use byte, or the path of a tokenizer.json",
                    task_kind(s->task));
  return tokenizer_new_char(&s->tokenizer, alphabet, err);
}

static gl_status load_file(run_spec *s, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  if (tokenizer_load(&s->tokenizer, s->tokenizer_path, &why) == GL_OK) return GL_OK;
  if (why.status == GL_ENOMEM) return gl_fail(err, GL_ENOMEM, "%s", why.text);
  return cfg_fail(at, err, "%s", why.text);
}

/* Loads the folder's own tokenizer, or char if it has none. */
static gl_status default_tokenizer(run_spec *s, const cfg_node *section, gl_error *err) {
  if (s->folder != NULL) {
    size_t size = strlen(s->folder) + sizeof "/tokenizer.json";
    s->tokenizer_path = malloc(size);
    if (s->tokenizer_path == NULL) return gl_fail_memory(err, "a tokenizer's path");
    snprintf(s->tokenizer_path, size, "%s/tokenizer.json", s->folder);
    if (access(s->tokenizer_path, F_OK) == 0) return load_file(s, section, err);
    free(s->tokenizer_path);
    s->tokenizer_path = NULL;
  }
  return new_char(s, section, err);
}

static gl_status read_tokenizer(run_spec *s, const cfg_node *section, const cfg_node *node,
                                gl_error *err);

/* Reads {kind: …, unused: …}. */
static gl_status read_tokenizer_map(run_spec *s, const cfg_node *section, const cfg_node *node,
                                    gl_error *err) {
  gl_error why = {0};
  cfg_reader r;
  cfg_begin(&r, node, "world.tokenizer", err);
  const cfg_node *kind = cfg_child(&r, "kind");
  const size_t unused = field_count(&r, "unused");
  if (cfg_end(&r) != GL_OK) return r.status;
  if (kind != NULL && cfg_kind_of(kind) != CFG_SCALAR)
    return cfg_fail(kind, err, "world.tokenizer.kind must be char, byte or the path of a file");
  gl_status status = read_tokenizer(s, section, kind, err);
  if (status != GL_OK || unused == 0) return status;
  status = tokenizer_add_unused(s->tokenizer, unused, &why);
  return status == GL_EINPUT
             ? cfg_fail(cfg_find(node, "unused"), err, "world.tokenizer.unused: %s", why.text)
         : status != GL_OK ? gl_fail(err, status, "%s", why.text)
                           : GL_OK;
}

static gl_status read_tokenizer(run_spec *s, const cfg_node *section, const cfg_node *node,
                                gl_error *err) {
  static const char *const kinds[] = {"char", "byte"};
  if (node == NULL) return default_tokenizer(s, section, err);
  if (cfg_kind_of(node) == CFG_MAP) return read_tokenizer_map(s, section, node, err);
  const char *text = cfg_text(node);
  if (strcmp(text, "char") == 0) return new_char(s, node, err);
  if (strcmp(text, "byte") == 0) return tokenizer_new_byte(&s->tokenizer, err);
  s->tokenizer_path = cfg_locate(node, text);
  if (s->tokenizer_path == NULL) return gl_fail_memory(err, "a tokenizer's path");
  if (cfg_kind_of(node) == CFG_SCALAR && access(s->tokenizer_path, F_OK) == 0)
    return load_file(s, node, err);
  char hint[CFG_HINT_SIZE];
  return cfg_fail(node, err,
                  "tokenizer must be char, byte or the path of a tokenizer.json, and there is no "
                  "file '%.300s'%s",
                  text, cfg_hint(text, kinds, 2, hint));
}

/* --- the template and the stop tokens --- */

static gl_status read_template(run_spec *s, const cfg_node *section, const char *template,
                               gl_error *err) {
  static const char hole[] = "{prompt}";
  if (template == NULL) template = hole;
  const char *at = strstr(template, hole), *rest = at != NULL ? at + sizeof hole - 1 : NULL;
  if (at == NULL || strstr(rest, hole) != NULL)
    return cfg_fail(cfg_find(section, "template"), err,
                    "world.template must hold {prompt} once, where the prompt's text goes");
  s->before = strndup(template, (size_t)(at - template));
  s->after = strdup(rest);
  return s->before != NULL && s->after != NULL ? GL_OK : gl_fail_memory(err, "a template");
}

/* Counts the tokens of the template's text. Errors: GL_EINPUT (the tokenizer cannot encode it). */
static gl_status count_template(run_spec *s, const cfg_node *section, gl_error *err) {
  const char *const parts[] = {s->before, s->after};
  for (size_t i = 0; i < 2; ++i) {
    int32_t *token = NULL;
    size_t n = 0;
    gl_error why = {0};
    gl_status status = tokenizer_encode(s->tokenizer, parts[i], strlen(parts[i]), &token, &n, &why);
    free(token);
    if (status == GL_EINPUT)
      return cfg_fail(cfg_find(section, "template"), err, "world.template: %s", why.text);
    if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
    s->around += n;
  }
  return GL_OK;
}

static gl_status add_stop(run_spec *s, const cfg_node *word, gl_error *err) {
  int32_t token =
      cfg_kind_of(word) == CFG_SCALAR ? tokenizer_special(s->tokenizer, cfg_text(word)) : -1;
  if (token < 0)
    return cfg_fail(word, err, "world.stop: the tokenizer has no special token '%.100s'%s",
                    cfg_text(word),
                    is_bpe(s) ? "" : "; a built-in tokenizer ends responses with </s>");
  s->stop[s->n_stop++] = token;
  return GL_OK;
}

static gl_status read_stop(run_spec *s, const cfg_node *section, const cfg_node *stop,
                           gl_error *err) {
  const int is_list = stop != NULL && cfg_kind_of(stop) == CFG_LIST;
  const size_t n = is_list ? cfg_size(stop) : 1;
  if (n == 0) return cfg_fail(stop, err, "world.stop must name at least one token");
  s->stop = calloc(n, sizeof *s->stop);
  if (s->stop == NULL) return gl_fail_memory(err, "the stop tokens");
  if (stop != NULL) {
    gl_status status = GL_OK;
    for (size_t i = 0; i < n && status == GL_OK; ++i)
      status = add_stop(s, is_list ? cfg_at(stop, i) : stop, err);
    return status;
  }
  if (is_bpe(s) && s->model.end < 0)
    return cfg_fail(section, err,
                    "the model's config.json names no eos_token_id; say with world.stop which "
                    "token ends a response, as in stop: [<|im_end|>]");
  s->stop[s->n_stop++] = is_bpe(s) ? s->model.end : TOKEN_END;
  return GL_OK;
}

gl_status run_spec_read_language(run_spec *s, const cfg_node *section, const cfg_node *named,
                                 const char *template, const cfg_node *stop, gl_error *err) {
  s->model.end = s->folder != NULL ? s->model.end : -1;
  gl_status status = read_tokenizer(s, section, named, err);
  if (status == GL_OK) status = read_template(s, section, template, err);
  if (status == GL_OK) status = count_template(s, section, err);
  if (status == GL_OK) status = read_stop(s, section, stop, err);
  if (status == GL_OK) s->begin = is_bpe(s) ? -1 : TOKEN_BEGIN;
  return status;
}

int run_spec_is_stop(const run_spec *s, int32_t token) {
  for (size_t i = 0; i < s->n_stop; ++i)
    if (s->stop[i] == token) return 1;
  return 0;
}

/* --- problems as tokens --- */

uint64_t run_spec_pick(const run_spec *s, double u) {
  const uint64_t size = task_size(s->task, TASK_TRAIN), most = UINT64_C(1) << 48;
  return (uint64_t)(u * (double)(size < most ? size : most));
}

static char *templated(const run_spec *s, const char *prompt, size_t *size) {
  size_t before = strlen(s->before), middle = strlen(prompt), after = strlen(s->after);
  char *text = malloc(before + middle + after + 1);
  if (text == NULL) return NULL;
  memcpy(text, s->before, before);
  memcpy(text + before, prompt, middle);
  memcpy(text + before + middle, s->after, after + 1);
  *size = before + middle + after;
  return text;
}

gl_status run_spec_prompt(const run_spec *s, const char *prompt, int32_t **out, size_t *n,
                          gl_error *err) {
  *out = NULL;
  int32_t *token = NULL;
  const size_t begin = s->begin >= 0;
  size_t size = 0, count = 0;
  char *text = templated(s, prompt, &size);
  gl_status status = text != NULL ? tokenizer_encode(s->tokenizer, text, size, &token, &count, err)
                                  : gl_fail_memory(err, "a prompt");
  free(text);
  if (status == GL_OK && begin + count == 0)
    status = gl_fail(err, GL_EINPUT, "an empty prompt has no token to start from");
  if (status == GL_OK && begin + count > s->model.max_positions - s->max_tokens)
    status = gl_fail(err, GL_EINPUT,
                     "the prompt \"%.60s…\" has %zu tokens, and with a response of max_tokens %zu "
                     "that is more than the model's context of %zu; lower max_tokens or take the "
                     "prompt out",
                     prompt, begin + count, s->max_tokens, s->model.max_positions);
  if (status == GL_OK) {
    *out = malloc((begin + count) * sizeof **out);
    if (*out == NULL) status = gl_fail_memory(err, "a prompt");
  }
  if (status == GL_OK) {
    if (begin) **out = s->begin;
    if (count > 0) memcpy(*out + begin, token, count * sizeof **out);
    *n = begin + count;
  }
  free(token);
  return status;
}

gl_status run_spec_answer(const run_spec *s, const char *answer, int32_t **out, size_t *n,
                          gl_error *err) {
  *out = NULL;
  int32_t *token = NULL;
  size_t count = 0;
  gl_status status = tokenizer_encode(s->tokenizer, answer, strlen(answer), &token, &count, err);
  if (status == GL_OK && count + 1 > s->max_tokens)
    status =
        gl_fail(err, GL_EINPUT,
                "the answer \"%.60s…\" needs %zu tokens with its end, more than max_tokens %zu",
                answer, count + 1, s->max_tokens);
  if (status == GL_OK) {
    *out = malloc((count + 1) * sizeof **out);
    if (*out == NULL) status = gl_fail_memory(err, "an answer");
  }
  if (status == GL_OK) {
    if (count > 0) memcpy(*out, token, count * sizeof **out);
    (*out)[count] = s->stop[0];
    *n = count + 1;
  }
  free(token);
  return status;
}

/* Special tokens inside a response are decoded as their text, so that such a response does not
 * equal the answer without them. If the model's vocabulary is larger than its tokenizer's, the
 * extra tokens have no text, and a response with one is wrong. */
gl_status run_spec_score(const run_spec *s, const problem *p, const int32_t *token, size_t n,
                         int finished, double *score, gl_error *err) {
  char *text = NULL;
  *score = 0;
  if (finished && n > 0) --n;
  for (size_t t = 0; t < n; ++t)
    if (!tokenizer_has(s->tokenizer, token[t])) return GL_OK;
  gl_status status = tokenizer_decode(s->tokenizer, token, n, 0, &text, NULL, err);
  if (status == GL_OK) *score = task_score(s->task, p, text, finished);
  free(text);
  return status;
}
