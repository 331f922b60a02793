/* libFuzzer target: no text may make the recipe reader misbehave. The first line is an override,
 * the rest a recipe. Algorithms and presets that it defines are replaced or refused. The canonical
 * text of a recipe is a recipe with the same canonical text. */
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/config/user_defined.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *canonical_of(const cfg_doc *doc) {
  char *text = cfg_canonical(cfg_root(doc));
  if (text == NULL) abort();
  return text;
}

static void check_reload(const cfg_doc *doc) {
  enum { LARGEST = 8 << 20 }; /* of a recipe; aliases may expand beyond it */
  gl_error err = {0};
  cfg_doc *again = NULL;
  char *text = canonical_of(doc);
  if (strlen(text) <= LARGEST) {
    if (cfg_load_text(&again, text, strlen(text), "canonical", &err) != GL_OK) abort();
    char *twice = canonical_of(again);
    if (strcmp(text, twice) != 0) abort();
    free(twice);
  }
  cfg_free(again);
  free(text);
}

static void check_copy(const cfg_doc *doc) {
  gl_error err = {0};
  cfg_doc *copy = NULL;
  if (cfg_copy(&copy, doc, &err) != GL_OK) abort();
  char *text = canonical_of(doc), *same = canonical_of(copy);
  if (strcmp(text, same) != 0) abort();
  free(text);
  free(same);
  cfg_free(copy);
}

static void read_some(const cfg_doc *doc) {
  gl_error err = {0};
  cfg_reader r;
  double *list;
  cfg_begin(&r, cfg_root(doc), "fuzz", &err);
  cfg_int(&r, "a", 0, -5, 5);
  cfg_count(&r, "b", 0, 0, SIZE_MAX);
  cfg_doubles(&r, "c", &list, 0, 10);
  cfg_bool(&r, "d", 0);
  free(list);
  cfg_end(&r);
}

/* Definitions of algorithms and presets are refused with a reason, or gone afterwards. */
static void replace_own(cfg_doc *doc) {
  gl_error err = {0};
  cfg_own *none = NULL;
  if (cfg_own_new(&none, &err) != GL_OK) abort();
  gl_status status = cfg_include(doc, NULL, &err);
  if (status == GL_OK) status = cfg_resolve(doc, &err);
  if (status == GL_OK) status = cfg_own_expand(none, doc, &err);
  if ((status == GL_OK) != (err.text[0] == '\0')) abort();
  for (size_t i = 0; status == GL_OK && fields_own_at(i) != NULL; ++i)
    if (cfg_find(cfg_root(doc), fields_own_at(i)->aside) != NULL) abort();
  cfg_own_free(none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *line = size == 0 ? NULL : memchr(data, '\n', size);
  size_t length = line == NULL ? 0 : (size_t)(line - data), skip = line == NULL ? 0 : length + 1;
  char *assignment = calloc(length + 1, 1);
  if (assignment == NULL) abort();
  memcpy(assignment, data, length);
  cfg_doc *doc = NULL;
  gl_error err = {0};
  if (cfg_load_text(&doc, (const char *)data + skip, size - skip, "fuzz", &err) == GL_OK) {
    check_reload(doc);
    if (cfg_override(doc, assignment, &err) == GL_OK) check_copy(doc);
    read_some(doc);
    replace_own(doc);
  } else if (err.status == GL_OK || err.text[0] == '\0')
    abort();
  cfg_free(doc);
  free(assignment);
  return 0;
}
