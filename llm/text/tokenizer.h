/* Text to token numbers and back.
 *
 *   char      one token per character of an alphabet, after three special tokens; made from the
 *             alphabet's text
 *   byte      256 byte tokens after the same three
 *   bpe       byte-level BPE read from a Hugging Face tokenizer.json as Qwen2 and Qwen3 have it:
 *             added tokens, NFC (utf8proc), the splitting rule (PCRE2), merges by rank
 *
 * A bpe tokenizer gives the token numbers of Hugging Face's library. The two differ on characters
 * that one side's Unicode tables do not know: letters and digits newer than PCRE2's tables (Unicode
 * 14 in PCRE2 10.42) are split as symbols, and combining marks newer than Unicode 9, which the
 * library leaves where they are, are put in canonical order.
 *
 * A tokenizer is immutable after it is made; any number of threads may use one. Prefix: tokenizer_.
 */
#ifndef GEPOLAB_LLM_TEXT_TOKENIZER_H
#define GEPOLAB_LLM_TEXT_TOKENIZER_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tokenizer tokenizer;

/* Special tokens of the built-in kinds. A bpe tokenizer has its own, see tokenizer_special(). */
enum { TOKEN_PAD = 0, TOKEN_BEGIN = 1, TOKEN_END = 2, TOKEN_FIRST = 3 };

/* alphabet: UTF-8 text of distinct characters; a repeated one is GL_EINPUT. */
gl_status tokenizer_new_char(tokenizer **out, const char *alphabet, gl_error *err);
gl_status tokenizer_new_byte(tokenizer **out, gl_error *err);
/* path: a tokenizer.json of at most 256 MiB. GL_EINPUT names file, place (JSON pointer, or line
 * and column if it is no JSON) and what is not supported; GL_EIO if the file cannot be read. *out
 * is NULL after any failure. Supported, everything else is refused: normalizer      null, NFC,
 * Sequence of NFC pre_tokenizer   ByteLevel, alone or after a Split (Regex, Isolated) in a
 * Sequence; without add_prefix_space model           BPE with a token for every byte; no dropout,
 * unk_token, byte_fallback, affixes added_tokens    without single_word, lstrip, rstrip; numbers
 * below 2^22 post_processor  ByteLevel, TemplateProcessing; no token is added for either decoder
 * ByteLevel truncation, padding   null */
gl_status tokenizer_load(tokenizer **out, const char *path, gl_error *err);
/* Same from memory; name is used in messages. */
gl_status tokenizer_parse(tokenizer **out, const char *json, size_t size, const char *name,
                          gl_error *err);
/* While building: n more token numbers that no text is encoded with and that decode to U+FFFD, as a
 * large vocabulary has them for a small task. GL_EINPUT for a bpe tokenizer, whose file says what
 * tokens there are. */
gl_status tokenizer_add_unused(tokenizer *t, size_t n, gl_error *err);
void tokenizer_free(tokenizer *t);

/* "char", "byte" or "bpe". */
const char *tokenizer_kind(const tokenizer *t);
/* One more than the largest token number. */
size_t tokenizer_size(const tokenizer *t);
/* The number of a special or added token by its content ("<|im_end|>"; "<pad>", "<s>", "</s>" for
 * the built-in kinds), or -1. Linear in the number of such tokens. */
int32_t tokenizer_special(const tokenizer *t, const char *content);

/* Tokens of text[size] into a malloc'd *out (the caller frees), their number into *n; an empty text
 * gives n = 0 and an *out that may be freed. No special token is added; contents of special and
 * added tokens in the text become those tokens where the kind is bpe. Invalid UTF-8 is read as
 * U+FFFD, one for each maximal ill-formed part (as Python's errors="replace" does). A character
 * outside a char tokenizer's alphabet is GL_EINPUT and named; so is a text on which a splitting
 * rule backtracks without end. After a failure *out is NULL. Takes O(size log size) time. */
gl_status tokenizer_encode(const tokenizer *t, const char *text, size_t size, int32_t **out,
                           size_t *n, gl_error *err);
/* Text of token[n]: malloc'd, NUL-terminated, its size without the NUL in *size (NULL: not wanted).
 * Special tokens give nothing if skip_special, else their content; added tokens that are not
 * special always give it. Bytes that are no UTF-8 become U+FFFD, after all tokens' bytes are put
 * together. A token outside the vocabulary is GL_EINPUT. After a failure *out is NULL. */
gl_status tokenizer_decode(const tokenizer *t, const int32_t *token, size_t n, bool skip_special,
                           char **out, size_t *size, gl_error *err);

#endif
