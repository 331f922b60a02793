/* What the files of the CPU backend share. Its operations are written once, in backend_cpu_body.h
 * and the parts it includes, and compiled for every number type and instruction set: each
 * compilation offers its table of operations, and backend_cpu_new takes the best that the machine
 * can run.
 *
 * Work is cut into tasks by its shape alone, never by the number of threads, and no two tasks write
 * to the same number: so results do not depend on threads. Prefix: cpu_. */
#ifndef GEPOLAB_LLM_BACKEND_CPU_CPU_H
#define GEPOLAB_LLM_BACKEND_CPU_CPU_H

#include "core/base/thread_pool.h"
#include "llm/backend/backend.h"

typedef enum cpu_variant { CPU_BEST, CPU_GENERIC } cpu_variant;

typedef struct cpu {
  backend base;
  pool *pool;
  gl_error error; /* the first failure */
  size_t threads;
  void **worker; /* [threads] scratch of each worker, worker_bytes long */
  size_t worker_bytes;
  void *shared; /* scratch of the operation that runs, shared_bytes long */
  size_t shared_bytes;
  void *packed; /* a product's packed factor, packed_bytes long */
  size_t packed_bytes;
  int blas; /* OpenBLAS does all of training's products */
} cpu;

/* The backend on this machine's processor, with the best instruction set that it has. threads: 0
 * for all cores this process may use. GL_EINPUT for a type the CPU backend does not have. */
gl_status backend_cpu_new(backend **out, number_type type, size_t threads, gl_error *err);
/* backend_cpu_new with the choice of instruction set, which tests make. */
gl_status backend_cpu_new_variant(backend **out, number_type type, size_t threads,
                                  cpu_variant variant, gl_error *err);

/* Scratch for the operation that begins: 1, or 0 after a failure, which is kept; so each operation
 * that needs some starts with it. Contents are undefined. 64-byte aligned. */
int cpu_reserve(cpu *c, size_t worker_bytes, size_t shared_bytes);
int cpu_reserve_packed(cpu *c, size_t bytes);
/* 1 if a failure was kept: an operation does nothing then. */
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
void cpu_free(backend *b);

/* The tables of operations. */
extern const backend_ops cpu_ops_f32, cpu_ops_f64;
#if defined(__x86_64__)
extern const backend_ops cpu_ops_f32_avx2, cpu_ops_f64_avx2;
#endif

#endif
