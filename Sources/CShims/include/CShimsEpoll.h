// Waiting for many descriptors, and a descriptor that is a counter. struct epoll_event is packed on x86-64, so Swift never sees it.
// Each wrapper returns the call's result, or -errno when it failed.
#ifndef CSHIMS_EPOLL_H
#define CSHIMS_EPOLL_H
#include <stdint.h>

int64_t CShims_epoll_create(void);
// Waits for readability; edge triggered where `edge` is 1. `tag` comes back from CShims_epoll_wait.
int64_t CShims_epoll_add(int epoll, int fd, int edge, uint64_t tag);
int64_t CShims_epoll_remove(int epoll, int fd);
// Fills at most `capacity` (no more than 64) tags; a negative timeout waits for ever.
int64_t CShims_epoll_wait(int epoll, uint64_t *tags, int capacity, int timeout_milliseconds);
// Non-blocking, closed by exec.
int64_t CShims_eventfd(void);
// Both ends of a pipe, closed by exec.
int64_t CShims_pipe(int *reading, int *writing);
// Sets both times of the file to now. Watchers of the file's attributes hear of it.
int64_t CShims_touch(const char *path);
// Bytes that a read would find now.
int64_t CShims_pending_bytes(int fd);
// Names the calling thread, in at most 15 bytes.
void CShims_name_thread(const char *name);
#endif
