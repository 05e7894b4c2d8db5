/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply_parts.h"

#include "core/textdiff.h"

void apply_diff_clear(ApplyDiff *diff)
{
        free(diff->text);
        *diff = (ApplyDiff){ 0 };
}

bool apply_has_diff(const ApplyChange *change)
{
        bool file = (change->after.exists && change->after.type == FILE_REGULAR && change->content) ||
                    (!change->after.exists && change->before.type == FILE_REGULAR);

        return file && (!change->before.exists || change->before.type == FILE_REGULAR);
}

/* One side of it; text is "" where there is none. */
typedef struct Side {
        char *text;
        size_t size;
} Side;

static void side_clear(Side *side)
{
        free(side->text);
}

static bool is_recorded(const Side *side, const ApplyNode *node)
{
        char sha256[HASH_HEX_MAX];

        hash_data(side->text, side->size, sha256);
        return streq(sha256, node->sha256);
}

static int say_why(ApplyDiff *diff, const char *why)
{
        (void) snprintf(diff->why, sizeof(diff->why), "%s", why);
        return 0;
}

/* r: of reading a side. Whatever it is, but for want of memory, it does not matter to other files. */
static int check_side(const Side *side, const ApplyNode *node, int r, const char *other, ApplyDiff *diff)
{
        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG)
                return say_why(diff, "larger than 1 MiB");
        if (r < 0 || !is_recorded(side, node))
                return say_why(diff, other);
        return textdiff_is_text(side->text, side->size) ? 0 : say_why(diff, "not text");
}

static int read_before(const Apply *apply, const ApplyChange *change, Side *ret, ApplyDiff *diff)
{
        const char *other = "the workspace has something else there now";
        int r;

        if (!change->before.exists)
                return 0;
        if (!apply->place)
                return say_why(diff, "the workspace is gone");
        r = workplace_read(apply->place, change->path, TEXTDIFF_BYTES_MAX, &ret->text, &ret->size);
        if (change->after.exists ? r == 0 && is_recorded(ret, &change->after) : r == -ENOENT)
                other = "the workspace has the change already";
        return check_side(ret, &change->before, r, other, diff);
}

static int read_after(const Apply *apply, const ApplyChange *change, Side *ret, ApplyDiff *diff)
{
        int r;

        if (!change->after.exists)
                return 0;
        r = apply_read_after(apply, change, TEXTDIFF_BYTES_MAX, &ret->text, &ret->size);
        return check_side(ret, &change->after, r, "what was kept of it is damaged", diff);
}

int apply_diff(const Apply *apply, const ApplyChange *change, bool colour, ApplyDiff *ret)
{
        _cleanup_(side_clear) Side before = { 0 }, after = { 0 };
        int r;

        *ret = (ApplyDiff){ 0 };
        r = read_before(apply, change, &before, ret);
        if (r == 0 && !*ret->why)
                r = read_after(apply, change, &after, ret);
        if (r < 0 || *ret->why)
                return r;
        ret->text = textdiff(before.text ? before.text : "", before.size, after.text ? after.text : "",
                        after.size, colour);
        return ret->text ? 0 : -ENOMEM;
}
