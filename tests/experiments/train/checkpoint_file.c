/* The file of a checkpoint: what is written is read, and no byte of it can change unnoticed. */
#include "core/base/hash.h"
#include "experiments/train/checkpoint.h"
#include "experiments/train/internal.h"
#include "tests/support/suite.h"

#include <gen/version.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: checkpoint files");

static const char learner_state[] = "what a learner knows";

static gl_status save(void *self, FILE *to, gl_error *err) {
  (void)self;
  if (fwrite(learner_state, 1, sizeof learner_state, to) == sizeof learner_state) return GL_OK;
  return gl_fail(err, GL_EIO, "the learner cannot write");
}

static const learner_ops ops = {.kind = "test", .save = save};

typedef struct saved {
  char *bytes;
  size_t size;
} saved;

/* A checkpoint with something of everything. */
static saved make(void) {
  const size_t lengths[] = {2, 3};
  uint32_t begun[] = {2, 3, 5, 8};
  step_record steps[3];
  eval_record evals[2] = {{0, 0, 0.25}, {2, 7.5, 0.5}};
  checkpoint_batch batches[2] = {{.number = 4}, {.number = 9}};
  saved s = {0};
  int reason = 0;
  memset(steps, 0, sizeof steps);
  for (int i = 0; i < 3; ++i) {
    steps[i].step = i + 1;
    steps[i].metric[METRIC_LOSS] = 0.5 * i;
  }
  for (int i = 0; i < 2; ++i)
    ASSERT_OK(batch_init(&batches[i].drawn, 70u + (unsigned)i, 1, 2, lengths, &err));
  checkpoint c = {.recipe = "{\"seed\":1}",
                  .steps = steps,
                  .n_steps = 3,
                  .evals = evals,
                  .n_evals = 2,
                  .broken = 1,
                  .wall_s = 12.5,
                  .lengths = begun,
                  .n_lengths = 4,
                  .begun = 2,
                  .responses = 2,
                  .batches = batches,
                  .n_batches = 2};
  FILE *to = open_memstream(&s.bytes, &s.size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  ASSERT_OK(checkpoint_write(&c, &(learner){&ops, NULL}, to, &reason, &err));
  CU_ASSERT(fclose(to) == 0 && reason == 0);
  for (int i = 0; i < 2; ++i) batch_fini(&batches[i].drawn);
  return s;
}

static gl_status verify(char *bytes, size_t size, gl_error *err) {
  FILE *from = fmemopen(bytes, size, "rb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  gl_status status = checkpoint_verify(from, err);
  CU_ASSERT(ftell(from) == 0);
  fclose(from);
  return status;
}

TEST(what_is_written_is_read) {
  saved s = make();
  checkpoint c;
  char state[sizeof learner_state];
  ASSERT_OK(verify(s.bytes, s.size, &err));
  FILE *from = fmemopen(s.bytes, s.size, "rb");
  ASSERT_OK(checkpoint_read(&c, from, &err));
  CU_ASSERT_STRING_EQUAL(c.recipe, "{\"seed\":1}");
  CU_ASSERT_STRING_EQUAL(c.code_version, GEPOLAB_VERSION);
  CU_ASSERT(c.n_steps == 3 && c.steps[2].step == 3 && c.steps[2].metric[METRIC_LOSS] == 1);
  CU_ASSERT(c.n_evals == 2 && c.evals[1].time_s == 7.5 && c.evals[1].eval_score == 0.5);
  CU_ASSERT(c.broken == 1 && c.wall_s == 12.5);
  CU_ASSERT(c.begun == 2 && c.responses == 2 && c.lengths[2] == 5 && c.lengths[3] == 8);
  CU_ASSERT(c.n_batches == 2 && c.batches[1].number == 9 && c.batches[1].drawn.id == 71);
  CU_ASSERT(fread(state, 1, sizeof state, from) == sizeof state);
  CU_ASSERT(memcmp(state, learner_state, sizeof state) == 0);
  checkpoint_fini(&c);
  fclose(from);
  free(s.bytes);
}

TEST(every_flipped_bit_and_every_cut_is_noticed) {
  saved s = make();
  size_t passed = 0;
  for (size_t i = 0; i < s.size; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      gl_error err = {0};
      s.bytes[i] = (char)(s.bytes[i] ^ 1 << bit);
      passed += verify(s.bytes, s.size, &err) != GL_EINPUT || err.text[0] == '\0';
      s.bytes[i] = (char)(s.bytes[i] ^ 1 << bit);
    }
    gl_error err = {0};
    if (i > 0) passed += verify(s.bytes, i, &err) != GL_EINPUT;
  }
  CU_ASSERT_EQUAL(passed, 0);
  free(s.bytes);
}

/* Reading is safe, and leaves nothing behind, where nobody has verified. */
TEST(unverified_bytes_are_safe_to_read) {
  saved s = make();
  size_t refused = 0;
  for (size_t i = 0; i < s.size; ++i)
    for (int how = 0; how < 3; ++how) {
      checkpoint c;
      gl_error err = {0};
      char was = s.bytes[i];
      s.bytes[i] = (char)(how == 0 ? 0xff : was ^ 1 << (how * 3));
      FILE *from = fmemopen(s.bytes, how == 2 ? i + 1 : s.size, "rb");
      CU_ASSERT_PTR_NOT_NULL_FATAL(from);
      gl_status status = checkpoint_read(&c, from, &err);
      if (status == GL_OK)
        checkpoint_fini(&c);
      else
        refused += err.text[0] != '\0' && c.recipe == NULL && c.batches == NULL;
      fclose(from);
      s.bytes[i] = was;
    }
  CU_ASSERT(refused > s.size);
  free(s.bytes);
}

/* --- other forms --- */

enum { FORMAT_AT = 8, LAYOUT_AT = 16, TAIL = 16 };

static void put_number(saved *s, size_t at, uint64_t number) {
  memcpy(s->bytes + at, &number, sizeof number);
}

static uint64_t sum_of(const saved *s) {
  checksum sum;
  checksum_begin(&sum);
  checksum_add(&sum, s->bytes, s->size - TAIL);
  return checksum_of(&sum);
}

/* Whole, and refused as what it is, not as damaged. */
static void check_other_form(saved *s) {
  checkpoint c;
  gl_error err = {0};
  CU_ASSERT(verify(s->bytes, s->size, &err) == GL_OK);
  FILE *from = fmemopen(s->bytes, s->size, "rb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  CU_ASSERT(checkpoint_read(&c, from, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "written by gepolab " GEPOLAB_VERSION " in a form"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "delete"));
  fclose(from);
}

TEST(a_whole_file_of_an_earlier_form_is_refused_as_such) {
  saved s = make();
  gl_error err = {0};
  put_number(&s, FORMAT_AT, 1);
  CU_ASSERT(verify(s.bytes, s.size, &err) == GL_EINPUT);
  put_number(&s, s.size - 8, hash_64(HASH_64_START, s.bytes, s.size - TAIL));
  check_other_form(&s);
  s.bytes[s.size / 2] ^= 1;
  CU_ASSERT(verify(s.bytes, s.size, &err) == GL_EINPUT);
  free(s.bytes);
}

TEST(a_file_of_a_later_form_or_of_other_metrics_is_refused_as_such) {
  saved s = make();
  uint64_t layout;
  put_number(&s, FORMAT_AT, 99);
  put_number(&s, s.size - 8, sum_of(&s));
  check_other_form(&s);
  free(s.bytes);
  s = make();
  memcpy(&layout, s.bytes + LAYOUT_AT, sizeof layout);
  put_number(&s, LAYOUT_AT, layout + 1);
  put_number(&s, s.size - 8, sum_of(&s));
  check_other_form(&s);
  free(s.bytes);
}

/* What tells builds apart stands in the head, and is this program's only where the caller says. */
TEST(the_build_of_the_writer_is_kept) {
  saved s = make();
  checkpoint c;
  gl_error err = {0};
  put_number(&s, LAYOUT_AT + 8, 0x1234);
  put_number(&s, s.size - 8, sum_of(&s));
  CU_ASSERT(verify(s.bytes, s.size, &err) == GL_OK);
  FILE *from = fmemopen(s.bytes, s.size, "rb");
  CU_ASSERT_FATAL(from != NULL && checkpoint_read(&c, from, &err) == GL_OK);
  CU_ASSERT(c.build == 0x1234);
  checkpoint_fini(&c);
  fclose(from);
  free(s.bytes);
}

TEST(a_disk_that_fails_gives_its_reason) {
  FILE *full = fopen("/dev/full", "wb");
  checkpoint c = {.recipe = "{}"};
  gl_error err = {0};
  int reason = 0;
  if (full == NULL) SKIP("no /dev/full");
  setvbuf(full, NULL, _IONBF, 0);
  CU_ASSERT(checkpoint_write(&c, &(learner){&ops, NULL}, full, &reason, &err) == GL_EIO);
  CU_ASSERT(reason != 0 && err.text[0] != '\0');
  fclose(full);
}

TEST(a_learner_that_holds_nothing_cannot_be_coupled) {
  static const char text[] = "cluster:\n  coupled: true\n";
  cfg_doc *doc = NULL;
  gl_error err = {0};
  recipe r;
  run_result o = {0};
  checkpoint none = {0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, sizeof text - 1, "r.yaml", &err) == GL_OK);
  CU_ASSERT_FATAL(recipe_read(&r, doc, &err) == GL_OK);
  train_loop l = {.recipe = &r, .out = &o, .learner = {&ops, NULL}, .err = &err};
  CU_ASSERT(train_coupled(&l, &none) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "r.yaml:2:12: a test learner cannot be coupled"));
  cfg_free(doc);
}
