/* SPDX-License-Identifier: Apache-2.0 */
#include "run/keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/path.h"
#include "run/audit.h"
#include "sys/file.h"
#include "sys/host.h"
#include "sys/kept.h"

struct Keep {
        char *state_dir;
        char run_id[RUN_ID_MAX];
        KeepRules rules;
        bool off, broken;
        KeptWriter *writer;
        char *workspace;
        KeptRecord record;
};

int keep_rules_load(KeepRules *ret, Error *e)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        *ret = keep_rules_default;
        if (access(KEPT_CONFIG, F_OK) < 0 && errno == ENOENT)
                return 0;
        r = file_read(KEPT_CONFIG, KEPT_FILE_MAX, &text, &size, e);
        return r < 0 ? r : keep_rules_parse(text, size, KEPT_CONFIG, ret, e);
}

int keep_new(const Plan *plan, const char *state_dir, KeepWanted wanted, Keep **ret)
{
        _cleanup_(keep_freep) Keep *keep = calloc(1, sizeof(*keep));

        /* Only a copy-on-write workspace has something to go back to. */
        if (plan->posture == POSTURE_BOUNDED || plan->workspace != WORKSPACE_OVERLAY || geteuid() != 0) {
                *ret = NULL;
                return 0;
        }
        if (!keep)
                return -ENOMEM;
        memcpy(keep->run_id, plan->run_id, RUN_ID_MAX);
        keep->state_dir = strdup(state_dir);
        if (!keep->state_dir)
                return -ENOMEM;
        keep->broken = keep_rules_load(&keep->rules, NULL) < 0;
        keep->off = wanted == KEEP_NEVER || (wanted == KEEP_BY_DEFAULT && !keep->rules.layers);
        *ret = TAKE_PTR(keep);
        return 0;
}

Keep *keep_free(Keep *keep)
{
        if (!keep)
                return NULL;
        kept_writer_free(keep->writer);
        free(keep->workspace);
        free(keep->state_dir);
        free(keep);
        return NULL;
}

/* --- taking --- */

/* A regular file with new content. */
static bool has_content(const FileChange *change)
{
        return !change->scratch && change->kind != CHANGE_REMOVED && change->after.type == FILE_REGULAR &&
               *change->after.sha256 &&
               (change->kind == CHANGE_ADDED || (change->what & (CHANGED_CONTENT | CHANGED_TYPE)));
}

static bool any_to_apply(const FileChanges *changes)
{
        for (size_t i = 0; i < changes->n; i++)
                if (!changes->items[i].scratch)
                        return true;
        return false;
}

static uint64_t sum(const FileChanges *changes)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < changes->n; i++)
                if (has_content(&changes->items[i]) &&
                                __builtin_add_overflow(bytes, changes->items[i].after.size, &bytes))
                        return UNKNOWN;
        return bytes;
}

static int open_changed(int merged_fd, const char *path)
{
        const struct open_how how = {
                .flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };
        int fd = (int) syscall(SYS_openat2, merged_fd, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

static int take_one(Keep *keep, int merged_fd, const char *cwd, const FileChange *change)
{
        const char *path = path_below(change->path, cwd);
        _cleanup_close_ int fd = path && *path ? open_changed(merged_fd, path) : -EINVAL;
        struct stat st;
        bool added;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size != change->after.size)
                return -ESTALE;
        r = kept_writer_add(keep->writer, fd, change->after.sha256, &added);
        if (r == 0 && added) {
                keep->record.files++;
                keep->record.bytes += change->after.size;
        }
        return r;
}

static KeptState take_all(Keep *keep, const JobFs *fs, const FileChanges *changes, bool lost)
{
        const char *cwd;
        int merged_fd, r;

        if (!any_to_apply(changes))
                return KEPT_NOTHING;
        if (keep->off)
                return KEPT_OFF;
        if (lost || changes->truncated || !changes->complete)
                return KEPT_INCOMPLETE;
        if (sum(changes) > MIN(keep->rules.each, keep->rules.total))
                return KEPT_TOO_LARGE;
        merged_fd = jobfs_workspace(fs, &cwd, &keep->workspace);
        r = merged_fd < 0 || keep->broken ? -EINVAL : 0;
        if (r == 0)
                r = kept_writer_new(keep->state_dir, keep->run_id, &keep->writer);
        for (size_t i = 0; r == 0 && i < changes->n; i++)
                if (has_content(&changes->items[i]))
                        r = take_one(keep, merged_fd, cwd, &changes->items[i]);
        return r < 0 ? KEPT_FAILED : KEPT_YES;
}

void keep_take(Keep *keep, const JobFs *fs, Outcome *o)
{
        KeptState state;

        if (!keep || o->abort_signal != 0)
                return;
        keep->record = (KeptRecord){ 0 };
        state = take_all(keep, fs, &o->changes, o->evidence_lost);
        if (state != KEPT_YES) {
                keep->writer = kept_writer_free(keep->writer);
                keep->record = (KeptRecord){ 0 };
        }
        keep->record.state = state;
        o->kept = keep->record;
}

/* --- naming --- */

int keep_commit(Keep *keep, const Plan *plan, const Judgement *judgement, const char *receipt, Error *e)
{
        _cleanup_free_ char *text = NULL;
        char sha256[HASH_HEX_MAX];
        KeptInfo info;
        int r;

        if (!keep || !keep->writer)
                return 0;
        hash_data(receipt, strlen(receipt), sha256);
        info = (KeptInfo){
                .run_id = (char *) plan->run_id,
                .job_id = plan->job_id,
                .verdict = (char *) verdict_names[judgement->verdict],
                .workspace = keep->workspace,
                .receipt_sha256 = sha256,
                .files = keep->record.files,
                .bytes = keep->record.bytes,
                .kept_usec = now_realtime(),
        };
        text = kept_info_print(&info);
        if (!text)
                return -ENOMEM;
        r = kept_writer_commit(keep->writer, text);
        keep->writer = kept_writer_free(keep->writer);
        if (r < 0)
                return error_errno(e, r, "the layer cannot be kept for qscope apply");
        r = keep_prune(keep->state_dir, &keep->rules, false, NULL, e);
        return r < 0 ? r : 0;
}

/* --- what goes --- */

static bool is_interrupted(int layer_fd)
{
        return faccessat(layer_fd, KEEP_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

/* Of a layer that cannot be read nobody can say more than when it was made. */
static void measure(int all_fd, const char *run_id, KeptItem *item)
{
        _cleanup_(kept_info_clear) KeptInfo info = { 0 };
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        *item = (KeptItem){ .name = run_id, .in_use = kept_peek(all_fd, run_id, &fd) < 0 };
        if (item->in_use)
                return;
        item->in_use = is_interrupted(fd);
        if (kept_read_info(fd, run_id, &info, NULL) == 0) {
                item->usec = info.kept_usec;
                item->bytes = info.bytes;
        } else if (fstat(fd, &st) >= 0) {
                item->usec = (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC;
        }
}

static int prune_list(int all_fd, char **names, const KeepRules *rules, bool dry, uint64_t *bytes, Error *e)
{
        size_t n = strv_length(names);
        _cleanup_free_ KeptItem *items = calloc(n + 1, sizeof(*items));
        int removed = 0;

        if (!items)
                return -ENOMEM;
        for (size_t i = 0; names && i < n; i++)
                measure(all_fd, names[i], &items[i]);
        keep_choose(items, n, now_realtime(), rules->count, rules->total, rules->age);
        for (size_t i = 0; i < n; i++) {
                _cleanup_close_ int fd = -EBADF;
                int r;

                if (!items[i].remove || kept_open(all_fd, items[i].name, &fd) < 0)
                        continue;
                r = dry ? 0 : kept_remove(all_fd, items[i].name);
                if (r < 0)
                        return error_errno(e, r, "the layer of run %s cannot be removed", items[i].name);
                removed++;
                *bytes += items[i].bytes;
        }
        return removed;
}

int keep_prune(const char *state_dir, const KeepRules *rules, bool dry, uint64_t *ret_bytes, Error *e)
{
        _cleanup_close_ int all_fd = -EBADF;
        _cleanup_strv_ char **names = NULL;
        uint64_t bytes = 0;
        int r = kept_open_all(state_dir, &all_fd);

        if (r == 0)
                r = kept_list(all_fd, &names);
        if (r < 0 && r != -ENOENT)
                return error_errno(e, r, "%s/" KEPT_DIR, state_dir);
        r = r < 0 ? 0 : prune_list(all_fd, names, rules, dry, &bytes, e);
        if (ret_bytes)
                *ret_bytes = bytes;
        return r;
}

/* --- receipts --- */

typedef struct Receipts {
        KeptItem *items; /* with names of their own */
        size_t n, room;
} Receipts;

static void receipts_clear(Receipts *receipts)
{
        for (size_t i = 0; i < receipts->n; i++)
                free((char *) receipts->items[i].name);
        free(receipts->items);
}

/* NAME.json, and NAME.json.~N~, which a later run put aside. */
static bool is_receipt(const char *name)
{
        const char *suffix = strstr(name, ".json");

        while (suffix && strstr(suffix + 1, ".json"))
                suffix = strstr(suffix + 1, ".json");
        if (!suffix || *name == '.')
                return false;
        suffix += STRLEN(".json");
        return *suffix == '\0' || (startswith(suffix, ".~") && suffix[strlen(suffix) - 1] == '~');
}

static int add_receipt(Receipts *receipts, int dir_fd, const char *name)
{
        struct stat st;
        KeptItem *items;

        if (!is_receipt(name) || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return 0;
        items = array_grow(receipts->items, receipts->n, &receipts->room, sizeof(*items));
        if (!items)
                return -ENOMEM;
        receipts->items = items;
        items[receipts->n] = (KeptItem){
                .name = strdup(name),
                .usec = (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC,
                .bytes = (uint64_t) st.st_size,
        };
        return items[receipts->n++].name ? 0 : -ENOMEM;
}

static int read_receipts(int dir_fd, Receipts *receipts)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        struct dirent *entry;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);

        if (!dir)
                return -errno;
        while (r == 0 && (entry = readdir(dir)))
                r = add_receipt(receipts, dir_fd, entry->d_name);
        (void) closedir(dir);
        return r;
}

/* Without a journal it is removed all the same: then there is no trail that misses it. */
static void record_removed(int dir_fd, const char *directory, const KeptItem *item)
{
        _cleanup_close_ int fd = openat(dir_fd, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        _cleanup_free_ char *path = directory ? text_printf("%s/%s", directory, item->name) : NULL;
        char sha256[HASH_HEX_MAX];
        const AuditReceipt receipt = { .path = path, .sha256 = sha256, .bytes = item->bytes };

        if (path && fd >= 0 && file_hash(fd, item->bytes, sha256) == 0)
                (void) audit_removed(&receipt);
}

int keep_prune_receipts(
                const char *state_dir, const KeepRules *rules, bool dry, uint64_t *ret_bytes, Error *e)
{
        _cleanup_free_ char *path = text_printf("%s/receipts", state_dir), *real = NULL;
        _cleanup_(receipts_clear) Receipts receipts = { 0 };
        _cleanup_close_ int dir_fd = -EBADF;
        int r, removed = 0;

        *ret_bytes = 0;
        if (!path)
                return -ENOMEM;
        if (rules->receipt_age == UNKNOWN && rules->receipt_total == UNKNOWN)
                return 0;
        dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir_fd < 0)
                return errno == ENOENT ? 0 : error_errno(e, -errno, "%s", path);
        r = read_receipts(dir_fd, &receipts);
        if (r < 0)
                return error_errno(e, r, "%s", path);
        real = realpath(path, NULL);
        keep_choose(receipts.items, receipts.n, now_realtime(), UNKNOWN, rules->receipt_total,
                        rules->receipt_age);
        for (size_t i = 0; i < receipts.n; i++) {
                const KeptItem *item = &receipts.items[i];

                if (!item->remove)
                        continue;
                if (!dry)
                        record_removed(dir_fd, real, item);
                if (!dry && unlinkat(dir_fd, item->name, 0) < 0 && errno != ENOENT)
                        return error_errno(e, -errno, "%s/%s", path, item->name);
                removed++;
                *ret_bytes += item->bytes;
        }
        return removed;
}

/* --- by hand --- */

int keep_list(const char *state_dir, KeepTell tell, void *userdata, Error *e)
{
        _cleanup_close_ int all_fd = -EBADF;
        _cleanup_strv_ char **names = NULL;
        int r = kept_open_all(state_dir, &all_fd);

        if (r == 0)
                r = kept_list(all_fd, &names);
        if (r < 0)
                return r == -ENOENT ? 0 : error_errno(e, r, "%s/" KEPT_DIR, state_dir);
        for (size_t i = 0; names && names[i]; i++) {
                _cleanup_(kept_info_clear) KeptInfo info = { 0 };
                _cleanup_close_ int fd = -EBADF;

                if (kept_peek(all_fd, names[i], &fd) < 0 || kept_read_info(fd, names[i], &info, NULL) < 0)
                        continue;
                tell(userdata, &info, is_interrupted(fd));
        }
        return 0;
}

static int record_discarded(const char *run_id, const KeptInfo *info)
{
        const AuditApply audit = {
                .run_id = run_id,
                .job_id = info->job_id,
                .verdict = info->verdict,
                .workspace = info->workspace,
                .receipt_sha256 = info->receipt_sha256,
        };

        return audit_discarded(&audit);
}

static int discard_one(int all_fd, const char *name, const char *id, Error *e)
{
        _cleanup_(kept_info_clear) KeptInfo info = { 0 };
        _cleanup_close_ int fd = -EBADF;
        int r = kept_open(all_fd, name, &fd);

        if (r < 0)
                return !streq(name, id) || r == -ENOENT
                                       ? 0
                                       : error_errno(e, r, "the layer of run %s is in use", name);
        (void) kept_read_info(fd, name, &info, NULL);
        if (!streq(name, id) && !streq_ptr(info.job_id, id))
                return 0;
        if (is_interrupted(fd) && info.workspace && access(info.workspace, F_OK) >= 0)
                return error_set(e, -EALREADY,
                                "an apply of run %s was interrupted half way: finish it with qscope apply, or take it "
                                "back with --rollback, before its layer is discarded",
                                name);
        r = kept_remove(all_fd, name);
        if (r < 0)
                return error_errno(e, r, "the layer of run %s cannot be removed", name);
        r = record_discarded(name, &info);
        if (r < 0)
                error_errno(e, r, "that the layer of run %s was discarded is not recorded in the journal",
                                name);
        return 1;
}

int keep_discard(const char *state_dir, const char *id, Error *e)
{
        _cleanup_close_ int all_fd = -EBADF;
        _cleanup_strv_ char **names = NULL;
        int r = kept_open_all(state_dir, &all_fd), n = 0;

        if (r == 0)
                r = kept_list(all_fd, &names);
        if (r < 0)
                return r == -ENOENT ? 0 : error_errno(e, r, "%s/" KEPT_DIR, state_dir);
        for (size_t i = 0; r >= 0 && names && names[i]; i++) {
                r = discard_one(all_fd, names[i], id, e);
                n += r > 0;
        }
        return r < 0 ? r : n;
}
