/* Code shared by all kinds of task: the fields of a section, the split, random numbers.
 *
 * A generated problem is found by rejection. Attempt a at problem i of a split takes its random
 * numbers from
 *
 *   stream (seed, RNG_DATA, entity = 2 i + split), blocks a 2^20 .. (a + 1) 2^20 - 1
 *
 * and the first attempt whose key belongs to the split is the problem. So no problem depends on
 * another, and a split's problems have the kind's distribution, conditional on belonging to the
 * split. */
#include "llm/task/internal.h"

#include "core/base/hash.h"
#include "core/config/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the fields of a section --- */

static const char *task_kind_name(size_t i) {
  return task_kind_at(i, NULL);
}

#define LLM                                                                                        \
  { "world.kind", "llm" }

static const field entries[] = {
    FIELD("world.task.kind", "task kind", CHOICE_AT(task_kind_name), "", "addition",
          "addition, modular, countdown, sorting, parity, brackets or math; `gepolab llm tasks` "
          "lists them",
          .shorthand = "world.task", .when = {LLM}),
    FIELD(
        "world.task.held_out", "held-out fraction", REAL(0, 0.9), "", "0.05",
        "fraction of all problems that is held out for evaluation, 0 to 0.9; 0: none. A split that "
        "is empty, or nearly so because the task has few problems, is refused",
        .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.held_out", "held-out fraction", REAL(0, 0.9), "", "0.1", NULL, .when = {LLM}),
    FIELD("world.task.reward", "task reward", CHOICE("exact", "graded"), "", "exact",
          "exact: 1 for a right answer, else 0; graded: partial credit, where the kind has it",
          .when = {LLM}),
    FIELD("world.task.cut_off", "cut-off rule", CHOICE("wrong", "score"), "", "wrong",
          "whether a response without its end within the length limit is wrong, or scored like any "
          "other (score)",
          .when = {LLM}),
    FIELD("world.task.digits", "digits", COUNT(1, TASK_MAX_DIGITS), "", "2",
          "operands are uniform over the numbers of up to so many digits, at most 64",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.min_digits", "fewest digits", COUNT(1, INFINITY), "", "1",
          "fewest digits of an operand", .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.terms", "terms", COUNT(2, TASK_MAX_TERMS), "", "2",
          "operands of a problem, 2 to 8", .when = {LLM}),
    FIELD("world.task.pad", "padding", FLAG, "", "false",
          "operands of `digits` digits and answers of `digits` + 1, filled with zeros, so that all "
          "lengths are the same",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.reverse", "reversed", FLAG, "", "false",
          "the answer's last digit comes first, as carrying goes",
          .when = {LLM, {"world.task.kind", "addition"}}),
    FIELD("world.task.modulus", "task modulus", INTEGER(2, 1000000), "", "97",
          "2 to 1,000,000; operands are uniform below it",
          .when = {LLM, {"world.task.kind", "modular"}}),
    FIELD("world.task.operations", "operations", LIST, "", NULL,
          "of modular: add, subtract and multiply, each as likely; products come before sums. Of "
          "countdown: those of the solution that warm-up teaches, also divide",
          .rule = "all"),
    FIELD("world.task.numbers", "numbers given", COUNT(2, TASK_MAX_NUMBERS), "", "3",
          "how many numbers are given, 2 to 6", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.largest", "largest number", INTEGER(1, TASK_MAX_LARGEST), "", "9",
          "largest number given, up to 999", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.largest_target", "largest target", INTEGER(1, 999999), "", "99",
          "largest target, up to 999,999", .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.use", "use of numbers", CHOICE("any", "all"), "", "any",
          "any: each number at most once; all: each exactly once",
          .when = {LLM, {"world.task.kind", "countdown"}}),
    FIELD("world.task.length", "length", COUNT(1, TASK_MAX_SORTED), "", "5",
          "of sorting: most numbers of a problem, up to 200; of parity: bits, up to 500; of "
          "brackets: characters of the beginning that is given, up to 500",
          .when = {LLM, {"world.task.kind", "sorting"}}),
    FIELD("world.task.length", "length", COUNT(1, TASK_MAX_LENGTH), "", "8", NULL, .when = {LLM}),
    FIELD("world.task.min_length", "least length", COUNT(1, INFINITY), "", NULL,
          "fewest of them; lengths are uniform between the two", .rule = "length"),
    FIELD("world.task.values", "values", COUNT(2, TASK_MAX_VALUES), "", "10",
          "numbers are uniform below it, 2 to 1000; with more than 10, commas are between them",
          .when = {LLM, {"world.task.kind", "sorting"}}),
    FIELD("world.task.chain", "chain", FLAG, "", "false",
          "the answer is the parity of every beginning; only then there is a graded reward",
          .when = {LLM, {"world.task.kind", "parity"}}),
    FIELD("world.task.depth", "nesting depth", COUNT(1, INFINITY), "", NULL,
          "deepest nesting of the beginning that is given",
          .rule = "4, or length where that is less"),
    FIELD("world.task.kinds", "bracket kinds", COUNT(1, 4), "", "2",
          "how many kinds of brackets there are: the first of (), [], {}, <>",
          .when = {LLM, {"world.task.kind", "brackets"}}),
    FIELD("world.task.longest", "longest closing", COUNT(1, INFINITY), "", NULL,
          "longest response that is right", .rule = "depth"),
    FIELD("world.task.path", "problems", TEXT, "", NULL,
          "a JSON Lines file in UTF-8, one problem a line; looked for beside the recipe's file "
          "first. Required",
          .is_file = true, .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.prompt_key", "prompt key", TEXT, "", "prompt", "key of the prompt",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.answer_key", "answer key", TEXT, "", "answer",
          "key of the answer, which may be a number", .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.template", "task template", TEXT, "", "{prompt}",
          "what the model is given, the prompt in place of {prompt}",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.answer_pattern", "answer pattern", CHOICE("boxed", "last_number"), "",
          "boxed",
          "where a response's final answer is: boxed (in the last closed \\boxed{} or "
          "\\fbox{}) or last_number (there, or else the last number of the text)",
          .when = {LLM, {"world.task.kind", "math"}}),
    FIELD("world.task.held_out_path", "held-out problems", TEXT, "", NULL,
          "a file of held-out problems instead of `held_out`; training problems with one of its "
          "prompts are left out",
          .is_file = true),
};

FIELD_TABLE(llm_task_fields, entries);

enum {
  ATTEMPT_BLOCKS = 1 << 20,
  MOST_ATTEMPTS = 1 << 20,
  /* A split is refused if one of its first problems is not found within this many attempts. A split
     that passes has more than about 2^-14 of all problems, so 2^20 attempts fail with a probability
     of about e^-64. */
  PROBED_ATTEMPTS = 1 << 14,
  PROBED_PROBLEMS = 8
};

static const task_rules *const kinds[] = {
#define TASK_KIND(name) &task_##name,
    TASK_KINDS(TASK_KIND)
#undef TASK_KIND
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char *task_kind_at(size_t i, const char **about) {
  if (i >= N_KINDS) return NULL;
  if (about != NULL) *about = kinds[i]->about;
  return kinds[i]->name;
}

const task_field *task_kind_fields(const char *kind) {
  for (size_t i = 0; i < N_KINDS; ++i)
    if (strcmp(kinds[i]->name, kind) == 0) return kinds[i]->field;
  return NULL;
}

const char *const *task_kind_example(const char *kind) {
  for (size_t i = 0; i < N_KINDS; ++i)
    if (strcmp(kinds[i]->name, kind) == 0 && kinds[i]->example[0] != NULL) return kinds[i]->example;
  return NULL;
}

/* --- problems --- */

/* The high bits of FNV depend little on the end of a short text; the mixing step (MurmurHash3's, by
 * Appleby) spreads it over all bits. */
bool task_is_held_out(double share, const char *key, size_t n) {
  uint64_t h = hash_64(HASH_64_START, key, n);
  h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
  h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  h ^= h >> 33;
  return (double)(h >> 11) * 0x1p-53 < share;
}

/* Returns 1 and the problem in *out if one of the first `attempts` attempts belongs to the split.
 */
static bool find_problem(const task *t, task_split split, uint64_t i, uint64_t attempts,
                         task_sample *out) {
  rng_stream stream = rng_stream_at(t->seed, RNG_DATA, i << 1 | (uint64_t)(split == TASK_HELD_OUT));
  for (uint64_t a = 0; a < attempts; ++a) {
    task_source source = {stream, a * ATTEMPT_BLOCKS};
    out->prompt.n = out->answer.n = out->key.n = 0;
    if (!t->kind->draw(t, &source, out)) continue;
    const task_text *key = out->key.n != 0 ? &out->key : &out->prompt;
    if (task_is_held_out(t->held_out, key->data, key->n) == (split == TASK_HELD_OUT)) return true;
  }
  return false;
}

gl_status task_problem(const task *t, task_split split, uint64_t i, problem *out, gl_error *err) {
  *out = (problem){0};
  if (i >= task_size(t, split))
    return gl_fail(err, GL_EINTERNAL, "problem %llu of a split that has %zu", (unsigned long long)i,
                   task_size(t, split));
  if (t->kind->problem != NULL) return t->kind->problem(t, split, i, out, err);
  task_sample sample;
  if (!find_problem(t, split, i, MOST_ATTEMPTS, &sample))
    return gl_fail(err, GL_EINPUT,
                   "the %s split of task %s holds next to no problem; change held_out or make the "
                   "task larger",
                   split == TASK_TRAIN ? "training" : "held-out", t->kind->name);
  out->prompt = strdup(sample.prompt.data);
  out->answer = strdup(sample.answer.data);
  if (out->prompt != NULL && out->answer != NULL) return GL_OK;
  problem_fini(out);
  return gl_fail_memory(err, "a problem");
}

void problem_fini(problem *p) {
  free(p->prompt);
  free(p->answer);
  *p = (problem){0};
}

/* --- rewards --- */

double task_score(const task *t, const problem *p, const char *response, bool finished) {
  if (!finished && !t->score_cut_off) return 0;
  while (task_is_space(*response)) ++response;
  size_t n = strlen(response);
  while (n > 0 && task_is_space(response[n - 1])) --n;
  return t->kind->score(t, p, response, n);
}

double task_score_positions(const task *t, const problem *p, const char *response, size_t n) {
  size_t m = strlen(p->answer), same = 0, longer = n > m ? n : m;
  for (size_t i = 0; i < n && i < m; ++i) same += response[i] == p->answer[i];
  if (same == longer) return 1;
  return t->graded ? (double)same / (double)longer : 0;
}

/* --- texts and draws of the kinds --- */

void task_put(task_text *to, const char *text, size_t n) {
  assert(n < TASK_TEXT_SIZE - to->n); /* guaranteed by the limits of the fields */
  memcpy(to->data + to->n, text, n);
  to->n += n;
  to->data[to->n] = '\0';
}

void task_put_char(task_text *to, char c) {
  task_put(to, &c, 1);
}

void task_put_number(task_text *to, int64_t x) {
  char digits[24];
  task_put(to, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, x));
}

uint64_t task_below(task_source *s, uint64_t n) {
  assert(n > 0 && n < UINT64_C(1) << 52);
  rng_words w = rng_block(s->stream, s->block++);
  return (uint64_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n);
}

/* --- alphabets --- */

void task_use(task *t, const char *characters) {
  for (; *characters != '\0'; ++characters) {
    size_t n = strlen(t->alphabet), at = 0;
    while (at < n && t->alphabet[at] < *characters) ++at;
    if (t->alphabet[at] == *characters) continue;
    memmove(t->alphabet + at + 1, t->alphabet + at, n - at + 1);
    t->alphabet[at] = *characters;
  }
}

void task_use_digits(task *t, uint64_t largest) {
  for (uint64_t digit = 0; digit < 10 && digit <= largest; ++digit)
    task_use(t, (char[2]){(char)('0' + digit), '\0'});
  for (uint64_t x = largest; x != 0; x /= 10) task_use(t, (char[2]){(char)('0' + x % 10), '\0'});
}

size_t task_digits(uint64_t x) {
  size_t n = 1;
  while ((x /= 10) != 0) ++n;
  return n;
}

/* --- fields of the kinds --- */

/* State while reading a list of words. */
typedef struct word_choices {
  cfg_reader *r;
  const char *key, *const *names, *letters; /* the allowed words, and their letters */
  size_t n;
  char *out; /* [n_out] letters of the words read */
  size_t n_out;
} word_choices;

/* Adds the letter of the word at node. If the word is unknown or repeated, the reader's status is
 * an error. */
static void choose_word(word_choices *c, const cfg_node *node) {
  char hint[CFG_HINT_SIZE];
  const char *word = cfg_text(node);
  for (size_t i = 0; i < c->n && cfg_kind_of(node) == CFG_SCALAR; ++i) {
    if (strcmp(c->names[i], word) != 0) continue;
    if (memchr(c->out, c->letters[i], c->n_out) == NULL)
      c->out[c->n_out++] = c->letters[i];
    else
      c->r->status =
          cfg_fail(node, c->r->err, "'%s.%s' names %s twice", c->r->section, c->key, word);
    return;
  }
  char all[160] = "";
  for (size_t i = 0; i < c->n; ++i) {
    if (i != 0) strncat(all, ", ", sizeof all - strlen(all) - 1);
    strncat(all, c->names[i], sizeof all - strlen(all) - 1);
  }
  c->r->status =
      cfg_fail(node, c->r->err, "'%s.%s' holds '%.40s'; it must be a list of some of %s%s",
               c->r->section, c->key, word, all, cfg_hint(word, c->names, c->n, hint));
}

size_t task_choices(cfg_reader *r, const char *key, const char *const *names, const char *letters,
                    size_t n, char *out) {
  const cfg_node *node = cfg_child(r, key);
  if (node == NULL) {
    memcpy(out, letters, n);
    return n;
  }
  word_choices c = {r, key, names, letters, n, out, 0};
  if (cfg_kind_of(node) != CFG_LIST || cfg_size(node) == 0)
    choose_word(&c, node);
  else
    for (size_t i = 0; i < cfg_size(node) && r->status == GL_OK; ++i)
      choose_word(&c, cfg_at(node, i));
  return c.n_out;
}

void task_read_length(cfg_reader *r, size_t *length, size_t *min_length) {
  *length = field_count(r, "length");
  *min_length = cfg_count(r, "min_length", *length, 1, *length);
}

/* --- a section --- */

/* Checks that both splits have problems; otherwise sampling one would never end. */
static gl_status probe_splits(const task *t, const cfg_node *at, gl_error *err) {
  task_sample sample;
  for (int split = TASK_TRAIN; split <= TASK_HELD_OUT; ++split) {
    if (split == TASK_HELD_OUT && t->held_out == 0) continue;
    for (uint64_t i = 0; i < PROBED_PROBLEMS; ++i) {
      if (find_problem(t, (task_split)split, i, PROBED_ATTEMPTS, &sample)) continue;
      const char *format =
          "the %s split of this task is empty or nearly so with held_out: %g; change held_out, or "
          "make the task's problems more";
      const char *name = split == TASK_TRAIN ? "training" : "held-out";
      return at == NULL ? gl_fail(err, GL_EINPUT, format, name, t->held_out)
                        : cfg_fail(at, err, format, name, t->held_out);
    }
  }
  return GL_OK;
}

static gl_status read_task_section(task *t, const cfg_node *section, gl_error *err) {
  cfg_reader r;
  cfg_begin_at(&r, section, "world.task", "task", err);
  t->kind = kinds[field_choice(&r, "kind")];
  cfg_of(&r, "world.task.kind", t->kind->name);
  t->held_out = field_real(&r, "held_out");
  t->graded = field_choice(&r, "reward");
  t->score_cut_off = field_choice(&r, "cut_off");
  const cfg_node *reward = cfg_child(&r, "reward"), *share = cfg_child(&r, "held_out");
  if (r.status == GL_OK) {
    t->parameters = calloc(1, t->kind->parameters_size);
    if (t->parameters == NULL)
      r.status = gl_fail_memory(err, "a task");
    else
      t->kind->read(t, &r, section);
  }
  if (cfg_end(&r) != GL_OK) return r.status;
  if (t->graded && !t->kind->has_graded)
    return cfg_fail(reward, err, "task %s has no graded reward; write exact", t->kind->name);
  return t->kind->draw == NULL ? GL_OK : probe_splits(t, share != NULL ? share : section, err);
}

gl_status task_new(task **out, const cfg_node *section, uint64_t seed, gl_error *err) {
  *out = NULL;
  task *t = calloc(1, sizeof *t);
  if (t == NULL) return gl_fail_memory(err, "a task");
  t->seed = seed;
  gl_status status = read_task_section(t, section, err);
  if (status == GL_OK)
    *out = t;
  else
    task_free(t);
  return status;
}

void task_free(task *t) {
  if (t == NULL) return;
  if (t->parameters != NULL && t->kind->fini != NULL) t->kind->fini(t);
  free(t->parameters);
  free(t);
}

const char *task_kind(const task *t) {
  return t->kind->name;
}

const char *task_alphabet(const task *t) {
  return t->kind->draw == NULL ? NULL : t->alphabet;
}

size_t task_size(const task *t, task_split split) {
  if (t->kind->size != NULL) return t->kind->size(t, split);
  return split == TASK_HELD_OUT && t->held_out == 0 ? 0 : SIZE_MAX / 2;
}

size_t task_max_prompt(const task *t) {
  return t->max_prompt;
}

size_t task_max_answer(const task *t) {
  return t->max_answer;
}
