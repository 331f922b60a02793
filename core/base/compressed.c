/* Decompresses gzip and Zstandard while a file is read. */
#include "core/base/compressed.h"

#include "core/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* zlib counts bytes with 32 bits. */
enum { INPUT_SIZE = 1 << 18, TEXT_SIZE = 1 << 18, MOST_PIECE = 1 << 30 };

typedef enum packing { PACKING_UNKNOWN, PACKING_NONE, PACKING_GZIP, PACKING_ZSTD } packing;

struct compressed_reader {
  FILE *from;
  bool owns_stream;
  char *name;
  packing packing;
  bool in_member; /* the compressed member or frame is not complete */
  bool ended;     /* no more decompressed bytes */
  unsigned char input[INPUT_SIZE];
  size_t input_at, input_end;
  z_stream gzip;
  ZSTD_DCtx *zstd;
  char *text; /* decompressed bytes that are not read yet: [at, end) of [room] */
  size_t at, end, room;
  size_t searched; /* no line feed in [at, at + searched) */
  size_t number;
};

/* --- the file --- */

/* Reads more bytes of the file if all have been used. After the end of the file input_end is 0. */
static gl_status fill_input(compressed_reader *r, gl_error *err) {
  if (r->input_at < r->input_end) return GL_OK;
  r->input_at = 0;
  r->input_end = fread(r->input, 1, INPUT_SIZE, r->from);
  if (r->input_end < INPUT_SIZE && ferror(r->from))
    return gl_fail(err, GL_EIO, "reading %.400s failed: %s; is it a file?", r->name,
                   strerror(errno));
  return GL_OK;
}

static bool begins_with(const compressed_reader *r, const char *magic, size_t n) {
  return r->input_end - r->input_at >= n && memcmp(r->input + r->input_at, magic, n) == 0;
}

static gl_status recognise_packing(compressed_reader *r, gl_error *err) {
  gl_status status = fill_input(r, err);
  if (status != GL_OK) return status;
  r->packing = PACKING_NONE;
  if (begins_with(r, "\x1f\x8b", 2)) {
    /* 16: gzip; zlib checks the sums of the members */
    if (inflateInit2(&r->gzip, 16 + MAX_WBITS) != Z_OK) return gl_fail_memory(err, "a gzip file");
    r->packing = PACKING_GZIP;
  } else if (begins_with(r, "\x28\xb5\x2f\xfd", 4)) {
    r->zstd = ZSTD_createDCtx();
    if (r->zstd == NULL) return gl_fail_memory(err, "a Zstandard file");
    r->packing = PACKING_ZSTD;
  }
  r->in_member = r->packing != PACKING_NONE;
  return GL_OK;
}

static gl_status fail_packing(const compressed_reader *r, const char *why, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "%.400s: %s; copy the file again, or repair it with %s", r->name,
                 why, r->packing == PACKING_GZIP ? "gzip -dc" : "zstd -dc");
}

/* --- decompression: each function fills [to, to + size) as far as the input goes --- */

static size_t copy_plain(compressed_reader *r, char *to, size_t size) {
  const size_t there = r->input_end - r->input_at, n = there < size ? there : size;
  memcpy(to, r->input + r->input_at, n);
  r->input_at += n;
  return n;
}

/* Whether the rest of the input is zeros, which pad archives on tape. gzip -d ignores them after
 * the last member. */
static bool only_zeros(const compressed_reader *r) {
  for (size_t i = r->input_at; i < r->input_end; i++)
    if (r->input[i] != 0) return false;
  return true;
}

static gl_status inflate_gzip(compressed_reader *r, char *to, size_t size, size_t *n,
                              gl_error *err) {
  if (!r->in_member) {
    if (only_zeros(r)) {
      r->input_at = r->input_end;
      return GL_OK;
    }
    if (inflateReset(&r->gzip) != Z_OK) return gl_fail_memory(err, "a gzip file");
    r->in_member = true;
  }
  r->gzip.next_in = r->input + r->input_at;
  r->gzip.avail_in = (uInt)(r->input_end - r->input_at);
  r->gzip.next_out = (Bytef *)to;
  if (size > MOST_PIECE) size = MOST_PIECE;
  r->gzip.avail_out = (uInt)size;
  const int code = inflate(&r->gzip, Z_NO_FLUSH);
  r->input_at = r->input_end - r->gzip.avail_in;
  *n = size - r->gzip.avail_out;
  if (code == Z_STREAM_END) r->in_member = false;
  if (code == Z_MEM_ERROR) return gl_fail_memory(err, "a gzip file");
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return GL_OK;
  return fail_packing(r, "the gzip data are damaged", err);
}

static gl_status inflate_zstd(compressed_reader *r, char *to, size_t size, size_t *n,
                              gl_error *err) {
  ZSTD_inBuffer in = {r->input, r->input_end, r->input_at};
  ZSTD_outBuffer out = {to, size, 0};
  const size_t code = ZSTD_decompressStream(r->zstd, &out, &in);
  r->input_at = in.pos;
  *n = out.pos;
  r->in_member = code != 0;
  if (!ZSTD_isError(code)) return GL_OK;
  const char *why = ZSTD_getErrorName(code);
  if (strstr(why, "too much memory") != NULL)
    return fail_packing(r, "the Zstandard window is larger than 128 MiB, as with zstd --long", err);
  if (strstr(why, "not enough memory") != NULL) return gl_fail_memory(err, "a Zstandard file");
  return fail_packing(r, "the Zstandard data are damaged", err);
}

static gl_status decompress(compressed_reader *r, char *to, size_t size, size_t *n, gl_error *err) {
  *n = 0;
  if (r->packing == PACKING_GZIP) return inflate_gzip(r, to, size, n, err);
  if (r->packing == PACKING_ZSTD) return inflate_zstd(r, to, size, n, err);
  *n = copy_plain(r, to, size);
  return GL_OK;
}

/* Decompresses at least one byte, unless the file ends; a piece of input may give none. */
static gl_status next_bytes(compressed_reader *r, char *to, size_t size, size_t *n, gl_error *err) {
  gl_status status = r->packing == PACKING_UNKNOWN ? recognise_packing(r, err) : GL_OK;
  bool flushed = false;
  *n = 0;
  while (status == GL_OK && !r->ended && *n == 0) {
    status = fill_input(r, err);
    const bool no_input = r->input_end == 0;
    if (status != GL_OK) break;
    if (no_input && (!r->in_member || flushed)) {
      r->ended = true;
      if (r->in_member) return fail_packing(r, "the compressed file is cut off", err);
      break;
    }
    flushed = no_input; /* at the end of the input, one more call returns buffered output */
    status = decompress(r, to, size, n, err);
  }
  return status;
}

gl_status compressed_read(compressed_reader *r, char *to, size_t size, size_t *n, gl_error *err) {
  const size_t waiting = r->end - r->at;
  if (waiting == 0) return next_bytes(r, to, size, n, err);
  *n = waiting < size ? waiting : size;
  memcpy(to, r->text + r->at, *n);
  r->at += *n;
  r->searched = 0;
  return GL_OK;
}

/* --- lines --- */

/* Makes room for more text and reads some; *more is false at the end of the file. One byte stays
 * free for the NUL. */
static gl_status extend_text(compressed_reader *r, bool *more, gl_error *err) {
  size_t n = 0;
  if (r->at > 0) memmove(r->text, r->text + r->at, r->end - r->at);
  r->end -= r->at;
  r->at = 0;
  if (!ARRAY_RESERVE(r->text, r->room, r->end + TEXT_SIZE))
    return gl_fail_memory(err, "a line of text");
  const gl_status status = next_bytes(r, r->text + r->end, r->room - r->end - 1, &n, err);
  r->end += n;
  *more = n > 0;
  return status;
}

gl_status compressed_line(compressed_reader *r, compressed_text *line, size_t most, gl_error *err) {
  bool more = true;
  char *stop = NULL;
  *line = (compressed_text){.text = NULL};
  r->number++;
  for (;;) {
    const size_t there = r->end - r->at;
    if (there > r->searched)
      stop = memchr(r->text + r->at + r->searched, '\n', there - r->searched);
    const size_t length = stop != NULL ? (size_t)(stop - r->text) - r->at : there;
    if (length > most)
      return gl_fail(err, GL_EINPUT,
                     "%.400s:%zu: the line is longer than %zu bytes; check that this is the right "
                     "file",
                     r->name, r->number, most);
    if (stop != NULL || !more) break;
    r->searched = there;
    const gl_status status = extend_text(r, &more, err);
    if (status != GL_OK) return status;
  }
  r->searched = 0;
  if (stop == NULL && r->at == r->end) return GL_OK;
  line->text = r->text + r->at;
  line->has_end = stop != NULL;
  line->size = line->has_end ? (size_t)(stop - line->text) : r->end - r->at;
  line->text[line->size] = '\0';
  r->at = line->has_end ? r->at + line->size + 1 : r->end;
  return GL_OK;
}

size_t compressed_line_number(const compressed_reader *r) {
  return r->number;
}

const char *compressed_format(const compressed_reader *r) {
  switch (r->packing) {
  case PACKING_GZIP:
    return "gzip";
  case PACKING_ZSTD:
    return "Zstandard";
  case PACKING_UNKNOWN:
  case PACKING_NONE:
    return NULL;
  }
  return NULL;
}

const char *compressed_name(const compressed_reader *r) {
  return r->name;
}

/* --- opening and closing --- */

gl_status compressed_open_stream(compressed_reader **out, FILE *from, const char *name,
                                 gl_error *err) {
  *out = NULL;
  compressed_reader *r = calloc(1, sizeof *r);
  if (r == NULL) return gl_fail_memory(err, "a file's reader");
  r->from = from;
  r->name = strdup(name);
  if (r->name == NULL) {
    free(r);
    return gl_fail_memory(err, "a file's name");
  }
  *out = r;
  return GL_OK;
}

gl_status compressed_open(compressed_reader **out, const char *path, gl_error *err) {
  const bool is_stdin = strcmp(path, "-") == 0;
  *out = NULL;
  FILE *from = is_stdin ? stdin : fopen(path, "rb");
  if (from == NULL) return gl_fail(err, GL_EIO, "%.400s cannot be read: %s", path, strerror(errno));
  const gl_status status =
      compressed_open_stream(out, from, is_stdin ? "standard input" : path, err);
  if (status == GL_OK)
    (*out)->owns_stream = !is_stdin;
  else if (!is_stdin)
    fclose(from);
  return status;
}

void compressed_close(compressed_reader *r) {
  if (r == NULL) return;
  if (r->packing == PACKING_GZIP) inflateEnd(&r->gzip);
  ZSTD_freeDCtx(r->zstd);
  if (r->owns_stream) fclose(r->from);
  free(r->text);
  free(r->name);
  free(r);
}
