/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reason.h"

#include "alloc.h"
#include "base/text.h"
#include "test.h"

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
        "listening",
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
        "observers_failed",
        "files_failed",
        "stdin_failed",
        "receipt_failed",
        "internal",
};

TEST(every_code_has_a_next_step)
{
        for (size_t i = 0; i < ELEMENTSOF(published); i++) {
                const ReasonInfo *info = reason_find(published[i]);

                CHECK(info);
                CHECK(streq(info->code, published[i]));
                CHECK(strlen(info->next) > 20);
                CHECK(info->next[strlen(info->next) - 1] != ' ');
                REQUIRE(reason_meaning(published[i]));
                CHECK(strlen(reason_meaning(published[i])->meaning) > 20);
        }
        CHECK(!reason_find("no_such_code"));
        CHECK(!reason_find(""));
        CHECK(!reason_find(NULL));
        CHECK(!reason_meaning("no_such_code") && !reason_meaning(NULL));
}

TEST(list)
{
        ReasonList list = { 0 };

        CHECK(!reason_has(&list, "signal"));
        CHECK(reason_add(&list, "signal", "ended by %s", "SIGSEGV") == 0);
        CHECK(reason_add(&list, "signal", "again") == 0);
        CHECK(reason_add(&list, "exit_code", "exit code %d", 3) == 0);
        CHECK(list.n == 3);
        CHECK(reason_has(&list, "signal") && reason_has(&list, "exit_code") && !reason_has(&list, "aborted"));
        CHECK(streq(list.items[0].message, "ended by SIGSEGV"));
        CHECK(streq(list.items[2].message, "exit code 3"));
        reason_list_clear(&list);
        CHECK(list.n == 0 && !list.items);
}

TEST(messages_are_printable)
{
        ReasonList list = { 0 };
        char longer[5000];

        memset(longer, 'x', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        CHECK(reason_add(&list, "exec_failed", "%s", "a\033[31m\n\xff\xe2\x80\xae") == 0);
        CHECK(streq(list.items[0].message, "a\\x1b[31m\\n\\xff\\xe2\\x80\\xae"));
        CHECK(reason_add(&list, "exec_failed", "%s", longer) == 0);
        CHECK(strlen(list.items[1].message) < 1100);
        CHECK(utf8_is_valid(list.items[1].message, strlen(list.items[1].message)));
        reason_list_clear(&list);
}

static int add_two(void *context _unused_)
{
        ReasonList list = { 0 };
        int r;

        r = reason_add(&list, "signal", "one");
        if (r >= 0)
                r = reason_add(&list, "exit_code", "two");
        reason_list_clear(&list);
        return r;
}

TEST(out_of_memory)
{
        CHECK(alloc_fail_each(add_two, NULL) > 0);
}

TEST_MAIN
