/* Merge keys and includes: what wins, where a value says it stood, and what is refused. */
#include "core/config/config.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("core: config include");

static int same_canonical(const cfg_doc *doc, const char *wanted) {
  char *text = cfg_canonical(cfg_root(doc));
  const int same = text != NULL && strcmp(text, wanted) == 0;
  if (!same) fprintf(stderr, "wanted %s\n   got %s\n", wanted, text != NULL ? text : "nothing");
  free(text);
  return same;
}

static int is_refused(gl_status status, const gl_error *err, const char *place, const char *says) {
  const int ok = status == GL_EINPUT && err->status == GL_EINPUT &&
                 strstr(err->text, place) == err->text && strstr(err->text, says) != NULL;
  if (!ok) fprintf(stderr, "wanted '%s… %s'\n   got %d '%s'\n", place, says, status, err->text);
  return ok;
}

/* --- merge keys --- */

typedef struct pair {
  const char *text, *canonical;
} pair;

TEST(merge_keys_are_those_of_yaml_1_1) {
  static const pair cases[] = {
      {"a: &x {m: 1, n: 2}\nb: {<<: *x, n: 3}",
       "{\"a\":{\"m\":1,\"n\":2},\"b\":{\"m\":1,\"n\":3}}"},
      {"a: &x {m: 1}\nb: {m: 3, <<: *x}", "{\"a\":{\"m\":1},\"b\":{\"m\":3}}"},
      {"a: &x {m: 1, o: 1}\nb: &y {m: 2, n: 2}\nc: {<<: [*x, *y]}",
       "{\"a\":{\"m\":1,\"o\":1},\"b\":{\"m\":2,\"n\":2},\"c\":{\"m\":1,\"n\":2,\"o\":1}}"},
      {"a: &x {m: 1}\nb: &y {<<: *x, n: 2}\nc:\n  <<: *y\n  k: 0\n",
       "{\"a\":{\"m\":1},\"b\":{\"m\":1,\"n\":2},\"c\":{\"k\":0,\"m\":1,\"n\":2}}"},
      {"b: {<<: {m: 1}, n: 2}", "{\"b\":{\"m\":1,\"n\":2}}"},
      {"b: {<<: [], n: 2}", "{\"b\":{\"n\":2}}"},
      {"b: {<<: {}, n: 2}", "{\"b\":{\"n\":2}}"},
      {"b: {'<<': {m: 1}}", "{\"b\":{\"<<\":{\"m\":1}}}"}, /* in quotes it is a key */
      {"a: &x {m: {k: 1}}\nb: {<<: *x, m: {l: 2}}",
       "{\"a\":{\"m\":{\"k\":1}},\"b\":{\"m\":{\"l\":2}}}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    gl_status status = cfg_load_text(&doc, cases[i].text, strlen(cases[i].text), "r.yaml", &err);
    if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_FATAL(status == GL_OK);
    CU_ASSERT(same_canonical(doc, cases[i].canonical));
    cfg_free(doc);
  }
}

TEST(merged_entries_stand_in_the_merge_keys_place_and_keep_their_own) {
  static const char text[] = "x: &x\n  m: 1\n  n: 2\nsweep:\n  a: 0\n  <<: *x\n  b: 3\n";
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err) == GL_OK);
  const cfg_node *sweep = cfg_find(cfg_root(doc), "sweep");
  static const char *const order[] = {"a", "m", "n", "b"};
  CU_ASSERT_EQUAL_FATAL(cfg_size(sweep), 4);
  for (size_t i = 0; i < 4; ++i) CU_ASSERT_STRING_EQUAL(cfg_key_at(sweep, i), order[i]);
  cfg_fail(cfg_find(sweep, "n"), &err, "here");
  CU_ASSERT_STRING_EQUAL(err.text, "r.yaml:3:6: here");
  /* a key that nobody knows is named where it was written, not where it was merged */
  gl_error_clear(&err);
  cfg_reader r;
  cfg_begin(&r, sweep, "sweep", &err);
  cfg_int(&r, "a", 0, 0, 9), cfg_int(&r, "b", 0, 0, 9), cfg_int(&r, "m", 0, 0, 9);
  CU_ASSERT(is_refused(cfg_end(&r), &err, "r.yaml:3:3: ", "unknown key 'n'"));
  cfg_free(doc);
}

TEST(wrong_merges_are_refused) {
  static const char *const cases[][3] = {
      {"a: &x 3\nb: {<<: *x}", "r.yaml:2:5: ", "has a number here; give it a map"},
      {"b: {<<: text}", "r.yaml:1:5: ", "has text here"},
      {"b: {<<: }", "r.yaml:1:5: ", "has nothing here"},
      {"b: {<<: [{a: 1}, 2]}", "r.yaml:1:5: ", "a number here in its list"},
      {"b: {<<: [[{a: 1}]]}", "r.yaml:1:5: ", "a list here in its list"},
      {"b: &b {<<: *b}", "r.yaml:1:12: ", "a cycle"},
      {"b: {<<: *nowhere}", "r.yaml:1:9: ", "no anchor"},
      {"b: {<<: {a: 1}, <<: {b: 1}}", "r.yaml:1:17: ", "is twice"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    CU_ASSERT(is_refused(cfg_load_text(&doc, cases[i][0], strlen(cases[i][0]), "r.yaml", &err),
                         &err, cases[i][1], cases[i][2]));
    CU_ASSERT_PTR_NULL(doc);
  }
}

/* --- includes --- */

/* A folder of recipes, removed by close_folder(). */
typedef struct folder {
  char path[64];
} folder;

static folder open_folder(void) {
  folder f;
  snprintf(f.path, sizeof f.path, "/tmp/gepolab-include-XXXXXX");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f.path));
  return f;
}

static void close_folder(const folder *f) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", f->path);
  CU_ASSERT_EQUAL(system(command), 0);
}

static void path_of(const folder *f, const char *name, char path[256]) {
  snprintf(path, 256, "%s/%s", f->path, name);
}

static void put_bytes(const folder *f, const char *name, const char *data, size_t size) {
  char path[256];
  path_of(f, name, path);
  FILE *to = fopen(path, "wb");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT_EQUAL_FATAL(fwrite(data, 1, size, to), size);
  CU_ASSERT_EQUAL_FATAL(fclose(to), 0);
}

static void put(const folder *f, const char *name, const char *text) {
  put_bytes(f, name, text, strlen(text));
}

static int find_shipped(void *self, const char *name, const char **text, size_t *size,
                        const char **shown) {
  static const char base[] = "steps: 7\nworld: {kind: bandit, arms: 3}\n",
                    loop[] = "include: loop\n", more[] = "include: base\nsteps: 8\n",
                    file[] = "include: file.yaml\n";
  const char *const all[][2] = {{"base", base}, {"loop", loop}, {"more", more}, {"file", file}};
  (void)self;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (strcmp(all[i][0], name) == 0) {
      *text = all[i][1];
      *size = strlen(*text);
      *shown = name;
      return 1;
    }
  return 0;
}

static const cfg_library shipped = {.find = find_shipped};

static gl_status load(cfg_doc **doc, const folder *f, const char *name, gl_error *err) {
  char path[256];
  path_of(f, name, path);
  gl_status status = cfg_load_file(doc, path, err);
  return status == GL_OK ? cfg_include(*doc, &shipped, err) : status;
}

static void check_loaded(const folder *f, const char *name, const char *canonical) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = load(&doc, f, name, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(status == GL_OK);
  CU_ASSERT(same_canonical(doc, canonical));
  cfg_free(doc);
}

/* place: behind the folder's name. */
static void check_refused(const folder *f, const char *name, const char *place, const char *says) {
  char whole[256];
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = load(&doc, f, name, &err);
  path_of(f, place, whole);
  CU_ASSERT(is_refused(status, &err, whole, says));
  cfg_free(doc);
}

TEST(the_including_recipe_wins_and_a_later_include_over_an_earlier) {
  folder f = open_folder();
  put(&f, "a.yaml", "steps: 1\ntrain: {groups: 1, group_size: 1}\nname: a\n");
  put(&f, "b.yaml", "train: {groups: 2}\nname: b\n");
  put(&f, "one.yaml", "include: a.yaml\ntrain: {group_size: 9}\n");
  check_loaded(&f, "one.yaml",
               "{\"name\":\"a\",\"steps\":1,\"train\":{\"group_size\":9,\"groups\":1}}");
  put(&f, "two.yaml", "name: two\ninclude: [a.yaml, b.yaml]\ntrain: {group_size: 9}\n");
  check_loaded(&f, "two.yaml",
               "{\"name\":\"two\",\"steps\":1,\"train\":{\"group_size\":9,\"groups\":2}}");
  put(&f, "three.yaml", "include: two.yaml\nsteps: 3\ntrain: ~\n");
  check_loaded(&f, "three.yaml", "{\"name\":\"two\",\"steps\":3,\"train\":null}");
  put(&f, "none.yaml", "include: ~\nsteps: 3\n");
  check_loaded(&f, "none.yaml", "{\"steps\":3}");
  put(&f, "shipped.yaml", "include: [more]\nworld: {arms: 4}\n");
  check_loaded(&f, "shipped.yaml", "{\"steps\":8,\"world\":{\"arms\":4,\"kind\":\"bandit\"}}");
  put(&f, "twice.yaml", "include: [a.yaml, a.yaml]\n"); /* no cycle */
  check_loaded(&f, "twice.yaml",
               "{\"name\":\"a\",\"steps\":1,\"train\":{\"group_size\":1,\"groups\":1}}");
  close_folder(&f);
}

TEST(a_value_is_replaced_whole_and_a_section_merged) {
  folder f = open_folder();
  put(&f, "a.yaml",
      "algorithm: gepo\ncluster: {delay: {distribution: lognormal, interval: [60, 1800]}, window: "
      "4}\n"
      "sweep: {cluster.max_delay: {from: 0, to: 60, n: 3, scale: linear}, seed: [1, 2]}\n");
  put(&f, "b.yaml",
      "include: a.yaml\nalgorithm: {clip: none}\ncluster: {delay: {distribution: weibull, scale: "
      "5}}\n"
      "sweep: {cluster.max_delay: {from: 1, to: 2, n: 2}, steps: [3]}\n");
  check_loaded(&f, "b.yaml",
               "{\"algorithm\":{\"base\":\"gepo\",\"clip\":\"none\"},"
               "\"cluster\":{\"delay\":{\"distribution\":\"weibull\",\"scale\":5},\"window\":4},"
               "\"sweep\":{\"cluster.max_delay\":{\"from\":1,\"n\":2,\"to\":2},\"seed\":[1,2],"
               "\"steps\":[3]}}");
  put(&f, "c.yaml", "include: b.yaml\nalgorithm: grpo\n"); /* a word takes the fields away */
  cfg_doc *doc = NULL;
  ASSERT_OK(load(&doc, &f, "c.yaml", &err));
  CU_ASSERT_STRING_EQUAL(cfg_text(cfg_find(cfg_root(doc), "algorithm")), "grpo");
  cfg_free(doc);
  close_folder(&f);
}

TEST(every_value_says_in_which_file_it_stood) {
  folder f = open_folder();
  char wanted[256];
  put(&f, "a.yaml", "steps: 1\ntrain:\n  groups: 1\n");
  put(&f, "b.yaml", "include: a.yaml\ntrain: {group_size: 9}\n");
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(load(&doc, &f, "b.yaml", &err) == GL_OK);
  cfg_fail(cfg_find(cfg_root(doc), "train.groups"), &err, "here");
  path_of(&f, "a.yaml:3:11: here", wanted);
  CU_ASSERT_STRING_EQUAL(err.text, wanted);
  gl_error_clear(&err);
  cfg_fail(cfg_find(cfg_root(doc), "train.group_size"), &err, "here");
  path_of(&f, "b.yaml:2:21: here", wanted);
  CU_ASSERT_STRING_EQUAL(err.text, wanted);
  path_of(&f, "b.yaml", wanted);
  CU_ASSERT_STRING_EQUAL(cfg_source_path(cfg_root(doc)), wanted);
  cfg_free(doc);
  close_folder(&f);
}

/* A cell is read beside the including recipe, so the file has to be named from there. */
TEST(a_file_beside_an_included_recipe_stays_that_file) {
  folder f = open_folder();
  char inner[256];
  path_of(&f, "inner", inner);
  CU_ASSERT_EQUAL_FATAL(mkdir(inner, 0777), 0);
  put(&f, "inner/data.jsonl", "{}\n");
  put(&f, "inner/delays.csv", "1\n");
  put(&f, "inner/a.yaml",
      "world: {kind: llm, task: {kind: math, path: data.jsonl, held_out_path: nowhere.jsonl}}\n"
      "cluster: {delay: {distribution: empirical, file: delays.csv}}\nname: data.jsonl\n"
      "sweep: {world.task.path: [data.jsonl, ../inner/data.jsonl]}\n");
  put(&f, "b.yaml", "include: inner/a.yaml\n");
  check_loaded(
      &f, "b.yaml",
      "{\"cluster\":{\"delay\":{\"distribution\":\"empirical\",\"file\":\"inner/delays.csv\"}},"
      "\"name\":\"data.jsonl\","
      "\"sweep\":{\"world.task.path\":[\"inner/data.jsonl\",\"inner/../inner/data.jsonl\"]},"
      "\"world\":{\"kind\":\"llm\",\"task\":{\"held_out_path\":\"nowhere.jsonl\",\"kind\":"
      "\"math\",\"path\":\"inner/data.jsonl\"}}}");
  close_folder(&f);
}

TEST(wrong_includes_are_refused_with_the_way_there) {
  folder f = open_folder();
  char path[256], text[128];
  put(&f, "self.yaml", "steps: 1\ninclude: self.yaml\n");
  check_refused(&f, "self.yaml", "self.yaml:2:10: ", "a cycle");
  put(&f, "link.yaml", "include: one.yaml\n");
  put(&f, "one.yaml", "include: ./link.yaml\n");
  check_refused(&f, "link.yaml", "one.yaml:1:10: ", "link.yaml:1:10");
  put(&f, "missing.yaml", "include: [nowhere.yaml]\n");
  check_refused(&f, "missing.yaml", "missing.yaml:1:11: ", "No such file");
  put(&f, "word.yaml", "include: nowhere\n");
  check_refused(&f, "word.yaml", "word.yaml:1:10: ", "`gepolab list recipes`");
  put(&f, "folder.yaml", "include: .\n");
  check_refused(&f, "folder.yaml", "folder.yaml:1:10: ", "is a folder");
  put(&f, "device.yaml", "include: /dev/zero\n");
  check_refused(&f, "device.yaml", "device.yaml:1:10: ", "no regular file");
  put_bytes(&f, "binary",
            "\x7f"
            "ELF\0\1\2",
            7);
  put(&f, "elf.yaml", "a: 1\ninclude: ./binary\n");
  check_refused(&f, "elf.yaml", "./binary:1:1: ", "is not text");
  check_refused(&f, "elf.yaml", "./binary:1:1: ", "elf.yaml:2:10");
  put(&f, "broken.yaml", "steps: [1\n");
  put(&f, "outer.yaml", "include: broken.yaml\n");
  check_refused(&f, "outer.yaml", "broken.yaml:", "included from ");
  put(&f, "list.yaml", "- 1\n");
  put(&f, "of_list.yaml", "include: list.yaml\n");
  check_refused(&f, "of_list.yaml", "list.yaml:1:1: ", "must be a map");
  put(&f, "kinds.yaml", "include: {a: 1}\n");
  check_refused(&f, "kinds.yaml", "kinds.yaml:1:10: ", "has a map here");
  put(&f, "number.yaml", "include: 3\n");
  check_refused(&f, "number.yaml", "number.yaml:1:10: ", "has a number here");
  put(&f, "empty.yaml", "include: []\n");
  check_refused(&f, "empty.yaml", "empty.yaml:1:10: ", "empty list");
  for (int i = 0; i < 9; ++i) {
    snprintf(path, sizeof path, "deep%d.yaml", i);
    snprintf(text, sizeof text, "include: deep%d.yaml\n", i + 1);
    put(&f, path, text);
  }
  put(&f, "deep9.yaml", "steps: 1\n");
  check_refused(&f, "deep0.yaml", "deep8.yaml:1:10: ", "deeper than the 8 levels");
  check_loaded(&f, "deep1.yaml", "{\"steps\":1}");
  put(&f, "wide0.yaml", "steps: 1\n");
  for (int i = 1; i < 8; ++i) {
    snprintf(path, sizeof path, "wide%d.yaml", i);
    snprintf(text, sizeof text, "include: [wide%d.yaml, wide%d.yaml]\n", i - 1, i - 1);
    put(&f, path, text);
  }
  check_refused(&f, "wide7.yaml", "wide", "more than the 64 files");
  close_folder(&f);
}

TEST(what_is_no_file_includes_from_the_program_only) {
  static const char text[] = "include: base\nsteps: 9\n", file[] = "include: file\n",
                    path[] = "include: ./a.yaml\n", loop[] = "include: loop\n";
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "shown", &err) == GL_OK);
  CU_ASSERT_EQUAL(cfg_include(doc, &shipped, &err), GL_OK);
  CU_ASSERT(same_canonical(doc, "{\"steps\":9,\"world\":{\"arms\":3,\"kind\":\"bandit\"}}"));
  cfg_free(doc);
  CU_ASSERT_FATAL(cfg_load_text(&doc, file, strlen(file), "shown", &err) == GL_OK);
  CU_ASSERT(is_refused(cfg_include(doc, &shipped, &err), &err,
                       "file:1:10: ", "included from shown:1:10"));
  cfg_free(doc);
  gl_error_clear(&err);
  CU_ASSERT_FATAL(cfg_load_text(&doc, path, strlen(path), "shown", &err) == GL_OK);
  CU_ASSERT(is_refused(cfg_include(doc, NULL, &err), &err, "shown:1:10: ", "inside the program"));
  cfg_free(doc);
  gl_error_clear(&err);
  CU_ASSERT_FATAL(cfg_load_text(&doc, loop, strlen(loop), "shown", &err) == GL_OK);
  CU_ASSERT(is_refused(cfg_include(doc, &shipped, &err), &err, "loop:1:10: ", "a cycle"));
  cfg_free(doc);
}

/* A section with fields of another laid over it: distributions and lists are one value, short forms
 * are joined, and every value says where it stood. */
TEST(a_section_is_overlaid_as_a_recipe_is) {
  static const char text[] =
      "world: {kind: llm, task: sorting, operations: ['+'], model: {layers: 2, heads: 1}}\n"
      "over: {length: 7}\nlist: ['-', '*']\nmodel: {heads: 4}\n";
  static const struct {
    const char *path, *over, *gives;
  } cases[] = {{"task", "over", "{\"kind\":\"sorting\",\"length\":7}"},
               {"model", "model", "{\"heads\":4,\"layers\":2}"},
               {"operations", "list", "[\"-\",\"*\"]"}};
  cfg_doc *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err) == GL_OK);
  const cfg_node *root = cfg_root(doc);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cfg_doc *out = NULL;
    CU_ASSERT_EQUAL_FATAL(cfg_overlay(&out, "world", cfg_find(root, "world"), cases[i].path,
                                      cfg_find(root, cases[i].over), &err),
                          GL_OK);
    char path[64];
    snprintf(path, sizeof path, "world.%s", cases[i].path);
    char *got = cfg_canonical(cfg_find(cfg_root(out), path));
    CU_ASSERT_STRING_EQUAL(got, cases[i].gives);
    free(got);
    cfg_fail(cfg_find(cfg_root(out), path), &err, "here");
    CU_ASSERT(strncmp(err.text, "r.yaml:", 7) == 0);
    gl_error_clear(&err);
    cfg_free(out);
  }
  char *whole = cfg_canonical(cfg_find(root, "world.task")); /* the original stays */
  CU_ASSERT_STRING_EQUAL(whole, "\"sorting\"");
  free(whole);
  cfg_free(doc);
}
