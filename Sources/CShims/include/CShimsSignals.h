// Signals that are turned into bytes of a pipe.
#ifndef CSHIMS_SIGNALS_H
#define CSHIMS_SIGNALS_H
#include <signal.h>

// Where the handler writes the numbers of signals; -1 for nowhere. Forgets what was caught before.
void CShims_catch_signals_into(int fd);
// Installs the handler for a signal. A second SIGINT or SIGTERM ends the process as if nobody had caught it.
int CShims_catch_signal(int number, struct sigaction *previous);
// From now on SIGBUS writes the message (at most 255 bytes of it) to standard error and ends the process with the code.
void CShims_exit_on_bus_error(const char *message, int code);
#endif
