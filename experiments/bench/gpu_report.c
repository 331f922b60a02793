/* The answer of the GPU benchmark: every number with its share of the limit it has, its peer and
 * its aim. */
#include "core/base/json.h"
#include "experiments/bench/gpu.h"

#include <math.h>
#include <string.h>

/* What a number can be compared with; NaN: not at all. */
typedef struct bound {
  double limit; /* in the number's unit: what the measured product or copy rate allows */
  double share_aim, ratio_aim;
} bound;

typedef struct writer {
  const gpu_report *r;
  cJSON *rows; /* NULL: text */
  int failed;
} writer;

static const bound unbound = {NAN, NAN, NAN};

/* --- one row ------------------------------------------------------------------------------------
 */

/* A number's reading, or that of its part, which failed as a whole. */
static const gpu_reading *reading_of(const gpu_readings *r, const char *shape, const char *what) {
  const gpu_reading *found = gpu_find(r, shape, what);
  if (found != NULL) return found;
  char part[24];
  snprintf(part, sizeof part, "%.*s", (int)strcspn(what, "._"), what);
  if (strcmp(part, "steps") == 0) found = gpu_find(r, shape, "decode");
  if (found == NULL) found = gpu_find(r, shape, part);
  return found != NULL && found->missing[0] != '\0' ? found : NULL;
}

static const char *why_not(const gpu_reading *g, const char *otherwise) {
  return g != NULL && g->missing[0] != '\0' ? g->missing : otherwise;
}

static void print_number(const char *form, const char *gap, double value) {
  if (isnan(value))
    printf("%s", gap);
  else
    printf(form, value);
}

static void print_row(const char *shape, const char *what, const char *unit, const gpu_reading *g,
                      const gpu_reading *peer, const bound *b, int falls, const char *note) {
  char name[48], spread[32] = "";
  const double peer_value = peer != NULL ? peer->value : NAN;
  const double value = g != NULL ? g->value : NAN;
  snprintf(name, sizeof name, "%s.%s", shape, what);
  if (g != NULL && g->n > 1) snprintf(spread, sizeof spread, "%.4g..%.4g", g->low, g->high);
  printf("%-20s %-9s ", name, unit);
  print_number("%10.5g ", "         - ", value);
  printf("%-17s ", spread);
  print_number("%6.2f ", "       ", falls ? b->limit / value : value / b->limit);
  print_number("%4.2f ", "     ", b->share_aim);
  print_number("%10.5g ", "           ", peer_value);
  print_number("%6.2f ", "       ", falls ? peer_value / value : value / peer_value);
  print_number("%4.1f ", "     ", b->ratio_aim);
  printf(" %s\n", note);
}

static int row_json(cJSON *rows, const char *shape, const char *what, const char *unit,
                    const gpu_reading *g, const gpu_reading *peer, const bound *b, int falls,
                    const char *note, const char *peer_note) {
  char key[48];
  cJSON *row = cJSON_CreateObject();
  const double value = g != NULL ? g->value : NAN, other = peer != NULL ? peer->value : NAN;
  snprintf(key, sizeof key, "%s.%s", shape, what);
  cJSON_AddItemToArray(rows, row);
  return row != NULL && json_add_string(row, "key", key) && json_add_string(row, "unit", unit) &&
         json_add_number(row, "value", value) &&
         json_add_number(row, "low", g != NULL ? g->low : NAN) &&
         json_add_number(row, "high", g != NULL ? g->high : NAN) &&
         json_add_number(row, "n", g != NULL ? (double)g->n : 0) &&
         json_add_number(row, "limit", b->limit) &&
         json_add_number(row, "share", falls ? b->limit / value : value / b->limit) &&
         json_add_number(row, "share_aim", b->share_aim) && json_add_number(row, "peer", other) &&
         json_add_number(row, "peer_low", peer != NULL ? peer->low : NAN) &&
         json_add_number(row, "peer_high", peer != NULL ? peer->high : NAN) &&
         json_add_number(row, "ratio", falls ? other / value : value / other) &&
         json_add_number(row, "ratio_aim", b->ratio_aim) && json_add_string(row, "note", note) &&
         json_add_string(row, "peer_note", peer_note);
}

/* falls: less is better. peered: a peer measures the same. */
static void row(writer *w, const char *shape, const char *what, const char *unit, bound b,
                int falls, int peered) {
  const gpu_report *r = w->r;
  const gpu_reading *g = reading_of(r->ours, shape, what);
  const gpu_reading *peer = peered ? reading_of(r->peers, shape, what) : NULL;
  char note[4 * GPU_TEXT], peer_note[2 * GPU_TEXT] = "";
  const char *own = g == NULL ? "not measured" : g->missing[0] != '\0' ? g->missing : g->note;
  if (peered)
    snprintf(peer_note, sizeof peer_note, "%s",
             peer == NULL         ? r->no_peer[0] != '\0' ? r->no_peer : "not measured"
             : isnan(peer->value) ? why_not(peer, "not measured")
                                  : peer->note);
  snprintf(note, sizeof note, "%s%s%s%s", own, own[0] != '\0' && peer_note[0] != '\0' ? "; " : "",
           peer_note[0] != '\0' ? "peer: " : "", peer_note);
  if (w->rows == NULL)
    print_row(shape, what, unit, g, peer, &b, falls, note);
  else if (!row_json(w->rows, shape, what, unit, g, peer, &b, falls, own, peer_note))
    w->failed = 1;
}

/* --- limits -------------------------------------------------------------------------------------
 */

/* Measured products (operations) and copies (bytes) per second; NaN without. */
static double product_rate(const gpu_report *r) {
  const gpu_reading *g = gpu_find(r->ours, "limit", "product");
  return g != NULL ? 1e12 * g->value : NAN;
}

static double copy_rate(const gpu_report *r) {
  const gpu_reading *g = gpu_find(r->ours, "limit", "copy");
  return g != NULL ? 1e9 * g->value : NAN;
}

/* Seconds of reading what one decoding step of `batch` rows needs, at a mean position. */
static double step_seconds(const gpu_report *r, const gpu_shape *s, double batch, double position) {
  return gpu_decode_bytes(&s->model, (size_t)r->element, batch * position) / copy_rate(r);
}

/* --- all rows -----------------------------------------------------------------------------------
 */

static int wanted(const writer *w, const char *part) {
  return w->r->only == NULL || strcmp(w->r->only, part) == 0;
}

static void train_rows(writer *w, const gpu_shape *s) {
  const int is_17 = strcmp(s->name, "1.7b") == 0;
  const bound b = {product_rate(w->r) / gpu_train_flops(&s->model, s->train_length),
                   is_17 ? 0.5 : NAN, 1.2};
  row(w, s->name, "train", "tokens/s", b, 0, 1);
}

static void decode_rows(writer *w, const gpu_shape *s) {
  for (size_t i = 0; i < s->n_batches; ++i) {
    char what[24];
    const double batch = (double)s->batch[i];
    const double position = (double)s->prompt + (double)s->draws / 2;
    snprintf(what, sizeof what, "decode.%zu", s->batch[i]);
    row(w, s->name, what, "tokens/s", (bound){NAN, NAN, 5}, 0, 1);
    snprintf(what, sizeof what, "steps.%zu", s->batch[i]);
    const bound b = {batch / step_seconds(w->r, s, batch, position), 0.6, NAN};
    row(w, s->name, what, "tokens/s", b, 0, 1);
  }
}

/* Bytes a row of the output layer moves where every logit is written and read once as float32, and
 * weights and rows are read once for all. */
static double logp_bytes(const gpu_report *r, const gpu_shape *s) {
  const double v = (double)s->model.vocabulary, h = (double)s->model.hidden;
  return 8 * v + r->element * h * (1 + v / (double)s->logp_rows);
}

static void logp_rows(writer *w, const gpu_shape *s) {
  const double flops = 2 * (double)s->model.vocabulary * (double)s->model.hidden;
  const gpu_reading *g = gpu_find(w->r->ours, s->name, "logp");
  row(w, s->name, "logp", "tokens/s", (bound){product_rate(w->r) / flops, NAN, NAN}, 0, 1);
  row(w, s->name, "logp_backward", "tokens/s", (bound){product_rate(w->r) / (3 * flops), NAN, NAN},
      0, 1);
  if (g == NULL || isnan(g->value) || w->rows != NULL) return;
  const double gb = 1e-9 * g->value * logp_bytes(w->r, s);
  printf("%-20s %s.logp moves %.4g GB/s (%.2f of a copy) if each logit goes through memory once\n",
         "", s->name, gb, 1e9 * gb / copy_rate(w->r));
}

static void step_rows(writer *w, const gpu_shape *s) {
  const double responses = (double)(s->step_groups * s->step_group_size);
  const double tokens = (double)s->step_tokens, prompt = (double)s->prompt;
  const double update = responses * (prompt + tokens) *
                        gpu_train_flops(&s->model, s->prompt + s->step_tokens) / product_rate(w->r);
  const double draw = tokens * step_seconds(w->r, s, responses, prompt + tokens / 2);
  row(w, s->name, "step.generate", "s", (bound){draw, NAN, NAN}, 1, 0);
  row(w, s->name, "step.score", "s", (bound){update / 3, NAN, NAN}, 1, 0);
  row(w, s->name, "step.update", "s", (bound){update, NAN, NAN}, 1, 0);
  row(w, s->name, "step.total", "s", (bound){draw + update * 4 / 3, NAN, NAN}, 1, 0);
  row(w, s->name, "step.peak", "GiB", unbound, 1, 0);
  const gpu_reading *plan = gpu_find(w->r->ours, s->name, "step.plan");
  if (plan != NULL && w->rows == NULL) printf("%-20s %s\n", "", plan->note);
}

static void all_rows(writer *w) {
  row(w, "limit", "product", "TFLOP/s", unbound, 0, 1);
  row(w, "limit", "copy", "GB/s", unbound, 0, 1);
  for (size_t i = 0; i < w->r->n_shapes; ++i) {
    if (wanted(w, "train")) train_rows(w, &w->r->shapes[i]);
    if (wanted(w, "decode")) decode_rows(w, &w->r->shapes[i]);
    if (wanted(w, "logp")) logp_rows(w, &w->r->shapes[i]);
    if (wanted(w, "step")) step_rows(w, &w->r->shapes[i]);
  }
}

static const char *text_of(const gpu_readings *r, const char *what) {
  const gpu_reading *g = gpu_find(r, "limit", what);
  return g == NULL ? "" : g->missing[0] != '\0' ? g->missing : g->note;
}

void gpu_report_print(const gpu_report *r) {
  writer w = {.r = r};
  const char *peer = text_of(r->peers, "peer");
  printf("%s; peer: %s\n", text_of(r->ours, "device"), peer[0] != '\0' ? peer : r->no_peer);
  printf("%-20s %-9s %10s %-17s %6s %4s %10s %6s %4s\n", "", "", "median", "spread", "limit", "aim",
         "peer", "ratio", "aim");
  all_rows(&w);
  if (r->element != 2)
    printf("On the CPU these numbers show that the benchmark works, and nothing else.\n");
}

cJSON *gpu_report_json(const gpu_report *r) {
  cJSON *document = cJSON_CreateObject();
  const char *peer = text_of(r->peers, "peer");
  json_add_string(document, "device", text_of(r->ours, "device"));
  json_add_string(document, "peer", peer[0] != '\0' ? peer : r->no_peer);
  writer w = {.r = r, .rows = cJSON_AddArrayToObject(document, "rows")};
  if (w.rows != NULL) all_rows(&w);
  if (w.rows != NULL && !w.failed) return document;
  cJSON_Delete(document);
  return NULL;
}
