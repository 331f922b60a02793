#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/support/cli.h"
#include "tests/support/files.h"

#include "tests/support/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *program(void) {
  const char *path = getenv("GEPOLAB");
  return path != NULL && path[0] != '\0' ? path : "build/gepolab";
}

/* --- starting and waiting --- */

static pid_t start(const char *const *arguments, const char *in, const char *out, const char *err) {
  char *argv[CLI_MAX_ARGUMENTS + 2];
  size_t n = 0;
  argv[n++] = strdup(program());
  for (; arguments[n - 1] != NULL && n <= CLI_MAX_ARGUMENTS; ++n)
    argv[n] = strdup(arguments[n - 1]);
  argv[n] = NULL;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, in, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], &files, NULL, argv, environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&files);
  for (size_t i = 0; i < n; ++i) free(argv[i]);
  CU_ASSERT_FATAL(pid > 0);
  return pid;
}

pid_t cli_start(const char *const *arguments) {
  return start(arguments, "/dev/null", "/dev/null", "/dev/null");
}

pid_t cli_start_writing(const char *out, const char *err, const char *const *arguments) {
  return start(arguments, "/dev/null", out, err);
}

int cli_wait(pid_t pid) {
  int how = 0;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

void cli_sleep_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

void cli_wait_for_work(pid_t pid, double seconds) {
  clockid_t clock;
  struct timespec used = {0};
  CU_ASSERT_EQUAL_FATAL(clock_getcpuclockid(pid, &clock), 0);
  for (int i = 0; i < 12000 && clock_gettime(clock, &used) == 0; ++i) {
    if ((double)used.tv_sec + 1e-9 * (double)used.tv_nsec >= seconds) return;
    cli_sleep_ms(10);
  }
  CU_FAIL("a command under test did not work");
}

/* --- running to the end --- */

char *cli_read(const char *path) {
  char *text = files_text(path);
  if (text == NULL) text = calloc(1, 1);
  test_at_end(free, text);
  return text;
}

cli_result cli_run(const char *input, const char *const *arguments) {
  char folder[64], in[128], out[128], err[128];
  cli_result r = {0};
  cli_scratch_make(folder);
  cli_path(in, folder, "in");
  cli_write(in, input != NULL ? input : "", input != NULL ? strlen(input) : 0);
  r.code =
      cli_wait(start(arguments, in, cli_path(out, folder, "out"), cli_path(err, folder, "err")));
  r.out = (char *)files_read(out, &r.out_size);
  r.err = files_text(err);
  cli_scratch_remove(folder);
  test_at_end(free, r.out);
  test_at_end(free, r.err);
  return r;
}

static void delete_json(void *json) {
  cJSON_Delete(json);
}

static cJSON *parse(const char *text, bool whole) {
  cJSON *json = cJSON_ParseWithOpts(text, NULL, whole);
  test_at_end(delete_json, json);
  return json;
}

cJSON *json_parsed(const char *text) {
  return parse(text, true);
}

cJSON *json_line(const char *text) {
  return parse(text, false);
}

cJSON *json_of(const cli_result *r) {
  if (r->code != 0) fprintf(stderr, "%s", r->err);
  CU_ASSERT_EQUAL_FATAL(r->code, 0);
  cJSON *json = json_parsed(r->out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

double printed_number(const cli_result *r, const char *path) {
  return number_at(json_parsed(r->out), path);
}

cJSON *cli_json(const char *const *arguments) {
  cli_result r = cli_run(NULL, arguments);
  return json_of(&r);
}

int cli_gives(int code, const char *const *arguments) {
  cli_result r = cli_run(NULL, arguments);
  int good = r.code == code;
  if (!good) fprintf(stderr, "gepolab %s … gave %d, not %d: %s", arguments[0], r.code, code, r.err);
  return good;
}

void check_refusal(const cli_result *r, int code, const char *says) {
  int good = r->code == code && strncmp(r->err, "gepolab: ", 9) == 0 &&
             strstr(r->err, says) != NULL && r->out_size == 0;
  if (!good) fprintf(stderr, "exit %d, expected %d and '%s': %s", r->code, code, says, r->err);
  CU_ASSERT(good);
}

/* --- on a terminal --- */

/* The master's end of a new terminal, whose path is in name. */
static int open_terminal(char name[128]) {
  int end = posix_openpt(O_RDWR | O_NOCTTY);
  CU_ASSERT_FATAL(end >= 0 && grantpt(end) == 0 && unlockpt(end) == 0);
  snprintf(name, 128, "%s", ptsname(end));
  return end;
}

/* Sets a variable, or takes it away where value is NULL. */
static void set_variable(const char *name, const char *value) {
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

/* Starts it in the surroundings of a person, whatever the tests themselves run under. */
static pid_t start_for_person(const char *const *arguments, const char *terminal) {
  static const char *const names[] = {"TERM", "CI"}, *const wanted[] = {"xterm", NULL};
  char *kept[2];
  for (int i = 0; i < 2; ++i) {
    const char *value = getenv(names[i]);
    kept[i] = value != NULL ? strdup(value) : NULL;
    set_variable(names[i], wanted[i]);
  }
  const pid_t pid = start(arguments, "/dev/null", "/dev/null", terminal);
  for (int i = 0; i < 2; ++i) {
    set_variable(names[i], kept[i]);
    free(kept[i]);
  }
  return pid;
}

cli_result cli_run_on_terminal(const char *const *arguments) {
  char name[128], piece[4096];
  cli_result r = {.out = calloc(1, 1), .err = calloc(1, 1)};
  size_t used = 0;
  const int end = open_terminal(name);
  const pid_t pid = start_for_person(arguments, name);
  /* Reading fails when the last process that has the other end is gone. */
  for (ssize_t got; (got = read(end, piece, sizeof piece)) > 0; used += (size_t)got) {
    r.err = realloc(r.err, used + (size_t)got + 1);
    CU_ASSERT_FATAL(r.err != NULL);
    memcpy(r.err + used, piece, (size_t)got);
    r.err[used + (size_t)got] = '\0';
  }
  close(end);
  r.code = cli_wait(pid);
  test_at_end(free, r.out);
  test_at_end(free, r.err);
  return r;
}

/* --- processes --- */

static size_t children_of(pid_t pid, pid_t *children, size_t n) {
  DIR *all = opendir("/proc");
  size_t found = 0;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char path[300];
    int one = 0, parent = 0;
    if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
    FILE *from = fopen(path, "r");
    if (from == NULL) continue;
    if (fscanf(from, "%d (%*[^)]) %*c %d", &one, &parent) == 2 && parent == pid) {
      if (found < n) children[found] = one;
      ++found;
    }
    fclose(from);
  }
  if (all != NULL) closedir(all);
  return found;
}

void cli_wait_for_children(pid_t pid, pid_t *children, size_t n) {
  for (int i = 0; i < 12000 && children_of(pid, children, n) < n; ++i) cli_sleep_ms(5);
}

/* --- files --- */

static void remove_scratch(void *folder) {
  cli_scratch_remove(folder);
  free(folder);
}

void cli_scratch_adopt(const char *folder) {
  test_at_end(remove_scratch, strdup(folder));
}

void cli_scratch_make(char folder[64]) {
  snprintf(folder, 64, "/tmp/gepolab-test-XXXXXX");
  CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
  cli_scratch_adopt(folder);
}

void cli_scratch_remove(const char *folder) {
  files_remove(folder);
}

const char *cli_path(char path[128], const char *folder, const char *name) {
  snprintf(path, 128, "%s/%s", folder, name);
  return path;
}

void cli_write(const char *path, const char *text, size_t size) {
  files_write(path, text, size);
}

int cli_has(const char *folder, const char *name) {
  char path[128];
  return access(cli_path(path, folder, name), R_OK) == 0;
}

size_t cli_files_in(const char *folder) {
  return files_count(folder);
}

int cli_fits(const char *text, size_t length) {
  size_t columns = 0;
  for (const char *c = text; c < text + length; ++c) {
    columns = *c == '\n' ? 0 : columns + (((unsigned char)*c & 0xC0) != 0x80);
    if (columns <= 80) continue;
    fprintf(stderr, "wider than 80 columns: %.200s\n", c - 80);
    return 0;
  }
  return 1;
}

cli_result cli_bias(const char *recipe, const char *option) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "lab.yaml");
  cli_write(path, recipe, strlen(recipe));
  return CLI("bias", path, option);
}
