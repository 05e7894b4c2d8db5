/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watch_open.h"

#include <fcntl.h>

#include "base/array.h"
#include "core/shared.h"
#include "sys/cgroup.h"
#include "sys/ipc.h"
#include "sys/proc_fds.h"

#define PROCESSES_MAX 1024u
#define FDS_MAX       65536u /* of all processes together */
#define LOCKS_MAX     16384u /* descriptors that are asked for locks */

void socket_holders_clear(SocketHolders *holders)
{
        free(holders->items);
        *holders = (SocketHolders){ 0 };
}

static int compare_inodes(const void *a, const void *b)
{
        const SocketHolder *left = a, *right = b;

        return left->inode < right->inode ? -1 : left->inode > right->inode;
}

/* A socket that the job shares with qscope is the job's. */
static int compare_holders(const void *a, const void *b)
{
        const SocketHolder *left = a, *right = b;

        int r = compare_inodes(left, right);

        return r != 0 ? r : left->own - right->own;
}

SocketHolder *socket_holders_find(const SocketHolders *holders, uint64_t inode)
{
        SocketHolder wanted = { .inode = inode };

        if (holders->n == 0 || inode == 0)
                return NULL;
        return bsearch(&wanted, holders->items, holders->n, sizeof(wanted), compare_inodes);
}

static int add_holder(SocketHolders *holders, uint64_t inode, pid_t pid)
{
        SocketHolder *items = array_grow(holders->items, holders->n, &holders->room, sizeof(SocketHolder));

        if (!items)
                return -ENOMEM;
        holders->items = items;
        holders->items[holders->n++] = (SocketHolder){ .inode = inode, .pid = pid };
        return 0;
}

/* Sorts, and keeps one of those who share a socket. */
static void order_holders(SocketHolders *holders)
{
        size_t kept = 0;

        if (holders->n == 0)
                return;
        qsort(holders->items, holders->n, sizeof(*holders->items), compare_holders);
        for (size_t i = 0; i < holders->n; i++)
                if (kept == 0 || holders->items[kept - 1].inode != holders->items[i].inode)
                        holders->items[kept++] = holders->items[i];
        holders->n = kept;
}

static int on_own_fd(void *userdata, ProcFd *fd)
{
        SocketHolders *holders = userdata;
        int r = fd->inode ? add_holder(holders, fd->inode, fd->record.pid) : 0;

        if (r == 0 && fd->inode)
                holders->items[holders->n - 1].own = true;
        return r;
}

/* --- at the gate --- */

int watch_open_attach(Run *run, _unused_ Error *e)
{
        const PropertyValue *private = property_list_find(&run->plan->service_properties, "PrivateIPC");

        run->keys_before = ipc_count_keys(run->uid);
        if (!private || !private->boolean)
                return outcome_blind_spot(run->outcome,
                                "ipc: System V objects and message queues are shared with the host "
                                "(PrivateIPC is off) and not listed");
        run->ipcns_fd = openat(run->proc_fd, "ns/ipc", O_RDONLY | O_CLOEXEC);
        if (run->ipcns_fd < 0)
                return run_not_observed(run, -errno, "ipc: not observed (%s)", strerror(errno));
        return 0;
}

/* --- at the freeze --- */

typedef struct FdReader {
        Outcome *outcome;
        SocketHolders *holders;
} FdReader;

static int add_lock(IpcList *ipc, const FdRecord *fd)
{
        IpcRecord lock = { .kind = "lock", .key = UNKNOWN, .id = UNKNOWN, .size = UNKNOWN, .pid = fd->pid };

        lock.name = strdup(fd->target);
        return lock.name ? ipc_list_add(ipc, &lock) : -ENOMEM;
}

static int on_fd(void *userdata, ProcFd *fd)
{
        FdReader *reader = userdata;
        int r = 0;

        if (fd->inode)
                r = add_holder(reader->holders, fd->inode, fd->record.pid);
        if (r == 0 && fd->locked)
                r = add_lock(&reader->outcome->ipc, &fd->record);
        return r < 0 ? r : fd_list_add(&reader->outcome->fds, &fd->record);
}

/* Keys beyond those that systemd itself made for the uid (KeyringMode=private makes one). */
static void look_at_keys(Run *run)
{
        IpcList *ipc = &run->outcome->ipc;
        uint64_t now = ipc_count_keys(run->uid);
        IpcRecord record = { .kind = "key", .key = UNKNOWN, .id = UNKNOWN };

        if (now == UNKNOWN || run->keys_before == UNKNOWN || now <= run->keys_before)
                return;
        record.size = now - run->keys_before;
        for (size_t i = 0; i < ipc->n; i++) {
                if (!streq(ipc->items[i].kind, record.kind))
                        continue;
                ipc->items[i].size = MAX(ipc->items[i].size, record.size);
                return;
        }
        if (ipc_list_add(ipc, &record) < 0)
                run_lose_evidence(run, "no memory for the list of keys");
}

void watch_open_look(Run *run, SocketHolders *holders)
{
        Outcome *o = run->outcome;
        FdReader reader = { .outcome = o, .holders = holders };
        ProcFdBudget own = { .fds = FDS_MAX }, budget = { .fds = FDS_MAX, .locks = LOCKS_MAX };
        _cleanup_free_ pid_t *pids = NULL;
        uint64_t total;
        size_t n;
        int r = cgroup_pids(run->service_fd, PROCESSES_MAX, &pids, &n, &total);

        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = proc_fds(pids[i], &budget, on_fd, &reader);
                /* One that had ended before holds nothing. */
                if (r < 0 && r != -ENOMEM)
                        r = 0;
        }
        if (r >= 0)
                r = proc_fds(getpid(), &own, on_own_fd, holders);
        order_holders(holders);
        if (r < 0) {
                run_lose_evidence(run, "open descriptors could not be listed: %s", strerror(-r));
                return;
        }
        o->fds.observed = true;
        if (total > n || budget.exceeded)
                (void) outcome_blind_spot(o,
                                "fds: only the first %u descriptors of %u processes were looked at", FDS_MAX,
                                PROCESSES_MAX);
        look_at_keys(run);
}

/* --- at the end --- */

void watch_open_finish(Run *run)
{
        IpcList *ipc = &run->outcome->ipc;
        int r;

        /* Nobody was left who could hold anything. */
        run->outcome->fds.observed = true;
        if (run->ipcns_fd < 0)
                return;
        r = ipc_list(run->ipcns_fd, ipc);
        if (r < 0)
                (void) run_not_observed(run, r, "ipc: not all was listed (%s)", strerror(-r));
        ipc->observed = true;
        look_at_keys(run);
}

void watch_open_clear(Run *run)
{
        run->ipcns_fd = safe_close(run->ipcns_fd);
}
