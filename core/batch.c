#include "core/batch.h"

#include <stdlib.h>
#include <string.h>

/* --- shape ---------------------------------------------------------------------------------------
 */

/* Zeroed arrays for the counts already in *b; *b is emptied if memory is short. */
static gl_status allocate(batch *b, gl_error *err) {
  b->group_start = calloc(b->n_groups + 1, sizeof *b->group_start);
  b->token_start = calloc(b->n_responses + 1, sizeof *b->token_start);
  b->prompt = calloc(b->n_groups + 1, sizeof *b->prompt);
  b->reward = calloc(b->n_responses + 1, sizeof *b->reward);
  b->token = calloc(b->n_tokens + 1, sizeof *b->token);
  b->version = calloc(b->n_tokens + 1, sizeof *b->version);
  b->logq = calloc(b->n_tokens + 1, sizeof *b->logq);
  b->logq_trunc = calloc(b->n_tokens + 1, sizeof *b->logq_trunc);
  if (b->group_start != NULL && b->token_start != NULL && b->prompt != NULL && b->reward != NULL &&
      b->token != NULL && b->version != NULL && b->logq != NULL && b->logq_trunc != NULL)
    return GL_OK;
  batch_fini(b);
  return gl_fail_memory(err, "a batch");
}

gl_status batch_init(batch *b, uint64_t id, size_t n_groups, size_t group_size,
                     const size_t *lengths, gl_error *err) {
  *b = (batch){.id = id};
  if (n_groups == SIZE_MAX || (group_size != 0 && n_groups > (SIZE_MAX - 1) / group_size))
    return gl_fail_memory(err, "a batch (its size overflows)");
  size_t n_responses = n_groups * group_size, n_tokens = 0;
  for (size_t i = 0; i < n_responses; ++i) {
    if (lengths[i] >= SIZE_MAX - n_tokens)
      return gl_fail_memory(err, "a batch (its size overflows)");
    n_tokens += lengths[i];
  }
  b->n_groups = n_groups;
  b->n_responses = n_responses;
  b->n_tokens = n_tokens;
  gl_status status = allocate(b, err);
  if (status != GL_OK) return status;
  for (size_t g = 0; g < n_groups; ++g) b->group_start[g + 1] = (g + 1) * group_size;
  for (size_t i = 0; i < n_responses; ++i) b->token_start[i + 1] = b->token_start[i] + lengths[i];
  return GL_OK;
}

gl_status batch_reserve_aux(batch *b, size_t n_aux, gl_error *err) {
  double *aux = n_aux == 0 ? NULL : calloc(n_aux, sizeof *aux);
  if (n_aux != 0 && aux == NULL) return gl_fail_memory(err, "a batch's auxiliary values");
  free(b->aux);
  b->aux = aux;
  b->n_aux = n_aux;
  return GL_OK;
}

void batch_fini(batch *b) {
  free(b->group_start);
  free(b->token_start);
  free(b->prompt);
  free(b->reward);
  free(b->token);
  free(b->version);
  free(b->logq);
  free(b->logq_trunc);
  free(b->aux);
  *b = (batch){0};
}

static int starts_agree(const size_t *start, size_t n, size_t total) {
  if (start == NULL || start[0] != 0 || start[n] != total) return 0;
  for (size_t i = 0; i < n; ++i)
    if (start[i] > start[i + 1]) return 0;
  return 1;
}

int batch_is_consistent(const batch *b) {
  return starts_agree(b->group_start, b->n_groups, b->n_responses) &&
         starts_agree(b->token_start, b->n_responses, b->n_tokens) && b->prompt != NULL &&
         b->reward != NULL && b->token != NULL && b->version != NULL && b->logq != NULL &&
         b->logq_trunc != NULL && (b->n_aux == 0) == (b->aux == NULL);
}

/* --- binary form ---------------------------------------------------------------------------------
 *
 * header, the arrays in the order of array_table(), then the checksum of all of it. */

typedef struct batch_header {
  uint64_t magic; /* "gepobat1" as this machine's byte order reads it */
  uint64_t id, n_groups, n_responses, n_tokens, n_aux;
} batch_header;

static const uint64_t BATCH_MAGIC = 0x6765706f62617431u;

enum { N_ARRAYS = 9 };
typedef struct array_slot {
  void **data;
  size_t count, width;
} array_slot;

/* The arrays of *b for a shape, in file order. */
static void array_table(batch *b, const batch_header *h, array_slot slot[N_ARRAYS]) {
  size_t g = (size_t)h->n_groups, r = (size_t)h->n_responses, t = (size_t)h->n_tokens;
  array_slot all[N_ARRAYS] = {
      {(void **)&b->group_start, g + 1, sizeof *b->group_start},
      {(void **)&b->token_start, r + 1, sizeof *b->token_start},
      {(void **)&b->prompt, g, sizeof *b->prompt},
      {(void **)&b->reward, r, sizeof *b->reward},
      {(void **)&b->token, t, sizeof *b->token},
      {(void **)&b->version, t, sizeof *b->version},
      {(void **)&b->logq, t, sizeof *b->logq},
      {(void **)&b->logq_trunc, t, sizeof *b->logq_trunc},
      {(void **)&b->aux, (size_t)h->n_aux, sizeof *b->aux},
  };
  memcpy(slot, all, sizeof all);
}

/* 64-bit FNV-1a: each byte enters through steps that can be undone, so a single changed byte always
 * changes the sum. */
static uint64_t add_to_sum(uint64_t sum, const void *data, size_t size) {
  const unsigned char *byte = data;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ byte[i]) * 0x100000001b3u;
  return sum;
}

static const uint64_t EMPTY_SUM = 0xcbf29ce484222325u;

gl_status batch_write(const batch *b, FILE *to, gl_error *err) {
  batch view = *b; /* array_table() wants a writable batch; the arrays are only read */
  batch_header h = {BATCH_MAGIC, b->id, b->n_groups, b->n_responses, b->n_tokens, b->n_aux};
  array_slot slot[N_ARRAYS];
  array_table(&view, &h, slot);
  if (!batch_is_consistent(b))
    return gl_fail(err, GL_EINTERNAL, "a batch whose counts disagree cannot be written");
  uint64_t sum = add_to_sum(EMPTY_SUM, &h, sizeof h);
  int whole = fwrite(&h, sizeof h, 1, to) == 1;
  for (int i = 0; whole && i < N_ARRAYS; ++i) {
    if (slot[i].count == 0) continue;
    sum = add_to_sum(sum, *slot[i].data, slot[i].count * slot[i].width);
    whole = fwrite(*slot[i].data, slot[i].width, slot[i].count, to) == slot[i].count;
  }
  if (whole && fwrite(&sum, sizeof sum, 1, to) == 1) return GL_OK;
  return gl_fail(err, GL_EIO, "a batch could not be written; is the disk full or the pipe closed?");
}

/* Reads an array in pieces that grow with what really arrives, so that a hostile count costs no
 * more memory than the file has bytes. Room for one element is made even when there are none. */
static gl_status read_array(const array_slot *slot, FILE *from, uint64_t *sum, gl_error *err) {
  size_t done = 0, room = (size_t)65536 / slot->width;
  for (;;) {
    if (room > slot->count) room = slot->count;
    void *grown = realloc(*slot->data, (room == 0 ? 1 : room) * slot->width);
    if (grown == NULL) return gl_fail_memory(err, "a batch");
    *slot->data = grown;
    unsigned char *place = (unsigned char *)grown + done * slot->width;
    if (room != done && fread(place, slot->width, room - done, from) != room - done)
      return gl_fail(err, GL_EINPUT,
                     "a batch ends too early; it was cut short while being written");
    *sum = add_to_sum(*sum, place, (room - done) * slot->width);
    done = room;
    if (done == slot->count) return GL_OK;
    room = done <= SIZE_MAX / slot->width / 2 ? 2 * done : slot->count;
  }
}

static gl_status read_into(batch *b, FILE *from, gl_error *err) {
  batch_header h;
  const uint64_t most = SIZE_MAX / 16; /* so that no size in bytes overflows */
  if (fread(&h, sizeof h, 1, from) != 1)
    return gl_fail(err, GL_EINPUT, "a batch ends before its header does");
  if (h.magic != BATCH_MAGIC)
    return gl_fail(err, GL_EINPUT, "not a batch of gepolab, or of a machine with other byte order");
  if (h.n_groups > most || h.n_responses > most || h.n_tokens > most || h.n_aux > most)
    return gl_fail(err, GL_EINPUT, "a batch's header holds impossible counts; it is damaged");
  *b = (batch){h.id, (size_t)h.n_groups, (size_t)h.n_responses, (size_t)h.n_tokens, .n_aux = 0};
  array_slot slot[N_ARRAYS];
  array_table(b, &h, slot);
  uint64_t sum = add_to_sum(EMPTY_SUM, &h, sizeof h), stored;
  for (int i = 0; i < N_ARRAYS; ++i) {
    if (slot[i].data == (void **)&b->aux && h.n_aux == 0) continue; /* aux is NULL then */
    gl_status status = read_array(&slot[i], from, &sum, err);
    if (status != GL_OK) return status;
  }
  b->n_aux = (size_t)h.n_aux;
  if (fread(&stored, sizeof stored, 1, from) != 1)
    return gl_fail(err, GL_EINPUT, "a batch ends before its checksum");
  if (stored != sum || !batch_is_consistent(b))
    return gl_fail(err, GL_EINPUT, "a batch's checksum does not fit its contents; it is damaged");
  return GL_OK;
}

gl_status batch_read(batch *b, FILE *from, gl_error *err) {
  *b = (batch){0};
  gl_status status = read_into(b, from, err);
  if (status != GL_OK) batch_fini(b);
  return status;
}
