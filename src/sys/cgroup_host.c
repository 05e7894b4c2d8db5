/* SPDX-License-Identifier: Apache-2.0 */

/* Which control group hierarchy and which controllers this host has. */

#include "sys/cgroup.h"

#include <fcntl.h>
#include <libcgroup.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "sys/file.h"

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
        char text[1024], *rest = text;
        unsigned found = 0;
        struct statfs fs;
        int r;

        if (statfs(CGROUP_MOUNT, &fs) < 0)
                return error_errno(e, -EOPNOTSUPP, CGROUP_MOUNT " cannot be looked at (%s)", strerror(errno));
        if (fs.f_type != CGROUP2_SUPER_MAGIC)
                return error_set(e, -EOPNOTSUPP,
                                CGROUP_MOUNT " is not the unified hierarchy (this host uses cgroup v1)");
        r = file_read_at(AT_FDCWD, CGROUP_MOUNT "/cgroup.controllers", text, sizeof(text));
        if (r < 0)
                return error_errno(e, -EOPNOTSUPP, CGROUP_MOUNT "/cgroup.controllers cannot be read (%s)",
                                strerror(-r));
        for (const char *word; (word = strsep(&rest, " \n"));)
                for (size_t i = 0; i < ELEMENTSOF(controllers); i++)
                        if (streq(controllers[i].name, word))
                                found |= controllers[i].bit;
        *ret_controllers = found;
        return 0;
}

int cgroup_elsewhere(Controller one, char **ret)
{
        int r;

        *ret = NULL;
        /* It prints to standard error by itself. */
        cgroup_set_default_logger(-1);
        r = cgroup_init();
        if (r == 0)
                r = cgroup_get_subsys_mount_point(controller_name(one), ret);
        return r == 0 ? 0 : r == ECGOTHER ? -errno : -ENOENT;
}
