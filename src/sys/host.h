/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Facts of the host that a receipt records. */

#include "core/outcome.h"

/* kernel, machine, hostname, boot id; systemd is the manager's to say. 0 or -ENOMEM. */
int host_read(HostFacts *ret);

/* 128 random bits as 32 hex digits, by sd_id128_randomize(3). 0 or a negative errno. */
int host_random_id(char id[static 33]);

/* CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME in microseconds. */
uint64_t now_monotonic(void);
uint64_t now_boottime(void);
uint64_t now_realtime(void);
