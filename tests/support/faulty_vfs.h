/* An SQLite VFS over the default one in which a chosen call fails, or kills the process. */
#ifndef GEPOLAB_TESTS_SUPPORT_FAULTY_VFS_H
#define GEPOLAB_TESTS_SUPPORT_FAULTY_VFS_H

#define FAULTY_VFS "gepolab-faulty"

/* Kinds of calls, to be joined with |. */
enum {
  FAULT_OPEN = 1,
  FAULT_READ = 2,
  FAULT_WRITE = 4,
  FAULT_SYNC = 8,
  FAULT_TRUNCATE = 16,
  FAULT_DELETE = 32
};
/* Instead of an SQLite code: SIGKILL before the call takes effect, or half way through a write. */
enum { FAULT_KILL = -1 };

typedef struct fault_plan {
  int calls;   /* which kinds count */
  int nth;     /* the 1-based call of those kinds that fails; 0: none */
  int code;    /* what it returns, or FAULT_KILL */
  int lasting; /* all later ones fail too, as on a disk that stays full */
} fault_plan;

/* Registers the VFS once and starts counting anew. */
void faulty_vfs_arm(fault_plan plan);
/* Whether the planned call was reached. */
int faulty_vfs_fired(void);
/* Main databases open read-only, as from a read-only file system, whatever was asked for. */
void faulty_vfs_read_only(int yes);

#endif
