/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ipc.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/number.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/namespace.h"

/* The kernel's own limits (32,000 objects of a kind) bound these; a job that raised them is cut here. */
#define OBJECTS_MAX 100000u
#define FIELDS_MAX  8u

/* Columns of the tables of /proc/sysvipc, from 0 (ipc/shm.c, ipc/sem.c, ipc/msg.c of the kernel); all begin
 * with key and id. */
static const struct {
        const char *kind, *file;
        unsigned size, pid; /* pid 0: it is not told */
} tables[] = {
        { "sysv_shm", "/proc/sysvipc/shm", 3, 4 },
        { "sysv_sem", "/proc/sysvipc/sem", 3, 0 },
        { "sysv_msg", "/proc/sysvipc/msg", 4, 0 },
};

/* "key id perms …" in decimal; a key may be negative in print. */
static int read_row(const char *line, size_t table, IpcRecord *ret)
{
        long long field[FIELDS_MAX] = { 0 };
        unsigned n = 0;

        for (char *end; n < FIELDS_MAX; n++, line = end) {
                field[n] = strtoll(line, &end, 10);
                if (end == line)
                        break;
        }
        if (n <= MAX(tables[table].size, tables[table].pid))
                return -EBADMSG; /* the heading, or nothing we know */
        *ret = (IpcRecord){
                .kind = tables[table].kind,
                .key = (uint32_t) field[0],
                .id = (uint32_t) field[1],
                .size = (uint64_t) field[tables[table].size],
                .pid = tables[table].pid ? (pid_t) field[tables[table].pid] : 0,
        };
        return 0;
}

static int read_table(size_t table, IpcList *list)
{
        _cleanup_free_ char *line = NULL;
        FILE *f = fopen(tables[table].file, "re");
        size_t size = 0;
        int r = 0;

        if (!f)
                return -errno;
        for (unsigned i = 0; r >= 0 && i < OBJECTS_MAX && getline(&line, &size, f) > 0; i++) {
                IpcRecord record;

                if (read_row(line, table, &record) == 0)
                        r = ipc_list_add(list, &record);
        }
        (void) fclose(f);
        return r;
}

/* "QSIZE:5 NOTIFY:0 …": the bytes that wait in it (mq_overview(7)). */
static uint64_t queue_size(int dir_fd, const char *name)
{
        char text[128];
        uint64_t size;

        if (file_read_at(dir_fd, name, text, sizeof(text)) < 0 || !startswith(text, "QSIZE:"))
                return UNKNOWN;
        text[strcspn(text, " ")] = '\0';
        return parse_u64(text + STRLEN("QSIZE:"), &size) < 0 ? UNKNOWN : size;
}

static int read_queues(IpcList *list)
{
        MountOption none[] = { { 0 } };
        struct dirent *entry;
        int mount_fd, fd, r = mount_new("mqueue", none, MOUNT_ATTR_RDONLY, &mount_fd, NULL);
        DIR *dir;

        if (r < 0)
                return r;
        fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        safe_close(mount_fd);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                r = -errno;
                safe_close(fd);
                return r;
        }
        for (unsigned i = 0; r >= 0 && i < OBJECTS_MAX && (entry = readdir(dir)); i++) {
                IpcRecord record = { .kind = "posix_mq", .key = UNKNOWN, .id = UNKNOWN };

                if (entry->d_type == DT_DIR)
                        continue;
                record.name = strdup(entry->d_name);
                record.size = queue_size(dirfd(dir), entry->d_name);
                r = record.name ? ipc_list_add(list, &record) : -ENOMEM;
        }
        (void) closedir(dir);
        return r;
}

/* In the namespace. */
static int list_all(void *userdata)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(tables); i++)
                r = read_table(i, userdata);
        return r < 0 ? r : read_queues(userdata);
}

int ipc_list(int ipcns_fd, IpcList *list)
{
        return namespace_call(ipcns_fd, list_all, list);
}

/* "uid: usage nkeys/…" (/proc/key-users in keyrings(7)). */
uint64_t ipc_count_keys(uid_t uid)
{
        _cleanup_free_ char *line = NULL;
        FILE *f = fopen("/proc/key-users", "re");
        uint64_t count = f ? 0 : UNKNOWN;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                char *end;

                if (strtoul(line, &end, 10) != uid || *end != ':')
                        continue;
                (void) strtoul(end + 1, &end, 10);
                count = strtoull(end, NULL, 10);
                break;
        }
        if (f)
                (void) fclose(f);
        return count;
}
