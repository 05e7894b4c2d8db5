/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/namespace.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

typedef struct Call {
        int namespace_fd;
        int (*function)(void *userdata);
        void *userdata;
        int result;
} Call;

static void *run_call(void *argument)
{
        Call *call = argument;

        call->result = setns(call->namespace_fd, 0) < 0 ? -errno : call->function(call->userdata);
        return NULL;
}

int namespace_call(int namespace_fd, int (*function)(void *userdata), void *userdata)
{
        Call call = { .namespace_fd = namespace_fd, .function = function, .userdata = userdata };
        sigset_t all, old;
        pthread_t thread;
        int r;

        /* Signals are for the thread that waits for them. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&thread, NULL, run_call, &call);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r != 0)
                return -r;
        r = pthread_join(thread, NULL);
        return r != 0 ? -r : call.result;
}
