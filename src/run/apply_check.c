/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply_parts.h"

#include <stdarg.h>

#include "base/path.h"

bool apply_matches(const ApplyNode *found, const ApplyNode *wanted, unsigned mode, const char **ret_what)
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

/* What only an interrupted apply leaves: a directory that is open until the end, or nothing where a directory
 * takes the place of a file or the other way round. */
static bool is_between(const ApplyChange *change, const ApplyNode *found)
{
        if (apply_is_directory(&change->after) && apply_is_directory(found))
                return true;
        return !found->exists && change->before.exists && change->after.exists &&
               apply_is_directory(&change->before) != apply_is_directory(&change->after);
}

static void compare(const Apply *apply, const ApplyChange *change, const WorkLook *look, ApplyCheck *check)
{
        const ApplyNode *found = &look->node;
        const char *what, *unused;

        if (apply_matches(found, &change->after, apply_mode(change), &unused))
                check->found = FOUND_DONE;
        else if (apply_matches(found, &change->before, change->before.mode, &what))
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
        if (check->found == FOUND_TODO && apply_is_directory(&look->node) && leaves(change))
                r = check_emptied(apply, change, check);
        else
                r = 0;
        return r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

/* Such a change came by its exact name, so with all of its mode. */
bool apply_is_there(const Apply *apply, const ApplyChange *change)
{
        const char *unused;
        WorkLook look;
        bool there = workplace_look(apply->place, change->path, &change->after, NULL, &look) == 0 &&
                     apply_matches(&look.node, &change->after, change->after.mode, &unused);

        work_look_clear(&look);
        return there;
}

int apply_check_all(Apply *apply, Error *e)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];

                if (change->state == APPLY_SELECTED)
                        r = check_one(apply, i, e);
                else if (change->state != APPLY_UNSELECTED && change->state != APPLY_UNABLE &&
                                apply_is_there(apply, change))
                        apply->checks[i] = (ApplyCheck){ .found = FOUND_DONE, .looked = true };
        }
        return r;
}
