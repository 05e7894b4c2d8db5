/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/journal.h"

#include <inttypes.h>
#include <sys/uio.h>

/* Where in qscope a record was sent from says nothing to an auditor. */
#define SD_JOURNAL_SUPPRESS_LOCATION 1
#include <systemd/sd-journal.h>

#define FIELDS_SENT_MAX 64u
#define FIELDS_READ_MAX 256u                          /* of one entry: ours, and what journald adds */
#define JOURNAL_SOCKET  "/run/systemd/journal/socket" /* systemd's native protocol */
#define DATA_MAX        KIB(8)                        /* of one field; what is longer is none of ours */

int journal_send(char *const *fields)
{
        struct iovec iov[FIELDS_SENT_MAX];
        size_t n = strv_length(fields);

        assert(n <= ELEMENTSOF(iov));
        for (size_t i = 0; i < n; i++)
                iov[i] = (struct iovec){ fields[i], strlen(fields[i]) };
        /* Where there is none, the library says that all is well. */
        if (access(JOURNAL_SOCKET, F_OK) < 0)
                return -errno;
        return sd_journal_sendv(iov, (int) n);
}

struct Journal {
        sd_journal *handle;
};

Journal *journal_free(Journal *journal)
{
        if (!journal)
                return NULL;
        if (journal->handle)
                sd_journal_close(journal->handle);
        free(journal);
        return NULL;
}

static int add_match(sd_journal *handle, const char *name, const char *value)
{
        _cleanup_free_ char *match = text_printf("%s=%s", name, value);

        return match ? sd_journal_add_match(handle, match, 0) : -ENOMEM;
}

static int match_trail(sd_journal *handle)
{
        char uid[16];
        int r = 0;

        for (AuditEvent event = 0; r >= 0 && event < _AUDIT_EVENT_MAX; event++)
                r = add_match(handle, "MESSAGE_ID", audit_events[event].message_id);
        if (r >= 0)
                r = add_match(handle, "_UID", "0");
        (void) snprintf(uid, sizeof(uid), "%u", geteuid());
        return r < 0 ? r : add_match(handle, "_UID", uid);
}

int journal_open(Journal **ret, Error *e)
{
        _cleanup_(journal_freep) Journal *journal = calloc(1, sizeof(*journal));
        int r;

        if (!journal)
                return -ENOMEM;
        r = sd_journal_open(&journal->handle, SD_JOURNAL_LOCAL_ONLY);
        if (r >= 0)
                r = sd_journal_set_data_threshold(journal->handle, DATA_MAX);
        if (r >= 0)
                r = match_trail(journal->handle);
        if (r < 0)
                return error_errno(e, r, "the journal cannot be opened");
        *ret = TAKE_PTR(journal);
        return 0;
}

int journal_match(Journal *journal, AuditField field, const char *value)
{
        return add_match(journal->handle, audit_field_name(field), value);
}

int journal_seek(Journal *journal, uint64_t realtime_usec)
{
        return sd_journal_seek_realtime_usec(journal->handle, realtime_usec);
}

int journal_seek_end(Journal *journal)
{
        int r = sd_journal_seek_tail(journal->handle);

        /* Next to the tail is only well defined once an entry has been stepped on. */
        if (r >= 0)
                r = sd_journal_previous(journal->handle);
        return r == 0 ? sd_journal_seek_head(journal->handle) : r;
}

int journal_next(Journal *journal, AuditRecord *ret)
{
        const void *data;
        size_t size;
        unsigned n = 0;
        int r = sd_journal_next(journal->handle);

        if (r <= 0)
                return r;
        *ret = AUDIT_RECORD_INIT;
        r = sd_journal_get_realtime_usec(journal->handle, &ret->realtime_usec);
        if (r < 0)
                return r;
        sd_journal_restart_data(journal->handle);
        while (n++ < FIELDS_READ_MAX &&
                        (r = sd_journal_enumerate_available_data(journal->handle, &data, &size)) > 0) {
                r = size <= DATA_MAX ? audit_record_take(ret, data, size) : 0;
                if (r < 0)
                        break;
        }
        if (r < 0) {
                audit_record_clear(ret);
                return r;
        }
        return 1;
}

int journal_wait(Journal *journal)
{
        int r = sd_journal_wait(journal->handle, UINT64_MAX);

        return r < 0 ? r : 0;
}
