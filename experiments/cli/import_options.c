/* Options for exports and for several files at once. */
#include "experiments/cli/import_options.h"

#include <string.h>

void import_options_list(import_options *o, args_option *list) {
  const args_option own[IMPORT_OPTION_COUNT] = {
      {"label", 'l', ARGS_EACH, "EXPORT=NAME", "the benchmark or study that a file is of",
       &o->labels},
      {"rename", 'r', ARGS_EACH, "REGEX=NAME", "what runs that match are called; $1: a group",
       &o->renames},
      {"group-by", 'g', ARGS_TEXT, "REGEX", "seeds: runs with the same first group are one's",
       &o->group_by},
      {"metric", 'M', ARGS_TEXT, "METRIC", "the quantity asked for, or what unnamed numbers are",
       &o->metric},
      {"read-as", 0, ARGS_EACH, "REGEX=NAME", "which of `gepolab metrics` a metric is",
       &o->read_as},
      {"lower-is-better", 0, ARGS_FLAG, NULL, "of metrics that gepolab does not know",
       &o->lower_is_better},
      {"at", 0, ARGS_TEXT, "common", "all series end at the last step that all have", &o->at},
      {"set", 0, ARGS_TEXT, "SET", "of studies: the evaluation set whose score is shown, or mean",
       &o->set},
      {"each-set", 0, ARGS_FLAG, NULL, "of studies: all evaluation sets, as labels", &o->each_set},
      {"columns", 0, ARGS_TEXT, "runs|metrics", "what columns are", &o->columns},
      {"x", 'x', ARGS_TEXT, "COLUMN", "the column that holds the step", &o->step}};
  memcpy(list, own, sizeof own);
}

gl_status import_options_request(const import_options *o, const char *const *files, size_t n_files,
                                 gather_request *out, gl_error *err) {
  static const char *const columns[] = {"runs", "metrics"}, *const ends[] = {"common"};
  static const shape_columns kinds[] = {COLUMNS_ARE_RUNS, COLUMNS_ARE_METRICS};
  size_t kind = 0, end = 0;
  gl_status status = GL_OK;
  if (o->columns) status = args_choose(&kind, "--columns", o->columns, columns, 2, err);
  if (status == GL_OK && o->at) status = args_choose(&end, "--at", o->at, ends, 1, err);
  if (status == GL_OK && o->set && o->each_set)
    status = gl_fail(err, GL_EINPUT, "--set shows one evaluation set and --each-set all; give one");
  *out = (gather_request){
      .files = files,
      .n_files = n_files,
      .labels = o->labels.item,
      .n_labels = o->labels.n,
      .renames = o->renames.item,
      .n_renames = o->renames.n,
      .read_as = o->read_as.item,
      .n_read_as = o->read_as.n,
      .group_by = o->group_by,
      .metric = o->metric,
      .lower_is_better = o->lower_is_better,
      .at_common = o->at != NULL,
      .set = o->set,
      .each_set = o->each_set,
      .shape = {.step = o->step, .columns = o->columns ? kinds[kind] : COLUMNS_BY_NAME}};
  return status;
}

int import_options_given(const import_options *o) {
  return o->labels.n || o->renames.n || o->read_as.n || o->group_by || o->metric || o->columns ||
         o->step || o->at || o->lower_is_better || o->each_set;
}
