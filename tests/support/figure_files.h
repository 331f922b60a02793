/* What tests of figures share: the scripts that draw them, and the files they leave. */
#ifndef GEPOLAB_TESTS_SUPPORT_FIGURE_FILES_H
#define GEPOLAB_TESTS_SUPPORT_FIGURE_FILES_H

/* The text of plots/page.gp or of a shape, ended by a zero; valid until the next of its kind. NULL
 * where there is none. */
const char *figure_script(const char *path);
/* The text of FOLDER/NAME, on the heap. */
char *figure_file(const char *folder, const char *name);

#endif
