/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC

static long live;          /* allocations not yet freed */
static unsigned countdown; /* 0: none fails; 1: the next one does */
static unsigned failed;

/* glibc's own, behind the public names (malloc/malloc.c exports them for interposers). */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *pointer);

static bool must_fail(void)
{
        if (countdown == 0 || --countdown > 0)
                return false;
        failed++;
        errno = ENOMEM;
        return true;
}

static void *counted(void *pointer)
{
        if (pointer)
                live++;
        return pointer;
}

void *malloc(size_t size)
{
        return must_fail() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
        return must_fail() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
        if (must_fail())
                return NULL;
        return old ? __libc_realloc(old, size) : counted(__libc_malloc(size));
}

void free(void *pointer)
{
        if (pointer)
                live--;
        __libc_free(pointer);
}

unsigned alloc_fail_each(int (*attempt)(void *context), void *context)
{
        unsigned told = 0;

        for (unsigned n = 1;; n++) {
                long before;
                int r;

                assert(n < 100000);
                before = live;
                failed = 0;
                countdown = n;
                r = attempt(context);
                countdown = 0;
                if (live != before)
                        fprintf(stderr, "allocation %u failing: %ld leaked\n", n, live - before);
                assert(live == before);
                if (failed == 0) {
                        assert(r == 0);
                        return told;
                }
                if (r != 0 && r != -ENOMEM)
                        fprintf(stderr, "allocation %u failing: returned %d\n", n, r);
                assert(r == 0 || r == -ENOMEM);
                told += r == -ENOMEM;
        }
}

#else

unsigned alloc_fail_each(int (*attempt)(void *context), void *context)
{
        assert(attempt(context) == 0);
        return 1;
}

#endif
