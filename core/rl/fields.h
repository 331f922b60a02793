/* The tables of the fields that every study has (core/config/fields.h). */
#ifndef GEPOLAB_CORE_RL_FIELDS_H
#define GEPOLAB_CORE_RL_FIELDS_H

#include "core/config/fields.h"

/* The top of a recipe; sweep, tune, contrasts and checkpoint; train, optimizer and sampling;
 * world.evaluation. */
extern const field_table study_fields, design_fields, rl_fields, evaluation_fields;

#endif
