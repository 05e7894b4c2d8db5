/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reason.h"

#include "alloc.h"
#include "base/text.h"

/* Codes are published: one that is missing here was renamed or lost. */
static const char *const published[] = {
                "denied_argv0",
                "over_ceiling",
                "limit_floor",
                "network_refused",
                "posture_refused",
                "workspace_refused",
                "env_refused",
                "not_supported",
                "exit_code",
                "signal",
                "timed_out",
                "exec_failed",
                "killed_by_limit",
                "limit_hit",
                "leftover_process",
                "unexpected_change",
                "expect_stdout",
                "expect_stderr",
                "expect_file",
                "expect_duration",
                "aborted",
                "evidence_lost",
                "not_root",
                "no_systemd",
                "systemd_too_old",
                "cgroup_v1",
                "controller_missing",
                "bus_unavailable",
                "start_refused",
                "start_failed",
                "start_timeout",
                "sandbox_failed",
                "isolation_missing",
                "stage_failed",
                "workspace_failed",
                "layer_failed",
                "files_failed",
                "stdin_failed",
                "receipt_failed",
                "internal",
};

static void test_every_code_has_a_next_step(void)
{
        for (size_t i = 0; i < ELEMENTSOF(published); i++) {
                const ReasonInfo *info = reason_find(published[i]);

                assert(info);
                assert(streq(info->code, published[i]));
                assert(strlen(info->next) > 20);
                assert(info->next[strlen(info->next) - 1] != ' ');
        }
        assert(!reason_find("no_such_code"));
        assert(!reason_find(""));
        assert(!reason_find(NULL));
}

static void test_list(void)
{
        ReasonList list = {0};

        assert(!reason_has(&list, "signal"));
        assert(reason_add(&list, "signal", "ended by %s", "SIGSEGV") == 0);
        assert(reason_add(&list, "signal", "again") == 0);
        assert(reason_add(&list, "exit_code", "exit code %d", 3) == 0);
        assert(list.n == 3);
        assert(reason_has(&list, "signal") && reason_has(&list, "exit_code") &&
                        !reason_has(&list, "aborted"));
        assert(streq(list.items[0].message, "ended by SIGSEGV"));
        assert(streq(list.items[2].message, "exit code 3"));
        reason_list_clear(&list);
        assert(list.n == 0 && !list.items);
}

static void test_messages_are_printable(void)
{
        ReasonList list = {0};
        char longer[5000];

        memset(longer, 'x', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        assert(reason_add(&list, "exec_failed", "%s", "a\033[31m\n\xff\xe2\x80\xae") == 0);
        assert(streq(list.items[0].message, "a\\x1b[31m\\n\\xff\\xe2\\x80\\xae"));
        assert(reason_add(&list, "exec_failed", "%s", longer) == 0);
        assert(strlen(list.items[1].message) < 1100);
        assert(utf8_is_valid(list.items[1].message, strlen(list.items[1].message)));
        reason_list_clear(&list);
}

static int add_two(void *context _unused_)
{
        ReasonList list = {0};
        int r;

        r = reason_add(&list, "signal", "one");
        if (r >= 0)
                r = reason_add(&list, "exit_code", "two");
        reason_list_clear(&list);
        return r;
}

static void test_out_of_memory(void)
{
        assert(alloc_fail_each(add_two, NULL) > 0);
}

int main(void)
{
        test_every_code_has_a_next_step();
        test_list();
        test_messages_are_printable();
        test_out_of_memory();
        return 0;
}
