#define _GNU_SOURCE
#include "CShimsLockFile.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

// The layout as one struct, so that the compiler checks the offsets of the header against the C library's own types.
// Layout version 14; version history is kept by the format's owner, we know only this one.
struct LockFile {
    uint8_t init_complete, size_of_mutex, size_of_condition, commit_in_critical_phase, file_format;
    int8_t history_type;
    uint16_t layout_version, durability, free_write_slots;
    uint32_t participant_count;
    uint64_t latest_version, initiator_pid, number_of_versions;
    uint8_t sync_agent_present, daemon_started, daemon_ready, filler_1;
    uint16_t history_schema, filler_2;
    pthread_mutex_t write_mutex, control_mutex, list_mutex;
    pthread_cond_t room_to_write, work_to_do, daemon_becomes_ready, new_commit, pick_next_writer;
    uint32_t next_ticket, next_served;
    uint64_t writing_page, write_counter;
    uint32_t list_entries, list_allocating, list_newest;
    struct Record { uint64_t version, file_size, top; uint32_t live, frozen, full; } records[32];
};

#if defined(__x86_64__) || defined(__aarch64__)
#define AT(field, offset) _Static_assert(offsetof(struct LockFile, field) == (offset), #field)
_Static_assert(sizeof(pthread_mutex_t) == CSHIMS_LOCK_MUTEX_SIZE, "pthread_mutex_t");
_Static_assert(sizeof(pthread_cond_t) == CSHIMS_LOCK_CONDITION_SIZE, "pthread_cond_t");
_Static_assert(sizeof(struct Record) == 40, "version record");
AT(init_complete, CSHIMS_LOCK_INIT_COMPLETE);
AT(size_of_mutex, CSHIMS_LOCK_SIZE_OF_MUTEX);
AT(size_of_condition, CSHIMS_LOCK_SIZE_OF_CONDITION);
AT(commit_in_critical_phase, CSHIMS_LOCK_COMMIT_IN_CRITICAL_PHASE);
AT(file_format, CSHIMS_LOCK_FILE_FORMAT);
AT(history_type, CSHIMS_LOCK_HISTORY_TYPE);
AT(layout_version, CSHIMS_LOCK_LAYOUT_VERSION);
AT(durability, CSHIMS_LOCK_DURABILITY);
AT(participant_count, CSHIMS_LOCK_PARTICIPANT_COUNT);
AT(latest_version, CSHIMS_LOCK_LATEST_VERSION);
AT(initiator_pid, CSHIMS_LOCK_INITIATOR_PID);
AT(number_of_versions, CSHIMS_LOCK_NUMBER_OF_VERSIONS);
AT(sync_agent_present, CSHIMS_LOCK_SYNC_AGENT_PRESENT);
AT(history_schema, CSHIMS_LOCK_HISTORY_SCHEMA);
AT(write_mutex, CSHIMS_LOCK_WRITE_MUTEX);
AT(control_mutex, CSHIMS_LOCK_CONTROL_MUTEX);
AT(list_mutex, CSHIMS_LOCK_LIST_MUTEX);
AT(room_to_write, CSHIMS_LOCK_UNUSED_CONDITIONS);
AT(new_commit, CSHIMS_LOCK_NEW_COMMIT);
AT(pick_next_writer, CSHIMS_LOCK_PICK_NEXT_WRITER);
AT(next_ticket, CSHIMS_LOCK_NEXT_TICKET);
AT(next_served, CSHIMS_LOCK_NEXT_SERVED);
AT(writing_page, CSHIMS_LOCK_WRITING_PAGE);
AT(write_counter, CSHIMS_LOCK_WRITE_COUNTER);
AT(list_entries, CSHIMS_LOCK_LIST_ENTRIES);
AT(list_allocating, CSHIMS_LOCK_LIST_ALLOCATING);
AT(list_newest, CSHIMS_LOCK_LIST_NEWEST);
AT(records, CSHIMS_LOCK_LIST_RECORDS);
#if defined(__x86_64__)
AT(list_mutex, 128);
AT(new_commit, 312);
AT(next_ticket, 408);
AT(records, 448);
_Static_assert(sizeof(struct LockFile) == 1728, "initial size");
#else
AT(list_mutex, 144);
AT(new_commit, 336);
AT(next_ticket, 432);
AT(records, 472);
_Static_assert(sizeof(struct LockFile) == 1752, "initial size");
#endif
#endif

int CShims_lock_file_is_supported(void) {
#ifdef __GLIBC__
    return sizeof(pthread_mutex_t) == CSHIMS_LOCK_MUTEX_SIZE && sizeof(pthread_cond_t) == CSHIMS_LOCK_CONDITION_SIZE;
#else
    return 0;
#endif
}

static int initialise_mutex(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error) return error;
    error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!error) error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!error) error = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return error;
}

static int initialise_condition(pthread_cond_t *condition, int shared) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error) return error;
    if (shared) error = pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!error) error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return error;
}

int CShims_lock_file_initialise_primitives(void *base) {
    struct LockFile *file = base;
    int error = initialise_mutex(&file->write_mutex);
    if (!error) error = initialise_mutex(&file->control_mutex);
    if (!error) error = initialise_mutex(&file->list_mutex);
    if (!error) error = initialise_condition(&file->room_to_write, 0);
    if (!error) error = initialise_condition(&file->work_to_do, 0);
    if (!error) error = initialise_condition(&file->daemon_becomes_ready, 0);
    if (!error) error = initialise_condition(&file->new_commit, 1);
    if (!error) error = initialise_condition(&file->pick_next_writer, 1);
    return error;
}

#ifdef __GLIBC__
// glibc trusts the kind word: some values make it abort or use another protocol. Only the one that initialise_mutex makes is let through.
static int has_our_kind(const pthread_mutex_t *mutex) {
    static int kind = -1;
    int known = __atomic_load_n(&kind, __ATOMIC_RELAXED);
    if (known < 0) {
        pthread_mutex_t sample;
        memset(&sample, 0, sizeof sample);
        if (initialise_mutex(&sample) != 0) return 0;
        known = sample.__data.__kind;
        pthread_mutex_destroy(&sample);
        __atomic_store_n(&kind, known, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) == known;
}
#else
static int has_our_kind(const pthread_mutex_t *mutex) { (void)mutex; return 0; }
#endif

int CShims_mutex_trylock(void *mutex) { return has_our_kind(mutex) ? pthread_mutex_trylock(mutex) : EINVAL; }

int CShims_mutex_lock(void *mutex, int64_t deadline) {
    if (!has_our_kind(mutex)) return EINVAL;
    if (deadline < 0) deadline = 0;
    struct timespec t = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 30)
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &t);
#else
    // An older C library knows only the wall clock: turn the rest of the time into a point on it, afresh for each slice of 100 ms.
    for (;;) {
        struct timespec now, wall;
        clock_gettime(CLOCK_MONOTONIC, &now);
        clock_gettime(CLOCK_REALTIME, &wall);
        int64_t rest = (t.tv_sec - now.tv_sec) * 1000000000LL + (t.tv_nsec - now.tv_nsec);
        if (rest < 0) rest = 0;
        int64_t slice = rest > 100000000 ? 100000000 : rest;
        int64_t end = wall.tv_nsec + slice;
        wall.tv_sec += end / 1000000000;
        wall.tv_nsec = end % 1000000000;
        int result = pthread_mutex_timedlock(mutex, &wall);
        if (result != ETIMEDOUT || rest == 0) return result;
    }
#endif
}

int CShims_mutex_consistent(void *mutex) { return has_our_kind(mutex) ? pthread_mutex_consistent(mutex) : EINVAL; }
int CShims_mutex_unlock(void *mutex) { return has_our_kind(mutex) ? pthread_mutex_unlock(mutex) : EINVAL; }
uint32_t CShims_mutex_word(const void *mutex) { return __atomic_load_n((const uint32_t *)mutex, __ATOMIC_SEQ_CST); }

int CShims_condition_broadcast(void *condition) { return pthread_cond_broadcast(condition); }
uint32_t CShims_condition_waiters(const void *condition) {
    return __atomic_load_n((const uint32_t *)condition + 9, __ATOMIC_SEQ_CST) >> 3;
}
