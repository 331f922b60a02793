/* What the files of the CPU backend share.
 *
 * The operations that compute are written once, as a template: body.h and the parts it includes.
 * Four source files include it, one for every number type and instruction set (f32.c, f64.c,
 * f32_avx2.c, f64_avx2.c), and each defines one table of operations; backend_cpu_new takes the best
 * table that the processor can run. cpu.c has the operations that do not depend on the number type.
 *
 * Threads. An operation is divided into tasks for the thread pool by its shape alone, never by the
 * number of threads, and no two tasks write to the same number: so results do not depend on
 * threads. pool_run returns when all tasks are done, so nothing else synchronises. Prefix: cpu_. */
#ifndef GEPOLAB_LLM_BACKEND_CPU_CPU_H
#define GEPOLAB_LLM_BACKEND_CPU_CPU_H

#include "core/base/thread_pool.h"
#include "llm/backend/backend.h"

/* The best instruction set that the processor has, or what every processor of its kind has. */
typedef enum cpu_variant { CPU_BEST, CPU_GENERIC } cpu_variant;

typedef struct cpu {
  backend base;   /* first: a backend * of this kind is a cpu * */
  pool *pool;     /* owned */
  gl_error error; /* the first failure; status GL_OK: none so far */
  size_t threads;
  /* Scratch memory, owned, grown when an operation asks for more (cpu_reserve). */
  void **worker; /* [threads] each worker's own, worker_bytes long */
  size_t worker_bytes;
  void *shared; /* the operation's, shared_bytes long */
  size_t shared_bytes;
  void *packed; /* a product's packed factor, packed_bytes long */
  size_t packed_bytes;
  struct cpu **own; /* [threads] backends of one thread, for in_ranges; NULL with one thread */
  int blas;         /* 1: OpenBLAS does all products of training (product.h) */
  int blas_room;    /* 1: it has its working memory (cpu_reserve_blas) */
} cpu;

/* The backend on this machine's processor, with the best instruction set that it has. threads: 0
 * for all cores this process may use. Sets OpenBLAS, in the whole process, to one thread. GL_EINPUT
 * for a type the CPU backend does not have, GL_ENOMEM, GL_EIO where a thread cannot be started. */
gl_status backend_cpu_new(backend **out, number_type type, size_t threads, gl_error *err);
/* backend_cpu_new with the choice of instruction set, which tests make. */
gl_status backend_cpu_new_variant(backend **out, number_type type, size_t threads,
                                  cpu_variant variant, gl_error *err);

/* Makes c->worker[...] and c->shared at least so long for the operation that begins, contents
 * undefined, aligned to 64 bytes. Returns 1, or 0 after a failure, now or earlier, which is kept:
 * the operation then does nothing. */
int cpu_reserve(cpu *c, size_t worker_bytes, size_t shared_bytes);
/* The same of c->packed. */
int cpu_reserve_packed(cpu *c, size_t bytes);
/* The same of OpenBLAS's own working memory, for all threads. */
int cpu_reserve_blas(cpu *c);
/* 1 if a failure was kept: operations do nothing then. */
int cpu_failed(const cpu *c);

/* The operations that do not depend on the number type (operations.h describes them). */
void *cpu_allocate(backend *b, size_t bytes);
void cpu_release(backend *b, void *memory);
void *cpu_allocate_aside(backend *b, size_t bytes);
void cpu_release_aside(backend *b, void *memory);
void cpu_upload(backend *b, void *to, const void *host, size_t bytes);
void cpu_download(backend *b, void *host, const void *from, size_t bytes);
void cpu_copy(backend *b, void *to, const void *from, size_t bytes);
void cpu_zero(backend *b, void *memory, size_t bytes);
gl_status cpu_status(backend *b, gl_error *err);
void cpu_memory(backend *b, size_t *total, size_t *available);
void cpu_in_ranges(backend *b, size_t n, size_t least, backend_range run, void *context);
void cpu_free(backend *b);

/* The tables of operations, one for each file that includes body.h. */
extern const backend_ops cpu_ops_f32, cpu_ops_f64;
#if defined(__x86_64__)
extern const backend_ops cpu_ops_f32_avx2, cpu_ops_f64_avx2;
#endif

#endif
