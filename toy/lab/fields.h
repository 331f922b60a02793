/* The table of the fields of recipes of the exact laboratory (core/config/fields.h). */
#ifndef GEPOLAB_TOY_LAB_FIELDS_H
#define GEPOLAB_TOY_LAB_FIELDS_H

#include "core/config/fields.h"

extern const field_table lab_fields;

#endif
