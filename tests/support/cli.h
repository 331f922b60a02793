/* Running the program from a test: $GEPOLAB, or build/gepolab. */
#ifndef GEPOLAB_TESTS_SUPPORT_CLI_H
#define GEPOLAB_TESTS_SUPPORT_CLI_H

#include "tests/support/json.h"

#include <stddef.h>
#include <sys/types.h>

enum { CLI_MAX_ARGUMENTS = 32 };

typedef struct cli_result {
  int code; /* exit code, or 128 + signal */
  char *out, *err;
  size_t out_size;
} cli_result;

/* Runs gepolab with the arguments up to a NULL, and input (NULL: none) on its standard input. What
 * it wrote is released when the test ends. */
cli_result cli_run(const char *input, const char *const *arguments);
#define CLI(...) cli_run(NULL, (const char *const[]){__VA_ARGS__, NULL})

/* A whole text as JSON, which is deleted when the test ends; NULL: it is none. */
cJSON *json_parsed(const char *text);
/* The same of the JSON that a text begins with. */
cJSON *json_line(const char *text);
/* Its standard output, which must be JSON, after exit code 0. */
cJSON *json_of(const cli_result *r);
/* A number of the JSON it printed, by its path; NaN if there is none. */
double printed_number(const cli_result *r, const char *path);
/* Runs it and reads what it prints as json_of() does. */
cJSON *cli_json(const char *const *arguments);
#define CLI_JSON(...) cli_json((const char *const[]){__VA_ARGS__, NULL})

/* Runs it, checks the exit code (printing stderr where it differs) and forgets the rest. */
int cli_gives(int code, const char *const *arguments);
#define CLI_GIVES(code, ...) cli_gives(code, (const char *const[]){__VA_ARGS__, NULL})

/* Whether no line of the text has more than 80 columns; prints the first that has. */
int cli_fits(const char *text, size_t length);

/* Exit code, words in the message, and nothing on standard output. */
void check_refusal(const cli_result *r, int code, const char *says);

#define REFUSED(code, says, ...)                                                                   \
  do {                                                                                             \
    cli_result refused_ = CLI(__VA_ARGS__);                                                        \
    check_refusal(&refused_, code, says);                                                          \
  } while (0)

/* Runs it with a terminal of 80 columns as its standard error; all that it wrote there is in err,
 * with the bytes that move the cursor; nothing of its standard output. */
cli_result cli_run_on_terminal(const char *const *arguments);
#define CLI_ON_TERMINAL(...) cli_run_on_terminal((const char *const[]){__VA_ARGS__, NULL})

/* Starts it without waiting, silently. */
pid_t cli_start(const char *const *arguments);
#define CLI_START(...) cli_start((const char *const[]){__VA_ARGS__, NULL})
/* The same with its standard output and error written to those files. */
pid_t cli_start_writing(const char *out, const char *err, const char *const *arguments);
#define CLI_START_WRITING(out, err, ...)                                                           \
  cli_start_writing(out, err, (const char *const[]){__VA_ARGS__, NULL})
/* All of a file, with a zero behind it, until the end of the test. */
char *cli_read(const char *path);
/* `gepolab bias` of a recipe's text, with one option. */
cli_result cli_bias(const char *recipe, const char *option);
/* Waits for it: exit code, or 128 + signal. */
int cli_wait(pid_t pid);
void cli_sleep_ms(long ms);
/* Waits until the process has used so many seconds of processor time, however busy the machine is;
 * fails the test after two minutes. */
void cli_wait_for_work(pid_t pid, double seconds);
/* Waits, at most a minute, until pid has n child processes, which are stored in children[n]. */
void cli_wait_for_children(pid_t pid, pid_t *children, size_t n);

/* A fresh empty folder, removed with all in it when the test ends. */
void cli_scratch_make(char folder[64]);
/* Removes it so, too. */
void cli_scratch_adopt(const char *folder);
/* Removes it now. */
void cli_scratch_remove(const char *folder);
/* folder/name; returns path. */
const char *cli_path(char path[128], const char *folder, const char *name);
void cli_write(const char *path, const char *text, size_t size);
/* Whether folder/name can be read. */
int cli_has(const char *folder, const char *name);
size_t cli_files_in(const char *folder);

#endif
