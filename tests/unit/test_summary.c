/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary.h"

#include <signal.h>
#include <sys/stat.h>

#include "alloc.h"
#include "sample.h"
#include "test.h"

static char *print_receipt(const cJSON *receipt, const char *path, bool colour)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        CHECK(f);
        CHECK(summary_print(f, receipt, path, colour) == 0);
        CHECK(fclose(f) == 0);
        if (getenv("QSCOPE_SHOW"))
                fprintf(stderr, "%s\n", text);
        return text;
}

static char *print_sample(const Sample *s, bool colour)
{
        _cleanup_(judgement_freep) Judgement *j = sample_judge(s);
        _cleanup_(cJSON_Deletep) cJSON *receipt = receipt_build(&s->plan, s->outcome, j);

        CHECK(receipt);
        return print_receipt(receipt, "/var/lib/qscope/receipts/sample-1.json", colour);
}

static unsigned count_lines(const char *text)
{
        unsigned n = 0;

        for (; *text; text++)
                n += *text == '\n';
        return n;
}

/* Nothing that could move a cursor: only printable characters, and colours where they were asked for. */
static void assert_harmless(const char *text, bool colour)
{
        CHECK(utf8_is_valid(text, strlen(text)));
        for (const char *p = text; *p; p++) {
                if (colour && *p == '\033') {
                        p = strchr(p, 'm');
                        CHECK(p);
                        continue;
                }
                CHECK(*p == '\n' || (unsigned char) *p >= 0x20);
                CHECK(*p != 0x7f);
        }
}

TEST(pass)
{
        _sample_ Sample s;
        _cleanup_free_ char *text = NULL;

        sample_init(&s);
        sample_argv(&s, "sh", "-c", "echo $HOME", "");
        sample_text(&s.outcome->out, "one\ntwo\nthree\nfour\nfive\nsix\n");
        sample_change(&s, CHANGE_ADDED, "/srv/work/a.pyc", FILE_REGULAR);
        text = print_sample(&s, false);
        CHECK(startswith(text, "PASS  sample-1\n"));
        CHECK_HAS(text, "sh -c 'echo $HOME' ''\n");
        CHECK_HAS(text, "exit 0\n");
        CHECK_HAS(text, "1.23 s of 30 s, CPU 1.10 s\n");
        CHECK_HAS(text, "12.5M peak of 512M, 3 tasks at most\n");
        CHECK_HAS(text, "1 added, 0 changed, 0 removed\n");
        CHECK_HAS(text, "+ a.pyc\n");
        CHECK_HAS(text, "28B, the end of it\n");
        CHECK_HAS(text, "| three\n");
        CHECK(!strstr(text, "two"));
        CHECK_HAS(text, "receipt   /var/lib/qscope/receipts/sample-1.json\n");
        CHECK(!strstr(text, "why") && !strstr(text, "stderr"));
        CHECK(count_lines(text) < 20);
        assert_harmless(text, false);
}

TEST(fail)
{
        _sample_ Sample s;
        _cleanup_free_ char *text = NULL;

        sample_init(&s);
        sample_exit(&s, 2);
        sample_text(&s.outcome->err, "No such file or directory");
        s.outcome->events.oom_kill = 1;
        s.outcome->usage.nr_throttled = 3;
        sample_leftover(&s, 41, "sleep");
        sample_leftover(&s, 42, "sh");
        sample_listening(&s, 8080, 41, true);
        s.outcome->sockets.leftover.total = 2;
        s.outcome->leftovers.items[1].program = strdup("/usr/bin/python3");
        sample_program(&s, sample_process(&s, 40, 0), "/usr/bin/dash", "sh");
        sample_process(&s, 41, 40);
        text = print_sample(&s, false);
        CHECK(startswith(text, "FAIL  sample-1\n"));
        CHECK_HAS(text, "exit 2 (expected 0)\n");
        CHECK_HAS(text, "memory: memory.events oom_kill 1\n");
        CHECK_HAS(text, "cpu: cpu.stat nr_throttled 3 (slowed down, not harmed)\n");
        CHECK_HAS(text, "2 processes: sleep (41), /usr/bin/python3 (42)\n");
        CHECK_HAS(text, "processes 2, 1 program started\n");
        CHECK_HAS(text, "listened  tcp 0.0.0.0:8080 (41)\n");
        CHECK_HAS(text, "2 open sockets\n");
        CHECK_HAS(text, "| No such file or directory\n");
        CHECK_HAS(text, "exit_code: exit code 2, expected 0\n");
        CHECK_HAS(text, "killed_by_limit: memory (limit 512M)");
        CHECK_HAS(text, reason_find("exit_code")->next);
        CHECK_HAS(text, reason_find("killed_by_limit")->next);
        CHECK(count_lines(text) <= 25);
}

TEST(other_ends)
{
        _sample_ Sample s;
        _cleanup_free_ char *crashed = NULL, *late = NULL, *missing = NULL;

        sample_init(&s);
        sample_signal(&s, SIGSEGV);
        s.outcome->core_dumped = true;
        sample_process(&s, 40, 0);
        s.outcome->processes.lost = 3;
        crashed = print_sample(&s, false);
        CHECK_HAS(crashed, "SIGSEGV, core dumped\n");
        CHECK_HAS(crashed, "processes 1, 0 programs started, 3 events missed\n");
        sample_timeout(&s);
        late = print_sample(&s, false);
        CHECK_HAS(late, "timed out\n");
        s.outcome->timed_out = false;
        s.outcome->exit_signal = 0;
        sample_exec_error(&s, EACCES, "exec", "./run.sh", S_IFREG | 0644, NULL);
        missing = print_sample(&s, false);
        CHECK_HAS(missing, "exit 126 (expected 0), could not execute ./run.sh\n");
        CHECK_HAS(missing, "chmod +x");
}

/* Released, and then somebody pressed Ctrl-C. */
TEST(interrupted)
{
        _sample_ Sample s;
        _cleanup_free_ char *aborted = NULL, *lost = NULL;

        sample_init(&s);
        s.outcome->exited = false;
        s.outcome->abort_signal = SIGINT;
        aborted = print_sample(&s, false);
        CHECK(startswith(aborted, "ABORTED  sample-1\n"));
        CHECK_HAS(aborted, "end       interrupted (aborted)\n");
        CHECK_HAS(aborted, "1.23 s of 30 s");
        s.outcome->abort_signal = 0;
        lost = print_sample(&s, false);
        CHECK_HAS(lost, "end       how it ended is not known\n");
}

TEST(not_started)
{
        _sample_ Sample s;
        _cleanup_free_ char *rejected = NULL, *error = NULL;

        sample_init(&s);
        outcome_free(s.outcome);
        s.outcome = outcome_new();
        CHECK(s.outcome);
        outcome_host_error(s.outcome, "not_root", "sudo it", "qscope needs root");
        error = print_sample(&s, false);
        CHECK(startswith(error, "ERROR  sample-1\n"));
        CHECK_HAS(error, "it was not started\n");
        CHECK_HAS(error, "not_root: qscope needs root\n");
        CHECK_HAS(error, "sudo it\n");
        CHECK(reason_add(&s.plan.refusals, "denied_argv0", "no") == 0);
        rejected = print_sample(&s, false);
        CHECK(startswith(rejected, "REJECTED  sample-1\n"));
        CHECK(count_lines(rejected) < 8);
}

TEST(many_changes)
{
        _sample_ Sample s;
        _cleanup_free_ char *text = NULL;
        char path[64];

        sample_init(&s);
        for (int i = 0; i < 40; i++) {
                (void) snprintf(path, sizeof(path), "/srv/work/f%d", i);
                sample_change(&s, i % 2 ? CHANGE_CHANGED : CHANGE_ADDED, path, FILE_REGULAR);
        }
        s.outcome->changes.total[CHANGE_ADDED] = 1000; /* more than are listed */
        text = print_sample(&s, false);
        CHECK_HAS(text, "1000 added, 20 changed, 0 removed\n");
        CHECK_HAS(text, "and 1015 more\n");
        CHECK(count_lines(text) < 20);
}

TEST(nothing_unescaped)
{
        static const char evil[] = "\033]0;owned\007\033[2J\x9b"
                                   "31m\r\n\xe2\x80\xae\xff";
        _sample_ Sample s;
        _cleanup_free_ char *plain = NULL, *coloured = NULL;
        char path[128];

        sample_init(&s);
        (void) snprintf(path, sizeof(path), "/srv/work/%s", evil);
        sample_argv(&s, evil, evil);
        sample_text(&s.outcome->out, evil);
        sample_text(&s.outcome->err, evil);
        sample_change(&s, CHANGE_ADDED, path, FILE_REGULAR);
        sample_leftover(&s, 5, evil);
        sample_allow(&s, "/srv/work/none");
        free(s.plan.job_id);
        s.plan.job_id = strdup(evil);
        sample_exec_error(&s, ENOENT, "exec", evil, 0, NULL);
        plain = print_sample(&s, false);
        assert_harmless(plain, false);
        coloured = print_sample(&s, true);
        assert_harmless(coloured, true);
        CHECK_HAS(plain, "\\x1b[2J");
        CHECK_HAS(plain, "\\xe2\\x80\\xae");
}

TEST(colour)
{
        _sample_ Sample s;
        _cleanup_free_ char *text = NULL;

        sample_init(&s);
        text = print_sample(&s, true);
        CHECK(startswith(text, "\033[1;32mPASS\033[0m  sample-1\n"));
}

/* An old receipt, one of another tool, one that somebody edited. */
TEST(tolerates_anything)
{
        static const char *const receipts[] = {
                "{}",
                "[]",
                "null",
                "\"x\"",
                "{\"verdict\":1,\"argv\":3,\"reasons\":{\"a\":1}}",
                "{\"verdict\":\"pass\",\"argv\":[1,null,{}],\"reasons\":[1,{},{\"code\":2,\"next\":[]"
                "}]}",
                "{\"verdict\":\"strange\",\"exit_code\":-3,\"duration_ms\":1e300,\"timeout_sec\":"
                "\"x\"}",
                "{\"exit_code\":1e99,\"stdout\":\"a\",\"stdout_info\":7,\"stderr\":[]}",
                "{\"fs\":{\"added\":3,\"totals\":{\"added\":\"x\"},\"changed\":[1,{\"path\":4}]}}",
                "{\"processes\":{\"leftover\":[1,{\"pid\":-1,\"comm\":3}]},\"limits\":{\"hits\":[3,{}"
                "]}}",
                "{\"usage\":{\"memory_peak_bytes\":1.5},\"limits\":{\"set\":[]},\"blind_spots\":[1]}",
                "{\"stdout\":\"\\n\",\"stderr\":\"\\n\\n\\n\\n\\n\\n\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(receipts); i++) {
                _cleanup_(cJSON_Deletep) cJSON *receipt = cJSON_Parse(receipts[i]);
                _cleanup_free_ char *text = NULL;

                CHECK(receipt);
                text = print_receipt(receipt, NULL, false);
                CHECK(count_lines(text) >= 2);
                assert_harmless(text, false);
        }
}

TEST(seed_receipt)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt =
                        cJSON_Parse("{\"job_id\":\"2026-09-03-lint-1\",\"argv\":[\"ruff\"],\"cwd\":\"/"
                                    "w\",\"timeout_sec\":30,"
                                    "\"expected_exit\":0,\"exit_code\":127,\"timed_out\":false,\"stdout\":"
                                    "\"\",\"stderr\":\"x\\n\","
                                    "\"duration_ms\":3,\"match_expected\":false}");
        _cleanup_free_ char *text = NULL;

        CHECK(receipt);
        text = print_receipt(receipt, NULL, false);
        CHECK_HAS(text, "2026-09-03-lint-1");
        CHECK_HAS(text, "exit 127 (expected 0)\n");
        CHECK_HAS(text, "3 ms of 30 s\n");
}

TEST(write_errors)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = cJSON_Parse("{\"verdict\":\"pass\"}");
        FILE *full = fopen("/dev/full", "we");

        CHECK(receipt && full);
        CHECK(summary_print(full, receipt, NULL, false) == -ENOSPC);
        (void) fclose(full);
}

static int print_to_null(void *context)
{
        FILE *f = fopen("/dev/null", "we");
        int r;

        if (!f)
                return -ENOMEM;
        r = summary_print(f, context, "/x", true);
        (void) fclose(f);
        return r;
}

TEST(out_of_memory)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt =
                        cJSON_Parse("{\"argv\":[\"a\",\"b\"],\"exit_code\":1,\"expected_exit\":[0,2]}");

        CHECK(receipt);
        CHECK(alloc_fail_each(print_to_null, receipt) > 0);
}

TEST_MAIN
