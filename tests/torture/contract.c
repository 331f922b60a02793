/* Compares what the documents promise with what the program offers and with what is tortured. The
 * table in ARCHITECTURE.md names outputs of commands, as `sweep -o`; `--help` says which commands
 * have an option (or an argument) that is written; writers.c says which outputs have trials. */
#define _GNU_SOURCE
#include "tests/torture/files.h"
#include "tests/torture/torture.h"
#include "tests/torture/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 128, LENGTH = 64 };

typedef struct names {
  char text[MOST][LENGTH];
  size_t n;
} names;

static int has(const names *s, const char *text) {
  for (size_t i = 0; i < s->n; ++i)
    if (strcmp(s->text[i], text) == 0) return 1;
  return 0;
}

static void add(names *s, const char *text) {
  if (!has(s, text) && s->n < MOST) snprintf(s->text[s->n++], LENGTH, "%.63s", text);
}

/* --- the table --- */

static const char heading[] = "## What each command promises about interruption";

/* The words in backticks of every row's first cell, behind `gepolab` if they begin so. */
static void read_table(names *s, const char *document) {
  size_t size = 0;
  char *text = file_read(document, &size), *at = text != NULL ? strstr(text, heading) : NULL;
  for (at = at != NULL ? at + sizeof heading : NULL; at != NULL && strncmp(at, "## ", 3) != 0;
       at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL) {
    if (strncmp(at, "| `", 3) != 0) continue;
    char *end = strchr(at + 1, '|'), *tick = at;
    while (end != NULL && (tick = strchr(tick, '`')) != NULL && tick < end) {
      char name[LENGTH];
      char *close = strchr(tick + 1, '`');
      if (close == NULL || close > end) break;
      snprintf(name, sizeof name, "%.*s", (int)(close - tick - 1), tick + 1);
      add(s, name);
      tick = close + 1;
    }
  }
  free(text);
}

/* --- the program --- */

/* What `gepolab WORDS` prints; malloc'd. */
static char *output_of(const session *s, const char *words) {
  char command[2 * TORTURE_PATH];
  snprintf(command, sizeof command, "'%s' %s 2>/dev/null", s->gepolab, words);
  FILE *from = popen(command, "r");
  char *text = calloc(1, 1);
  size_t used = 0, got;
  char piece[4096];
  while (from != NULL && text != NULL && (got = fread(piece, 1, sizeof piece, from)) > 0) {
    char *more = realloc(text, used + got + 1);
    if (more == NULL) break;
    text = more;
    memcpy(text + used, piece, got);
    text[used += got] = '\0';
  }
  if (from != NULL) pclose(from);
  return text;
}

/* Whether an option writes: by the word for its value (those of what is read are EXPORT.csv,
 * FILE.json, …), or because it changes the study it is given. */
static int is_written(const char *name, const char *placeholder) {
  static const char *const written[] = {"FILE", "FOLDER", "DIR", "FILE.yaml"};
  const char *end = strrchr(placeholder, '.');
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i)
    if (strcmp(placeholder, written[i]) == 0) return 1;
  if (end != NULL && (strcmp(end, ".db") == 0 || strcmp(end, ".html") == 0)) return 1;
  return strcmp(name, "repair") == 0;
}

/* An options' line, "  -o, --output FILE.db   the study": its short name if it has one, else its
 * long one, where it is written. */
static void read_option(names *s, const char *words, const char *line) {
  char shorter = '\0', name[32], placeholder[32], text[LENGTH];
  if (sscanf(line, "  -%c, --%31[a-z-] %31[A-Za-z.]", &shorter, name, placeholder) != 3) {
    shorter = '\0';
    if (sscanf(line, "      --%31[a-z-] %31[A-Za-z.]", name, placeholder) != 2) return;
  }
  if (!is_written(name, placeholder)) return;
  if (shorter != '\0')
    snprintf(text, sizeof text, "%.24s -%c", words, shorter);
  else
    snprintf(text, sizeof text, "%.24s --%s", words, name);
  add(s, text);
}

static void read_command(names *s, const session *at, const char *words) {
  char asked[LENGTH], text[LENGTH];
  snprintf(asked, sizeof asked, "%.50s --help", words);
  char *help = output_of(at, asked);
  if (strstr(help, " INTO.db ") != NULL) {
    snprintf(text, sizeof text, "%.24s INTO.db", words);
    add(s, text);
  }
  for (char *line = help; line != NULL;
       line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL)
    if (strncmp(line, "  -", 3) == 0 || strncmp(line, "      --", 8) == 0)
      read_option(s, words, line);
  free(help);
}

/* Every command: the rows "c", NAME, … that shells complete from. */
static names read_program(const session *at) {
  char *rows = output_of(at, "help --completion bash");
  names s = {.n = 0};
  for (char *line = rows; line != NULL;
       line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL) {
    char name[40];
    if (sscanf(line, "c\t%39[a-z -]\t", name) == 1) read_command(&s, at, name);
  }
  free(rows);
  return s;
}

static names read_writers(void) {
  names s = {.n = 0};
  for (size_t i = 0; i < writers_count(); ++i) {
    char text[256], *rest = text, *one;
    snprintf(text, sizeof text, "%s", writers[i].promises);
    while ((one = strsep(&rest, ";")) != NULL) add(&s, one + strspn(one, " "));
  }
  return s;
}

/* Each of `of` that `in` lacks, printed between the two texts; their number. */
static int lacks(const names *of, const names *in, const char *before, const char *after) {
  int n = 0;
  for (size_t i = 0; i < of->n; ++i) {
    if (has(in, of->text[i])) continue;
    printf("torture: %s%s%s\n", before, of->text[i], after);
    ++n;
  }
  return n;
}

int contract_check(const session *at, const char *architecture) {
  names promised = {.n = 0}, offered = read_program(at), tried = read_writers();
  read_table(&promised, architecture);
  if (promised.n == 0 || offered.n == 0) {
    printf("torture: no row is found below \"%s\" of %s, or no command by %s --help\n", heading + 3,
           architecture, at->gepolab);
    return 1;
  }
  return lacks(&offered, &promised, "gepolab ",
               " writes, and ARCHITECTURE.md's table of promises has no row for it") +
         lacks(&promised, &tried, "ARCHITECTURE.md promises something about ",
               ", and tests/torture/writers.c has no line for it") +
         lacks(&tried, &promised, "tests/torture/writers.c has ",
               ", for which ARCHITECTURE.md's table of promises has no row");
}
