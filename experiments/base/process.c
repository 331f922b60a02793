/* Time as it is reported, and stopping on request. */
#include "experiments/base/process.h"

#include "core/base/error.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- time --- */

char *seconds_text(double s, char text[SECONDS_TEXT_SIZE]) {
  enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
  if (!(s >= 0 && s < 1e12)) {
    snprintf(text, SECONDS_TEXT_SIZE, "?");
    return text;
  }
  const long long whole = (long long)(s + 0.5);
  if (whole < MINUTE)
    snprintf(text, SECONDS_TEXT_SIZE, "%llds", whole);
  else if (whole < HOUR)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldm%02llds", whole / MINUTE, whole % MINUTE);
  else if (whole < DAY)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldh%02lldm", whole / HOUR, whole % HOUR / MINUTE);
  else
    snprintf(text, SECONDS_TEXT_SIZE, "%lldd%02lldh", whole / DAY, whole % DAY / HOUR);
  return text;
}

/* --- memory --- */

_Noreturn void memory_is_missing(const char *what) {
  gl_error err = {.status = GL_OK};
  const gl_status status = gl_fail_memory(&err, what);
  fprintf(stderr, "gepolab: %s\n", err.text);
  exit(gl_exit_code(status));
}

void *must_alloc(size_t n, size_t size, const char *what) {
  void *memory = calloc(n > 0 ? n : 1, size);
  if (memory == NULL) memory_is_missing(what);
  return memory;
}

char *must_copy(const char *text, const char *what) {
  char *copy = strdup(text);
  if (copy == NULL) memory_is_missing(what);
  return copy;
}

void *must_resize(void *memory, size_t n, size_t size, const char *what) {
  void *resized = size > 0 && n > SIZE_MAX / size ? NULL : realloc(memory, n * size);
  if (resized == NULL) memory_is_missing(what);
  return resized;
}

/* --- signals --- */

static volatile sig_atomic_t caught;

static void note_signal(int signal_number) {
  caught = signal_number;
}

void signals_catch(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
}

void signals_catch_term(void) {
  struct sigaction action = {.sa_handler = note_signal};
  sigaction(SIGTERM, &action, NULL);
}

int signals_caught(void) {
  return caught;
}
