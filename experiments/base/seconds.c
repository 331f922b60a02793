/* Spans of time in words. */
#include "experiments/base/seconds.h"

#include <stdio.h>

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
