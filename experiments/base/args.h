/* Commands of gepolab and their arguments: options, then paths and `key=value` overrides in any
 * order. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_ARGS_H
#define GEPOLAB_EXPERIMENTS_BASE_ARGS_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* --- commands --- */

/* Each experiments/cli/cmd_*.c defines commands as command_NAME, and a line of the table in
 * experiments/cli/commands.c makes one known. A command prints its result on stdout and returns its
 * first error; it begins with args_parse() and never exits by itself. Help on the terminal and the
 * manual page are both printed from these fields and from the command's options. */

/* The kind of a command's first argument. */
typedef enum args_input {
  ARGS_ANY,     /* none of the following */
  ARGS_RECIPE,  /* a recipe, from a file or inside the program, or a folder in its place */
  ARGS_CLUSTER, /* the description of a cluster, from a file or inside the program */
  ARGS_RUNS,    /* every word is a file of runs: a study, or the log of another program */
  ARGS_LOGS     /* every word is the log of another program, and no study */
} args_input;

typedef struct args args;

typedef struct command {
  const char *name;      /* "run"; with the words before it, "study status" */
  const char *arguments; /* for the usage line: "RECIPE [key=value …]" */
  struct {
    args_input input;
    size_t min, max; /* number of words that are not overrides */
    bool overrides;  /* whether key=value words are overrides */
    bool algorithms; /* whether it has --algorithms, as every command of a recipe has */
    bool presets;    /* the same for --presets */
  } words;
  const char *summary;  /* one line of `gepolab help` */
  const char *about;    /* paragraphs of `gepolab NAME --help` */
  const char *examples; /* lines of `gepolab NAME --help` */
  gl_status (*run)(args *a, gl_error *err);
} command;

/* Runs a whole command line and returns the process exit code; errors go to stderr. */
int commands_main(int argc, char **argv);

/* --- options and words --- */

typedef enum args_kind {
  ARGS_FLAG,  /* target: int *, set to 1 */
  ARGS_TEXT,  /* target: const char ** */
  ARGS_READ,  /* the same, a file that the command reads */
  ARGS_WRITE, /* the same, a file that it replaces; refused if the command also reads that file, or
                 if the file is a study */
  ARGS_STUDY, /* the same, a study that it adds to; refused if another argument reads that file */
  ARGS_FIGURES, /* the same, a folder of figures; a picture's name is refused */
  ARGS_COUNT,   /* target: size_t *, a whole number from 1 to 65536 */
  ARGS_SEED,    /* target: uint64_t *, any whole number that it can hold */
  ARGS_FORMAT,  /* target: table_format *, below TABLE_COMMAND_FORMATS */
  ARGS_EACH,    /* target: args_list *; may be given several times, each adds its value */
  ARGS_SET,    /* KEY=VALUE, added to the overrides; target: the key, or NULL if the value is itself
                  KEY=VALUE */
  ARGS_RENAMED /* refused, naming the option `value` that took its place; without help */
} args_kind;

/* The values of an option that may be given several times, in the order of the command line. */
enum { ARGS_LIST_MOST = 256 };
typedef struct args_list {
  const char *item[ARGS_LIST_MOST]; /* [n], borrowed from argv */
  size_t n;
} args_list;

/* A letter from earlier versions: still accepted, but not in the help, where every letter has one
 * meaning. */
#define ARGS_OLD(letter) ((char)(0x80 | (letter)))

typedef struct args_option {
  const char *name; /* long form without dashes */
  char letter;      /* short form, 0 for none, or ARGS_OLD() */
  args_kind kind;
  const char *value; /* what help calls the value; NULL for a flag */
  const char *help;  /* NULL: not in the help; an old name, refused or accepted */
  void *target;
} args_option;

struct args {
  const command *command; /* set by the caller, like argc and argv */
  int argc;
  char **argv;
  const char **words; /* [n_words], borrowed from argv */
  size_t n_words;
  const char **overrides; /* [n_overrides] */
  size_t n_overrides;
  char **made; /* [n_made] overrides that came from options; owned */
  size_t n_made;
  char **reads; /* [n_reads] files that the command reads: its words, and what args_read_files()
                   adds; owned */
  size_t n_reads;
  const args_option *options; /* [n_options] of args_parse(), borrowed */
  size_t n_options;
  bool help; /* --help (or --print) was asked for and has been printed: return GL_OK */
};

/* The forms in which a command's help is printed: `--help` for the terminal; `--help=man`, from
 * which the manual page is made (gepolab help --man); and `--help=rows`, lines of fields with tabs
 * between, from which shells complete (gepolab help --completion). ARGS_NO_HELP: argv[1..] asks for
 * none. */
typedef enum args_help {
  ARGS_NO_HELP,
  ARGS_HELP_TERMINAL,
  ARGS_HELP_MAN,
  ARGS_HELP_ROWS
} args_help;
args_help args_help_form(int argc, char **argv);

/* Prints name, summary, usage and description of a command, for the terminal. */
void args_print_about(const command *c, bool has_options, FILE *to);
/* The row of a command: "c", name, arguments, summary. An empty field is "-". */
void args_print_command_row(const command *c);

/* Sorts argv[1..] into options, words and overrides. `--name value`, `--name=value`, `-nvalue` and
 * `-n value` are all taken; `--` ends the options; a lone `-` is a word. Unknown options name the
 * nearest one. A file that is written must be no other file of the command line, also not through
 * links. GL_EINPUT on anything wrong. */
gl_status args_parse(args *a, const args_option *options, size_t n_options, gl_error *err);
/* The options as an array, and how many they are. */
#define ARGS_OPTIONS(list) (list), sizeof(list) / sizeof *(list)
/* Adds the files that a recipe was read from and names. GL_EINPUT if an option writes onto one. */
gl_status args_read_files(args *a, const cfg_doc *doc, gl_error *err);
void args_fini(args *a);

/* Sets *index to that of word in names[n]. GL_EINPUT lists the values that `what` ("--format") may
 * have and names the nearest one. */
gl_status args_choose(size_t *index, const char *what, const char *word, const char *const *names,
                      size_t n, gl_error *err);

#endif
