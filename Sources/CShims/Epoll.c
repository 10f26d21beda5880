#define _GNU_SOURCE
#include "CShims.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULT(expression) int64_t r = (int64_t)(expression); return r < 0 ? -(int64_t)errno : r

int64_t CShims_epoll_create(void) { RESULT(epoll_create1(EPOLL_CLOEXEC)); }

int64_t CShims_epoll_add(int epoll, int fd, int edge, uint64_t tag) {
    struct epoll_event event = {.events = EPOLLIN | (edge ? EPOLLET : 0), .data.u64 = tag};
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

int64_t CShims_epoll_remove(int epoll, int fd) {
    struct epoll_event event = {0};
    RESULT(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event));
}

int64_t CShims_epoll_wait(int epoll, uint64_t *tags, int capacity, int timeout_milliseconds) {
    struct epoll_event events[64];
    int n = epoll_wait(epoll, events, capacity < 64 ? capacity : 64, timeout_milliseconds);
    if (n < 0) return -(int64_t)errno;
    for (int i = 0; i < n; i++) tags[i] = events[i].data.u64;
    return n;
}

int64_t CShims_eventfd(void) { RESULT(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

int64_t CShims_pipe(int *reading, int *writing) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -(int64_t)errno;
    *reading = ends[0];
    *writing = ends[1];
    return 0;
}

int64_t CShims_touch(const char *path) { RESULT(utimensat(AT_FDCWD, path, NULL, 0)); }

int64_t CShims_pending_bytes(int fd) {
    int n = 0;
    if (ioctl(fd, FIONREAD, &n) != 0) return -(int64_t)errno;
    return n;
}

void CShims_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }
