/* Reads how a policy is evaluated and on which sets, and splits the scores of sets into halves. */
#include "core/rl/evaluation.h"

#include "core/base/utf8.h"
#include "core/config/fields.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one evaluation --- */

static const char *const evaluation_names[] = {
    [EVALUATION_EXACT] = "exact", [EVALUATION_GREEDY] = "greedy", [EVALUATION_SAMPLED] = "sampled"};
enum { N_EVALUATIONS = sizeof evaluation_names / sizeof *evaluation_names };

/* Refuses keys that greedy evaluation would ignore. */
static void refuse_dist_of_greedy(cfg_reader *r) {
  static const char *const keys[] = {"temperature", "top_k", "top_p"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (r->status == GL_OK && cfg_has(r, keys[i]))
      r->status = cfg_fail(cfg_child(r, keys[i]), r->err,
                           "%s changes nothing in a greedy evaluation, which takes the most "
                           "probable token; leave it out, or choose another kind",
                           keys[i]);
}

void evaluation_read(evaluation_spec *out, cfg_reader *world, cfg_reader *own,
                     const evaluation_kind *kinds, int n) {
  const char *names[N_EVALUATIONS];
  assert(n >= 1 && n <= N_EVALUATIONS);
  for (int i = 0; i < n; ++i) names[i] = evaluation_names[kinds[i]];
  const cfg_node *node = cfg_child(world, "evaluation");
  const int word = node != NULL && cfg_kind_of(node) == CFG_SCALAR;
  int choice = word ? cfg_choice(world, "evaluation", 0, names, n) : 0;
  cfg_begin(own, word ? NULL : node, "world.evaluation", world->err);
  if (world->status != GL_OK) own->status = world->status;
  if (!word) choice = cfg_choice(own, "kind", 0, names, n);
  out->kind = kinds[choice];
  out->dist = (sampling_spec){.weights = SAMPLING_RAW};
  sampling_read_dist(&out->dist, NULL, own);
  if (out->kind == EVALUATION_GREEDY) refuse_dist_of_greedy(own);
}

void evaluation_read_set(evaluation_spec *out, const evaluation_spec *usual, cfg_reader *own,
                         const evaluation_kind *kinds, int n) {
  const char *names[N_EVALUATIONS];
  int fallback = 0;
  assert(n >= 1 && n <= N_EVALUATIONS);
  for (int i = 0; i < n; ++i) {
    names[i] = evaluation_names[kinds[i]];
    if (kinds[i] == usual->kind) fallback = i;
  }
  out->kind = kinds[cfg_choice(own, "kind", fallback, names, n)];
  sampling_read_dist(&out->dist, &usual->dist, own);
  if (out->kind == EVALUATION_GREEDY) refuse_dist_of_greedy(own);
}

/* --- sets: names --- */

static const char the_only[] = "all";

/* Returns why a set cannot have this name, or NULL if it can. */
static const char *refusal(const char *name) {
  const size_t n = strlen(name);
  if (n == 0) return "is empty";
  if (n >= EVALUATION_NAME_SIZE) return "is longer than 63 bytes";
  if (utf8_valid_prefix(name, n) != n) return "is not UTF-8";
  for (size_t i = 0; i < n; ++i)
    if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return "has a control character";
  return NULL;
}

/* The name of the i-th set, which must differ from those before it; NULL with an error in `own` if
 * it is missing or invalid. */
static const char *name_of(const cfg_node *list, size_t i, cfg_reader *own) {
  const cfg_node *set = cfg_at(list, i);
  if (cfg_kind_of(set) != CFG_MAP) {
    own->status =
        cfg_fail(set, own->err, "an evaluation set is a map with a name, as in {name: hard, …}");
    return NULL;
  }
  const cfg_node *name = cfg_find(set, "name");
  if (name == NULL || cfg_kind_of(name) != CFG_SCALAR) {
    own->status = cfg_fail(name != NULL ? name : set, own->err,
                           "an evaluation set needs a name, as in {name: hard, …}");
    return NULL;
  }
  const char *why = refusal(cfg_text(name));
  for (size_t k = 0; k < i && why == NULL; ++k)
    if (strcmp(cfg_text(cfg_find(cfg_at(list, k), "name")), cfg_text(name)) == 0)
      why = "is that of an earlier set";
  if (why == NULL) return cfg_text(name);
  own->status = cfg_fail(name, own->err,
                         "the name of an evaluation set, '%.80s', %s; give each a name of its own",
                         cfg_text(name), why);
  return NULL;
}

/* --- sets: parts --- */

size_t evaluation_sets_parts(const evaluation_sets *s) {
  return s->halves ? 3 : 1;
}

static void add_set(evaluation_sets *s, const char *name) {
  for (size_t half = 0; half < evaluation_sets_parts(s); ++half) {
    evaluation_part *p = &s->part[s->n_parts++];
    p->half = (int)half;
    snprintf(p->set, sizeof p->set, "%s", name);
  }
}

void evaluation_sets_read(evaluation_sets *out, cfg_reader *own) {
  *out = (evaluation_sets){0};
  const cfg_node *list = cfg_child(own, "sets");
  out->halves = field_flag(own, "halves");
  if (own->status != GL_OK || (list == NULL && !out->halves)) return;
  const size_t n = list != NULL ? cfg_size(list) : 1;
  if (list != NULL && (cfg_kind_of(list) != CFG_LIST || n == 0 || n > EVALUATION_MOST_SETS)) {
    own->status = cfg_fail(list, own->err,
                           "world.evaluation.sets must be a list of 1 to %d sets, as in [{name: "
                           "own}, {name: hard, …}]",
                           EVALUATION_MOST_SETS);
    return;
  }
  out->part = calloc(n * evaluation_sets_parts(out), sizeof *out->part);
  if (out->part == NULL) {
    own->status = gl_fail_memory(own->err, "evaluation sets");
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const char *name = list != NULL ? name_of(list, i, own) : the_only;
    if (name == NULL) return;
    add_set(out, name);
  }
  out->n = n;
}

void evaluation_sets_fini(evaluation_sets *s) {
  free(s->part);
  *s = (evaluation_sets){0};
}

/* --- sets: scores --- */

gl_status evaluation_sets_check(const evaluation_sets *s, const char *set, size_t problems,
                                const cfg_node *at, gl_error *err) {
  if (problems >= (s->halves ? 2 : 1)) return GL_OK;
  return cfg_fail(at, err,
                  "the evaluation set '%s' has %zu problems, too few%s; give it more, or leave it "
                  "out",
                  set, problems, s->halves ? " to be halved (halves: true)" : "");
}

void evaluation_sets_means(const evaluation_sets *s, const double *score, size_t problems,
                           size_t each, double *out) {
  double sum = 0, half[2] = {0, 0};
  assert(problems >= (s->halves ? 2 : 1) && each >= 1);
  for (size_t i = 0; i < problems * each; ++i) {
    sum += score[i];
    half[i / each % 2] += score[i];
  }
  out[0] = sum / (double)(problems * each);
  if (!s->halves) return;
  out[1] = half[0] / (double)((problems + 1) / 2 * each);
  out[2] = half[1] / (double)(problems / 2 * each);
}
