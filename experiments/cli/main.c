/* The gepolab command. */
#include "experiments/base/args.h"

#include <gsl/gsl_errno.h>

int main(int argc, char **argv) {
  gsl_set_error_handler_off(); /* its default ends the process; callers read statuses instead */
  return commands_main(argc, argv);
}
