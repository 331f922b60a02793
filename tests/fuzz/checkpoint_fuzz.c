/* libFuzzer target: no bytes may make the reader of checkpoints misbehave, verified or not, and
 * what it takes it writes back as it was, up to the learner's state. */
#include "experiments/train/checkpoint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gl_status save_nothing(void *self, FILE *to, gl_error *err) {
  (void)self, (void)to, (void)err;
  return GL_OK;
}

static void check_written(const checkpoint *c, const char *bytes, size_t size) {
  static const learner_ops ops = {.kind = "fuzz", .save = save_nothing};
  enum { HEAD = 128, TAIL = 16 }; /* the head has the version of who wrote it */
  char *written = NULL;
  size_t n = 0;
  int reason = 0;
  gl_error err = {0};
  FILE *to = open_memstream(&written, &n);
  if (to == NULL || checkpoint_write(c, &(learner){&ops, NULL}, to, &reason, &err) != GL_OK)
    abort();
  fclose(to);
  if (n - TAIL > size || memcmp(written + HEAD, bytes + HEAD, n - TAIL - HEAD) != 0) abort();
  free(written);
}

/* Magic, form and layout as this program writes them: old seeds go on reaching what is behind. */
static void put_front(char *bytes, size_t size) {
  enum { FRONT = 24 };
  static char front[FRONT];
  if (front[0] == '\0') {
    static const learner_ops ops = {.kind = "fuzz", .save = save_nothing};
    char *written = NULL;
    size_t n = 0;
    int reason = 0;
    FILE *to = open_memstream(&written, &n);
    checkpoint none = {.recipe = ""};
    if (to == NULL || checkpoint_write(&none, &(learner){&ops, NULL}, to, &reason, NULL) != GL_OK)
      abort();
    fclose(to);
    memcpy(front, written, FRONT);
    free(written);
  }
  memcpy(bytes, front, size < FRONT ? size : FRONT);
}

static void read_one(char *bytes, size_t size) {
  checkpoint c;
  gl_error err = {0};
  FILE *from = fmemopen(bytes, size, "rb");
  if (from == NULL) abort();
  if (checkpoint_verify(from, &err) != GL_OK && err.text[0] == '\0') abort();
  gl_error_clear(&err);
  if (checkpoint_read(&c, from, &err) == GL_OK) {
    check_written(&c, bytes, size);
    checkpoint_fini(&c);
  } else if (err.text[0] == '\0' || c.batches != NULL)
    abort();
  fclose(from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  char *bytes = malloc(size);
  if (bytes == NULL) abort();
  memcpy(bytes, data, size);
  read_one(bytes, size);
  put_front(bytes, size);
  read_one(bytes, size);
  free(bytes);
  return 0;
}
