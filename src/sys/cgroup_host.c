/* SPDX-License-Identifier: Apache-2.0 */

/* Which control group hierarchy and which controllers this host has, by libcgroup's table of mounts. */

#include <libcgroup.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "sys/cgroup.h"

static const struct {
        Controller bit;
        const char *name;
} controllers[] = {
        { CONTROLLER_MEMORY, "memory" },
        { CONTROLLER_PIDS, "pids" },
        { CONTROLLER_CPU, "cpu" },
        { CONTROLLER_IO, "io" },
};

const char *controller_name(Controller one)
{
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++)
                if (controllers[i].bit == one)
                        return controllers[i].name;
        return "unknown";
}

int cgroup_host(unsigned *ret_controllers, Error *e)
{
        struct statfs fs;
        unsigned found = 0;
        int r;

        if (statfs("/sys/fs/cgroup", &fs) < 0)
                return error_errno(
                                e, -EOPNOTSUPP, "/sys/fs/cgroup cannot be looked at (%s)", strerror(errno));
        if (fs.f_type != CGROUP2_SUPER_MAGIC)
                return error_set(e, -EOPNOTSUPP,
                                "/sys/fs/cgroup is not the unified hierarchy (this host uses cgroup v1)");
        /* It prints to standard error by itself; what matters is in our own sentence. */
        cgroup_set_default_logger(-1);
        r = cgroup_init();
        if (r == ECGROUPNOTMOUNTED) {
                /* What it says of a unified hierarchy without any controller. */
                *ret_controllers = 0;
                return 0;
        }
        if (r != 0)
                return error_set(e, -EOPNOTSUPP, "libcgroup finds no control groups: %s", cgroup_strerror(r));
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++) {
                _cleanup_free_ char *mount = NULL;

                if (cgroup_get_subsys_mount_point(controllers[i].name, &mount) == 0 && mount &&
                                streq(mount, "/sys/fs/cgroup"))
                        found |= controllers[i].bit;
        }
        *ret_controllers = found;
        return 0;
}
