/* Implements `include: FILE` at the top of a recipe: merges the recipe onto the recipes it
 * includes. */
#include "core/config/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A recipe being read, linked to the one that includes it. */
typedef struct link {
  const struct link *from; /* NULL: the outermost recipe */
  cfg_position at;         /* position of its name in the include */
  const char *path;        /* path of its file; NULL: from the library, or a text */
  const char *name;        /* name in the library; NULL: a file */
  const char *prefix;      /* path from the folder of the outermost recipe to its own: "base/" */
  struct stat file;
  size_t depth;
} link;

typedef struct including {
  cfg_doc *doc;
  const cfg_library *library;
  const cfg_node *below; /* the recipe onto which another is merged */
  size_t files, bytes;
  gl_error *err;
} including;

/* --- merging --- */

enum { PATH_SIZE = 1024 };

static int by_entry_key(const void *a, const void *b) {
  const cfg_entry *const *x = a, *const *y = b;
  return strcmp((*x)->key, (*y)->key);
}

/* The entries of a map sorted by key; NULL if out of memory. The caller frees the array. */
static cfg_entry **sorted_entries(cfg_node *map) {
  cfg_entry **order = calloc(map->n + 1, sizeof *order);
  for (size_t i = 0; order != NULL && i < map->n; ++i) order[i] = &map->entry[i];
  if (order != NULL) qsort(order, map->n, sizeof *order, by_entry_key);
  return order;
}

static gl_status merge_maps(including *in, cfg_node *under, cfg_node *over, char path[PATH_SIZE],
                            size_t length);

/* Merges one entry onto the entry with the same key below. */
static gl_status merge_entry(including *in, cfg_entry *under, cfg_entry *over, char path[PATH_SIZE],
                             size_t length) {
  const bool is_axis = strncmp(path, "sweep.", 6) == 0;
  if (over->value->kind == CFG_MAP && !is_axis && !fields_is_one_value(path)) {
    gl_status status = cfg_lengthen(in->doc, in->below, &under->value, path, in->err);
    if (status != GL_OK) return status;
    if (under->value->kind == CFG_MAP)
      return merge_maps(in, under->value, over->value, path, length);
  }
  *under = *over;
  return GL_OK;
}

/* path[length] is the path of the maps; "" at the top. */
static gl_status merge_maps(including *in, cfg_node *under, cfg_node *over, char path[PATH_SIZE],
                            size_t length) {
  cfg_entry **known = sorted_entries(under);
  if (known == NULL) return gl_fail_memory(in->err, "a recipe");
  const size_t n_known = under->n;
  gl_status status = GL_OK;
  /* appending may move under->entry, so changes in place are made first */
  for (int append = 0; append < 2; ++append)
    for (size_t i = 0; i < over->n && status == GL_OK; ++i) {
      cfg_entry *e = &over->entry[i], *const *same = NULL;
      if (append && e->value == NULL) continue; /* already merged */
      const cfg_entry *const wanted = e;
      if (!append) same = bsearch(&wanted, known, n_known, sizeof *known, by_entry_key);
      if (!append && same == NULL) continue;
      int added =
          snprintf(path + length, PATH_SIZE - length, "%s%s", length > 0 ? "." : "", e->key);
      if (added < 0 || (size_t)added >= PATH_SIZE - length)
        status = cfg_fail_at(&e->key_at, in->err, "the path to this key is longer than %d bytes",
                             PATH_SIZE - 1);
      else if (append)
        status = cfg_append(in->doc, under, e->key, e->key_at, e->value, in->err);
      else {
        status = merge_entry(in, *same, e, path, length + (size_t)added);
        e->value = NULL;
      }
      path[length] = '\0';
    }
  free(known);
  return status;
}

/* --- file names in included recipes --- */
/* A cell is one recipe in one folder, so file names in an included recipe become relative to the
 * folder of the outermost recipe. */

/* Concatenates head[length] and tail; owned by the doc. NULL, with *err set, if out of memory. */
static const char *joined(including *in, const char *head, size_t length, const char *tail) {
  const size_t size = length + strlen(tail) + 1;
  char *text = cfg_alloc(in->doc, size);
  if (text == NULL) {
    gl_fail_memory(in->err, "a recipe's path");
    return NULL;
  }
  if (length > 0) memcpy(text, head, length);
  memcpy(text + length, tail, strlen(tail) + 1);
  return text;
}

/* Prepends the recipe's folder (prefix) to a relative file name if the file exists beside that
 * recipe. Other names are unchanged. */
static gl_status name_file(including *in, cfg_node *scalar, const char *prefix) {
  if (scalar->text[0] == '/' || scalar->text[0] == '\0') return GL_OK;
  char *found = cfg_locate(scalar, scalar->text);
  if (found == NULL) return gl_fail_memory(in->err, "a file name");
  const int beside = strcmp(found, scalar->text) != 0; /* the folder of its recipe was prepended */
  free(found);
  if (!beside) return GL_OK;
  const char *text = joined(in, prefix, strlen(prefix), scalar->text);
  if (text == NULL) return in->err->status;
  scalar->text = text;
  return GL_OK;
}

typedef struct renaming {
  including *in;
  const char *prefix;
} renaming;

static gl_status rename_file(void *self, cfg_node *node, const cfg_visited *at) {
  const renaming *r = self;
  return node->kind == CFG_SCALAR && at->is_file ? name_file(r->in, node, r->prefix) : GL_OK;
}

/* --- reading --- */

static gl_status expand(including *in, cfg_node *root, const link *self);

/* Length of the folder part of `path`, with its slash: "a/b.yaml" is in "a/". */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static gl_status refuse_cycle(including *in, const link *self) {
  for (const link *l = self->from; l != NULL; l = l->from) {
    const int same_file = self->path != NULL && l->path != NULL &&
                          self->file.st_dev == l->file.st_dev &&
                          self->file.st_ino == l->file.st_ino;
    const int same_name = self->name != NULL && l->name != NULL && strcmp(self->name, l->name) == 0;
    if (same_file || same_name)
      return cfg_fail_at(&self->at, in->err,
                         "'%s' is included while it is being read itself, a cycle; take one of the "
                         "includes out",
                         self->path != NULL ? self->path : self->name);
  }
  return GL_OK;
}

/* Reads the file into malloc'd *text. */
static gl_status read_text(including *in, const link *self, char **text, size_t *size) {
  FILE *file = fopen(self->path, "rb");
  *text = NULL;
  *size = 0;
  if (file == NULL)
    return cfg_fail_at(&self->at, in->err, "'%s' cannot be read: %s; include a recipe that may be",
                       self->path, strerror(errno));
  const size_t most = CFG_MAX_BYTES - in->bytes;
  *text = malloc(most + 1);
  if (*text != NULL) *size = fread(*text, 1, most + 1, file);
  const int failed = ferror(file);
  fclose(file);
  if (*text == NULL) return gl_fail_memory(in->err, "a recipe's text");
  if (failed)
    return gl_fail(in->err, GL_EIO, "%s:1:1: cannot be read: %s", self->path, strerror(errno));
  return GL_OK;
}

static gl_status refuse_excess(including *in, const link *self, size_t size) {
  in->bytes = size > CFG_MAX_BYTES - in->bytes ? CFG_MAX_BYTES + 1 : in->bytes + size;
  if (in->bytes <= CFG_MAX_BYTES && ++in->files <= CFG_MAX_INCLUDES) return GL_OK;
  return cfg_fail_at(&self->at, in->err,
                     "with '%s' the recipe includes more than the %d files or %d MiB that it may; "
                     "is it a recipe?",
                     self->path != NULL ? self->path : self->name, CFG_MAX_INCLUDES,
                     CFG_MAX_BYTES >> 20);
}

/* Parses one included recipe, expands its includes, and makes its file names relative to the
 * outermost recipe. */
static gl_status compose_included(including *in, const link *self, const char *shown,
                                  const char *text, size_t size, cfg_node **out) {
  gl_error why = {0}, *outer = in->err;
  gl_status status = refuse_excess(in, self, size);
  if (status != GL_OK) return status;
  in->err = &why;
  status = cfg_load_into(in->doc, text, size, shown, self->path, out, in->err);
  if (status == GL_OK && self->prefix[0] != '\0') {
    renaming r = {in, self->prefix};
    status = cfg_visit(*out, rename_file, &r, in->err);
  }
  if (status == GL_OK) status = expand(in, *out, self);
  in->err = outer;
  if (status == GL_OK) return GL_OK;
  return gl_fail(outer, status, "%.700s, included from %.120s:%zu:%zu", why.text,
                 self->at.source->name, self->at.line, self->at.column);
}

static gl_status include_file(including *in, link *self, cfg_node **out) {
  if (stat(self->path, &self->file) != 0)
    return cfg_fail_at(&self->at, in->err,
                       "'%s' cannot be included: %s; name a file (looked for beside this one) or a "
                       "recipe that `gepolab list recipes` lists",
                       self->path, strerror(errno));
  if (!S_ISREG(self->file.st_mode))
    return cfg_fail_at(&self->at, in->err, "'%s' is %s; only a regular file can be included",
                       self->path, S_ISDIR(self->file.st_mode) ? "a folder" : "no regular file");
  char *text = NULL;
  size_t size = 0;
  gl_status status = refuse_cycle(in, self);
  if (status == GL_OK) status = read_text(in, self, &text, &size);
  if (status == GL_OK) status = compose_included(in, self, self->path, text, size, out);
  free(text);
  return status;
}

/* Reads the recipe called `name`: a word without '/' and '.' that the library contains is one of
 * its recipes; anything else is a file, relative to the recipe that names it. */
static gl_status include_one(including *in, const cfg_node *name, const link *from,
                             cfg_node **out) {
  const char *text = name->text, *data = NULL, *shown = NULL;
  size_t size = 0;
  link self = {.from = from, .at = name->at, .depth = from->depth + 1, .prefix = ""};
  if (name->kind != CFG_SCALAR || text[0] == '\0' || cfg_value_of(name).kind >= CFG_REAL)
    return cfg_fail(name, in->err,
                    "'include' has %s here; name a recipe, as in include: base.yaml or include: "
                    "[one.yaml, other.yaml]",
                    cfg_describe(name));
  if (self.depth > CFG_MAX_INCLUDE_DEPTH)
    return cfg_fail(name, in->err, "includes go deeper than the %d levels a recipe may have",
                    CFG_MAX_INCLUDE_DEPTH);
  const int is_word = strpbrk(text, "/.") == NULL;
  if ((is_word || from->path == NULL) && in->library != NULL &&
      in->library->find(in->library->self, text, &data, &size, &shown)) {
    self.name = text;
    gl_status status = refuse_cycle(in, &self);
    return status == GL_OK ? compose_included(in, &self, shown, data, size, out) : status;
  }
  if (from->path == NULL)
    return cfg_fail(name, in->err,
                    "there is no recipe '%s' inside the program, and only a recipe that is a file "
                    "can include files; `gepolab list recipes` lists what there is",
                    text);
  const size_t folder = folder_length(from->path), own = folder_length(text);
  const int absolute = text[0] == '/';
  const char *below = joined(in, text, own, "");
  if (below == NULL) return in->err->status;
  self.path = joined(in, from->path, absolute ? 0 : folder, text);
  self.prefix = joined(in, from->prefix, absolute ? 0 : strlen(from->prefix), below);
  if (self.path == NULL || self.prefix == NULL) return in->err->status;
  return include_file(in, &self, out);
}

/* Moves definitions to a key of their own, so that merging keeps both those of algorithms and a
 * selection of algorithms. */
static void set_definitions_aside(cfg_node *root) {
  const own_kind *kind;
  for (size_t i = 0; (kind = fields_own_at(i)) != NULL; ++i) {
    cfg_entry *entry = cfg_entry_of(root, kind->key, strlen(kind->key));
    if (entry != NULL && entry->value->kind == CFG_MAP && cfg_find(entry->value, "base") == NULL)
      entry->key = kind->aside;
  }
}

/* Replaces the include of root, if any, by the content of the included recipes. */
static gl_status expand(including *in, cfg_node *root, const link *self) {
  set_definitions_aside(root);
  cfg_entry *entry = cfg_entry_of(root, "include", 7);
  cfg_node *base = NULL;
  char path[PATH_SIZE] = "";
  if (entry == NULL) return GL_OK;
  cfg_node *names = entry->value;
  memmove(entry, entry + 1, (size_t)(root->entry + root->n - entry - 1) * sizeof *entry);
  --root->n;
  if (cfg_is_null(names)) return GL_OK;
  if (names->kind == CFG_LIST && names->n == 0)
    return cfg_fail(names, in->err, "'include' is an empty list; name a recipe or leave it out");
  const size_t n = names->kind == CFG_LIST ? names->n : 1;
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    cfg_node *next = NULL;
    status = include_one(in, names->kind == CFG_LIST ? names->entry[i].value : names, self, &next);
    in->below = base;
    if (status == GL_OK && base != NULL) status = merge_maps(in, base, next, path, 0);
    if (base == NULL) base = next;
  }
  in->below = base;
  if (status == GL_OK) status = merge_maps(in, base, root, path, 0);
  if (status != GL_OK) return status;
  root->entry = base->entry;
  root->n = base->n;
  root->capacity = base->capacity;
  return GL_OK;
}

gl_status cfg_include(cfg_doc *doc, const cfg_library *library, gl_error *err) {
  gl_error why = {0};
  including in = {.doc = doc, .library = library, .err = &why};
  link self = {.path = cfg_source_path(doc->root), .prefix = ""};
  if (self.path != NULL && stat(self.path, &self.file) != 0) self.path = NULL;
  gl_status status = expand(&in, doc->root, &self);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}

/* --- merging sections --- */

/* Wraps value in the maps of the dotted path. NULL, with *err set, on failure. */
static cfg_node *wrapped(cfg_doc *doc, cfg_node *value, const char *path, gl_error *err) {
  for (size_t end = strlen(path); value != NULL && end > 0;) {
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '.') --begin;
    const char *key = cfg_strdup(doc, path + begin, end - begin);
    cfg_node *map = key != NULL ? cfg_node_new(doc, CFG_MAP, value->at, err) : NULL;
    if (key == NULL) gl_fail_memory(err, "a recipe");
    if (map == NULL || cfg_append(doc, map, key, value->at, value, err) != GL_OK) return NULL;
    value = map;
    end = begin > 0 ? begin - 1 : 0;
  }
  return value;
}

static gl_status overlay(cfg_doc *doc, const char *name, const cfg_node *section, const char *below,
                         const cfg_node *over, gl_error *err) {
  char path[PATH_SIZE] = "";
  cfg_node *under = cfg_node_copy(doc, section, err);
  if (under != NULL) under = wrapped(doc, under, name, err);
  cfg_node *top = under != NULL ? cfg_node_copy(doc, over, err) : NULL;
  if (top != NULL) top = wrapped(doc, top, below, err);
  if (top != NULL) top = wrapped(doc, top, name, err);
  if (top == NULL) return err->status;
  including in = {.doc = doc, .below = under, .err = err};
  doc->root = under;
  return merge_maps(&in, under, top, path, 0);
}

gl_status cfg_overlay(cfg_doc **out, const char *name, const cfg_node *section, const char *path,
                      const cfg_node *over, gl_error *err) {
  gl_error why = {0};
  *out = NULL;
  cfg_doc *doc = cfg_doc_new();
  if (doc == NULL) return gl_fail_memory(err, "a recipe");
  gl_status status = overlay(doc, name, section, path, over, &why);
  if (status == GL_OK) {
    *out = doc;
    return GL_OK;
  }
  cfg_free(doc);
  return gl_fail(err, status, "%s", why.text);
}

/* --- absolute file names --- */

/* Replaces the name of an existing file by its absolute path. */
static gl_status settle(void *self, cfg_node *node, const cfg_visited *at) {
  cfg_doc *doc = self;
  if (!at->is_file || node->kind != CFG_SCALAR) return GL_OK;
  char *found = cfg_locate(node, node->text), *whole = found != NULL ? realpath(found, NULL) : NULL;
  if (whole != NULL) {
    const char *own = cfg_strdup(doc, whole, strlen(whole));
    if (own != NULL) node->text = own, node->plain = 0;
    free(found), free(whole);
    return own != NULL ? GL_OK : GL_ENOMEM;
  }
  const int lost = found == NULL;
  free(found);
  return lost ? GL_ENOMEM : GL_OK;
}

gl_status cfg_settle_files(cfg_doc *doc, gl_error *err) {
  gl_status status = cfg_visit(doc->root, settle, doc, err);
  return status == GL_OK ? GL_OK : gl_fail_memory(err, "names of files");
}

/* --- files of a recipe: those read for it, and data files that its fields name --- */

typedef struct seeing {
  gl_status (*see)(void *self, const char *path, gl_error *err);
  void *self;
  gl_error *err;
} seeing;

static gl_status see_named(void *self, cfg_node *node, const cfg_visited *at) {
  const seeing *s = self;
  if (!at->is_file || node->kind != CFG_SCALAR) return GL_OK;
  char *found = cfg_locate(node, node->text);
  if (found == NULL) return gl_fail_memory(s->err, "names of files");
  const gl_status status = s->see(s->self, found, s->err);
  free(found);
  return status;
}

gl_status cfg_files(const cfg_doc *doc,
                    gl_status (*see)(void *self, const char *path, gl_error *err), void *self,
                    gl_error *err) {
  seeing s = {see, self, err};
  gl_status status = GL_OK;
  for (const cfg_source *at = doc->sources; at != NULL && status == GL_OK; at = at->next)
    if (at->path != NULL) status = see(self, at->path, err);
  return status == GL_OK ? cfg_visit(doc->root, see_named, &s, err) : status;
}
