/* Files that a recipe names, wherever the recipe goes. */
#ifndef GEPOLAB_CORE_CONFIG_FILES_H
#define GEPOLAB_CORE_CONFIG_FILES_H

#include "core/config/config.h"

/* Puts whole paths in the place of the names of files that are there, as cfg_locate() finds them,
 * so that a copy of the recipe in another folder names the same ones. What is no file stays. */
gl_status cfg_settle_files(cfg_doc *doc, gl_error *err);

#endif
