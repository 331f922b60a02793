/* Tables of the recipe fields that every study has (core/config/fields.h). */
#ifndef GEPOLAB_CORE_RL_FIELDS_H
#define GEPOLAB_CORE_RL_FIELDS_H

#include "core/config/fields.h"

/* study_fields: top level of a recipe; design_fields: sweep, tune, contrasts and checkpoint;
 * rl_fields: train, optimizer and sampling; evaluation_fields: world.evaluation. */
extern const field_table study_fields, design_fields, rl_fields, evaluation_fields;

#endif
