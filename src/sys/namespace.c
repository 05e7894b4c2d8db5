/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/namespace.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK_SIZE KIB(512)

typedef struct Call {
        int namespace_fd, new_flags; /* the latter where the former is none */
        int (*function)(void *userdata);
        void *userdata;
        int result;
} Call;

/* With a page below it that nobody may touch. Never freed: there is one. */
static int get_stack(char **ret)
{
        static char *stack;
        size_t page = (size_t) getpagesize();
        char *map;

        if (!stack) {
                map = mmap(NULL, STACK_SIZE + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
                if (map == MAP_FAILED)
                        return -errno;
                if (mprotect(map, page, PROT_NONE) < 0) {
                        int r = -errno;

                        (void) munmap(map, STACK_SIZE + page);
                        return r;
                }
                stack = map + page;
        }
        *ret = stack;
        return 0;
}

/* Its end is told to nobody, so that nobody takes it for another one. */
static void reap(pid_t pid)
{
        while (waitpid(pid, NULL, (int) __WCLONE) < 0 && errno == EINTR)
                ;
}

static int run_call(void *argument)
{
        Call *call = argument;
        int r = call->namespace_fd >= 0 ? setns(call->namespace_fd, 0) : unshare(call->new_flags);

        call->result = r < 0 ? -errno : call->function(call->userdata);
        return 0;
}

/* The memory and the descriptors are shared, so nothing is copied as by fork(2) and nothing need be sent
 * back; namespaces, root and directory are the child's own. We stand still meanwhile, so it may do whatever
 * we could. */
static int call_in_child(Call *call)
{
        char *stack;
        pid_t pid;
        int r = get_stack(&stack);

        if (r < 0)
                return r;
        call->result = -EIO; /* should it be killed */
        pid = clone(run_call, stack + STACK_SIZE, CLONE_VM | CLONE_FILES | CLONE_VFORK, call);
        if (pid < 0)
                return -errno;
        reap(pid);
        return call->result;
}

int namespace_call(int namespace_fd, int (*function)(void *userdata), void *userdata)
{
        Call call = { .namespace_fd = namespace_fd, .function = function, .userdata = userdata };

        return namespace_fd < 0 ? -EBADF : call_in_child(&call);
}

int namespace_call_new(int flags, int (*function)(void *userdata), void *userdata)
{
        Call call = {
                .namespace_fd = -EBADF, .new_flags = flags, .function = function, .userdata = userdata
        };

        return call_in_child(&call);
}

/* Beside us in the same memory, so without the C library, whose errno is ours. */
static int do_nothing(_unused_ void *userdata)
{
        (void) syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        while (syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0) != 0)
                ;
        return 0;
}

int namespace_hold(int flags, pid_t *ret)
{
        sigset_t all, old;
        char *stack;
        pid_t pid;
        int r = get_stack(&stack);

        if (r < 0)
                return r;
        /* Nothing but SIGKILL may wake it. */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &old);
        pid = clone(do_nothing, stack + STACK_SIZE, CLONE_VM | CLONE_FILES | flags, NULL);
        r = pid < 0 ? -errno : 0;
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
        *ret = pid;
        return r;
}

void namespace_let_go(pid_t pid)
{
        (void) kill(pid, SIGKILL);
        reap(pid);
}
