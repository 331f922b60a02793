/* What holds for every generated task: answers are right, problems have addresses, splits share
 * nothing, wrong sections are refused. */
#include "core/config/fields.h"
#include "tests/support/llm_task.h"

SUITE("llm: tasks");

static const char *const sections[] = {
    "task: {kind: addition}",
    "task: {kind: addition, digits: 1, terms: 8}",
    "task: {kind: addition, digits: 4, min_digits: 3, reverse: true}",
    "task: {kind: addition, digits: 3, pad: true}",
    "task: {kind: addition, digits: 64, terms: 3, pad: true, reverse: true, reward: graded}",
    "task: {kind: modular}",
    "task: {kind: modular, modulus: 7, terms: 3}",
    "task: {kind: modular, modulus: 1000000, terms: 8, operations: [subtract, multiply]}",
    "task: {kind: countdown}",
    "task: {kind: countdown, numbers: 6, largest: 999, largest_target: 999999, use: all}",
    "task: {kind: countdown, numbers: 4, operations: [subtract, divide], reward: graded}",
    "task: {kind: sorting}",
    "task: {kind: sorting, length: 200, min_length: 1, values: 1000}",
    "task: {kind: sorting, length: 12, values: 2, reward: graded}",
    "task: {kind: parity}",
    "task: {kind: parity, length: 500, chain: true}",
    "task: {kind: parity, length: 9, min_length: 7, chain: true, reward: graded}",
    "task: {kind: brackets}",
    "task: {kind: brackets, length: 500, depth: 60, kinds: 4, longest: 100}",
    "task: {kind: brackets, length: 12, min_length: 4, depth: 3, kinds: 1, reward: graded}",
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

static int all_in(const char *text, const char *alphabet) {
  return strspn(text, alphabet) == strlen(text);
}

TEST(every_answer_scores_one_and_keeps_the_bounds) {
  for (size_t k = 0; k < N_SECTIONS; ++k) {
    task_fixture f = task_open(sections[k], 11);
    for (uint64_t i = 0; i < 400; ++i) {
      problem p = task_get(f.t, i % 2 == 0 ? TASK_TRAIN : TASK_HELD_OUT, i * 1000003);
      int right = task_score(f.t, &p, p.answer, 1) == 1 &&
                  strlen(p.prompt) <= task_max_prompt(f.t) && *p.prompt != '\0' &&
                  strlen(p.answer) <= task_max_answer(f.t) && *p.answer != '\0' &&
                  all_in(p.prompt, task_alphabet(f.t)) && all_in(p.answer, task_alphabet(f.t));
      if (!right) fprintf(stderr, "%s: '%s' '%s'\n", sections[k], p.prompt, p.answer);
      CU_ASSERT(right);
    }
  }
}

/* The bounds are reached where lengths are fixed, so they are not merely large. */
TEST(padded_sums_have_the_lengths_that_are_told) {
  task_fixture f = task_open("task: {kind: addition, digits: 3, terms: 3, pad: true}", 2);
  for (uint64_t i = 0; i < 200; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i);
    CU_ASSERT_EQUAL(strlen(p.prompt), task_max_prompt(f.t));
    CU_ASSERT_EQUAL(strlen(p.answer), task_max_answer(f.t));
  }
  CU_ASSERT_EQUAL(task_max_prompt(f.t), 12);
  CU_ASSERT_EQUAL(task_max_answer(f.t), 4);
}

TEST(alphabets_are_sorted_and_without_repeats) {
  for (size_t k = 0; k < N_SECTIONS; ++k) {
    task_fixture f = task_open(sections[k], 1);
    const char *a = task_alphabet(f.t);
    for (size_t i = 1; a[0] != '\0' && a[i] != '\0'; ++i) CU_ASSERT(a[i - 1] < a[i]);
  }
  task_fixture f =
      task_open("task: {kind: modular, modulus: 5, operations: multiply, held_out: 0.5}", 1);
  CU_ASSERT_STRING_EQUAL(task_alphabet(f.t), "%()*012345=");
}

static int same(const problem *p, const problem *q) {
  return strcmp(p->prompt, q->prompt) == 0 && strcmp(p->answer, q->answer) == 0;
}

TEST(a_problem_depends_on_its_address_alone) {
  for (size_t k = 0; k < N_SECTIONS; ++k) {
    task_fixture f = task_open(sections[k], 5), g = task_open(sections[k], 5),
                 h = task_open(sections[k], 6);
    size_t moved = 0, other_split = 0;
    for (uint64_t i = 0; i < 40; ++i) {
      task_get(g.t, TASK_TRAIN, 39 - i);
      problem p = task_get(f.t, TASK_TRAIN, i), again = task_get(g.t, TASK_TRAIN, i),
              other = task_get(h.t, TASK_TRAIN, i), held = task_get(f.t, TASK_HELD_OUT, i);
      CU_ASSERT(same(&p, &again));
      moved += !same(&p, &other);
      other_split += !same(&p, &held);
    }
    CU_ASSERT(moved >= 30);
    CU_ASSERT_EQUAL(other_split, 40);
  }
}

/* --- splits --- */

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **prompts_of(const task *t, task_split split, size_t n) {
  char **all = calloc(n, sizeof *all);
  CU_ASSERT_PTR_NOT_NULL_FATAL(all);
  for (size_t i = 0; i < n; ++i) all[i] = task_get(t, split, i).prompt;
  qsort(all, n, sizeof *all, by_text);
  return all;
}

static size_t count_common(char **a, size_t n, char **b, size_t m) {
  size_t common = 0;
  for (size_t i = 0; i < n; ++i) common += bsearch(&a[i], b, m, sizeof *b, by_text) != NULL;
  return common;
}

/* Of n training problems and n / 4 held-out ones of a section, none has a prompt of the other
 * split's, also where the other split is that of another seed. */
static void check_disjoint(const char *section, size_t n) {
  task_fixture f = task_open(section, 1), g = task_open(section, 99);
  char **train = prompts_of(f.t, TASK_TRAIN, n), **held = prompts_of(f.t, TASK_HELD_OUT, n / 4),
       **other_seed = prompts_of(g.t, TASK_HELD_OUT, n / 4);
  CU_ASSERT_EQUAL(count_common(held, n / 4, train, n), 0);
  CU_ASSERT_EQUAL(count_common(other_seed, n / 4, train, n), 0);
  CU_ASSERT(count_common(train, n, train, n) == n); /* the search finds */
  free(train), free(held), free(other_seed);
}

TEST(splits_share_no_prompt) {
  check_disjoint("task: {kind: addition, digits: 2}", 80000); /* 10^5 problems in all */
  static const char *const smaller[] = {"task: {kind: addition, digits: 1}",
                                        "task: {kind: addition, digits: 1, held_out: 0.5}",
                                        "task: {kind: modular, modulus: 11, terms: 3}",
                                        "task: {kind: countdown}",
                                        "task: {kind: sorting, length: 4}",
                                        "task: {kind: parity, length: 10}",
                                        "task: {kind: brackets, length: 10}"};
  for (size_t k = 0; k < sizeof smaller / sizeof *smaller; ++k) check_disjoint(smaller[k], 8000);
}

/* How many of the first `n` held-out problems become one of the first `n_train` training prompts
 * when turn() puts them in another order. */
static size_t count_turned(const char *section, size_t n, size_t n_train,
                           void (*turn)(const char *prompt, char *turned, size_t size)) {
  task_fixture f = task_open(section, 1);
  char **train = prompts_of(f.t, TASK_TRAIN, n_train);
  size_t found = 0;
  for (uint64_t i = 0; i < n; ++i) {
    char text[64], *key = text;
    problem p = task_get(f.t, TASK_HELD_OUT, i);
    turn(p.prompt, text, sizeof text);
    found += bsearch(&key, train, n_train, sizeof *train, by_text) != NULL;
  }
  free(train);
  return found;
}

static void swap_terms(const char *prompt, char *turned, size_t size) {
  int a, b;
  CU_ASSERT_FATAL(sscanf(prompt, "%d+%d=", &a, &b) == 2);
  snprintf(turned, size, "%d+%d=", b, a);
}

/* (a+b*c)%m becomes (c*b+a)%m. */
static void swap_chain(const char *prompt, char *turned, size_t size) {
  int a, b, c, m;
  char p, q;
  CU_ASSERT_FATAL(sscanf(prompt, "(%d%c%d%c%d)%%%d=", &a, &p, &b, &q, &c, &m) == 6);
  if (p == '+' && q == '*')
    snprintf(turned, size, "(%d*%d+%d)%%%d=", c, b, a, m);
  else
    snprintf(turned, size, "(%d%c%d%c%d)%%%d=", q == p ? c : a, p, b, q, q == p ? a : c, m);
}

static void swap_numbers(const char *prompt, char *turned, size_t size) {
  int a, b, c, target;
  CU_ASSERT_FATAL(sscanf(prompt, "%d,%d,%d=%d:", &a, &b, &c, &target) == 4);
  snprintf(turned, size, "%d,%d,%d=%d:", c, a, b, target);
}

/* 3+5 and 5+3 are one problem: neither gives the other away. */
TEST(a_problem_in_another_order_stays_in_its_split) {
  CU_ASSERT_EQUAL(count_turned("task: {kind: addition, held_out: 0.3}", 2000, 20000, swap_terms),
                  0);
  CU_ASSERT_EQUAL(count_turned("task: {kind: modular, modulus: 9, terms: 3, operations: [add, "
                               "multiply], held_out: 0.3}",
                               1000, 10000, swap_chain),
                  0);
  CU_ASSERT_EQUAL(count_turned("task: {kind: countdown, held_out: 0.3}", 1000, 10000, swap_numbers),
                  0);
  /* The search finds what it looks for: differences in another order are problems of their own. */
  CU_ASSERT(count_turned("task: {kind: modular, modulus: 9, terms: 3, operations: subtract, "
                         "held_out: 0.3}",
                         1000, 10000, swap_chain) > 100);
}

/* Of 10,000 uniform three-digit pairs about a tenth are held out: binomial, 4.5 standard deviations
 * fail a right hash with probability 7e-6. */
TEST(the_held_out_share_is_the_one_asked_for) {
  task_fixture all = task_open("task: {kind: addition, digits: 3, held_out: 0}", 3),
               held = task_open("task: {kind: addition, digits: 3, held_out: 0.1}", 3);
  enum { N = 10000 };
  double share = 0;
  for (uint64_t i = 0; i < N; ++i) {
    /* The first attempt is the same in both; where it is held out, the training split goes on. */
    problem p = task_get(all.t, TASK_TRAIN, i), q = task_get(held.t, TASK_TRAIN, i);
    share += !same(&p, &q) / (double)N;
  }
  CU_ASSERT(fabs(share - 0.1) < 4.5 * sqrt(0.09 / N));
  CU_ASSERT_EQUAL(task_size(all.t, TASK_HELD_OUT), 0);
  CU_ASSERT(task_size(all.t, TASK_TRAIN) >= SIZE_MAX / 2);
  problem p;
  gl_error err = {0};
  CU_ASSERT_EQUAL(task_problem(all.t, TASK_HELD_OUT, 0, &p, &err), GL_EINTERNAL);
  CU_ASSERT_PTR_NULL(p.prompt);
}

/* --- rewards common to all --- */

TEST(white_space_around_a_response_does_not_matter) {
  for (size_t k = 0; k < N_SECTIONS; ++k) {
    task_fixture f = task_open(sections[k], 7);
    problem p = task_get(f.t, TASK_TRAIN, 3);
    char spaced[2048];
    snprintf(spaced, sizeof spaced, " \t%s\r\n ", p.answer);
    CU_ASSERT(task_score(f.t, &p, spaced, 1) == 1);
    CU_ASSERT(task_score(f.t, &p, "", 1) == 0);
    CU_ASSERT(task_score(f.t, &p, " \n", 1) == 0);
    CU_ASSERT(task_score(f.t, &p, "\xff\xfe", 1) == 0);
  }
}

TEST(a_response_that_was_cut_off_is_wrong_unless_the_section_says_otherwise) {
  task_fixture f = task_open("task: {kind: parity}", 1),
               g = task_open("task: {kind: parity, cut_off: score}", 1);
  problem p = task_get(f.t, TASK_TRAIN, 0);
  CU_ASSERT(task_score(f.t, &p, p.answer, 0) == 0);
  CU_ASSERT(task_score(f.t, &p, p.answer, 1) == 1);
  CU_ASSERT(task_score(g.t, &p, p.answer, 0) == 1);
}

/* Exact rewards take nothing but 0 and 1, whatever single character of the answer is changed; where
 * only one answer is right, a changed one scores 0. */
TEST(a_changed_answer_is_wrong) {
  static const struct {
    const char *section;
    int several; /* a changed answer may be right, too */
  } some[] = {{"task: {kind: addition, digits: 5}", 0},
              {"task: {kind: modular}", 0},
              {"task: {kind: sorting}", 0},
              {"task: {kind: parity, chain: true}", 0},
              {"task: {kind: brackets}", 0},
              {"task: {kind: countdown}", 1}};
  for (size_t k = 0; k < sizeof some / sizeof *some; ++k) {
    task_fixture f = task_open(some[k].section, 4);
    const char *alphabet = task_alphabet(f.t);
    size_t right = 0;
    for (uint64_t i = 0; i < 50; ++i) {
      problem p = task_get(f.t, TASK_TRAIN, i);
      char changed[128];
      snprintf(changed, sizeof changed, "%s", p.answer);
      for (size_t at = 0; p.answer[at] != '\0'; ++at)
        for (size_t c = 0; alphabet[c] != '\0'; ++c) {
          if (alphabet[c] == p.answer[at]) continue;
          changed[at] = alphabet[c];
          double score = task_score(f.t, &p, changed, 1);
          CU_ASSERT(score == 0 || score == 1);
          right += score == 1;
          changed[at] = p.answer[at];
        }
      snprintf(changed, sizeof changed, "%s0", p.answer);
      CU_ASSERT(task_score(f.t, &p, changed, 1) == 0);
    }
    CU_ASSERT(some[k].several ? right < 30 : right == 0);
  }
}

/* --- wrong sections --- */

static const struct {
  const char *text, *place, *says;
} wrong[] = {
    {"task: {kind: additon}", "r.yaml:1:14: ", "did you mean 'addition'"},
    {"task: [1]", "r.yaml:1:7: ", "must be a map"},
    {"task: {kind: addition, digts: 2}", "r.yaml:1:24: ", "did you mean 'digits'"},
    {"task: {kind: addition, modulus: 2}", "r.yaml:1:24: ", "unknown key 'modulus'"},
    {"task: {kind: addition, digits: 0}", "r.yaml:1:32: ", "from 1 to 64"},
    {"task: {kind: addition, digits: 65}", "r.yaml:1:32: ", "from 1 to 64"},
    {"task: {kind: addition, min_digits: 3}", "r.yaml:1:36: ", "from 1 to 2"},
    {"task: {kind: addition, terms: 1}", "r.yaml:1:31: ", "from 2 to 8"},
    {"task: {kind: addition, reverse: ture}", "r.yaml:1:33: ", "did you mean 'true'"},
    {"task: {kind: addition, held_out: 1}", "r.yaml:1:34: ", "from 0 to 0.9"},
    {"task: {kind: addition, held_out: -0.1}", "r.yaml:1:34: ", "from 0 to 0.9"},
    {"task: {kind: addition, held_out: 1e-7}", "r.yaml:1:34: ", "held-out split"},
    {"task: {kind: addition, reward: grded}", "r.yaml:1:32: ", "did you mean 'graded'"},
    {"task: {kind: addition, cut_off: right}", "r.yaml:1:33: ", "wrong, score"},
    {"task:\n  kind: parity\n  length: 1\n", "r.yaml:2:3: ", "split of this task is empty"},
    {"task: {kind: parity, length: 501}", "r.yaml:1:30: ", "from 1 to 500"},
    {"task: {kind: parity, reward: graded}", "r.yaml:1:30: ", "only with chain"},
    {"task: {kind: modular, reward: graded}", "r.yaml:1:31: ", "no graded reward"},
    {"task: {kind: modular, modulus: 1}", "r.yaml:1:32: ", "from 2 to 1000000"},
    {"task: {kind: modular, operations: [add, divide]}",
     "r.yaml:1:41: ", "add, subtract, multiply"},
    {"task: {kind: modular, operations: [add, add]}", "r.yaml:1:41: ", "twice"},
    {"task: {kind: modular, operations: []}", "r.yaml:1:35: ", "a list of some of"},
    {"task: {kind: modular, operations: [[add]]}", "r.yaml:1:36: ", "a list of some of"},
    {"task: {kind: countdown, operations: substract}", "r.yaml:1:37: ", "did you mean 'subtract'"},
    {"task: {kind: countdown, numbers: 7}", "r.yaml:1:34: ", "from 2 to 6"},
    {"task: {kind: countdown, use: al}", "r.yaml:1:30: ", "any, all"},
    {"task: {kind: countdown, largest: 1, largest_target: 1, operations: add}",
     "r.yaml:1:7: ", "training split"},
    {"task: {kind: sorting, values: 1}", "r.yaml:1:31: ", "from 2 to 1000"},
    {"task: {kind: sorting, length: 3, min_length: 4}", "r.yaml:1:46: ", "from 1 to 3"},
    {"task: {kind: brackets, depth: 9}", "r.yaml:1:31: ", "from 1 to 8"},
    {"task: {kind: brackets, kinds: 5}", "r.yaml:1:31: ", "from 1 to 4"},
    {"task: {kind: brackets, longest: 3}", "r.yaml:1:33: ", "from 4 to 500"},
    {"task: {kind: brackets, length: 4, depth: 1}", "r.yaml:1:7: ", "training split"},
};

TEST(wrong_sections_are_refused_at_their_place) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    task_fixture f;
    gl_error err = {0};
    gl_status status = task_try(&f, wrong[i].text, 1, &err);
    int ok = status == GL_EINPUT && f.t == NULL &&
             strncmp(err.text, wrong[i].place, strlen(wrong[i].place)) == 0 &&
             strstr(err.text, wrong[i].says) != NULL;
    if (!ok) fprintf(stderr, "%s: got %d '%s'\n", wrong[i].text, status, err.text);
    CU_ASSERT(ok);
    task_close(&f);
  }
}

TEST(kinds_have_names_and_a_missing_section_means_addition) {
  const char *about, *name;
  size_t n = 0;
  for (; (name = task_kind_at(n, &about)) != NULL; ++n)
    CU_ASSERT(name[0] != '\0' && strlen(about) > 5);
  CU_ASSERT(n >= 7);
  task *t = NULL;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(task_new(&t, NULL, 1, &err), GL_OK);
  CU_ASSERT_STRING_EQUAL(task_kind(t), "addition");
  task_free(t);
  task_free(NULL);
}

/* What `gepolab llm tasks` prints is what the parser takes, and what the table of a recipe's fields
 * (core/config/fields.h), from which RECIPES.md takes its tables, documents. */
TEST(the_fields_that_are_listed_are_the_fields_that_are_read) {
  const char *kind;
  for (size_t i = 0; (kind = task_kind_at(i, NULL)) != NULL; ++i)
    for (const task_field *f = task_kind_fields(kind); f->key != NULL; ++f) {
      task_fixture x;
      gl_error err = {0};
      char text[200], path[128];
      snprintf(text, sizeof text, "task: {kind: %s, %s: {a: 1}}\n", kind, f->key);
      CU_ASSERT_EQUAL(task_try(&x, text, 1, &err), GL_EINPUT);
      snprintf(path, sizeof path, "world.task.%s", f->key);
      const int good = strstr(err.text, "unknown") == NULL && fields_named(path) != NULL;
      if (!good) fprintf(stderr, "%s: %s: %s\n", kind, f->key, err.text);
      CU_ASSERT(good);
      task_close(&x);
    }
  CU_ASSERT_PTR_NULL(task_kind_fields("additio"));
}
