/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst). A job's own group is only ever reached
 * through the descriptor of its directory, since a path may be somebody else's a moment later. */

#include <sys/types.h>

#include "base/error.h"
#include "core/outcome.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"

typedef enum Controller {
        CONTROLLER_MEMORY = 1 << 0,
        CONTROLLER_PIDS = 1 << 1,
        CONTROLLER_CPU = 1 << 2,
        CONTROLLER_IO = 1 << 3,
} Controller;

/* Checks that /sys/fs/cgroup is the unified hierarchy and says which controllers it has. -EOPNOTSUPP with a
 * sentence when it is not. */
int cgroup_host(unsigned *ret_controllers, Error *e);
const char *controller_name(Controller one);

/* Where a controller is mounted, whatever the hierarchy, by libcgroup's table: on a host with both, version 1
 * may have it. -ENOENT: nowhere. Too dear to be asked for each run: the table is cleared whole, 800 KiB. */
int cgroup_elsewhere(Controller one, char **ret);

/* Reads the group of a process ("0::/a/b" of /proc/PID/cgroup) and checks that it is .../slice/service. Opens
 * both. -ESTALE when the process is somewhere else. */
int cgroup_open_job(
                pid_t pid, const char *slice, const char *service, int *ret_slice_fd, int *ret_service_fd);

/* One number of a group's file; UNKNOWN for "max" and for a file that is not there. With key: of "key value".
 */
uint64_t cgroup_value(int fd, const char *file, const char *key);

/* The group's counters into usage (cpu, memory, pids, io, pressure). What is not there stays UNKNOWN. */
void cgroup_read_usage(int slice_fd, Usage *usage);

/* The counters of limits that fired. pids_max: only if it is larger than what is there already, since older
 * kernels count it in the group that forks. */
void cgroup_read_events(int slice_fd, LimitEvents *events);

/* memory.events oom of the group above: what caps all jobs together was out of memory so many times. */
uint64_t cgroup_outer_oom(int slice_fd);

/* How many times systemd-oomd(8) killed this group: it leaves the number as an extended attribute. */
uint64_t cgroup_oomd_kills(int fd);

/* 1: some process is in it or below, 0: none, or a negative errno. */
int cgroup_is_populated(int fd);

/* Opens cgroup.events for poll(2) with POLLPRI. */
int cgroup_open_events(int fd);

/* Asks for nothing in it to run any more; cgroup.events tells when it is so. */
int cgroup_freeze(int fd);
bool cgroup_is_frozen(int fd);

/* SIGKILL to every process in it and below, frozen ones too. Asynchronous: wait until it is not populated. */
int cgroup_kill(int fd);

/* Kills a slice's group by its unit name, for runs whose qscope is gone; 0 also when there is none. */
int cgroup_kill_slice(const char *slice);

/* Every pid in the group, newly allocated; at most max of them, *ret_total counts all. */
int cgroup_pids(int fd, size_t max, pid_t **ret, size_t *ret_n, uint64_t *ret_total);
