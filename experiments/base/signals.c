/* SIGINT, SIGTERM and SIGHUP, noted rather than fatal while work is saved. */
#include "experiments/base/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void note_signal(int signal_number) {
  caught = signal_number;
}

void signals_catch(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
}

void signals_catch_term(void) {
  struct sigaction action = {.sa_handler = note_signal};
  sigaction(SIGTERM, &action, NULL);
}

int signals_caught(void) {
  return caught;
}
