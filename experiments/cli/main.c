/* The gepolab command. */
#include "experiments/base/args.h"

#include <gsl/gsl_errno.h>
#include <signal.h>

int main(int argc, char **argv) {
  gsl_set_error_handler_off(); /* its default ends the process; callers read statuses instead */
  signal(SIGXFSZ, SIG_IGN);    /* a write beyond the limit of file sizes fails, and is reported */
  return commands_main(argc, argv);
}
