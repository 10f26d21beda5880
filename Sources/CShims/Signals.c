#define _GNU_SOURCE
#include "CShims.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int pipe_end = -1;
static int endings = 0;

static void handle(int number) {
    int saved = errno;
    if ((number == SIGINT || number == SIGTERM) && __atomic_fetch_add(&endings, 1, __ATOMIC_SEQ_CST) > 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
    int fd = __atomic_load_n(&pipe_end, __ATOMIC_SEQ_CST);
    unsigned char byte = (unsigned char)number;
    if (fd >= 0 && write(fd, &byte, 1) < 0) {
        // A full pipe holds enough signals to be obeyed.
    }
    errno = saved;
}

void CShims_catch_signals_into(int fd) {
    __atomic_store_n(&endings, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&pipe_end, fd, __ATOMIC_SEQ_CST);
}

int CShims_catch_signal(int number, struct sigaction *previous) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    return sigaction(number, &action, previous);
}

static char bus_message[256];
static size_t bus_message_length;
static int bus_code;

static void end_on_bus_error(int number) {
    (void)number;
    if (write(STDERR_FILENO, bus_message, bus_message_length) < 0) {
        // The code says it as well.
    }
    _exit(bus_code);
}

void CShims_exit_on_bus_error(const char *message, int code) {
    bus_message_length = strnlen(message, sizeof bus_message - 1);
    memcpy(bus_message, message, bus_message_length);
    bus_code = code;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end_on_bus_error;
    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, 0);
}
