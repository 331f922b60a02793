/* Time as it is reported, and stopping on request. */
#include "experiments/base/process.h"

#include "core/base/error.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- time --- */

char *seconds_text(double s, char text[SECONDS_TEXT_SIZE]) {
  enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
  if (!(s >= 0 && s < 1e12)) {
    snprintf(text, SECONDS_TEXT_SIZE, "?");
    return text;
  }
  const long long whole = (long long)(s + 0.5);
  if (whole < MINUTE)
    snprintf(text, SECONDS_TEXT_SIZE, "%llds", whole);
  else if (whole < HOUR)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldm%02llds", whole / MINUTE, whole % MINUTE);
  else if (whole < DAY)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldh%02lldm", whole / HOUR, whole % HOUR / MINUTE);
  else
    snprintf(text, SECONDS_TEXT_SIZE, "%lldd%02lldh", whole / DAY, whole % DAY / HOUR);
  return text;
}

/* --- signals --- */

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
