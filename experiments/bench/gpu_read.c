/* Runs parts of the GPU benchmark, and its peer, in processes of their own and reads the lines of
 * JSON they answer with. */
#include "core/base/json_tree.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- readings -----------------------------------------------------------------------------------
 */

const gpu_reading *gpu_find(const gpu_readings *r, const char *shape, const char *what) {
  char key[48];
  snprintf(key, sizeof key, "%s.%s", shape, what);
  for (size_t i = 0; i < r->n; ++i)
    if (strcmp(r->reading[i].key, key) == 0) return &r->reading[i];
  return NULL;
}

static gpu_reading *reading_new(gpu_readings *r) {
  if (r->n == GPU_MOST_READINGS) return NULL;
  gpu_reading *to = &r->reading[r->n++];
  *to = (gpu_reading){.value = NAN, .low = NAN, .high = NAN};
  return to;
}

void gpu_missing(gpu_readings *r, const char *shape, const char *what, const char *why) {
  gpu_reading *to = reading_new(r);
  if (to == NULL) return;
  snprintf(to->key, sizeof to->key, "%s.%s", shape, what);
  snprintf(to->missing, sizeof to->missing, "%s", why);
}

static double number_of(const cJSON *line, const char *key, double otherwise) {
  const cJSON *item = cJSON_GetObjectItem(line, key);
  return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static const char *text_of(const cJSON *line, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(line, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

/* Minutes pass until the table; and where the run is cut short there is no table. */
static void print_progress(const gpu_reading *g) {
  fprintf(stderr, "  %-24s ", g->key);
  if (g->missing[0] == '\0' && !isnan(g->value)) fprintf(stderr, "%.6g ", g->value);
  fprintf(stderr, "%s%s\n", g->missing, g->note);
}

/* Lines that are no reading (a library may print anything) are passed over. */
static void read_line(gpu_readings *r, const char *text) {
  cJSON *line = json_tree_of(text);
  gpu_reading *to = text_of(line, "key")[0] != '\0' ? reading_new(r) : NULL;
  if (to != NULL) {
    snprintf(to->key, sizeof to->key, "%s", text_of(line, "key"));
    snprintf(to->missing, sizeof to->missing, "%s", text_of(line, "missing"));
    snprintf(to->note, sizeof to->note, "%s", text_of(line, "note"));
    to->value = number_of(line, "value", NAN);
    to->low = number_of(line, "low", to->value);
    to->high = number_of(line, "high", to->value);
    to->n = (size_t)number_of(line, "n", 0);
    if (!r->silent) print_progress(to);
  }
  cJSON_Delete(line);
}

/* --- processes ----------------------------------------------------------------------------------
 */

/* A process of ours whose lines are read. */
typedef struct child {
  pid_t pid;
  int from; /* read end */
} child;

/* Reads lines until the other end closes or `seconds` have passed. 0 for the latter. */
static int read_lines(gpu_readings *r, int from, double seconds) {
  const double end = seconds_now() + seconds;
  char text[2048];
  size_t used = 0;
  for (;;) {
    const double left = end - seconds_now();
    struct pollfd p = {.fd = from, .events = POLLIN};
    if (left <= 0) return 0;
    if (poll(&p, 1, left < 1000 ? (int)(1000 * left) + 1 : 1000000) <= 0) continue;
    const ssize_t got = read(from, text + used, sizeof text - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 1;
    used += (size_t)got;
    text[used] = '\0';
    char *first = text, *end_of_line;
    while ((end_of_line = strchr(first, '\n')) != NULL) {
      *end_of_line = '\0';
      read_line(r, first);
      first = end_of_line + 1;
    }
    used = strlen(first);
    memmove(text, first, used + 1);
    if (used == sizeof text - 1) used = 0; /* no line of ours is so long */
  }
}

/* Waits for the child, killed first (with all it started) unless it ended in time. */
static int end_child(const child *c, int ended) {
  int how = 0;
  if (!ended) kill(-c->pid, SIGKILL);
  close(c->from);
  while (waitpid(c->pid, &how, 0) < 0 && errno == EINTR) continue;
  return how;
}

/* Forks; in the child, the head of a process group of its own which dies with this process, *to is
 * the pipe's write end. */
static gl_status begin_child(child *c, int *to, gl_error *err) {
  int ends[2];
  if (pipe(ends) != 0) return gl_fail(err, GL_EIO, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  c->pid = fork();
  if (c->pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return gl_fail(err, GL_EIO, "cannot start a process: %s", strerror(errno));
  }
  setpgid(c->pid, c->pid);
  if (c->pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(ends[c->pid == 0 ? 0 : 1]);
  c->from = ends[0];
  *to = ends[1];
  return GL_OK;
}

/* --- a part of ours -----------------------------------------------------------------------------
 */

static void work(gpu_part part, const gpu_shape *shape, backend_kind kind, int quick, int to) {
  gl_error err = {.status = GL_OK};
  FILE *lines = fdopen(to, "w");
  gl_status status = lines == NULL ? GL_EIO : gpu_part_run(part, shape, kind, quick, lines, &err);
  if (status != GL_OK && lines != NULL)
    gpu_say_missing(lines, part == GPU_LIMITS ? "limit" : shape->name, gpu_part_names[part],
                    err.text);
  if (lines != NULL) fclose(lines);
  _exit(status == GL_OK ? 0 : 1);
}

gl_status gpu_part_read(gpu_readings *r, gpu_part part, const gpu_shape *shape, backend_kind kind,
                        int quick, gl_error *err) {
  const char *name = part == GPU_LIMITS ? "limit" : shape->name;
  child c;
  int to;
  gl_status status = begin_child(&c, &to, err);
  if (status != GL_OK) return status;
  if (c.pid == 0) work(part, shape, kind, quick, to);
  read_lines(r, c.from, INFINITY);
  const int how = end_child(&c, 1);
  if (WIFEXITED(how) && WEXITSTATUS(how) <= 1) return GL_OK;
  char why[GPU_TEXT];
  if (WIFSIGNALED(how))
    snprintf(why, sizeof why, "ended by signal %d", WTERMSIG(how));
  else
    snprintf(why, sizeof why, "ended with code %d", WEXITSTATUS(how));
  gpu_missing(r, name, gpu_part_names[part], why);
  return GL_OK;
}

/* --- the peer -----------------------------------------------------------------------------------
 */

#define SCRIPT "experiments/bench/gpu.py"

enum { SHAPE_TEXT = 256 };

static void shape_text(char text[SHAPE_TEXT], const gpu_shape *s) {
  const model_config *c = &s->model;
  const size_t numbers[] = {c->hidden,          c->layers,       c->heads,      c->kv_heads,
                            c->head_dim,        c->intermediate, c->vocabulary, c->max_positions,
                            s->train_sequences, s->train_length, s->prompt,     s->draws,
                            s->logp_rows,       s->repetitions};
  int used = snprintf(text, SHAPE_TEXT, "%s=", s->name);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    used += snprintf(text + used, SHAPE_TEXT - (size_t)used, "%zu,", numbers[i]);
  for (size_t i = 0; i < s->n_batches; ++i)
    used +=
        snprintf(text + used, SHAPE_TEXT - (size_t)used, "%s%zu", i > 0 ? ":" : "", s->batch[i]);
}

/* In the child: becomes the peer. Code 127: it cannot be started. */
static void become(char *const *words, int to, const char *log) {
  const int errors = open(log != NULL ? log : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  dup2(to, STDOUT_FILENO);
  execvp(words[0], words);
  _exit(127);
}

static void explain(char *why, int how, int ended, size_t seconds) {
  if (!ended)
    snprintf(why, GPU_TEXT, "no time left (%zu s)", seconds);
  else if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
    snprintf(why, GPU_TEXT, "not installed");
  else if (WIFEXITED(how) && WEXITSTATUS(how) != 0)
    snprintf(why, GPU_TEXT, "the script ended with code %d", WEXITSTATUS(how));
  else if (WIFSIGNALED(how))
    snprintf(why, GPU_TEXT, "the script was ended by signal %d", WTERMSIG(how));
}

gl_status gpu_peer_read(gpu_readings *r, const char *python, const gpu_shape *shapes, size_t n,
                        const char *only, const char *device, int quick, size_t seconds,
                        const char *log, char *why, gl_error *err) {
  char text[GPU_MOST_SHAPES][SHAPE_TEXT], time[24];
  char *words[16 + GPU_MOST_SHAPES], *const fixed[] = {(char *)python, "-u", SCRIPT};
  size_t k = 0;
  why[0] = '\0';
  if (access(SCRIPT, R_OK) != 0) {
    snprintf(why, GPU_TEXT, "no %s here", SCRIPT);
    return GL_OK;
  }
  snprintf(time, sizeof time, "%zu", seconds);
  for (; k < 3; ++k) words[k] = fixed[k];
  char *const more[] = {"--device", (char *)device, "--seconds", time};
  for (size_t i = 0; i < 4; ++i) words[k++] = more[i];
  if (quick) words[k++] = "--quick";
  if (only != NULL) {
    words[k++] = "--only";
    words[k++] = (char *)only;
  }
  for (size_t i = 0; i < n && i < GPU_MOST_SHAPES; ++i) {
    shape_text(text[i], &shapes[i]);
    words[k++] = text[i];
  }
  words[k] = NULL;
  child c;
  int to;
  gl_status status = begin_child(&c, &to, err);
  if (status != GL_OK) return status;
  if (c.pid == 0) become(words, to, log);
  /* The script watches its time between measurements; this is for one that does not come back. */
  const int ended = read_lines(r, c.from, (double)seconds + 20);
  explain(why, end_child(&c, ended), ended, seconds);
  return GL_OK;
}
