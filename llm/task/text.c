/* Texts, draws and fields that several kinds of task need. */
#include "llm/task/internal.h"

#include "core/config/fields.h"

#include <assert.h>
#include <string.h>

void task_put(task_text *to, const char *text, size_t n) {
  assert(n < TASK_TEXT_SIZE - to->n); /* the bounds of the fields see to it */
  memcpy(to->data + to->n, text, n);
  to->n += n;
  to->data[to->n] = '\0';
}

void task_put_char(task_text *to, char c) {
  task_put(to, &c, 1);
}

void task_put_number(task_text *to, int64_t x) {
  char digits[24];
  size_t at = sizeof digits;
  uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  do digits[--at] = (char)('0' + magnitude % 10);
  while ((magnitude /= 10) != 0);
  if (x < 0) digits[--at] = '-';
  task_put(to, digits + at, sizeof digits - at);
}

uint64_t task_below(task_source *s, uint64_t n) {
  assert(n > 0 && n < UINT64_C(1) << 52);
  rng_words w = rng_block(s->stream, s->block++);
  return (uint64_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n);
}

/* --- alphabets --- */

void task_use(task *t, const char *characters) {
  for (; *characters != '\0'; ++characters) {
    size_t n = strlen(t->alphabet), at = 0;
    while (at < n && t->alphabet[at] < *characters) ++at;
    if (t->alphabet[at] == *characters) continue;
    memmove(t->alphabet + at + 1, t->alphabet + at, n - at + 1);
    t->alphabet[at] = *characters;
  }
}

void task_use_digits(task *t, uint64_t largest) {
  for (uint64_t digit = 0; digit < 10 && digit <= largest; ++digit)
    task_use(t, (char[2]){(char)('0' + digit), '\0'});
  for (uint64_t x = largest; x != 0; x /= 10) task_use(t, (char[2]){(char)('0' + x % 10), '\0'});
}

size_t task_digits(uint64_t x) {
  size_t n = 1;
  while ((x /= 10) != 0) ++n;
  return n;
}

/* --- fields --- */

/* Adds the letter of the word at node; r's status tells of a word that is unknown or there twice.
 */
static size_t choose(cfg_reader *r, const cfg_node *node, const char *key, const char *const *names,
                     const char *letters, size_t n, char *out, size_t n_out) {
  char hint[CFG_HINT_SIZE];
  const char *word = cfg_text(node);
  for (size_t i = 0; i < n && cfg_kind_of(node) == CFG_SCALAR; ++i) {
    if (strcmp(names[i], word) != 0) continue;
    if (memchr(out, letters[i], n_out) == NULL) {
      out[n_out] = letters[i];
      return n_out + 1;
    }
    r->status = cfg_fail(node, r->err, "'%s.%s' names %s twice", r->section, key, word);
    return n_out;
  }
  char all[160] = "";
  for (size_t i = 0; i < n; ++i) {
    if (i != 0) strncat(all, ", ", sizeof all - strlen(all) - 1);
    strncat(all, names[i], sizeof all - strlen(all) - 1);
  }
  r->status = cfg_fail(node, r->err, "'%s.%s' holds '%.40s'; it must be a list of some of %s%s",
                       r->section, key, word, all, cfg_hint(word, names, n, hint));
  return n_out;
}

size_t task_choices(cfg_reader *r, const char *key, const char *const *names, const char *letters,
                    size_t n, char *out) {
  const cfg_node *node = cfg_child(r, key);
  if (node == NULL) {
    memcpy(out, letters, n);
    return n;
  }
  size_t n_out = 0;
  if (cfg_kind_of(node) != CFG_LIST || cfg_size(node) == 0)
    return choose(r, node, key, names, letters, n, out, 0);
  for (size_t i = 0; i < cfg_size(node) && r->status == GL_OK; ++i)
    n_out = choose(r, cfg_at(node, i), key, names, letters, n, out, n_out);
  return n_out;
}

void task_read_length(cfg_reader *r, size_t *length, size_t *min_length) {
  *length = field_count(r, "length");
  *min_length = cfg_count(r, "min_length", *length, 1, *length);
}
