/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ownership and small arithmetic used everywhere: cleanup attributes, transfer of ownership, sizes of
 * arrays. Knows nothing of the rest of the program. */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)      __attribute__((cleanup(f)))
#define _printf_(a, b)    __attribute__((format(printf, a, b)))
#define _unused_          __attribute__((unused))
#define _warn_unused_     __attribute__((warn_unused_result))
#define ELEMENTSOF(array) (sizeof(array) / sizeof((array)[0]))
#define STRLEN(literal)   (sizeof("" literal "") - 1)
#define USEC_PER_SEC      UINT64_C(1000000)
#define USEC_PER_MSEC     UINT64_C(1000)
#define NSEC_PER_USEC     UINT64_C(1000)
#define KIB(n)            ((uint64_t) (n) << 10)
#define MIB(n)            ((uint64_t) (n) << 20)

/* A number that could not be read or does not exist here. Never 0: 0 is a measurement. */
#define UNKNOWN UINT64_MAX

#define MIN(a, b)                                                                                            \
        ({                                                                                                   \
                __typeof__(a) _min_a = (a);                                                                  \
                __typeof__(b) _min_b = (b);                                                                  \
                _min_a < _min_b ? _min_a : _min_b;                                                           \
        })

#define MAX(a, b)                                                                                            \
        ({                                                                                                   \
                __typeof__(a) _max_a = (a);                                                                  \
                __typeof__(b) _max_b = (b);                                                                  \
                _max_a > _max_b ? _max_a : _max_b;                                                           \
        })

/* Hands the pointer on and forgets it here, so that a cleanup attribute does not free it. */
#define TAKE_PTR(pointer)                                                                                    \
        ({                                                                                                   \
                __typeof__(pointer) *_take = &(pointer);                                                     \
                __typeof__(pointer) _taken = *_take;                                                         \
                *_take = NULL;                                                                               \
                _taken;                                                                                      \
        })

#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int *_take = &(fd);                                                                          \
                int _taken = *_take;                                                                         \
                *_take = -EBADF;                                                                             \
                _taken;                                                                                      \
        })

/* Defines foo_freep() for _cleanup_(foo_freep) from a foo_free() that takes NULL. */
#define DEFINE_CLEANUP(type, function)                                                                       \
        static inline void function##p(type *pointer)                                                        \
        {                                                                                                    \
                if (*pointer)                                                                                \
                        function(*pointer);                                                                  \
        }

static inline void freep(void *pointer)
{
        free(*(void **) pointer);
}

/* Closes a descriptor, keeps errno, returns the value that means "none". */
static inline int safe_close(int fd)
{
        int saved = errno;

        if (fd >= 0)
                (void) close(fd);
        errno = saved;
        return -EBADF;
}

static inline void closep(int *fd)
{
        *fd = safe_close(*fd);
}

#define _cleanup_free_  _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

static inline bool streq(const char *a, const char *b)
{
        return strcmp(a, b) == 0;
}

static inline bool streq_ptr(const char *a, const char *b)
{
        return a == b || (a && b && streq(a, b));
}

/* Returns what follows the prefix, or NULL. */
static inline const char *startswith(const char *text, const char *prefix)
{
        size_t length = strlen(prefix);

        return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Whether it ends so, with something before it: ".json" is no name that has this ending. */
static inline bool has_suffix(const char *text, const char *suffix)
{
        size_t length = strlen(text), n = strlen(suffix);

        return length > n && streq(text + length - n, suffix);
}
