/* The looks of algorithms: every published one has its own; colours are far enough apart for every
 * kind of eye (tests/golden/looks.py), and lines part in grey too. */
#include "analysis/plot/line_styles.h"
#include "core/policy/algorithm.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: looks of algorithms");

static const double APART = 15, EQUALLY_LIGHT = 12;

TEST(every_published_algorithm_has_a_look_of_its_own) {
  look a, b;
  size_t looks = 0;
  while (look_name(looks, &a)) {
    CU_ASSERT_PTR_NOT_NULL(policy_algorithms_find(look_name(looks, &a)));
    for (size_t k = 0; k < looks; k++) {
      CU_ASSERT_PTR_NOT_NULL_FATAL(look_name(k, &b));
      CU_ASSERT(a.colour != b.colour || a.dash != b.dash);
    }
    looks++;
  }
  CU_ASSERT_EQUAL(looks, policy_algorithms_count());
}

/* Lightness of a colour, or NaN if the golden file was not made for it. */
static double lightness(const char *colour) {
  char line[128], name[16];
  double value = NAN, found;
  FILE *f = fopen("tests/golden/looks.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "light %15s %lf", name, &found) == 2 && strcmp(name, colour) == 0)
      value = found;
  fclose(f);
  return value;
}

TEST(colours_are_apart_for_every_kind_of_eye) {
  char line[128], vision[16], a[16], b[16];
  double distance;
  size_t pairs = 0;
  FILE *f = fopen("tests/golden/looks.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  while (fgets(line, sizeof line, f)) {
    if (sscanf(line, "apart %15s %15s %15s %lf", vision, a, b, &distance) != 4) continue;
    if (distance < APART) fprintf(stderr, "%s", line);
    CU_ASSERT(distance >= APART);
    pairs++;
  }
  fclose(f);
  CU_ASSERT_EQUAL(pairs, 4 * (LOOK_COLOURS + 1) * LOOK_COLOURS / 2);
  for (int i = LOOK_GREY; i < LOOK_COLOURS; i++) CU_ASSERT(isfinite(lightness(look_colour(i))));
}

TEST(lines_of_one_grey_differ_in_dash_or_mark) {
  look a, b;
  for (size_t i = 0; look_name(i, &a); i++)
    for (size_t k = 0; k < i && look_name(k, &b); k++) {
      const double between =
          fabs(lightness(look_colour(a.colour)) - lightness(look_colour(b.colour)));
      if (between < EQUALLY_LIGHT && a.dash == b.dash && a.mark == b.mark)
        fprintf(stderr, "%s and %s\n", look_name(i, &a), look_name(k, &b));
      CU_ASSERT(between >= EQUALLY_LIGHT || a.dash != b.dash || a.mark != b.mark);
    }
}

static int same(look a, look b) {
  return a.colour == b.colour && a.dash == b.dash && a.mark == b.mark && a.shade == b.shade;
}

TEST(a_recipes_own_algorithms_take_free_looks_and_keep_others) {
  static const char *const alone[] = {"gepo"}, *const with[] = {"mine", "gepo", "gepo (clip none)",
                                                                "grpo"};
  look one, four[4], many[LOOK_COLOURS * LOOK_DASHES];
  looks_assign(alone, 1, NULL, 0, &one);
  looks_assign(with, 4, NULL, 0, four);
  CU_ASSERT(same(one, four[1]));
  CU_ASSERT(four[2].colour == four[1].colour && !same(four[2], four[1]));
  CU_ASSERT(four[0].colour != four[1].colour && four[0].colour != four[3].colour);
  const char *names[LOOK_COLOURS * LOOK_DASHES];
  char room[LOOK_COLOURS * LOOK_DASHES][16];
  for (int i = 0; i < LOOK_COLOURS * LOOK_DASHES; i++) {
    snprintf(room[i], sizeof room[i], "own%d", i);
    names[i] = room[i];
  }
  looks_assign(names, LOOK_COLOURS * LOOK_DASHES, NULL, 0, many);
  for (int i = 0; i < LOOK_COLOURS * LOOK_DASHES; i++)
    for (int k = 0; k < i; k++)
      CU_ASSERT(many[i].colour != many[k].colour || many[i].dash != many[k].dash);
}

/* In a study with other algorithms a variant has the same colour, shade, dash and symbol. */
TEST(a_variant_has_its_algorithms_colour_in_every_study) {
  static const char *const few[] = {"gspo 0.2", "gepo released"},
                           *const many[] = {"grpo",        "own",         "gepo released",
                                            "GSPO_online", "gspo",        "gepo(clip=none)",
                                            "gspo 0.2",    "GRPO_diff32", "gepo unclipped"},
                           *const are[] = {"grpo", NULL,   "gepo", "gspo", "gspo",
                                           "gepo", "gspo", "grpo", "gepo"};
  enum { MANY = sizeof many / sizeof *many };
  look alone[2], found[MANY], wanted;
  looks_assign(few, 2, NULL, 0, alone);
  looks_assign(many, MANY, NULL, 0, found);
  CU_ASSERT(same(alone[0], found[6]) && alone[0].colour == LOOK_GREEN);
  CU_ASSERT(same(alone[1], found[2]) && alone[1].colour == LOOK_BLUE);
  for (size_t i = 0; i < MANY; i++) {
    for (size_t k = 0; k < i; k++)
      CU_ASSERT(found[i].colour != found[k].colour || found[i].dash != found[k].dash ||
                found[i].shade != found[k].shade);
    if (are[i] == NULL) continue;
    looks_assign(&are[i], 1, NULL, 0, &wanted);
    CU_ASSERT_EQUAL(found[i].colour, wanted.colour);
  }
  char colour[LOOK_SHADED];
  look_shaded((look){LOOK_GREEN, 0, 1, 1}, colour);
  CU_ASSERT_STRING_EQUAL(colour, "#70b99b");
  look_shaded((look){LOOK_GREEN, 0, 1, 2}, colour);
  CU_ASSERT_STRING_EQUAL(colour, "#1b6446");
}

/* A variant's name says nothing where its fields are known: they give colour, shade, dash and
 * symbol. */
TEST(a_variant_of_any_name_has_the_look_of_its_fields) {
  static const char *const names[] = {"grpo", "mine", "grpo mine", "GEPO_online"},
                           *const others[] = {"another", "gspo"};
  static const char same_fields[] = "{\"base\":\"gspo\",\"eps_low\":0.2}";
  static const look_variant known[] = {{"mine", "gspo", same_fields},
                                       {"grpo mine", "gepo", "{\"base\":\"gepo\"}"},
                                       {"GEPO_online", "topr", "{\"base\":\"topr\"}"},
                                       {"another", "gspo", same_fields},
                                       {"grpo", "no algorithm", ""}};
  look found[4], elsewhere[2], wanted;
  looks_assign(names, 4, known, 5, found);
  looks_assign(others, 2, known, 5, elsewhere);
  looks_assign(names, 1, NULL, 0, &wanted);
  CU_ASSERT(same(found[0], wanted));
  CU_ASSERT_EQUAL(found[1].colour, LOOK_GREEN);
  CU_ASSERT_EQUAL(found[2].colour, LOOK_BLUE);
  CU_ASSERT_EQUAL(found[3].colour, LOOK_PINK);
  CU_ASSERT(same(found[1], elsewhere[0]) && !same(elsewhere[0], elsewhere[1]));
}

/* An arm has one look in every figure of the article and of the studies it is drawn from: beside
 * any others, in any order, with its fields (a study) and without (a file of results). */
TEST(an_arm_has_one_look_in_every_study) {
  enum { MOST = 13, STUDIES = 9 };
  static const char *const studies[STUDIES][MOST] = {
      {"gepo released", "gspo 0.2", "grpo 0.2", "grpo 0.2 std", "ratio gate", "gepo mean unclipped",
       "off-policy mask", "right only"},
      {"no weights", "right only", "is", "gspo 0.2", "gepo released", "ratio gate",
       "off-policy mask"},
      {"gepo released", "gepo unclipped", "gspo 0.2", "gspo", "grpo", "dr_grpo", "bnpo", "cispo",
       "m2po", "decoupled_ppo", "topr +-1", "vtrace", "defensive"},
      {"ratio gate", "gspo 0.2", "ratio"},
      {"no weights", "P/Q", "ratio", "gepo released", "gspo 0.2", "grpo 0.2", "right only"},
      {"GEPO", "GSPO", "GRPO", "GRPO std", "ratio gate", "GEPO unclipped", "off-policy mask",
       "right only"},
      {"no weights", "right only", "P/Q", "GSPO", "GEPO", "ratio gate", "off-policy mask"},
      {"GEPO", "GEPO whole unclipped", "GSPO", "GRPO std"},
      {"GRPO std", "Dr. GRPO", "GSPO narrow", "GEPO whole", "GEPO", "P/Q", "truncated P/Q",
       "TOPR"}};
  static const look_variant known[] = {{"gepo released", "gepo", "base=gepo;log_prob=mean;"},
                                       {"gspo 0.2", "gspo", "base=gspo;eps_low=0.2;"},
                                       {"ratio gate", "gspo", "base=gspo;clip=none;gate=…;"},
                                       {"ratio", "gspo", "base=gspo;clip=none;"},
                                       {"right only", "gspo", "base=gspo;baseline=none;"},
                                       {"no weights", "reinforce", "base=reinforce;"}};
  look looks[2][STUDIES][MOST];
  for (size_t i = 0; i < STUDIES; i++) {
    size_t n = 0;
    while (n < MOST && studies[i][n] != NULL) n++;
    looks_assign(studies[i], n, NULL, 0, looks[0][i]);
    looks_assign(studies[i], n, known, sizeof known / sizeof *known, looks[1][i]);
    for (size_t k = 0; k < n; k++) {
      CU_ASSERT(same(looks[0][i][k], looks[1][i][k]));
      for (size_t m = 0; m < k; m++) CU_ASSERT(!same(looks[0][i][k], looks[0][i][m]));
      for (size_t before = 0; before < i; before++)
        for (size_t m = 0; m < MOST && studies[before][m] != NULL; m++)
          if (strcmp(studies[before][m], studies[i][k]) == 0 &&
              !same(looks[0][before][m], looks[0][i][k])) {
            fprintf(stderr, "%s in studies %zu and %zu\n", studies[i][k], before, i);
            CU_FAIL("an arm changes its look");
          }
    }
  }
}

/* What other programs call their runs, word for word and not by what it has in it. */
TEST(other_programs_spellings_have_the_look_of_their_algorithm) {
  static const char *const
      names[] = {"[paper]GRPO_diff32", "GEPO_online", "Dr. GRPO", "GSPO",  "GSPO_diff64",
                 "gepo_plus-run3",     "TIS_delay",   "myGEPO",   "DrGRPO"},
      *const are[] = {"grpo", "gepo", "dr_grpo", "gspo", NULL, "gepo_plus", NULL, NULL, NULL};
  enum { N = sizeof names / sizeof *names };
  look found[N], wanted;
  looks_assign(names, N, NULL, 0, found);
  for (size_t i = 0; i < N; i++) {
    CU_ASSERT(found[i].mark > 0);
    for (size_t k = 0; k < i; k++) CU_ASSERT(!same(found[i], found[k]));
    if (are[i] == NULL) continue;
    looks_assign(&are[i], 1, NULL, 0, &wanted);
    CU_ASSERT(same(found[i], wanted));
  }
  /* What is spelled as here has the look, whatever comes before it. */
  static const char *const both[] = {"GEPO", "gepo"};
  looks_assign(both, 2, NULL, 0, found);
  looks_assign(&both[1], 1, NULL, 0, &wanted);
  CU_ASSERT(same(found[1], wanted) && !same(found[0], wanted));
}
