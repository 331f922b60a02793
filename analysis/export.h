/* Every table of a study as text: those that the store writes (core/store/export.h), and two that
 * are computed from them:
 *
 *   summary  a record for each run, with the numbers from which `gepolab analyze` makes its cells
 *   cells    a record for each cell, with the means and intervals that `gepolab analyze` shows
 */
#ifndef GEPOLAB_ANALYSIS_EXPORT_H
#define GEPOLAB_ANALYSIS_EXPORT_H

#include "core/base/error.h"
#include "core/store/export.h"

#include <stdio.h>

/* The i-th table, or NULL past the last; and the one of that name, or NULL. */
const export_table *study_export_at(size_t i);
const export_table *study_export_named(const char *name);

/* Writes one table of the file, whole or, on failure, what the stream had taken. GL_EIO where the
 * study is damaged or writing fails. */
gl_status study_export(store *s, const export_table *table, records_format format, FILE *to,
                       gl_error *err);

/* Writes every reproducible table as folder/NAME.csv (or .tsv, .jsonl), all of one state of the
 * file, and folder/datapackage.json, which describes them as a tabular data package of Frictionless
 * Data: names, types, units and meanings of the columns, keys, and which of them join. The folder
 * is made where there is none. The files are put in their places when all of them are whole. */
gl_status study_export_all(store *s, records_format format, const char *folder, gl_error *err);

#endif
