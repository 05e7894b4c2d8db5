/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/host.h"

#include <sys/utsname.h>
#include <systemd/sd-id128.h>
#include <time.h>

int host_random_id(char id[static 33])
{
        sd_id128_t random;
        int r = sd_id128_randomize(&random);

        if (r < 0)
                return r;
        sd_id128_to_string(random, id);
        return 0;
}

int host_read(HostFacts *ret)
{
        struct utsname name;
        sd_id128_t boot;
        char text[SD_ID128_STRING_MAX];

        if (uname(&name) < 0)
                return -errno;
        ret->kernel = strdup(name.release);
        ret->machine = strdup(name.machine);
        ret->hostname = strdup(name.nodename);
        if (!ret->kernel || !ret->machine || !ret->hostname)
                return -ENOMEM;
        if (sd_id128_get_boot(&boot) < 0)
                return 0;
        ret->boot_id = strdup(sd_id128_to_string(boot, text));
        return ret->boot_id ? 0 : -ENOMEM;
}

static uint64_t now(clockid_t clock)
{
        struct timespec ts;

        if (clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / NSEC_PER_USEC;
}

uint64_t now_monotonic(void)
{
        return now(CLOCK_MONOTONIC);
}

uint64_t now_boottime(void)
{
        return now(CLOCK_BOOTTIME);
}

uint64_t now_realtime(void)
{
        return now(CLOCK_REALTIME);
}
