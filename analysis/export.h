/* Exports every table of a study as text: those that the store writes (core/store/export.h), and
 * two that are computed from them:
 *
 *   summary  a record for each run, with the numbers from which `gepolab analyze` computes cells
 *   cells    a record for each cell, with the means and intervals that `gepolab analyze` prints */
#ifndef GEPOLAB_ANALYSIS_EXPORT_H
#define GEPOLAB_ANALYSIS_EXPORT_H

#include "core/base/error.h"
#include "core/store/export.h"

#include <stdio.h>

/* The i-th table, or NULL past the last. */
const export_table *study_export_at(size_t i);

/* Writes one table of the file. After an error the output may be incomplete. Errors: GL_ENOMEM,
 * GL_EIO (the study is damaged, or writing fails). */
gl_status study_export(store *s, const export_table *table, records_format format, FILE *to,
                       gl_error *err);

/* Writes every reproducible table as folder/NAME.csv (or .tsv, .jsonl), all from one state of the
 * file. Also writes folder/datapackage.json, which describes them as a Frictionless tabular data
 * package: names, types, units and descriptions of the columns, keys, and foreign keys. The folder
 * is created if missing. Files are renamed to their final names when all are complete. */
gl_status study_export_all(store *s, records_format format, const char *folder, gl_error *err);

#endif
