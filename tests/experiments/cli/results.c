/* The documents' numbers are those of the stored results, and results have a head that says how
 * they came about. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: stored results");

TEST(documents_say_what_is_stored) {
  CU_ASSERT(CLI_GIVES(0, "results", "check", "README.md", "paper/findings.md",
                      "paper/FINDINGS-lab.md", "--without", "llm_delay_sweep"));
  char folder[64], numbers[128];
  cli_scratch_make(folder);
  cli_path(numbers, folder, "numbers.tex");
  CU_ASSERT(CLI_GIVES(0, "results", "define", "paper/gepolab.tex", "-o", numbers, "--without",
                      "llm_delay_sweep"));
  CU_ASSERT_EQUAL(access(numbers, R_OK), 0);
}

TEST(a_document_that_differs_is_found_and_written) {
  static const char template[] = "rho\n{{delay_sweep correlations[delay,kl_exact].spearman .2f}}\n";
  char folder[64], document[128], source[128];
  cli_scratch_make(folder);
  cli_path(document, folder, "a.md");
  cli_path(source, folder, "a.md.in");
  cli_write(source, template, sizeof template - 1);
  cli_write(document, "rho\n0.99\n", 9);
  cli_result r = CLI("results", "check", document);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "a.md:2: differs from "));
  CU_ASSERT(CLI_GIVES(0, "results", "fill", document));
  CU_ASSERT(CLI_GIVES(0, "results", "check", document));
  char *text = cli_read(document);
  CU_ASSERT_STRING_EQUAL(text, "rho\n0.82\n");
  CU_ASSERT(CLI_GIVES(2, "results", "keep", document));
  CU_ASSERT(CLI_GIVES(2, "results", "show", document));
  CU_ASSERT_NOT_EQUAL(unlink(source), -1);
  REFUSED(1, "a.md.in; write it", "results", "fill", document);
}

TEST(every_stored_result_says_how_it_came_about) {
  static const char *const heads[] = {
      "# recipe: ", "\n# commit: ", "\n# processor: ", "\n# command: gepolab ", "\n# date: 20"};
  DIR *results = opendir("paper/results");
  size_t n = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(results);
  for (struct dirent *e; (e = readdir(results)) != NULL;) {
    char path[400];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "paper/results/%s", e->d_name);
    char *text = cli_read(path);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
      CU_ASSERT_PTR_NOT_NULL(strstr(text, heads[i]));
    char *commit = strstr(text, "# commit: ");
    CU_ASSERT(commit && strspn(commit + 10, "0123456789abcdef") == 40);
    char *command = strstr(text, "# command: "), *end = command ? strchr(command, '\n') : NULL;
    CU_ASSERT(end && memchr(command, '/', (size_t)(end - command)) == NULL);
    n++;
  }
  closedir(results);
  CU_ASSERT(n >= 7);
}
