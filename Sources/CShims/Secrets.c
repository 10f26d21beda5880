#define _GNU_SOURCE
#include "CShimsSecrets.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// One region for the whole process, cut into pages; each page holds blocks of one size, a power of two from 64 to 4096. Pages are locked
// when they are first used, and never given back.
enum { PAGE = 4096, PAGES = 2048, SMALLEST_SHIFT = 6, CLASSES = 7 };

static char *region;
static size_t pages_used;
static uint8_t page_class[PAGES];
static void *free_blocks[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned depth;
static bool covers_library;

static bool is_ours(const void *pointer) {
    const char *base = __atomic_load_n(&region, __ATOMIC_ACQUIRE);
    return base != NULL && (const char *)pointer >= base && (const char *)pointer < base + (size_t)PAGE * PAGES;
}

static size_t block_size(unsigned class) { return (size_t)1 << (class + SMALLEST_SHIFT); }
static unsigned class_of(const void *pointer) { return page_class[((const char *)pointer - region) / PAGE]; }

static bool add_page(unsigned class) {
    if (region == NULL) {
        void *fresh = mmap(NULL, (size_t)PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED) return false;
        madvise(fresh, (size_t)PAGE * PAGES, MADV_DONTDUMP);
        __atomic_store_n(&region, (char *)fresh, __ATOMIC_RELEASE);
    }
    if (pages_used == PAGES) return false;
    char *page = region + pages_used * PAGE;
    // A precaution; where the machine forbids it the memory is used all the same.
    mlock(page, PAGE);
    page_class[pages_used++] = (uint8_t)class;
    for (size_t at = 0; at < PAGE; at += block_size(class)) {
        *(void **)(page + at) = free_blocks[class];
        free_blocks[class] = page + at;
    }
    return true;
}

void *CShims_secret_allocate(size_t size) {
    unsigned class = 0;
    while (class < CLASSES && block_size(class) < size) class++;
    if (class == CLASSES) return NULL;
    pthread_mutex_lock(&lock);
    void *block = NULL;
    if (free_blocks[class] != NULL || add_page(class)) {
        block = free_blocks[class];
        free_blocks[class] = *(void **)block;
        *(void **)block = NULL;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void CShims_secret_free(void *pointer) {
    if (pointer == NULL) return;
    pthread_mutex_lock(&lock);
    unsigned class = class_of(pointer);
    explicit_bzero(pointer, block_size(class));
    *(void **)pointer = free_blocks[class];
    free_blocks[class] = pointer;
    pthread_mutex_unlock(&lock);
}

void CShims_secrets_begin(void) { depth++; }
void CShims_secrets_end(void) { depth--; }
bool CShims_secrets_cover_library(void) { return covers_library; }

// MARK: The memory functions of the cryptographic library

static void *library_allocate(size_t size, const char *file, int line) {
    (void)file, (void)line;
    if (size == 0) return NULL;
    // Greater blocks than we have are none that hold keys.
    void *block = depth > 0 ? CShims_secret_allocate(size) : NULL;
    return block != NULL ? block : malloc(size);
}

static void library_free(void *pointer, const char *file, int line) {
    (void)file, (void)line;
    if (is_ours(pointer)) CShims_secret_free(pointer);
    else free(pointer);
}

static void *library_reallocate(void *pointer, size_t size, const char *file, int line) {
    if (pointer == NULL) return library_allocate(size, file, line);
    if (size == 0) {
        library_free(pointer, file, line);
        return NULL;
    }
    if (!is_ours(pointer)) return realloc(pointer, size);
    size_t present = block_size(class_of(pointer));
    if (size <= present) return pointer;
    void *block = CShims_secret_allocate(size);
    if (block == NULL) block = malloc(size);
    if (block == NULL) return NULL;
    memcpy(block, pointer, present);
    CShims_secret_free(pointer);
    return block;
}

extern int CRYPTO_set_mem_functions(
    void *(*allocate)(size_t, const char *, int), void *(*reallocate)(void *, size_t, const char *, int), void (*release)(void *, const char *, int)
) __attribute__((weak));

// The library takes them only before it has allocated anything: so this is done when the program is loaded.
__attribute__((constructor)) static void cover_library(void) {
    if (CRYPTO_set_mem_functions != NULL) covers_library = CRYPTO_set_mem_functions(library_allocate, library_reallocate, library_free) == 1;
}
