/* The section `rerun`: the commands that make the study and this page again. */
#include "experiments/report/study_internal.h"

/* The study's name as far as a file may bear it and a shell takes it literally. */
static void safe_name(char *name, size_t size, const char *study) {
  size_t n = 0;
  for (const char *c = study; *c != '\0' && n + 1 < size; ++c)
    if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
        *c == '_' || (n > 0 && (*c == '-' || *c == '.')))
      name[n++] = *c;
  name[n] = '\0';
  if (n == 0) snprintf(name, size, "study");
}

gl_status section_rerun(html *h, const report_study *t, gl_error *err) {
  char name[40];
  (void)err;
  safe_name(name, sizeof name, t->name);
  html_markup(h, "<p>Keep the recipe above as ");
  html_markup(h, "<code>"), html_textf(h, "%s.yaml", name), html_markup(h, "</code>, then:</p>\n");
  html_markup(h, "<pre class=\"wide\" tabindex=\"0\"><code>");
  html_textf(h,
             "gepolab sweep %s.yaml -o %s.db\ngepolab analyze %s.db\ngepolab plot %s.db -o "
             "figures/\ngepolab report %s.db -o %s.html\n",
             name, name, name, name, name, name);
  html_markup(h, "</code></pre>\n<p>A sweep that was stopped goes on with the same command: "
                 "finished runs are kept.</p>\n");
  return GL_OK;
}
