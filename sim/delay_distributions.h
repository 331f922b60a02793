/* The table of delay laws: all that the program knows of a law by its kind. */
#ifndef GEPOLAB_SIM_DELAY_LAWS_H
#define GEPOLAB_SIM_DELAY_LAWS_H

#include "sim/delay.h"

/* A parameter of a law as a recipe gives it, for messages and documentation. */
typedef struct delay_parameter {
  const char *name;
  const char *unit;     /* "s" stands for the unit of what is drawn; "" for pure numbers, words */
  const char *fallback; /* the default, "" where it must be given */
} delay_parameter;

enum { DELAY_MOST_PARAMETERS = 4 };

typedef struct delay_law_entry {
  const char *name;
  const char *about;                                    /* one line */
  delay_parameter parameter[DELAY_MOST_PARAMETERS + 1]; /* ends with name NULL */
  /* Reads the law's own parameters; errors stay in the reader. NULL: it has none. */
  void (*read)(cfg_reader *r, delay_law *law, const cfg_node *node);
  /* The p-quantile before offset and clamp. NULL: draws are not independent, see `draw`. */
  double (*quantile)(const delay_law *law, double p);
  /* A draw, before offset and clamp, from one block of random numbers; may change the source's
   * state. NULL: the quantile at the block's first number. */
  double (*draw)(const delay_law *law, delay_source *source, rng_words words);
  /* Parameters from an interval, as delay_from_interval(), whose arguments have been checked: l is
   * above 0, or 0 where from_zero is set. NULL: the law has no interval. */
  gl_status (*from_interval)(delay_law *law, double l, double u, double c, gl_error *err);
  int from_zero;
  /* Releases what the parameters own. NULL: nothing. */
  void (*fini)(delay_law *law);
} delay_law_entry;

/* The line of a kind below DELAY_KINDS. */
const delay_law_entry *delay_law_about(delay_kind kind);

#endif
