/* Shared by the files of the CPU backend.
 *
 * The arithmetic is written once, as a template: template.c and the parts that it includes. It is
 * compiled for each number type and instruction set, and each time defines one table of operations.
 * backend_cpu_new takes the best instruction set that the processor supports, or the one named in
 * GEPOLAB_CPU_FORM. cpu.c detects instruction sets and has the operations that do not depend on the
 * number type.
 *
 * Threads. An operation is divided into tasks for the thread pool according to the shapes of its
 * arrays, never according to the number of threads, and no two tasks write to the same number. So
 * results do not depend on threads. pool_run returns when all tasks are done; no other
 * synchronisation is needed. Prefix: cpu_. */
#ifndef GEPOLAB_LLM_BACKEND_CPU_CPU_H
#define GEPOLAB_LLM_BACKEND_CPU_CPU_H

#include "core/base/thread_pool.h"
#include "llm/backend/backend.h"

/* Forms of the arithmetic: the instruction sets for which the operations are compiled, in ascending
 * order of preference. A result's last bits depend on the form. On x86 `plain`, which every
 * processor supports, rounds products before adding them; the other forms use fused
 * multiply-additions. Sums within a row are computed as several partial sums, one per element of a
 * vector: in float32 eight with AVX2 and AVX-512, and four with NEON. AVX-512 is written to give
 * AVX2's bits. */
typedef enum cpu_form { CPU_PLAIN, CPU_NEON, CPU_AVX2, CPU_AVX512 } cpu_form;
enum { CPU_FORMS = CPU_AVX512 + 1 };

/* "plain", "neon", "avx2" or "avx512". */
const char *cpu_form_name(cpu_form form);
/* NULL if this processor supports the form, else the missing feature: "AVX-512", or "64-bit ARM".
 */
const char *cpu_form_lacks(cpu_form form);
/* The best form that this processor supports. */
cpu_form cpu_form_best(void);
/* The form with that name, or the best if name is NULL or empty. Errors: GL_EINPUT (unknown, or not
 * supported by this processor). */
gl_status cpu_form_read(cpu_form *out, const char *name, gl_error *err);
/* cpu_form_read() of the environment variable GEPOLAB_CPU_FORM. */
gl_status cpu_form_chosen(cpu_form *out, gl_error *err);

typedef struct cpu {
  backend base;   /* first member, so a backend * can be cast to cpu * */
  pool *pool;     /* owned */
  gl_error error; /* the first error; status GL_OK: none so far */
  size_t threads;
  /* Scratch memory, owned; grows when an operation needs more (cpu_reserve). */
  void **worker; /* [threads] per worker, worker_bytes each */
  size_t worker_bytes;
  void *shared; /* for the running operation, shared_bytes */
  size_t shared_bytes;
  void *packed; /* a product's packed factor, packed_bytes */
  size_t packed_bytes;
  struct cpu **own; /* [threads] single-thread backends for in_ranges; NULL with one thread */
  int blas;         /* 1: OpenBLAS computes all products of training (product.h) */
  int blas_room;    /* 1: OpenBLAS has allocated its own memory (cpu_reserve_blas) */
} cpu;

/* Makes the backend on this machine's processor, in the form named in GEPOLAB_CPU_FORM, else in the
 * best. threads: 0 for all cores this process may use. Sets OpenBLAS to one thread in the whole
 * process. Errors: GL_EINPUT (a type that the CPU backend does not have; a form refused by
 * cpu_form_read()), GL_ENOMEM, GL_EIO (a thread cannot be started). */
gl_status backend_cpu_new(backend **out, number_type type, size_t threads, gl_error *err);
/* backend_cpu_new() in this form, which the processor must support. */
gl_status backend_cpu_new_form(backend **out, number_type type, size_t threads, cpu_form form,
                               gl_error *err);

/* Ensures c->worker[...] and c->shared have at least these sizes for the operation that begins,
 * aligned to 64 bytes, contents undefined. Returns 1; or 0 if there is an error, now or earlier,
 * which is stored. Then the operation must do nothing. */
int cpu_reserve(cpu *c, size_t worker_bytes, size_t shared_bytes);
/* cpu_reserve() for c->packed. */
int cpu_reserve_packed(cpu *c, size_t bytes);
/* cpu_reserve() for OpenBLAS's own memory, for all threads. */
int cpu_reserve_blas(cpu *c);
/* 1 if an error is stored: operations do nothing then. */
int cpu_failed(const cpu *c);

/* The operations that do not depend on the number type (see operations.h). */
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

#endif
