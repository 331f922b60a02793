/* Looking at HTML that a test was given. */
#ifndef GEPOLAB_TESTS_SUPPORT_MARKUP_H
#define GEPOLAB_TESTS_SUPPORT_MARKUP_H

/* 1 if every element is closed in its order, every attribute is quoted, named once and no script
 * (onclick and the like), no ampersand stands alone, and the whole is one element behind an
 * optional <!DOCTYPE>; says on standard error what is wrong. Not a validator: what goes into what
 * is not looked at. */
int markup_is_well_formed(const char *text);
/* 1 if no two elements have the same id, and every link into the page ("#id", url(#id)) and every
 * name of another element's id (aria-labelledby) has one. */
int markup_ids_hold(const char *text);
/* How often the words stand in the text. */
int markup_count(const char *text, const char *words);

#endif
