/* Text to token numbers and back.
 *
 *   char      one token per character of an alphabet, after three special tokens; made from the
 *             alphabet's text
 *   byte      256 byte tokens after the same three
 *   bpe       byte-level BPE read from a Hugging Face tokenizer.json such as those of Qwen2 and
 *             Qwen3: added tokens, NFC (utf8proc), the splitting rule (PCRE2), merges by rank
 *
 * A bpe tokenizer gives the same token numbers as Hugging Face's library. They differ only for
 * characters that one side's Unicode tables lack. Letters and digits newer than PCRE2's tables
 * (Unicode 14 in PCRE2 10.42) are split as symbols. Combining marks newer than Unicode 9 are put in
 * canonical order, while the library does not move them.
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

/* Special tokens of the built-in kinds. For those of a bpe tokenizer see tokenizer_special(). */
enum { TOKEN_PAD = 0, TOKEN_BEGIN = 1, TOKEN_END = 2, TOKEN_FIRST = 3 };

/* alphabet: UTF-8 text of distinct characters. Errors: GL_EINPUT (a repeated character). */
gl_status tokenizer_new_char(tokenizer **out, const char *alphabet, gl_error *err);
gl_status tokenizer_new_byte(tokenizer **out, gl_error *err);
/* path: a tokenizer.json of at most 256 MiB. *out is NULL after an error. Errors: GL_EINPUT with
 * file, position (JSON pointer, or line and column of invalid JSON) and the unsupported feature;
 * GL_EIO. Supported (everything else is refused):
 *
 *   - normalizer: null, NFC, Sequence of NFC
 *   - pre_tokenizer: ByteLevel, without add_prefix_space, alone or in a Sequence after a Split
 *     (Regex, Isolated)
 *   - model: BPE with a token for every byte; no dropout, unk_token, byte_fallback, affixes
 *   - added_tokens: without single_word, lstrip, rstrip; numbers below 2^22
 *   - post_processor: ByteLevel, TemplateProcessing; no token is added for either
 *   - decoder: ByteLevel
 *   - truncation, padding: null */
gl_status tokenizer_load(tokenizer **out, const char *path, gl_error *err);
/* tokenizer_load() from memory; name is used in messages. */
gl_status tokenizer_parse(tokenizer **out, const char *json, size_t size, const char *name,
                          gl_error *err);
/* While building: adds n token numbers that no text is encoded with and that decode to U+FFFD, to
 * give a small task a large vocabulary. Errors: GL_EINPUT (a bpe tokenizer, whose file determines
 * the tokens). */
gl_status tokenizer_add_unused(tokenizer *t, size_t n, gl_error *err);
void tokenizer_free(tokenizer *t);

/* "char", "byte" or "bpe". */
const char *tokenizer_kind(const tokenizer *t);
/* The largest token number plus one. */
size_t tokenizer_size(const tokenizer *t);
/* Whether the tokenizer has a token of that number. A model's vocabulary may be larger, and a
 * tokenizer's numbers may have holes. */
bool tokenizer_has(const tokenizer *t, int32_t token);
/* The number of a special or added token with that content ("<|im_end|>"; "<pad>", "<s>", "</s>"
 * for the built-in kinds), or -1. Takes time linear in the number of such tokens. */
int32_t tokenizer_special(const tokenizer *t, const char *content);

/* Encodes text[size] into a malloc'd *out (the caller frees), with their number in *n. For an empty
 * text n = 0, and *out may be freed. No special token is added. In the kind bpe, contents of
 * special and added tokens in the text become those tokens. Invalid UTF-8 is read as U+FFFD, one
 * for each maximal ill-formed part (as with Python's errors="replace"). *out is NULL after an
 * error. Takes O(size log size) time. Errors: GL_EINPUT (a character outside a char tokenizer's
 * alphabet, which the message names; a text on which a splitting rule backtracks too long). */
gl_status tokenizer_encode(const tokenizer *t, const char *text, size_t size, int32_t **out,
                           size_t *n, gl_error *err);
/* Decodes token[n] to a malloc'd, NUL-terminated text, with its size without the NUL in *size
 * (NULL: not wanted). With skip_special special tokens are omitted, otherwise their content is
 * written. Added tokens that are not special are always written. Invalid UTF-8 becomes U+FFFD,
 * after all tokens' bytes are joined. *out is NULL after an error. Errors: GL_EINPUT (a token
 * outside the vocabulary). */
gl_status tokenizer_decode(const tokenizer *t, const int32_t *token, size_t n, bool skip_special,
                           char **out, size_t *size, gl_error *err);

#endif
