/* The table of delay distributions: all that the program knows of a distribution by its kind. */
#ifndef GEPOLAB_SIM_DELAY_DISTS_H
#define GEPOLAB_SIM_DELAY_DISTS_H

#include "sim/delay.h"

/* A parameter of a distribution as a recipe gives it, for messages and documentation. */
typedef struct delay_parameter {
  const char *name;
  const char *unit;     /* "s" stands for the unit of what is drawn; "" for pure numbers, words */
  const char *fallback; /* the default, "" where it must be given */
} delay_parameter;

enum { DELAY_MOST_PARAMETERS = 4 };

typedef struct delay_dist_entry {
  const char *name;
  const char *about;                                    /* one line */
  delay_parameter parameter[DELAY_MOST_PARAMETERS + 1]; /* ends with name NULL */
  /* Reads the distribution's own parameters; errors stay in the reader. NULL: it has none. */
  void (*read)(cfg_reader *r, delay_dist *dist, const cfg_node *node);
  /* The p-quantile before offset and clamp. NULL: draws are not independent, see `draw`. */
  double (*quantile)(const delay_dist *dist, double p);
  /* A draw, before offset and clamp, from one block of random numbers; may change the source's
   * state. NULL: the quantile at the block's first number. */
  double (*draw)(const delay_dist *dist, delay_source *source, rng_words words);
  /* Parameters from an interval, as delay_from_interval(), whose arguments have been checked: l is
   * above 0, or 0 where from_zero is set. NULL: the distribution has no interval. */
  gl_status (*from_interval)(delay_dist *dist, double l, double u, double c, gl_error *err);
  int from_zero;
  /* Releases what the parameters own. NULL: nothing. */
  void (*fini)(delay_dist *dist);
} delay_dist_entry;

/* The line of a kind below DELAY_KINDS. */
const delay_dist_entry *delay_dist_about(delay_kind kind);

#endif
