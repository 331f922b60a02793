/* The tables of all fields that a recipe may have (core/config/fields.h). */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H

#include "core/config/fields.h"

/* Registers the tables of the rooms whose sections a recipe has. Before any recipe is read. */
void recipe_fields_use(void);

#endif
