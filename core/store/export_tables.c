/* What the exported tables are and what their columns hold. */
#include "core/base/metrics.h"
#include "core/store/export.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(name, about) TABLE_FIELD(name, TABLE_TEXT, "", about)
#define WHOLE(name, unit, about) TABLE_FIELD(name, TABLE_WHOLE, unit, about)
#define NUMBER(name, unit, about) TABLE_FIELD(name, TABLE_REAL, unit, about)
#define FLAG(name, about) TABLE_FIELD(name, TABLE_FLAG, "", about)
#define END TABLE_FIELD(NULL, TABLE_TEXT, "", "")
#define KEY TEXT("key", "of the run")

static const table_column runs[] = {
    TEXT("status", "`done`, `diverged` (a result) or `failed` (an accident)"),
    TEXT("reason", "why a run diverged or failed; empty when done"),
    TEXT("code_version", "of the gepolab that made it"),
    WHOLE("meaning", "", "version of the meaning of recipes"), END};
static const table_column recipes[] = {
    KEY, TEXT("recipe", "the complete recipe, as one line of JSON"), END};
static const table_column axes[] = {
    TEXT("study", "the recipe's name"),
    TEXT("path", "the field's dotted path: the name of its column in the tables of runs"),
    TEXT("label", "the field in words"),
    TEXT("unit", "of its values; empty for pure numbers and words"),
    TEXT("role", "what the field is for in most recipes: `axis`, `chosen`, `algorithm`, `seed` or "
                 "`provenance`"),
    TEXT("kind", "`number`, `choice`, `flag`, `text`, `law`, `list` or `section`"),
    FLAG("swept", "true: a sweep named it; false: found by comparing recipes"),
    WHOLE("values", "", "how many values it has in the study, a missing one included"),
    END};
static const table_column axis_values[] = {
    KEY, TEXT("path", "the field"),
    TEXT("value", "its value as text; empty where the recipe leaves it open"),
    NUMBER("number", "",
           "of a number and of a law that is a constant, in the unit that `axes` "
           "says; `none` is 0"),
    END};
static const table_column steps[] = {
    WHOLE("step", "updates", "of the learner, from 1"),
    WHOLE("sampler", "", "number of the sampler of the first batch trained"),
    NUMBER("time_s", "s", "simulated time at the end of the update"),
    NUMBER("wait_s", "s", "simulated time that the learner idled before it"), END};
static const table_column evals[] = {
    WHOLE("step", "updates", "made before the evaluation; 0: before the first"),
    NUMBER("time_s", "s", "simulated time"), NUMBER("eval_score", "", "score of the learner"), END};
static const table_column set_evals[] = {
    WHOLE("step", "updates", "made before the evaluation; 0: before the first"),
    TEXT("eval_set", "the evaluation set's name"),
    WHOLE("half", "",
          "0: the score of all problems of the set; 1 and 2: of its first, third, … and of its "
          "second, fourth, … problems, where the recipe says `halves: true`"),
    NUMBER("time_s", "s", "simulated time"),
    NUMBER("eval_score", "", "score of the learner on these problems"),
    END};
static const table_column staleness[] = {
    WHOLE("staleness", "versions", "learner's version minus the batch's oldest version"),
    WHOLE("count", "batches", "trained at that staleness"), END};
static const table_column fates[] = {
    TEXT("fate",
         "`trained`; thrown away because `stale`, `evicted` from a full queue or `aborted` at "
         "the sampler; `lost`; or `pending` at the run's end"),
    WHOLE("quarter", "",
          "of the run's prompts by the mean reward of all responses drawn for them, from the "
          "lowest, 1, to the highest, 4"),
    WHOLE("tokens_from", "tokens", "a power of two; responses have so many and less than twice it"),
    WHOLE("responses", "", "of this fate, quarter and length"),
    NUMBER("tokens", "tokens", "of all of them"),
    NUMBER("reward", "",
           "sum over them; of a response that was not finished, what it would have "
           "earned by the weights it last had"),
    END};
#define CLOCK_COLUMN(name, unit, meaning) NUMBER(#name, unit, meaning),
static const table_column clock[] = {CLOCK_RECORD(CLOCK_COLUMN) END};
static const table_column tuned[] = {
    TEXT("study", "the recipe's name"), TEXT("algorithm", "the shown name"),
    NUMBER("lr", "", "the learning rate that `tune` chose"),
    NUMBER("score", "", "what that rate scored on the seeds it was chosen on"), END};
static const table_column tuning[] = {
    TEXT("study", "the recipe's name"),
    WHOLE("ordinal", "", "place among the study's tuning runs, from 0"),
    TEXT("key", "32 hex digits that name the tuning run, which is in no table of runs"),
    TEXT("algorithm", "the shown name"),
    WHOLE("seed", "", "one of `tune.seeds`"),
    NUMBER("optimizer.lr", "", "the learning rate that it tried"),
    NUMBER("score", "", "what it scored; empty: it is planned and was not made yet"),
    END};
static const table_column bias[] = {
    TEXT("study", "the recipe's name; of a run's checkpoint with how many updates it had"),
    WHOLE("ordinal", "", "place among the study's measurements, from 0"),
    TEXT("algorithm", "the shown name"),
    TEXT("method", "how it was measured: exact, Monte Carlo, or the population limit"),
    NUMBER("group_size", "responses", "in a group; empty: the population limit"),
    NUMBER("kl_exact", "nat", "KL(p||q) per response, mean over prompts"),
    NUMBER("kl_exact_qp", "nat", "KL(q||p) per response, mean over prompts"),
    NUMBER("staleness", "versions", "of the pair of policies, where it comes from training"),
    NUMBER("groups", "groups", "enumerated or drawn, over all prompts"),
    NUMBER("bias", "", "norm of the expected estimate minus the gradient"),
    NUMBER("cosine", "", "between the expected estimate and the gradient"),
    NUMBER("scaled_bias", "", "sqrt(1 - cosine^2): what the best common factor leaves"),
    NUMBER("variance", "", "trace of the estimate's covariance"),
    NUMBER("mse", "", "bias^2 + variance"),
    NUMBER("scaled_mse", "", "relative mean squared error after the best common factor"),
    NUMBER("snr", "", "squared norm of the expected estimate over the variance"),
    NUMBER("iw_mean", "", "mean of the algorithm's own ratio"),
    NUMBER("iw_variance", "", "variance of the algorithm's own ratio"),
    NUMBER("aw_variance", "", "variance of advantage times own ratio"),
    NUMBER("ess", "", "expected (sum w)^2 / (n sum w^2) of the own ratio"),
    END};
static const table_column execution[] = {
    KEY,
    TEXT("finished", "when, as 2026-11-22T08:30:00Z"),
    NUMBER("wall_s", "s", "wall-clock time of the run"),
    WHOLE("peak_bytes", "bytes", "largest resident memory of its process"),
    TEXT("machine", "where it was made"),
    TEXT("provenance", "the `hash` in `provenance`"),
    END};
static const table_column provenance[] = {
    TEXT("hash", "names what `execution` refers to"),
    TEXT("version", "of gepolab"),
    TEXT("source", "the commit it was built from, in hex"),
    FLAG("dirty", "true: built from files that differed from the commit"),
    TEXT("command", "the command line, quoted for a shell"),
    TEXT("processor", "its name and the threads it has"),
    TEXT("system", "operating system and architecture"),
    TEXT("compiler", "its name and version"),
    END};
static const table_column libraries[] = {TEXT("hash", "the `hash` in `provenance`"),
                                         TEXT("library", "its name"),
                                         TEXT("version", "its version"), END};

static const export_table tables[] = {
    {"runs", "a record for each run", EXPORT_OF_RUNS, 1, "key", runs},
    {"recipes", "the recipe of each run", EXPORT_ALONE, 1, "key", recipes},
    {"axes", "a record for each field in which runs of a study differ and for each that was swept",
     EXPORT_ALONE, 1, "study, path", axes},
    {"axis_values", "a record for each run and each of those fields", EXPORT_ALONE, 1, "key, path",
     axis_values},
    {"steps",
     "a record for each update of the learner; its metrics are those of `gepolab list metrics`",
     EXPORT_OF_RUNS, 1, "key, step", steps},
    {"evals", "a record for each evaluation", EXPORT_OF_RUNS, 1, "key, step", evals},
    {"set_evals",
     "a record for each evaluation and each of its sets (`world.evaluation.sets`), and for each of "
     "their halves; none of recipes without sets",
     EXPORT_OF_RUNS, 1, "key, step, eval_set, half", set_evals},
    {"staleness", "a histogram for each run: how many batches were trained how late",
     EXPORT_OF_RUNS, 1, "key, staleness", staleness},
    {"fates",
     "what became of the responses that samplers drew, by length and by their prompt's difficulty; "
     "of runs whose clock is coupled to the learner, which alone draw what is thrown away",
     EXPORT_OF_RUNS, 1, "key, fate, quarter, tokens_from", fates},
    {"clock", "the simulated clock of each run", EXPORT_OF_RUNS, 1, "key", clock},
    {"tuned", "the learning rate that was chosen for each algorithm", EXPORT_ALONE, 1,
     "study, algorithm", tuned},
    {"tuning", "a record for each run that `tune` makes to choose the rates", EXPORT_ALONE, 1,
     "study, key", tuning},
    {"bias", "a record for each measurement of `gepolab lab bias`", EXPORT_ALONE, 1,
     "study, ordinal", bias},
    {"execution", "when and where each run was made, and what it took", EXPORT_ALONE, 0, "key",
     execution},
    {"provenance", "a record for each program, machine and command line that made runs",
     EXPORT_ALONE, 0, "hash", provenance},
    {"libraries", "the versions of the libraries that each of these used", EXPORT_ALONE, 0,
     "hash, library", libraries},
};

const export_table *store_export_at(size_t i) {
  return i < sizeof tables / sizeof *tables ? &tables[i] : NULL;
}

static size_t export_tables_listed(const export_table *t) {
  size_t n = 0;
  while (t->columns[n].name != NULL) ++n;
  return n;
}

size_t export_columns(const export_table *t) {
  return export_tables_listed(t) + (t->columns == steps ? METRIC_COUNT : 0);
}

table_column export_column(const export_table *t, size_t i) {
  const size_t n = export_tables_listed(t);
  if (i < n) return t->columns[i];
  const metric_info *about = metric_about((metric)(i - n));
  return (table_column){
      .name = about->name, .type = TABLE_REAL, .unit = about->unit, .about = about->meaning};
}

/* --- whole headers --- */

static size_t put_lead(const export_table *t, table_column *to) {
  static const table_column cell =
      TABLE_FIELD("cell", TABLE_WHOLE, "", "number of the cell, from 1");
  const table_column *fixed = run_list_fixed();
  if (t->lead == EXPORT_OF_RUNS) {
    memcpy(to, fixed, RUN_LIST_COLUMNS * sizeof *fixed);
    return RUN_LIST_COLUMNS;
  }
  if (t->lead == EXPORT_ALONE) return 0;
  to[0] = cell;
  to[1] = fixed[0];
  to[2] = fixed[3];
  to[3] = fixed[5];
  to[3].about = "learning rate of its runs; empty where they have several";
  return 4;
}

table_column *export_header(const export_table *t, const run_list *of, size_t *n) {
  const size_t own = export_columns(t),
               apart = of != NULL && t->lead != EXPORT_ALONE ? run_list_axes(of) : 0;
  table_column *all = calloc(RUN_LIST_COLUMNS + apart + own, sizeof *all);
  if (all == NULL) return NULL;
  *n = put_lead(t, all);
  for (size_t i = 0; i < apart; ++i) all[(*n)++] = run_list_axis(of, i);
  for (size_t i = 0; i < own; ++i) all[(*n)++] = export_column(t, i);
  return all;
}
