/* SPDX-License-Identifier: Apache-2.0 */
#include "core/verdict.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "alloc.h"
#include "sample.h"
#include "test.h"

#define _judgement_ _cleanup_(judgement_freep) Judgement *

/* The codes in their order, "a b c". */
static void assert_reasons(const Judgement *j, const char *expected)
{
        char codes[512] = "";

        for (size_t i = 0; i < j->reasons.n; i++) {
                strcat(codes, i == 0 ? "" : " ");
                strcat(codes, j->reasons.items[i].code);
                CHECK(*j->reasons.items[i].message);
        }
        CHECK_STR(codes, expected);
}

static void assert_verdict(const Sample *s, Verdict verdict, int exit_code, bool match, const char *reasons)
{
        _judgement_ j = sample_judge(s);

        assert_reasons(j, reasons);
        CHECK(j->verdict == verdict);
        CHECK(j->exit_code == exit_code);
        CHECK(j->match_expected == match);
}

static void assert_message(const Sample *s, const char *code, const char *part)
{
        _judgement_ j = sample_judge(s);

        for (size_t i = 0; i < j->reasons.n; i++)
                if (streq(j->reasons.items[i].code, code) && strstr(j->reasons.items[i].message, part))
                        return;
        for (size_t i = 0; i < j->reasons.n; i++)
                fprintf(stderr, "%s: %s\n", j->reasons.items[i].code, j->reasons.items[i].message);
        (void) test_check(false, __FILE__, __LINE__, "no reason %s says \"%s\"", code, part);
}

/* Exactly one hit of this limit, with this counter; killed as given. */
static void assert_hit(const Sample *s, LimitKind limit, const char *counter, uint64_t count, bool killed)
{
        _judgement_ j = sample_judge(s);
        size_t n = 0;

        for (size_t i = 0; i < j->n_hits; i++) {
                if (j->hits[i].limit != limit)
                        continue;
                n++;
                if (!streq(j->hits[i].counter, counter))
                        fprintf(stderr, "counter: %s instead of %s\n", j->hits[i].counter, counter);
                CHECK(streq(j->hits[i].counter, counter));
                CHECK(j->hits[i].count == count && j->hits[i].killed == killed);
        }
        CHECK(n == 1);
}

static size_t count_hits(const Sample *s)
{
        _judgement_ j = sample_judge(s);

        return j->n_hits;
}

TEST(exit)
{
        _sample_ Sample s;

        sample_init(&s);
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        for (int status = 1; status < 256; status++) {
                sample_exit(&s, status);
                assert_verdict(&s, VERDICT_FAIL, status, false, "exit_code");
        }
        assert_message(&s, "exit_code", "exit code 255, expected 0");
        sample_expect_exit(&s, 3);
        assert_message(&s, "exit_code", "expected 3");
        sample_exit(&s, 3);
        assert_verdict(&s, VERDICT_PASS, 3, true, "");
        sample_exit(&s, 0);
        assert_verdict(&s, VERDICT_FAIL, 0, false, "exit_code");
        s.job.exits.any = true;
        sample_exit(&s, 77);
        assert_verdict(&s, VERDICT_PASS, 77, true, "");
}

/* Each signal is a death by that signal and nothing else: no limit, no timeout. */
TEST(signals)
{
        _sample_ Sample s;
        char name[FORMAT_SIGNAL_MAX];

        sample_init(&s);
        s.outcome->events.oom_kill = s.outcome->events.efbig = 0;
        for (int number = 1; number <= SIGRTMAX; number++) {
                sample_signal(&s, number);
                assert_verdict(&s, VERDICT_FAIL, -1, false, "signal");
                assert_message(&s, "signal", format_signal(number, name));
                CHECK(count_hits(&s) == 0);
        }
        s.outcome->core_dumped = true;
        sample_signal(&s, SIGSEGV);
        assert_message(&s, "signal", "SIGSEGV (core dumped)");
        s.job.exits.any = true; /* a signal is no exit */
        s.job.expected_exit = cJSON_CreateString("any");
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal");
}

TEST(timeout)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_timeout(&s);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out");
        assert_message(&s, "timed_out", "30.00 s");
        s.outcome->usage.cpu_usec = 60 * USEC_PER_SEC; /* our own SIGKILL is no CPU limit */
        CHECK(count_hits(&s) == 0);
        sample_signal(&s, SIGSEGV); /* it crashed as the time ran out */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out signal");
        sample_exit(&s, 0); /* it made it, too late */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out");
        s.job.exits.any = true;
        s.job.expected_exit = cJSON_CreateString("any");
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out");
}

TEST(exec_failures)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_argv(&s, "ruff", "check");
        sample_exec_error(&s, ENOENT, "exec", NULL, 0, NULL);
        assert_verdict(&s, VERDICT_FAIL, 127, false, "exec_failed");
        assert_message(&s, "exec_failed",
                        "not_found (ENOENT): \"ruff\" is not on PATH (searched: /usr/bin:/bin)");
        sample_expect_exit(&s, 127);
        assert_verdict(&s, VERDICT_PASS, 127, true, "");
        s.outcome->timed_out = true; /* the deadline came while the failure was on its way */
        assert_verdict(&s, VERDICT_FAIL, 127, false, "exec_failed timed_out");
        s.outcome->timed_out = false;
        s.job.exits.any = true; /* any exit of the command; it had none */
        assert_verdict(&s, VERDICT_FAIL, 127, false, "exec_failed");
        s.job.exits.any = false;
        sample_exec_error(&s, ENOENT, "chdir", NULL, 0, NULL);
        assert_verdict(&s, VERDICT_PASS, 127, true, "");
        sample_exec_error(&s, EACCES, "exec", "./run.sh", S_IFREG | 0644, NULL);
        assert_verdict(&s, VERDICT_FAIL, 126, false, "exec_failed");
        /* It printed nothing because it never ran: no second cause. */
        s.job.expect.out.contains = (char *) "ok";
        s.job.expect.max_duration_usec = 1;
        assert_verdict(&s, VERDICT_FAIL, 126, false, "exec_failed");
}

TEST(memory)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->events.memory_max = 100; /* reclaim at the limit is no kill */
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.outcome->events.oom_kill = 1; /* a child; the parent exits 0 */
        assert_verdict(&s, VERDICT_FAIL, 0, true, "killed_by_limit");
        assert_hit(&s, LIMIT_MEMORY, "memory.events oom_kill", 1, true);
        assert_message(&s, "killed_by_limit", "memory (limit 512M)");
        sample_signal(&s, SIGKILL);
        s.outcome->usage.cpu_usec =
                        60 * USEC_PER_SEC; /* the SIGKILL was the OOM killer's, not RLIMIT_CPU's */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        CHECK(count_hits(&s) == 1);
        sample_timeout(&s);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out killed_by_limit");
}

TEST(swap_and_cpu_only_slow_down)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->events.swap_max = 5;
        CHECK(count_hits(&s) == 0); /* no swap allowed: that it was refused says nothing */
        s.plan.limits.value[LIMIT_SWAP] = MIB(1);
        s.outcome->usage.nr_throttled = 12;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        assert_hit(&s, LIMIT_SWAP, "memory.swap.events max", 5, false);
        assert_hit(&s, LIMIT_CPU, "cpu.stat nr_throttled", 12, false);
}

TEST(tasks)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->events.pids_max = 0;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.outcome->events.pids_max = 3;
        assert_verdict(&s, VERDICT_FAIL, 0, true, "limit_hit");
        assert_hit(&s, LIMIT_TASKS, "pids.events max", 3, true);
        assert_message(&s, "limit_hit", "tasks (limit 64)");
}

TEST(cpu_time)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_signal(&s, SIGXCPU);
        s.outcome->usage.cpu_usec = 9100000; /* of 10 s; the soft limit is a second lower */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        assert_hit(&s, LIMIT_CPU_TIME, "SIGXCPU", 1, true);
        s.outcome->usage.cpu_usec = 20000; /* kill -XCPU $$ */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal");
        s.outcome->usage.cpu_usec = UNKNOWN;
        assert_hit(&s, LIMIT_CPU_TIME, "SIGXCPU", 1, true);

        sample_signal(&s, SIGKILL);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal"); /* used time unknown: just a SIGKILL */
        s.outcome->usage.cpu_usec = 10000001;
        assert_hit(&s, LIMIT_CPU_TIME, "RLIMIT_CPU", 1, true);
        s.outcome->usage.cpu_usec = 9999999;
        CHECK(count_hits(&s) == 0);

        sample_exit(&s, 128 + SIGXCPU); /* a shell whose child used up the time */
        assert_hit(&s, LIMIT_CPU_TIME, "RLIMIT_CPU", 1, true);
        s.outcome->usage.cpu_usec = 20000; /* exit 152 */
        assert_verdict(&s, VERDICT_FAIL, 128 + SIGXCPU, false, "exit_code");

        s.outcome->events.cpu_time_exceeded = 1;
        sample_signal(&s, SIGKILL);
        s.outcome->usage.cpu_usec = 10300000;
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        assert_hit(&s, LIMIT_CPU_TIME, "cpu.stat usage_usec", 10300000, true);
        assert_message(&s, "killed_by_limit", "cpu_time_sec (limit 10 s)");

        s.outcome->events.cpu_time_exceeded = 0;
        s.plan.limits.value[LIMIT_CPU_TIME] = LIMIT_UNLIMITED;
        sample_signal(&s, SIGXCPU);
        CHECK(count_hits(&s) == 0);
}

TEST(file_size)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_signal(&s, SIGXFSZ);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        assert_hit(&s, LIMIT_FILE_SIZE, "SIGXFSZ", 1, true);
        s.outcome->events.efbig = 0; /* counted, and there was none: kill -XFSZ $$ */
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal");
        sample_exit(&s, 128 + SIGXFSZ); /* no evidence by itself */
        assert_verdict(&s, VERDICT_FAIL, 128 + SIGXFSZ, false, "exit_code");
        s.outcome->events.file_at_limit = strdup("big\033file");
        assert_verdict(&s, VERDICT_FAIL, 128 + SIGXFSZ, false, "exit_code limit_hit");
        assert_hit(&s, LIMIT_FILE_SIZE, "RLIMIT_FSIZE", 1, true);
        assert_message(&s, "limit_hit", "big\\x1bfile");
        s.outcome->events.efbig = 2;
        assert_hit(&s, LIMIT_FILE_SIZE, "system calls EFBIG", 2, true);
        sample_exit(&s, 0);
        assert_verdict(&s, VERDICT_FAIL, 0, true, "limit_hit");
}

TEST(open_files)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->events.emfile = 7;
        assert_verdict(&s, VERDICT_FAIL, 0, true, "limit_hit");
        assert_hit(&s, LIMIT_OPEN_FILES, "system calls EMFILE", 7, true);
}

TEST(disk_and_inodes)
{
        static const struct {
                uint64_t enospc, disk_full, inodes_full;
                const char *disk, *inodes; /* counters; NULL: no hit */
        } rows[] = {
                { UNKNOWN, UNKNOWN, UNKNOWN, NULL, NULL },
                { 0, 0, 0, NULL, NULL },
                { 4, UNKNOWN, UNKNOWN, "system calls ENOSPC", NULL },
                { 4, 0, 0, "system calls ENOSPC", NULL }, /* room was made again */
                { 4, 1, 0, "system calls ENOSPC", NULL },
                { 4, 0, 1, NULL, "system calls ENOSPC" },
                { 4, 1, 1, "system calls ENOSPC", "statfs free inodes" },
                { UNKNOWN, 1, 0, "statfs free blocks", NULL },
                { UNKNOWN, 0, 1, NULL, "statfs free inodes" },
                { UNKNOWN, 1, 1, "statfs free blocks", "statfs free inodes" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _sample_ Sample s;
                size_t expected = (rows[i].disk != NULL) + (size_t) (rows[i].inodes != NULL);

                sample_init(&s);
                s.outcome->events.enospc = rows[i].enospc;
                s.outcome->events.disk_full = rows[i].disk_full;
                s.outcome->events.inodes_full = rows[i].inodes_full;
                CHECK(count_hits(&s) == expected);
                if (rows[i].disk)
                        assert_hit(&s, LIMIT_DISK, rows[i].disk,
                                        rows[i].enospc == UNKNOWN ? 1 : rows[i].enospc, true);
                if (rows[i].inodes)
                        assert_hit(&s, LIMIT_INODES, rows[i].inodes,
                                        rows[i].disk || rows[i].enospc == UNKNOWN ? 1 : 4, true);
                assert_verdict(&s, expected == 0 ? VERDICT_PASS : VERDICT_FAIL, 0, true,
                                expected == 0   ? ""
                                : expected == 1 ? "limit_hit"
                                                : "limit_hit limit_hit");
        }
}

TEST(leftovers)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_leftover(&s, 41, "sleep");
        assert_verdict(&s, VERDICT_FAIL, 0, true, "leftover_process");
        assert_message(&s, "leftover_process",
                        "1 process still ran when the command had ended: sleep (pid 41)");
        for (pid_t pid = 42; pid < 52; pid++)
                sample_leftover(&s, pid, "\033[31m");
        assert_message(&s, "leftover_process", "11 processes");
        assert_message(&s, "leftover_process", "\\x1b[31m (pid 43), ...");
        s.outcome->leftovers.items[0].program = strdup("/usr/bin/python3"); /* it only called itself sleep */
        assert_message(&s, "leftover_process", "ended: /usr/bin/python3 (pid 41)");
        s.job.expect.allow_leftovers = true;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.job.expect.allow_leftovers = false;
        sample_signal(&s, SIGTERM);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal leftover_process");
}

TEST(listening)
{
        _sample_ Sample s;
        SocketRecord name = {
                .family = AF_UNIX, .type = SOCK_STREAM, .state = 10, .abstract = true, .left = true
        };

        sample_init(&s);
        s.job.expect.n_allow_listen = 0;
        sample_listening(&s, 8080, 41, false);
        assert_verdict(&s, VERDICT_PASS, 0, true, ""); /* closed again, and nobody asked */
        sample_listening(&s, 8081, 41, true);
        assert_verdict(&s, VERDICT_FAIL, 0, true, "listening");
        assert_message(&s, "listening",
                        "1 socket was listening that the command had left open: tcp 0.0.0.0:8081 (pid 41)");
        s.job.expect.allow_listen = calloc(2, sizeof(uint16_t));
        assert_message(&s, "listening", "2 sockets were listening that expect.allow_listen does not have");
        s.job.expect.allow_listen[s.job.expect.n_allow_listen++] = 8080;
        assert_message(&s, "listening", "1 socket was");
        s.job.expect.allow_listen[s.job.expect.n_allow_listen++] = 8081;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        name.name = malloc(4);
        CHECK(name.name);
        memcpy(name.name, "a\0\033", 4);
        name.name_size = 3;
        CHECK(socket_list_add(&s.outcome->sockets.listening, &name) == 0);
        assert_message(&s, "listening", "unix @a\\x00\\x1b");
        s.outcome->sockets.lost = 7;
        assert_verdict(&s, VERDICT_ERROR, 0, true, "listening evidence_lost");
        assert_message(&s, "evidence_lost", "7 missed");
        free(s.job.expect.allow_listen);
        s.job.expect.allow_listen = NULL;
}

/* What is beyond the list could be anything. */
TEST(listening_truncated)
{
        _sample_ Sample s;
        uint16_t port = 1;

        sample_init(&s);
        s.job.expect.allow_listen = &port;
        s.job.expect.n_allow_listen = 1;
        sample_listening(&s, 1, 41, true);
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.outcome->sockets.listening.total = 2;
        assert_verdict(&s, VERDICT_ERROR, 0, true, "evidence_lost");
        s.job.expect.allow_listen = NULL;
        s.job.expect.n_allow_listen = 0;
        s.outcome->sockets.listening.items[0].left = false;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
}

TEST(changes)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_change(&s, CHANGE_ADDED, "/srv/work/out", FILE_DIRECTORY);
        sample_change(&s, CHANGE_ADDED, "/srv/work/out/a.o", FILE_REGULAR);
        sample_change(&s, CHANGE_CHANGED, "/srv/work/outer", FILE_REGULAR);
        sample_change(&s, CHANGE_REMOVED, "/srv/work/b\n\xff", FILE_REGULAR);
        sample_change(&s, CHANGE_ADDED, "/tmp/x", FILE_REGULAR)->scratch = true;
        assert_verdict(&s, VERDICT_PASS, 0, true, ""); /* not given: reported, not judged */
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        assert_verdict(&s, VERDICT_FAIL, 0, true, "unexpected_change");
        assert_message(&s, "unexpected_change",
                        "4 changes outside allow_changes: added out, added out/a.o, changed outer, ...");
        sample_allow(&s, "/srv/work/out");
        assert_message(&s, "unexpected_change",
                        "2 changes outside allow_changes: changed outer, removed b\\n\\xff");
        sample_allow(&s, "/srv/work/out/a.o", "/srv/work/outer",
                        "/srv/work/b\n\xff"); /* out had to be made for a.o */
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        sample_allow(&s, "/srv/work");
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        sample_allow(&s, "/");
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
}

TEST(unexpected_are_indices)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_change(&s, CHANGE_ADDED, "/srv/work/ok", FILE_REGULAR);
        sample_change(&s, CHANGE_REMOVED, "/srv/work/dir", FILE_DIRECTORY);
        sample_change(&s, CHANGE_CHANGED, "/srv/work/dir2", FILE_DIRECTORY)->what = CHANGED_MODE;
        sample_allow(&s, "/srv/work/ok", "/srv/work/dir/file", "/srv/work/dir2/file");
        {
                _judgement_ j = sample_judge(&s);

                /* a parent that was removed or changed is no new one */
                CHECK(j->n_unexpected == 2 && j->unexpected[0] == 1 && j->unexpected[1] == 2);
        }
}

TEST(truncated_changes)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_change(&s, CHANGE_ADDED, "/srv/work/ok", FILE_REGULAR);
        s.outcome->changes.truncated = true;
        s.outcome->changes.total[CHANGE_ADDED] = 1000000;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        sample_allow(&s, "/srv/work/ok"); /* the others were compared with it when they were counted */
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.outcome->changes.unlisted_unexpected[false] = 7;
        assert_message(&s, "unexpected_change", "7 changes outside allow_changes");
        sample_change(&s, CHANGE_ADDED, "/srv/work/bad", FILE_REGULAR);
        assert_message(&s, "unexpected_change", "8 changes outside allow_changes: added bad, ...");
}

TEST(scratch_writes)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_change(&s, CHANGE_ADDED, "/tmp/a", FILE_REGULAR)->scratch = true;
        sample_change(&s, CHANGE_ADDED, "/home/u/.cache", FILE_DIRECTORY)->scratch = true;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        assert_verdict(&s, VERDICT_PASS, 0, true, ""); /* allow_changes is about the workspace ... */
        s.policy.scratch_writes = SCRATCH_FAIL;
        assert_message(&s, "scratch_write",
                        "2 changes in scratch places, outside allow_changes: added /tmp/a, added "
                        "/home/u/.cache");
        sample_allow(&s, "/tmp", "/home/u/.cache/x"); /* ... unless the policy judges these, too */
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        strv_free(s.plan.allow_changes);
        s.plan.allow_changes = NULL;
        assert_message(&s, "scratch_write",
                        "2 changes in scratch places: added /tmp/a, added /home/u/.cache");
        sample_change(&s, CHANGE_ADDED, "/srv/work/x", FILE_REGULAR);
        assert_verdict(&s, VERDICT_FAIL, 0, true, "scratch_write");
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        assert_verdict(&s, VERDICT_FAIL, 0, true, "unexpected_change scratch_write");
        s.policy.scratch_writes = SCRATCH_ALLOW;
        assert_verdict(&s, VERDICT_FAIL, 0, true, "unexpected_change");
}

TEST(allowed_links_lead_on)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_change(&s, CHANGE_ADDED, "/srv/work/build/x", FILE_REGULAR);
        sample_allow(&s, "/srv/work/out");
        assert_verdict(&s, VERDICT_FAIL, 0, true, "unexpected_change");
        sample_list(&s.outcome->changes.resolved, (const char *const[]){ "/srv/work/build", NULL });
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
}

TEST(rejected)
{
        static const char *const codes[] = {
                "denied_argv0",
                "over_ceiling",
                "limit_floor",
                "network_refused",
                "posture_refused",
                "workspace_refused",
                "env_refused",
                "not_supported",
        };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                _sample_ Sample s;

                sample_init(&s);
                CHECK(reason_add(&s.plan.refusals, codes[i], "100%% refused") == 0);
                sample_leftover(&s, 1, "x"); /* nothing was started: nothing else counts */
                outcome_host_error(s.outcome, "internal", NULL, "x");
                assert_verdict(&s, VERDICT_REJECTED, -1, false, codes[i]);
                assert_message(&s, codes[i], "100% refused");
        }
}

TEST(host_errors)
{
        static const char *const codes[] = {
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

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                _sample_ Sample s;

                sample_init(&s);
                s.outcome->released = s.outcome->exited = false;
                outcome_host_error(s.outcome, codes[i], NULL, "what happened");
                assert_verdict(&s, VERDICT_ERROR, -1, false, codes[i]);
                assert_message(&s, codes[i], "what happened");
                /* Killed by us after the release: still our fault alone, but what it did itself is told. */
                s.outcome->released = s.outcome->exited = true;
                sample_signal(&s, SIGKILL);
                s.job.expect.out.contains = (char *) "ok";
                sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
                sample_change(&s, CHANGE_ADDED, "/srv/work/x", FILE_REGULAR);
                assert_verdict(&s, VERDICT_ERROR, -1, false, codes[i]);
                s.outcome->events.oom_kill = 1;
                {
                        _judgement_ j = sample_judge(&s);

                        CHECK(j->verdict == VERDICT_ERROR && j->reasons.n == 2 &&
                                        reason_has(&j->reasons, "killed_by_limit"));
                }
        }
}

TEST(evidence_lost)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->evidence_lost = true;
        assert_verdict(&s, VERDICT_ERROR, 0, true, "evidence_lost");
        sample_exit(&s, 1); /* the failure is told too, and the verdict stays */
        assert_verdict(&s, VERDICT_ERROR, 1, false, "evidence_lost exit_code");
        s.outcome->abort_signal = SIGINT;
        assert_verdict(&s, VERDICT_ERROR, 1, false, "evidence_lost aborted exit_code");
}

/* A tree without the command is of an observer that has seen nothing, whatever it says of itself. */
TEST(tree_without_the_command)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->processes.observed = true;
        assert_verdict(&s, VERDICT_ERROR, 0, true, "evidence_lost");
        assert_message(&s, "evidence_lost", "not even the command");
        s.outcome->processes.total = 1;
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
}

TEST(processes_missed)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_program(&s, sample_process(&s, 70, 0), "/usr/bin/true", "true");
        assert_verdict(&s, VERDICT_PASS, 0, true, "");
        s.outcome->processes.lost = 1;
        assert_verdict(&s, VERDICT_ERROR, 0, true, "evidence_lost");
        assert_message(&s, "evidence_lost", "1 event of processes was missed");
        s.outcome->processes.lost = 12;
        assert_message(&s, "evidence_lost", "12 events of processes were missed");
}

TEST(end_not_seen)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->exited = false;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "evidence_lost");
        s.outcome->released = false;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "internal");
}

/* An end without a status and without a signal is none that can be judged. */
TEST(end_of_no_kind)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_exit(&s, -1);
        assert_verdict(&s, VERDICT_ERROR, -1, false, "evidence_lost");
        assert_message(&s, "evidence_lost", "how the command ended");
}

TEST(aborted)
{
        _sample_ Sample s;

        sample_init(&s);
        s.outcome->abort_signal = SIGINT;
        s.outcome->released = s.outcome->exited = false;
        assert_verdict(&s, VERDICT_ABORTED, -1, false, "aborted");
        s.outcome->released = s.outcome->exited = true;
        sample_signal(&s, SIGKILL); /* ours */
        assert_verdict(&s, VERDICT_ABORTED, -1, false, "aborted");
        {
                _judgement_ j = sample_judge(&s);

                CHECK(verdict_exit_status(j, s.outcome) == 130);
                s.outcome->abort_signal = SIGTERM;
                CHECK(verdict_exit_status(j, s.outcome) == 143);
        }
}

TEST(exit_statuses)
{
        static const int expected[_VERDICT_MAX] = { 0, 1, 3, 4, 130 };
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        CHECK(o);
        o->abort_signal = SIGINT;
        for (Verdict v = 0; v < _VERDICT_MAX; v++) {
                const Judgement j = { .verdict = v };

                CHECK(verdict_exit_status(&j, o) == expected[v]);
                CHECK(verdict_names[v]);
        }
}

/* What others did is an error, and is told from what the job did to itself. */
TEST(interference)
{
        static const struct {
                int signal;
                uint64_t sent_kill, sent_term;
                const char *reasons;
        } kills[] = {
                { SIGKILL, 0, 0, "killed_outside" },
                { SIGKILL, 1, 0, "signal" }, /* kill -9 $$ */
                { SIGKILL, UNKNOWN, UNKNOWN, "signal" },
                { SIGTERM, 0, 0, "killed_outside" },
                { SIGTERM, 0, 2, "signal" },
                { SIGTERM, 1, 0, "killed_outside" },
                { SIGSEGV, 0, 0, "signal" },
        };

        for (size_t i = 0; i < ELEMENTSOF(kills); i++) {
                _sample_ Sample s;
                bool own = streq(kills[i].reasons, "signal");

                sample_init(&s);
                sample_signal(&s, kills[i].signal);
                s.outcome->outside.sent_kill = kills[i].sent_kill;
                s.outcome->outside.sent_term = kills[i].sent_term;
                s.outcome->outside.senders = s.outcome->outside.signal_fds = 0;
                assert_verdict(&s, own ? VERDICT_FAIL : VERDICT_ERROR, -1, false, kills[i].reasons);
                /* Ours, and the kernel's for the job's own limits, are not somebody else's. */
                s.outcome->events.cpu_time_exceeded = 1;
                assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
                s.outcome->events.cpu_time_exceeded = UNKNOWN;
                s.outcome->events.oom_kill = s.outcome->events.oom = 1;
                assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        }
}

/* A timer's signal comes from whoever runs when it is due. */
TEST(signal_by_arrangement)
{
        static const struct {
                uint64_t senders, signal_fds;
        } own[] = { { 1, 0 }, { 0, 1 }, { UNKNOWN, 0 }, { 0, UNKNOWN } };

        for (size_t i = 0; i < ELEMENTSOF(own); i++) {
                _sample_ Sample s;

                sample_init(&s);
                sample_signal(&s, SIGKILL);
                s.outcome->outside.sent_kill = 0;
                s.outcome->outside.senders = own[i].senders;
                s.outcome->outside.signal_fds = own[i].signal_fds;
                assert_verdict(&s, VERDICT_FAIL, -1, false, "signal");
        }
}

TEST(stopped_from_outside)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_signal(&s, SIGKILL);
        s.outcome->outside.sent_kill = 0;
        s.outcome->outside.stopped = true;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "stopped_outside");
        s.outcome->outside.oomd_kills = 1;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "stopped_outside oomd_killed");
        s.outcome->outside.stopped = false;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "oomd_killed");
        s.outcome->outside.oomd_kills = 0;
        /* A timeout is a timeout. */
        sample_timeout(&s);
        assert_verdict(&s, VERDICT_FAIL, -1, false, "timed_out");
}

/* The same counter of kills, and three causes. */
TEST(whose_memory)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_signal(&s, SIGKILL);
        s.outcome->events.oom_kill = 1;
        s.outcome->events.oom = 1;
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        s.outcome->events.oom = UNKNOWN;
        assert_verdict(&s, VERDICT_FAIL, -1, false, "signal killed_by_limit");
        s.outcome->events.oom = 0;
        assert_verdict(&s, VERDICT_ERROR, -1, false, "host_oom");
        assert_message(&s, "host_oom", "the host was out of memory");
        CHECK(count_hits(&s) == 0);
        s.outcome->outside.outer_oom = 1;
        assert_message(&s, "host_oom", "qscope.slice");
        /* A child was killed, and the job went on. */
        sample_exit(&s, 0);
        assert_verdict(&s, VERDICT_ERROR, 0, true, "host_oom");
}

TEST(many_causes)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_timeout(&s);
        s.outcome->events.oom_kill = 1;
        s.outcome->events.pids_max = 2;
        s.outcome->events.disk_full = 1;
        s.outcome->usage.nr_throttled = 9;
        sample_leftover(&s, 9, "sleep");
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        sample_change(&s, CHANGE_ADDED, "/srv/work/x", FILE_REGULAR);
        s.job.expect.out.contains = (char *) "done";
        s.job.expect.err.equals = (char *) "none";
        s.job.expect.max_duration_usec = USEC_PER_SEC;
        assert_verdict(&s, VERDICT_FAIL, -1, false,
                        "timed_out killed_by_limit limit_hit limit_hit leftover_process unexpected_change "
                        "expect_stdout expect_stderr expect_duration");
        CHECK(count_hits(&s) == 4);
}

static int judge_much(void *context)
{
        const Sample *s = context;
        _judgement_ j = NULL;
        int r;

        r = judge(&s->plan, s->outcome, &j);
        CHECK(r < 0 ? !j : j->reasons.n == 7);
        return r;
}

TEST(out_of_memory)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_exit(&s, 9);
        s.outcome->events.oom_kill = 1;
        s.outcome->events.disk_full = 1;
        sample_leftover(&s, 9, "sleep");
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        sample_change(&s, CHANGE_ADDED, "/srv/work/x", FILE_REGULAR);
        sample_stream(&s.outcome->out, "[1,2]", 5, 2, 3);
        s.job.expect.out.json = cJSON_CreateFalse();
        s.job.expect.out.matches = (char *) "[3-9]";
        CHECK(alloc_fail_each(judge_much, &s) > 0);
}

TEST_MAIN
