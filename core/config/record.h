/* What readers of a recipe found: the value of every field in effect, and where it came from. */
#ifndef GEPOLAB_CORE_CONFIG_RECORD_H
#define GEPOLAB_CORE_CONFIG_RECORD_H

/* From here on every field that this thread reads is recorded, once: the first value counts. Items
 * of lists are part of their list. */
void cfg_record_begin(void);
/* Ends it and gives what was recorded as JSON, malloc'd: for each origin that occurs an object of
 * paths and values,
 *
 *   {"stated":{"train.groups":8},"null":{"optimizer.lr":0.05},"default":{…},"preset":{…},…}
 *
 * "null" is a field that the recipe states as null, which has its default; "preset" one of a preset
 * of defaults; "computed" one that follows from other fields. NULL if memory is short. */
char *cfg_record_end(void);

#endif
