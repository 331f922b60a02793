/* libFuzzer target: what recipes are written in besides plain YAML. Merge keys, includes, units,
 * ranges and random search may make no text misbehave; the first line is an override, the rest a
 * recipe, and a recipe may include the line (`line`), itself (`rest`) and a fixed one (`base`).
 * What is resolved is plain: its canonical text resolves to itself. */
#include "core/config/config.h"
#include "experiments/recipe/designs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
  const char *line, *rest;
  size_t line_size, rest_size;
} input;

static int find(void *self, const char *name, const char **text, size_t *size, const char **shown) {
  static const char base[] =
      "world: {kind: llm, task: addition}\nalgorithm: gepo\n"
      "cluster: {max_delay: 10m, delay: {distribution: lognormal, interval: [1m, 30m]}, up: &u "
      "{bandwidth: "
      "100Mbit/s}, down: {<<: *u, rto: 3ms}}\nsweep: {optimizer.lr: {from: 1e-3, to: 1, n: 4, "
      "scale: log}}\n";
  const input *in = self;
  const struct {
    const char *name, *text;
    size_t size;
  } all[] = {{"base", base, sizeof base - 1},
             {"line", in->line, in->line_size},
             {"rest", in->rest, in->rest_size}};
  for (size_t i = 0; i < 3; ++i) {
    if (strcmp(all[i].name, name) != 0) continue;
    *text = all[i].text;
    *size = all[i].size;
    *shown = all[i].name;
    return 1;
  }
  return 0;
}

static void must_say_why(gl_status status, const gl_error *err) {
  if (status != GL_OK && (err->status != status || err->text[0] == '\0')) abort();
}

static char *canonical_of(const cfg_doc *doc) {
  char *text = cfg_canonical(cfg_root(doc));
  if (text == NULL) abort();
  return text;
}

static void check_plain(const cfg_doc *doc) {
  enum { LARGEST = 1 << 20 };
  gl_error err = {0};
  cfg_doc *again = NULL;
  char *once = canonical_of(doc);
  if (strlen(once) < LARGEST) {
    if (cfg_load_text(&again, once, strlen(once), "canonical", &err) != GL_OK) abort();
    if (cfg_resolve(again, &err) != GL_OK) abort();
    char *twice = canonical_of(again);
    if (strcmp(once, twice) != 0) abort();
    free(twice);
    cfg_free(again);
  }
  free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *line = size == 0 ? NULL : memchr(data, '\n', size);
  const size_t length = line == NULL ? 0 : (size_t)(line - data),
               skip = line == NULL ? 0 : length + 1;
  char *assignment = calloc(length + 1, 1);
  if (assignment == NULL) abort();
  memcpy(assignment, data, length);
  input in = {assignment, (const char *)data + skip, length, size - skip};
  const cfg_library library = {find, &in};
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = cfg_load_text(&doc, in.rest, in.rest_size, "fuzz", &err);
  if (status == GL_OK) status = cfg_include(doc, &library, &err);
  if (status == GL_OK) (void)cfg_override(doc, assignment, NULL); /* a wrong one changes nothing */
  if (status == GL_OK) status = cfg_resolve(doc, &err);
  if (status == GL_OK) check_plain(doc);
  if (status == GL_OK) status = random_search_draw(doc, &err);
  must_say_why(status, &err);
  cfg_free(doc);
  free(assignment);
  return 0;
}
