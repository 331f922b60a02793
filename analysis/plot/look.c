/* The table of looks, and looks for names that it does not hold. */
#include "analysis/plot/look.h"

#include <string.h>

enum {
  BLACK = LOOK_BLACK,
  WINE = LOOK_WINE,
  BLUE = LOOK_BLUE,
  RED = LOOK_RED,
  GREEN = LOOK_GREEN,
  PINK = LOOK_PINK,
  SKY = LOOK_SKY,
  GOLD = LOOK_GOLD
};
enum { SOLID, DASHED, DOTTED, MIXED };

static const char *const colours[LOOK_COLOURS] = {
    [BLACK] = "#000000", [WINE] = "#821759", [BLUE] = "#37549f", [RED] = "#cc490b",
    [GREEN] = "#29976a", [PINK] = "#ba85b1", [SKY] = "#39b9ff",  [GOLD] = "#ebb708"};
static const char *const dashes[LOOK_DASHES] = {
    [SOLID] = "solid", [DASHED] = "(9,4)", [DOTTED] = "(3,3)", [MIXED] = "(9,3,2,3)"};

/* gnuplot's points. */
enum {
  PLUS = LOOK_PLUS,
  CROSS = LOOK_CROSS,
  STAR,
  OPEN_SQUARE,
  SQUARE,
  OPEN_CIRCLE,
  CIRCLE,
  OPEN_UP,
  UP,
  OPEN_DOWN,
  DOWN,
  OPEN_DIAMOND,
  DIAMOND,
  OPEN_PENTAGON,
  PENTAGON
};

/* One line for each published algorithm (core/policy/algorithms.c; a test compares them). The
 * eight that studies compare most come first and have a colour each. */
static const struct {
  const char *name;
  look look;
} table[] = {{"gepo", {BLUE, SOLID, CIRCLE}},
             {"grpo", {RED, DASHED, SQUARE}},
             {"gspo", {GREEN, SOLID, UP}},
             {"dr_grpo", {GOLD, DASHED, DIAMOND}},
             {"is", {BLACK, SOLID, PLUS}},
             {"tis", {WINE, DASHED, DOWN}},
             {"topr", {PINK, MIXED, PENTAGON}},
             {"vtrace", {SKY, SOLID, STAR}},

             {"dapo", {SKY, DASHED, OPEN_SQUARE}},
             {"cispo", {PINK, SOLID, OPEN_UP}},
             {"gepo_plus", {BLUE, MIXED, OPEN_CIRCLE}},
             {"eqp", {WINE, SOLID, OPEN_DIAMOND}},
             {"gspo_token", {GREEN, DASHED, OPEN_DOWN}},
             {"reinforce", {BLACK, DASHED, CROSS}},
             {"snis", {GOLD, SOLID, OPEN_PENTAGON}},
             {"defensive", {RED, SOLID, OPEN_DIAMOND}},

             {"bnpo", {BLACK, DOTTED, OPEN_SQUARE}},
             {"delta_l", {WINE, DOTTED, UP}},
             {"gmpo", {GREEN, DOTTED, DIAMOND}},
             {"aipo", {RED, DOTTED, CROSS}},
             {"decoupled_ppo", {BLUE, DOTTED, OPEN_UP}},
             {"m2po", {SKY, DOTTED, OPEN_PENTAGON}},
             {"ctpo", {PINK, DOTTED, OPEN_CIRCLE}},
             {"mhpo", {GOLD, DOTTED, SQUARE}},

             {"sapo", {BLACK, MIXED, CIRCLE}},
             {"vespo", {WINE, MIXED, STAR}},
             {"magistral", {BLUE, DASHED, DIAMOND}},
             {"disco", {RED, MIXED, DOWN}},
             {"disco_b", {GREEN, MIXED, OPEN_SQUARE}},
             {"disco_l_ratio", {GOLD, MIXED, OPEN_CIRCLE}},
             {"icepop", {SKY, MIXED, UP}},
             {"mois", {PINK, DASHED, OPEN_PENTAGON}}};
enum { LOOKS = sizeof table / sizeof *table };

const char *look_colour(int colour) {
  return colour == LOOK_GREY ? "#c9c9c9" : colours[colour % LOOK_COLOURS];
}

const char *look_dash(int dash) {
  return dashes[dash % LOOK_DASHES];
}

const char *look_name(size_t i, look *out) {
  if (i >= LOOKS) return NULL;
  *out = table[i].look;
  return table[i].name;
}

static size_t published(const char *name) {
  size_t i = 0;
  while (i < LOOKS && strcmp(table[i].name, name) != 0) i++;
  return i;
}

/* How often each colour, and each combination, is taken. */
typedef struct taken {
  size_t colour[LOOK_COLOURS];
  size_t pair[LOOK_COLOURS][LOOK_DASHES];
} taken;

static void take(taken *t, look l) {
  t->colour[l.colour]++;
  t->pair[l.colour][l.dash]++;
}

/* The rarest colour, in the table's order, with its rarest dash, and the next mark. */
static look next_look(const taken *t, size_t number) {
  static const int order[LOOK_COLOURS] = {BLUE, RED, GREEN, GOLD, BLACK, WINE, PINK, SKY};
  static const int marks[] = {CIRCLE,   SQUARE,      UP,    DIAMOND, PLUS,        DOWN,
                              PENTAGON, OPEN_SQUARE, CROSS, OPEN_UP, OPEN_CIRCLE, OPEN_DIAMOND};
  look l = {order[0], 0, marks[number % (sizeof marks / sizeof *marks)]};
  for (int i = 1; i < LOOK_COLOURS; i++)
    if (t->colour[order[i]] < t->colour[l.colour]) l.colour = order[i];
  for (int d = 1; d < LOOK_DASHES; d++)
    if (t->pair[l.colour][d] < t->pair[l.colour][l.dash]) l.dash = d;
  return l;
}

void looks_assign(const char *const *names, size_t n, look *out) {
  taken t = {{0}, {{0}}};
  size_t own = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t k = published(names[i]);
    if (k < LOOKS) take(&t, out[i] = table[k].look);
  }
  for (size_t i = 0; i < n; i++) {
    if (published(names[i]) < LOOKS) continue;
    out[i] = next_look(&t, own++);
    take(&t, out[i]);
  }
}
