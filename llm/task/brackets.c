/* Brackets: go on from a beginning so that the whole is balanced.
 *
 * The beginning is a random walk: at each place it opens or closes with equal chance, opens where
 * nothing is open and closes at the greatest depth; one that ends balanced is drawn again. Closing
 * everything in order is one right answer; any other that balances within `longest` characters is
 * worth as much.
 */
#include "llm/task/internal.h"

#include "core/config/fields.h"

#include <string.h>

typedef struct brackets {
  size_t length, min_length, depth, kinds, longest;
} brackets;

static brackets *brackets_of(const task *t) {
  return t->parameters;
}

static const char opening[] = "([{<", closing[] = ")]}>";

static int draw_brackets(const task *t, task_source *s, task_sample *out) {
  char stack[TASK_MAX_LENGTH];
  size_t open = 0, least = brackets_of(t)->min_length,
         n = least + task_below(s, brackets_of(t)->length - least + 1);
  for (size_t i = 0; i < n; ++i) {
    int opens = open == 0 || (open < brackets_of(t)->depth && task_below(s, 2) == 0);
    size_t kind = opens ? task_below(s, brackets_of(t)->kinds) : 0;
    if (opens) {
      task_put_char(&out->prompt, opening[kind]);
      stack[open++] = closing[kind];
    } else
      task_put_char(&out->prompt, stack[--open]);
  }
  if (open == 0) return 0;
  while (open > 0) task_put_char(&out->answer, stack[--open]);
  return 1;
}

/* Reads one bracket: 0 if it is none of the kinds or closes what is not open. */
static int take(char c, size_t kinds, char *stack, size_t *open) {
  const char *kind = memchr(opening, c, kinds);
  if (kind != NULL) {
    stack[(*open)++] = closing[kind - opening];
    return 1;
  }
  if (*open == 0 || stack[*open - 1] != c) return 0;
  --*open;
  return 1;
}

/* Graded: of the brackets that the prompt leaves open, the share closed by what is readable of the
 * response, every character that is not read counting as one more left open. */
static double score_brackets(const task *t, const problem *p, const char *response, size_t n) {
  char stack[2 * TASK_MAX_LENGTH];
  const size_t kinds = brackets_of(t)->kinds;
  size_t open = 0, read = 0;
  for (const char *c = p->prompt; *c != '\0' && open < TASK_MAX_LENGTH; ++c)
    if (!take(*c, kinds, stack, &open)) return 0;
  size_t left = open, lowest = open;
  while (read < n && read < brackets_of(t)->longest && take(response[read], kinds, stack, &open)) {
    ++read;
    if (open < lowest) lowest = open;
  }
  if (read == n && open == 0) return 1;
  if (!t->graded || left == 0) return 0;
  return (double)(left - lowest) / (double)(left + (n - read) + (open - lowest));
}

static gl_status read_brackets(task *t, cfg_reader *r, const cfg_node *section) {
  (void)section;
  task_read_length(r, &brackets_of(t)->length, &brackets_of(t)->min_length);
  size_t length = brackets_of(t)->length,
         depth = cfg_count(r, "depth", length < 4 ? length : 4, 1, length);
  brackets_of(t)->kinds = field_count(r, "kinds");
  brackets_of(t)->longest = cfg_count(r, "longest", depth, depth, TASK_MAX_LENGTH);
  brackets_of(t)->depth = depth;
  t->max_prompt = length;
  t->max_answer = brackets_of(t)->longest;
  for (size_t i = 0; i < brackets_of(t)->kinds; ++i)
    task_use(t, (char[3]){opening[i], closing[i], '\0'});
  return r->status;
}

static const task_field brackets_fields[] = {
    {"length", "1 to 500", "8", "brackets of a prompt, at most", 0},
    {"min_length", "1 to length", "length", "brackets of a prompt, at least", 0},
    {"depth", "1 to length", "4, or length where that is less",
     "most brackets that are open at once", 0},
    {"kinds", "1 to 4", "2", "pairs in use, of () [] {} <>", 0},
    {"longest", "depth to 500", "depth", "longest answer", 0},
    {NULL, NULL, NULL, NULL, 0}};

const task_rules task_brackets = {
    .name = "brackets",
    .about = "the end of a beginning of balanced brackets",
    .example = {"([]{", "})"},
    .field = brackets_fields,
    .parameters_size = sizeof(brackets),
    .read = read_brackets,
    .score = score_brackets,
    .has_graded = 1,
    .draw = draw_brackets,
};
