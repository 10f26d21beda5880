// Memory for keys, and for what the cryptographic library makes of them: locked where that is allowed, left out of core dumps, wiped when
// it is given back.
#ifndef CSHIMS_SECRETS_H
#define CSHIMS_SECRETS_H
#include <stdbool.h>
#include <stddef.h>

// NULL where there is no memory. At most 4096 bytes.
void *CShims_secret_allocate(size_t size);
void CShims_secret_free(void *pointer);

// Between these two, what the cryptographic library allocates in this thread is secret memory. They nest.
void CShims_secrets_begin(void);
void CShims_secrets_end(void);
// False where the library had its memory functions set by somebody else, or allocated before we were loaded.
bool CShims_secrets_cover_library(void);
#endif
