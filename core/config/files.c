/* Names of files as whole paths. */
#include "core/config/files.h"

#include "core/config/internal.h"

#include <stdlib.h>
#include <string.h>

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
