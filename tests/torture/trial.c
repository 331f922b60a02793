/* One trial: its random numbers, its folder, its first failure. */
#define _GNU_SOURCE
#include "tests/torture/files.h"
#include "tests/torture/torture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* --- random numbers: splitmix64 --- */

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t draw(trial *t) {
  return mix(t->state += 0x9e3779b97f4a7c15u);
}

size_t draw_below(trial *t, size_t n) {
  return (size_t)(draw(t) % n);
}

double draw_unit(trial *t) {
  return (double)(draw(t) >> 11) * 0x1p-53;
}

/* Whether `only` ("kills", "kills: sweep") allows the case of that family: its words begin the
 * case's. */
static int is_wanted(const char *only, const char *kind, const char *name) {
  const size_t n = strlen(kind);
  if (only == NULL || strcmp(only, kind) == 0) return 1;
  if (strncmp(only, kind, n) != 0 || only[n] != ':') return 0;
  only += n + 1;
  while (*only == ' ') ++only;
  return strncmp(only, name, strlen(only)) == 0;
}

size_t draw_case(trial *t, const void *first, size_t stride, size_t n) {
  size_t found = SIZE_MAX, wanted = 0;
  for (int pass = 0; pass < 2; ++pass) {
    size_t k = pass == 1 && wanted > 0 ? draw_below(t, wanted) : 0, seen = 0;
    for (size_t i = 0; i < n; ++i) {
      const char *name = *(const char *const *)((const char *)first + i * stride);
      if (!is_wanted(t->session->only, t->family, name)) continue;
      if (pass == 0) ++wanted;
      if (pass == 1 && seen++ == k) {
        found = i;
        snprintf(t->chosen, sizeof t->chosen, "%s", name);
      }
    }
  }
  if (found == SIZE_MAX) trial_skip(t, "no such case");
  return found;
}

/* --- failures --- */

void trial_fail(trial *t, const char *format, ...) {
  va_list arguments;
  if (t->what[0] != '\0') return;
  va_start(arguments, format);
  vsnprintf(t->what, sizeof t->what, format, arguments);
  va_end(arguments);
}

void trial_skip(trial *t, const char *why) {
  snprintf(t->skipped, sizeof t->skipped, "%s", why);
}

/* --- running --- */

/* What was in the file system of its own is kept in kept/ where the trial failed. */
static void leave_mount(trial *t) {
  char command[3 * TORTURE_PATH];
  snprintf(command, sizeof command, "cp -a '%s' '%s/kept'", t->work, t->folder);
  if (t->what[0] != '\0' && system(command) != 0) fprintf(stderr, "not kept: %s\n", t->work);
  umount2(t->work, MNT_DETACH);
}

void trial_run(trial *t, const session *s, const family *f, uint64_t number) {
  uint64_t key = mix(s->seed + 0x9e3779b97f4a7c15u);
  for (const char *c = f->name; *c != '\0'; ++c) key = mix(key ^ (uint64_t)(unsigned char)*c);
  *t = (trial){.session = s, .family = f->name, .number = number, .state = mix(key ^ mix(number))};
  snprintf(t->folder, sizeof t->folder, "%.400s/%.40s-%llu", s->root, f->name,
           (unsigned long long)number);
  for (char *c = t->folder; *c != '\0'; ++c)
    if (*c == ' ') *c = '-';
  snprintf(t->work, sizeof t->work, "%.500s/work", t->folder);
  if (mkdir(t->folder, 0777) != 0 || mkdir(t->work, 0777) != 0)
    trial_fail(t, "%.300s cannot be made: %s", t->work, strerror(errno));
  else
    f->run(t);
  if (t->mounted) leave_mount(t);
  if (t->what[0] == '\0') folder_remove(t->folder);
}
