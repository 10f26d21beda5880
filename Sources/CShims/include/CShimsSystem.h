// System calls that are variadic, missing from Swift's Glibc module, or whose errno must be taken at once.
// Each wrapper returns the call's result, or -errno when it failed.
#ifndef CSHIMS_SYSTEM_H
#define CSHIMS_SYSTEM_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/stat.h>

int64_t CShims_open(const char *path, int flags, unsigned mode);
int64_t CShims_close(int fd);
int64_t CShims_fstat(int fd, struct stat *out);
int64_t CShims_stat(const char *path, struct stat *out);
int64_t CShims_lstat(const char *path, struct stat *out);
int64_t CShims_pread(int fd, void *buffer, size_t count, int64_t offset);
int64_t CShims_pwrite(int fd, const void *buffer, size_t count, int64_t offset);
int64_t CShims_read(int fd, void *buffer, size_t count);
int64_t CShims_write(int fd, const void *buffer, size_t count);
int64_t CShims_ftruncate(int fd, int64_t size);
int64_t CShims_posix_fallocate(int fd, int64_t offset, int64_t size);
int64_t CShims_fdatasync(int fd);
int64_t CShims_fsync(int fd);
int64_t CShims_mmap(void *address, size_t length, int protection, int flags, int fd, int64_t offset, void **out);
int64_t CShims_munmap(void *address, size_t length);
int64_t CShims_mprotect(void *address, size_t length, int protection);
int64_t CShims_madvise(void *address, size_t length, int advice);
int64_t CShims_msync(void *address, size_t length, int flags);
int64_t CShims_mlock(const void *address, size_t length);
int64_t CShims_memory_file(const char *name);
int64_t CShims_rename(const char *from, const char *to);
int64_t CShims_rename_exclusive(const char *from, const char *to);
int64_t CShims_rename_after_looking(const char *from, const char *to);
int64_t CShims_may_write(const char *path);
int64_t CShims_link(const char *from, const char *to);
int64_t CShims_unlink(const char *path);
int64_t CShims_rmdir(const char *path);
int64_t CShims_mkdir(const char *path, unsigned mode);
int64_t CShims_mkfifo(const char *path, unsigned mode);
int64_t CShims_flock(int fd, int operation);
int64_t CShims_fcntl(int fd, int command, int64_t argument);
int64_t CShims_ofd_lock(int fd, int exclusive, int64_t start, int64_t length);
int64_t CShims_ofd_lock_holder_exists(int fd, int64_t start, int64_t length);
int64_t CShims_futex_wait(void *address, uint32_t expected, int64_t nanoseconds);
int64_t CShims_futex_wake(void *address, int count);
int64_t CShims_ficlone(int target, int source);
int64_t CShims_statfs_type(const char *path);
int64_t CShims_free_disk_bytes(const char *path);
// Names the calling thread; at most 15 characters, longer names are ignored.
void CShims_set_thread_name(const char *name);
int64_t CShims_gettid(void);
// Has the allocator give large blocks back at once, and keep few heaps, whatever the number of threads.
void CShims_bound_heaps(void);
// 1 where the C library is glibc, 0 otherwise; version as major * 1000 + minor.
int CShims_is_glibc(void);
int CShims_glibc_version(void);
#endif
