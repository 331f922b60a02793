/* Text of unknown origin, made safe for a person's terminal.
 *
 * Names of algorithms, studies, runs, columns and files come out of recipes, databases and exports
 * that somebody else may have written. Characters that a terminal would execute are written as
 * escapes: "\n", "\t", "\r", "\x1b" for other control characters below 0x80, "\u202e" for
 * characters that control layout or are not seen (categories Cc, Cf, Zl and Zp of Unicode: C1
 * controls, bidirectional overrides, zero-width characters, line separators), and "\xff" for every
 * byte that is not UTF-8. A backslash is not escaped: the output is for people, not for parsing. */
#ifndef GEPOLAB_CORE_BASE_SHOWN_H
#define GEPOLAB_CORE_BASE_SHOWN_H

#include <stddef.h>
#include <stdio.h>

enum { SHOWN_SIZE = 512 };
typedef struct shown_text {
  char text[SHOWN_SIZE];
} shown_text;

/* For one argument of printf: printf("%s\n", shown(name).text). A text of more than 511 bytes is
 * cut and ends in "…". NULL is shown as nothing. */
shown_text shown(const char *text);
/* All of text[size] (which may hold NULs), however long it is. Errors remain in the stream. */
void shown_write(const char *text, size_t size, FILE *to);
/* The same for a string that ends with NUL, whose line breaks and tabs are not escaped: for texts
 * of several lines. */
void shown_write_lines(const char *text, FILE *to);
/* As text of an element or a quoted attribute of HTML: the same with the five characters of markup
 * as entities. The output is also valid in XML. */
void shown_write_html(const char *text, FILE *to);
/* As a field of a tab-separated file that gnuplot reads too: shown, and in double quotes, its own
 * doubled, where it has any or begins with '#'. */
void shown_write_field(const char *text, FILE *to);
/* Left-aligned: followed by spaces up to so many columns. */
void shown_write_padded(const char *text, size_t columns, FILE *to);
/* Words in lines of at most 80 columns, for text of our own or already made safe: the first goes on
 * at `column`, the others begin at `indent`. Writes no newline at the end. */
enum { SHOWN_COLUMNS = 80 };
void shown_wrap(const char *text, size_t column, size_t indent, FILE *to);
/* Columns of a terminal that the text takes once it is shown: two for wide characters, none for
 * combining ones. */
size_t shown_width(const char *text);
/* The shown form, cut to `columns` (0: empty) and to the size of shown_text; a text that was cut
 * ends in "…". Returns the columns it takes. */
size_t shown_cut(const char *text, size_t columns, shown_text *out);

#endif
