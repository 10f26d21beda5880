// Loaded before everything else by `Scripts/sanitize thread`: tells the thread sanitizer what the Swift runtime does between threads.
//
// The sanitizer sees our code, since it is compiled for it, and the functions of the C library and of Dispatch, since it stands in front of
// them. Of the other libraries of the toolchain it sees nothing, so it would take what they order for races:
//
// - `Mutex` of Synchronization is inlined into our code but for the ways that wait or wake, which only the library has.
// - `swift_once`, behind every global and static property, waits for the thread that makes the value.
// - Tasks and actors go from thread to thread. Their library would say so itself, by two functions that are looked for when the
//   sanitizer begins, on other systems than this one.
//
// So this stands in front of these as well, and says what happens before what: no more than the library promises. Without
// the sanitizer in the process everything here does nothing but call on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));
static void acquire(void *address) { if (__tsan_acquire != NULL) __tsan_acquire(address); }
static void release(void *address) { if (__tsan_release != NULL) __tsan_release(address); }

#define NEXT(type, variable, name) \
    static type variable; \
    if (variable == NULL) variable = (type)dlsym(RTLD_NEXT, name)

// MARK: Mutex

SWIFT void mutex_lock_slow(uint32_t thread, SELF void *mutex) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT bool mutex_try_lock_slow(SELF void *mutex) __asm__("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
SWIFT void mutex_unlock_slow(SELF void *mutex) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");

SWIFT void mutex_lock_slow(uint32_t thread, SELF void *mutex) {
    typedef SWIFT void (*function)(uint32_t, SELF void *);
    NEXT(function, next, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    next(thread, mutex);
    acquire(mutex);
}

SWIFT bool mutex_try_lock_slow(SELF void *mutex) {
    typedef SWIFT bool (*function)(SELF void *);
    NEXT(function, next, "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
    bool is_locked = next(mutex);
    if (is_locked) acquire(mutex);
    return is_locked;
}

SWIFT void mutex_unlock_slow(SELF void *mutex) {
    typedef SWIFT void (*function)(SELF void *);
    NEXT(function, next, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
    release(mutex);
    next(mutex);
}

// MARK: Global and static properties

struct once { void (*body)(void *); void *context, *predicate; };

static void run_once(void *pointer) {
    struct once *once = pointer;
    once->body(once->context);
    release(once->predicate);
}

void swift_once(void *predicate, void (*body)(void *), void *context) {
    typedef void (*function)(void *, void (*)(void *), void *);
    NEXT(function, next, "swift_once");
    struct once once = { body, context, predicate };
    next(predicate, run_once, &once);
    acquire(predicate);
}

// MARK: Tasks and actors

extern bool tasks_are_watched __asm__("_swift_tsan_enabled") __attribute__((weak));
extern void (*task_acquire)(void *) __asm__("_swift_tsan_acquire") __attribute__((weak));
extern void (*task_release)(void *) __asm__("_swift_tsan_release") __attribute__((weak));

__attribute__((constructor)) static void watch_tasks(void) {
    if (__tsan_acquire == NULL || __tsan_release == NULL || &task_acquire == NULL || &task_release == NULL || &tasks_are_watched == NULL) return;
    task_acquire = __tsan_acquire;
    task_release = __tsan_release;
    tasks_are_watched = true;
}
