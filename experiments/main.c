/* The gepolab command. */
#include "experiments/command.h"

int main(int argc, char **argv) {
  return commands_main(argc, argv);
}
