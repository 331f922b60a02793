/* gepolab llm answer: whether a response is right, and how the checker reads it and the reference.
 */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "llm/answer/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

/* Where an answer is looked for in a text. */
typedef enum place { BOX_OR_ALL, BOXED, LAST_NUMBER } place;
static const char *const place_names[] = {"auto", "boxed", "last_number"};
enum { N_PLACES = sizeof place_names / sizeof *place_names };

/* A text, the answer found in it, and how that is read. */
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

/* All of standard input, malloc'd. */
static gl_status read_input(char **out, gl_error *err) {
  *out = malloc(MOST_BYTES + 2);
  if (*out == NULL) return gl_fail_memory(err, "a response");
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

static int answer_add_text(cJSON *to, const char *key, const char *text, size_t n) {
  char *copy = strndup(text, n);
  int ok = copy != NULL && json_add_string(to, key, copy) != NULL;
  free(copy);
  return ok;
}

/* Node *i and the parts that follow it; *i is then the place behind them. */
static int node_json(cJSON *o, const answer_reading *r, size_t *i) {
  const answer_node *node = &r->node[(*i)++];
  int ok = json_add_string(o, "kind", answer_kind_name(node->kind)) != NULL &&
           answer_add_text(o, "text", r->text + node->begin, node->n);
  if (ok && node->name_n > 0)
    ok = answer_add_text(o, "name", r->text + node->name_begin, node->name_n);
  if (ok && node->has_value)
    ok = json_add_number(o, "value", node->value) != NULL &&
         json_add_string(o, "value_text", node->written) != NULL;
  cJSON *parts = NULL;
  while (ok && *i < r->nodes && r->node[*i].depth > node->depth) {
    if (parts == NULL) parts = cJSON_AddArrayToObject(o, "parts");
    cJSON *part = parts != NULL ? cJSON_CreateObject() : NULL;
    ok = part != NULL && cJSON_AddItemToArray(parts, part);
    if (!ok) cJSON_Delete(part);
    ok = ok && node_json(part, r, i);
  }
  return ok;
}

static int side_json(cJSON *d, const side *s) {
  cJSON *o = cJSON_AddObjectToObject(d, s->what), *reading = NULL;
  size_t i = 0;
  if (o == NULL) return 0;
  if (s->answer == NULL)
    return cJSON_AddNullToObject(o, "found") != NULL && cJSON_AddNullToObject(o, "answer") != NULL;
  return json_add_string(o, "found", s->found) != NULL &&
         answer_add_text(o, "answer", s->answer, s->n) &&
         (reading = cJSON_AddObjectToObject(o, "reading")) != NULL &&
         node_json(reading, &s->reading, &i) &&
         cJSON_AddBoolToObject(o, "cut_off", s->reading.is_cut_off) != NULL;
}

static gl_status answer_print_json(int equal, const side *reference, const side *response,
                                   gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  int ok = d != NULL && cJSON_AddBoolToObject(d, "equal", equal) != NULL &&
           side_json(d, reference) && side_json(d, response);
  return report_json_if(ok, d, err);
}

/* --- the command --- */

static gl_status answer_check(const char *reference, const char *response, place where, int json,
                              gl_error *err) {
  side *sides = calloc(2, sizeof *sides);
  if (sides == NULL) return gl_fail_memory(err, "two answers");
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

static gl_status run_answer(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *reference = NULL, *pattern = place_names[BOX_OR_ALL];
  const args_option options[] = {
      {"reference", 'r', ARGS_TEXT, "ANSWER", "the right answer, or a text with it in a box",
       &reference},
      {"pattern", 0, ARGS_TEXT, "WHERE",
       "where the response's answer stands: boxed or last_number, as `answer_pattern` of a recipe; "
       "auto (default): in a box, or else all of it",
       &pattern},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  args a;
  char *input = NULL;
  size_t where = 0;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (reference == NULL)
      status = gl_fail(err, GL_EINPUT, "llm answer needs --reference ANSWER, the right answer");
    if (status == GL_OK)
      status = args_choose(&where, "--pattern", pattern, place_names, N_PLACES, err);
    if (status == GL_OK && strcmp(a.words[0], "-") == 0) status = read_input(&input, err);
    if (status == GL_OK)
      status = answer_check(reference, input != NULL ? input : a.words[0], (place)where, json, err);
  }
  free(input);
  args_fini(&a);
  return status;
}

const command command_llm_answer = {
    .name = "llm answer",
    .arguments = "RESPONSE --reference ANSWER",
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
