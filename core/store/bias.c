/* Writes the tables `bias` and `laboratory`. */
#include "core/store/bias.h"

#include "core/store/internal.h"

#include <math.h>

static const char insert_sql[] =
    "INSERT INTO bias(study, ordinal, algorithm, method, group_size, kl_exact, kl_exact_qp,"
    " staleness, groups, bias, cosine, scaled_bias, variance, mse, scaled_mse, snr, iw_mean,"
    " iw_variance, aw_variance, ess) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
    " ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";
static const char doing[] = "keeping measurements of the laboratory";

static gl_status remove_study(store *s, const char *study, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, "DELETE FROM bias WHERE study = ?1", err);
  if (status != GL_OK) return status;
  sqlite3_bind_text(stmt, 1, study, -1, SQLITE_TRANSIENT);
  status = store_step_done(s, stmt, doing, err);
  sqlite3_finalize(stmt);
  return status;
}

static gl_status insert_record(store *s, sqlite3_stmt *stmt, const char *study, size_t ordinal,
                               const bias_record *r, gl_error *err) {
  const double value[] = {r->group_size, r->kl_exact,    r->kl_exact_qp, r->staleness,
                          r->groups,     r->bias,        r->cosine,      r->scaled_bias,
                          r->variance,   r->mse,         r->scaled_mse,  r->snr,
                          r->iw_mean,    r->iw_variance, r->aw_variance, r->ess};
  sqlite3_reset(stmt);
  sqlite3_clear_bindings(stmt); /* what is not bound is NULL */
  sqlite3_bind_text(stmt, 1, study, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(stmt, 2, (sqlite3_int64)ordinal);
  sqlite3_bind_text(stmt, 3, r->algorithm, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 4, r->method, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < (int)(sizeof value / sizeof value[0]); ++i)
    if (!isnan(value[i])) sqlite3_bind_double(stmt, 5 + i, value[i]);
  return store_step_done(s, stmt, doing, err);
}

static gl_status put_making(store *s, const char *study, const bias_making *making, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  char hash[HASH_HEX_SIZE];
  const char *provenance = making->provenance != NULL ? hash : NULL;
  gl_status status =
      provenance != NULL ? store_put_provenance(s, making->provenance, hash, err) : GL_OK;
  if (status == GL_OK)
    status = store_prepare(s, &stmt,
                           "INSERT OR REPLACE INTO laboratory(study, provenance, finished, wall_s)"
                           " VALUES(?1, ?2, ?3, ?4)",
                           err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, study);
  store_bind_text(stmt, 2, provenance);
  store_bind_text(stmt, 3, making->finished);
  sqlite3_bind_double(stmt, 4, making->wall_s); /* NaN is NULL */
  status = store_step_done(s, stmt, doing, err);
  sqlite3_finalize(stmt);
  return status == GL_OK ? store_seal(s, "laboratory", err) : status;
}

gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = remove_study(s, study, err);
  if (status == GL_OK) status = store_prepare(s, &stmt, insert_sql, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = insert_record(s, stmt, study, i, &records[i], err);
  sqlite3_finalize(stmt);
  if (status == GL_OK) status = store_seal(s, "bias", err);
  if (status == GL_OK) status = put_making(s, study, making, err);
  return store_end(s, status, err);
}
