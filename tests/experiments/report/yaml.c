/* YAML made of JSON reads back as what it was. */
#include "experiments/base/print_json.h"

#include "core/base/json.h"
#include "core/config/config.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("report: recipes as YAML");

static char *yaml_of(const char *json) {
  static const char *const first[] = {"name", "steps"};
  char *text = NULL;
  size_t size = 0;
  cJSON *tree = json_tree_of(json);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  yaml_write(tree, first, 2, to);
  fclose(to);
  cJSON_Delete(tree);
  return text;
}

/* json: canonical, with sorted keys. */
static int reads_back(const char *json) {
  gl_error err = {0};
  cfg_doc *doc = NULL;
  char *yaml = yaml_of(json), *again = NULL;
  if (cfg_load_text(&doc, yaml, strlen(yaml), "test", &err) == GL_OK)
    again = cfg_canonical(cfg_root(doc));
  const int same = again != NULL && strcmp(again, json) == 0;
  if (!same) fprintf(stderr, "%s\n%s\n%s %s\n", json, yaml, again != NULL ? again : "", err.text);
  cfg_free(doc);
  free(again), free(yaml);
  return same;
}

TEST(what_is_written_reads_back) {
  CU_ASSERT(reads_back("{\"a\":1,\"b\":{\"c\":0.1,\"d\":[1,2,{\"e\":null}],\"f\":true}}"));
  CU_ASSERT(reads_back("{\"a\":[],\"b\":{},\"c\":\"\",\"d\":false,\"e\":1e-05,\"f\":-3}"));
  CU_ASSERT(reads_back("{\"cluster.max_delay\":[0,120,\"none\"],\"x\":\"none\",\"y\":\"yes\"}"));
  CU_ASSERT(reads_back("{\"a\":\"no\",\"b\":\"1e3\",\"c\":\"- x\",\"d\":\"x: y\",\"e\":\"# z\","
                       "\"f\":\"\\\"q\\\" \\\\ \\u0001\",\"g\":\"größer\",\"h\":\"NULL\"}"));
}

TEST(long_maps_and_lists_stand_on_lines_of_their_own) {
  static const char json[] =
      "{\"list\":[\"a long enough word to fill a line\",\"and another one of them, longer\",{"
      "\"map\":\"with a value that is long enough to leave\",\"no\":\"room for it on one line\"}],"
      "\"steps\":3}";
  CU_ASSERT(reads_back(json));
  char *yaml = yaml_of(json);
  CU_ASSERT_PTR_NOT_NULL(strstr(yaml, "steps: 3\nlist:\n  - \"a long enough word"));
  CU_ASSERT_PTR_NOT_NULL(strstr(yaml, "  -\n    map: \"with a value"));
  free(yaml);
}
