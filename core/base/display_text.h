/* Escapes text of unknown origin for display on a terminal.
 *
 * Names of algorithms, studies, runs, columns and files come from recipes, databases and exports
 * that someone else may have written. Characters that a terminal would interpret are escaped: "\n",
 * "\t", "\r", "\x1b" for other control characters below 0x80, "\u202e" for characters that control
 * layout or are invisible (Unicode categories Cc, Cf, Zl and Zp: C1 controls, bidirectional
 * overrides, zero-width characters, line separators), and "\xff" for every byte that is not UTF-8.
 * A backslash is not escaped: the output is for people, not for parsing. */
#ifndef GEPOLAB_CORE_BASE_DISPLAY_TEXT_H
#define GEPOLAB_CORE_BASE_DISPLAY_TEXT_H

#include <stddef.h>
#include <stdio.h>

enum { SHOWN_SIZE = 512 };
typedef struct shown_text {
  char text[SHOWN_SIZE];
} shown_text;

/* For a printf argument: printf("%s\n", shown(name).text). A text of more than 511 bytes is
 * truncated and ends in "…". NULL gives an empty text. */
shown_text shown(const char *text);
/* Writes all of text[size] (which may contain NULs), whatever its length. Errors remain in the
 * stream. */
void shown_write(const char *text, size_t size, FILE *to);
/* The same for a NUL-terminated string, without escaping line breaks and tabs, for multi-line
 * texts. */
void shown_write_lines(const char *text, FILE *to);
/* Writes text for an HTML element or quoted attribute: like shown_write_lines(), with the five
 * markup characters as entities. Also valid in XML. */
void shown_write_html(const char *text, FILE *to);
/* Writes a field of a tab-separated file that gnuplot can read: escaped, and quoted (with quotes
 * doubled) if it contains a quote or starts with '#'. */
void shown_write_field(const char *text, FILE *to);
/* Writes left-aligned text, padded with spaces to `columns` columns. */
void shown_write_padded(const char *text, size_t columns, FILE *to);
/* Writes words, separated by spaces or newlines, in lines, without a newline at the end. The first
 * line continues at `column`, the others begin at `indent`. Lines have at most 80 columns, unless a
 * single word is wider than the rest of its line. The text must be printable (our own, or escaped).
 */
enum { SHOWN_COLUMNS = 80 };
void shown_wrap(const char *text, size_t column, size_t indent, FILE *to);
/* Writes paragraphs, each as shown_wrap does. Empty lines and lines that begin with a space are
 * written as they are. */
void shown_paragraphs(const char *text, FILE *to);
/* The ending of a regular noun after a number: "" after 1, otherwise "s". */
const char *plural_ending(size_t n);
/* Columns of a terminal that the text takes once it is shown: two for wide characters, none for
 * combining ones. */
size_t shown_width(const char *text);
/* Writes the escaped form truncated to `columns` (0: empty) and to the size of shown_text;
 * truncated text ends in "…". Returns its width in columns. */
size_t shown_cut(const char *text, size_t columns, shown_text *out);

#endif
