/* Training with a clock coupled to the learner. A batch is sampled when a sampler begins it,
 * because the lengths of its responses take simulated time. An update is made when the clock
 * reaches its end.
 *
 * With dynamic sampling (train.filter_groups) samplers continue until a batch is full of groups
 * whose rewards differ. The clock receives the lengths of all rounds of a batch.
 *
 * If weights change while responses are decoded (partial: continue), a batch is first sampled as if
 * they did not. When they do, tokens beyond the point of change are sampled again.
 *
 * sim/learner_queue.c decides which batches are dropped.
 *
 * The fate of every response is recorded with its length, prompt and reward. A batch that is
 * dropped before it is complete is completed under the weights with which it was sampled, to obtain
 * its rewards.
 *
 * The clock's state is not part of a checkpoint. A checkpoint has the lengths that the clock
 * received so far. On resuming, the clock runs again with these lengths, without work of the
 * learner, up to the update of the checkpoint. From there on batches are sampled again. */
#include "experiments/train/internal.h"

#include "experiments/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- fates of responses --- */

void fates_fini(fates_log *l) {
  free(l->all);
  *l = (fates_log){0};
}

void fates_add(fates_log *l, const batch *b, unit_fate fate) {
  MUST_RESERVE(l->all, l->capacity, l->n + b->n_responses, "fates of responses");
  for (size_t g = 0; g < b->n_groups; ++g)
    for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i)
      l->all[l->n++] =
          (response_fate){.prompt = b->prompt[g],
                          .reward = b->reward[i],
                          .tokens = (uint32_t)(b->token_start[i + 1] - b->token_start[i]),
                          .fate = (uint32_t)fate};
}

/* --- quarters of prompts --- */

typedef struct prompt_score {
  int64_t prompt;
  double sum, mean;
  size_t n;
  int32_t quarter;
} prompt_score;

static int by_prompt(const void *a, const void *b) {
  const int64_t x = ((const prompt_score *)a)->prompt, y = ((const prompt_score *)b)->prompt;
  return (x > y) - (x < y);
}

static int by_reward(const void *a, const void *b) {
  const prompt_score *x = a, *y = b;
  return x->mean != y->mean ? (x->mean > y->mean) - (x->mean < y->mean) : by_prompt(a, b);
}

/* A total order over all members, so that sums have the same bits in whatever order responses came
 * in. */
static int fates_by_prompt(const void *a, const void *b) {
  const response_fate *x = a, *y = b;
  if (x->prompt != y->prompt) return (x->prompt > y->prompt) - (x->prompt < y->prompt);
  if (x->fate != y->fate) return (x->fate > y->fate) - (x->fate < y->fate);
  if (x->tokens != y->tokens) return (x->tokens > y->tokens) - (x->tokens < y->tokens);
  return (x->reward > y->reward) - (x->reward < y->reward);
}

/* Lists the prompts of the log, which is sorted by prompt; assigns each its quarter, sorts them by
 * number, and returns their number. */
static size_t rank_prompts(const response_fate *all, size_t n, prompt_score *prompt) {
  size_t prompts = 0;
  for (size_t i = 0; i < n; ++i) {
    if (prompts == 0 || prompt[prompts - 1].prompt != all[i].prompt)
      prompt[prompts++] = (prompt_score){.prompt = all[i].prompt};
    prompt[prompts - 1].sum += all[i].reward;
    ++prompt[prompts - 1].n;
  }
  for (size_t k = 0; k < prompts; ++k) prompt[k].mean = prompt[k].sum / (double)prompt[k].n;
  qsort(prompt, prompts, sizeof *prompt, by_reward);
  for (size_t k = 0; k < prompts; ++k)
    prompt[k].quarter = 1 + (int32_t)(k * STORE_QUARTERS / prompts);
  qsort(prompt, prompts, sizeof *prompt, by_prompt);
  return prompts;
}

/* --- the table --- */

enum { CELLS = FATES * STORE_QUARTERS * LENGTH_CLASSES };

static size_t cell_of(const response_fate *r, int32_t quarter) {
  const int length = ilogb((double)r->tokens); /* at most 31, which is less than LENGTH_CLASSES */
  return ((size_t)r->fate * STORE_QUARTERS + (size_t)quarter - 1) * LENGTH_CLASSES +
         (size_t)(length > 0 ? length : 0);
}

static void fill_fate_cells(fate_record *cell, const response_fate *all, size_t n,
                            const prompt_score *prompt) {
  for (size_t i = 0, k = 0; i < n; ++i) {
    while (prompt[k].prompt != all[i].prompt) ++k;
    fate_record *to = &cell[cell_of(&all[i], prompt[k].quarter)];
    ++to->responses;
    to->tokens += all[i].tokens;
    to->reward += all[i].reward;
  }
}

/* Removes empty cells and sets the keys of the others; returns their number. */
static size_t keep_filled(fate_record *cell) {
  size_t kept = 0;
  for (size_t c = 0; c < CELLS; ++c) {
    if (cell[c].responses == 0) continue;
    fate_record one = cell[c];
    snprintf(one.fate, sizeof one.fate, "%s",
             unit_fate_name((unit_fate)(c / LENGTH_CLASSES / STORE_QUARTERS)));
    one.quarter = 1 + (int32_t)(c / LENGTH_CLASSES % STORE_QUARTERS);
    one.tokens_from = (int64_t)1 << c % LENGTH_CLASSES;
    cell[kept++] = one;
  }
  return kept;
}

fate_record *fates_count(const fates_log *l, size_t *n) {
  fate_record *cell = MUST_ARRAY(fate_record, CELLS, "fates of responses");
  response_fate *all = MUST_ARRAY(response_fate, l->n, "fates of responses");
  prompt_score *prompt = MUST_ARRAY(prompt_score, l->n, "fates of responses");
  if (l->n > 0) memcpy(all, l->all, l->n * sizeof *all);
  qsort(all, l->n, sizeof *all, fates_by_prompt);
  rank_prompts(all, l->n, prompt);
  fill_fate_cells(cell, all, l->n, prompt);
  *n = keep_filled(cell);
  free(all);
  free(prompt);
  return cell;
}

/* --- the run --- */

/* A batch that a sampler has begun. */
typedef struct begun_batch {
  uint64_t unit; /* schedule_batch.id */
  size_t row;    /* offset of its row in `lengths` */
  bool waits;    /* true from its begin until its update or its loss */
  batch drawn;   /* empty if the batch does not wait, or while the clock is being run again */
} begun_batch;

typedef struct coupled {
  train_loop *loop;
  checkpoint *resumed;
  size_t again;       /* number of the checkpoint's updates that the clock has not yet repeated */
  size_t responses;   /* per unit */
  begun_batch *batch; /* [begun], indexed by batch number */
  size_t begun;
  uint32_t *lengths; /* [n_lengths], in a checkpoint's layout */
  size_t n_lengths, cap_lengths;
  draw_span *span;  /* [responses] if weights may change in flight; else NULL */
  size_t *length;   /* [responses] workspace for their lengths, or NULL like span */
  batch **together; /* [most] workspace: the batches of an update */
  size_t most;
  fates_log fates;
  gl_status failed; /* error in a hook that returns no status; the loop's error has the message */
} coupled;

/* Reserves space for n more lengths at the end. */
static void reserve_lengths(coupled *c, size_t n) {
  MUST_RESERVE(c->lengths, c->cap_lengths, c->n_lengths + n, "response lengths");
}

/* --- rows of lengths --- */
/* Without dynamic sampling a batch's row is its responses' lengths. With it, the row begins with
 * the number of rounds and ends with the lengths of each round. */

static const group_filter *filter_of(const coupled *c) {
  return &c->loop->recipe->filter;
}

static size_t round_responses(const coupled *c) {
  return filter_of(c)->groups * c->loop->recipe->group_size;
}

static const uint32_t *own_lengths(const coupled *c, uint64_t number) {
  return c->lengths + c->batch[number].row + (filter_of(c)->is_on ? 1 : 0);
}

/* Number of rounds in which the batch was sampled; 0 without dynamic sampling. */
static size_t rounds_of(const coupled *c, uint64_t number) {
  return filter_of(c)->is_on ? c->lengths[c->batch[number].row] : 0;
}

/* Appends the row of a newly sampled batch to the lengths. */
static void put_row(coupled *c, const batch *b, const group_rounds *rounds) {
  const int filters = filter_of(c)->is_on;
  const size_t of_rounds = rounds->n * rounds->responses;
  reserve_lengths(c, 1 + c->responses + of_rounds);
  if (filters) c->lengths[c->n_lengths++] = (uint32_t)rounds->n;
  for (size_t i = 0; i < c->responses; ++i)
    c->lengths[c->n_lengths++] =
        (uint32_t)(c->length != NULL ? c->length[i] : b->token_start[i + 1] - b->token_start[i]);
  if (of_rounds > 0)
    memcpy(c->lengths + c->n_lengths, rounds->lengths, of_rounds * sizeof *c->lengths);
  c->n_lengths += of_rounds;
}

/* Copies the checkpoint's next row, which begins where the present rows end. */
static gl_status copy_row(coupled *c) {
  const checkpoint *r = c->resumed;
  const size_t left = r->n_lengths - c->n_lengths;
  size_t n = c->responses;
  if (filter_of(c)->is_on) {
    const uint32_t rounds = left > 0 ? r->lengths[c->n_lengths] : 0;
    if (rounds == 0 || rounds > filter_of(c)->most) return train_misfit(c->loop);
    n += 1 + rounds * round_responses(c);
  }
  if (n > left) return train_misfit(c->loop);
  reserve_lengths(c, n);
  memcpy(c->lengths + c->n_lengths, r->lengths + c->n_lengths, n * sizeof *c->lengths);
  c->n_lengths += n;
  return GL_OK;
}

static void drop_batch(coupled *c, uint64_t number) {
  c->batch[number].waits = false;
  batch_fini(&c->batch[number].drawn);
}

/* --- checkpoints --- */

static gl_status save_coupled(coupled *c) {
  checkpoint saved = {.lengths = c->lengths,
                      .n_lengths = c->n_lengths,
                      .begun = c->begun,
                      .responses = c->responses,
                      .fates = c->fates.all,
                      .n_fates = c->fates.n};
  for (size_t i = 0; i < c->begun; ++i) saved.n_batches += c->batch[i].waits;
  saved.batches = MUST_ARRAY(checkpoint_batch, saved.n_batches, "a checkpoint");
  for (size_t i = 0, n = 0; i < c->begun; ++i)
    if (c->batch[i].waits) saved.batches[n++] = (checkpoint_batch){i, c->batch[i].drawn};
  gl_status status = train_save(c->loop, &saved);
  free(saved.batches);
  return status;
}

/* Called when the clock reaches the update of the checkpoint. The batches waiting now must be those
 * in the checkpoint. */
static gl_status go_live(coupled *c) {
  checkpoint *r = c->resumed;
  size_t waiting = 0;
  int fits = c->begun == r->begun && c->n_lengths == r->n_lengths;
  for (size_t i = 0; i < c->begun; ++i) waiting += c->batch[i].waits;
  fits = fits && waiting == r->n_batches;
  for (size_t i = 0; i < r->n_batches && fits; ++i) {
    uint64_t number = r->batches[i].number;
    fits = number < c->begun && c->batch[number].waits &&
           c->batch[number].drawn.token_start == NULL &&
           r->batches[i].drawn.n_responses == c->responses;
    if (!fits) break;
    c->batch[number].drawn = r->batches[i].drawn;
    r->batches[i].drawn = (batch){0};
  }
  c->fates = (fates_log){r->fates, r->n_fates, r->n_fates};
  r->fates = NULL;
  r->n_fates = 0;
  return fits ? GL_OK : train_misfit(c->loop);
}

/* --- callbacks of the clock --- */

/* Samples a batch. from: the token of each response from which this version is used, as in
 * schedule_hooks; NULL: the batch begins. */
static gl_status draw_live(coupled *c, const schedule_batch *b, int64_t version, const size_t *from,
                           gl_error *err) {
  const recipe *r = c->loop->recipe;
  const learner *l = &c->loop->learner;
  batch *drawn = &c->batch[b->number].drawn;
  const unit_draw unit = cluster_unit_draw(c->loop->cluster, b->id, r->groups);
  draw_request request = {.batch_id = unit.id,
                          .version = version,
                          .n_groups = unit.n_groups,
                          .group_size = unit.group_size,
                          .first_response = unit.first_response,
                          .from = 0,
                          .to = 1,
                          .length = c->length};
  for (size_t i = 0; c->span != NULL && i < c->responses; ++i) {
    const size_t longest = l->ops->longest(l->self), first = from != NULL ? from[i] : 0;
    c->span[i] = (draw_span){first == SCHEDULE_LEAVES ? longest : first, longest};
  }
  if (c->span != NULL) draw_request_set_spans(&request, c->span, from == NULL, false);
  group_rounds rounds = {0};
  gl_status status = r->filter.is_on
                         ? group_filter_draw(&r->filter, l, &request, drawn, &rounds, err)
                         : l->ops->draw(l->self, &request, drawn, err);
  if (status == GL_OK && drawn->n_responses != c->responses)
    status = gl_fail(err, GL_EINTERNAL, "a learner drew %zu responses of %zu", drawn->n_responses,
                     c->responses);
  if (status == GL_OK) put_row(c, drawn, &rounds);
  group_rounds_fini(&rounds);
  return status;
}

/* Completes a batch whose weights could change in flight and that will not change any more: cuts
 * its responses and computes their rewards. */
static gl_status complete_batch(coupled *c, uint64_t number, int64_t version) {
  const learner *l = &c->loop->learner;
  const unit_draw unit =
      cluster_unit_draw(c->loop->cluster, c->batch[number].unit, c->loop->recipe->groups);
  const draw_request request = {.batch_id = unit.id,
                                .version = version,
                                .n_groups = unit.n_groups,
                                .group_size = unit.group_size,
                                .first_response = unit.first_response,
                                .from = 0.5,
                                .to = 1,
                                .span = c->span};
  if (c->span == NULL) return GL_OK;
  memset(c->span, 0, c->responses * sizeof *c->span);
  return l->ops->draw(l->self, &request, &c->batch[number].drawn, c->loop->err);
}

/* Completes a batch whose fate is known, and records the fate of its responses. */
static gl_status record_fate(coupled *c, uint64_t number, unit_fate fate) {
  gl_status status = complete_batch(c, number, (int64_t)c->loop->out->n_steps);
  if (status == GL_OK) fates_add(&c->fates, &c->batch[number].drawn, fate);
  return status;
}

/* The clock's request for a new batch: samples it, or while the clock repeats a checkpoint's
 * updates takes its lengths from there. */
static gl_status coupled_draw(void *self, const schedule_batch *b, int64_t version, double *lengths,
                              gl_error *err) {
  coupled *c = self;
  gl_status status = c->failed;
  if (status != GL_OK) return status;
  *MUST_ADD(c->batch, c->begun, "the batches of a run") =
      (begun_batch){.unit = b->id, .row = c->n_lengths, .waits = true};
  if (c->again == 0)
    status = draw_live(c, b, version, NULL, err);
  else if (b->number < c->resumed->begun)
    status = copy_row(c);
  else
    status = train_misfit(c->loop);
  for (size_t i = 0; i < c->responses && status == GL_OK; ++i)
    lengths[i] = own_lengths(c, b->number)[i];
  return status;
}

/* Samples again from the point where weights changed; the new lengths are appended as another row.
 */
static gl_status coupled_redraw(void *self, const schedule_batch *b, int64_t version,
                                const size_t *from, double *lengths, gl_error *err) {
  coupled *c = self;
  const size_t row = c->n_lengths;
  gl_status status = c->again == 0 ? draw_live(c, b, version, from, err) : copy_row(c);
  for (size_t i = 0; i < c->responses && status == GL_OK; ++i) lengths[i] = c->lengths[row + i];
  return status;
}

static void coupled_rounds(void *self, const schedule_batch *b, schedule_rounds *out) {
  const coupled *c = self;
  const size_t n = rounds_of(c, b->number);
  *out = (schedule_rounds){n, n > 0 ? round_responses(c) : 0,
                           own_lengths(c, b->number) + c->responses};
}

/* The clock drops a batch: records its fate and frees it. */
static void coupled_discard(void *self, const schedule_batch *b, unit_fate fate) {
  coupled *c = self;
  if (c->again == 0 && c->failed == GL_OK) c->failed = record_fate(c, b->number, fate);
  drop_batch(c, b->number);
}

/* Writes to the update's record how many groups dynamic sampling sampled and how many it kept. */
static void count_groups(const coupled *c, const schedule_update *u,
                         const schedule_batch *batches) {
  double drawn = 0, kept = 0;
  if (!filter_of(c)->is_on) return;
  for (size_t i = 0; i < u->n_batches; ++i) {
    const batch *b = c->together[i];
    drawn += (double)(rounds_of(c, batches[i].number) * filter_of(c)->groups);
    for (size_t g = 0; g < b->n_groups; ++g) kept += batch_rewards_differ(b, g);
  }
  double *of_update = c->loop->out->steps[c->loop->out->n_steps - 1].metric;
  of_update[METRIC_GROUPS_DRAWN] = drawn;
  of_update[METRIC_GROUPS_KEPT] = kept;
}

static gl_status coupled_train(coupled *c, const schedule_update *u,
                               const schedule_batch *batches) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < u->n_batches && status == GL_OK; ++i) {
    c->together[i] = &c->batch[batches[i].number].drawn;
    status = record_fate(c, batches[i].number, FATE_TRAINED);
  }
  if (status == GL_OK) train_assemble(c->loop, batches, c->together, u->n_batches);
  if (status == GL_OK) status = train_update(c->loop, u, batches[0].sampler, c->together);
  if (status == GL_OK) count_groups(c, u, batches);
  for (size_t i = 0; i < u->n_batches; ++i) drop_batch(c, batches[i].number);
  if (status == GL_OK) status = train_evaluate(c->loop, (size_t)u->step, u->end_s);
  return status;
}

/* Repeats an update of the checkpoint, without training; after the last one the learner takes
 * over. */
static gl_status run_again(coupled *c, const schedule_update *u, const schedule_batch *batches) {
  if (c->loop->out->steps[u->step - 1].time_s != u->end_s) return train_misfit(c->loop);
  for (size_t i = 0; i < u->n_batches; ++i) drop_batch(c, batches[i].number);
  return --c->again == 0 ? go_live(c) : GL_OK;
}

static gl_status coupled_update(void *self, const schedule_update *u, const schedule_batch *batches,
                                bool *stop, gl_error *err) {
  (void)err; /* l->err is used */
  coupled *c = self;
  if (c->failed != GL_OK) return c->failed;
  if (c->again > 0) return run_again(c, u, batches);
  MUST_RESERVE(c->together, c->most, u->n_batches, "the batches of an update");
  gl_status status = coupled_train(c, u, batches);
  if (status != GL_OK) return status;
  *stop = c->loop->out->status != RUN_DONE;
  int pauses = train_pauses(c->loop);
  if (pauses & TRAIN_SAVE) status = save_coupled(c);
  if (status == GL_OK && pauses & TRAIN_STOP) status = train_stopped(c->loop);
  return status;
}

/* Makes the learner store its present version. While the clock repeats the updates before a
 * checkpoint nothing is done, because the learner's state in the checkpoint has these versions. */
static gl_status coupled_hold(void *self, int64_t version, gl_error *err) {
  coupled *c = self;
  const learner *l = &c->loop->learner;
  (void)version; /* the learner copies its present version */
  return c->again > 0 ? GL_OK : l->ops->hold(l->self, err);
}

/* While the clock runs again up to a checkpoint, the learner does no work. */
static void coupled_release(void *self, int64_t version) {
  coupled *c = self;
  const learner *l = &c->loop->learner;
  if (c->again == 0) l->ops->release(l->self, version);
}

/* --- the whole --- */

static gl_status check_holds_versions(const train_loop *l) {
  const learner_ops *ops = l->learner.ops;
  if (ops->hold != NULL && ops->release != NULL) return GL_OK;
  return cfg_fail(cfg_find(l->recipe->cluster, "coupled"), l->err,
                  "a %s learner cannot be coupled to the clock, for it keeps no older versions to "
                  "draw from; leave coupled out and give the cluster a distribution of `lengths`",
                  ops->kind);
}

/* Responses without a fate at the end are recorded as pending. */
static gl_status count_all_fates(coupled *c) {
  run_result *out = c->loop->out;
  gl_status status = c->failed;
  for (size_t i = 0; i < c->begun && status == GL_OK; ++i)
    if (c->batch[i].waits) status = record_fate(c, i, FATE_PENDING);
  if (status == GL_OK) out->fates = fates_count(&c->fates, &out->n_fates);
  return status;
}

gl_status train_coupled(train_loop *l, checkpoint *resumed) {
  if (check_holds_versions(l) != GL_OK) return GL_EINPUT;
  const unit_draw unit = cluster_unit_draw(l->cluster, 0, l->recipe->groups);
  coupled c = {.loop = l,
               .resumed = resumed,
               .again = resumed->n_steps,
               .responses = unit.n_groups * unit.group_size};
  const schedule_hooks hooks = {.self = &c,
                                .draw = coupled_draw,
                                .discard = coupled_discard,
                                .update = coupled_update,
                                .hold = coupled_hold,
                                .release = coupled_release,
                                .rounds = coupled_rounds,
                                .go_on = coupled_redraw};
  schedule s = {0};
  gl_status status = GL_OK;
  if (resumed->n_steps > 0 && resumed->responses != c.responses) status = train_misfit(l);
  if (cluster_changes_in_flight(l->cluster)) {
    c.span = MUST_ARRAY(draw_span, c.responses, "the batches of a run");
    c.length = MUST_ARRAY(size_t, c.responses, "the batches of a run");
  }
  if (status == GL_OK && l->out->n_evals == 0) status = train_evaluate(l, 0, 0);
  if (status == GL_OK && l->out->status == RUN_DONE)
    status =
        schedule_build_coupled(&s, l->cluster, l->recipe->seed, l->recipe->steps, &hooks, l->err);
  if (status == GL_OK) train_take_clock(l, &s);
  if (status == GL_OK) status = count_all_fates(&c);
  for (size_t i = 0; i < c.begun; ++i) batch_fini(&c.batch[i].drawn);
  free(c.lengths);
  free(c.span);
  free(c.length);
  free(c.batch);
  free(c.together);
  fates_fini(&c.fates);
  schedule_fini(&s);
  return status;
}
