#include "analysis/figure_page.h"
#include "core/config/config.h"

#include <string.h>

typedef struct figure {
  figure_about about;
  gl_status (*write)(const summary *s, const figure_request *q, const char **why, gl_error *err);
} figure;

static const figure figures[] = {
    {{"eval_score", "evaluation score against step, a panel per setting (paper Fig. 1)"},
     write_eval_score},
    {{"training", "IW variance, gradient norm and reward against step (paper Fig. 4)"},
     write_training},
    {{"divergence", "KL, estimation error and IW variance against delay (paper Fig. 5)"},
     write_divergence},
    {{"window", "staleness, KL and score against step per window (paper Fig. 6)"}, write_window},
    {{"staleness", "staleness distribution, simulated against measured"}, write_staleness},
    {{"throughput_delay", "throughput and utilisation against delay"}, write_throughput_delay},
    {{"throughput_loss", "throughput and utilisation against packet loss"}, write_throughput_loss},
    {{"best_last", "best, last and their gap per algorithm, a column per setting"},
     write_best_last}};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

const figure_about *figures_at(size_t i) {
  return i < FIGURE_COUNT ? &figures[i].about : NULL;
}

static void tell(const figure_request *q, const char *name, const char *why) {
  if (q->told) q->told(q->context, name, why);
}

static gl_status check_name(const char *only, gl_error *err) {
  const char *names[FIGURE_COUNT];
  for (size_t i = 0; i < FIGURE_COUNT; i++) {
    names[i] = figures[i].about.name;
    if (!only || strcmp(only, names[i]) == 0) return GL_OK;
  }
  const char *near = cfg_nearest(only, names, FIGURE_COUNT);
  return gl_fail(err, GL_EINPUT, "there is no figure '%s'%s%s%s", only,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Writes what is asked for and applies; written[i] says which. */
static gl_status write_all(const summary *s, const figure_request *q, int *written, gl_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < FIGURE_COUNT; i++) {
    const char *why = NULL, *name = figures[i].about.name;
    written[i] = 0;
    if (q->only && strcmp(q->only, name) != 0) continue;
    gl_status status = figures[i].write(s, q, &why, err);
    if (status != GL_OK) return status;
    if (why && q->only) return gl_fail(err, GL_EINPUT, "figure %s does not apply: %s", name, why);
    if (why) tell(q, name, why);
    written[i] = !why;
    n += !why;
  }
  return n ? GL_OK : gl_fail(err, GL_EINPUT, "the study has no data for any figure");
}

static gl_status draw_all(const figure_request *q, const int *written, gl_error *err) {
  for (size_t i = 0; i < FIGURE_COUNT; i++) {
    if (!written[i]) continue;
    gl_status status = page_draw(q, figures[i].about.name, err);
    if (status != GL_OK) return status;
    tell(q, figures[i].about.name, NULL);
  }
  return GL_OK;
}

gl_status figures_draw(const results *r, const figure_request *q, gl_error *err) {
  int written[FIGURE_COUNT];
  summary s;
  gl_status status = check_name(q->only, err);
  if (status == GL_OK) status = folder_make(q->folder, err);
  if (status == GL_OK) status = summary_init(&s, r, err);
  if (status != GL_OK) return status;
  status = write_all(&s, q, written, err);
  summary_fini(&s);
  return status == GL_OK ? draw_all(q, written, err) : status;
}
