/* Disks that are full or read-only: named as such, and nothing finished is lost. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: disks");

static const char recipe[] = "name: disk\nsteps: 200\nworld: {kind: bandit, rewards: [1, 0, 0.5]}\n"
                             "train: {groups: 2, group_size: 4}\n"
                             "sweep: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}\n";

TEST(a_full_disk_is_named_and_loses_no_finished_cell) {
  char folder[64], path[128], db[128];
  cli_scratch_make(folder);
  if (mount("tmpfs", folder, "tmpfs", 0, "size=256k") != 0) {
    SKIP("a small tmpfs needs root");
  }
  cli_write(cli_path(path, folder, "disk.yaml"), recipe, sizeof recipe - 1);
  cli_path(db, folder, "study.db");
  cli_result full = CLI("sweep", path, "-o", db, "-q", "-j", "1");
  CU_ASSERT_EQUAL(full.code, 1);
  if (strstr(full.err, "full") == NULL) fprintf(stderr, "%s", full.err);
  CU_ASSERT_PTR_NOT_NULL(strstr(full.err, "full"));
  cli_result runs = CLI("export", db, "--table", "runs");
  CU_ASSERT_EQUAL(runs.code, 0);
  size_t lines = 0;
  for (const char *c = runs.out; *c != '\0'; ++c) lines += *c == '\n';
  CU_ASSERT(lines >= 2 && lines < 9); /* a header and some of the eight */
  /* With room again the same command ends well. */
  CU_ASSERT_EQUAL(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=16m"), 0);
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", db, "-q", "-j", "1"));
  CU_ASSERT_EQUAL(umount(folder), 0);
}

TEST(a_read_only_file_system_is_named) {
  char folder[64], path[128], db[128];
  cli_scratch_make(folder);
  if (mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0) {
    SKIP("mounting needs root");
  }
  cli_write(cli_path(path, folder, "disk.yaml"), recipe, sizeof recipe - 1);
  CU_ASSERT_EQUAL(mount("tmpfs", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m"), 0);
  cli_result r = CLI("sweep", path, "-o", cli_path(db, folder, "study.db"), "-q");
  CU_ASSERT_EQUAL(r.code, 1);
  if (strstr(r.err, "ead-only") == NULL) fprintf(stderr, "%s", r.err);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "ead-only"));
  CU_ASSERT_EQUAL(umount(folder), 0);
}

TEST(a_file_that_is_no_study_is_refused_and_left_alone) {
  char folder[64], path[128], db[128];
  static const char text[] = "this is a letter to a friend, not a database; do not overwrite it\n";
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "disk.yaml"), recipe, sizeof recipe - 1);
  cli_write(cli_path(db, folder, "study.db"), text, sizeof text - 1);
  CU_ASSERT_FALSE(CLI_GIVES(0, "sweep", path, "-o", db, "-q", "steps=2"));
  struct stat s;
  CU_ASSERT(stat(db, &s) == 0 && s.st_size == (off_t)sizeof text - 1);
}

TEST(a_full_standard_output_is_an_error) {
  if (access("/dev/full", W_OK) != 0) SKIP("no /dev/full");
  const char *path = getenv("GEPOLAB");
  char line[512];
  snprintf(line, sizeof line, "%s metrics >/dev/full 2>/dev/null",
           path != NULL ? path : "build/gepolab");
  CU_ASSERT_EQUAL(system(line), 1 << 8);
}
