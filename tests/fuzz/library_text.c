/* libFuzzer target: texts that a program may hand to libgepolab: an algorithm, a delay
 * distribution, the recipe of a clock. The first byte says which. What is refused has a reason;
 * what is taken can be used. */
#include "library/gepolab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(gepolab_status status, const void *made, const gepolab_error *err) {
  if ((status == GEPOLAB_OK) != (made != NULL) || (status == GEPOLAB_OK) != (err->text[0] == '\0'))
    abort();
  if (status == GEPOLAB_EINTERNAL) abort();
}

static void fuzz_algorithm(const char *text) {
  static const double logp[] = {-0.5, -1, -0.25, -2}, logq[] = {-0.625, -0.875, -0.5, -1.75};
  static const double reward[] = {1, 0};
  gepolab_algorithm *algorithm = NULL;
  gepolab_workspace *workspace = NULL;
  gepolab_error err = {0}, unfit = {0};
  expect(gepolab_algorithm_new(&algorithm, text, &err), algorithm, &err);
  if (algorithm == NULL) return;
  if (gepolab_algorithm_name(algorithm)[0] == '\0') abort();
  gepolab_batch batch = GEPOLAB_INIT(gepolab_batch);
  gepolab_result result = GEPOLAB_INIT(gepolab_result);
  batch.n_responses = batch.group_size = batch.columns = 2;
  batch.n_groups = 1;
  batch.reward = (gepolab_numbers){reward, GEPOLAB_FLOAT64, 1};
  batch.logp = (gepolab_tokens){logp, GEPOLAB_FLOAT64, 2, 1};
  batch.logq = (gepolab_tokens){logq, GEPOLAB_FLOAT64, 2, 1};
  if (gepolab_workspace_new(&workspace, &err) != GEPOLAB_OK) abort();
  const gepolab_status status = gepolab_policy(algorithm, &batch, &result, workspace, &unfit);
  if ((status == GEPOLAB_OK) != (unfit.text[0] == '\0') || status == GEPOLAB_EINTERNAL) abort();
  if (status == GEPOLAB_OK && !isfinite(result.loss)) abort();
  gepolab_workspace_free(workspace);
  gepolab_algorithm_free(algorithm);
}

static void fuzz_delay(const char *text) {
  gepolab_delay *dist = NULL;
  gepolab_error err = {0}, other = {0};
  double drawn[4], quantile = 0;
  expect(gepolab_delay_new(&dist, text, &err), dist, &err);
  if (dist == NULL) return;
  if (gepolab_delay_draw(dist, 7, 3, 4, drawn, &other) != GEPOLAB_OK) abort();
  for (int i = 0; i < 4; ++i)
    if (!(drawn[i] >= 0)) abort();
  if (gepolab_delay_quantile(dist, 0.5, &quantile, &other) == GEPOLAB_OK && !(quantile >= 0))
    abort();
  gepolab_delay_free(dist);
}

/* Whether the text may ask for a clock that takes long: a number of more than three digits, or an
 * exponent or a unit behind one, may be a number of updates, of samplers, or a rate. */
static int may_take_long(const char *text) {
  size_t digits = 0;
  for (const char *c = text; *c != '\0'; ++c) {
    const int digit = *c >= '0' && *c <= '9';
    if (digits > 0 && !digit && *c != '.' && *c != ',' && *c != ' ' && *c != '\n' && *c != '}' &&
        *c != ']')
      return 1;
    digits = digit || (*c == '.' && digits > 0) ? digits + 1 : 0;
    if (digits > 3) return 1;
  }
  return 0;
}

static void fuzz_simulation(const char *text) {
  gepolab_simulation *s = NULL;
  gepolab_error err = {0};
  gepolab_trained batch[4];
  if (may_take_long(text)) return;
  expect(gepolab_simulate(&s, text, 1, &err), s, &err);
  if (s == NULL) return;
  const int64_t n = gepolab_simulation_batches(s);
  if (gepolab_simulation_json(s)[0] != '{' || n < 0) abort();
  for (int64_t first = 0; first < n; first += 4)
    for (int64_t k = 0, got = gepolab_simulation_read(s, first, 4, batch); k < got; ++k)
      if (batch[k].step < 1 || batch[k].drawn_at > batch[k].version ||
          !(batch[k].trained_s >= batch[k].arrived_s))
        abort();
  gepolab_simulation_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  char *text = malloc(size);
  if (text == NULL) abort();
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  switch (data[0] % 3) {
  case 0:
    fuzz_algorithm(text);
    break;
  case 1:
    fuzz_delay(text);
    break;
  default:
    fuzz_simulation(text);
    break;
  }
  free(text);
  return 0;
}
