/* Mathematics problems from JSON Lines files of prompts and answers, compared by
 * llm/answer/answer.h.
 *
 * Warm-up trains on the file's answer if its final answer can be found in it, otherwise on its
 * final answer in \boxed{}. The same text supplies the reference when a response is scored. In
 * texts like GSM8K's the final answer follows the last ####. */
#include "llm/task/internal.h"

#include "core/base/array.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "llm/answer/answer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a file of prompts and answers --- */

/* --- one line --- */

typedef struct line_reader {
  json_reader json;
  const char *key[2]; /* names of prompt and answer */
} line_reader;

static const char *describe_json(char first) {
  switch (first) {
  case '{':
    return "an object";
  case '[':
    return "a list";
  case '"':
    return "text";
  case 't':
  case 'f':
    return "true or false";
  case 'n':
    return "null";
  case '\0':
    return "no JSON";
  default:
    return "a number";
  }
}

/* The keys of a line, for the message about a missing one. */
enum { SHOWN_KEYS = 12, SHOWN_KEY_SIZE = 48 };
typedef struct seen_keys {
  char name[SHOWN_KEYS][SHOWN_KEY_SIZE];
  size_t n;
} seen_keys;

static gl_status fail_missing(line_reader *l, const char *key, const seen_keys *seen) {
  const char *names[SHOWN_KEYS];
  char all[SHOWN_KEYS * (SHOWN_KEY_SIZE + 2)] = "nothing", hint[CFG_HINT_SIZE];
  for (size_t i = 0, used = 0; i < seen->n; ++i) {
    names[i] = seen->name[i];
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  json_fail_at(&l->json, 0, "key '%.64s' is missing%s; this object has: %s", key,
               cfg_hint(key, names, seen->n, hint), all);
  return l->json.status;
}

/* Reads the value of a wanted key into *to. If *to is not NULL the key is a duplicate; the error's
 * position is the first quote from byte `from` on. */
static void take_dataset_value(line_reader *l, size_t from, int which, char **to) {
  json_reader *r = &l->json;
  const char *key = l->key[which];
  if (*to != NULL) {
    const char *quote = memchr(r->text + from, '"', r->size - from);
    json_fail_at(r, quote == NULL ? from : (size_t)(quote - r->text), "key '%.64s' is given twice",
                 key);
    return;
  }
  char first = json_peek(r);
  size_t at = r->at;
  if (first == '"') {
    json_string(r);
    if (r->status == GL_OK) *to = strdup(r->word);
  } else if (which == 1 && (first == '-' || (first >= '0' && first <= '9'))) {
    json_skip(r); /* a number is kept as written */
    if (r->status == GL_OK) *to = strndup(r->text + at, r->at - at);
  } else
    json_fail(r, "'%.64s' is %s; it must be text%s", key, describe_json(first),
              which == 1 ? " or a number" : "");
  if (r->status == GL_OK && *to == NULL) r->status = gl_fail_memory(r->err, "a text");
  if (r->status == GL_OK && (*to)[strspn(*to, " \t\r\n")] == '\0')
    json_fail_at(r, at, "'%.64s' is empty", key);
}

static gl_status read_dataset_object(line_reader *l, dataset_row *row) {
  json_reader *r = &l->json;
  seen_keys seen = {.n = 0};
  const char first = json_peek(r);
  if (first != '{') {
    json_fail(r, "a line must be an object with the keys '%.40s' and '%.40s'; this is %s",
              l->key[0], l->key[1], describe_json(first));
    return r->status;
  }
  json_enter(r, '{');
  for (size_t at = r->at; json_member(r); at = r->at) {
    const char *key = r->word;
    if (seen.n < SHOWN_KEYS) snprintf(seen.name[seen.n++], SHOWN_KEY_SIZE, "%.40s", key);
    if (strcmp(key, l->key[0]) == 0)
      take_dataset_value(l, at, 0, &row->prompt);
    else if (strcmp(key, l->key[1]) == 0)
      take_dataset_value(l, at, 1, &row->answer);
    else
      json_skip(r);
  }
  if (json_end(r) != GL_OK) return r->status;
  if (row->prompt == NULL) return fail_missing(l, l->key[0], &seen);
  return row->answer == NULL ? fail_missing(l, l->key[1], &seen) : GL_OK;
}

/* Reads the line text[size], an object with the keys key[0] (prompt) and key[1] (answer). row->line
 * is its number, for messages. Both texts are NULL after an error. */
static gl_status read_dataset_row(dataset_row *row, const char *text, size_t size, const char *name,
                                  const char *const key[2], gl_error *err) {
  line_reader l = {.key = {key[0], key[1]}};
  json_begin(&l.json, text, size, name, err);
  l.json.first_line = row->line;
  gl_status status = read_dataset_object(&l, row);
  json_end(&l.json);
  if (status == GL_OK) return GL_OK;
  free(row->prompt);
  free(row->answer);
  row->prompt = row->answer = NULL;
  return status;
}

/* --- all lines --- */

typedef struct line_buffer {
  char *data;
  size_t n, room;
} line_buffer;

/* Reads the next line without its end; *any: whether there was one. Stops when the line is too
 * long, so memory is bounded for any file. */
static gl_status read_dataset_line(line_buffer *b, FILE *from, bool *any, const char *name,
                                   size_t line, gl_error *err) {
  b->n = 0;
  *any = false;
  for (int c; (c = getc(from)) != EOF;) {
    *any = true;
    if (c == '\n') break;
    if (b->n == DATASET_MAX_LINE)
      return gl_fail(err, GL_EINPUT, "%.300s:%zu:1: the line is longer than %d MiB", name, line,
                     DATASET_MAX_LINE >> 20);
    if (!ARRAY_RESERVE(b->data, b->room, b->n + 1)) return gl_fail_memory(err, "a line");
    b->data[b->n++] = (char)c;
  }
  return GL_OK;
}

static bool is_blank_line(const char *text, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (text[i] == '\0' || strchr(" \t\r", text[i]) == NULL) return false;
  return true;
}

static gl_status read_dataset_rows(dataset *out, FILE *from, const char *name,
                                   const char *const key[2], gl_error *err) {
  line_buffer b = {0};
  gl_status status = GL_OK;
  bool any = true;
  for (size_t line = 1; status == GL_OK; ++line) {
    status = read_dataset_line(&b, from, &any, name, line, err);
    if (status != GL_OK || !any) break;
    size_t mark = line == 1 && b.n >= 3 && memcmp(b.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (b.n == 0 || is_blank_line(b.data + mark, b.n - mark)) continue;
    dataset_row *row = ARRAY_ADD(out->row, out->n);
    if (row == NULL) {
      status = gl_fail_memory(err, "a data set");
      break;
    }
    row->line = line;
    status = read_dataset_row(row, b.data + mark, b.n - mark, name, key, err);
  }
  free(b.data);
  if (status == GL_OK && ferror(from))
    status = gl_fail(err, GL_EIO, "reading %.400s failed: %s", name, strerror(errno));
  if (status == GL_OK && out->n == 0)
    status =
        gl_fail(err, GL_EINPUT, "%.300s:1:1: the file is empty; it needs one object a line", name);
  if (status != GL_OK) dataset_fini(out);
  return status;
}

gl_status dataset_read(dataset *out, const char *path, const char *prompt_key,
                       const char *answer_key, gl_error *err) {
  *out = (dataset){0};
  FILE *from = fopen(path, "rb");
  if (from == NULL) return gl_fail(err, GL_EINPUT, "cannot read %.400s: %s", path, strerror(errno));
  gl_status status =
      read_dataset_rows(out, from, path, (const char *const[]){prompt_key, answer_key}, err);
  fclose(from);
  return status;
}

gl_status dataset_parse(dataset *out, const char *text, size_t size, const char *name,
                        const char *prompt_key, const char *answer_key, gl_error *err) {
  *out = (dataset){0};
  if (size == 0) text = "\n", size = 1; /* some systems cannot open a stream of no bytes */
  FILE *from = fmemopen((void *)(uintptr_t)text, size, "rb");
  if (from == NULL) return gl_fail_memory(err, "a stream over a text");
  gl_status status =
      read_dataset_rows(out, from, name, (const char *const[]){prompt_key, answer_key}, err);
  fclose(from);
  return status;
}

void dataset_fini(dataset *d) {
  for (size_t i = 0; i < d->n; ++i) {
    free(d->row[i].prompt);
    free(d->row[i].answer);
  }
  free(d->row);
  *d = (dataset){0};
}

static const char placeholder[] = "{prompt}";

typedef struct math_problems {
  dataset rows[2]; /* problems of each split */
  char *template_head, *template_tail;
  answer_pattern pattern;
} math_problems;

static math_problems *math_of(const task *t) {
  return t->parameters;
}

/* --- answers --- */

/* Finds the final answer in an answer of the data set: the contents of the last box, or the text
 * after the last ####, or all. *head: length of the text before the ####, else 0. */
static void final_answer(const char *text, const char **found, size_t *n, size_t *head) {
  size_t size = strlen(text);
  *head = 0;
  if (answer_find(text, size, ANSWER_BOXED, found, n)) return;
  *found = text;
  for (const char *at = text; (at = strstr(at, "####")) != NULL; at += 4) {
    *head = (size_t)(at - text);
    *found = at + 4;
  }
  *n = size - (size_t)(*found - text);
}

static bool is_scored(const char *text, answer_pattern pattern, const char *reference, size_t n) {
  const char *found;
  size_t m;
  return answer_find(text, strlen(text), pattern, &found, &m) &&
         answer_equal(reference, n, found, m);
}

/* Makes the answer that warm-up trains on, malloc'd: the text itself if it would be scored as
 * correct, else with its final answer in a box. Errors: GL_EINPUT (neither would be). */
static gl_status taught(char **out, const char *text, answer_pattern pattern, gl_error *err) {
  const char *found;
  size_t n, head;
  final_answer(text, &found, &n, &head);
  *out = NULL;
  if (is_scored(text, pattern, found, n)) {
    *out = strdup(text);
    return *out == NULL ? gl_fail_memory(err, "an answer") : GL_OK;
  }
  while (n > 0 && strchr(" \t\r\n", *found) != NULL) ++found, --n;
  while (n > 0 && strchr(" \t\r\n", found[n - 1]) != NULL) --n;
  char *boxed = malloc(head + n + sizeof "\\boxed{}");
  if (boxed == NULL) return gl_fail_memory(err, "an answer");
  memcpy(boxed, text, head);
  memcpy(boxed + head, "\\boxed{", 7);
  memcpy(boxed + head + 7, found, n);
  memcpy(boxed + head + 7 + n, "}", 2);
  *out = boxed;
  if (n > 0 && is_scored(boxed, pattern, found, n)) return GL_OK;
  free(boxed);
  *out = NULL;
  return gl_fail(err, GL_EINPUT,
                 "the answer '%.60s' is empty or its braces do not match, so no response could "
                 "repeat it",
                 text);
}

static double score_math(const task *t, const problem *p, const char *response, size_t n) {
  const char *reference, *found;
  size_t n_reference, n_found;
  answer_pattern pattern = math_of(t)->pattern;
  if (!answer_find(p->answer, strlen(p->answer), pattern, &reference, &n_reference)) return 0;
  if (!answer_find(response, n, pattern, &found, &n_found)) return 0;
  return answer_equal(reference, n_reference, found, n_found);
}

static gl_status problem_at(const task *t, task_split split, uint64_t i, problem *out,
                            gl_error *err) {
  const dataset_row *row = &math_of(t)->rows[split].row[i];
  const char *head = math_of(t)->template_head, *tail = math_of(t)->template_tail;
  size_t a = strlen(head), b = strlen(row->prompt), c = strlen(tail);
  out->prompt = malloc(a + b + c + 1);
  out->answer = strdup(row->answer);
  if (out->prompt == NULL || out->answer == NULL) {
    problem_fini(out);
    return gl_fail_memory(err, "a problem");
  }
  memcpy(out->prompt, head, a);
  memcpy(out->prompt + a, row->prompt, b);
  memcpy(out->prompt + a + b, tail, c + 1);
  return GL_OK;
}

/* --- files --- */

/* Reads the file that the node names, and replaces its answers by the training texts. */
static gl_status read_problems(dataset *out, const cfg_node *node, const char *const keys[2],
                               answer_pattern pattern, gl_error *err) {
  gl_error why = {0};
  char *path = cfg_locate(node, cfg_text(node));
  if (path == NULL) return gl_fail_memory(err, "a file name");
  gl_status status = dataset_read(out, path, keys[0], keys[1], &why);
  for (size_t i = 0; i < out->n && status == GL_OK; ++i) {
    char *answer;
    gl_error wrong = {0};
    status = taught(&answer, out->row[i].answer, pattern, &wrong);
    if (status != GL_OK) {
      gl_fail(&why, status, "%.300s:%zu:1: %s", path, out->row[i].line, wrong.text);
      break;
    }
    free(out->row[i].answer);
    out->row[i].answer = answer;
  }
  free(path);
  if (status == GL_OK) return GL_OK;
  dataset_fini(out);
  return status == GL_EINPUT ? cfg_fail(node, err, "%s", why.text)
                             : gl_fail(err, status, "%s", why.text);
}

static int by_prompt_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Removes the problems with goes[i] from *from and appends them to *to, which has room. to NULL:
 * frees them. */
static void move_rows(dataset *from, const char *goes, dataset *to) {
  size_t kept = 0;
  for (size_t i = 0; i < from->n; ++i) {
    if (!goes[i])
      from->row[kept++] = from->row[i];
    else if (to != NULL)
      to->row[to->n++] = from->row[i];
    else {
      free(from->row[i].prompt);
      free(from->row[i].answer);
    }
  }
  from->n = kept;
}

/* Removes training problems whose prompt is also held out. */
static gl_status drop_shared(dataset *train, const dataset *held, gl_error *err) {
  const char **prompt = calloc(held->n, sizeof *prompt);
  char *goes = calloc(train->n, 1);
  if (prompt != NULL && goes != NULL) {
    for (size_t i = 0; i < held->n; ++i) prompt[i] = held->row[i].prompt;
    qsort(prompt, held->n, sizeof *prompt, by_prompt_text);
    for (size_t i = 0; i < train->n; ++i) {
      const char *key = train->row[i].prompt;
      goes[i] = bsearch(&key, prompt, held->n, sizeof *prompt, by_prompt_text) != NULL;
    }
    move_rows(train, goes, NULL);
  }
  gl_status status = prompt == NULL || goes == NULL ? gl_fail_memory(err, "a split") : GL_OK;
  free(prompt);
  free(goes);
  return status;
}

/* Moves the held-out fraction of the problems from *train to *held. */
static gl_status split_by_share(dataset *train, dataset *held, double share, gl_error *err) {
  char *goes = calloc(train->n, 1);
  held->row = calloc(train->n, sizeof *held->row);
  if (goes == NULL || held->row == NULL) {
    free(goes);
    return gl_fail_memory(err, "a split");
  }
  for (size_t i = 0; i < train->n; ++i)
    goes[i] = (char)task_is_held_out(share, train->row[i].prompt, strlen(train->row[i].prompt));
  move_rows(train, goes, held);
  free(goes);
  return GL_OK;
}

/* --- a section --- */

static gl_status read_math_template(math_problems *m, cfg_reader *r) {
  const char *text = field_text(r, "template");
  if (r->status != GL_OK) return r->status;
  const char *at = strstr(text, placeholder);
  if (at == NULL || strstr(at + 1, placeholder) != NULL)
    return r->status =
               cfg_fail(cfg_child(r, "template"), r->err,
                        "'task.template' must hold %s once: the place of the prompt", placeholder);
  m->template_head = strndup(text, (size_t)(at - text));
  m->template_tail = strdup(at + strlen(placeholder));
  if (m->template_head == NULL || m->template_tail == NULL)
    r->status = gl_fail_memory(r->err, "a template");
  return r->status;
}

static gl_status read_math_splits(task *t, cfg_reader *r, const cfg_node *path,
                                  const cfg_node *held, const char *const keys[2]) {
  dataset *train = &math_of(t)->rows[TASK_TRAIN], *out = &math_of(t)->rows[TASK_HELD_OUT];
  gl_status status = read_problems(train, path, keys, math_of(t)->pattern, r->err);
  if (status != GL_OK) return status;
  if (held != NULL) {
    status = read_problems(out, held, keys, math_of(t)->pattern, r->err);
    if (status == GL_OK) status = drop_shared(train, out, r->err);
  } else
    status = split_by_share(train, out, t->held_out, r->err);
  if (status != GL_OK) return status;
  if (train->n == 0)
    return cfg_fail(path, r->err, "no problem of '%.200s' is left for training; hold fewer out",
                    cfg_text(path));
  if (out->n == 0 && t->held_out > 0)
    return cfg_fail(path, r->err,
                    "held_out: %g holds none of the %zu problems of '%.200s' out; hold out more, "
                    "or name a file with held_out_path",
                    t->held_out, train->n, cfg_text(path));
  return GL_OK;
}

static gl_status read_math(task *t, cfg_reader *r, const cfg_node *section) {
  const char *keys[2] = {field_text(r, "prompt_key"), field_text(r, "answer_key")};
  field_text(r, "path");
  field_text(r, "held_out_path");
  const cfg_node *path = cfg_child(r, "path"), *held = cfg_child(r, "held_out_path"),
                 *share = cfg_child(r, "held_out");
  math_of(t)->pattern = (answer_pattern)field_choice(r, "answer_pattern");
  if (r->status != GL_OK || read_math_template(math_of(t), r) != GL_OK) return r->status;
  if (strcmp(keys[0], keys[1]) == 0)
    return r->status = cfg_fail(section, r->err, "prompt_key and answer_key are the same, '%.64s'",
                                keys[0]);
  if (path == NULL)
    return r->status = cfg_fail(section, r->err,
                                "task math needs path: a JSON Lines file of prompts and answers");
  if (held != NULL && share != NULL)
    return r->status = cfg_fail(share, r->err,
                                "held_out_path says what is held out; held_out "
                                "cannot be given, too");
  return r->status = read_math_splits(t, r, path, held, keys);
}

static size_t count_problems(const task *t, task_split split) {
  return math_of(t)->rows[split].n;
}

static void release_problems(task *t) {
  dataset_fini(&math_of(t)->rows[TASK_TRAIN]);
  dataset_fini(&math_of(t)->rows[TASK_HELD_OUT]);
  free(math_of(t)->template_head);
  free(math_of(t)->template_tail);
}

static const task_field math_fields[] = {
    {"path", "FILE", "required", "JSON Lines of prompts and answers", 1},
    {"held_out_path", "FILE", "none",
     "problems that are held out; where it is not given, held_out says how many", 1},
    {"prompt_key", "TEXT", "prompt", "the key of a line's prompt", 0},
    {"answer_key", "TEXT", "answer", "the key of a line's answer", 0},
    {"answer_pattern", "boxed, last_number", "boxed", "where a text has its final answer", 0},
    {"template", "TEXT", "{prompt}", "what is written around a prompt", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_math = {
    .name = "math",
    .about = "problems and answers from a JSON Lines file",
    .example = {NULL, NULL},
    .field = math_fields,
    .parameters_size = sizeof(math_problems),
    .read = read_math,
    .score = score_math,
    .has_graded = false,
    .size = count_problems,
    .problem = problem_at,
    .fini = release_problems,
};
