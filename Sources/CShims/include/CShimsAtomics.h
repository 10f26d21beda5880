// Atomic access to plain integers in mapped memory. Sequentially consistent unless the name says otherwise.
#ifndef CSHIMS_ATOMICS_H
#define CSHIMS_ATOMICS_H
#include <stdbool.h>
#include <stdint.h>

#define CSHIMS_ATOMICS(suffix, type)                                                                        \
    static inline type CShims_load_##suffix(const void *p) { return __atomic_load_n((const type *)p, __ATOMIC_SEQ_CST); } \
    static inline type CShims_load_relaxed_##suffix(const void *p) { return __atomic_load_n((const type *)p, __ATOMIC_RELAXED); } \
    static inline type CShims_load_acquire_##suffix(const void *p) { return __atomic_load_n((const type *)p, __ATOMIC_ACQUIRE); } \
    static inline void CShims_store_##suffix(void *p, type v) { __atomic_store_n((type *)p, v, __ATOMIC_SEQ_CST); } \
    static inline void CShims_store_release_##suffix(void *p, type v) { __atomic_store_n((type *)p, v, __ATOMIC_RELEASE); } \
    static inline type CShims_exchange_##suffix(void *p, type v) { return __atomic_exchange_n((type *)p, v, __ATOMIC_SEQ_CST); } \
    static inline type CShims_fetch_add_##suffix(void *p, type v) { return __atomic_fetch_add((type *)p, v, __ATOMIC_SEQ_CST); } \
    static inline bool CShims_compare_exchange_##suffix(void *p, type *expected, type desired) {            \
        return __atomic_compare_exchange_n((type *)p, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); }

CSHIMS_ATOMICS(u8, uint8_t)
CSHIMS_ATOMICS(u16, uint16_t)
CSHIMS_ATOMICS(u32, uint32_t)
CSHIMS_ATOMICS(u64, uint64_t)
static inline void CShims_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
