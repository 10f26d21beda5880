// Facts of the Swift runtime and of libdispatch that the object layer needs and Swift has no words for.
//
// The symbols are named by asm label, since the Swift compiler warns of runtime names in its own declarations. Those of
// libdispatch, Foundation and the concurrency library are weak: a program that links none of them still links this target.
#ifndef CSHIMS_RUNTIME_H
#define CSHIMS_RUNTIME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Calls `body` with the metadata of every class of the process that is not generic and has a superclass.
void realm_for_each_class(void (*body)(const void *metadata, void *context), void *context);

/// Number of images (program and libraries) with Swift metadata; it grows when a library is loaded.
size_t realm_swift_image_count(void);

/// Position, in words from the metadata's address point, of the vtable entry of the first initializer that the class of
/// `metadata` declares itself; 0 where the class has no vtable of the form that is understood here.
size_t realm_first_initializer_slot(const void *metadata);

/// Calls the allocating initializer without parameters in vtable slot `slot` of the class `metadata`; the result is owned by the caller.
void *realm_call_initializer(const void *metadata, size_t slot);

/// Bytes and alignment mask of the instances of a class.
static inline uint32_t realm_instance_size(const void *metadata) { return *(const uint32_t *)((const char *)metadata + 24); }
static inline uint32_t realm_instance_align_mask(const void *metadata) { return *(const uint16_t *)((const char *)metadata + 28); }

/// A new instance with a reference count of one and uninitialized fields.
void *realm_allocate_object(const void *metadata, size_t size, size_t align_mask);

/// The word of an object in which its references are counted, or, once there was a weak one, that leads to where they are.
static inline uint64_t realm_count_word(const void *object) {
    return __atomic_load_n((const uint64_t *)((const char *)object + 8), __ATOMIC_ACQUIRE);
}

/// That word of an object to which there is one strong reference and no other, as found out with two new instances of a class, to each of which
/// there is one reference; 0 where the word does not tell a second strong, an unowned or a weak reference from none.
uint64_t realm_sole_reference_word(void *object, void *other);

/// By how much that word grows with each strong reference, as found out with an instance to which there is one; 0 where it does not grow by
/// the same with each of the first few thousand.
uint64_t realm_reference_step(void *object);

/// Many strong references at once, taken and given back: one change of the word instead of one for each.
void realm_retain_times(void *object, uint32_t count);
void realm_release_times(void *object, uint32_t count);

/// One more strong reference to an object whose memory is there; NULL where it has begun to go.
void *realm_try_retain(void *object);

extern __thread uint64_t realm_thread_number __attribute__((tls_model("initial-exec")));
uint64_t realm_assign_thread_number(void);

/// A number of the calling thread that no other thread of the process ever had or will have.
static inline uint64_t realm_current_thread_number(void) {
    uint64_t number = realm_thread_number;
    return number != 0 ? number : realm_assign_thread_number();
}

/// The same, or 0 where the thread has no number yet.
static inline uint64_t realm_present_thread_number(void) { return realm_thread_number; }

extern __thread uint32_t realm_sample_depth __attribute__((tls_model("initial-exec")));

/// While a thread makes an instance of a class for a library's own use: what the instance makes besides may tell.
static inline void realm_begin_sample(void) { realm_sample_depth += 1; }
static inline void realm_end_sample(void) { realm_sample_depth -= 1; }
static inline bool realm_makes_sample(void) { return realm_sample_depth != 0; }

/// Has `handler`, the same for all threads, called with `context` on the calling thread when that ends; false where that cannot be.
bool realm_set_thread_end(void *context, void (*handler)(void *context));

/// The context that was set for the calling thread, or NULL.
void *realm_thread_end_context(void);

/// The C queue of libdispatch on which the caller runs, or NULL.
void *realm_current_queue(void);

/// Address of the actor on which the caller runs, or NULL.
void *realm_current_actor(void);

/// The run loop of the calling thread (not retained), or NULL where Foundation is not linked.
void *realm_current_run_loop(void);

/// Wakes a sleeping run loop, from any thread.
void realm_wake_run_loop(void *loop);
#endif
