/* One section laid over another, for what differs from its world in a few fields. */
#ifndef GEPOLAB_CORE_CONFIG_OVERLAY_H
#define GEPOLAB_CORE_CONFIG_OVERLAY_H

#include "core/config/config.h"

/* A recipe that consists of one section, `name`: a copy of `section`, with `over` laid over what
 * stands at the dotted path below it as a recipe is laid over one that it includes: map by map,
 * where distributions and lists are one value each, and short forms of sections are joined. Places
 * stay those of the originals. The caller frees *out. */
gl_status cfg_overlay(cfg_doc **out, const char *name, const cfg_node *section, const char *path,
                      const cfg_node *over, gl_error *err);

#endif
