/* The streams of miles' dashboard (--dump-details DIR: DIR/dashboard): which one a file is, and its
 * keys. miles 0.1.0 at 31f1ca9, miles/dashboard/store.py. Private to this folder. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_MILES_H
#define GEPOLAB_ANALYSIS_IMPORT_MILES_H

#include "analysis/import/log.h"

typedef enum miles_stream {
  MILES_METRICS,
  MILES_TRAJECTORIES,
  MILES_PHASES,
  MILES_DATA_BUFFER,
  MILES_STREAMS
} miles_stream;

/* The stream whose keys the first line has, and no others; MILES_STREAMS: none. */
miles_stream miles_stream_of(const import_file *f);
/* Index of the key in r->word among those of the stream; fails at another one. */
size_t miles_key(json_reader *r, miles_stream s);
/* Fails if a line lacks a key. found: bit i for key i. */
void miles_check_keys(json_reader *r, miles_stream s, uint32_t found);

#endif
