/* Runs the parts of the GPU benchmark, ours and its peer's, each in a process of its own or all in
 * this one, and reads the lines of JSON that they answer with. */
#include "core/base/json_tree.h"
#include "experiments/base/args.h"
#include "experiments/base/seconds.h"
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A peer comes after the part that it is compared with, so that a short time leaves out later parts
 * and never the peer of one that was measured. */
const gpu_part gpu_parts[] = {{"limits", gpu_limits, 1, 0}, {"parity", gpu_parity, 0, 0},
                              {"train", gpu_train, 0, 0},   {"peer-train", NULL, 0, 0},
                              {"decode", gpu_decode, 0, 0}, {"peer-decode", NULL, 0, 0},
                              {"logp", gpu_logp, 0, 1},     {"peer-logp", NULL, 0, 0},
                              {"step", gpu_step, 0, 0},     {NULL, NULL, 0, 0}};

#define SCRIPT "experiments/bench/gpu.py"
enum { LEAST_PEER_SECONDS = 120, WORDS = 13 };

typedef struct bench {
  const gpu_options *o;
  cJSON *ours, *peers, *operations; /* of the document */
  double begun;
} bench;

/* --- lines --------------------------------------------------------------------------------------
 */

/* Minutes pass until the table; and where the run is cut short there is no table. */
static void tell_progress(const bench *x, const cJSON *to, const cJSON *line) {
  const char *missing = cJSON_GetStringValue(cJSON_GetObjectItem(line, "missing"));
  const cJSON *value = cJSON_GetObjectItem(line, "value");
  if (x->o->silent) return;
  fprintf(stderr, "  %-4s %-24s ", to == x->peers ? "peer" : "",
          cJSON_GetObjectItem(line, "key")->valuestring);
  if (cJSON_IsNumber(value)) fprintf(stderr, "%.6g ", value->valuedouble);
  fprintf(stderr, "%s\n", missing != NULL ? missing : "");
}

/* Lines that are no reading (a library may print anything) are passed over. */
static void take_line(bench *x, cJSON *to, const char *text) {
  cJSON *line = json_tree_of(text);
  if (!cJSON_IsString(cJSON_GetObjectItem(line, "key"))) {
    cJSON_Delete(line);
    return;
  }
  const int operation = cJSON_GetObjectItem(line, "operation") != NULL;
  if (!operation) tell_progress(x, to, line);
  cJSON_AddItemToArray(operation ? x->operations : to, line);
}

static void say_missing(bench *x, cJSON *to, const gpu_part *p, const gpu_shape *s,
                        const char *why) {
  char text[512];
  cJSON *line = cJSON_CreateObject();
  const char *name = strncmp(p->name, "peer-", 5) == 0 ? p->name + 5 : p->name;
  snprintf(text, sizeof text, "%s.%s", s != NULL ? s->name : "limit", name);
  json_add_string(line, "key", text);
  json_add_string(line, "what", name);
  json_add_string(line, "missing", why);
  tell_progress(x, to, line);
  cJSON_AddItemToArray(to, line);
}

/* --- processes ----------------------------------------------------------------------------------
 */

static void read_lines(bench *x, cJSON *to, FILE *from) {
  char *text = NULL;
  size_t room = 0;
  while (getline(&text, &room, from) > 0) take_line(x, to, text);
  free(text);
}

/* What a process does, whose lines go to `to`; its code. */
typedef int work(const bench *x, const gpu_part *p, const gpu_shape *s, int to);

/* Runs do_it in a process that ends with this one and gives how it ended, as waitpid() does. */
static gl_status in_child(bench *x, cJSON *to, work *do_it, const gpu_part *p, const gpu_shape *s,
                          int *how, gl_error *err) {
  int ends[2];
  if (pipe(ends) != 0) return gl_fail(err, GL_EIO, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(ends[0]);
    _exit(do_it(x, p, s, ends[1]));
  }
  close(ends[1]);
  FILE *from = fdopen(ends[0], "r");
  if (pid > 0 && from != NULL) read_lines(x, to, from);
  while (pid > 0 && waitpid(pid, how, 0) < 0 && errno == EINTR) continue;
  if (from != NULL) fclose(from);
  return pid > 0 ? GL_OK : gl_fail(err, GL_EIO, "cannot start a process: %s", strerror(errno));
}

/* --- parts of ours ------------------------------------------------------------------------------
 */

/* *opened: there is a device. */
static gl_status run_part(const bench *x, const gpu_part *p, const gpu_shape *s, FILE *to,
                          int *opened, gl_error *err) {
  const char *times = getenv("GEPOLAB_CUDA_TIMES");
  const int all = times != NULL && strcmp(times, "all") == 0;
  gpu_run r = {.part = p->name,
               .shape = s,
               .kind = x->o->kind,
               .quick = x->o->quick,
               .times = times != NULL && times[0] != '\0' && strcmp(times, "0") != 0,
               .to = to};
  const number_type type = r.kind == BACKEND_CPU ? NUMBER_F32 : NUMBER_BF16;
  gl_status status = backend_new(&r.b, r.kind, type, 0, err);
  *opened = status == GL_OK;
  if (status == GL_OK)
    status = backend_watch_begin(&r.watch, r.b,
                                 all                   ? WATCH_TIMES_UNRECORDED
                                 : r.times || p->times ? WATCH_TIMES
                                                       : WATCH_MEMORY,
                                 err);
  if (status == GL_OK) status = p->run(&r, err);
  backend_watch_end(r.watch);
  backend_free(r.b);
  return status;
}

/* A failure is a line too. */
static int write_part(const bench *x, const gpu_part *p, const gpu_shape *s, int to) {
  gl_error err = {.status = GL_OK};
  int opened = 0;
  FILE *lines = fdopen(to, "w");
  if (lines == NULL) return 2;
  if (run_part(x, p, s, lines, &opened, &err) != GL_OK) {
    const gpu_run r = {.shape = s, .to = lines};
    gpu_say(&r, (gpu_row){.what = p->name, .missing = err.text, .no_device = !opened});
  }
  return fclose(lines) == 0 ? 0 : 2;
}

static gl_status own_part(bench *x, const gpu_part *p, const gpu_shape *s, gl_error *err) {
  int how = 0;
  if (x->o->in_process) {
    FILE *lines = tmpfile();
    const int to = lines != NULL ? dup(fileno(lines)) : -1;
    if (to < 0) return gl_fail(err, GL_EIO, "cannot make a file: %s", strerror(errno));
    how = write_part(x, p, s, to);
    rewind(lines);
    read_lines(x, x->ours, lines);
    fclose(lines);
    return how == 0 ? GL_OK : gl_fail(err, GL_EIO, "cannot write a file: %s", strerror(errno));
  }
  gl_status status = in_child(x, x->ours, write_part, p, s, &how, err);
  if (status != GL_OK || (WIFEXITED(how) && WEXITSTATUS(how) == 0)) return status;
  char why[64];
  snprintf(why, sizeof why, WIFSIGNALED(how) ? "ended by signal %d" : "ended with code %d",
           WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  say_missing(x, x->ours, p, s, why);
  return GL_OK;
}

/* --- the peer -----------------------------------------------------------------------------------
 */

static double seconds_of_peer(const bench *x) {
  return fmax(LEAST_PEER_SECONDS, (double)x->o->seconds - (seconds_now() - x->begun));
}

/* The shape as the script reads it; malloc'd. */
static char *shape_text(const gpu_shape *s) {
  const model_config *c = &s->model;
  const struct {
    const char *key;
    size_t value;
  } sizes[] = {{"hidden", c->hidden},
               {"layers", c->layers},
               {"heads", c->heads},
               {"kv_heads", c->kv_heads},
               {"head_dim", c->head_dim},
               {"intermediate", c->intermediate},
               {"vocabulary", c->vocabulary},
               {"positions", c->max_positions},
               {"sequences", s->sequences},
               {"length", s->length},
               {"prompt", s->prompt},
               {"draws", s->draws},
               {"rows", s->rows},
               {"repetitions", s->repetitions}};
  cJSON *shape = cJSON_CreateObject(), *batches = cJSON_AddArrayToObject(shape, "batches");
  json_add_string(shape, "name", s->name);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    json_add_number(shape, sizes[i].key, (double)sizes[i].value);
  for (size_t i = 0; i < GPU_MOST_BATCHES && s->batch[i] > 0; ++i)
    json_add_number(batches, NULL, (double)s->batch[i]);
  char *text = cJSON_PrintUnformatted(shape);
  cJSON_Delete(shape);
  return text;
}

/* Becomes the peer; code 127: it cannot be started. The script watches its time between
 * measurements; `timeout` (code 124) is for one that does not come back. */
static int become_peer(const bench *x, const gpu_part *p, const gpu_shape *s, int to) {
  const gpu_options *o = x->o;
  const int errors =
      open(o->log != NULL ? o->log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0644);
  char seconds[24], most[24];
  snprintf(seconds, sizeof seconds, "%.0f", seconds_of_peer(x));
  snprintf(most, sizeof most, "%.0f", seconds_of_peer(x) + 20);
  const char *words[WORDS] = {"timeout",   most,
                              o->python,   "-u",
                              SCRIPT,      p->name + strlen("peer-"),
                              "--device",  o->kind == BACKEND_CUDA ? "cuda" : "cpu",
                              "--seconds", seconds,
                              "--shape",   shape_text(s)};
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  dup2(to, STDOUT_FILENO);
  execvp(words[0], (char *const *)(uintptr_t)words);
  return 127;
}

static gl_status peer_part(bench *x, const gpu_part *p, const gpu_shape *s, gl_error *err) {
  int how = 0;
  char why[64] = "";
  if (access(SCRIPT, R_OK) != 0) {
    say_missing(x, x->peers, p, s, "no " SCRIPT " here");
    return GL_OK;
  }
  gl_status status = in_child(x, x->peers, become_peer, p, s, &how, err);
  if (status != GL_OK || how == 0) return status;
  if (WIFEXITED(how) && WEXITSTATUS(how) == 124)
    snprintf(why, sizeof why, "no answer in time");
  else if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
    snprintf(why, sizeof why, "not installed");
  else
    snprintf(why, sizeof why,
             WIFSIGNALED(how) ? "the script was ended by signal %d"
                              : "the script ended with code %d",
             WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  say_missing(x, x->peers, p, s, why);
  return GL_OK;
}

/* --- all parts ----------------------------------------------------------------------------------
 */

/* Whether `only` (names with commas between) names the part. Limits are what others are held
 * against, and take seconds: they are run with all but parity and peers alone. */
static int wanted(const char *only, const char *part) {
  if (only == NULL) return 1;
  const size_t n = strlen(part);
  for (const char *at = only; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strcspn(at, ",") == n && strncmp(at, part, n) == 0) return 1;
    if (strcmp(part, "limits") == 0 && strncmp(at, "p", 1) != 0) return 1;
  }
  return 0;
}

static gl_status check_only(const char *only, gl_error *err) {
  const char *names[sizeof gpu_parts / sizeof *gpu_parts];
  size_t n = 0, i;
  for (; gpu_parts[n].name != NULL; ++n) names[n] = gpu_parts[n].name;
  gl_status status = GL_OK;
  for (const char *at = only; at != NULL && status == GL_OK; at = strchr(at, ',')) {
    char name[32];
    at += *at == ',';
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
    status = args_choose(&i, "--only", name, names, n, err);
  }
  return status;
}

/* The reason where there is no device: nothing else is tried then. */
static const char *no_device(const bench *x) {
  const cJSON *line;
  cJSON_ArrayForEach(line, x->ours) {
    const char *device = cJSON_GetStringValue(cJSON_GetObjectItem(line, "device"));
    if (device != NULL && strcmp(device, "none") == 0)
      return cJSON_GetStringValue(cJSON_GetObjectItem(line, "missing"));
  }
  return NULL;
}

static gl_status run_parts(bench *x, const gpu_shape *s, int once, cJSON *document, gl_error *err) {
  gl_status status = GL_OK;
  for (const gpu_part *p = gpu_parts; p->name != NULL && status == GL_OK; ++p) {
    if (p->once != once || !wanted(x->o->only, p->name)) continue;
    if (p->run == NULL)
      status = peer_part(x, p, s, err);
    else if (seconds_now() - x->begun > (double)x->o->seconds)
      say_missing(x, x->ours, p, s, "no time left; raise --seconds or choose with --only, --shape");
    else
      status = own_part(x, p, s, err);
    const char *none = no_device(x);
    if (none != NULL) {
      json_add_string(document, "skipped", none);
      break;
    }
  }
  return status;
}

gl_status gpu_bench(const gpu_options *o, cJSON **out, gl_error *err) {
  *out = NULL;
  gl_status status = check_only(o->only, err);
  if (status != GL_OK) return status;
  cJSON *document = cJSON_CreateObject();
  bench x = {.o = o, .begun = seconds_now()};
  x.ours = cJSON_AddArrayToObject(document, "ours");
  x.peers = cJSON_AddArrayToObject(document, "peers");
  x.operations = cJSON_AddArrayToObject(document, "operations");
  if (x.operations == NULL) status = gl_fail_memory(err, "the answers");
  if (status == GL_OK) status = run_parts(&x, NULL, 1, document, err);
  for (size_t i = 0; i < o->n_shapes && status == GL_OK; ++i)
    if (!cJSON_HasObjectItem(document, "skipped"))
      status = run_parts(&x, &o->shapes[i], 0, document, err);
  if (status == GL_OK)
    *out = document;
  else
    cJSON_Delete(document);
  return status;
}
