// The lock file of a session (coordination.md section 2): offsets of its fields, and the operations on its mutexes and
// condition variables that only the C library may do. All pointers go into the shared mapping; nothing is copied out of it.
#ifndef CSHIMS_LOCK_FILE_H
#define CSHIMS_LOCK_FILE_H
#include <stddef.h>
#include <stdint.h>

// The head is the same on every CPU; what follows the mutexes moves with their size. LockFile.c asserts each offset.
#if defined(__aarch64__)
#define CSHIMS_LOCK_MUTEX_SIZE 48
#else
#define CSHIMS_LOCK_MUTEX_SIZE 40
#endif
#define CSHIMS_LOCK_CONDITION_SIZE 48

typedef enum {
    CSHIMS_LOCK_INIT_COMPLETE = 0,            // u8
    CSHIMS_LOCK_SIZE_OF_MUTEX = 1,            // u8
    CSHIMS_LOCK_SIZE_OF_CONDITION = 2,        // u8
    CSHIMS_LOCK_COMMIT_IN_CRITICAL_PHASE = 3, // u8
    CSHIMS_LOCK_FILE_FORMAT = 4,              // u8
    CSHIMS_LOCK_HISTORY_TYPE = 5,             // i8
    CSHIMS_LOCK_LAYOUT_VERSION = 6,           // u16
    CSHIMS_LOCK_DURABILITY = 8,               // u16
    CSHIMS_LOCK_PARTICIPANT_COUNT = 12,       // u32
    CSHIMS_LOCK_LATEST_VERSION = 16,          // u64
    CSHIMS_LOCK_INITIATOR_PID = 24,           // u64
    CSHIMS_LOCK_NUMBER_OF_VERSIONS = 32,      // u64
    CSHIMS_LOCK_SYNC_AGENT_PRESENT = 40,      // u8
    CSHIMS_LOCK_HISTORY_SCHEMA = 44,          // u16
    CSHIMS_LOCK_WRITE_MUTEX = 48,
    CSHIMS_LOCK_CONTROL_MUTEX = CSHIMS_LOCK_WRITE_MUTEX + CSHIMS_LOCK_MUTEX_SIZE,
    CSHIMS_LOCK_LIST_MUTEX = CSHIMS_LOCK_CONTROL_MUTEX + CSHIMS_LOCK_MUTEX_SIZE,
    CSHIMS_LOCK_UNUSED_CONDITIONS = CSHIMS_LOCK_LIST_MUTEX + CSHIMS_LOCK_MUTEX_SIZE,
    CSHIMS_LOCK_NEW_COMMIT = CSHIMS_LOCK_UNUSED_CONDITIONS + 3 * CSHIMS_LOCK_CONDITION_SIZE,
    CSHIMS_LOCK_PICK_NEXT_WRITER = CSHIMS_LOCK_NEW_COMMIT + CSHIMS_LOCK_CONDITION_SIZE,
    CSHIMS_LOCK_NEXT_TICKET = CSHIMS_LOCK_PICK_NEXT_WRITER + CSHIMS_LOCK_CONDITION_SIZE, // u32
    CSHIMS_LOCK_NEXT_SERVED = CSHIMS_LOCK_NEXT_TICKET + 4,                               // u32
    CSHIMS_LOCK_WRITING_PAGE = CSHIMS_LOCK_NEXT_TICKET + 8,                              // u64
    CSHIMS_LOCK_WRITE_COUNTER = CSHIMS_LOCK_NEXT_TICKET + 16,                            // u64
    CSHIMS_LOCK_LIST_ENTRIES = CSHIMS_LOCK_NEXT_TICKET + 24,                             // u32
    CSHIMS_LOCK_LIST_ALLOCATING = CSHIMS_LOCK_NEXT_TICKET + 28,                          // u32
    CSHIMS_LOCK_LIST_NEWEST = CSHIMS_LOCK_NEXT_TICKET + 32,                              // u32
    CSHIMS_LOCK_LIST_PADDING = CSHIMS_LOCK_NEXT_TICKET + 36,                             // u32, alignment of the records
    CSHIMS_LOCK_LIST_RECORDS = CSHIMS_LOCK_NEXT_TICKET + 40,
} CShimsLockField;

// Sets up the three mutexes and the condition variables in zeroed memory at `base` (2.4). 0, or an errno value.
int CShims_lock_file_initialise_primitives(void *base);
// 1 where this build's C library has mutexes and condition variables of the sizes above and is glibc, else 0.
int CShims_lock_file_is_supported(void);

// A mutex of the lock file. The results are those of pthread: 0, EBUSY, EOWNERDEAD, ETIMEDOUT, EINVAL, ENOTRECOVERABLE.
// EINVAL also where the mutex does not have the kind that we initialise (robust, shared, normal): glibc would abort on some others.
int CShims_mutex_trylock(void *mutex);
// Waits until CLOCK_MONOTONIC reaches `deadline` nanoseconds.
int CShims_mutex_lock(void *mutex, int64_t deadline);
int CShims_mutex_consistent(void *mutex);
int CShims_mutex_unlock(void *mutex);
// The futex word: 0 free, else bits 0-29 = thread id of the owner, bit 30 = owner died, bit 31 = somebody waits (2.5).
uint32_t CShims_mutex_word(const void *mutex);

// May block for ever where a waiter was killed (5.2): called from a thread that holds nothing.
int CShims_condition_broadcast(void *condition);
// Number of waiters, dead ones included; stable while the mutex that belongs to the condition is held.
uint32_t CShims_condition_waiters(const void *condition);
#endif
