/* What bash and zsh complete command lines with: their own completion functions are run on lines as
 * far as somebody typed them. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("cli: completion");

/* Both drivers read the file `lines` of the folder and print, for each line of it, that line behind
 * "> " and then the words that are offered. bash: the function is called as bash does when the
 * tabulator key is pressed at the line's end. */
static const char bash_driver[] =
    "cd \"$1\" && source ./script && while IFS= read -r COMP_LINE; do\n"
    "COMP_POINT=${#COMP_LINE} COMPREPLY=(); _gepolab\n"
    "printf '> %s\\n' \"$COMP_LINE\"\n"
    "printf '%s\\n' \"${COMPREPLY[@]}\" | sort -u\n"
    "done < lines\n";

/* zsh: the lines are typed into a zsh on a pseudo-terminal. There compadd, through which all
 * candidates go, writes the ones that fit into a file before it adds them; behind each line, Ctrl-U
 * clears what was typed. */
static const char zsh_driver[] =
    "zmodload zsh/zpty\n"
    "cd $1 && mkdir -p functions && cp script functions/_gepolab\n"
    "await() { integer i=0; while [[ ! -e $1 ]] && (( i++ < 400 )); do sleep 0.05; done }\n"
    "zpty shell 'HOME=$PWD zsh -f -i'\n"
    "zpty -w shell 'PROMPT=; fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u'\n"
    "zpty -w shell 'compadd() { local -a hits; builtin compadd -O hits \"$@\"; '\\\n"
    "'(( $#hits )) && print -rl -- $hits >> offered; builtin compadd \"$@\" }'\n"
    "zpty -w shell 'ended() { comppostfuncs=(ended); : > ended }; comppostfuncs=(ended)'\n"
    "zpty -w shell 'unsetopt beep; bindkey -e; print -r ready > ready'\n"
    "await ready\n"
    "while IFS= read -r line; do\n"
    "  rm -f ended; : > offered\n"
    "  zpty -n -w shell $'\\x15'$line$'\\t'\n"
    "  await ended\n"
    "  print -r -- \"> $line\"\n"
    "  sort -u offered\n"
    "done < lines\n"
    "zpty -d shell\n";

typedef struct ground {
  char folder[64];
  const char *shell;
} ground;

static void ground_make(ground *g, const char *shell, const char *driver) {
  char path[128];
  g->shell = shell;
  cli_scratch_make(g->folder);
  cli_result script = CLI("help", "--completion", shell);
  CU_ASSERT_EQUAL(script.code, 0);
  cli_write(cli_path(path, g->folder, "script"), script.out, script.out_size);
  cli_write(cli_path(path, g->folder, "driver"), driver, strlen(driver));
  cli_write(cli_path(path, g->folder, "study.db"), "", 0);
  cli_write(cli_path(path, g->folder, "mine.yaml"), "", 0);
  cli_write(cli_path(path, g->folder, "notes.txt"), "", 0);
}

/* What the shell offers at the ends of lines, each behind a "> line"; the caller frees. */
static char *offered(const ground *g, const char *asked) {
  char command[512], path[128];
  cli_write(cli_path(path, g->folder, "lines"), asked, strlen(asked));
  snprintf(command, sizeof command, "%s %s/driver %s > %s/answer 2> %s/complaint", g->shell,
           g->folder, g->folder, g->folder, g->folder);
  const int how = system(command);
  CU_ASSERT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  return cli_read(cli_path(path, g->folder, "answer"));
}

static int has_line(const char *text, const char *line) {
  const size_t length = strlen(line);
  for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n'), at += at != NULL)
    if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0')) return 1;
  return 0;
}

static size_t count_lines(const char *text) {
  size_t n = 0;
  for (const char *c = text; *c != '\0'; ++c) n += *c == '\n';
  return n;
}

/* A line, what has to be among the words offered (NULL: nothing has), and what must not be (NULL:
 * nothing else may be). */
typedef struct typed {
  const char *line, *wanted, *unwanted;
} typed;

static const typed lines[] = {
    {"gepolab sw", "sweep", NULL},
    {"gepolab doc", "doctor", NULL},
    {"gepolab llm gen", "generate", NULL},
    {"gepolab run quick", "quickstart", NULL},
    {"gepolab run min", "mine.yaml", NULL},
    {"gepolab run quickstart --checkpoint-e", "--checkpoint-every", NULL},
    {"gepolab analyze study.db --format m", "markdown", NULL},
    {"gepolab analyze study.db --format=la", "latex", NULL},
    {"gepolab policy -a gep", "gepo", "grpo"},
    {"gepolab policy --algorithm gepo clip=n", "none", "ppo"},
    {"gepolab export study.db -t ste", "steps", "evals"},
    {"gepolab export study.db --table ev", "evals", "steps"},
    {"gepolab fields cluster.max_d", "cluster.max_delay", "cluster.preset"},
    {"gepolab algorithms grp", "grpo", "gepo"},
    {"gepolab recipes four", "four_arms", NULL},
    {"gepolab results fi", "fill", NULL},
    {"gepolab bench gp", "gpu", NULL},
    {"gepolab bench gpu --in", "--in-process", NULL},
    {"gepolab status st", "study.db", NULL},
    {"gepolab study sta", "status", "export"},
    {"gepolab study status st", "study.db", NULL},
    {"gepolab study export study.db -t ste", "steps", "evals"},
    {"gepolab list algorithms grp", "grpo", "gepo"},
    {"gepolab lab sel", "selection", NULL},
    {"gepolab analyze --table contr", "contrasts", NULL},
    {"gepolab analyze --table features study.db --unt", "--until", NULL},
    {"gepolab analyze --table=features study.db --unt", "--until", NULL},
    {"gepolab outc", NULL, "outcomes"},
    {"gepolab run quickstart algorithm=gep", "gepo", "grpo"},
    {"gepolab run quickstart algorithm.clip=n", "none", "ppo"},
    {"gepolab run quickstart cluster.preset=heter", "heterorl", NULL},
    {"gepolab plot study.db --figure stal", "staleness", "eval_score"},
    {"gepolab llm tasks addi", "addition", "math"},
    {"gepolab help --completion z", "zsh", NULL},
};
enum { N_LINES = sizeof lines / sizeof *lines };

/* The words behind one "> line" of an answer, on the heap. */
static char *words_of(const char *answer, const char *line) {
  char heading[160];
  snprintf(heading, sizeof heading, "> %s\n", line);
  const char *at = strstr(answer, heading);
  if (at == NULL) return strdup("");
  at += strlen(heading);
  const char *end = strstr(at, "> ");
  return end != NULL ? strndup(at, (size_t)(end - at)) : strdup(at);
}

static void check_line(const ground *g, const char *answer, const typed *t) {
  char *words = words_of(answer, t->line);
  const int good = (t->wanted == NULL || has_line(words, t->wanted)) &&
                   (t->unwanted == NULL ? count_lines(words) == 1 : !has_line(words, t->unwanted));
  if (!good) fprintf(stderr, "%s: '%s' is offered:\n%s", g->shell, t->line, words);
  CU_ASSERT(good);
  free(words);
}

static void check_lines(const char *shell, const char *driver, const typed *own, size_t n_own) {
  ground g;
  char asked[4096] = "";
  ground_make(&g, shell, driver);
  for (size_t i = 0; i < N_LINES + n_own; ++i) {
    const size_t used = strlen(asked);
    snprintf(asked + used, sizeof asked - used, "%s\n",
             i < N_LINES ? lines[i].line : own[i - N_LINES].line);
  }
  char *answer = offered(&g, asked);
  for (size_t i = 0; i < N_LINES; ++i) check_line(&g, answer, &lines[i]);
  for (size_t i = 0; i < n_own; ++i) check_line(&g, answer, &own[i]);
}

/* What follows a key is part of the word that bash offers. */
TEST(bash_completes_what_the_tables_say) {
  static const typed own[] = {
      {"gepolab run quickstart cluster.max_d", "cluster.max_delay=", NULL},
      {"gepolab policy -a gepo eps_l", "eps_low=", NULL},
      {"gepolab run quickstart algorithm.eps_l", "algorithm.eps_low=", NULL}};
  if (access("/bin/bash", X_OK) != 0) SKIP("no bash");
  check_lines("bash", bash_driver, own, 3);
}

TEST(zsh_completes_what_the_tables_say) {
  static const typed own[] = {{"gepolab run quickstart cluster.max_d", "cluster.max_delay", NULL},
                              {"gepolab run quickstart algorithm.eps_l", "eps_low", NULL}};
  if (system("command -v zsh >/dev/null 2>&1") != 0) SKIP("no zsh");
  check_lines("zsh", zsh_driver, own, 2);
}

/* Every "--option" of a command's help is offered, and "-o" beside it. */
static void check_options(const ground *g, const char *command) {
  char line[64];
  cli_result help = CLI(command, "--help");
  const char *at = strstr(help.out, "\noptions:\n"), *end = strstr(help.out, "\nexamples:\n");
  snprintf(line, sizeof line, "gepolab %s -\n", command);
  char *words = offered(g, line);
  size_t n = 0;
  for (at = at != NULL ? strstr(at, "--") : NULL; at != NULL && at < end;
       at = strstr(at + 2, "--")) {
    char name[64];
    if (at[-1] != ' ' || sscanf(at, "%40[a-z-]", name) != 1) continue;
    ++n;
    if (!has_line(words, name)) fprintf(stderr, "%s%s is not offered\n", line, name);
    CU_ASSERT(has_line(words, name));
  }
  CU_ASSERT(n > 0);
}

TEST(bash_offers_every_option_of_every_help) {
  if (access("/bin/bash", X_OK) != 0) SKIP("no bash");
  static const char *const commands[] = {"run",  "sweep",  "status", "export", "analyze",
                                         "plot", "doctor", "bias",   "check",  "bench"};
  ground g;
  ground_make(&g, "bash", bash_driver);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) check_options(&g, commands[i]);
}

TEST(bash_offers_every_command) {
  if (access("/bin/bash", X_OK) != 0) SKIP("no bash");
  ground g;
  ground_make(&g, "bash", bash_driver);
  cli_result help = CLI("help");
  char *words = offered(&g, "gepolab \n");
  size_t n = 0;
  enum { TASK_COLUMNS = 10 };
  const char *at = strstr(help.out, "\n\n"), *end = strstr(help.out, "\nTry: ");
  for (at = at != NULL ? at + 1 : NULL; at != NULL && at < end; at = strchr(at + 1, '\n')) {
    char name[32];
    if (sscanf(at + 1 + TASK_COLUMNS, "%20[a-z]", name) != 1) continue;
    ++n;
    CU_ASSERT(has_line(words, name));
  }
  CU_ASSERT(n > 12);
  CU_ASSERT_EQUAL(count_lines(words), n + 4); /* the line itself, help, --help, --version */
}

TEST(other_shells_are_refused) {
  REFUSED(2, "'zsh'", "help", "--completion", "zssh");
  CU_ASSERT(CLI_GIVES(2, "help", "--completion"));
}
