/* Every operation of llm/backend/operations.h on chosen shapes with addressed random inputs. The
 * results of two backends can be compared if the inputs of both were rounded to the same types. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_BACKEND_CASES_H
#define GEPOLAB_TESTS_SUPPORT_LLM_BACKEND_CASES_H

#include "llm/backend/backend.h"

/* The outputs of all cases on a backend. */
typedef struct case_results case_results;

/* Runs all cases on b, with inputs rounded to these types. A failure of b is printed. */
case_results *case_results_new(backend *b, number_type type, number_type master);
void case_results_free(case_results *results);
/* How many outputs differ by more than tolerance * slack of the case * the output's largest
 * magnitude (tolerance 0: in any bit), each printed on stderr, and how many cases failed. */
size_t compare_results(const case_results *candidate, const case_results *reference,
                       double tolerance);

/* How many operations no case calls, each told on stderr; b runs every case on its first shape. */
size_t operations_without_case(backend *b);

/* --- for tests that call operations themselves --- */

typedef struct case_output {
  char name[48];
  double *value;
  size_t n;
} case_output;

enum { CASE_MAX_OUTPUTS = 8, CASE_MAX_MEMORY = 40 };

/* The operations of llm/backend/operations.h by number, those that a backend may leave out
 * excepted. */
enum {
#define OPERATION(result, name, arguments) CASE_OPERATION_##name,
#define OPTIONAL_OPERATION(result, name, arguments)
#define HOST_OPERATION(result, name, arguments)
#include "llm/backend/operations.h"
  CASE_OPERATIONS
};

/* b's operation `name` for case_run r, which notes that it was called. */
#define OP(r, name) ((r)->called[CASE_OPERATION_##name] = 1, (r)->b->ops->name)

/* One operation's run: inputs made, outputs kept as doubles. */
typedef struct case_run {
  backend *b;
  number_type type, master; /* what inputs are rounded to */
  uint64_t drawn;           /* arrays drawn so far: the address of the next */
  void *memory[CASE_MAX_MEMORY];
  size_t n_memory;
  case_output output[CASE_MAX_OUTPUTS];
  size_t n_outputs;
  unsigned char called[CASE_OPERATIONS];
} case_run;

void case_begin(case_run *r, backend *b, number_type type, number_type master);
/* Releases the backend's memory; the outputs stay until case_end(). */
void case_release(case_run *r);
void case_end(case_run *r);
/* Uniform numbers of (-scale, scale) in the backend's memory, as T or M. */
void *case_draw(case_run *r, size_t n, double scale);
void *case_draw_master(case_run *r, size_t n, double scale);
/* Given doubles as T or M. */
void *case_put(case_run *r, const double *value, size_t n);
void *case_put_master(case_run *r, const double *value, size_t n);
void *case_zeros(case_run *r, size_t n);
void *case_zeros_master(case_run *r, size_t n);
int32_t *case_integers(case_run *r, const int32_t *value, size_t n);
/* Integers below `below` from addressed draws. */
int32_t *case_draw_integers(case_run *r, size_t n, size_t below);
/* Keeps n numbers of T, M or int32_t memory as an output. */
void case_keep(case_run *r, const char *name, const void *memory, size_t n);
void case_keep_master(case_run *r, const char *name, const void *memory, size_t n);
void case_keep_integers(case_run *r, const char *name, const void *memory, size_t n);

#endif
