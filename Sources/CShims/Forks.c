#define _GNU_SOURCE
#include "CShims.h"
#include <pthread.h>

bool CShims_forked = false;

static void note_child(void) {
    CShims_forked = true;
    // What belongs to the thread of the parent belongs to no thread of ours.
    realm_thread_number = 0;
}

static void watch(void) { pthread_atfork(NULL, NULL, note_child); }

static pthread_once_t once = PTHREAD_ONCE_INIT;

void CShims_watch_forks(void) { pthread_once(&once, watch); }
