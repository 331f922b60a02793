/* Warns of studies that do not hold all that was planned for them. */
#include "experiments/cli/tell_unfinished.h"

#include "core/base/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *unfinished_text(const char *study, const study_progress *p) {
  char *text = NULL;
  size_t size = 0;
  if (p->missing == 0 && p->shards_missing == 0) return NULL;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  fprintf(to, "%s has %zu of %zu cells", shown(study).text, p->planned - p->missing, p->planned);
  if (p->failed > 0) fprintf(to, ", %zu run%s failed", p->failed, p->failed == 1 ? "" : "s");
  if (p->shards_missing == 1)
    fprintf(to, "; shard %zu/%zu is missing", p->first_missing_shard, p->shards);
  if (p->shards_missing > 1)
    fprintf(to, "; %zu of %zu shards are missing, the first is %zu/%zu", p->shards_missing,
            p->shards, p->first_missing_shard, p->shards);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

static void unfinished_tell_study(const char *path, const char *study, const study_progress *p) {
  char *text = unfinished_text(study, p);
  if (text != NULL)
    fprintf(stderr, "gepolab: warning: %s: %s; `gepolab status` says which\n", shown(path).text,
            text);
  free(text);
  if (p->superseded > 0)
    fprintf(
        stderr,
        "gepolab: note: %s: %zu run%s of %s %s superseded by newer ones of the same place (other "
        "learning rates chosen) and left out\n",
        shown(path).text, p->superseded, p->superseded == 1 ? "" : "s", shown(study).text,
        p->superseded == 1 ? "is" : "are");
}

gl_status tell_unfinished(store *s, const char *path, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_studies(s, &names, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    study_progress p;
    status = store_progress(s, names[i], &p, err);
    if (status == GL_OK) unfinished_tell_study(path, names[i], &p);
  }
  free(names);
  return status;
}

static int is_database(const char *path) {
  static const char head[16] = "SQLite format 3";
  char found[sizeof head] = {0};
  FILE *from = fopen(path, "rb");
  const size_t n = from != NULL ? fread(found, 1, sizeof found, from) : 0;
  if (from != NULL) fclose(from);
  return n == sizeof head && memcmp(found, head, sizeof head) == 0;
}

void tell_unfinished_file(const char *path) {
  store *s = NULL;
  if (is_database(path) && store_open(&s, path, STORE_READ, NULL) == GL_OK)
    tell_unfinished(s, path, NULL);
  store_close(s);
}
