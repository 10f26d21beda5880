#define _GNU_SOURCE
#include "CShims.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#define RESULT(expression) int64_t r = (int64_t)(expression); return r < 0 ? -(int64_t)errno : r

int64_t CShims_open(const char *path, int flags, unsigned mode) { RESULT(open(path, flags, mode)); }
int64_t CShims_close(int fd) { RESULT(close(fd)); }
int64_t CShims_fstat(int fd, struct stat *out) { RESULT(fstat(fd, out)); }
int64_t CShims_stat(const char *path, struct stat *out) { RESULT(stat(path, out)); }
int64_t CShims_lstat(const char *path, struct stat *out) { RESULT(lstat(path, out)); }
int64_t CShims_pread(int fd, void *b, size_t n, int64_t o) { RESULT(pread(fd, b, n, o)); }
int64_t CShims_pwrite(int fd, const void *b, size_t n, int64_t o) { RESULT(pwrite(fd, b, n, o)); }
int64_t CShims_read(int fd, void *b, size_t n) { RESULT(read(fd, b, n)); }
int64_t CShims_write(int fd, const void *b, size_t n) { RESULT(write(fd, b, n)); }
int64_t CShims_ftruncate(int fd, int64_t size) { RESULT(ftruncate(fd, size)); }
int64_t CShims_posix_fallocate(int fd, int64_t o, int64_t n) { return -(int64_t)posix_fallocate(fd, o, n); }
int64_t CShims_fdatasync(int fd) { RESULT(fdatasync(fd)); }
int64_t CShims_fsync(int fd) { RESULT(fsync(fd)); }
int64_t CShims_mmap(void *a, size_t n, int p, int f, int fd, int64_t o, void **out) {
    void *m = mmap(a, n, p, f, fd, o);
    if (m == MAP_FAILED) return -(int64_t)errno;
    *out = m;
    return 0;
}
int64_t CShims_munmap(void *a, size_t n) { RESULT(munmap(a, n)); }
int64_t CShims_mprotect(void *a, size_t n, int p) { RESULT(mprotect(a, n, p)); }
int64_t CShims_madvise(void *a, size_t n, int advice) { RESULT(madvise(a, n, advice)); }
int64_t CShims_msync(void *a, size_t n, int flags) { RESULT(msync(a, n, flags)); }
int64_t CShims_mlock(const void *a, size_t n) { RESULT(mlock(a, n)); }
int64_t CShims_memory_file(const char *name) { RESULT(memfd_create(name, MFD_CLOEXEC)); }
int64_t CShims_rename(const char *from, const char *to) { RESULT(rename(from, to)); }
int64_t CShims_rename_after_looking(const char *from, const char *to) {
    struct stat s;
    if (lstat(to, &s) == 0) return -(int64_t)EEXIST;
    if (errno != ENOENT) return -(int64_t)errno;
    return CShims_rename(from, to);
}
int64_t CShims_may_write(const char *path) { RESULT(faccessat(AT_FDCWD, path, W_OK, AT_EACCESS)); }
int64_t CShims_rename_exclusive(const char *from, const char *to) {
    int64_t r = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */);
    if (r == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -(int64_t)errno;
    // A file system without the flag: a hard link fails just as well when the name exists.
    if (link(from, to) != 0) {
        // FAT and its kin have no second names.
        if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return CShims_rename_after_looking(from, to);
        return -(int64_t)errno;
    }
    unlink(from);
    return 0;
}
int64_t CShims_link(const char *from, const char *to) { RESULT(link(from, to)); }
int64_t CShims_unlink(const char *path) { RESULT(unlink(path)); }
int64_t CShims_rmdir(const char *path) { RESULT(rmdir(path)); }
int64_t CShims_mkdir(const char *path, unsigned mode) { RESULT(mkdir(path, mode)); }
int64_t CShims_mkfifo(const char *path, unsigned mode) { RESULT(mkfifo(path, mode)); }
int64_t CShims_flock(int fd, int operation) { RESULT(flock(fd, operation)); }
int64_t CShims_fcntl(int fd, int command, int64_t argument) { RESULT(fcntl(fd, command, (long)argument)); }
int64_t CShims_ofd_lock(int fd, int exclusive, int64_t start, int64_t length) {
    struct flock lock = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    RESULT(fcntl(fd, F_OFD_SETLK, &lock));
}
int64_t CShims_ofd_lock_holder_exists(int fd, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return -(int64_t)errno;
    return lock.l_type != F_UNLCK;
}
int64_t CShims_futex_wait(void *address, uint32_t expected, int64_t nanoseconds) {
    struct timespec t = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    RESULT(syscall(SYS_futex, address, FUTEX_WAIT, expected, &t, 0, 0));
}
int64_t CShims_futex_wake(void *address, int count) { RESULT(syscall(SYS_futex, address, FUTEX_WAKE, count, 0, 0, 0)); }
int64_t CShims_ficlone(int target, int source) { RESULT(ioctl(target, FICLONE, source)); }
int64_t CShims_statfs_type(const char *path) {
    struct statfs s;
    if (statfs(path, &s) != 0) return -(int64_t)errno;
    return (int64_t)(uint32_t)s.f_type;
}
int64_t CShims_free_disk_bytes(const char *path) {
    struct statvfs s;
    if (statvfs(path, &s) != 0) return -(int64_t)errno;
    return (int64_t)s.f_bavail * (int64_t)s.f_frsize;
}
void CShims_set_thread_name(const char *name) { pthread_setname_np(pthread_self(), name); }
int64_t CShims_gettid(void) { return (int64_t)syscall(SYS_gettid); }
void CShims_bound_heaps(void) {
#ifdef __GLIBC__
    // Each of these ends glibc's habit of raising the limits to the largest block that was ever freed (mallopt(3)).
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 4);
#endif
}
int CShims_is_glibc(void) {
#ifdef __GLIBC__
    return 1;
#else
    return 0;
#endif
}
int CShims_glibc_version(void) {
#ifdef __GLIBC__
    int major = 0, minor = 0;
    if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2) return major * 1000 + minor;
#endif
    return 0;
}
