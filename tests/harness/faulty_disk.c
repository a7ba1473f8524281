/* LD_PRELOAD: the system calls that change what lies under $FAULT_UNDER are counted over all
   processes (in $FAULT_COUNT, a file) and logged; number $FAULT_AT fails with $FAULT_ERRNO, with
   $FAULT_STAYS all after it, too. An errno of 0 moves the folder $FAULT_MOVES away instead. How many
   milliseconds after the first failure its name is written to stdout or stderr is logged as `said`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int *counted(void) {
  static int *count;
  if (!count) {
    int file = syscall(SYS_openat, AT_FDCWD, getenv("FAULT_COUNT"), O_RDWR | O_CLOEXEC);
    if (file < 0) return NULL;
    count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
  }
  return count;
}

static long *failed_at(void) { return (long *)(counted() + 2); }

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void log_line(const char *line, int n) {
  int log = syscall(SYS_openat, AT_FDCWD, getenv("FAULT_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  syscall(SYS_write, log, line, n);
  syscall(SYS_close, log);
}

static void note_said(int file, const void *data, size_t size) {
  const char *under = getenv("FAULT_UNDER"), *how = getenv("FAULT_ERRNO");
  if ((file != 1 && file != 2) || !under || !how || !atoi(how) || !counted() || !*failed_at()) return;
  int saved = errno;
  const char *name = strerror(atoi(how));
  char line[64];
  if (memmem(data, size, name, strlen(name)))
    log_line(line, snprintf(line, sizeof line, "said %ld\n", milliseconds() - *failed_at()));
  errno = saved;
}

static int fails(const char *call, const char *path, int dir) {
  const char *under = getenv("FAULT_UNDER"), *at = getenv("FAULT_AT"), *only = getenv("FAULT_ONLY");
  char whole[PATH_MAX] = "", link[64], line[PATH_MAX + 64];
  if (!under || !at || (only && *only && !strstr(only, call))) return 0;
  if (path && *path == '/') snprintf(whole, sizeof whole, "%s", path);
  else {
    if (path && dir == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, whole, sizeof whole - 1);
    if (n < 0) return 0;
    snprintf(whole + n, sizeof whole - n, "%s%s", path ? "/" : "", path ? path : "");
  }
  if (strncmp(whole, under, strlen(under)) || !counted()) return 0;
  int saved = errno, number = __atomic_add_fetch(counted(), 1, __ATOMIC_SEQ_CST), nth = atoi(at);
  int how = atoi(getenv("FAULT_ERRNO"));
  int now = number == nth || (*getenv("FAULT_STAYS") && nth && number > nth);
  int n = snprintf(line, sizeof line, "%d %s %s%s\n", number, call, whole, now ? " FAILS" : "");
  log_line(line, n);
  errno = saved;
  if (!now) return 0;
  if (!*failed_at()) *failed_at() = milliseconds();
  if (how) { errno = how; return 1; }
  char gone[PATH_MAX];
  snprintf(gone, sizeof gone, "%s.gone", getenv("FAULT_MOVES"));
  syscall(SYS_renameat2, AT_FDCWD, getenv("FAULT_MOVES"), AT_FDCWD, gone, 0);
  errno = saved;
  return 0;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define OPENS(name)                                                                     \
  int name(const char *path, int flags, ...) {                                          \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);    \
    REAL(name);                                                                         \
    if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails("open", path, AT_FDCWD)) return -1; \
    return real(path, flags, mode); }
OPENS(open) OPENS(open64)
#define OPENS_AT(name)                                                                  \
  int name(int dir, const char *path, int flags, ...) {                                 \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);    \
    REAL(name);                                                                         \
    if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails("open", path, dir)) return -1; \
    return real(dir, path, flags, mode); }
OPENS_AT(openat) OPENS_AT(openat64)
#define BY_FD(type, name, told, params, args)                                           \
  type name params { REAL(name); if (fails(told, NULL, file)) return -1; return real args; }
ssize_t write(int file, const void *data, size_t size) {
  REAL(write);
  note_said(file, data, size);
  return fails("write", NULL, file) ? -1 : real(file, data, size);
}
BY_FD(ssize_t, pwrite64, "write", (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
BY_FD(ssize_t, writev, "write", (int file, const struct iovec *parts, int n), (file, parts, n))
BY_FD(int, fsync, "fsync", (int file), (file))
BY_FD(int, fdatasync, "fsync", (int file), (file))
BY_FD(int, ftruncate64, "ftruncate", (int file, off64_t size), (file, size))
BY_FD(int, flock, "lock", (int file, int how), (file, how))
BY_FD(int, fchmod, "chmod", (int file, mode_t mode), (file, mode))
#define BY_PATH(name, told, params, args)                                               \
  int name params { REAL(name); if (fails(told, path, AT_FDCWD)) return -1; return real args; }
BY_PATH(mkdir, "mkdir", (const char *path, mode_t mode), (path, mode))
BY_PATH(chmod, "chmod", (const char *path, mode_t mode), (path, mode))
BY_PATH(rename, "rename", (const char *old, const char *path), (old, path))
BY_PATH(link, "link", (const char *old, const char *path), (old, path))
BY_PATH(symlink, "link", (const char *old, const char *path), (old, path))
