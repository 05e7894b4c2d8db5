/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A very small harness. TEST(name) { … } defines and registers one test; a CHECK that does not hold prints
 * its place and values, and the program ends with 1. Include it once, in the test program. */

#include <stdarg.h>

#include "base/macro.h"

typedef struct Test {
        const char *name;
        void (*run)(void);
        struct Test *next;
} Test;

static Test *test_first, **test_last = &test_first;
static unsigned test_checks, test_failures;

#define TEST(id)                                                                                             \
        static void run_##id(void);                                                                          \
        static Test test_entry_##id = { .name = #id, .run = run_##id };                                      \
        __attribute__((constructor)) static void test_register_##id(void)                                    \
        {                                                                                                    \
                *test_last = &test_entry_##id;                                                               \
                test_last = &test_entry_##id.next;                                                           \
        }                                                                                                    \
        static void run_##id(void)

static inline bool _printf_(4, 5) test_check(bool holds, const char *file, int line, const char *format, ...)
{
        va_list ap;

        test_checks++;
        if (holds)
                return true;
        test_failures++;
        va_start(ap, format);
        (void) printf("  %s:%d: ", file, line);
        (void) vprintf(format, ap);
        (void) printf("\n");
        va_end(ap);
        return false;
}

#define CHECK(condition) ((void) test_check((condition), __FILE__, __LINE__, "%s", #condition))
#define CHECK_EQ(a, b)   test_equal((long long) (a), (long long) (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_STR(a, b)  test_equal_text((a), (b), __FILE__, __LINE__)
/* text contains part. */
#define CHECK_HAS(text, part) test_contains((text), (part), __FILE__, __LINE__)
/* Ends the test: what follows would make no sense. */
#define REQUIRE(condition)                                                                                   \
        do {                                                                                                 \
                if (!test_check((condition), __FILE__, __LINE__, "%s", #condition))                          \
                        return;                                                                              \
        } while (0)

static inline void test_equal(long long a, long long b, const char *what, const char *file, int line)
{
        (void) test_check(a == b, file, line, "%s: %lld, %lld", what, a, b);
}

static inline void test_equal_text(const char *a, const char *b, const char *file, int line)
{
        (void) test_check(streq_ptr(a, b), file, line, "\"%s\" is not \"%s\"", a ? a : "(null)",
                        b ? b : "(null)");
}

static inline void test_contains(const char *text, const char *part, const char *file, int line)
{
        (void) test_check(text && strstr(text, part), file, line, "\"%s\" is not in \"%s\"", part,
                        text ? text : "(null)");
}

static inline int test_main(const char *program)
{
        unsigned n = 0;

        for (Test *t = test_first; t; t = t->next, n++) {
                unsigned before = test_failures;

                (void) setvbuf(stdout, NULL, _IOLBF, 0);
                t->run();
                (void) printf("%s %s\n", test_failures == before ? "ok" : "FAIL", t->name);
        }
        (void) printf("%s: %u tests, %u checks, %u failed\n", program, n, test_checks, test_failures);
        return test_failures > 0 || n == 0 || test_checks == 0 ? 1 : 0;
}

#define TEST_MAIN                                                                                            \
        int main(_unused_ int argc, char **argv)                                                             \
        {                                                                                                    \
                return test_main(argv[0]);                                                                   \
        }
