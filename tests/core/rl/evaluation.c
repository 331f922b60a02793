/* Which sets an evaluation has, what is refused, and the means of halves. */
#include "core/rl/evaluation.h"

#include "tests/support/suite.h"

#include <string.h>

SUITE("core: evaluation sets");

static gl_status read_text(evaluation_sets *out, cfg_doc **doc, const char *text, gl_error *err) {
  cfg_reader r;
  *doc = NULL;
  if (cfg_load_text(doc, text, strlen(text), "r.yaml", err) != GL_OK) return err->status;
  cfg_begin(&r, cfg_root(*doc), "world.evaluation", err);
  evaluation_sets_read(out, &r);
  return cfg_end(&r);
}

TEST(sets_come_in_their_order_each_whole_before_its_halves) {
  evaluation_sets s;
  cfg_doc *doc;
  ASSERT_OK(read_text(&s, &doc, "sets: [{name: own}, {name: 'AIME 24'}]\nhalves: true\n", &err));
  CU_ASSERT(s.n == 2 && s.n_parts == 6 && s.halves);
  for (size_t i = 0; i < s.n_parts; ++i) {
    CU_ASSERT_STRING_EQUAL(s.part[i].set, i < 3 ? "own" : "AIME 24");
    CU_ASSERT_EQUAL(s.part[i].half, (int)i % 3);
  }
  evaluation_sets_fini(&s);
  cfg_free(doc);
}

TEST(nothing_is_asked_for_by_default_and_halves_alone_are_those_of_all) {
  evaluation_sets s;
  cfg_doc *doc;
  ASSERT_OK(read_text(&s, &doc, "halves: false\n", &err));
  CU_ASSERT(s.n == 0 && s.n_parts == 0);
  evaluation_sets_fini(&s);
  cfg_free(doc);
  ASSERT_OK(read_text(&s, &doc, "halves: true\n", &err));
  CU_ASSERT(s.n == 1 && s.n_parts == 3);
  CU_ASSERT_STRING_EQUAL(s.part[2].set, "all");
  evaluation_sets_fini(&s);
  cfg_free(doc);
}

TEST(wrong_lists_and_names_are_refused_at_their_place) {
  static const struct {
    const char *text, *place, *says;
  } cases[] = {
      {"sets: 3\n", "r.yaml:1:7: ", "a list of 1 to 32 sets"},
      {"sets: []\n", "r.yaml:1:7: ", "a list of 1 to 32 sets"},
      {"sets: [own]\n", "r.yaml:1:8: ", "a map with a name"},
      {"sets: [{kind: greedy}]\n", "r.yaml:1:8: ", "needs a name"},
      {"sets: [{name: [a]}]\n", "r.yaml:1:15: ", "needs a name"},
      {"sets: [{name: ''}]\n", "r.yaml:1:15: ", "is empty"},
      {"sets: [{name: a}, {name: a}]\n", "r.yaml:1:26: ", "is that of an earlier set"},
      {"sets: [{name: \"a\\tb\"}]\n", "r.yaml:1:15: ", "a control character"},
      {"sets: [{name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg}]\n",
       "r.yaml:1:15: ", "longer than 63 bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    evaluation_sets s;
    cfg_doc *doc;
    gl_error err = {0};
    CU_ASSERT_EQUAL(read_text(&s, &doc, cases[i].text, &err), GL_EINPUT);
    const int right = strncmp(err.text, cases[i].place, strlen(cases[i].place)) == 0 &&
                      strstr(err.text, cases[i].says) != NULL;
    if (!right) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT(right);
    evaluation_sets_fini(&s);
    cfg_free(doc);
  }
}

/* Two responses to each of five problems: the halves are problems 0, 2, 4 and 1, 3. */
TEST(halves_are_means_of_every_other_problem) {
  const double score[10] = {1, 0, 0.5, 0.5, 1, 1, 0, 0.25, 0, 0};
  double out[3] = {-1, -1, -1};
  evaluation_sets s = {.n = 1, .halves = 1};
  evaluation_sets_means(&s, score, 5, 2, out);
  ASSERT_CLOSE(out[0], 4.25 / 10, 1e-15);
  ASSERT_CLOSE(out[1], 3.0 / 6, 1e-15);
  ASSERT_CLOSE(out[2], 1.25 / 4, 1e-15);
  s.halves = 0;
  out[1] = -1;
  evaluation_sets_means(&s, score, 5, 2, out);
  CU_ASSERT(out[0] == 4.25 / 10 && out[1] == -1);
}
