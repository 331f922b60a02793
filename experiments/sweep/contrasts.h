/* The contrasts that a recipe declares before its study is run:
 *
 *   contrasts:
 *     - name: gate
 *       measure: fall                       # or last: the last score
 *       of: {algorithm: ratio gate, cluster.preset: fifo}
 *       against: {algorithm: ratio, cluster.preset: fifo}
 *
 * An arm names the algorithm as it is shown, and as many fields as it takes to tell one setting.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_CONTRASTS_H
#define GEPOLAB_EXPERIMENTS_SWEEP_CONTRASTS_H

#include "analysis/contrasts.h"
#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/sweep/sweep_cells.h"

typedef struct declared_contrasts {
  contrast *contrast; /* [n]; texts are borrowed from the recipe */
  size_t n;
} declared_contrasts;

/* Reads the recipe's `contrasts`; n is 0 where it has none. GL_EINPUT with line and column for a
 * key or measure that there is not, a name that two have, and a field that recipes do not have.
 * Release with declared_contrasts_fini() in any case. */
gl_status declared_contrasts_read(declared_contrasts *out, const cfg_doc *doc, gl_error *err);
void declared_contrasts_fini(declared_contrasts *d);

/* Reads them and throws them away: GL_EINPUT also for an algorithm that no cell of the sweep has.
 */
gl_status declared_contrasts_check(const cfg_doc *doc, const sweep_cells *cells, gl_error *err);

#endif
