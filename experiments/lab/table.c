/* Runs the measurements of a laboratory recipe and writes them as JSON, text, TSV or records. */
#include "experiments/lab/table.h"

#include "core/base/json.h"
#include "core/base/shown.h"
#include "core/base/thread_pool.h"
#include "core/store/store.h"
#include "experiments/base/print_json.h"
#include "experiments/base/provenance.h"
#include "experiments/lab/counted.h"
#include "experiments/lab/counter.h"
#include "toy/lab/multiset.h"

#include <math.h>
#include <stdlib.h>

typedef struct job {
  lab_table *table;
  const policy_algorithm **algorithms;
  size_t inner_threads;
  lab_counter counter;
} job;

static int is_counted(const lab_recipe *r) {
  return r->world != NULL && toy_world_is_counted(r->world);
}

/* Responses in the groups that a cell goes through, as far as they are known beforehand: what takes
 * its time. */
static double cost_of(const lab_recipe *r, size_t cell) {
  const size_t size = r->group_size[cell % r->n_sizes];
  if (is_counted(r) || size == 0) return 1;
  const size_t all = lab_multiset_count(r->view.ops->n_responses(r->view.self, 0), size);
  return (double)(all <= r->budget ? all : r->samples) * (double)size;
}

static gl_status measure_cell(const job *j, size_t i, gl_error *err) {
  const lab_recipe *r = j->table->recipe;
  const lab_pair *pair = &r->pairs[i / r->n_sizes];
  if (is_counted(r))
    return lab_counted_measure(j->table->results + i * r->n_algorithms, r, i / r->n_sizes,
                               r->group_size[i % r->n_sizes], i, j->inner_threads, err);
  const lab_spec spec = {.world = &r->view,
                         .theta_learner = pair->learner,
                         .theta_sampler = pair->sampler,
                         .weights = r->weights,
                         .group_size = r->group_size[i % r->n_sizes],
                         .budget = r->budget,
                         .samples = r->samples,
                         .seed = r->seed,
                         .entity = i,
                         .threads = j->inner_threads,
                         .covariance = r->covariance};
  return lab_measure(j->table->results + i * r->n_algorithms, j->algorithms, r->n_algorithms, &spec,
                     err);
}

static gl_status run_cell(void *context, size_t i, gl_error *err) {
  job *j = context;
  const gl_status status = measure_cell(j, i, err);
  lab_counter_add(&j->counter, cost_of(j->table->recipe, i));
  return status;
}

gl_status lab_table_init(lab_table *t, const lab_recipe *recipe, size_t threads,
                         progress_mode shows, gl_error *err) {
  const size_t cells = recipe->n_pairs * recipe->n_sizes;
  *t = (lab_table){.recipe = recipe, .n = cells * recipe->n_algorithms};
  t->results = calloc(cells, recipe->n_algorithms * sizeof *t->results);
  job j = {.table = t, .inner_threads = cells >= threads ? 1 : threads};
  j.algorithms = calloc(recipe->n_algorithms, sizeof *j.algorithms);
  gl_status status =
      t->results == NULL || j.algorithms == NULL ? gl_fail_memory(err, "the measurements") : GL_OK;
  if (status == GL_OK) {
    for (size_t r = 0; r < recipe->n_algorithms; ++r) j.algorithms[r] = &recipe->algorithms[r];
    double cost = 0;
    for (size_t i = 0; i < cells; ++i) cost += cost_of(recipe, i);
    const size_t side_by_side = cells >= threads ? threads : 1;
    lab_counter_init(&j.counter, recipe->name, "measurements", cells, cost, side_by_side, shows);
    status = pool_try(cells, side_by_side, run_cell, &j, err);
    lab_counter_fini(&j.counter);
  }
  free(j.algorithms);
  return status;
}

void lab_table_fini(lab_table *t) {
  for (size_t i = 0; t->results != NULL && i < t->n; ++i) lab_result_fini(&t->results[i]);
  free(t->results);
  *t = (lab_table){0};
}

/* Outputs go through algorithms, then sizes, then pairs. */
typedef struct place {
  size_t algorithm, size, pair;
} place;

static const lab_result *at(const lab_table *t, place p) {
  const lab_recipe *r = t->recipe;
  return &t->results[(p.pair * r->n_sizes + p.size) * r->n_algorithms + p.algorithm];
}

static int next_place(const lab_table *t, place *p) {
  if (++p->pair < t->recipe->n_pairs) return 1;
  p->pair = 0;
  if (++p->size < t->recipe->n_sizes) return 1;
  p->size = 0;
  return ++p->algorithm < t->recipe->n_algorithms;
}

static const char *method_of(const lab_result *m) {
  return m->applicable ? lab_method_names[m->method] : "not_applicable";
}

/* JSON --- */

static int add_numbers(cJSON *to, const lab_numbers *numbers, int known) {
  const double *value = (const double *)numbers;
  int ok = to != NULL;
  for (size_t i = 0; i < LAB_NUMBERS; ++i)
    ok = ok && json_add_number(to, lab_number_names[i], known ? value[i] : NAN) != NULL;
  return ok;
}

static int add_errors(cJSON *to, const lab_result *m) {
  cJSON *errors = cJSON_AddObjectToObject(to, "standard_errors");
  return add_numbers(errors, &m->error, 1) &&
         json_add_numbers(errors, "expected_gradient", m->expected_error, m->n_parameters) != NULL;
}

static cJSON *as_json(const lab_table *t, place p) {
  const lab_result *m = at(t, p);
  const lab_recipe *r = t->recipe;
  const size_t n = m->n_parameters, size = r->group_size[p.size];
  cJSON *o = cJSON_CreateObject();
  int ok = o != NULL && json_add_string(o, "algorithm", r->algorithms[p.algorithm].name) != NULL &&
           json_add_number(o, "group_size", size == 0 ? NAN : (double)size) != NULL &&
           json_add_number(o, "kl_exact", m->kl) != NULL &&
           json_add_number(o, "kl_exact_qp", m->kl_qp) != NULL &&
           json_add_string(o, "method", method_of(m)) != NULL &&
           json_add_number(o, "groups", m->groups) != NULL &&
           json_add_number(o, "return", m->value) != NULL;
  if (ok && !isnan(r->pairs[p.pair].staleness))
    ok = json_add_number(o, "staleness", r->pairs[p.pair].staleness) != NULL;
  if (ok && !m->applicable) ok = json_add_string(o, "reason", m->why) != NULL;
  ok = ok && add_numbers(o, &m->numbers, m->applicable) &&
       json_add_numbers(o, "expected_gradient", m->expected, m->applicable ? n : 0) != NULL &&
       json_add_numbers(o, "true_gradient", m->truth, n) != NULL;
  if (ok && m->kept_truth != NULL)
    ok = json_add_number(o, "cosine_kept", m->cosine_kept) != NULL &&
         json_add_numbers(o, "kept_gradient", m->kept_truth, n) != NULL;
  if (ok && m->covariance != NULL)
    ok = json_add_numbers(o, "covariance", m->covariance, n * n) != NULL;
  if (ok && m->applicable && m->method == LAB_MONTE_CARLO) ok = add_errors(o, m);
  if (ok) return o;
  cJSON_Delete(o);
  return NULL;
}

gl_status lab_table_json(const lab_table *t, gl_error *err) {
  cJSON *array = cJSON_CreateArray();
  place p = {0, 0, 0};
  do {
    cJSON *item = array != NULL ? as_json(t, p) : NULL;
    if (item == NULL || !cJSON_AddItemToArray(array, item)) {
      cJSON_Delete(item);
      cJSON_Delete(array);
      array = NULL;
    }
  } while (array != NULL && next_place(t, &p));
  return report_json(array, err);
}

/* --- text --- */

static void print_size(size_t size, FILE *to) {
  if (size == 0)
    fprintf(to, " %6s", "inf");
  else
    fprintf(to, " %6zu", size);
}

static void print_cell(double value, double error, FILE *to) {
  char text[48] = "-";
  if (isfinite(value) && error > 0)
    snprintf(text, sizeof text, "%.4g(%.1g)", value, error);
  else if (isfinite(value))
    snprintf(text, sizeof text, "%.5g", value);
  else if (isinf(value))
    snprintf(text, sizeof text, "inf");
  fprintf(to, " %16s", text);
}

void lab_table_print(const lab_table *t, FILE *to) {
  place p = {0, 0, 0};
  const int wide = lab_recipe_name_width(t->recipe);
  fprintf(to, "%-*s %6s %9s %-11s", wide, "algorithm", "G", "KL(p||q)", "method");
  static const char *const heads[] = {"bias", "cosine", "scaled_bias", "variance", "mse"};
  const int kept = t->results[0].kept_truth != NULL;
  for (size_t i = 0; i < 5; ++i) fprintf(to, " %16s", heads[i]);
  if (kept) fprintf(to, " %16s", "cosine_kept");
  fputc('\n', to);
  do {
    const lab_result *m = at(t, p);
    const double *value = (const double *)&m->numbers, *error = (const double *)&m->error;
    shown_write_padded(t->recipe->algorithms[p.algorithm].name, (size_t)wide, to);
    print_size(t->recipe->group_size[p.size], to);
    fprintf(to, " %9.5g %-11s", m->kl, m->applicable ? lab_method_names[m->method] : "-");
    if (m->applicable) {
      for (size_t i = 0; i < 5; ++i) print_cell(value[i], error[i], to);
      if (kept) print_cell(m->cosine_kept, 0, to);
    } else {
      fprintf(to, " not applicable: %s", shown(m->why).text);
    }
    fputc('\n', to);
  } while (next_place(t, &p));
  for (size_t k = 0; k < t->recipe->n_pairs; ++k)
    if (isinf(t->results[k * t->recipe->n_sizes * t->recipe->n_algorithms].kl)) {
      fputs("note: the sampler never draws a response that the learner gives; no weight on the "
            "others can make up for it\n",
            to);
      break;
    }
}

static void tsv_number(double value, FILE *to) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(to, "\t%s", isfinite(value) ? number_text(value, text) : "");
}

void lab_table_tsv(const lab_table *t, FILE *to) {
  place p = {0, 0, 0};
  fputs("# algorithm\tgroup_size\tkl_exact\tkl_exact_qp\tstaleness\tmethod", to);
  for (size_t i = 0; i < LAB_NUMBERS; ++i) fprintf(to, "\t%s", lab_number_names[i]);
  fputc('\n', to);
  do {
    const lab_result *m = at(t, p);
    const double *value = (const double *)&m->numbers;
    if (p.pair == 0 && (p.size != 0 || p.algorithm != 0)) fputs("\n\n", to);
    shown_write_field(t->recipe->algorithms[p.algorithm].name, to);
    fprintf(to, "\t%zu", t->recipe->group_size[p.size]);
    tsv_number(m->kl, to);
    tsv_number(m->kl_qp, to);
    tsv_number(t->recipe->pairs[p.pair].staleness, to);
    fprintf(to, "\t%s", method_of(m));
    for (size_t i = 0; i < LAB_NUMBERS; ++i) tsv_number(m->applicable ? value[i] : NAN, to);
    fputc('\n', to);
  } while (next_place(t, &p));
}

static bias_record record_of(const lab_table *t, place p) {
  const lab_result *m = at(t, p);
  const lab_recipe *r = t->recipe;
  const lab_numbers *n = &m->numbers;
  const size_t size = r->group_size[p.size];
  bias_record record = {.algorithm = r->algorithms[p.algorithm].name,
                        .method = method_of(m),
                        .group_size = size == 0 ? NAN : (double)size,
                        .kl_exact = m->kl,
                        .kl_exact_qp = m->kl_qp,
                        .staleness = r->pairs[p.pair].staleness,
                        .groups = m->groups};
  double *number[] = {&record.bias,        &record.cosine,  &record.scaled_bias,
                      &record.variance,    &record.mse,     &record.scaled_mse,
                      &record.snr,         &record.iw_mean, &record.iw_variance,
                      &record.aw_variance, &record.ess};
  const double *value = (const double *)n;
  for (size_t i = 0; i < LAB_NUMBERS; ++i) *number[i] = m->applicable ? value[i] : NAN;
  return record;
}

gl_status lab_table_store(const lab_table *t, const char *path, double wall_s, gl_error *err) {
  bias_record *records = calloc(t->n, sizeof *records);
  provenance how;
  char finished[PROVENANCE_DATE_SIZE];
  store *s = NULL;
  size_t n = 0;
  place p = {0, 0, 0};
  if (records == NULL) return gl_fail_memory(err, "the records of a study");
  do records[n++] = record_of(t, p);
  while (next_place(t, &p));
  gl_status status = provenance_init(&how, err);
  const bias_making making = {&how.record, provenance_now(finished), wall_s};
  if (status == GL_OK) status = store_open(&s, path, STORE_WRITE, err);
  if (status == GL_OK) status = store_put_bias(s, t->recipe->name, records, n, &making, err);
  store_close(s);
  provenance_fini(&how);
  free(records);
  return status;
}
