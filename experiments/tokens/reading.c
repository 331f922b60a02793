/* Reads token-level logs: goes through the files, finds their format and hands lines to its reader
 * until a batch is complete. */
#include "experiments/tokens/token_log.h"

#include "core/base/compressed.h"
#include "core/base/file.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/tokens/formats.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- files of a log: those that were named, and those below folders --- */

typedef struct token_source {
  char *path;
  bool in_folder; /* found in a folder, not named itself */
  bool skipped;   /* found in a folder, and skipped because it is no token-level log */
} token_source;

typedef struct token_sources {
  token_source *file;
  size_t n;
} token_sources;

enum { MOST_DEPTH = 32 };
static const char FILES_OF_LOG[] = "the files of a log";

static bool is_log_name(const char *name) {
  const size_t n = file_uncompressed_length(name);
  return name[0] != '.' && (name_ends_with(name, n, ".jsonl") || name_ends_with(name, n, ".json"));
}

static size_t digits_at_front(const char *text) {
  return strspn(text, "0123456789");
}

/* Numbers within the names by value: step_2 before step_10. */
static int natural_order(const char *a, const char *b) {
  while (*a != '\0' && *b != '\0') {
    size_t n = digits_at_front(a), m = digits_at_front(b);
    if (n == 0 || m == 0) {
      if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
      ++a, ++b;
      continue;
    }
    while (n > 1 && *a == '0') ++a, --n;
    while (m > 1 && *b == '0') ++b, --m;
    const int order = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
    if (order != 0) return order;
    a += n, b += m;
  }
  return *a != '\0' ? 1 : *b != '\0' ? -1 : 0;
}

static int by_name(const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  const int order = natural_order(x, y);
  return order != 0 ? order : strcmp(x, y);
}

typedef struct folder_names {
  char **name;
  size_t n;
} folder_names;

static void names_fini(folder_names *l) {
  for (size_t i = 0; i < l->n; ++i) free(l->name[i]);
  free(l->name);
}

static gl_status list_names(folder_names *out, const char *folder, gl_error *err) {
  *out = (folder_names){.n = 0};
  DIR *d = opendir(folder);
  if (d == NULL)
    return gl_fail(err, GL_EIO, "%s: the folder cannot be read: %s", folder, strerror(errno));
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.')
      *MUST_ADD(out->name, out->n, FILES_OF_LOG) = must_copy(e->d_name, FILES_OF_LOG);
  closedir(d);
  if (out->n > 0) qsort(out->name, out->n, sizeof *out->name, by_name);
  return GL_OK;
}

static void add_file(token_sources *s, char *path, bool in_folder) {
  *MUST_ADD(s->file, s->n, FILES_OF_LOG) = (token_source){.path = path, .in_folder = in_folder};
}

static gl_status add_folder(token_sources *s, const char *folder, int depth, gl_error *err) {
  folder_names list;
  if (depth > MOST_DEPTH)
    return gl_fail(err, GL_EINPUT, "%s: folders are nested more than %d deep", folder, MOST_DEPTH);
  gl_status status = list_names(&list, folder, err);
  for (size_t i = 0; i < list.n && status == GL_OK; ++i) {
    char *path = must_textf(FILES_OF_LOG, "%s/%s", folder, list.name[i]);
    struct stat about;
    const bool known = lstat(path, &about) == 0;
    if (known && S_ISDIR(about.st_mode)) {
      status = add_folder(s, path, depth + 1, err);
      free(path);
    } else if (is_log_name(list.name[i]) && stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
      add_file(s, path, true);
    } else {
      free(path);
    }
  }
  names_fini(&list);
  return status;
}

/* Lists the files in the order of the paths; those of a folder in the natural order of their names
 * (numbers by value), folders recursively, without symbolic links to folders. Of a folder only
 * names with .jsonl or .json are listed, also with .gz or .zst. Errors: GL_EIO, GL_EINPUT (a folder
 * without such files). */
static gl_status token_sources_list(token_sources *s, const char *const *paths, size_t n,
                                    gl_error *err) {
  gl_status status = GL_OK;
  *s = (token_sources){.n = 0};
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const size_t before = s->n;
    if (strcmp(paths[i], "-") == 0 || !file_is_folder(paths[i])) {
      add_file(s, must_copy(paths[i], FILES_OF_LOG), false);
      continue;
    }
    status = add_folder(s, paths[i], 0, err);
    if (status == GL_OK && s->n == before)
      status = gl_fail(err, GL_EINPUT,
                       "%s: there is no .jsonl or .json file in this folder; give the folder that "
                       "the trainer writes its logs to (the .pt files of slime and miles are read "
                       "in Python: gepolab.write_log(gepolab.read_dump(\"dump\"), \"run.jsonl\"))",
                       paths[i]);
  }
  return status;
}

static void token_sources_fini(token_sources *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->file[i].path);
  free(s->file);
  *s = (token_sources){.n = 0};
}

/* --- reading --- */

#define FORMAT_ADDRESS(name) &token_format_##name,
static const token_format *const formats[] = {TOKEN_FORMATS(FORMAT_ADDRESS)};
enum { N_FORMATS = sizeof formats / sizeof *formats };

struct token_log {
  token_request request;
  const token_format *forced; /* given by --format; NULL: detected from the content */
  token_sources sources;
  size_t next_source;
  /* the current file */
  compressed_reader *reader; /* NULL: none */
  const char *file;
  token_source *source;             /* NULL: the log is a text in memory */
  const token_format *format;       /* NULL: not known yet */
  const token_format *batch_format; /* format of the batch in the builder */
  FILE *text;                       /* stream of token_log_open_text() */
  /* the current line */
  token_line line;
  bool has_line; /* the line has been read and is not yet in a batch */
  token_builder builder;
  token_log_summary about;
};

/* --- the table of formats --- */

size_t token_formats_count(void) {
  return N_FORMATS;
}

const char *token_format_name(size_t i) {
  assert(i < N_FORMATS);
  return formats[i]->name;
}

const char *token_format_title(size_t i) {
  assert(i < N_FORMATS);
  return formats[i]->title;
}

static gl_status find_by_name(const token_format **out, const char *name, gl_error *err) {
  const char *names[N_FORMATS];
  char hint[CFG_HINT_SIZE];
  *out = NULL;
  if (name == NULL) return GL_OK;
  for (size_t i = 0; i < N_FORMATS; ++i) {
    names[i] = formats[i]->name;
    if (strcmp(name, names[i]) == 0) *out = formats[i];
  }
  if (*out != NULL) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "--format %s: there is no such format of token-level logs%s; `gepolab list "
                 "formats` lists them",
                 name, cfg_hint(name, names, N_FORMATS, hint));
}

/* --- which format a line has --- */

/* Keys of a line, up to the place where it may be cut off. */
typedef struct line_keys {
  scan_piece key[64];
  size_t n;
} line_keys;

static void list_keys(line_keys *k, const token_line *line) {
  scan s;
  scan_piece value;
  scan_begin(&s, line->text, line->size);
  scan_enter(&s);
  for (k->n = 0; k->n < sizeof k->key / sizeof *k->key && scan_member(&s, &k->key[k->n], &value);)
    ++k->n;
}

static bool has_marks(const token_format *f, const line_keys *k) {
  size_t n = 0;
  for (const char *const *mark = f->marks; *mark != NULL; ++mark)
    for (size_t i = 0; i < k->n; ++i) n += token_is_key(k->key[i], *mark);
  return n >= f->least;
}

/* Other kinds of files that users give by mistake, recognised by their first bytes. */
static const struct {
  const char *bytes;
  size_t n;
  const char *what;
} others[] = {
    {"PAR1", 4,
     "is Parquet, which Python reads: gepolab.whatif(\"run.parquet\") of the package in python/"},
    {"PK\x03\x04", 4,
     "is a zip file, such as torch.save() writes; Python reads the dumps of slime and miles: "
     "gepolab.read_dump(\"0.pt\") of the package in python/"},
};

static gl_status refuse_unknown_format(const token_line *line, gl_error *err) {
  char known[400] = "";
  size_t at = 0;
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
    if (line->size >= others[i].n && memcmp(line->text, others[i].bytes, others[i].n) == 0)
      return gl_fail(err, GL_EINPUT, "%s: %s", line->file, others[i].what);
  for (size_t f = 0; f < N_FORMATS && at < sizeof known - 1; ++f) {
    const int n = snprintf(known + at, sizeof known - at, "%s%s (%s, %s, …)", f > 0 ? "; " : "",
                           formats[f]->name, formats[f]->marks[0], formats[f]->marks[1]);
    at += n > 0 ? (size_t)n : 0;
  }
  const bool is_object = line->text[strspn(line->text, " \t\r")] == '{';
  return token_refuse(
      line, line->text, err,
      "%s; formats of token-level logs, with keys of their lines: %s. A trainer's series of "
      "metrics "
      "has no tokens: `gepolab diagnose` reads it, and log_groups(\"run.jsonl\") of the package in "
      "python/ (TRL, verl) writes a log with tokens",
      is_object ? "this line has the keys of no known format" : "this line is no JSON object",
      known);
}

const char *token_format_of(const char *text, size_t size) {
  const char *start = text, *end = text + size, *name = NULL;
  while (start < end && strchr(" \t\r\n", *start) != NULL) ++start;
  const char *feed = memchr(start, '\n', (size_t)(end - start));
  const size_t n = (size_t)((feed != NULL ? feed : end) - start);
  char *line = MUST_ARRAY(char, n + 1, "a line of the log");
  line_keys keys;
  memcpy(line, start, n);
  list_keys(&keys, &(token_line){.text = line, .size = n});
  size_t found = 0;
  for (size_t i = 0; i < N_FORMATS; ++i)
    if (has_marks(formats[i], &keys)) name = formats[i]->name, ++found;
  free(line);
  return found == 1 ? name : NULL;
}

/* *out is NULL if the line has no known format and the file was only found in a folder. */
static gl_status format_of_line(const token_format **out, const token_log *log, gl_error *err) {
  const token_line *line = &log->line;
  const bool may_skip = log->source != NULL && log->source->in_folder;
  const token_format *second = NULL;
  line_keys keys;
  *out = may_skip ? NULL : log->forced;
  if (*out != NULL) return GL_OK;
  list_keys(&keys, line);
  for (size_t i = 0; i < N_FORMATS; ++i) {
    if (!has_marks(formats[i], &keys)) continue;
    if (log->forced == formats[i]) *out = formats[i];
    if (log->forced != NULL) continue;
    if (*out == NULL)
      *out = formats[i];
    else
      second = formats[i];
  }
  if (second != NULL)
    return token_refuse(line, line->text, err,
                        "this line has the keys of two formats, %s and %s; say which one with "
                        "--format",
                        (*out)->name, second->name);
  return *out != NULL || may_skip ? GL_OK : refuse_unknown_format(line, err);
}

static bool is_blank(const compressed_text *line) {
  return strspn(line->text, " \t\r\n") == line->size;
}

/* *is: the first line that is not blank has the keys of some format. */
static gl_status recognises_file(bool *is, const char *path, gl_error *err) {
  compressed_reader *reader = NULL;
  compressed_text text = {0};
  line_keys keys;
  *is = false;
  gl_status status = compressed_open(&reader, path, err);
  do {
    if (status == GL_OK) status = compressed_line(reader, &text, TOKEN_LOG_MOST_LINE, err);
  } while (status == GL_OK && text.text != NULL && is_blank(&text));
  if (status == GL_OK && text.text != NULL) {
    list_keys(&keys, &(token_line){.text = text.text, .size = text.size, .file = path});
    for (size_t i = 0; i < N_FORMATS; ++i) *is = *is || has_marks(formats[i], &keys);
  }
  compressed_close(reader);
  return status;
}

gl_status token_log_recognises(bool *is, const char *path, gl_error *err) {
  token_sources files = {0};
  gl_error why = {0};
  *is = false;
  gl_status status = token_sources_list(&files, &path, 1, &why);
  if (status != GL_OK && status != GL_EINPUT) gl_fail(err, status, "%s", why.text);
  const bool has_none = status == GL_EINPUT; /* a folder without files of that kind */
  if (has_none) status = GL_OK;
  for (size_t i = 0; i < files.n && status == GL_OK && !has_none && !*is; ++i)
    status = recognises_file(is, files.file[i].path, err);
  token_sources_fini(&files);
  return status;
}

/* --- files and lines --- */

static gl_status new_log(token_log **out, const token_request *request, gl_error *err) {
  token_log *log = *out = MUST_ARRAY(token_log, 1, "a log");
  log->request = *request;
  log->about = (token_log_summary){.first_step = NAN,
                                   .last_step = NAN,
                                   .first_time = NAN,
                                   .last_time = NAN,
                                   .group_least = SIZE_MAX};
  token_builder_init(&log->builder, &log->request);
  return find_by_name(&log->forced, request->format, err);
}

gl_status token_log_open(token_log **out, const char *const *paths, size_t n,
                         const token_request *request, gl_error *err) {
  gl_status status = new_log(out, request, err);
  return status == GL_OK ? token_sources_list(&(*out)->sources, paths, n, err) : status;
}

gl_status token_log_open_text(token_log **out, const char *text, size_t size, const char *name,
                              const token_request *request, gl_error *err) {
  gl_status status = new_log(out, request, err);
  if (status != GL_OK) return status;
  token_log *log = *out;
  log->text = must_have(size > 0 ? fmemopen((void *)(uintptr_t)text, size, "rb") : tmpfile(),
                        "a log's text");
  log->file = name;
  log->about.n_files = 1;
  return compressed_open_stream(&log->reader, log->text, name, err);
}

const char *token_log_skipped(const token_log *log, size_t i) {
  for (size_t k = 0; k < log->sources.n; ++k)
    if (log->sources.file[k].skipped && i-- == 0) return log->sources.file[k].path;
  return NULL;
}

void token_log_close(token_log *log) {
  if (log == NULL) return;
  compressed_close(log->reader);
  if (log->text != NULL) fclose(log->text);
  token_builder_fini(&log->builder);
  token_sources_fini(&log->sources);
  free(log);
}

static gl_status open_next_file(token_log *log, bool *opened, gl_error *err) {
  compressed_close(log->reader);
  log->reader = NULL;
  log->format = NULL;
  *opened = log->next_source < log->sources.n;
  if (!*opened) return GL_OK;
  log->source = &log->sources.file[log->next_source++];
  log->file = strcmp(log->source->path, "-") == 0 ? "standard input" : log->source->path;
  return compressed_open(&log->reader, log->source->path, err);
}

/* Whether the file was found in a folder of evaluations. */
static bool is_of_evaluation(const token_log *log) {
  const char *folder = log->format->evaluation;
  return folder != NULL && log->source != NULL && log->source->in_folder &&
         strstr(log->source->path, folder) != NULL;
}

/* Sets the file's format by its first line. */
static gl_status set_format(token_log *log, gl_error *err) {
  token_log_summary *about = &log->about;
  gl_status status = format_of_line(&log->format, log, err);
  if (status == GL_OK && log->format != NULL && is_of_evaluation(log)) log->format = NULL;
  if (status != GL_OK || log->format == NULL) return status;
  if (about->format != NULL && strcmp(about->format, log->format->name) != 0)
    return token_refuse(&log->line, log->line.text, err,
                        "this file has the format %s, and the files before it %s; give them one "
                        "after the other, or say with --format which files of a folder are read",
                        log->format->name, about->format);
  about->format = log->format->name;
  about->title = log->format->title;
  about->drops = log->format->drops;
  about->n_files += log->source != NULL;
  return GL_OK;
}

static void skip_file(token_log *log) {
  ++log->about.n_skipped;
  log->source->skipped = true;
  compressed_close(log->reader);
  log->reader = NULL;
}

/* Accepts the line that was read. *has is false if the line is blank or cut off, or the file is no
 * log. */
static gl_status accept_line(token_log *log, const compressed_text *text, bool *has,
                             gl_error *err) {
  *has = false;
  log->line = (token_line){.text = text->text,
                           .size = text->size,
                           .file = log->file,
                           .number = compressed_line_number(log->reader)};
  if (is_blank(text)) return GL_OK;
  gl_status status = log->format == NULL ? set_format(log, err) : GL_OK;
  if (status != GL_OK) return status;
  if (log->format == NULL) {
    skip_file(log);
    return GL_OK;
  }
  *has = text->has_end || !scan_is_cut(text->text, text->size);
  log->about.n_incomplete += !*has;
  if (!*has) token_builder_cut(&log->builder, log->file);
  return GL_OK;
}

static gl_status refuse_empty(const char *name, gl_error *err) {
  return gl_fail(err, GL_EINPUT,
                 "%s: there is no record in it of a format of token-level logs; gepolab's own has "
                 "lines {\"step\": 1, \"groups\": [{\"rewards\": […], \"logp\": [[…]], \"logq\": "
                 "[[…]]}]}",
                 name);
}

/* Ends a file and opens the next one. A file that the user named must have had a record. */
static gl_status end_file(token_log *log, bool *opened, gl_error *err) {
  const bool is_empty = log->format == NULL;
  if (is_empty && !log->source->in_folder) return refuse_empty(log->file, err);
  log->about.n_skipped += is_empty;
  log->source->skipped = is_empty;
  return open_next_file(log, opened, err);
}

/* Reads the next line of any file. *has is false at the end of the last file. */
static gl_status next_line(token_log *log, bool *has, gl_error *err) {
  gl_status status = GL_OK;
  for (*has = false; status == GL_OK && !*has;) {
    bool opened = true;
    compressed_text text = {0};
    if (log->reader == NULL) status = open_next_file(log, &opened, err);
    if (status == GL_OK && !opened) return GL_OK;
    if (status == GL_OK) status = compressed_line(log->reader, &text, TOKEN_LOG_MOST_LINE, err);
    if (status != GL_OK) return status;
    if (text.text != NULL)
      status = accept_line(log, &text, has, err);
    else if (log->text != NULL)
      return GL_OK;
    else
      status = end_file(log, &opened, err);
    if (!opened) return status;
  }
  return status;
}

/* --- batches --- */

/* Adds the batch to the summary of the log. */
static void count_batch(token_log *log) {
  token_log_summary *about = &log->about;
  const token_batch *b = &log->builder.batch;
  ++about->n_batches;
  about->n_restarts += b->step < about->last_step;
  if (isnan(about->first_step)) about->first_step = b->step;
  if (!isnan(b->step)) about->last_step = b->step;
  if (isnan(about->first_time)) about->first_time = b->time_s;
  if (!isnan(b->time_s)) about->last_time = b->time_s;
  about->grouping = b->grouping;
  about->has_rewards = b->has_rewards;
  for (size_t g = 0; g < b->input.n_groups; ++g) {
    const size_t n = b->input.group_start[g + 1] - b->input.group_start[g];
    if (n < about->group_least) about->group_least = n;
    if (n > about->group_most) about->group_most = n;
  }
}

/* Extends the batch's range of lines by the line. */
static void place_line(token_batch *to, const token_line *line) {
  if (to->n_lines++ == 0) to->first_file = line->file, to->first_line = line->number;
  to->last_file = line->file, to->last_line = line->number;
}

/* Adds lines to the builder until the batch is complete. `lines` receives their range. */
static gl_status fill_batch(token_log *log, token_batch *lines, gl_error *err) {
  gl_status status = GL_OK;
  token_builder_clear(&log->builder);
  for (bool next = false; status == GL_OK && !next;) {
    if (!log->has_line) status = next_line(log, &log->has_line, err);
    if (status != GL_OK || !log->has_line) return status;
    if (!next) log->batch_format = log->format;
    status = log->format->read(&log->builder, &log->line, &next, err);
    log->has_line = next;
    if (status == GL_OK && !next) place_line(lines, &log->line);
  }
  return status;
}

static gl_status check_any(const token_log *log, gl_error *err) {
  if (log->about.n_batches > 0) return GL_OK;
  const char *skipped = token_log_skipped(log, 0);
  if (skipped != NULL)
    return gl_fail(
        err, GL_EINPUT,
        "%zu %s of the folder %s no format of token-level logs; give %s by its name to see "
        "what is wrong with it",
        log->about.n_skipped, log->about.n_skipped == 1 ? "file" : "files",
        log->about.n_skipped == 1 ? "has" : "have", skipped);
  const char *name = log->sources.n > 1 ? "these files" : log->file != NULL ? log->file : "the log";
  return refuse_empty(name, err);
}

gl_status token_log_next(token_log *log, const token_batch **batch, gl_error *err) {
  token_builder *b = &log->builder;
  *batch = NULL;
  for (;;) {
    token_batch lines = {.n_lines = 0};
    gl_status status = fill_batch(log, &lines, err);
    if (status != GL_OK) return status;
    if (token_builder_is_empty(b)) return check_any(log, err);
    if (log->batch_format->check != NULL) status = log->batch_format->check(b, err);
    if (status == GL_OK) status = token_builder_finish(b, err);
    if (status != GL_OK) return status;
    b->batch.first_file = lines.first_file, b->batch.first_line = lines.first_line;
    b->batch.last_file = lines.last_file, b->batch.last_line = lines.last_line;
    b->batch.n_lines = lines.n_lines;
    log->about.n_untrained += b->batch.n_untrained;
    if (b->batch.input.n_responses == 0) continue;
    count_batch(log);
    *batch = &b->batch;
    return GL_OK;
  }
}

gl_status token_log_check(token_log *log, gl_error *err) {
  const token_batch *batch = &log->builder.batch;
  const char *file = batch->sample != NULL ? batch->sample[0].file : log->file;
  if (!batch->has_logs)
    return gl_fail(err, GL_EINPUT,
                   "%s: %s has no log-probabilities of tokens, which algorithms need; it has "
                   "rewards, lengths and versions",
                   file, log->about.title);
  if (!batch->has_rewards && batch->advantages_vary)
    return gl_fail(err, GL_EINPUT,
                   "%s: the log has no rewards, and its advantages differ between the tokens of a "
                   "response; an algorithm needs rewards, or one advantage for each response",
                   file);
  return GL_OK;
}

void token_log_incomplete(char text[TOKEN_INCOMPLETE_SIZE], size_t n_incomplete) {
  *text = '\0';
  if (n_incomplete > 0)
    snprintf(text, TOKEN_INCOMPLETE_SIZE, "%zu log%s: last line incomplete, left out", n_incomplete,
             n_incomplete == 1 ? "" : "s");
}

gl_status token_group_size_check(size_t group_size, bool has_log, const char *path, gl_error *err) {
  if (has_log || group_size == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "--group-size is for token-level logs, and %s is none", path);
}

const token_log_summary *token_log_about(token_log *log) {
  snprintf(log->about.unread, sizeof log->about.unread, "%s", log->builder.unread);
  return &log->about;
}
