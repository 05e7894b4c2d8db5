/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes are meant, and the steps that bring them about. */
#include "core/apply.h"

#include <limits.h>
#include <stdarg.h>

#include "base/path.h"
#include "core/autorun.h"

const char *const apply_state_names[_APPLY_STATE_MAX] = {
        [APPLY_SELECTED] = "selected",
        [APPLY_UNSELECTED] = "unselected",
        [APPLY_HELD] = "held",
        [APPLY_UNEXPECTED] = "unexpected",
        [APPLY_UNABLE] = "unable",
};

static void set_state(ApplyChange *change, ApplyState state, const char *format, ...) _printf_(3, 4);
static void set_state(ApplyChange *change, ApplyState state, const char *format, ...)
{
        va_list ap;

        change->state = state;
        va_start(ap, format);
        (void) vsnprintf(change->why, sizeof(change->why), format, ap);
        va_end(ap);
}

void apply_hold_content(ApplyChange *change, const char *why)
{
        if (change->state != APPLY_SELECTED)
                return;
        change->forced = change->exact;
        if (!change->exact)
                set_state(change, APPLY_HELD, "%s", why);
}

/* What no step can bring about. */
static const char *unable(const ApplyChange *change)
{
        const ApplyNode *before = &change->before, *after = &change->after;

        if (streq(change->path, "."))
                return "the workspace's own directory stays as it is";
        if (startswith(change->path, APPLY_STAGING))
                return "the name is qscope's own";
        if ((before->exists && before->type > FILE_SYMLINK) || (after->exists && after->type > FILE_SYMLINK))
                return "neither a file nor a directory nor a link";
        if ((before->exists && before->type == FILE_REGULAR && !*before->sha256) ||
                        (after->exists && after->type == FILE_REGULAR && !*after->sha256))
                return "its content has no digest (too large, or too many holes)";
        if (change->kind == CHANGE_CHANGED && before->type == after->type && !change->content &&
                        (before->mode == after->mode || before->type == FILE_SYMLINK))
                return "owners and extended attributes stay as they are";
        return NULL;
}

/* Whether a link at path leads to a place outside the workspace. The system's own directories, which no
 * workspace may be in, do no harm: virtual environments have such links. */
static bool leads_outside(const char *path, const char *target)
{
        static const char *const harmless[] = { "/usr", "/bin", "/lib", "/lib64", "/sbin" };
        long depth = 0;

        if (*target == '/') {
                for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
                        if (path_is_within(target, harmless[i]) && !strstr(target, ".."))
                                return false;
                return true;
        }
        for (const char *p = path; (p = strchr(p, '/')); p++)
                depth++;
        for (const char *p = target; *p && depth >= 0;) {
                size_t length = strcspn(p, "/");

                if (length == 2 && startswith(p, ".."))
                        depth--;
                else if (length > 0 && !(length == 1 && *p == '.'))
                        depth++;
                p += length + strspn(p + length, "/");
        }
        return depth < 0;
}

/* What only an exact name lets through. */
static void classify(ApplyChange *change, bool exact)
{
        const ApplyNode *after = &change->after;
        FileType type = after->exists ? after->type : change->before.type;
        const char *who = autorun_by_content(change->path) && after->exists && after->type == FILE_REGULAR
                                          ? NULL
                                          : autorun_find(change->path, type);

        if (who && type == FILE_DIRECTORY)
                who = NULL; /* what lies in it counts */
        if (who)
                set_state(change, exact ? APPLY_SELECTED : APPLY_HELD,
                                "%s would execute it, or take commands from it", who);
        else if (after->exists && after->type == FILE_REGULAR && (after->mode & 06000))
                set_state(change, exact ? APPLY_SELECTED : APPLY_HELD, "is setuid or setgid");
        else if (after->exists && after->type == FILE_SYMLINK && leads_outside(change->path, after->target))
                set_state(change, exact ? APPLY_SELECTED : APPLY_HELD, "the link leads out of the workspace");
        change->forced = change->forced || (exact && *change->why);
}

static bool is_unexpected(const ApplyPlan *plan, const ApplyChange *change, size_t index)
{
        return plan->unexpected && plan->unexpected[index] && !streq(change->path, ".");
}

/* Paths as a person types them: relative to the workspace, or absolute in it. */
static int normalise_select(char *const *select, const char *cwd, char ***ret, Error *e)
{
        for (size_t i = 0; select[i]; i++) {
                _cleanup_free_ char *path = NULL;
                int r = path_normalise(select[i], &path);
                const char *below = r == 0 && *path == '/' ? path_below(path, cwd) : path;

                if (r == -ENOMEM)
                        return r;
                if (r < 0 || !below)
                        return error_set(e, -EINVAL,
                                        "--select %s: must be a path in the workspace, without \"..\"",
                                        select[i]);
                r = strv_extend(ret, *below ? below : ".");
                if (r < 0)
                        return r;
        }
        return 0;
}

static void select_one(ApplyPlan *plan, size_t index, bool named, bool exact)
{
        ApplyChange *change = &plan->items[index];
        const char *why = unable(change);

        change->exact = exact;
        change->forced = false;
        if (!named)
                return set_state(change, APPLY_UNSELECTED, "not selected");
        if (why)
                return set_state(change, APPLY_UNABLE, "%s", why);
        if (is_unexpected(plan, change, index) && !exact)
                return set_state(change, APPLY_UNEXPECTED, "was not agreed (allow_changes)");
        set_state(change, APPLY_SELECTED, "%s", "");
        change->forced = is_unexpected(plan, change, index);
        classify(change, exact);
}

static bool becomes_directory(const ApplyChange *change)
{
        return change && change->after.exists && change->after.type == FILE_DIRECTORY &&
               (change->kind == CHANGE_ADDED || change->before.type != FILE_DIRECTORY);
}

/* A selected path needs the new directories above it. */
static void select_parents(ApplyPlan *plan)
{
        for (size_t i = 0; i < plan->n; i++) {
                char path[PATH_MAX], *slash;

                if (plan->items[i].state != APPLY_SELECTED || !plan->items[i].after.exists)
                        continue;
                (void) snprintf(path, sizeof(path), "%s", plan->items[i].path);
                while ((slash = strrchr(path, '/'))) {
                        ApplyChange *above;

                        *slash = '\0';
                        above = apply_find(plan, path);
                        if (becomes_directory(above) && above->state == APPLY_UNSELECTED)
                                set_state(above, APPLY_SELECTED, "%s", "");
                }
        }
}

/* A directory cannot go while something in it stays; what cannot be made holds back what lies in it. */
static void settle_directories(ApplyPlan *plan)
{
        for (size_t i = plan->n; i-- > 0;) {
                ApplyChange *change = &plan->items[i];
                bool leaves = change->before.exists && change->before.type == FILE_DIRECTORY &&
                              !(change->after.exists && change->after.type == FILE_DIRECTORY);

                if (!leaves || change->state != APPLY_SELECTED)
                        continue;
                for (size_t k = i + 1; k < plan->n && path_is_within(plan->items[k].path, change->path); k++)
                        if (plan->items[k].state != APPLY_SELECTED) {
                                set_state(change, plan->items[k].state, "something in it stays");
                                break;
                        }
        }
        for (size_t i = 0; i < plan->n; i++) {
                const ApplyChange *above = &plan->items[i];

                if (!becomes_directory(above) || above->state == APPLY_SELECTED)
                        continue;
                for (size_t k = i + 1; k < plan->n && path_is_within(plan->items[k].path, above->path); k++)
                        if (plan->items[k].state == APPLY_SELECTED)
                                set_state(&plan->items[k], above->state, "its directory is held back");
        }
}

int apply_plan_select(ApplyPlan *plan, char *const *select, const char *cwd, Error *e)
{
        _cleanup_strv_ char **paths = NULL;
        int r = select ? normalise_select(select, cwd, &paths, e) : 0;

        if (r < 0)
                return r;
        for (size_t s = 0; paths && paths[s]; s++) {
                bool found = streq(paths[s], ".");

                for (size_t i = 0; i < plan->n && !found; i++)
                        found = path_is_within(plan->items[i].path, paths[s]);
                if (!found)
                        return error_set(e, -EINVAL, "--select %s: nothing of that name changed", select[s]);
        }
        for (size_t i = 0; i < plan->n; i++) {
                bool named = !select, exact = false;

                for (size_t s = 0; paths && paths[s]; s++) {
                        exact = exact || streq(plan->items[i].path, paths[s]);
                        named = named || streq(paths[s], ".") ||
                                path_is_within(plan->items[i].path, paths[s]);
                }
                select_one(plan, i, named, exact);
        }
        select_parents(plan);
        settle_directories(plan);
        return 0;
}

unsigned apply_mode(const ApplyChange *change)
{
        if (change->after.type == FILE_REGULAR && !change->exact)
                return change->after.mode & ~06000u;
        return change->after.mode;
}

/* --- steps --- */

static bool is_plain(const ApplyNode *node)
{
        return node->exists && node->type != FILE_DIRECTORY;
}

/* The first pass opens directories, from the top down; the second takes away, from the deepest up; the third
 * brings, from the top down; the last closes directories, from the deepest up. */
static ApplyStepKind step_of(const ApplyChange *change, unsigned pass)
{
        const ApplyNode *before = &change->before, *after = &change->after;

        switch (pass) {
        case 0:
                return apply_is_directory(before) && apply_is_directory(after) &&
                                                       (before->mode & 0700) != 0700
                                       ? STEP_OPEN
                                       : _STEP_MAX;
        case 1:
                if (apply_is_directory(before) && !apply_is_directory(after))
                        return STEP_RMDIR;
                return is_plain(before) && !is_plain(after) ? STEP_REMOVE : _STEP_MAX;
        case 2:
                if (apply_is_directory(after))
                        return apply_is_directory(before) ? _STEP_MAX : STEP_MKDIR;
                if (!is_plain(after))
                        return _STEP_MAX;
                if (!is_plain(before))
                        return STEP_PUT;
                return change->content ? STEP_EXCHANGE : STEP_MODE;
        default:
                return apply_is_directory(after) ? STEP_MODE : _STEP_MAX;
        }
}

int apply_plan_steps(ApplyPlan *plan)
{
        ApplyStep *steps = calloc(3 * plan->n + 1, sizeof(*steps));

        if (!steps)
                return -ENOMEM;
        free(plan->steps);
        plan->steps = steps;
        plan->n_steps = 0;
        for (unsigned pass = 0; pass < 4; pass++)
                for (size_t i = 0; i < plan->n; i++) {
                        size_t at = pass % 2 == 0 ? i : plan->n - 1 - i;
                        ApplyStepKind kind = step_of(&plan->items[at], pass);

                        if (plan->items[at].state == APPLY_SELECTED && kind != _STEP_MAX)
                                steps[plan->n_steps++] = (ApplyStep){ kind, at };
                }
        return 0;
}

const ApplyChange *apply_first_link(const ApplyPlan *plan, const ApplyChange *change)
{
        for (size_t g = 0; plan->links[g]; g++) {
                if (change->after.type != FILE_REGULAR || !strv_contains(plan->links[g], change->path))
                        continue;
                for (size_t i = 0; plan->links[g][i]; i++) {
                        const ApplyChange *first = apply_find(plan, plan->links[g][i]);

                        if (first && first < change && first->state == APPLY_SELECTED && first->content &&
                                        first->after.type == FILE_REGULAR &&
                                        streq(first->after.sha256, change->after.sha256) &&
                                        first->after.mode == change->after.mode)
                                return first;
                }
        }
        return NULL;
}
