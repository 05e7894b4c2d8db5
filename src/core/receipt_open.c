/* SPDX-License-Identifier: Apache-2.0 */
/* fds and ipc: what processes held open when they were killed, and what they shared. */
#include "core/receipt_parts.h"

#include "base/path.h"
#include "core/shared.h"

static int add_fd(cJSON *list, const FdRecord *fd)
{
        cJSON *object = json_add_object(list, NULL);

        if (!object || json_add_i64(object, "pid", fd->pid) < 0 || json_add_i64(object, "fd", fd->fd) < 0 ||
                        json_add_text(object, "kind", fd->kind) < 0 ||
                        receipt_add_raw(object, "target", fd->target) < 0 ||
                        json_add_bool(object, "deleted", fd->deleted) < 0)
                return -ENOMEM;
        return json_add_bool(object, "writable", fd->writable);
}

static int add_total(cJSON *receipt, const char *key, uint64_t total)
{
        cJSON *info = json_add_object(receipt, key);

        return info ? json_add_u64(info, "total", total) : -ENOMEM;
}

static int add_fds(cJSON *receipt, const FdList *fds)
{
        cJSON *list;

        if (!fds->observed)
                return json_add_null(receipt, "fds") < 0 ? -ENOMEM : json_add_null(receipt, "fds_info");
        list = json_add_array(receipt, "fds");
        for (size_t i = 0; list && i < fds->n; i++)
                if (add_fd(list, &fds->items[i]) < 0)
                        return -ENOMEM;
        return list ? add_total(receipt, "fds_info", fds->total) : -ENOMEM;
}

static int add_ipc_object(cJSON *list, const IpcRecord *ipc)
{
        cJSON *object = json_add_object(list, NULL);

        if (!object || json_add_text(object, "kind", ipc->kind) < 0 ||
                        receipt_add_raw(object, "name", ipc->name) < 0 ||
                        json_add_u64(object, "key", ipc->key) < 0 ||
                        json_add_u64(object, "id", ipc->id) < 0 ||
                        json_add_u64(object, "size", ipc->size) < 0)
                return -ENOMEM;
        return ipc->pid > 0 ? json_add_i64(object, "pid", ipc->pid) : json_add_null(object, "pid");
}

/* POSIX shared memory and named semaphores are files (shm_overview(7), sem_overview(7)): the diff has them.
 */
static bool as_shared_file(const FileChange *change, IpcRecord *ret)
{
        const char *name = path_below(change->path, "/dev/shm");
        const char *semaphore = name ? startswith(name, "sem.") : NULL;

        if (!name || !*name || change->kind == CHANGE_REMOVED || change->after.type != FILE_REGULAR)
                return false;
        *ret = (IpcRecord){
                .kind = semaphore ? "posix_sem" : "posix_shm",
                .name = (char *) (semaphore ? semaphore : name),
                .key = UNKNOWN,
                .id = UNKNOWN,
                .size = change->after.size,
        };
        return true;
}

static int add_shared_files(cJSON *list, const FileChanges *changes, size_t n, uint64_t *total)
{
        IpcRecord record;

        for (size_t i = 0; i < changes->n; i++) {
                if (!as_shared_file(&changes->items[i], &record))
                        continue;
                (*total)++;
                if (n++ < IPC_LISTED_MAX && add_ipc_object(list, &record) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_ipc(cJSON *receipt, const Outcome *o)
{
        const IpcList *ipc = &o->ipc;
        uint64_t total = ipc->total;
        cJSON *list;

        if (!ipc->observed)
                return json_add_null(receipt, "ipc") < 0 ? -ENOMEM : json_add_null(receipt, "ipc_info");
        list = json_add_array(receipt, "ipc");
        for (size_t i = 0; list && i < ipc->n; i++)
                if (add_ipc_object(list, &ipc->items[i]) < 0)
                        return -ENOMEM;
        if (!list || add_shared_files(list, &o->changes, ipc->n, &total) < 0)
                return -ENOMEM;
        return add_total(receipt, "ipc_info", total);
}

int receipt_add_open(cJSON *receipt, const ReceiptSource *s)
{
        if (add_fds(receipt, &s->outcome->fds) < 0)
                return -ENOMEM;
        return add_ipc(receipt, s->outcome);
}
