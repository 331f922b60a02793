/* The CPU backend: making and freeing it, the choice of its table of operations, memory and scratch
 * memory, and operations that do not depend on the number type. */
#include "llm/backend/cpu/cpu.h"

#include "core/base/thread_pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- forms --- */

extern const backend_ops cpu_ops_f32, cpu_ops_f64;
#if defined(__x86_64__)
extern const backend_ops cpu_ops_f32_avx2, cpu_ops_f64_avx2, cpu_ops_f32_avx512, cpu_ops_f64_avx512;
#endif
#if defined(__aarch64__)
extern const backend_ops cpu_ops_f32_neon, cpu_ops_f64_neon;
#endif

const char *cpu_form_name(cpu_form form) {
  switch (form) {
  case CPU_PLAIN:
    return "plain";
  case CPU_NEON:
    return "neon";
  case CPU_AVX2:
    return "avx2";
  case CPU_AVX512:
    return "avx512";
  }
  return "";
}

/* The table of operations of a form that is compiled in; NULL for others. */
static const backend_ops *cpu_form_ops(cpu_form form, number_type type) {
  const int f64 = type == NUMBER_F64;
  switch (form) {
  case CPU_PLAIN:
    return f64 ? &cpu_ops_f64 : &cpu_ops_f32;
#if defined(__x86_64__)
  case CPU_AVX2:
    return f64 ? &cpu_ops_f64_avx2 : &cpu_ops_f32_avx2;
  case CPU_AVX512:
    return f64 ? &cpu_ops_f64_avx512 : &cpu_ops_f32_avx512;
  case CPU_NEON:
    return NULL;
#elif defined(__aarch64__)
  case CPU_NEON:
    return f64 ? &cpu_ops_f64_neon : &cpu_ops_f32_neon;
  case CPU_AVX2:
  case CPU_AVX512:
    return NULL;
#else
  case CPU_NEON:
  case CPU_AVX2:
  case CPU_AVX512:
    return NULL;
#endif
  }
  return NULL;
}

#if defined(__x86_64__)
static int has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Checks for the extensions that the Makefile enables in the compiler. */
static int has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
static int has_avx2(void) {
  return 0;
}
static int has_avx512(void) {
  return 0;
}
#endif

const char *cpu_form_lacks(cpu_form form) {
  switch (form) {
  case CPU_PLAIN:
    return NULL;
  case CPU_NEON:
    return cpu_form_ops(form, NUMBER_F32) != NULL ? NULL : "64-bit ARM";
  case CPU_AVX2:
    return has_avx2() ? NULL : "AVX2";
  case CPU_AVX512:
    return has_avx512() ? NULL : "AVX-512";
  }
  return "";
}

cpu_form cpu_form_best(void) {
  int form = CPU_FORMS - 1;
  while (form > CPU_PLAIN && cpu_form_lacks((cpu_form)form) != NULL) --form;
  return (cpu_form)form;
}

gl_status cpu_form_read(cpu_form *out, const char *name, gl_error *err) {
  *out = cpu_form_best();
  if (name == NULL || name[0] == '\0') return GL_OK;
  int form = 0;
  while (form < CPU_FORMS && strcmp(name, cpu_form_name((cpu_form)form)) != 0) ++form;
  if (form == CPU_FORMS)
    return gl_fail(err, GL_EINPUT,
                   "GEPOLAB_CPU_FORM is \"%.40s\"; it is plain, neon, avx2 or avx512, or unset for "
                   "the best that the processor runs",
                   name);
  const char *lacks = cpu_form_lacks((cpu_form)form);
  if (lacks != NULL)
    return gl_fail(err, GL_EINPUT,
                   "GEPOLAB_CPU_FORM is %s, but this processor lacks %s; unset it for %s", name,
                   lacks, cpu_form_name(*out));
  *out = (cpu_form)form;
  return GL_OK;
}

gl_status cpu_form_chosen(cpu_form *out, gl_error *err) {
  return cpu_form_read(out, getenv("GEPOLAB_CPU_FORM"), err);
}

/* --- memory --- */

/* Memory of at least HUGE_LEAST bytes is aligned to HUGE_PAGE, so that the system can use pages of
 * that size. */
enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21, HUGE_LEAST = 2 * HUGE_PAGE };

/* Only OpenBLAS has this function; with another BLAS library the weak symbol is NULL. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

/* Allocates `bytes` bytes, at least one, aligned to ALIGNMENT; NULL if out of memory. Large memory
 * requests huge pages: matrices are also read across their rows, thousands of bytes apart, and with
 * small pages nearly every row would miss the TLB. A system without huge pages ignores the request.
 */
static void *aligned(size_t bytes) {
  void *memory = NULL;
  if (bytes > SIZE_MAX / 2) return NULL;
  const size_t unit = bytes >= HUGE_LEAST ? HUGE_PAGE : ALIGNMENT;
  if (posix_memalign(&memory, unit, bytes > 0 ? bytes : 1) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (bytes >= HUGE_LEAST) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

/* Stores the error that `bytes` bytes could not be allocated. */
static void short_of(cpu *c, size_t bytes) {
  gl_fail(&c->error, GL_ENOMEM,
          "out of memory: %zu MiB more were needed; lower micro_batch, slots or the model's sizes",
          (bytes >> 20) + 1);
}

void *cpu_allocate(backend *b, size_t bytes) {
  cpu *c = (cpu *)b;
  if (cpu_failed(c)) return NULL;
  void *memory = aligned(bytes);
  if (memory == NULL)
    short_of(c, bytes);
  else
    memset(memory, 0, bytes);
  return memory;
}

void cpu_release(backend *b, void *memory) {
  (void)b;
  free(memory);
}

void *cpu_allocate_aside(backend *b, size_t bytes) {
  return cpu_allocate(b, bytes);
}

void cpu_release_aside(backend *b, void *memory) {
  cpu_release(b, memory);
}

void cpu_copy(backend *b, void *to, const void *from, size_t bytes) {
  if (!cpu_failed((cpu *)b) && bytes > 0 && to != from) memmove(to, from, bytes);
}

void cpu_upload(backend *b, void *to, const void *host, size_t bytes) {
  cpu_copy(b, to, host, bytes);
}

void cpu_download(backend *b, void *host, const void *from, size_t bytes) {
  cpu_copy(b, host, from, bytes);
}

void cpu_zero(backend *b, void *memory, size_t bytes) {
  if (!cpu_failed((cpu *)b) && bytes > 0) memset(memory, 0, bytes);
}

int cpu_failed(const cpu *c) {
  return c->error.status != GL_OK;
}

gl_status cpu_status(backend *b, gl_error *err) {
  const gl_error *e = &((cpu *)b)->error;
  return e->status == GL_OK ? GL_OK : gl_fail(err, e->status, "%s", e->text);
}

void cpu_memory(backend *b, size_t *total, size_t *available) {
  (void)b;
  backend_host_memory(total, available);
}

/* Ensures *memory, now *size bytes long, has at least `bytes` bytes; its contents are lost. Returns
 * 0 after an error, which is stored. */
static int grow_scratch(cpu *c, void **memory, size_t *size, size_t bytes) {
  if (bytes <= *size) return 1;
  free(*memory);
  *memory = aligned(bytes);
  *size = *memory == NULL ? 0 : bytes;
  if (*memory == NULL) short_of(c, bytes);
  return *memory != NULL;
}

int cpu_reserve(cpu *c, size_t worker_bytes, size_t shared_bytes) {
  if (cpu_failed(c)) return 0;
  if (!grow_scratch(c, &c->shared, &c->shared_bytes, shared_bytes)) return 0;
  if (worker_bytes <= c->worker_bytes) return 1;
  for (size_t i = 0; i < c->threads; ++i) {
    size_t none = 0;
    if (!grow_scratch(c, &c->worker[i], &none, worker_bytes)) return 0;
  }
  c->worker_bytes = worker_bytes;
  return 1;
}

int cpu_reserve_packed(cpu *c, size_t bytes) {
  return !cpu_failed(c) && grow_scratch(c, &c->packed, &c->packed_bytes, bytes);
}

int cpu_reserve_blas(cpu *c) {
  if (!cpu_failed(c) && !c->blas_room) c->blas_room = blas_reserve(c->threads, &c->error) == GL_OK;
  return !cpu_failed(c);
}

/* --- ranges of rows --- */

typedef struct ranges {
  cpu *owner;
  size_t n;
  backend_range run;
  void *context;
} ranges;

/* Runs one range. There are as many ranges as threads. */
static void range_task(void *context, size_t task, size_t worker) {
  const ranges *r = context;
  const size_t parts = r->owner->threads, first = r->n * task / parts;
  r->run(r->context, first, r->n * (task + 1) / parts - first, &r->owner->own[worker]->base);
}

void cpu_in_ranges(backend *b, size_t n, size_t least, backend_range run, void *context) {
  cpu *c = (cpu *)b;
  assert(least > 0);
  if (cpu_failed(c) || n == 0) return;
  if (c->threads == 1 || n / least < c->threads) {
    run(context, 0, n, b);
    return;
  }
  ranges r = {.owner = c, .n = n, .run = run, .context = context};
  pool_run(c->pool, range_task, &r, c->threads);
  for (size_t i = 0; i < c->threads && !cpu_failed(c); ++i) c->error = c->own[i]->error;
}

/* --- making one --- */

/* The processor's name as reported by Linux, or "CPU". */
static void processor_name(char *out, size_t size) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[256], name[64];
  snprintf(out, size, "CPU");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (sscanf(line, "model name : %63[^\n]", name) == 1) {
      snprintf(out, size, "%s", name);
      break;
    }
  if (f != NULL) fclose(f);
}

/* Makes the pool and the workers' scratch pointers of a backend; with several threads also the
 * single-thread backends. After an error cpu_free releases what was made. */
static gl_status start_cpu(cpu *c, size_t threads, gl_error *err) {
  gl_status status = pool_new(&c->pool, threads, err);
  if (status != GL_OK) return status;
  c->threads = pool_threads(c->pool);
  c->worker = calloc(c->threads, sizeof *c->worker);
  if (c->worker == NULL) return gl_fail_memory(err, "the CPU backend");
  if (c->threads == 1) return GL_OK;
  c->own = calloc(c->threads, sizeof *c->own);
  if (c->own == NULL) return gl_fail_memory(err, "the CPU backend");
  for (size_t i = 0; i < c->threads && status == GL_OK; ++i) {
    c->own[i] = calloc(1, sizeof *c->own[i]);
    status =
        c->own[i] != NULL ? start_cpu(c->own[i], 1, err) : gl_fail_memory(err, "the CPU backend");
  }
  return status;
}

gl_status backend_cpu_new_form(backend **out, number_type type, size_t threads, cpu_form form,
                               gl_error *err) {
  *out = NULL;
  if (type != NUMBER_F32 && type != NUMBER_F64)
    return gl_fail(err, GL_EINPUT, "the CPU computes in float32 or float64; bfloat16 needs a GPU");
  cpu *c = calloc(1, sizeof *c);
  if (c == NULL) return gl_fail_memory(err, "the CPU backend");
  const gl_status status = start_cpu(c, threads, err);
  if (status != GL_OK) {
    cpu_free(&c->base);
    return status;
  }
  /* OpenBLAS would start its own threads inside each task. The setting affects the whole process.
   */
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
  char processor[64];
  c->base.ops = cpu_form_ops(form, type);
  assert(c->base.ops != NULL);
  /* OpenBLAS chooses its instruction set at run time, so it is faster than the plain kernels, which
   * use only the basic one. */
  c->blas = form == CPU_PLAIN;
  c->base.form = cpu_form_name(form);
  c->base.kind = BACKEND_CPU;
  c->base.type = c->base.master = type;
  c->base.element = c->base.master_element = type == NUMBER_F64 ? sizeof(double) : sizeof(float);
  processor_name(processor, sizeof processor);
  snprintf(c->base.device, sizeof c->base.device, "%s, %zu thread%s, %s", processor, c->threads,
           c->threads == 1 ? "" : "s", c->base.form);
  for (size_t i = 0; c->own != NULL && i < c->threads; ++i) {
    c->own[i]->base = c->base;
    c->own[i]->blas = c->blas;
  }
  *out = &c->base;
  return GL_OK;
}

gl_status backend_cpu_new(backend **out, number_type type, size_t threads, gl_error *err) {
  cpu_form form;
  *out = NULL;
  const gl_status status = cpu_form_chosen(&form, err);
  return status == GL_OK ? backend_cpu_new_form(out, type, threads, form, err) : status;
}

void cpu_free(backend *b) {
  cpu *c = (cpu *)b;
  if (c == NULL) return;
  pool_free(c->pool);
  for (size_t i = 0; c->worker != NULL && i < c->threads; ++i) free(c->worker[i]);
  for (size_t i = 0; c->own != NULL && i < c->threads; ++i)
    if (c->own[i] != NULL) cpu_free(&c->own[i]->base);
  free(c->own);
  free(c->worker);
  free(c->shared);
  free(c->packed);
  free(c);
}
