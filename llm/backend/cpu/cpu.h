/* Shared by the files of the CPU backend.
 *
 * The operations that compute are written once, as a template: body.h and the parts it includes.
 * One source file for every number type and form includes it (f32.c, f64_avx512.c, ...), and each
 * defines one table of operations; backend_cpu_new takes the best form that the processor can run,
 * or the one that GEPOLAB_CPU_FORM names. cpu.c knows the forms and has the
 * operations that do not depend on the number type.
 *
 * Threads. An operation is divided into tasks for the thread pool by its shape alone, never by the
 * number of threads, and no two tasks write to the same number: so results do not depend on
 * threads. pool_run returns when all tasks are done, so nothing else synchronises. Prefix: cpu_. */
#ifndef GEPOLAB_LLM_BACKEND_CPU_CPU_H
#define GEPOLAB_LLM_BACKEND_CPU_CPU_H

#include "core/base/thread_pool.h"
#include "llm/backend/backend.h"

/* Forms of the arithmetic: the instruction sets that the operations are compiled for, the later the
 * better where a processor has several. A result's last bits depend on the form: `plain`, which any
 * processor of its kind runs, rounds products before they are added on x86, the others do not, and
 * sums within a row have eight parts with AVX2 and AVX-512 and four with NEON. AVX-512 is written
 * to give AVX2's bits. */
typedef enum cpu_form { CPU_PLAIN, CPU_NEON, CPU_AVX2, CPU_AVX512 } cpu_form;
enum { CPU_FORMS = CPU_AVX512 + 1 };

/* "plain", "neon", "avx2" or "avx512". */
const char *cpu_form_name(cpu_form form);
/* NULL where this processor runs the form, else what is lacking: "AVX-512", or "64-bit ARM". */
const char *cpu_form_lacks(cpu_form form);
/* The best form that this processor runs. */
cpu_form cpu_form_best(void);
/* The form that `name` names, or the best where it is NULL or empty. GL_EINPUT for one that is
 * unknown or that this processor does not run. */
gl_status cpu_form_read(cpu_form *out, const char *name, gl_error *err);
/* cpu_form_read of the environment's GEPOLAB_CPU_FORM. */
gl_status cpu_form_chosen(cpu_form *out, gl_error *err);

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

/* The backend on this machine's processor, in the form that GEPOLAB_CPU_FORM names, else the best.
 * threads: 0 for all cores this process may use. Sets OpenBLAS, in the whole process, to one
 * thread. GL_EINPUT for a type the CPU backend does not have and for a form as cpu_form_read()
 * says; GL_ENOMEM; GL_EIO where a thread cannot be started. */
gl_status backend_cpu_new(backend **out, number_type type, size_t threads, gl_error *err);
/* The same in this form, which the processor must run. */
gl_status backend_cpu_new_form(backend **out, number_type type, size_t threads, cpu_form form,
                               gl_error *err);

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

/* The table of operations of a form that is compiled in; NULL for others. */
const backend_ops *cpu_form_ops(cpu_form form, number_type type);

#endif
