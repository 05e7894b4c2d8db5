/* SPDX-License-Identifier: Apache-2.0 */
#include "core/receipt.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "alloc.h"
#include "core/shared.h"
#include "files.h"
#include "sample.h"
#include "test.h"

/* The receipt as it would be read from disk: printed, found valid, parsed again. */
static cJSON *read_back(const Sample *s, char **ret_text)
{
        _cleanup_(judgement_freep) Judgement *j = sample_judge(s);
        _cleanup_(cJSON_Deletep) cJSON *receipt = receipt_build(&s->plan, s->outcome, j);
        _cleanup_free_ char *text = NULL;
        cJSON *parsed = NULL;
        Error e = ERROR_INIT;

        CHECK(receipt);
        text = json_print(receipt, true);
        CHECK(text);
        if (json_parse(text, strlen(text), JSON_STRICT, "receipt", &parsed, &e) < 0)
                fprintf(stderr, "%s\n%s", e.text, text);
        CHECK(parsed);
        if (ret_text)
                *ret_text = TAKE_PTR(text);
        return parsed;
}

static const cJSON *at(const cJSON *item, const char *path)
{
        char copy[128], *saved = NULL;

        CHECK(strlen(path) < sizeof(copy));
        strcpy(copy, path);
        for (char *key = strtok_r(copy, ".", &saved); key; key = strtok_r(NULL, ".", &saved)) {
                item = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, atoi(key)) : json_get(item, key);
                if (!item)
                        fprintf(stderr, "%s: no %s\n", path, key);
                CHECK(item);
        }
        return item;
}

static void assert_text(const cJSON *receipt, const char *path, const char *expected)
{
        const char *text = cJSON_GetStringValue(at(receipt, path));

        if (!text || !streq(text, expected))
                fprintf(stderr, "%s: \"%s\" instead of \"%s\"\n", path, text ? text : "(no text)", expected);
        CHECK(text && streq(text, expected));
}

static void assert_number(const cJSON *receipt, const char *path, double expected)
{
        const cJSON *item = at(receipt, path);

        CHECK(cJSON_IsNumber(item));
        if (item->valuedouble < expected || item->valuedouble > expected)
                fprintf(stderr, "%s: %g instead of %g\n", path, item->valuedouble, expected);
        CHECK(!(item->valuedouble < expected) && !(item->valuedouble > expected));
}

static bool is_null(const cJSON *receipt, const char *path)
{
        return cJSON_IsNull(at(receipt, path));
}

static void compare_golden(const char *name, const Sample *s)
{
        char file[64];
        _cleanup_free_ char *text = NULL, *golden = NULL;
        const char *path;
        size_t size;

        (void) snprintf(file, sizeof(file), "golden/receipt/%s.json", name);
        path = test_path(file);
        cJSON_Delete(read_back(s, &text));
        if (getenv("QSCOPE_UPDATE_GOLDEN"))
                CHECK_EQ(write_test_file(path, text), 0);
        golden = read_test_file(path, &size);
        if (!streq_ptr(golden, text))
                fprintf(stderr, "%s differs (QSCOPE_UPDATE_GOLDEN=1 writes it anew):\n%s", path, text);
        CHECK(streq_ptr(golden, text));
}

TEST(golden_pass)
{
        _sample_ Sample s;
        FileChange *link;

        sample_init(&s);
        sample_argv(&s, "python3", "-m", "compileall", "$HOME", "a\nb");
        sample_text(&s.outcome->out, "Listing 'src'...\n");
        sample_allow(&s, "/srv/work");
        strcpy(sample_change(&s, CHANGE_ADDED, "/srv/work/src/a.pyc", FILE_REGULAR)->after.sha256, "aa");
        sample_change(&s, CHANGE_CHANGED, "/srv/work", FILE_DIRECTORY)->what = CHANGED_MODE | CHANGED_OWNER;
        sample_change(&s, CHANGE_REMOVED, "/srv/work/old", FILE_FIFO);
        link = sample_change(&s, CHANGE_ADDED, "/tmp/link", FILE_SYMLINK);
        link->scratch = true;
        link->after.target = strdup("\xff/etc");
        strcpy(s.outcome->changes.sha256, "cc");
        CHECK(outcome_add_fact(s.outcome, "seccomp", true, "2", "2") == 0);
        CHECK(outcome_add_fact(s.outcome, "namespace.net", true, "not the host's", "net:[4026532301]") == 0);
        CHECK(outcome_blind_spot(s.outcome, "open_files: system calls were not traced") == 0);
        s.outcome->invocation_id = strdup("ffeeddccbbaa99887766554433221100");
        s.outcome->layer = strdup("tmpfs");
        s.outcome->workspace_method = strdup("overlay, id-mapped");
        s.outcome->usage.nr_throttled = 4;
        s.outcome->usage.cpu_pressure_usec = 1234;
        s.outcome->egress.observed = true;
        s.outcome->egress.refused_total[REFUSED_RAW] = 0;
        s.job.rationale = (char *) "check that it compiles";
        s.job.meta = cJSON_Parse("{\"model\":\"m\",\"n\":[1,2.5]}");
        s.job.extra = cJSON_Parse("{\"x_ticket\":\"T-1\"}");
        sample_program(&s, sample_process(&s, 70, 0), "/usr/bin/true", "true");
        s.outcome->processes.items[0].exit_status = 0;
        s.outcome->processes.items[0].end_usec = 1234567;
        compare_golden("pass", &s);
}

static void add_xattr(FileNode *node, const char *name)
{
        node->xattrs = reallocarray(node->xattrs, node->n_xattrs + 1, sizeof(FileXattr));
        CHECK(node->xattrs);
        node->xattrs[node->n_xattrs++] = (FileXattr){ .name = strdup(name), .size = 3, .sha256 = "ee" };
        node->xattrs_total++;
}

static void add_rename(FileChanges *changes, const char *from, const char *to, RenameHow how)
{
        changes->renames = reallocarray(changes->renames, changes->n_renames + 1, sizeof(FileRename));
        CHECK(changes->renames);
        changes->renames[changes->n_renames++] = (FileRename){ strdup(from), strdup(to), how };
}

/* Everything that can be said of a file. */
TEST(golden_files)
{
        _sample_ Sample s;
        FileChanges *changes;
        FileChange *change;

        sample_init(&s);
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        s.policy.scratch_writes = SCRATCH_FAIL;
        change = sample_change(&s, CHANGE_CHANGED, "/srv/work/tool", FILE_REGULAR);
        change->what = CHANGED_CONTENT | CHANGED_MODE | CHANGED_XATTR;
        change->before.mode = 06755;
        add_xattr(&change->before, "security.capability");
        strcpy(change->before.capabilities, "0000000000002000");
        add_xattr(&change->after, "user.\xff");
        change->after.xattrs_total = 2;
        change->before.links = 2;
        change = sample_change(&s, CHANGE_ADDED, "/srv/work/hole", FILE_REGULAR);
        change->after.size = UINT64_C(10) << 30;
        change->after.allocated = 4096;
        strcpy(change->after.sparse_sha256, "dd");
        change = sample_change(&s, CHANGE_ADDED, "/tmp/null\xff", FILE_CHAR);
        change->scratch = true;
        change->after.device = makedev(1, 3);
        s.outcome->changes.scratch = 1;
        sample_change(&s, CHANGE_REMOVED, "/srv/work/socket", FILE_SOCKET);
        changes = &s.outcome->changes;
        add_rename(changes, "/srv/work/d", "/srv/work/e", RENAME_DIRECTORY);
        add_rename(changes, "/srv/work/a", "/tmp/b", RENAME_CONTENT);
        changes->hard_links = calloc(1, sizeof(HardLinks));
        changes->n_hard_links = 1;
        changes->hard_links[0].links = 3;
        sample_list(&changes->hard_links[0].paths,
                        (const char *const[]){ "/srv/work/tool", "/srv/work/t\xff", NULL });
        changes->unlisted_unexpected[false] = 5;
        changes->truncated = true;
        compare_golden("files", &s);
}

TEST(golden_not_found)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_argv(&s, "ruff", "check", ".");
        sample_exec_error(&s, ENOENT, "exec", NULL, 0, NULL);
        compare_golden("not-found", &s);
}

/* What a job can leave open and share, one of each kind. */
static void sample_open(Sample *s)
{
        Outcome *o = s->outcome;
        SocketRecord named = {
                .family = AF_UNIX, .type = SOCK_STREAM, .state = 10, .inode = 7, .abstract = true
        };
        SocketRecord closed = { .family = AF_INET6,
                .type = SOCK_DGRAM,
                .protocol = IPPROTO_UDP,
                .local = { .family = AF_INET6, .address = { [15] = 1 }, .port = 53 },
                .remote = { .family = AF_INET6, .address = { 0xfe, 0x80 }, .port = 1024 },
                .state = 7 };
        FdRecord fd = { .pid = 77, .fd = 3, .kind = "file", .deleted = true, .writable = true };
        IpcRecord queue = { .kind = "posix_mq", .key = UNKNOWN, .id = UNKNOWN, .size = 5 };
        IpcRecord shm = { .kind = "sysv_shm", .key = 0x1234, .id = 1, .size = 4096, .pid = 77 };

        sample_listening(s, 8080, 77, true);
        named.name = strndup("x\xff", 2);
        named.name_size = 2;
        fd.target = strdup("/srv/work/gone (deleted)");
        queue.name = strdup("queue");
        CHECK(socket_list_add(&o->sockets.leftover, &named) == 0);
        CHECK(socket_list_add(&o->sockets.closed, &closed) == 0);
        CHECK(fd_list_add(&o->fds, &fd) == 0);
        CHECK(ipc_list_add(&o->ipc, &queue) == 0);
        CHECK(ipc_list_add(&o->ipc, &shm) == 0);
        o->fds.observed = o->ipc.observed = true;
        sample_change(s, CHANGE_ADDED, "/dev/shm/sem.lock", FILE_REGULAR)->scratch = true;
        sample_change(s, CHANGE_ADDED, "/dev/shm/area", FILE_REGULAR)->scratch = true;
}

TEST(golden_many_causes)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_timeout(&s);
        s.plan.timeout_usec = 1500000;
        s.outcome->events.oom_kill = 2;
        s.outcome->events.pids_max = 17;
        sample_stream(&s.outcome->out, "0123456789abcdefghij", 20, 4, 4);
        sample_stream(&s.outcome->err, "bad \xff byte\0", 11, 64, 64);
        s.outcome->out.after_exit_bytes = 3;
        sample_leftover(&s, 77, "sleep");
        sample_open(&s);
        s.outcome->leftovers.items[0].program = strdup("/usr/bin/python3");
        sample_program(&s, sample_process(&s, 70, 0), "/usr/bin/dash", "sh");
        sample_program(&s, s.outcome->processes.items, "/srv/work/a\xff", "a\xff");
        s.outcome->processes.items[0].runs[1].argv_cut = true;
        s.outcome->processes.items[0].exit_signal = SIGKILL;
        sample_process(&s, 77, 70)->origin = strdup("/usr/bin/dash");
        sample_program(&s, sample_process(&s, 78, 77), NULL, NULL);
        s.outcome->processes.items[2].exit_status = 3;
        s.outcome->processes.items[2].end_usec = 9001;
        s.outcome->processes.truncated = true;
        s.outcome->processes.lost = 2;
        sample_allow(&s, "/srv/work/allowed");
        sample_change(&s, CHANGE_CHANGED, "/srv/work/lock\n\xff", FILE_REGULAR);
        sample_egress(&s, EGRESS_DNS, "198.18.0.53", 53, "example.org", 12, "/usr/bin/git")->count = 2;
        sample_egress(&s, EGRESS_TCP, "198.18.1.0", 443, "example.org", 12, "/usr/bin/git\xff");
        sample_egress(&s, EGRESS_ICMP, "2001:db8::1", 0, NULL, 0, NULL);
        s.outcome->egress.total = 5000;
        s.outcome->egress.lost = 3;
        s.outcome->egress.refused = calloc(1, sizeof(RefusedRecord));
        s.outcome->egress.refused[0] = (RefusedRecord){ REFUSED_FAMILY, 12, strdup("/usr/bin/git"), 3, 2000 };
        s.outcome->egress.n_refused = 1;
        s.outcome->egress.refused_total[REFUSED_FAMILY] = 3;
        compare_golden("many-causes", &s);
}

/* Programs that were refused: all that can be known of one, one that allow_exec does not name, and as little
 * as may be known. */
TEST(golden_denied)
{
        char *argv[] = { (char *) "curl", (char *) "-s", (char *) "x\xff", NULL };
        const DeniedProgram programs[] = {
                { .pid = 71,
                                .by = (char *) "/usr/bin/dash",
                                .path = (char *) "/usr/bin/curl",
                                .argv = argv,
                                .rule = (char *) "curl",
                                .count = 1,
                                .usec = 2500 },
                { .pid = 72,
                                .by = (char *) "/srv/work/a\xff",
                                .path = (char *) "/srv/work/tool",
                                .count = 1 },
                { .pid = 73, .rule = (char *) "sha256:00", .count = 1, .usec = 9000 },
        };
        _sample_ Sample s;

        sample_init(&s);
        for (size_t i = 0; i < ELEMENTSOF(programs); i++)
                CHECK(denied_list_add(&s.outcome->denied, &programs[i]) == 0);
        CHECK(denied_list_add(&s.outcome->denied, &programs[0]) == 0);
        CHECK_EQ(s.outcome->denied.n, ELEMENTSOF(programs));
        CHECK_EQ(s.outcome->denied.total, ELEMENTSOF(programs) + 1);
        compare_golden("denied", &s);
}

TEST(golden_rejected)
{
        _sample_ Sample s;

        sample_init(&s);
        outcome_free(s.outcome);
        s.outcome = outcome_new();
        CHECK(s.outcome);
        sample_argv(&s, "sudo", "reboot");
        CHECK(reason_add(&s.plan.refusals, "denied_argv0", "argv[0] is sudo, which policy default denies") ==
                        0);
        compare_golden("rejected", &s);
}

TEST(golden_host_error)
{
        _sample_ Sample s;

        sample_init(&s);
        outcome_free(s.outcome);
        s.outcome = outcome_new();
        CHECK(s.outcome);
        s.outcome->started_realtime_usec = UINT64_C(1756886400000003);
        outcome_host_error(s.outcome, "start_refused", "Unmask the unit.", "the manager refused: %s",
                        "Unit is masked.");
        compare_golden("host-error", &s);
}

TEST(seed_keys_come_first_and_in_order)
{
        static const char *const keys[] = {
                "schema",
                "run_id",
                "verdict",
                "reasons",
                "job_id",
                "argv",
                "cwd",
                "timeout_sec",
                "expected_exit",
                "exit_code",
                "timed_out",
                "stdout",
                "stderr",
                "duration_ms",
                "match_expected",
        };
        static const char *const others[] = {
                "policy",
                "posture",
                "host",
                "unit",
                "started_at",
                "finished_at",
                "signal",
                "core_dumped",
                "exec",
                "stdout_info",
                "stderr_info",
                "limits",
                "usage",
                "isolation",
                "fs",
                "processes",
                "sockets",
                "egress",
                "fds",
                "ipc",
                "timing",
                "blind_spots",
                "env",
                "rationale",
                "meta",
        };
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        const cJSON *item;
        size_t i = 0;

        sample_init(&s);
        receipt = read_back(&s, NULL);
        item = receipt->child;
        for (; i < ELEMENTSOF(keys); i++, item = item->next)
                CHECK(streq(item->string, keys[i]));
        for (i = 0; i < ELEMENTSOF(others); i++)
                CHECK(json_get(receipt, others[i]));
        assert_number(receipt, "duration_ms", 1234);
        assert_number(receipt, "timing.start", 36.5);
        assert_number(receipt, "timing.run", 1234.567);
        CHECK(is_null(receipt, "timing.write"));
        CHECK(is_null(receipt, "usage.io_read_bytes")); /* unknown is not 0 */
        assert_text(receipt, "started_at", "2025-09-03T08:00:00.000003Z");
        assert_number(receipt, "limits.set.memory", 512 << 20);
        assert_text(receipt, "limits.set.cpu", "150%");
        assert_number(receipt, "limits.set.cpu_time_sec", 10);
        CHECK(is_null(receipt, "limits.set.inodes"));
        CHECK(cJSON_GetArraySize(at(receipt, "reasons")) == 0);
}

TEST(no_environment_values)
{
        _sample_ Sample s;
        _cleanup_free_ char *text = NULL;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        receipt = read_back(&s, &text);
        assert_text(receipt, "env.2.name", "TOKEN");
        assert_text(receipt, "env.2.source", "job");
        CHECK(!strstr(text, "hunter2") && !strstr(text, "/usr/bin:/bin"));
}

TEST(expected_exit_as_written)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        s.job.expected_exit = cJSON_Parse("[0, 3]");
        s.job.exits.bits[0] = 1 | 1 << 3;
        sample_exit(&s, 3);
        receipt = read_back(&s, NULL);
        assert_number(receipt, "expected_exit.1", 3);
        assert_number(receipt, "exit_code", 3);
        CHECK(cJSON_IsTrue(at(receipt, "match_expected")));
        assert_text(receipt, "verdict", "pass");
}

TEST(signal_has_no_exit_code)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        sample_signal(&s, SIGSEGV);
        s.outcome->core_dumped = true;
        receipt = read_back(&s, NULL);
        CHECK(is_null(receipt, "exit_code"));
        assert_text(receipt, "signal", "SIGSEGV");
        CHECK(cJSON_IsTrue(at(receipt, "core_dumped")));
        assert_text(receipt, "exec.resolved", "/usr/bin/true");
}

/* What one stream becomes: its text, and what is said of it. */
static void assert_stream(const char *data, size_t size, size_t head, size_t tail, const char *text,
                bool utf8, const char *base64)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        const cJSON *info;

        sample_init(&s);
        sample_stream(&s.outcome->out, data, size, head, tail);
        receipt = read_back(&s, NULL);
        assert_text(receipt, "stdout", text);
        info = at(receipt, "stdout_info");
        assert_number(info, "bytes", (double) size);
        assert_text(info, "sha256", s.outcome->out.sha256);
        CHECK(cJSON_IsTrue(at(info, "truncated")) == (head + tail < size));
        CHECK(cJSON_IsTrue(at(info, "utf8")) == utf8);
        if (base64)
                assert_text(info, "base64", base64);
        else
                CHECK(!json_get(info, "base64"));
}

#define STREAM(literal, head, tail, ...) assert_stream(literal, STRLEN(literal), head, tail, __VA_ARGS__)
#define BAD                              "\xef\xbf\xbd"
#define CUT(n)                           "\n...[truncated " n " bytes]...\n"

TEST(streams)
{
        STREAM("", 10, 10, "", true, NULL);
        STREAM("abc", 10, 10, "abc", true, NULL);
        STREAM("abcdef", 3, 10, "abcdef", true, NULL);
        STREAM("abcdef", 2, 1, "ab" CUT("3") "f", true, NULL);
        STREAM("abcdef", 0, 1, CUT("5") "f", true, NULL);
        STREAM("a\xff"
               "b",
                        10, 10, "a" BAD "b", false, "Yf9i");
        STREAM("a\0b", 10, 10, "a" BAD "b", false, "YQBi");
        STREAM("\xed\xa0\x80", 10, 10, BAD BAD BAD, false, "7aCA"); /* a surrogate is not UTF-8 */
}

/* Clipping cuts bytes; a character must not become a replacement because of that. */
TEST(clip_edges)
{
        /* head and tail meet inside a character, and nothing is missing */
        STREAM("a\xe2\x82\xac"
               "b",
                        2, 10,
                        "a\xe2\x82\xac"
                        "b",
                        true, NULL);
        /* the head ends after 1, 2, 3 bytes of a character; the pieces count as truncated */
        STREAM("a\xf0\x9f\x98\x80"
               "bcdef",
                        2, 1, "a" CUT("8") "f", true, NULL);
        STREAM("a\xf0\x9f\x98\x80"
               "bcdef",
                        3, 1, "a" CUT("8") "f", true, NULL);
        STREAM("a\xf0\x9f\x98\x80"
               "bcdef",
                        4, 1, "a" CUT("8") "f", true, NULL);
        STREAM("a\xf0\x9f\x98\x80"
               "bcdef",
                        5, 1, "a\xf0\x9f\x98\x80" CUT("4") "f", true, NULL);
        /* the tail begins with the last 3, 2, 1 bytes of one */
        STREAM("abcde\xf0\x9f\x98\x80"
               "f",
                        1, 4, "a" CUT("8") "f", true, NULL);
        STREAM("abcde\xf0\x9f\x98\x80"
               "f",
                        1, 3, "a" CUT("8") "f", true, NULL);
        STREAM("abcde\xf0\x9f\x98\x80"
               "f",
                        1, 2, "a" CUT("8") "f", true, NULL);
        STREAM("abcde\xf0\x9f\x98\x80"
               "f",
                        1, 5,
                        "a" CUT("4") "\xf0\x9f\x98\x80"
                                     "f",
                        true, NULL);
        STREAM("ab\xc3\xbc"
               "cd\xc3\xbc"
               "ef",
                        3, 3, "ab" CUT("6") "ef", true, NULL);
        STREAM("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 2, 2, CUT("9"), true, NULL);
        /* bytes that never were a character stay visible as such */
        STREAM("a\xff"
               "bcdef",
                        2, 1, "a" BAD CUT("4") "f", false, "Yf9m");
        STREAM("a\x80\x80\x80\x80"
               "bcdef",
                        5, 1, "a" BAD BAD BAD BAD CUT("4") "f", false, "YYCAgIBm");
}

TEST(invalid_bytes_in_the_middle)
{
        /* not kept, but known: who trusts "utf8" must not */
        STREAM("ab\xff\xff"
               "cd",
                        2, 2, "ab" CUT("2") "cd", false, "YWJjZA==");
}

TEST(hostile_names)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        sample_argv(&s, "./\xff", "\033[31m");
        sample_change(&s, CHANGE_ADDED, "/srv/work/a\n\033[2J\xff", FILE_REGULAR);
        sample_change(&s, CHANGE_ADDED, "/srv/work/\xe2\x82\xac", FILE_REGULAR);
        sample_leftover(&s, 5, "x\xfe");
        receipt = read_back(&s, NULL);
        assert_text(receipt, "argv.0", "./" BAD);
        assert_text(receipt, "argv.1", "\033[31m");
        assert_text(receipt, "argv_base64.0", "Li//");
        assert_text(receipt, "fs.added.0.path", "a\n\033[2J" BAD);
        assert_text(receipt, "fs.added.0.path_base64", "YQobWzJK/w==");
        assert_text(receipt, "fs.added.1.path", "\xe2\x82\xac");
        CHECK(!json_get(at(receipt, "fs.added.1"), "path_base64"));
        assert_text(receipt, "processes.leftover.0.comm", "x" BAD);
        assert_text(receipt, "processes.leftover.0.comm_base64", "eP4=");
}

TEST(next_steps)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *with = NULL, *without = NULL;

        sample_init(&s);
        outcome_host_error(s.outcome, "layer_failed", "free some space", "no space for the layer");
        with = read_back(&s, NULL);
        assert_text(with, "reasons.0.next", "free some space");
        free(s.outcome->host_remedy);
        s.outcome->host_remedy = NULL;
        without = read_back(&s, NULL);
        assert_text(without, "reasons.0.next", reason_find("layer_failed")->next);
}

TEST(large_numbers)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        _cleanup_free_ char *text = NULL;

        sample_init(&s);
        s.outcome->usage.io_read_bytes = UINT64_C(18446744073709551614);
        j = sample_judge(&s);
        receipt = receipt_build(&s.plan, s.outcome, j);
        CHECK(receipt);
        text = json_print(receipt, false);
        CHECK(text && strstr(text, "\"io_read_bytes\":18446744073709551614"));
}

TEST(unknown_errno)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        sample_exec_error(&s, 4000, "exec", "./a", S_IFREG | 0755, NULL);
        receipt = read_back(&s, NULL);
        assert_text(receipt, "exec.error", "errno 4000"); /* never null: that would say it was executed */
}

TEST(summary)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;
        _cleanup_(cJSON_Deletep) cJSON *summary = NULL, *nowhere = NULL;
        _cleanup_free_ char *text = NULL, *other = NULL;

        sample_init(&s);
        j = sample_judge(&s);
        summary = receipt_summary(&s.plan, j, "/var/lib/qscope/receipts/sample-1.json");
        text = json_print(summary, false);
        CHECK(text && streq(text, "{\"job_id\":\"sample-1\",\"run_id\":\"0123456789abcdef0123456789abcdef\","
                                  "\"verdict\":\"pass\","
                                  "\"match_expected\":true,\"exit_code\":0,"
                                  "\"receipt\":\"/var/lib/qscope/receipts/sample-1.json\"}\n"));
        j->exit_code = -1;
        nowhere = receipt_summary(&s.plan, j, NULL);
        other = json_print(nowhere, false);
        CHECK(other && strstr(other, "\"exit_code\":null,\"receipt\":null}"));
}

typedef struct Attempt {
        const Sample *sample;
        const Judgement *judgement;
        const char *expected;
} Attempt;

static int build(void *context)
{
        const Attempt *a = context;
        _cleanup_(cJSON_Deletep) cJSON *receipt =
                        receipt_build(&a->sample->plan, a->sample->outcome, a->judgement);
        _cleanup_(cJSON_Deletep) cJSON *summary =
                        receipt ? receipt_summary(&a->sample->plan, a->judgement, "/x") : NULL;
        _cleanup_free_ char *text = summary ? json_print(receipt, true) : NULL;

        if (!text)
                return -ENOMEM;
        CHECK(streq(text, a->expected)); /* whole, or not at all */
        return 0;
}

TEST(out_of_memory)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        _cleanup_free_ char *text = NULL;

        sample_init(&s);
        sample_argv(&s, "\xff", "x");
        sample_exec_error(&s, ENOENT, "exec", "./\xff", 0, NULL);
        sample_stream(&s.outcome->out,
                        "a\xff"
                        "bcdef",
                        7, 2, 2);
        sample_list(&s.plan.allow_changes, (const char *const[]){ NULL });
        sample_change(&s, CHANGE_CHANGED, "/srv/work/\xff", FILE_REGULAR);
        sample_change(&s, CHANGE_ADDED, "/srv/work/link", FILE_SYMLINK)->after.target = strdup("\xfe");
        sample_leftover(&s, 3, "\xfd");
        sample_open(&s);
        CHECK(outcome_add_fact(s.outcome, "seccomp", true, "2", "2") == 0);
        s.outcome->events.oom_kill = 1;
        s.job.meta = cJSON_Parse("{\"a\":[1]}");
        s.job.extra = cJSON_Parse("{\"x_a\":1}");
        j = sample_judge(&s);
        receipt = receipt_build(&s.plan, s.outcome, j);
        text = json_print(receipt, true);
        CHECK(text);
        CHECK(alloc_fail_each(build, &(Attempt){ &s, j, text }) > 0);
}

TEST_MAIN
