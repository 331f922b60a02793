/* A run's own warm-up beside its checkpoints: the file of warmup_cache.c when it is done, and
 * before that one of the same name and ".part": a header, the key's text, the steps made, a
 * checksum of all these, then the model's parameters and moments (model_write), which carry their
 * own. */
#include "core/base/checksum.h"
#include "core/base/file.h"
#include "llm/learner/warmup.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART_FORMAT = 1 };

typedef struct part_header {
  char magic[8];
  uint64_t format, key_size, steps;
} part_header;

static const char part_magic[8] = "GLpart\r\n";
static const char suffix[] = ".part";

/* Name of the file, malloc'd; NULL where nothing is kept. */
static char *part_path(const warmup_entry *e) {
  if (e->path == NULL) return NULL;
  const size_t size = strlen(e->path) + sizeof suffix;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s%s", e->path, suffix);
  return path;
}

static uint64_t sum_of(const part_header *h, const char *key) {
  checksum sum;
  checksum_begin(&sum);
  checksum_add(&sum, h, sizeof *h);
  checksum_add(&sum, key, h->key_size);
  return checksum_of(&sum);
}

/* --- unfinished --- */

static gl_status put_part(FILE *to, const warmup_entry *e, const llm_learner *l, size_t steps,
                          gl_error *err) {
  part_header h = {.format = PART_FORMAT, .key_size = strlen(e->key), .steps = steps};
  memcpy(h.magic, part_magic, sizeof h.magic);
  const uint64_t sum = sum_of(&h, e->key);
  (void)fwrite(&h, sizeof h, 1, to); /* ferror() tells a failure later */
  (void)fwrite(e->key, 1, h.key_size, to);
  (void)fwrite(&sum, sizeof sum, 1, to);
  return model_write(l->model, l->replica[0].optimizer, to, err);
}

gl_status warmup_own_keep(const warmup_entry *e, const llm_learner *l, size_t steps,
                          gl_error *err) {
  file_writer w;
  gl_error why = {0};
  char *path = part_path(e);
  if (path == NULL) return e->path == NULL ? GL_OK : gl_fail_memory(err, "a warm-up");
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    status = put_part(w.stream, e, l, steps, &why);
    const int reason = ferror(w.stream) ? errno : 0;
    if (status == GL_OK) {
      status = file_commit(&w, err);
    } else {
      file_abandon(&w);
      status = reason != 0 ? file_fail(path, "written", reason, err)
                           : gl_fail(err, status, "%s", why.text);
    }
  }
  free(path);
  return status;
}

/* The key as it is in the file, if head, key and checksum are what they should be. */
static int take_head(FILE *from, const warmup_entry *e, part_header *h) {
  const size_t n = strlen(e->key);
  char *key = malloc(n);
  uint64_t written;
  int good = key != NULL && fread(h, sizeof *h, 1, from) == 1 &&
             memcmp(h->magic, part_magic, sizeof h->magic) == 0 && h->format == PART_FORMAT &&
             h->key_size == n && fread(key, 1, n, from) == n && memcmp(key, e->key, n) == 0 &&
             fread(&written, sizeof written, 1, from) == 1 && written == sum_of(h, key);
  free(key);
  return good;
}

int warmup_own_resume(const warmup_entry *e, llm_learner *l, size_t *steps) {
  part_header h;
  char *path = part_path(e);
  FILE *from = path != NULL ? fopen(path, "rb") : NULL;
  free(path);
  if (from == NULL) return 0;
  int found = take_head(from, e, &h) && h.steps <= l->spec.warmup.steps &&
              llm_learner_read(l, from, NULL) == GL_OK;
  if (found) *steps = (size_t)h.steps;
  fclose(from);
  return found;
}

/* --- done --- */

/* Removes every other warm-up: unfinished work, and what another build of the program left. */
static void remove_others(const warmup_entry *e) {
  const char *mine = strrchr(e->path, '/') + 1;
  DIR *all = opendir(e->folder);
  const struct dirent *one;
  while (all != NULL && (one = readdir(all)) != NULL)
    if (strncmp(one->d_name, LEARNER_KEEPS, sizeof LEARNER_KEEPS - 1) == 0 &&
        strcmp(one->d_name, mine) != 0)
      (void)unlinkat(dirfd(all), one->d_name, 0);
  if (all != NULL) closedir(all);
}

gl_status warmup_own_write(const warmup_entry *e, const llm_learner *l, gl_error *err) {
  if (e->path == NULL) return GL_OK;
  gl_status status = warmup_entry_save(e, l, err);
  if (status == GL_OK) remove_others(e);
  return status;
}
