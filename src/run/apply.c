/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/path.h"
#include "core/autorun.h"
#include "core/plan.h"
#include "core/verdict.h"
#include "run/keep.h"
#include "sys/file.h"
#include "sys/kept.h"
#include "sys/workplace.h"

#define JOURNAL_SCHEMA "qscope.apply/v1"
#define JOURNAL_MAX    MIB(4)
#define SYNC_EACH_MAX  32u      /* more than these are synchronised with all else on the file system */
#define ATTRIBUTES_MAX KIB(256) /* of a .gitattributes that is looked into */

typedef enum JournalPhase {
        JOURNAL_NONE,
        JOURNAL_STAGE,
        JOURNAL_COMMIT,
        JOURNAL_UNDO,
        JOURNAL_DONE,
        _JOURNAL_MAX,
} JournalPhase;

static const char *const phases[_JOURNAL_MAX] = {
        [JOURNAL_NONE] = "none",
        [JOURNAL_STAGE] = "stage",
        [JOURNAL_COMMIT] = "commit",
        [JOURNAL_UNDO] = "undo",
        [JOURNAL_DONE] = "done",
};

struct Apply {
        ApplyPlan *plan;
        KeptInfo info;
        int all_fd, layer_fd;
        Workplace *place;
        JournalPhase phase; /* as the journal has it */
        ApplyCheck *checks;
        WorkLook *looks; /* for each change, at the time of the check */
};

Apply *apply_free(Apply *apply)
{
        if (!apply)
                return NULL;
        for (size_t i = 0; apply->looks && i < apply->plan->n; i++)
                work_look_clear(&apply->looks[i]);
        free(apply->looks);
        free(apply->checks);
        workplace_free(apply->place);
        safe_close(apply->layer_fd);
        safe_close(apply->all_fd);
        kept_info_clear(&apply->info);
        apply_plan_free(apply->plan);
        free(apply);
        return NULL;
}

const ApplyPlan *apply_plan(const Apply *apply)
{
        return apply->plan;
}

const KeptInfo *apply_info(const Apply *apply)
{
        return &apply->info;
}

const ApplyCheck *apply_check(const Apply *apply, size_t index)
{
        return &apply->checks[index];
}

bool apply_is_resumed(const Apply *apply)
{
        return apply->phase == JOURNAL_COMMIT || apply->phase == JOURNAL_UNDO || apply->phase == JOURNAL_DONE;
}

bool apply_is_undone(const Apply *apply)
{
        return apply->phase == JOURNAL_UNDO;
}

size_t apply_count(const Apply *apply, ApplyFound found)
{
        size_t n = 0;

        for (size_t i = 0; i < apply->plan->n; i++)
                n += apply->plan->items[i].state == APPLY_SELECTED && apply->checks[i].found == found;
        return n;
}

/* --- the receipt and its layer --- */

/* The receipt says which run it is of; everything else about where and what is believed only because its
 * digest is the one that was written beside the layer. */
static int find_layer(Apply *apply, const ApplyOptions *options, const char *text, size_t size, Error *e)
{
        const char *state_dir = options->state_dir ? options->state_dir : STATE_DIR,
                   *run_id = apply->plan->run_id;
        char sha256[HASH_HEX_MAX];
        int r = kept_open_all(state_dir, &apply->all_fd);

        if (r == 0)
                r = kept_open(apply->all_fd, run_id, &apply->layer_fd);
        if (r == -ENOENT)
                return error_set(e, r,
                                "%s: nothing is kept of this run (see \"kept\" in the receipt: it may have been applied, "
                                "discarded or aged, or nothing changed)",
                                options->receipt_path);
        if (r == -EBUSY)
                return error_set(e, r, "another qscope is working with the layer of this run");
        if (r < 0)
                return error_errno(e, r, "%s/" KEPT_DIR, state_dir);
        r = kept_read_info(apply->layer_fd, run_id, &apply->info, e);
        if (r < 0)
                return r;
        hash_data(text, size, sha256);
        if (!streq(sha256, apply->info.receipt_sha256))
                return error_set(e, -EBADMSG,
                                "%s: is not what was written when the run ended (its SHA-256 is another): nothing of it is "
                                "believed",
                                options->receipt_path);
        return 0;
}

static int read_receipt(
                Apply *apply, const ApplyOptions *options, char **ret_text, size_t *ret_size, Error *e)
{
        const char *name = streq(options->receipt_path, "-") ? "standard input" : options->receipt_path;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        int r = file_read(options->receipt_path, RECEIPT_FILE_MAX, ret_text, ret_size, e);

        if (r == 0)
                r = receipt_parse(*ret_text, *ret_size, name, &receipt, e);
        return r < 0 ? r : apply_plan_read(receipt, &apply->plan, e);
}

static int check_verdict(const Apply *apply, bool force, Error *e)
{
        if (force || streq(apply->info.verdict, verdict_names[VERDICT_PASS]))
                return 0;
        return error_set(e, -EPERM,
                        "the verdict is \"%s\": only a pass is applied (qscope explain says why; --force applies what "
                        "was agreed all the same)",
                        apply->info.verdict);
}

/* --- the journal --- */

static int write_journal(Apply *apply, JournalPhase phase)
{
        _cleanup_(cJSON_Deletep) cJSON *journal = cJSON_CreateObject();
        _cleanup_free_ char *text = NULL;
        cJSON *items = NULL;
        int r = -ENOMEM;

        if (journal && json_add_text(journal, "schema", JOURNAL_SCHEMA) == 0 &&
                        json_add_text(journal, "phase", phases[phase]) == 0)
                items = json_add_array(journal, "items");
        for (size_t i = 0; items && i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];
                cJSON *item = change->state == APPLY_SELECTED ? json_add_object(items, NULL) : items;

                if (!item || (item != items && (json_add_u64(item, "index", i) < 0 ||
                                                               json_add_bool(item, "exact", change->exact) <
                                                                               0)))
                        return -ENOMEM;
        }
        text = items ? json_print(journal, true) : NULL;
        if (text)
                r = file_replace_at(apply->layer_fd, KEEP_JOURNAL, text, strlen(text));
        if (r == 0)
                apply->phase = phase;
        return r;
}

static int drop_journal(Apply *apply)
{
        if (unlinkat(apply->layer_fd, KEEP_JOURNAL, 0) < 0 && errno != ENOENT)
                return -errno;
        apply->phase = JOURNAL_NONE;
        return fsync(apply->layer_fd) < 0 ? -errno : 0;
}

static int take_journal(Apply *apply, const cJSON *journal)
{
        const char *phase = view_text(journal, "phase");
        const cJSON *item;

        if (!streq_ptr(view_text(journal, "schema"), JOURNAL_SCHEMA) || !phase)
                return -EINVAL;
        for (JournalPhase p = JOURNAL_STAGE; p < _JOURNAL_MAX; p++)
                if (streq(phase, phases[p]))
                        apply->phase = p;
        if (apply->phase == JOURNAL_NONE)
                return -EINVAL;
        if (apply->phase == JOURNAL_STAGE)
                return 0;
        cJSON_ArrayForEach(item, view_get(journal, "items"))
        {
                uint64_t index = view_number(item, "index");

                if (index >= apply->plan->n)
                        return -EINVAL;
                apply->plan->items[index].state = APPLY_SELECTED;
                apply->plan->items[index].exact = view_true(item, "exact");
        }
        return 0;
}

static int read_journal(Apply *apply, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *journal = NULL;
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = openat(apply->layer_fd, KEEP_JOURNAL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        size_t size;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : error_errno(e, -errno, KEEP_JOURNAL);
        r = file_read_fd(fd, JOURNAL_MAX, &text, &size);
        if (r == 0)
                r = json_parse(text, size, JSON_STRICT, KEEP_JOURNAL, &journal, e);
        if (r == 0)
                r = take_journal(apply, journal);
        return r < 0 ? error_errno(e, r, "the journal of an interrupted apply cannot be read") : 0;
}

/* --- comparing --- */

static bool matches(const ApplyNode *found, const ApplyNode *wanted, unsigned mode, const char **ret_what)
{
        *ret_what = "is there";
        if (!wanted->exists)
                return !found->exists;
        *ret_what = "is gone";
        if (!found->exists)
                return false;
        *ret_what = "is something else";
        if (found->type != wanted->type)
                return false;
        *ret_what = "leads elsewhere";
        if (found->type == FILE_SYMLINK)
                return streq_ptr(found->target, wanted->target);
        *ret_what = "has other content";
        if (found->type == FILE_REGULAR &&
                        (found->size != wanted->size || !streq(found->sha256, wanted->sha256)))
                return false;
        *ret_what = "has another mode";
        return found->mode == mode;
}

static void conflict(ApplyCheck *check, const char *format, ...) _printf_(2, 3);
static void conflict(ApplyCheck *check, const char *format, ...)
{
        va_list ap;

        check->found = FOUND_CONFLICT;
        va_start(ap, format);
        (void) vsnprintf(check->why, sizeof(check->why), format, ap);
        va_end(ap);
}

static bool becomes_directory(const ApplyChange *change)
{
        return change && change->state == APPLY_SELECTED && change->after.exists &&
               change->after.type == FILE_DIRECTORY;
}

/* The directory above is missing: all right only where this very apply makes it, or takes it away. */
static bool above_is_planned(const Apply *apply, const ApplyChange *change)
{
        _cleanup_free_ char *parent = strdup(change->path);
        char *slash = parent ? strrchr(parent, '/') : NULL;

        if (!slash)
                return false;
        *slash = '\0';
        return !change->after.exists || becomes_directory(apply_find(apply->plan, parent));
}

static bool leaves(const ApplyChange *change)
{
        return change && change->state == APPLY_SELECTED && change->before.exists &&
               !(change->after.exists && change->after.type == FILE_DIRECTORY);
}

/* Nothing may be in a directory that goes but what goes as well. */
static int check_emptied(const Apply *apply, const ApplyChange *change, ApplyCheck *check)
{
        _cleanup_strv_ char **names = NULL;
        int r = workplace_list(apply->place, change->path, &names);

        for (size_t i = 0; r == 0 && names && names[i]; i++) {
                _cleanup_free_ char *path = path_join(change->path, names[i]);

                if (!path)
                        return -ENOMEM;
                if (!leaves(apply_find(apply->plan, path))) {
                        char name[64];

                        (void) text_excerpt(names[i], strlen(names[i]), name, sizeof(name));
                        conflict(check, "has something in it that the job did not know: %s", name);
                        return 0;
                }
        }
        return r;
}

static bool is_directory(const ApplyNode *node)
{
        return node->exists && node->type == FILE_DIRECTORY;
}

/* What only an interrupted apply leaves: a directory that is open until the end, or nothing where a directory
 * takes the place of a file or the other way round. */
static bool is_between(const ApplyChange *change, const ApplyNode *found)
{
        if (is_directory(&change->after) && is_directory(found))
                return true;
        return !found->exists && change->before.exists && change->after.exists &&
               is_directory(&change->before) != is_directory(&change->after);
}

static void compare(const Apply *apply, const ApplyChange *change, const WorkLook *look, ApplyCheck *check)
{
        const ApplyNode *found = &look->node;
        const char *what, *unused;

        if (matches(found, &change->after, apply_mode(change), &unused))
                check->found = FOUND_DONE;
        else if (matches(found, &change->before, change->before.mode, &what))
                check->found = FOUND_TODO;
        else
                conflict(check, "%s", what);
        if (check->found == FOUND_CONFLICT && apply->phase == JOURNAL_COMMIT && is_between(change, found))
                check->found = FOUND_TODO;
        if (check->found == FOUND_TODO && !look->above && !above_is_planned(apply, change))
                conflict(check, "its directory is gone");
}

static int check_one(Apply *apply, size_t index, Error *e)
{
        const ApplyChange *change = &apply->plan->items[index];
        ApplyCheck *check = &apply->checks[index];
        WorkLook *look = &apply->looks[index];
        int r;

        work_look_clear(look);
        *check = (ApplyCheck){ .looked = true };
        r = workplace_look(apply->place, change->path, &change->before, &change->after, look);
        if (r == -ELOOP)
                conflict(check, "a link stands in its way");
        else if (r == -EXDEV)
                conflict(check, "lies in another mount");
        else if (r == -ESTALE)
                conflict(check, "changes at this moment");
        else if (r < 0)
                return error_errno(e, r, "%s", change->path);
        else
                compare(apply, change, look, check);
        if (check->found == FOUND_TODO && is_directory(&look->node) && leaves(change))
                r = check_emptied(apply, change, check);
        else
                r = 0;
        return r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

static int check_all(Apply *apply, Error *e)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < apply->plan->n; i++)
                if (apply->plan->items[i].state == APPLY_SELECTED)
                        r = check_one(apply, i, e);
        return r;
}

/* --- opening --- */

static int look_into_attributes(Apply *apply, ApplyChange *change)
{
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r;

        if (change->state != APPLY_SELECTED || !change->after.exists || change->after.type != FILE_REGULAR ||
                        !change->content || !autorun_by_content(change->path))
                return 0;
        r = apply_read_after(apply, change, ATTRIBUTES_MAX, &data, &size);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || autorun_content(data, size))
                apply_hold_content(change, "git would take the name of a filter from it");
        return 0;
}

static int select_changes(Apply *apply, const ApplyOptions *options, const char *cwd, Error *e)
{
        int r;

        if (apply_is_resumed(apply)) {
                if (options->select)
                        return error_set(e, -EALREADY,
                                        "an apply of this receipt was interrupted: finish it without --select, or take it "
                                        "back with --rollback");
                return 0;
        }
        r = apply_plan_select(apply->plan, options->select, cwd, e);
        for (size_t i = 0; r == 0 && i < apply->plan->n; i++)
                r = look_into_attributes(apply, &apply->plan->items[i]);
        return r;
}

static int exit_status(int r)
{
        switch (r) {
        case -EINVAL:
        case -E2BIG:
        case -EISDIR:
        case -EFBIG:
                return 2;
        case -ENOENT:
        case -EBUSY:
        case -EBADMSG:
        case -EPERM:
        case -ELOOP:
        case -EALREADY:
                return 3;
        default:
                return 4;
        }
}

int apply_open(const ApplyOptions *options, Apply **ret, int *ret_status, Error *e)
{
        _cleanup_(apply_freep) Apply *apply = calloc(1, sizeof(*apply));
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r;

        *ret_status = 4;
        if (!apply)
                return -ENOMEM;
        apply->all_fd = apply->layer_fd = -EBADF;
        r = read_receipt(apply, options, &text, &size, e);
        if (r < 0) {
                *ret_status = r == -ENOMEM ? 4 : 2;
                return r;
        }
        apply->checks = calloc(apply->plan->n + 1, sizeof(*apply->checks));
        apply->looks = calloc(apply->plan->n + 1, sizeof(*apply->looks));
        if (!apply->checks || !apply->looks)
                return -ENOMEM;
        r = find_layer(apply, options, text, size, e);
        if (r == 0)
                r = check_verdict(apply, options->force || options->rollback, e);
        if (r == 0)
                r = read_journal(apply, e);
        if (r == 0)
                r = workplace_open(apply->info.workspace, apply->plan->run_id, &apply->place, e);
        if (r == 0)
                r = select_changes(apply, options, apply->info.workspace, e);
        if (r == 0)
                r = check_all(apply, e);
        if (r < 0) {
                *ret_status = exit_status(r);
                return r;
        }
        *ret = TAKE_PTR(apply);
        return 0;
}

const char *apply_workspace(const Apply *apply)
{
        return apply->info.workspace;
}

int apply_read_before(const Apply *apply, const ApplyChange *change, size_t max, char **ret, size_t *ret_size)
{
        return workplace_read(apply->place, change->path, max, ret, ret_size);
}

int apply_read_after(const Apply *apply, const ApplyChange *change, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = -EBADF;
        int r = kept_open_content(apply->layer_fd, change->after.sha256, &fd);

        return r < 0 ? r : file_read_fd(fd, max, ret, ret_size);
}

/* --- staging --- */

static int stage_one(Apply *apply, size_t index, bool sync, Error *e)
{
        const ApplyChange *change = &apply->plan->items[index],
                          *first = apply_first_link(apply->plan, change);
        _cleanup_close_ int fd = -EBADF;
        bool had_file = change->before.exists && change->before.type == FILE_REGULAR;
        int r;

        if (change->after.type == FILE_SYMLINK)
                r = workplace_stage_link(apply->place, index, change->after.target);
        else if (first && apply->checks[first - apply->plan->items].found == FOUND_TODO)
                r = workplace_stage_name(apply->place, index, (size_t) (first - apply->plan->items));
        else {
                r = kept_open_content(apply->layer_fd, change->after.sha256, &fd);
                if (r == 0)
                        r = workplace_stage_file(apply->place, index, fd, &change->after, apply_mode(change),
                                        had_file ? change->path : NULL, sync);
        }
        if (r == -EBADMSG || r == -ENOENT)
                return error_set(e, r, "%s: what was kept of it is damaged", change->path);
        return r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

static bool is_staged_kind(const ApplyStep *step)
{
        return step->kind == STEP_PUT || step->kind == STEP_EXCHANGE;
}

static size_t count_staged(const ApplyPlan *plan)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_steps; i++)
                n += is_staged_kind(&plan->steps[i]);
        return n;
}

static int pending_signal(void)
{
        sigset_t set;

        if (sigpending(&set) < 0)
                return 0;
        for (int number = 1; number < NSIG; number++)
                if ((number == SIGINT || number == SIGTERM || number == SIGHUP) &&
                                sigismember(&set, number) == 1)
                        return -EINTR;
        return 0;
}

static int stage_all(Apply *apply, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        bool sync_each = count_staged(plan) <= SYNC_EACH_MAX;
        int r = workplace_stage_begin(apply->place, e);

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                if (is_staged_kind(&plan->steps[i]) &&
                                apply->checks[plan->steps[i].change].found == FOUND_TODO)
                        r = stage_one(apply, plan->steps[i].change, sync_each, e);
                if (r == 0)
                        r = pending_signal();
        }
        if (r == 0 && !sync_each) {
                r = workplace_sync(apply->place);
                if (r < 0)
                        error_errno(e, r, "the workspace cannot be synchronised");
        }
        return r;
}

/* --- the steps --- */

static int collide(const ApplyChange *change, Error *e)
{
        return error_set(e, -ESTALE, "%s: changed at the last moment", change->path);
}

/* What came out must be what was looked at; otherwise it goes back. */
static int verify_taken(Apply *apply, const ApplyStep *step, Error *e)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        WorkAction back = step->kind == STEP_EXCHANGE ? WORK_EXCHANGE : WORK_GIVE;
        int r;

        if (workplace_is_staged(apply->place, step->change, &apply->looks[step->change]))
                return 0;
        r = workplace_do(apply->place, back, change->path, step->change, 0);
        return r < 0 ? error_errno(e, r, "%s: changed at the last moment, and cannot be put back",
                                       change->path)
                     : collide(change, e);
}

static int do_step(Apply *apply, const ApplyStep *step, Error *e)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        Workplace *place = apply->place;
        size_t n = step->change;
        int r = 0;

        switch (step->kind) {
        case STEP_OPEN:
                r = workplace_do(place, WORK_CHMOD, change->path, n, change->before.mode | 0700);
                break;
        case STEP_REMOVE:
                r = workplace_do(place, WORK_TAKE, change->path, n, 0);
                if (r == 0)
                        return verify_taken(apply, step, e);
                break;
        case STEP_RMDIR:
                r = workplace_do(place, WORK_RMDIR, change->path, n, 0);
                break;
        case STEP_MKDIR:
                r = workplace_do(place, WORK_MKDIR, change->path, n, apply_mode(change) | 0700);
                break;
        case STEP_PUT:
                r = workplace_do(place, WORK_GIVE, change->path, n, 0);
                break;
        case STEP_EXCHANGE:
                r = workplace_do(place, WORK_EXCHANGE, change->path, n, 0);
                if (r == 0)
                        return verify_taken(apply, step, e);
                break;
        case STEP_MODE:
                r = workplace_do(place, WORK_CHMOD, change->path, n, apply_mode(change));
                break;
        case _STEP_MAX:
                break;
        }
        if (r == -EEXIST || r == -ENOTEMPTY || r == -ESTALE)
                return collide(change, e);
        return r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

/* --- back --- */

static int undo_swap(Apply *apply, size_t n, const ApplyChange *change, bool there)
{
        const char *unused;
        WorkLook staged;
        bool backed;
        int r = workplace_look_staged(apply->place, n, &change->before, NULL, &staged);

        backed = r == 0 && matches(&staged.node, &change->before, change->before.mode, &unused);
        work_look_clear(&staged);
        if (!backed)
                return -ESTALE;
        return workplace_do(apply->place, there ? WORK_EXCHANGE : WORK_GIVE, change->path, n, 0);
}

static int undo_put(Apply *apply, size_t n, const ApplyChange *change)
{
        int r = workplace_unstage(apply->place, n);

        return r < 0 ? r : workplace_do(apply->place, WORK_TAKE, change->path, n, 0);
}

/* What the workspace says was done is undone; what it says was not is left; and what is neither is nobody's
 * but the user's: -ESTALE. */
static int undo_step(Apply *apply, const ApplyStep *step)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        const ApplyNode *before = &change->before, *after = &change->after;
        const char *unused;
        size_t n = step->change;
        bool is_before, is_after;
        WorkLook look;
        int r = workplace_look(apply->place, change->path, before, after, &look);

        if (r < 0)
                return r == -ELOOP || r == -EXDEV ? -ESTALE : r;
        is_before = matches(&look.node, before, before->mode, &unused);
        is_after = matches(&look.node, after, apply_mode(change), &unused);
        if (look.node.exists && look.node.type == FILE_DIRECTORY)
                is_before = is_after = false; /* its mode says nothing while it is going on */
        switch (step->kind) {
        case STEP_REMOVE:
                r = is_before ? 0 : look.node.exists ? -ESTALE : undo_swap(apply, n, change, false);
                break;
        case STEP_RMDIR:
                r = look.node.exists ? (look.node.type == FILE_DIRECTORY ? 0 : -ESTALE)
                                     : workplace_do(apply->place, WORK_MKDIR, change->path, n,
                                                       before->mode | 0700);
                break;
        case STEP_MKDIR:
                r = look.node.exists && look.node.type == FILE_DIRECTORY
                                    ? workplace_do(apply->place, WORK_RMDIR, change->path, n, 0)
                                    : 0;
                break;
        case STEP_PUT:
                r = is_after ? undo_put(apply, n, change) : look.node.exists ? -ESTALE : 0;
                break;
        case STEP_EXCHANGE:
                r = is_before ? 0 : is_after ? undo_swap(apply, n, change, true) : -ESTALE;
                break;
        case STEP_OPEN:
        case STEP_MODE:
                if (before->exists && look.node.exists && before->type == look.node.type &&
                                (look.node.type == FILE_DIRECTORY || is_after))
                        r = workplace_do(apply->place, WORK_CHMOD, change->path, n,
                                        step->kind == STEP_MODE && before->type == FILE_DIRECTORY
                                                        ? before->mode | 0700
                                                        : before->mode);
                break;
        case _STEP_MAX:
                break;
        }
        work_look_clear(&look);
        return r == -ENOTEMPTY || r == -EEXIST ? -ESTALE : r;
}

/* Directories that were opened for the undoing get their modes back last. */
static void close_directories(Apply *apply)
{
        for (size_t i = apply->plan->n; i-- > 0;) {
                const ApplyChange *change = &apply->plan->items[i];

                if (change->state == APPLY_SELECTED && change->before.exists &&
                                change->before.type == FILE_DIRECTORY)
                        (void) workplace_do(apply->place, WORK_CHMOD, change->path, i, change->before.mode);
        }
}

/* The first n steps. */
static int undo_all(Apply *apply, size_t n, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        size_t conflicts = 0;
        const char *first = NULL;

        for (size_t i = n; i-- > 0;) {
                int r = undo_step(apply, &plan->steps[i]);

                if (r == -ESTALE) {
                        first = first ? first : plan->items[plan->steps[i].change].path;
                        conflicts++;
                } else if (r < 0) {
                        return error_errno(e, r, "%s: cannot be taken back",
                                        plan->items[plan->steps[i].change].path);
                }
        }
        close_directories(apply);
        if (conflicts > 0)
                return error_set(e, -ESTALE,
                                "%zu of the changes could not be taken back, because the files have been changed since "
                                "(%s first); what they were before is in .qscope-apply-%s in the workspace",
                                conflicts, first, plan->run_id);
        return 0;
}

/* --- the transaction --- */

/* Names that were changed are on the disk before what they replaced is given up. */
static int sync_names(Apply *apply)
{
        const ApplyPlan *plan = apply->plan;
        int r = 0;

        if (plan->n_steps > SYNC_EACH_MAX)
                return workplace_sync(apply->place);
        for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
                r = workplace_sync_above(apply->place, plan->items[plan->steps[i].change].path);
        return r;
}

/* From "done" on there is no way back: what was before is removed. */
static int leave(Apply *apply, Error *e)
{
        int r = sync_names(apply);

        if (r == 0 && apply->phase == JOURNAL_COMMIT)
                r = write_journal(apply, JOURNAL_DONE);
        if (r == 0)
                r = workplace_stage_end(apply->place);
        if (r == 0)
                r = drop_journal(apply);
        return r < 0 ? error_errno(e, r, "what was staged in the workspace cannot be removed") : 0;
}

/* The first sentence stays: it says why. */
static int take_back(Apply *apply, size_t done, int why, Error *e)
{
        Error second = ERROR_INIT;
        int r = write_journal(apply, JOURNAL_UNDO);

        if (r == 0)
                r = undo_all(apply, done, &second);
        if (r == 0)
                r = leave(apply, &second);
        if (r < 0)
                return error_prefix(e, why,
                                "the workspace is half changed (%s); apply it again, or with --rollback; the cause was",
                                second.text[0] ? second.text : strerror(-r));
        return why == -EINTR ? error_set(e, why, "interrupted: the workspace is as it was")
                             : error_prefix(e, why, "the workspace is as it was");
}

static int give_up_staging(Apply *apply, int why, Error *e)
{
        int r = workplace_stage_end(apply->place);

        if (r == 0)
                r = drop_journal(apply);
        if (why == -EINTR)
                return error_set(e, why, "interrupted: the workspace is as it was");
        return error_prefix(e, why, "nothing was changed");
}

static int stage_fresh(Apply *apply, Error *e)
{
        int r;

        /* What an apply left that did not get beyond staging. */
        if (apply->phase == JOURNAL_STAGE && workplace_stage_end(apply->place) < 0)
                return error_set(e, -EIO, "what an interrupted apply staged cannot be removed");
        /* Those that are in place already have no step. */
        for (size_t i = 0; i < apply->plan->n; i++)
                if (apply->plan->items[i].state == APPLY_SELECTED && apply->checks[i].found == FOUND_DONE)
                        apply->plan->items[i].state = APPLY_UNSELECTED;
        r = apply_plan_steps(apply->plan);
        if (r == 0)
                r = write_journal(apply, JOURNAL_STAGE);
        if (r < 0)
                return error_errno(e, r, "the journal");
        r = stage_all(apply, e);
        if (r < 0)
                return give_up_staging(apply, r, e);
        r = write_journal(apply, JOURNAL_COMMIT);
        if (r < 0) {
                error_errno(e, r, "the journal");
                return give_up_staging(apply, r, e);
        }
        return 0;
}

/* What is still to be put must be there as it was staged; of a power loss nobody knows. */
static int stage_again(Apply *apply, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        int r = workplace_stage_open(apply->place);

        if (r == -ENOENT)
                r = workplace_stage_begin(apply->place, e);
        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                const ApplyChange *change = &plan->items[plan->steps[i].change];
                const char *unused;
                WorkLook staged;
                bool good;

                if (!is_staged_kind(&plan->steps[i]) ||
                                apply->checks[plan->steps[i].change].found != FOUND_TODO)
                        continue;
                r = workplace_look_staged(apply->place, plan->steps[i].change, &change->after, NULL, &staged);
                good = r == 0 && matches(&staged.node, &change->after, apply_mode(change), &unused);
                work_look_clear(&staged);
                if (good)
                        continue;
                if (r == 0)
                        r = workplace_unstage(apply->place, plan->steps[i].change);
                if (r == 0)
                        r = stage_one(apply, plan->steps[i].change, true, e);
        }
        return r;
}

/* By an apply that was interrupted. */
static bool is_done(const Apply *apply, const ApplyStep *step)
{
        const ApplyNode *found = &apply->looks[step->change].node;

        switch (step->kind) {
        case STEP_REMOVE:
                return !found->exists || is_directory(found);
        case STEP_RMDIR:
                return !is_directory(found);
        case STEP_MKDIR:
                return is_directory(found);
        case STEP_PUT:
        case STEP_EXCHANGE:
                return apply->checks[step->change].found == FOUND_DONE;
        default:
                return false; /* to be done twice does no harm */
        }
}

/* *ret_done: the steps before the one that failed. */
static int do_all(Apply *apply, size_t *ret_done, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        int r = 0;

        for (*ret_done = 0; *ret_done < plan->n_steps; (*ret_done)++) {
                const ApplyStep *step = &plan->steps[*ret_done];

                r = pending_signal();
                if (r == 0 && !is_done(apply, step))
                        r = do_step(apply, step, e);
                if (r < 0)
                        break;
        }
        return r;
}

static void block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
}

int apply_commit(Apply *apply, Error *e)
{
        size_t done;
        int r;

        (void) umask(0);
        block_signals();
        if (apply->phase == JOURNAL_DONE)
                return leave(apply, e);
        if (apply->phase == JOURNAL_UNDO)
                return apply_rollback(apply, e);
        if (apply->phase == JOURNAL_COMMIT) {
                r = apply_plan_steps(apply->plan);
                if (r == 0)
                        r = stage_again(apply, e);
                if (r < 0)
                        return error_prefix(e, r,
                                        "the interrupted apply cannot go on (--rollback takes it back)");
        } else {
                r = stage_fresh(apply, e);
                if (r < 0)
                        return r;
        }
        r = do_all(apply, &done, e);
        return r < 0 ? take_back(apply, done, r, e) : leave(apply, e);
}

int apply_rollback(Apply *apply, Error *e)
{
        int r;

        (void) umask(0);
        block_signals();
        if (apply->phase == JOURNAL_NONE)
                return error_set(e, -EALREADY,
                                "no apply of this receipt was interrupted: there is nothing to take back");
        if (apply->phase == JOURNAL_DONE)
                return error_set(e, -EALREADY, "the apply was complete: there is nothing to take back");
        if (apply->phase == JOURNAL_STAGE) {
                r = workplace_stage_end(apply->place);
                if (r == 0)
                        r = drop_journal(apply);
                return r < 0 ? error_errno(e, r, "what was staged cannot be removed") : 0;
        }
        r = apply_plan_steps(apply->plan);
        if (r == 0)
                r = workplace_stage_open(apply->place);
        if (r == -ENOENT)
                r = 0;
        if (r == 0)
                r = write_journal(apply, JOURNAL_UNDO);
        if (r < 0)
                return error_errno(e, r, "the interrupted apply");
        r = undo_all(apply, apply->plan->n_steps, e);
        return r < 0 ? r : leave(apply, e);
}

/* Whether a change that was not selected now is in the workspace all the same. */
static bool is_there(const Apply *apply, const ApplyChange *change)
{
        const char *unused;
        WorkLook look;
        bool there = workplace_look(apply->place, change->path, &change->after, NULL, &look) == 0 &&
                     matches(&look.node, &change->after, apply_mode(change), &unused);

        work_look_clear(&look);
        return there;
}

int apply_finish(Apply *apply, bool *ret_removed, Error *e)
{
        int r;

        *ret_removed = false;
        for (size_t i = 0; i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];

                if (!apply->checks[i].looked && change->state != APPLY_UNABLE && !is_there(apply, change))
                        return 0;
        }
        r = kept_remove(apply->all_fd, apply->plan->run_id);
        *ret_removed = r == 0;
        return r < 0 ? error_errno(e, r, "the layer cannot be removed") : 0;
}
