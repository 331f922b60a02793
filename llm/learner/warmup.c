/* Supervised warm-up: cross-entropy of answers and their stop token on randomly sampled training
 * problems; and the files that store its result.
 *
 * Step s samples its problems from the random stream (seed, RNG_SHUFFLE, entity 2^63 + s), one
 * block per problem. The shuffles of reinforcement learning use the learner's version as entity,
 * which is below 2^63, so the two never share random numbers. The result depends only on the
 * recipe's section `warmup` and the seed.
 *
 * The parameters after a warm-up are stored in two places. A cache shared by runs has one file per
 * distinct warm-up; an error there is ignored, because the run then warms up again. A run with
 * checkpoints also stores its own warm-up beside them, finished or not; an error there is returned.
 *
 * A file has a header, the key's text, the parameters in the backend's master type, and a checksum
 * of everything before it, in native byte order. Its name is the hash of the key. Each file is
 * renamed into place when complete. A process that needs a cached warm-up while another one
 * computes it waits on a lock. On a file system without locks both compute it and write the same
 * bytes. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/seconds.h"
#include "llm/learner/learner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- files of warm-ups --- */

typedef struct warmup_entry {
  char *folder, *path; /* NULL: nothing is stored */
  char *key;           /* text of everything that determines the parameters */
} warmup_entry;

typedef struct warmup_header {
  char magic[8];
  uint64_t format, key_size, n_parameters, element;
} warmup_header;

enum { WARMUP_FORMAT = 2, MOST_FILES = 256 };
static const char warmup_magic[8] = "GLwarm\r\n";
static const char prefix[] = LEARNER_KEEPS;
static const off_t most_bytes = (off_t)1 << 30;

/* --- the key --- */

/* Writes path, size and modification time of a file; nothing if it does not exist. */
static void put_file(FILE *to, const char *folder, const char *name) {
  char path[4096];
  struct stat s;
  snprintf(path, sizeof path, "%s%s%s", folder, *name != '\0' ? "/" : "", name);
  if (stat(path, &s) == 0)
    fprintf(to, "%s %lld %lld.%09ld\n", path, (long long)s.st_size, (long long)s.st_mtim.tv_sec,
            (long)s.st_mtim.tv_nsec);
}

static void put_folder(FILE *to, const char *folder) {
  struct dirent **entry = NULL;
  int n = scandir(folder, &entry, NULL, alphasort);
  for (int i = 0; i < n; ++i) {
    put_file(to, folder, entry[i]->d_name);
    free(entry[i]);
  }
  free(entry);
}

/* Writes a hash of the first problems of both splits, to distinguish data sets. */
static void put_problems(FILE *to, const llm_learner *l) {
  enum { MOST_PROBLEMS = 4096, FEW = 64 };
  for (int split = TASK_TRAIN; split <= TASK_HELD_OUT; ++split) {
    const size_t size = task_size(l->spec.task, (task_split)split);
    const size_t few = size > (size_t)1 << 32 ? FEW : MOST_PROBLEMS, n = size < few ? size : few;
    uint64_t hash = HASH_64_START;
    for (size_t i = 0; i < n; ++i) {
      problem p;
      if (task_problem(l->spec.task, (task_split)split, i, &p, NULL) != GL_OK) continue;
      hash = hash_64(hash, p.prompt, strlen(p.prompt) + 1);
      hash = hash_64(hash, p.answer, strlen(p.answer) + 1);
      problem_fini(&p);
    }
    fprintf(to, "%zu problems %016llx\n", size, (unsigned long long)hash);
  }
}

static void put_optimizer(FILE *to, const warmup_spec *w) {
  const optimizer_spec *o = &w->optimizer;
  fprintf(to, "%zu steps of %zu, until %a looked at every %zu\n", w->steps, w->batch, w->until,
          w->check_every);
  fprintf(to, "lr %a betas %a %a eps %a decay %a clip %a rise %llu fall %d\n", o->lr, o->beta1,
          o->beta2, o->eps, o->weight_decay, o->clip_grad_norm, (unsigned long long)o->warmup,
          (int)o->decay);
}

/* Writes the device's name without its number of threads, which affects no result. */
static void put_device(FILE *to, const char *device) {
  const char *rest = strstr(device, " thread"), *first = rest;
  while (first != NULL && first > device && first[-1] != ',') --first;
  if (rest == NULL)
    fprintf(to, "device %s\n", device);
  else
    fprintf(to, "device %.*s%s\n", (int)(first - device), device, rest + strcspn(rest, ","));
}

/* The text of everything that determines the warmed-up parameters, malloc'd; NULL without memory.
 */
static char *key_of(const llm_learner *l, const char *code) {
  const run_spec *s = &l->spec;
  char *text = NULL, *config = model_config_json(&s->model);
  size_t size = 0;
  FILE *to = config != NULL ? open_memstream(&text, &size) : NULL;
  if (to == NULL) {
    free(config);
    return NULL;
  }
  put_device(to, l->backend->device);
  if (l->backend->form != NULL) fprintf(to, "form %s\n", l->backend->form);
  if (s->devices > 1)
    fprintf(to, "%zu devices, sums by %s\n", s->devices, collective_name(l->sums));
  fprintf(to, "code %s\ntype %d micro-batch %zu recompute %d tf32 %d\n", code, (int)s->dtype,
          s->micro_batch, s->recompute, s->tf32);
  fprintf(to, "seed %llu world %016llx\n%s\n", (unsigned long long)l->update.seed,
          (unsigned long long)s->fingerprint, config);
  put_optimizer(to, &s->warmup);
  fprintf(to, "held-out %zu evaluation %d samples %zu temperature %a top_k %zu top_p %a\n",
          s->eval.prompts, (int)s->eval.how.kind, s->eval.samples, s->eval.how.dist.temperature,
          s->eval.how.dist.top_k, s->eval.how.dist.top_p);
  if (s->folder != NULL) put_folder(to, s->folder);
  if (s->tokenizer_path != NULL) put_file(to, s->tokenizer_path, "");
  put_problems(to, l);
  free(config);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

/* Sets the path of this learner's warm-up in the folder. code: the program's build. */
static void warmup_entry_init(warmup_entry *e, const llm_learner *l, const char *folder,
                              const char *code) {
  *e = (warmup_entry){0};
  if (folder == NULL || *folder == '\0') return;
  e->key = key_of(l, code != NULL ? code : "");
  e->folder = strdup(folder);
  if (e->key == NULL || e->folder == NULL) return;
  char hex[HASH_HEX_SIZE];
  hash_hex(e->key, strlen(e->key), hex);
  size_t size = strlen(folder) + sizeof prefix + HASH_HEX_SIZE + 1;
  e->path = malloc(size);
  if (e->path != NULL) snprintf(e->path, size, "%s/%s%s", folder, prefix, hex);
}

static void warmup_entry_fini(warmup_entry *e) {
  free(e->folder);
  free(e->path);
  free(e->key);
  *e = (warmup_entry){0};
}

/* --- the file --- */

static warmup_header warmup_header_of(const warmup_entry *e, const llm_learner *l) {
  warmup_header h = {.format = WARMUP_FORMAT,
                     .key_size = strlen(e->key),
                     .n_parameters = model_parameters(l->model),
                     .element = l->backend->master_element};
  memcpy(h.magic, warmup_magic, sizeof h.magic);
  return h;
}

static uint64_t sum_of(const char *bytes, size_t size) {
  checksum sum;
  checksum_begin(&sum);
  checksum_add(&sum, bytes, size);
  return checksum_of(&sum);
}

/* Reads the whole file. Returns its bytes, malloc'd; NULL if header, key, size or checksum are not
 * as expected. */
static char *read_whole(FILE *from, const warmup_entry *e, const llm_learner *l, size_t head,
                        size_t size) {
  const warmup_header expected = warmup_header_of(e, l);
  char *bytes = malloc(size);
  uint64_t written;
  int good = bytes != NULL && fread(bytes, 1, size, from) == size &&
             fread(&written, sizeof written, 1, from) == 1 && fgetc(from) == EOF &&
             memcmp(bytes, &expected, sizeof expected) == 0 &&
             memcmp(bytes + sizeof expected, e->key, head - sizeof expected) == 0 &&
             sum_of(bytes, size) == written;
  if (good) return bytes;
  free(bytes);
  return NULL;
}

typedef struct parameters {
  llm_learner *l;
  const double *host;
} parameters;

static gl_status set_on(void *context, size_t rank, gl_error *err) {
  const parameters *p = context;
  return model_set(p->l->replica[rank].model, p->host, err);
}

/* Sets the parameters of all replicas from the master numbers of a file. Returns 0 after an error.
 */
static int set_parameters(llm_learner *l, const char *bytes) {
  const size_t n = model_parameters(l->model);
  double *host = calloc(n, sizeof *host);
  if (host == NULL) return 0;
  for (size_t i = 0; i < n; ++i) {
    float single;
    if (l->backend->master_element == sizeof single) {
      memcpy(&single, bytes + i * sizeof single, sizeof single);
      host[i] = (double)single;
    } else {
      memcpy(&host[i], bytes + i * sizeof *host, sizeof *host);
    }
  }
  parameters p = {l, host};
  int set = rank_threads_run(l->threads, set_on, &p, NULL) == GL_OK;
  free(host);
  return set;
}

/* Reads the parameters. Returns 1 if they exist and are undamaged, else 0; nothing has changed
 * then. */
static int warmup_entry_read(const warmup_entry *e, llm_learner *l) {
  FILE *from = e->path != NULL && file_is_regular(e->path) ? fopen(e->path, "rb") : NULL;
  if (from == NULL) return 0;
  const size_t head = sizeof(warmup_header) + strlen(e->key);
  const size_t size = head + model_parameters(l->model) * l->backend->master_element;
  char *bytes = read_whole(from, e, l, head, size);
  int found = bytes != NULL && set_parameters(l, bytes + head);
  if (found)
    (void)futimens(fileno(from), NULL); /* updates its time of use, so that it is pruned last */
  free(bytes);
  fclose(from);
  return found;
}

/* Writes the parameters as numbers of the master type; file_commit() reports an error of writing.
 * Returns 0 after another error. */
static int write_parameters(const llm_learner *l, FILE *to, checksum *sum) {
  const size_t n = model_parameters(l->model);
  double *host = calloc(n, sizeof *host);
  int got = host != NULL && model_get(l->model, host, NULL) == GL_OK;
  for (size_t i = 0; i < n && got; ++i) {
    float single = (float)host[i];
    if (l->backend->master_element == sizeof single)
      (void)checksum_put(to, &single, sizeof single, sum, NULL);
    else
      (void)checksum_put(to, &host[i], sizeof *host, sum, NULL);
  }
  free(host);
  return got;
}

/* --- keeping the folder small --- */

/* A file of the cache, and when it was last used. */
typedef struct kept_file {
  char name[64];
  struct timespec used;
  off_t size;
} kept_file;

static int oldest_first(const void *a, const void *b) {
  const struct timespec x = ((const kept_file *)a)->used, y = ((const kept_file *)b)->used;
  if (x.tv_sec != y.tv_sec) return x.tv_sec < y.tv_sec ? -1 : 1;
  return x.tv_nsec < y.tv_nsec ? -1 : x.tv_nsec > y.tv_nsec;
}

/* Removes the least recently used files until at most MOST_FILES / 2 files and most_bytes bytes are
 * left. */
static void prune_warmups(const char *folder) {
  DIR *dir = opendir(folder);
  kept_file *file = calloc(MOST_FILES, sizeof *file);
  size_t n = 0;
  off_t bytes = 0;
  const struct dirent *entry;
  while (dir != NULL && file != NULL && n < MOST_FILES && (entry = readdir(dir)) != NULL) {
    struct stat s;
    if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0 ||
        strlen(entry->d_name) >= sizeof file->name ||
        fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      continue;
    memcpy(file[n].name, entry->d_name, strlen(entry->d_name) + 1);
    file[n].used = s.st_mtim;
    file[n].size = s.st_size;
    bytes += file[n++].size;
  }
  if (n > 0) qsort(file, n, sizeof *file, oldest_first);
  for (size_t i = 0; i < n && (n - i > MOST_FILES / 2 || bytes > most_bytes); ++i) {
    (void)unlinkat(dirfd(dir), file[i].name, 0);
    bytes -= file[i].size;
  }
  free(file);
  if (dir != NULL) closedir(dir);
}

/* Writes the present parameters into e's file, atomically. */
static gl_status warmup_entry_save(const warmup_entry *e, const llm_learner *l, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, e->path, err);
  if (status != GL_OK) return status;
  const warmup_header h = warmup_header_of(e, l);
  checksum sum;
  checksum_begin(&sum);
  (void)checksum_put(w.stream, &h, sizeof h, &sum, NULL);
  (void)checksum_put(w.stream, e->key, strlen(e->key), &sum, NULL);
  if (write_parameters(l, w.stream, &sum)) {
    const uint64_t end = checksum_of(&sum);
    (void)checksum_put(w.stream, &end, sizeof end, NULL, NULL);
    return file_commit(&w, err);
  }
  file_abandon(&w);
  return gl_fail_memory(err, "a warm-up's parameters");
}

/* True if the result is stored: there is a cache, and a single file is not too large for it. */
static bool is_cached(const warmup_entry *e, const llm_learner *l) {
  return e->path != NULL &&
         model_parameters(l->model) <= (size_t)most_bytes / l->backend->master_element;
}

/* Writes to the cache, and prunes it if it has become too large. */
static void warmup_entry_write(const warmup_entry *e, const llm_learner *l) {
  if (!is_cached(e, l)) return;
  (void)file_make_folder(e->folder, NULL);
  if (warmup_entry_save(e, l, NULL) == GL_OK) prune_warmups(e->folder);
}

/* --- a run's own warm-up --- */
/* The unfinished warm-up of a run with checkpoints. The finished one is a file as in the cache;
 * before that there is one of the same name and ".part": a header, the key's text, the steps made,
 * a checksum of all these, then the model's parameters and moments (model_write) with their own
 * checksum. */

enum { PART_FORMAT = 1 };

typedef struct part_header {
  char magic[8];
  uint64_t format, key_size, steps;
} part_header;

static const char part_magic[8] = "GLpart\r\n";
static const char suffix[] = ".part";

/* The name of the file, malloc'd; NULL if nothing is stored. */
static char *part_path(const warmup_entry *e) {
  if (e->path == NULL) return NULL;
  const size_t size = strlen(e->path) + sizeof suffix;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s%s", e->path, suffix);
  return path;
}

static uint64_t part_sum(const part_header *h, const char *key) {
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
  const uint64_t sum = part_sum(&h, e->key);
  (void)fwrite(&h, sizeof h, 1, to); /* warmup_own_keep() checks ferror() */
  (void)fwrite(e->key, 1, h.key_size, to);
  (void)fwrite(&sum, sizeof sum, 1, to);
  return model_write(l->model, l->replica[0].optimizer, to, err);
}

/* Stores an unfinished warm-up after that many steps. */
static gl_status warmup_own_keep(const warmup_entry *e, const llm_learner *l, size_t steps,
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

/* Reads header and key. Returns 1 if header, key and checksum are as expected. */
static int take_head(FILE *from, const warmup_entry *e, part_header *h) {
  const size_t n = strlen(e->key);
  char *key = malloc(n);
  uint64_t written;
  int good = key != NULL && fread(h, sizeof *h, 1, from) == 1 &&
             memcmp(h->magic, part_magic, sizeof h->magic) == 0 && h->format == PART_FORMAT &&
             h->key_size == n && fread(key, 1, n, from) == n && memcmp(key, e->key, n) == 0 &&
             fread(&written, sizeof written, 1, from) == 1 && written == part_sum(h, key);
  free(key);
  return good;
}

/* Reads an unfinished warm-up. Returns 1 if it exists and is undamaged: models, optimisers and
 * *steps are restored then; else 0. */
static int warmup_own_resume(const warmup_entry *e, llm_learner *l, size_t *steps) {
  part_header h;
  char *path = part_path(e);
  FILE *from = path != NULL && file_is_regular(path) ? fopen(path, "rb") : NULL;
  free(path);
  if (from == NULL) return 0;
  int found = take_head(from, e, &h) && h.steps <= l->spec.warmup.steps &&
              llm_learner_read(l, from, NULL) == GL_OK;
  if (found) *steps = (size_t)h.steps;
  fclose(from);
  return found;
}

/* --- done --- */

/* Removes every other warm-up in the folder: unfinished ones, and those of other builds of the
 * program. */
static void remove_other_warmups(const warmup_entry *e) {
  const char *own_name = strrchr(e->path, '/') + 1;
  DIR *all = opendir(e->folder);
  const struct dirent *one;
  while (all != NULL && (one = readdir(all)) != NULL)
    if (strncmp(one->d_name, LEARNER_KEEPS, sizeof LEARNER_KEEPS - 1) == 0 &&
        strcmp(one->d_name, own_name) != 0)
      (void)unlinkat(dirfd(all), one->d_name, 0);
  if (all != NULL) closedir(all);
}

/* Writes the warm-up to the run's own folder, without the size limit of the cache. Then removes all
 * other warm-ups there, finished or not. */
static gl_status warmup_own_write(const warmup_entry *e, const llm_learner *l, gl_error *err) {
  if (e->path == NULL) return GL_OK;
  gl_status status = warmup_entry_save(e, l, err);
  if (status == GL_OK) remove_other_warmups(e);
  return status;
}

/* --- batches of problems --- */

/* The problems of one step, with the tokens of their answers. */
typedef struct warmup_batch {
  problem_set problems;
  int32_t **answer;      /* [batch] tokens of each answer */
  size_t *answer_length; /* [batch] number of these tokens */
  uint64_t *number;      /* [batch] index of the problem in the training split */
  size_t n_targets;
  arena memory; /* owns the three arrays above */
} warmup_batch;

static void warmup_batch_clear(warmup_batch *s, size_t n) {
  for (size_t i = 0; i < n && s->answer != NULL; ++i) {
    free(s->answer[i]);
    s->answer[i] = NULL;
  }
  problem_set_fini(&s->problems);
  s->n_targets = 0;
}

static void warmup_batch_fini(warmup_batch *s, size_t n) {
  warmup_batch_clear(s, n);
  arena_fini(&s->memory);
}

static gl_status draw_warmup_batch(const llm_learner *l, warmup_batch *s, uint64_t step,
                                   gl_error *err) {
  const size_t n = l->spec.warmup.batch;
  const rng_stream stream = rng_stream_at(l->update.seed, RNG_SHUFFLE, UINT64_C(1) << 63 | step);
  warmup_batch_clear(s, n);
  for (size_t i = 0; i < n; ++i) {
    rng_words w = rng_block(stream, i);
    s->number[i] = run_spec_pick(&l->spec, rng_u01_53(w.v[0], w.v[1]));
  }
  gl_status status = problem_set_init(&s->problems, &l->spec, TASK_TRAIN, s->number, n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    status = run_spec_answer(&l->spec, s->problems.problem[i].answer, &s->answer[i],
                             &s->answer_length[i], err);
    if (status == GL_OK) s->n_targets += s->answer_length[i];
  }
  return status;
}

/* The problems of one step, divided among the replicas. */
typedef struct warmup_work {
  llm_learner *l;
  const warmup_batch *s;
  double lr;
  double loss[LLM_MOST_DEVICES]; /* contribution of each replica to the mean cross-entropy */
} warmup_work;

static size_t problem_tokens(const void *context, size_t i) {
  const warmup_batch *s = ((const warmup_work *)context)->s;
  return s->problems.start[i + 1] - s->problems.start[i] + s->answer_length[i] - 1;
}

/* Packs problems from *next on, before `end`, until the micro-batch is full; at least one problem.
 */
static gl_status pack_warmup_batch(const warmup_work *t, token_pack *pack, size_t *next, size_t end,
                                   gl_error *err) {
  const problem_set *p = &t->s->problems;
  token_pack_clear(pack, 0);
  for (; *next < end; ++*next) {
    const size_t i = *next;
    int added;
    token_pack_prompt(pack, p->token + p->start[i], p->start[i + 1] - p->start[i]);
    gl_status status = token_pack_add(pack, t->s->answer[i], t->s->answer_length[i],
                                      t->l->spec.micro_batch, &added, err);
    if (status != GL_OK) return status;
    if (!added) break;
  }
  return token_pack_finish(pack, err);
}

/* Computes the contribution of a replica's problems to the step's mean cross-entropy and to its
 * gradient. */
static gl_status teach_share(warmup_work *t, size_t rank, gl_error *err) {
  replica *r = &t->l->replica[rank];
  const size_t targets = t->s->n_targets, end = t->l->share[rank + 1];
  gl_status status = replica_scratch(r, 2 * targets, err);
  if (status == GL_OK) status = model_zero_gradient(r->model, err);
  double *dlogp = r->scratch, *logp = r->scratch + targets;
  for (size_t k = 0; k < targets && status == GL_OK; ++k) dlogp[k] = -1 / (double)targets;
  t->loss[rank] = 0;
  for (size_t next = t->l->share[rank]; next < end && status == GL_OK;) {
    status = pack_warmup_batch(t, &r->pack, &next, end, err);
    if (status != GL_OK) break;
    status = token_pack_forward(&r->pack, r->model, 1, 1, logp, NULL, err);
    if (status == GL_OK) status = model_backward(r->model, dlogp, err);
    for (size_t k = 0; k < r->pack.n_targets && status == GL_OK; ++k)
      t->loss[rank] -= logp[k] / (double)targets;
  }
  return status;
}

static gl_status learn_share(void *context, size_t rank, gl_error *err) {
  warmup_work *t = context;
  gl_status status = teach_share(t, rank, err);
  if (status != GL_OK) return status;
  return llm_learner_step(t->l, rank, t->lr, &t->l->norm[rank], err);
}

/* Makes one step down the gradient of the mean cross-entropy; returns the cross-entropy and the
 * gradient's norm. */
static gl_status warmup_update(llm_learner *l, const warmup_batch *s, double lr, double *loss,
                               double *norm, gl_error *err) {
  warmup_work t = {.l = l, .s = s, .lr = lr};
  llm_learner_divide(l, problem_tokens, &t, s->problems.n);
  gl_status status = rank_threads_run(l->threads, learn_share, &t, err);
  if (status == GL_OK) status = llm_learner_norm(l, norm, err);
  *loss = t.loss[0];
  for (size_t rank = 1; rank < l->spec.devices; ++rank) *loss += t.loss[rank];
  return status;
}

/* Sets *enough to 1 if the held-out score was measured after this step and has reached
 * warmup.until, or if the watch asks to stop. */
static gl_status check_score(llm_learner *l, size_t steps_done, double loss, int *enough,
                             gl_error *err) {
  const warmup_spec *w = &l->spec.warmup;
  const llm_watch *watch = l->watch;
  const int checks = !isnan(w->until) && steps_done % w->check_every == 0;
  const int shows = watch != NULL && watch->score_every > 0 &&
                    (steps_done % watch->score_every == 0 || steps_done == w->steps);
  double score = NAN;
  gl_status status = GL_OK;
  if (checks || shows) status = llm_learner_score(l, UINT64_C(1) << 63 | steps_done, &score, err);
  *enough = checks && score >= w->until;
  if (status == GL_OK && watch != NULL && watch->after_step(watch->self, steps_done, loss, score))
    *enough = 1;
  return status;
}

/* --- a warm-up on its way --- */

/* A warm-up in progress. kept_s: time of the last stored state, seconds. */
typedef struct warming {
  llm_learner *learner;
  const learner_preparation
      *watch;       /* NULL: no progress is shown and nothing is stored for the run */
  warmup_entry own; /* the run's own stored warm-up */
  warmup_batch batch;
  size_t done; /* number of steps made */
  double kept_s;
} warming;

static gl_status save_unfinished(warming *w, gl_error *err) {
  w->kept_s = seconds_now();
  return warmup_own_keep(&w->own, w->learner, w->done, err);
}

/* Must be called after a step: reports it, stores the state if it is due, and returns
 * GL_EINTERRUPTED if the observer asks to stop. */
static gl_status pause_after(warming *w, double loss, gl_error *err) {
  const learner_preparation *p = w->watch;
  const size_t steps = w->learner->spec.warmup.steps;
  if (p == NULL) return GL_OK;
  if (p->after_step != NULL && p->after_step(p->self, w->done, steps, loss)) {
    gl_status status = save_unfinished(w, err);
    if (status != GL_OK) return status;
    return gl_fail(err, GL_EINTERRUPTED, "stopped after %zu of %zu steps of the warm-up%s", w->done,
                   steps, w->own.path != NULL ? "; the same command goes on from there" : "");
  }
  const int due = p->every > 0 ? w->done % p->every == 0 : seconds_now() - w->kept_s >= p->seconds;
  return due && w->done < steps ? save_unfinished(w, err) : GL_OK;
}

/* One step, its score if due, and its report. Sets *enough if the warm-up shall end. */
static gl_status step_once(warming *w, int *enough, gl_error *err) {
  llm_learner *l = w->learner;
  const warmup_spec *spec = &l->spec.warmup;
  double norm = NAN, loss = NAN;
  gl_status status = draw_warmup_batch(l, &w->batch, w->done, err);
  if (status == GL_OK)
    status = warmup_update(l, &w->batch, optimizer_lr(&spec->optimizer, w->done, spec->steps),
                           &loss, &norm, err);
  if (status == GL_OK && !isfinite(norm))
    status = gl_fail(err, GL_ENUMERIC,
                     "the warm-up's gradient stopped being a number at step %zu; lower "
                     "world.warmup.lr",
                     w->done + 1);
  if (status == GL_OK) status = check_score(l, ++w->done, loss, enough, err);
  return status == GL_OK && !*enough ? pause_after(w, loss, err) : status;
}

/* Runs the warm-up to its end, from the run's stored state if there is one. */
static gl_status run_warmup(warming *w, gl_error *err) {
  llm_learner *l = w->learner;
  const size_t n = l->spec.warmup.batch;
  int enough = 0;
  warmup_batch *s = &w->batch;
  s->answer = ARENA_ARRAY(&s->memory, int32_t *, n);
  s->answer_length = ARENA_ARRAY(&s->memory, size_t, n);
  s->number = ARENA_ARRAY(&s->memory, uint64_t, n);
  gl_status status = arena_check(&s->memory, "a warm-up", err);
  if (status == GL_OK) status = llm_learner_optimizer(l, &l->spec.warmup.optimizer, err);
  if (status == GL_OK) (void)warmup_own_resume(&w->own, l, &w->done);
  w->kept_s = seconds_now();
  while (w->done < l->spec.warmup.steps && !enough && status == GL_OK)
    status = step_once(w, &enough, err);
  (void)llm_learner_optimizer(l, NULL, NULL);
  warmup_batch_fini(s, n);
  return status;
}

/* --- one process at a time --- */

/* Locks a byte of the cache's file ".locks", which stays empty, at an offset that depends on the
 * key. Returns the open file, to be closed by the caller; -1: no lock. It is an
 * open-file-description lock, which the kernel releases when the process ends. Waits while another
 * process holds it and then sets *waited. Errors: GL_EINTERRUPTED (the observer asked to stop). */
static gl_status lock_warmup(int *file, bool *waited, const warmup_entry *e, const warming *w,
                             gl_error *err) {
  const learner_preparation *p = w->watch;
  char path[4096];
  *file = -1;
  *waited = false;
  if (!is_cached(e, w->learner)) return GL_OK;
  snprintf(path, sizeof path, "%.4000s/.locks", e->folder);
  (void)file_make_folder(e->folder, NULL);
  *file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*file < 0) return GL_OK;
  struct flock byte = {.l_type = F_WRLCK,
                       .l_whence = SEEK_SET,
                       .l_start = (off_t)(hash_64(HASH_64_START, e->key, strlen(e->key)) >> 2),
                       .l_len = 1};
  while (fcntl(*file, F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES)) {
    *waited = true;
    if (p != NULL && p->after_step != NULL &&
        p->after_step(p->self, 0, w->learner->spec.warmup.steps, NAN)) {
      close(*file);
      *file = -1;
      return gl_fail(err, GL_EINTERRUPTED,
                     "stopped while another process ran the warm-up; the same command goes on");
    }
    nanosleep(&(struct timespec){0, 50000000}, NULL);
  }
  return GL_OK;
}

/* Takes the warm-up from the cache, or runs it and stores it there. Processes that waited for one
 * that was not stored then run it side by side. */
static gl_status shared_warmup(warming *w, const warmup_entry *shared, gl_error *err) {
  int lock;
  bool waited;
  if (warmup_entry_read(shared, w->learner)) return GL_OK;
  gl_status status = lock_warmup(&lock, &waited, shared, w, err);
  if (status != GL_OK) return status;
  const bool found = lock >= 0 && warmup_entry_read(shared, w->learner);
  if (waited && lock >= 0) close(lock);
  if (!found) status = run_warmup(w, err);
  if (!found && status == GL_OK) warmup_entry_write(shared, w->learner);
  if (!waited && lock >= 0) close(lock);
  return status;
}

gl_status llm_learner_warm_up(llm_learner *l, const learner_setup *setup, gl_error *err) {
  if (l->spec.warmup.steps == 0) return GL_OK;
  const int shares = l->spec.warmup.cache && l->watch == NULL;
  warming w = {.learner = l, .watch = setup->preparation};
  warmup_entry shared;
  gl_status status = GL_OK;
  warmup_entry_init(&shared, l, shares ? setup->cache : NULL, setup->code);
  warmup_entry_init(&w.own, l, w.watch != NULL ? w.watch->folder : NULL, setup->code);
  if (!warmup_entry_read(&w.own, l)) {
    status = shared_warmup(&w, &shared, err);
    if (status == GL_OK) status = warmup_own_write(&w.own, l, err);
  }
  warmup_entry_fini(&shared);
  warmup_entry_fini(&w.own);
  return status;
}
