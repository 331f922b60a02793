/* Durations as text. */
#include "core/base/seconds.h"

#include <stdio.h>

char *seconds_text(double s, char text[SECONDS_TEXT_SIZE]) {
  enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
  if (!(s >= 0 && s < 1e12)) {
    snprintf(text, SECONDS_TEXT_SIZE, "?");
    return text;
  }
  const long long seconds = (long long)(s + 0.5);
  if (seconds < MINUTE)
    snprintf(text, SECONDS_TEXT_SIZE, "%llds", seconds);
  else if (seconds < HOUR)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldm%02llds", seconds / MINUTE, seconds % MINUTE);
  else if (seconds < DAY)
    snprintf(text, SECONDS_TEXT_SIZE, "%lldh%02lldm", seconds / HOUR, seconds % HOUR / MINUTE);
  else
    snprintf(text, SECONDS_TEXT_SIZE, "%lldd%02lldh", seconds / DAY, seconds % DAY / HOUR);
  return text;
}
