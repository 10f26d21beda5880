// A child made by fork shares its parent's locks, counters and descriptors, and has none of its threads.
#ifndef CSHIMS_FORKS_H
#define CSHIMS_FORKS_H
#include <stdbool.h>

extern bool CShims_forked;

// From now on children of this process are known as such. Further calls do nothing.
void CShims_watch_forks(void);

// True in a child, and in its children, made by fork after `CShims_watch_forks`.
static inline bool CShims_is_forked(void) { return CShims_forked; }
#endif
