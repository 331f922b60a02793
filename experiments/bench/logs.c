/* `gepolab bench logs`: a NeMo-RL log of made-up numbers through `whatif -a grpo -a gepo`, beside
 * orjson and NumPy doing the same sums. */
#include "core/base/json.h"
#include "core/random/rng.h"
#include "experiments/base/memory.h"
#include "experiments/bench/bench.h"
#include "experiments/policy/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Responses of a prompt; tokens of a padded row, and of its prompt. */
enum { LOG_GROUP = 8, LOG_ROW = 4096, LOG_PROMPT = 256 };

typedef struct log_row {
  size_t index, length; /* of its response */
  rng_stream stream;
  double logp[LOG_ROW], logq[LOG_ROW];
} log_row;

/* Lengths are lognormal; most tokens have a probability near 1, as a model's do. Padding of
 * prev_logprobs has numbers too, because NeMo-RL scores whole rows. Everything is in single
 * precision. */
static void draw_row(log_row *r, size_t index) {
  r->index = index;
  r->stream = rng_stream_at(1, RNG_TEST, index);
  const rng_words first = rng_block(r->stream, LOG_ROW);
  const double normal =
      sqrt(-2 * log(rng_u01(first.v[0]))) * cos(6.283185307179586 * rng_u01(first.v[1]));
  const double length = fmin(LOG_ROW - LOG_PROMPT, fmax(8, LOG_ROW / 3.0 * exp(0.8 * normal)));
  r->length = (size_t)length;
  for (size_t t = 0; t < LOG_ROW; ++t) {
    const rng_words w = rng_block(r->stream, t);
    const double scale = rng_u01(w.v[0]) < 0.6 ? 1e-3 : 0.8, q = scale * log(rng_u01(w.v[1]));
    const double p = fmin(0, q * (1 + 0.04 * (rng_u01(w.v[2]) - 0.5)));
    const int in_response = t >= LOG_PROMPT && t < LOG_PROMPT + r->length;
    r->logq[t] = in_response ? (double)(float)q : 0;
    r->logp[t] = (double)(float)p;
  }
}

static void print_doubles(FILE *to, const char *name, const double *value) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(to, "\"%s\": [[", name);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%s%s", t > 0 ? ", " : "", number_text(value[t], text),
            value[t] == 0 ? ".0" : "");
  fputs("]], ", to);
}

static void print_row(FILE *to, const log_row *r) {
  const rng_stream prompt = rng_stream_at(1, RNG_TEST, r->index / LOG_GROUP);
  const rng_words w = rng_block(r->stream, LOG_ROW + 1);
  const double advantage = (double)(float)(rng_u01(w.v[0]) - 0.5);
  double advantages[LOG_ROW];
  for (size_t t = 0; t < LOG_ROW; ++t) advantages[t] = advantage;
  fprintf(
      to,
      "{\"content\": [\"%*s\"], \"rewards\": [%u.0], \"input_lengths\": [%zu], \"token_ids\": [[",
      (int)(4 * r->length), "", w.v[1] & 1u, LOG_PROMPT + r->length);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%u", t > 0 ? ", " : "",
            rng_block(t < LOG_PROMPT ? prompt : r->stream, t).v[3] % 150000u);
  fputs("]], \"token_loss_mask\": [[", to);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%d", t > 0 ? ", " : "", t >= LOG_PROMPT && t < LOG_PROMPT + r->length);
  fputs("]], \"sample_loss_mask\": [1.0], ", to);
  print_doubles(to, "advantages", advantages);
  print_doubles(to, "generation_logprobs", r->logq);
  print_doubles(to, "prev_logprobs", r->logp);
  fprintf(to, "\"idx\": %zu}\n", r->index);
}

/* Whole groups, at least so many bytes; the size of the file to *size. */
static gl_status write_nemo_log(const char *path, double bytes, double *size, gl_error *err) {
  FILE *to = fopen(path, "w");
  log_row *row = MUST_ARRAY(log_row, 1, "a benchmark's log");
  if (to == NULL)
    return gl_fail(err, GL_EIO, "%s: cannot be written: %s; set TMPDIR", path, strerror(errno));
  for (size_t i = 0; i % LOG_GROUP != 0 || (double)ftell(to) < bytes; ++i) {
    draw_row(row, i);
    print_row(to, row);
  }
  *size = (double)ftell(to);
  const int failed = ferror(to);
  free(row);
  if (fclose(to) == 0 && !failed) return GL_OK;
  return gl_fail(err, GL_EIO, "%s: cannot be written: is there room? Set TMPDIR", path);
}

static gl_status time_whatif(void *self, gl_error *err) {
  static const char *const names[] = {"grpo", "gepo"};
  const char *path = self;
  const token_request any = {0};
  whatif *w = MUST_ARRAY(whatif, 1, "whatif");
  gl_status status = whatif_init(w, names, 2, err);
  if (status == GL_OK) status = whatif_read(w, &path, 1, &any, err);
  whatif_fini(w);
  free(w);
  return status;
}

gl_status bench_logs(bench *b, gl_error *err) {
  const char *folder = getenv("TMPDIR");
  char *path = must_textf("a path", "%s/train_data_step1-%ld.jsonl",
                          folder != NULL ? folder : "/tmp", (long)getpid());
  bench_number *number = NULL;
  peer_process python = {.pid = 0};
  double size = 0;
  gl_status status =
      write_nemo_log(path, b->quick ? 1e6 : (double)b->log_mib * 1048576, &size, err);
  bench_start_python(b, &python, "experiments/bench/token_log.py", 1);
  if (status == GL_OK)
    status = bench_measure(b, &number,
                           (bench_row){"logs_nemo_rl",
                                       "B/s of a NeMo-RL log through whatif -a grpo -a gepo", size,
                                       time_whatif, path},
                           b->quick ? 0 : 1, err);
  if (status == GL_OK) bench_ask(b, number, &python, "orjson_numpy", path, 5);
  peer_end(&python);
  remove(path);
  free(path);
  return status;
}
