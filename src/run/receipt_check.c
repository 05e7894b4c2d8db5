/* SPDX-License-Identifier: Apache-2.0 */
#include "run/receipt_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "sys/file.h"

#define ASIDE_MAX 100000u
#define GAP_MAX   16u /* of the numbers of what was kept aside: someone may have removed some */

const char *const receipt_state_names[_RECEIPT_STATE_MAX] = {
        [RECEIPT_INTACT] = "intact",
        [RECEIPT_MOVED] = "moved",
        [RECEIPT_CHANGED] = "changed",
        [RECEIPT_MISSING] = "missing",
        [RECEIPT_REMOVED] = "removed",
        [RECEIPT_LOST] = "lost",
        [RECEIPT_NO_FILE] = "no file",
        [RECEIPT_UNTESTED] = "untested",
};

bool receipt_state_is_bad(ReceiptState state)
{
        return state == RECEIPT_CHANGED || state == RECEIPT_MISSING || state == RECEIPT_LOST ||
               state == RECEIPT_UNTESTED;
}

/* A FIFO would block, and a link is not what qscope wrote. */
static ReceiptState check_file(const char *path, uint64_t bytes, const char *wanted)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        char sha256[HASH_HEX_MAX];
        struct stat st;
        int r;

        if (fd < 0)
                return errno == ENOENT || errno == ENOTDIR ? RECEIPT_MISSING
                       : errno == ELOOP || errno == ENXIO  ? RECEIPT_CHANGED
                                                           : RECEIPT_UNTESTED;
        if (fstat(fd, &st) < 0)
                return RECEIPT_UNTESTED;
        if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size != bytes)
                return RECEIPT_CHANGED;
        r = file_hash(fd, bytes, sha256);
        if (r < 0)
                return r == -EPIPE ? RECEIPT_CHANGED : RECEIPT_UNTESTED;
        return streq(sha256, wanted) ? RECEIPT_INTACT : RECEIPT_CHANGED;
}

/* A run that wrote to the same path later kept this one as NAME.~1~, NAME.~2~ … */
static bool is_kept_aside(const char *path, uint64_t bytes, const char *wanted)
{
        unsigned gap = 0;

        for (unsigned n = 1; n <= ASIDE_MAX && gap < GAP_MAX; n++) {
                _cleanup_free_ char *aside = text_printf("%s.~%u~", path, n);
                ReceiptState state = aside ? check_file(aside, bytes, wanted) : RECEIPT_MISSING;

                if (state == RECEIPT_INTACT)
                        return true;
                gap = state == RECEIPT_MISSING ? gap + 1 : 0;
        }
        return false;
}

ReceiptState receipt_check(const AuditRecord *record, char *const *removed)
{
        const char *path = record->values[AUDIT_RECEIPT], *wanted = record->values[AUDIT_RECEIPT_SHA256];
        uint64_t bytes = audit_record_number(record, AUDIT_RECEIPT_BYTES);
        ReceiptState state;

        if (!path)
                return strv_contains(record->reasons, "receipt_failed") ? RECEIPT_LOST : RECEIPT_NO_FILE;
        /* A record without them cannot vouch for anything. */
        if (!wanted || bytes == UNKNOWN)
                return RECEIPT_UNTESTED;
        state = check_file(path, bytes, wanted);
        if ((state == RECEIPT_CHANGED || state == RECEIPT_MISSING) && is_kept_aside(path, bytes, wanted))
                return RECEIPT_MOVED;
        if (state == RECEIPT_MISSING && removed &&
                        bsearch(&wanted, removed, strv_length(removed), sizeof(*removed), strv_compare))
                return RECEIPT_REMOVED;
        return state;
}
