/* Reads which sets an evaluation has, and divides their scores into halves. */
#include "core/rl/evaluation_sets.h"

#include "core/base/utf8.h"
#include "core/config/fields.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char the_only[] = "all";

/* --- names --- */

/* Why a set cannot be called so; NULL: it can. */
static const char *refusal(const char *name) {
  const size_t n = strlen(name);
  if (n == 0) return "is empty";
  if (n >= EVALUATION_NAME_SIZE) return "is longer than 63 bytes";
  if (utf8_valid_prefix(name, n) != n) return "is not UTF-8";
  for (size_t i = 0; i < n; ++i)
    if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return "has a control character";
  return NULL;
}

/* The name of the i-th set, which differs from those before it; NULL and an error if it has none.
 */
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

/* --- parts --- */

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

/* --- scores --- */

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
