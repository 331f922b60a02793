/* libFuzzer target: no bytes may make the reader of a tokenizer.json misbehave, nor any text the
 * tokenizer that it made. An input is a JSON document, a NUL, and a text. A byte 1 in the document
 * stands for the 256 entries of the byte letters, which chance would never keep whole. */
#include "core/base/utf8.h"
#include "llm/text/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LETTERS = 256 };

static void write_letters(FILE *to) {
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < LETTERS; ++byte) {
    const int prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    fprintf(to, "%s\"\\u%04x\":%u", byte > 0 ? "," : "", prints ? byte : next++, byte);
  }
}

static char *expand(const uint8_t *data, size_t size, size_t *n) {
  char *text = NULL;
  FILE *to = open_memstream(&text, n);
  if (to == NULL) abort();
  for (size_t i = 0; i < size; ++i)
    if (data[i] == 1)
      write_letters(to);
    else
      fputc(data[i], to);
  fclose(to);
  return text;
}

/* Without added tokens decoding gives back the text that was cut, byte for byte. */
static void check_whole(const tokenizer *t, const char *text, size_t size, const char *decoded,
                        size_t n) {
  gl_error err = {0};
  char *repaired, *normal = NULL;
  if (utf8_repair(text, size, &repaired, &size, &err) != GL_OK) abort();
  if (t->nfc && nfc_text(repaired, size, &normal, &size, &err) != GL_OK) abort();
  if (size != n || memcmp(normal != NULL ? normal : repaired, decoded, n) != 0) abort();
  free(normal);
  free(repaired);
}

static void use(const tokenizer *t, const char *text, size_t size) {
  gl_error err = {0};
  int32_t *token;
  size_t n, decoded_size;
  char *decoded;
  if (tokenizer_encode(t, text, size, &token, &n, &err) != GL_OK) {
    if (err.status != GL_EINPUT || err.text[0] == '\0') abort();
    return;
  }
  if (tokenizer_decode(t, token, n, 0, &decoded, &decoded_size, &err) != GL_OK) abort();
  if (utf8_valid_prefix(decoded, decoded_size) < decoded_size) abort();
  if (t->n_added == 0) check_whole(t, text, size, decoded, decoded_size);
  free(decoded);
  if (tokenizer_decode(t, token, n, 1, &decoded, NULL, &err) != GL_OK) abort();
  free(decoded);
  free(token);
}

/* The text as an alphabet; a text over its own alphabet comes back as it was. */
static void use_as_alphabet(const char *text, size_t size) {
  char *alphabet = calloc(size + 1, 1), *decoded;
  int32_t *token;
  size_t n;
  gl_error err = {0};
  tokenizer *t;
  if (alphabet == NULL) abort();
  if (size > 0) memcpy(alphabet, text, size);
  if (tokenizer_new_char(&t, alphabet, &err) == GL_OK) {
    if (tokenizer_encode(t, alphabet, strlen(alphabet), &token, &n, &err) != GL_OK ||
        tokenizer_decode(t, token, n, 1, &decoded, NULL, &err) != GL_OK ||
        strcmp(decoded, alphabet) != 0 || n + TOKEN_FIRST != tokenizer_size(t))
      abort();
    free(decoded);
    free(token);
    tokenizer_free(t);
  } else if (t != NULL || err.text[0] == '\0')
    abort();
  free(alphabet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
  const size_t json_size = nul != NULL ? (size_t)(nul - data) : size;
  const char *rest = nul != NULL ? (const char *)nul + 1 : "";
  const size_t rest_size = nul != NULL ? size - json_size - 1 : 0;
  size_t n;
  char *json = expand(data, json_size, &n);
  gl_error err = {0};
  tokenizer *t;
  if (tokenizer_parse(&t, json, n, "fuzz", &err) == GL_OK) {
    use(t, rest, rest_size);
    tokenizer_free(t);
  } else if (t != NULL || err.text[0] == '\0')
    abort();
  free(json);
  use_as_alphabet(rest, rest_size);
  return 0;
}
