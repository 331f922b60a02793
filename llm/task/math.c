/* Mathematics from JSON Lines files: problems of prompt and answer, compared as llm/answer/answer.h
 * says.
 *
 * What warm-up teaches, and where the reference is taken from again when a response is scored, is
 * the answer as the file has it if its final answer can be found there; else its final answer in
 * \boxed{}. In a text like GSM8K's the final answer stands behind the last ####.
 */
#include "llm/answer/answer.h"

#include "core/config/fields.h"
#include "llm/task/dataset.h"
#include "llm/task/internal.h"

#include <stdlib.h>
#include <string.h>

static const char placeholder[] = "{prompt}";

typedef struct math_problems {
  dataset rows[2]; /* by split */
  char *template_head, *template_tail;
  answer_pattern pattern;
} math_problems;

static math_problems *math_of(const task *t) {
  return t->parameters;
}

/* --- answers --- */

/* Where the final answer of a file's answer stands; the text before it ends at *head. */
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

/* The text that is taught, malloc'd, into *out; GL_EINPUT if no form of it would be right. */
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

/* Reads the file that the node names and makes its answers what is taught. */
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

/* Takes the problems with goes[i] out of *from, and puts them into *to, which has room; to NULL:
 * they are released. */
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

/* Takes the problems whose prompt is held out, too, out of the training problems. */
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
