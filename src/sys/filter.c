/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/number.h"
#include "core/filter.h"
#include "sys/file.h"

#define STATUS_MAX  KIB(8)
#define FILTERS_MAX 512u /* of one process; the kernel's own bound is 32768 instructions in all */

/* No call of any architecture has this number: only a list of what is allowed refuses it. (Other settings
 * have filters of their own, which refuse calls by number and let the rest through.) */
#define UNLISTED_CALL 12287

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define NATIVE_ARCH AUDIT_ARCH_S390X
#else
#define NATIVE_ARCH 0u /* no filter knows it: the fact does not hold */
#endif

static bool lets_through(uint32_t answer)
{
        answer &= SECCOMP_RET_ACTION_FULL;
        return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG;
}

/* 1: one of its own filters refuses the call, 0: none does. The kernel counts from the oldest one
 * (get_nth_filter() in kernel/seccomp.c; ptrace(2) says the newest), so those that it inherited come first.
 */
static int ask_filters(pid_t pid, uint64_t inherited)
{
        const struct seccomp_data call = { .nr = UNLISTED_CALL, .arch = NATIVE_ARCH };
        _cleanup_free_ struct sock_filter *program = calloc(BPF_MAXINSNS, sizeof(*program));

        if (!program)
                return -ENOMEM;
        for (uint64_t i = inherited; i < inherited + FILTERS_MAX; i++) {
                long n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *) (uintptr_t) i, NULL);
                uint32_t answer;
                int r;

                if (n < 0)
                        return errno == ENOENT ? 0 : -errno;
                if (n > BPF_MAXINSNS)
                        return -E2BIG;
                if (ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *) (uintptr_t) i, program) != n)
                        return -EIO;
                r = filter_run(program, (size_t) n, &call, &answer);
                if (r < 0)
                        return r;
                if (!lets_through(answer))
                        return 1;
        }
        return 0;
}

/* It waits in a system call, which goes on afterwards as if nothing had been. */
static int ask_stopped(pid_t pid, uint64_t inherited)
{
        int status, r;

        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
                return -errno;
        if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
                return -errno;
        while (waitpid(pid, &status, __WALL) < 0)
                if (errno != EINTR)
                        return -errno;
        if (!WIFSTOPPED(status))
                return -ESRCH;
        r = ask_filters(pid, inherited);
        if (ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
                return -errno;
        return r;
}

/* Seccomp_filters of proc_pid_status(5); 0 also where the kernel does not count them (before 5.9). */
static int count_filters(int proc_fd, const char *path, uint64_t *ret)
{
        char status[STATUS_MAX], digits[24];
        int r = file_read_at(proc_fd, path, status, sizeof(status));

        if (r < 0)
                return r;
        *ret = 0;
        return text_field(status, "Seccomp_filters", digits, sizeof(digits)) ? parse_u64(digits, ret) : 0;
}

static int add_list_fact(pid_t pid, uint64_t inherited, Outcome *o)
{
        static const char expected[] = "what is not listed is refused";
        int r = ask_stopped(pid, inherited);

        /* Without CONFIG_CHECKPOINT_RESTORE there is no such request; it is refused to whom is under a filter
         * himself, as everything in a container may be; and ptrace itself may be forbidden. */
        if (r == -EINVAL || r == -EIO || r == -EPERM || r == -EACCES)
                return outcome_blind_spot(o,
                                "isolation: which system calls the filter refuses could not be seen "
                                "(PTRACE_SECCOMP_GET_FILTER: %s)",
                                strerror(-r));
        if (r < 0)
                return r;
        return outcome_add_fact(o, "seccomp.list", r > 0, expected, r > 0 ? expected : "it is let through");
}

int filter_facts(int proc_fd, pid_t pid, bool listed, Outcome *o)
{
        uint64_t all = 0, inherited = 0, own;
        char text[24];
        int r = count_filters(proc_fd, "status", &all);

        if (r == 0)
                r = count_filters(AT_FDCWD, "/proc/1/status", &inherited);
        if (r < 0)
                return r;
        own = all > inherited ? all - inherited : 0;
        (void) snprintf(text, sizeof(text), "%" PRIu64, own);
        r = outcome_add_fact(o, "seccomp.filters", own > 0, "1 or more", text);
        return r < 0 || !listed ? r : add_list_fact(pid, inherited, o);
}
