/* The table of line styles, and styles for names that are not in it. */
#include "analysis/plot/line_styles.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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
enum { SOLID, DASHED, DOTTED, MIXED, TWO_DOTS, LONG, SPARSE, PAIRS, THREE_DOTS };

static const char *const colours[LOOK_COLOURS] = {
    [BLACK] = "#000000", [WINE] = "#821759", [BLUE] = "#37549f", [RED] = "#cc490b",
    [GREEN] = "#29976a", [PINK] = "#ba85b1", [SKY] = "#39b9ff",  [GOLD] = "#ebb708"};
static const char *const dashes[LOOK_DASHES] = {[SOLID] = "solid",
                                                [DASHED] = "(9,4)",
                                                [DOTTED] = "(3,3)",
                                                [MIXED] = "(9,3,2,3)",
                                                [TWO_DOTS] = "(12,3,2,3,2,3)",
                                                [LONG] = "(18,4)",
                                                [SPARSE] = "(3,9)",
                                                [PAIRS] = "(6,2,6,6)",
                                                [THREE_DOTS] = "(12,3,2,3,2,3,2,3)"};

/* gnuplot's point types. */
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

/* One line for each published algorithm (core/policy/algorithms.c; a test compares the lists), then
 * ARMS of shipped recipes. The first eight, those most often compared, have distinct colours. */
static const struct {
  const char *name;
  look look;
} table[] = {{"gepo", {BLUE, SOLID, CIRCLE, 0}},
             {"grpo", {RED, DASHED, SQUARE, 0}},
             {"gspo", {GREEN, SOLID, UP, 0}},
             {"dr_grpo", {GOLD, DASHED, DIAMOND, 0}},
             {"is", {BLACK, SOLID, PLUS, 0}},
             {"tis", {WINE, DASHED, DOWN, 0}},
             {"topr", {PINK, MIXED, PENTAGON, 0}},
             {"vtrace", {SKY, SOLID, STAR, 0}},

             {"dapo", {SKY, DASHED, OPEN_SQUARE, 0}},
             {"cispo", {PINK, SOLID, OPEN_UP, 0}},
             {"gepo_released", {BLUE, LONG, OPEN_SQUARE, 0}},
             {"gepo_plus", {BLUE, MIXED, OPEN_CIRCLE, 0}},
             {"eqp", {WINE, SOLID, OPEN_DIAMOND, 0}},
             {"gspo_token", {GREEN, DASHED, OPEN_DOWN, 0}},
             {"reinforce", {BLACK, DASHED, CROSS, 0}},
             {"snis", {GOLD, SOLID, OPEN_PENTAGON, 0}},
             {"defensive", {RED, SOLID, OPEN_DIAMOND, 0}},

             {"bnpo", {BLACK, DOTTED, OPEN_SQUARE, 0}},
             {"delta_l", {WINE, DOTTED, UP, 0}},
             {"gmpo", {GREEN, DOTTED, DIAMOND, 0}},
             {"aipo", {RED, DOTTED, CROSS, 0}},
             {"decoupled_ppo", {BLUE, DOTTED, OPEN_UP, 0}},
             {"m2po", {SKY, DOTTED, OPEN_PENTAGON, 0}},
             {"ctpo", {PINK, DOTTED, OPEN_CIRCLE, 0}},
             {"mhpo", {GOLD, DOTTED, SQUARE, 0}},

             {"sapo", {BLACK, MIXED, CIRCLE, 0}},
             {"vespo", {WINE, MIXED, STAR, 0}},
             {"magistral", {BLUE, DASHED, DIAMOND, 0}},
             {"disco", {RED, MIXED, DOWN, 0}},
             {"disco_b", {GREEN, MIXED, OPEN_SQUARE, 0}},
             {"disco_l_ratio", {GOLD, MIXED, OPEN_CIRCLE, 0}},
             {"icepop", {SKY, MIXED, UP, 0}},
             {"mois", {PINK, DASHED, OPEN_PENTAGON, 0}},
             {"reinforce_plus_plus", {BLACK, TWO_DOTS, UP, 0}},
             {"reinforce_plus_plus_baseline", {WINE, TWO_DOTS, SQUARE, 0}},
             {"gpg", {BLUE, TWO_DOTS, OPEN_SQUARE, 0}},
             {"opo", {RED, TWO_DOTS, OPEN_CIRCLE, 0}},
             {"grpo_passk", {GREEN, TWO_DOTS, STAR, 0}},
             {"kl_cov", {PINK, TWO_DOTS, CROSS, 0}},
             {"dppo_tv", {SKY, TWO_DOTS, DIAMOND, 0}},
             {"dppo_kl", {GOLD, TWO_DOTS, OPEN_UP, 0}},

             {"maxrl", {BLACK, LONG, UP, 0}},
             {"prime_rl", {WINE, LONG, DIAMOND, 0}},
             {"prime_rl_ipo", {RED, LONG, OPEN_UP, 0}},
             {"opsm", {GREEN, LONG, OPEN_PENTAGON, 0}},
             {"raft", {PINK, LONG, SQUARE, 0}},
             {"raft_plus_plus", {SKY, LONG, CIRCLE, 0}},
             {"asymre", {GOLD, LONG, STAR, 0}},
             {"rec_one_side", {BLACK, SPARSE, OPEN_SQUARE, 0}},
             {"rec_two_side", {WINE, SPARSE, UP, 0}},
             {"rec_ring", {BLUE, SPARSE, DIAMOND, 0}},
             {"rollout_is", {RED, SPARSE, OPEN_UP, 0}},
             {"kimi15", {GREEN, SPARSE, OPEN_PENTAGON, 0}},
             {"bapo", {PINK, SPARSE, SQUARE, 0}},
             {"ce_gppo", {SKY, SPARSE, CIRCLE, 0}},
             {"gppo", {GOLD, SPARSE, STAR, 0}},
             {"dcpo", {BLACK, PAIRS, OPEN_SQUARE, 0}},
             {"aspo", {WINE, PAIRS, UP, 0}},
             {"trm", {BLUE, PAIRS, DIAMOND, 0}},
             {"a3po", {RED, PAIRS, OPEN_UP, 0}},
             {"fipo", {GREEN, PAIRS, OPEN_PENTAGON, 0}},
             {"vcpo", {PINK, PAIRS, SQUARE, 0}},
             {"opmd", {SKY, PAIRS, CIRCLE, 0}},
             {"tba", {GOLD, PAIRS, STAR, 0}},
             {"real", {BLACK, THREE_DOTS, OPEN_SQUARE, 0}},
             {"erc", {WINE, THREE_DOTS, UP, 0}},
             {"ppo_ewma", {BLUE, THREE_DOTS, OPEN_UP, 0}},

             /* Arms of the shipped recipes whose names begin with no algorithm's. */
             {"right only", {WINE, SOLID, PENTAGON, 2}},
             {"ratio gate", {GOLD, SOLID, DOWN, 2}},
             {"off-policy mask", {PINK, SOLID, OPEN_DOWN, 2}},
             {"ratio", {SKY, SOLID, OPEN_CIRCLE, 2}}};
enum { LOOKS = sizeof table / sizeof *table, ARMS = 4, PUBLISHED = LOOKS - ARMS };

const char *look_colour(int colour) {
  return colour == LOOK_GREY ? "#c9c9c9" : colours[colour % LOOK_COLOURS];
}

void look_shaded(look l, char out[LOOK_SHADED]) {
  unsigned rgb[3];
  const char *colour = look_colour(l.colour);
  if (l.shade == 0 || sscanf(colour, "#%2x%2x%2x", &rgb[0], &rgb[1], &rgb[2]) != 3) {
    snprintf(out, LOOK_SHADED, "%s", colour);
    return;
  }
  /* Two thirds of the colour, with white or black. */
  for (int i = 0; i < 3; i++) rgb[i] = rgb[i] * 2 / 3 + (l.shade == 1 ? 85 : 0);
  snprintf(out, LOOK_SHADED, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

const char *look_dash(int dash) {
  return dashes[dash % LOOK_DASHES];
}

const char *look_name(size_t i, look *out) {
  if (i >= PUBLISHED) return NULL;
  *out = table[i].look;
  return table[i].name;
}

/* --- spellings --- */

enum { MOST_WORDS = 8, WORD = 24 };

typedef struct words {
  char of[MOST_WORDS][WORD];
  size_t n;
} words;

static bool is_word_end(char c) {
  return c == 0 || c == ' ' || c == '_' || c == '-' || c == '.' || c == '/' || c == '(' || c == ',';
}

/* Splits a name into lower-case words, without the tag before it. Returns 0 if it cannot be an
 * algorithm's name. */
static int split_look(const char *name, words *w) {
  const char *at = *name == '[' && strchr(name, ']') ? strchr(name, ']') + 1 : name;
  size_t length = 0;
  w->n = 0;
  for (; *at || length > 0; at += *at != 0) {
    if (is_word_end(*at)) {
      w->n += length > 0;
      length = 0;
      continue;
    }
    if (w->n == MOST_WORDS || length + 2 > WORD) return 0;
    w->of[w->n][length++] = (char)tolower((unsigned char)*at);
    w->of[w->n][length] = 0;
  }
  return w->n > 0;
}

/* Suffixes of run names that do not identify the algorithm: one of these words, or a word of the
 * second list followed by a number. */
static bool is_of_the_run(const char *word) {
  static const char *const whole[] = {"online", "offline", "async", "sync"};
  static const char *const counted[] = {"diff",      "maxdiff", "delay", "maxdelay",
                                        "staleness", "window",  "seed",  "run"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    if (strcmp(word, whole[i]) == 0) return true;
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
    const size_t n = strlen(counted[i]);
    if (strncmp(word, counted[i], n) == 0 && word[n] &&
        strspn(word + n, "0123456789") == strlen(word + n))
      return true;
  }
  return false;
}

/* Alternative spellings in papers and other programs. */
static const struct {
  const char *spelling, *name;
} spellings[] = {{"drgrpo", "dr_grpo"},       {"gepo+", "gepo_plus"},
                 {"gepoplus", "gepo_plus"},   {"v_trace", "vtrace"},
                 {"gspotoken", "gspo_token"}, {"decoupledppo", "decoupled_ppo"},
                 {"no weights", "reinforce"}, {"P/Q", "is"}};

static size_t in_table(const char *name) {
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
    if (strcmp(spellings[i].spelling, name) == 0) name = spellings[i].name;
  size_t i = 0;
  while (i < LOOKS && strcmp(table[i].name, name) != 0) i++;
  return i;
}

/* Index of the algorithm in the table; LOOKS if it is not there. */
static size_t published(const char *name) {
  char joined[MOST_WORDS * WORD] = "";
  size_t i = in_table(name);
  words w;
  if (i < LOOKS || !split_look(name, &w)) return i;
  while (w.n > 1 && is_of_the_run(w.of[w.n - 1])) w.n--;
  for (size_t k = 0, n = 0; k < w.n; k++)
    n += (size_t)snprintf(joined + n, sizeof joined - n, "%s%s", k ? "_" : "", w.of[k]);
  return in_table(joined);
}

/* Index of the algorithm whose name is the beginning of the line's name: the longest such name, or
 * `given` if it is one of them. LOOKS if there is none. */
static size_t varied(const char *name, size_t given) {
  char joined[MOST_WORDS * WORD] = "", first[64];
  size_t found = LOOKS;
  words w;
  snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "(,"), name);
  if (!split_look(first, &w)) return LOOKS;
  for (size_t k = 0, n = 0; k < w.n && (found == LOOKS || found != given); k++) {
    n += (size_t)snprintf(joined + n, sizeof joined - n, "%s%s", k ? "_" : "", w.of[k]);
    const size_t i = in_table(joined);
    if (i < LOOKS) found = i;
  }
  return found;
}

/* --- line styles --- */

/* Symbols of lines that are not in the table. */
static const int marks[] = {CIRCLE,   SQUARE,      UP,    DIAMOND, PLUS,        DOWN,
                            PENTAGON, OPEN_SQUARE, CROSS, OPEN_UP, OPEN_CIRCLE, OPEN_DIAMOND};
enum { MARKS = sizeof marks / sizeof *marks };

/* Number of uses of each colour and each combination. */
typedef struct taken {
  size_t colour[LOOK_COLOURS];
  size_t pair[LOOK_COLOURS][LOOK_DASHES];
} taken;

static void take(taken *t, look l) {
  t->colour[l.colour]++;
  t->pair[l.colour][l.dash]++;
}

/* Chooses the least used colour (ties: in this order), its least used dash pattern, and the next
 * symbol. */
static look next_look(const taken *t, size_t number) {
  static const int order[LOOK_COLOURS] = {BLUE, RED, GREEN, GOLD, BLACK, WINE, PINK, SKY};
  look l = {order[0], 0, marks[number % MARKS], 0};
  for (int i = 1; i < LOOK_COLOURS; i++)
    if (t->colour[order[i]] < t->colour[l.colour]) l.colour = order[i];
  for (int d = 1; d < LOOK_DASHES; d++)
    if (t->pair[l.colour][d] < t->pair[l.colour][l.dash]) l.dash = d;
  return l;
}

static bool is_taken(const look *looks, size_t n, look l) {
  for (size_t i = 0; i < n; i++)
    if (looks[i].mark && looks[i].colour == l.colour && looks[i].dash == l.dash &&
        looks[i].shade == l.shade)
      return true;
  return false;
}

/* The style of a variant: the algorithm's colour; shade, dash and symbol are hashed from the
 * variant's name or fields (text), so that they are the same in every study. The first free
 * combination is used. */
static look variant_look(const char *text, look of, const look *looks, size_t n) {
  enum { CHOICES = LOOK_SHADES * (LONG + 1) }; /* the dashes that differ most */
  uint32_t hash = 2166136261U;                 /* FNV-1a */
  for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619U;
  hash ^= hash >> 15;
  look l = of;
  for (uint32_t i = 0; i < CHOICES; i++) {
    const uint32_t choice = (hash + i) % CHOICES;
    l.shade = (int)(choice % LOOK_SHADES), l.dash = (int)(choice / LOOK_SHADES);
    l.mark = marks[(hash / CHOICES + i) % MARKS];
    if ((l.shade != of.shade || l.dash != of.dash) && !is_taken(looks, n, l)) break;
  }
  return l;
}

/* Returns the variant with the line's name; NULL if there is none, or if the name begins with its
 * algorithm's name, which then identifies the algorithm. */
static const look_variant *find_variant(const look_variant *variants, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++) {
    const size_t base = in_table(variants[i].base);
    if (strcmp(variants[i].name, name) == 0 && base < LOOKS)
      return varied(name, base) == base ? NULL : &variants[i];
  }
  return NULL;
}

void looks_assign(const char *const *names, size_t n, const look_variant *variants,
                  size_t n_variants, look *out) {
  taken t = {{0}, {{0}}};
  int is_used[LOOKS] = {0};
  size_t own = 0;
  for (size_t i = 0; i < n; i++) out[i] = (look){0}; /* mark 0: not assigned yet */
  /* Names with exactly the table's spelling come first. */
  for (int exact = 1; exact >= 0; exact--)
    for (size_t i = 0; i < n; i++) {
      if (!exact && find_variant(variants, n_variants, names[i]) != NULL) continue;
      const size_t k = out[i].mark ? LOOKS : exact ? in_table(names[i]) : published(names[i]);
      if (k == LOOKS || is_used[k]) continue;
      is_used[k] = 1;
      take(&t, out[i] = table[k].look);
    }
  for (size_t i = 0; i < n; i++) {
    if (out[i].mark) continue;
    const look_variant *of = find_variant(variants, n_variants, names[i]);
    const size_t k = of != NULL ? in_table(of->base) : published(names[i]);
    const size_t base = k < LOOKS ? k : varied(names[i], LOOKS);
    if (base == LOOKS) continue;
    out[i] = variant_look(of != NULL ? of->fields : names[i], table[base].look, out, n);
    take(&t, out[i]);
  }
  for (size_t i = 0; i < n; i++) {
    if (out[i].mark) continue;
    out[i] = next_look(&t, own++);
    take(&t, out[i]);
  }
}
