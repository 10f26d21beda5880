// What Swift cannot say itself. No _GNU_SOURCE here: fd_set would then differ from the one in Swift's Glibc module.
#ifndef CSHIMS_H
#define CSHIMS_H
#include "CShimsAtomics.h"
#include "CShimsLockFile.h"
#include "CShimsEpoll.h"
#include "CShimsForks.h"
#include "CShimsSignals.h"
#include "CShimsRuntime.h"
#include "CShimsSecrets.h"
#include "CShimsSystem.h"
#include "CShimsText.h"
#endif
