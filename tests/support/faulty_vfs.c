/* An SQLite file system that fails, or kills the process, at a chosen operation. */
#include "tests/support/faulty_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>

/* The shim has no argument through which SQLite would hand it a plan, so the plan is the file's. */
static struct {
  fault_plan plan;
  int count, read_only;
} now;

typedef struct faulty_file {
  sqlite3_file base;
  sqlite3_file *real; /* in the same allocation, behind this struct */
} faulty_file;

static sqlite3_file *real_of(sqlite3_file *file) {
  return ((faulty_file *)file)->real;
}

static sqlite3_vfs *real_vfs(sqlite3_vfs *vfs) {
  return vfs->pAppData;
}

/* Counts a call; whether it is one to fail. One that kills does so here, but for a write. */
static int strikes(int call) {
  if ((now.plan.calls & call) == 0) return 0;
  ++now.count;
  if (now.plan.nth == 0 || now.count < now.plan.nth) return 0;
  if (now.count > now.plan.nth && !now.plan.lasting) return 0;
  if (now.plan.code == FAULT_KILL && call != FAULT_WRITE) raise(SIGKILL);
  return 1;
}

/* --- files --- */

static int file_close(sqlite3_file *f) {
  return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
  if (strikes(FAULT_READ)) return now.plan.code;
  return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}

static int file_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
  sqlite3_file *real = real_of(f);
  if (!strikes(FAULT_WRITE)) return real->pMethods->xWrite(real, from, n, at);
  if (now.plan.code != FAULT_KILL) return now.plan.code;
  real->pMethods->xWrite(real, from, n / 2, at);
  raise(SIGKILL);
  return SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size) {
  if (strikes(FAULT_TRUNCATE)) return now.plan.code;
  return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int file_sync(sqlite3_file *f, int flags) {
  if (strikes(FAULT_SYNC)) return now.plan.code;
  return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size) {
  return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int file_lock(sqlite3_file *f, int level) {
  return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int file_unlock(sqlite3_file *f, int level) {
  return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int file_check_lock(sqlite3_file *f, int *held) {
  return real_of(f)->pMethods->xCheckReservedLock(real_of(f), held);
}

static int file_control(sqlite3_file *f, int op, void *argument) {
  return real_of(f)->pMethods->xFileControl(real_of(f), op, argument);
}

static int file_sector_size(sqlite3_file *f) {
  return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int file_characteristics(sqlite3_file *f) {
  return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* Version 1: no shared memory and no mapping, so that every byte passes through here. */
static const sqlite3_io_methods methods = {.iVersion = 1,
                                           .xClose = file_close,
                                           .xRead = file_read,
                                           .xWrite = file_write,
                                           .xTruncate = file_truncate,
                                           .xSync = file_sync,
                                           .xFileSize = file_size,
                                           .xLock = file_lock,
                                           .xUnlock = file_unlock,
                                           .xCheckReservedLock = file_check_lock,
                                           .xFileControl = file_control,
                                           .xSectorSize = file_sector_size,
                                           .xDeviceCharacteristics = file_characteristics};

/* --- the file system --- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *out_flags) {
  faulty_file *f = (faulty_file *)file;
  f->base.pMethods = NULL; /* SQLite does not close what did not open */
  f->real = (sqlite3_file *)(f + 1);
  if (strikes(FAULT_OPEN)) return now.plan.code;
  if (now.read_only && (flags & SQLITE_OPEN_MAIN_DB) != 0)
    flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  int code = real_vfs(vfs)->xOpen(real_vfs(vfs), name, f->real, flags, out_flags);
  if (code == SQLITE_OK) f->base.pMethods = &methods;
  return code;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
  if (strikes(FAULT_DELETE)) return now.plan.code;
  return real_vfs(vfs)->xDelete(real_vfs(vfs), name, sync_folder);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
  return real_vfs(vfs)->xAccess(real_vfs(vfs), name, flags, out);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out) {
  return real_vfs(vfs)->xFullPathname(real_vfs(vfs), name, size, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *out) {
  return real_vfs(vfs)->xRandomness(real_vfs(vfs), size, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) {
  return real_vfs(vfs)->xSleep(real_vfs(vfs), microseconds);
}

static int vfs_time(sqlite3_vfs *vfs, double *out) {
  return real_vfs(vfs)->xCurrentTime(real_vfs(vfs), out);
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *out) {
  return real_vfs(vfs)->xGetLastError(real_vfs(vfs), size, out);
}

void faulty_vfs_arm(fault_plan plan) {
  static sqlite3_vfs shim;
  if (shim.zName == NULL) {
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    shim = (sqlite3_vfs){.iVersion = 1,
                         .szOsFile = (int)sizeof(faulty_file) + real->szOsFile,
                         .mxPathname = real->mxPathname,
                         .zName = FAULTY_VFS,
                         .pAppData = real,
                         .xOpen = vfs_open,
                         .xDelete = vfs_delete,
                         .xAccess = vfs_access,
                         .xFullPathname = vfs_full_path,
                         .xRandomness = vfs_randomness,
                         .xSleep = vfs_sleep,
                         .xCurrentTime = vfs_time,
                         .xGetLastError = vfs_last_error};
    sqlite3_vfs_register(&shim, 0);
  }
  now.plan = plan;
  now.count = 0;
}

int faulty_vfs_fired(void) {
  return now.plan.nth != 0 && now.count >= now.plan.nth;
}

void faulty_vfs_read_only(int yes) {
  now.read_only = yes;
}
