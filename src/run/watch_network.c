/* SPDX-License-Identifier: Apache-2.0 */

/* The job's network namespace, and what it sends out of it. */

#include "run/state.h"

#include "sys/netns.h"

int network_prepare(Run *run, Error *e)
{
        return run->plan->network == NETWORK_NONE ? netns_new(&run->netns_fd, e) : 0;
}

void network_clear(Run *run)
{
        run->netns_fd = safe_close(run->netns_fd);
}
