/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/namespace.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

typedef struct Call {
        int namespace_fd, new_flags; /* the latter where the former is none */
        int (*function)(void *userdata);
        void *userdata;
        int result;
} Call;

static void *run_call(void *argument)
{
        Call *call = argument;

        int r = call->namespace_fd >= 0 ? setns(call->namespace_fd, 0) : unshare(call->new_flags);

        call->result = r < 0 ? -errno : call->function(call->userdata);
        return NULL;
}

static int call_in_thread(Call *call)
{
        sigset_t all, old;
        pthread_t thread;
        int r;

        /* Signals are for the thread that waits for them. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&thread, NULL, run_call, call);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r != 0)
                return -r;
        r = pthread_join(thread, NULL);
        return r != 0 ? -r : call->result;
}

int namespace_call(int namespace_fd, int (*function)(void *userdata), void *userdata)
{
        Call call = { .namespace_fd = namespace_fd, .function = function, .userdata = userdata };

        return namespace_fd < 0 ? -EBADF : call_in_thread(&call);
}

int namespace_call_new(int flags, int (*function)(void *userdata), void *userdata)
{
        Call call = {
                .namespace_fd = -EBADF, .new_flags = flags, .function = function, .userdata = userdata
        };

        return call_in_thread(&call);
}
