/* The gepolab command: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("gepolab " GEPOLAB_VERSION);
    return 0;
  }
  fputs("usage: gepolab --version\n", stderr);
  return 2;
}
