#include "CShimsRuntime.h"
#include <pthread.h>
#include <string.h>

// MARK: Classes of the process

// Of the runtime's MetadataSections only the range of type records is read: the third one, at byte 64.
struct section_range { uintptr_t start; size_t length; };
struct metadata_sections {
    uintptr_t version, base_address, unused[2];
    struct section_range protocols, conformances, type_records;
};

extern void enumerate_sections(bool (*body)(const struct metadata_sections *, void *), void *context)
    __asm__("swift_enumerateAllMetadataSections") __attribute__((weak));

struct class_descriptor {
    uint32_t flags;
    int32_t parent, name, access_function, fields, superclass;
    uint32_t negative_words, positive_words, immediate_members, field_count, field_offset_vector;
};

struct metadata_response { const void *metadata; size_t state; };
typedef __attribute__((swiftcall)) struct metadata_response (*metadata_accessor)(size_t request);

static const void *relative(const int32_t *field) { return *field == 0 ? NULL : (const char *)field + *field; }

struct walk { void (*body)(const void *, void *); void *context; };

static bool walk_sections(const struct metadata_sections *sections, void *context) {
    struct walk *walk = context;
    const int32_t *records = (const int32_t *)sections->type_records.start;
    for (size_t i = 0; i < sections->type_records.length / 4; i++) {
        // The low two bits say how the record points: 0 directly, 1 through a pointer.
        int32_t record = records[i];
        const char *target = (const char *)&records[i] + (record & ~3);
        if ((record & 3) == 1) target = *(const char *const *)target;
        else if ((record & 3) != 0) continue;
        if (target == NULL) continue;
        const struct class_descriptor *descriptor = (const struct class_descriptor *)target;
        // Kind 16 is a class, bit 7 says generic.
        if ((descriptor->flags & 0x1F) != 16 || (descriptor->flags & 0x80) != 0 || descriptor->superclass == 0) continue;
        metadata_accessor accessor = (metadata_accessor)relative(&descriptor->access_function);
        if (accessor == NULL) continue;
        const void *metadata = accessor(0).metadata;
        if (metadata != NULL) walk->body(metadata, walk->context);
    }
    return true;
}

void realm_for_each_class(void (*body)(const void *, void *), void *context) {
    struct walk walk = { body, context };
    if (enumerate_sections != NULL) enumerate_sections(walk_sections, &walk);
}

static bool count_sections(const struct metadata_sections *sections, void *context) {
    (void)sections;
    ++*(size_t *)context;
    return true;
}

size_t realm_swift_image_count(void) {
    size_t count = 0;
    if (enumerate_sections != NULL) enumerate_sections(count_sections, &count);
    return count;
}

// MARK: Instances

struct method_descriptor { uint32_t flags; int32_t implementation; };
struct vtable_header { uint32_t offset, size; };

size_t realm_first_initializer_slot(const void *metadata) {
    // The descriptor of a class stands at byte 40 of its metadata, behind kind, superclass, flags and sizes.
    const struct class_descriptor *descriptor = *(const struct class_descriptor *const *)((const char *)metadata + 40);
    if (descriptor == NULL || (descriptor->flags & 0x1F) != 16 || (descriptor->flags & 0x80) != 0) return 0;
    uint32_t kind_flags = descriptor->flags >> 16;
    // Bit 15: has a vtable; bit 13: resilient superclass; the low two bits: how metadata is completed. Both move the header.
    if ((kind_flags & 0x8000) == 0 || (kind_flags & 0x2003) != 0) return 0;
    const struct vtable_header *header = (const struct vtable_header *)(descriptor + 1);
    const struct method_descriptor *methods = (const struct method_descriptor *)(header + 1);
    for (uint32_t i = 0; i < header->size; i++) {
        if ((methods[i].flags & 0x0F) == 1) return header->offset + i;
    }
    return 0;
}

typedef __attribute__((swiftcall)) void *(*allocating_initializer)(__attribute__((swift_context)) const void *metatype);

void *realm_call_initializer(const void *metadata, size_t slot) {
    allocating_initializer initializer = ((const allocating_initializer *)metadata)[slot];
    return initializer(metadata);
}

extern void *allocate_object(const void *metadata, size_t size, size_t align_mask) __asm__("swift_allocObject");

void *realm_allocate_object(const void *metadata, size_t size, size_t align_mask) { return allocate_object(metadata, size, align_mask); }

extern void *try_retain(void *object) __asm__("swift_tryRetain");

void *realm_try_retain(void *object) { return try_retain(object); }

extern void *retain(void *object) __asm__("swift_retain");
extern void release(void *object) __asm__("swift_release");
extern void *unowned_retain(void *object) __asm__("swift_unownedRetain");
extern void unowned_release(void *object) __asm__("swift_unownedRelease");
extern void *weak_init(void *reference, void *object) __asm__("swift_weakInit");
extern void weak_destroy(void *reference) __asm__("swift_weakDestroy");

// In C, since the Swift compiler drops a retain with a release behind it.
uint64_t realm_sole_reference_word(void *object, void *other) {
    uint64_t sole = realm_count_word(object), first_of_other = realm_count_word(other);
    retain(object);
    uint64_t twice = realm_count_word(object);
    release(object);
    uint64_t again = realm_count_word(object);
    unowned_retain(object);
    uint64_t unowned = realm_count_word(object);
    unowned_release(object);
    uint64_t after = realm_count_word(object);
    void *reference = NULL;
    weak_init(&reference, other);
    uint64_t weak = realm_count_word(other);
    weak_destroy(&reference);
    // Once there was a weak reference the counts are elsewhere for good.
    uint64_t after_weak = realm_count_word(other);
    if (first_of_other != sole || again != sole || after != sole) return 0;
    if (twice == sole || unowned == sole || weak == sole || after_weak == sole) return 0;
    return sole;
}

extern void *retain_times(void *object, uint32_t count) __asm__("swift_retain_n");
extern void release_times(void *object, uint32_t count) __asm__("swift_release_n");

void realm_retain_times(void *object, uint32_t count) { retain_times(object, count); }
void realm_release_times(void *object, uint32_t count) { release_times(object, count); }

uint64_t realm_reference_step(void *object) {
    uint64_t sole = realm_count_word(object);
    retain(object);
    uint64_t step = realm_count_word(object) - sole;
    bool is_steady = step != 0;
    // Of 1, 3, 7 ... references; 4095 at the end.
    for (uint32_t count = 1; count < 4095; count = 2 * count + 1) {
        is_steady = is_steady && realm_count_word(object) == sole + count * step;
        retain_times(object, count + 1);
    }
    is_steady = is_steady && realm_count_word(object) == sole + 4095 * step;
    release(object);
    is_steady = is_steady && realm_count_word(object) == sole + 4094 * step;
    release_times(object, 4094);
    return is_steady && realm_count_word(object) == sole ? step : 0;
}

// MARK: Where the caller runs

__thread uint64_t realm_thread_number = 0;
__thread uint32_t realm_sample_depth = 0;
static uint64_t last_thread_number = 0;

uint64_t realm_assign_thread_number(void) {
    return realm_thread_number = __atomic_add_fetch(&last_thread_number, 1, __ATOMIC_RELAXED);
}

extern void *current_queue(void) __asm__("dispatch_get_current_queue") __attribute__((weak));
void *realm_current_queue(void) { return current_queue == NULL ? NULL : current_queue(); }

struct executor { void *identity; const void *implementation; };
extern __attribute__((swiftcall)) struct executor current_executor(void) __asm__("swift_task_getCurrentExecutor") __attribute__((weak));
void *realm_current_actor(void) { return current_executor == NULL ? NULL : current_executor().identity; }

extern void *current_run_loop(void) __asm__("CFRunLoopGetCurrent") __attribute__((weak));
void *realm_current_run_loop(void) { return current_run_loop == NULL ? NULL : current_run_loop(); }

extern void wake_run_loop(void *loop) __asm__("CFRunLoopWakeUp") __attribute__((weak));
void realm_wake_run_loop(void *loop) {
    if (wake_run_loop != NULL) wake_run_loop(loop);
}

// MARK: The end of a thread

static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static bool has_end_key = false;
static void (*end_handler)(void *context) = NULL;

static void thread_ends(void *context) { __atomic_load_n(&end_handler, __ATOMIC_ACQUIRE)(context); }
static void make_end_key(void) { has_end_key = pthread_key_create(&end_key, thread_ends) == 0; }

void *realm_thread_end_context(void) {
    pthread_once(&end_once, make_end_key);
    return has_end_key ? pthread_getspecific(end_key) : NULL;
}

bool realm_set_thread_end(void *context, void (*handler)(void *context)) {
    __atomic_store_n(&end_handler, handler, __ATOMIC_RELEASE);
    pthread_once(&end_once, make_end_key);
    return has_end_key && pthread_setspecific(end_key, context) == 0;
}
