/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process_tree.h"

#include <signal.h>

#include "base/text.h"
#include "test.h"

#define ROOT     100
#define RELEASED 1000u

static const TreeBounds small = { .processes = 3, .runs = 2, .text_bytes = 40, .live = 4 };

static TreeBuilder *builder_new(bool traced)
{
        TreeBuilder *builder = NULL;

        assert(tree_builder_new(&tree_bounds_default, traced, ROOT, &builder) == 0);
        return builder;
}

static void trace(TreeBuilder *b, TraceEvent event)
{
        static uint64_t now = RELEASED;

        if (event.usec == 0)
                event.usec = ++now;
        if (event.tid == 0)
                event.tid = event.pid;
        CHECK(tree_builder_trace(b, &event) == 0);
}

static void fork_one(TreeBuilder *b, pid_t pid, pid_t ppid)
{
        trace(b, (TraceEvent){ .kind = TRACE_FORK, .pid = pid, .ppid = ppid });
}

static void event(TreeBuilder *b, TraceKind kind, pid_t pid, int value)
{
        trace(b, (TraceEvent){ .kind = kind, .pid = pid, .value = value });
}

static void exec_named(TreeBuilder *b, pid_t pid, const char *name)
{
        TraceEvent exec = { .kind = TRACE_EXEC, .pid = pid };

        memcpy(exec.name, name, MIN(strlen(name), sizeof(exec.name) - 1));
        trace(b, exec);
}

static void start(TreeBuilder *b, pid_t pid, pid_t tid, uint64_t call, const char *path, const char *argument)
{
        char *argv[] = { (char *) argument, NULL };
        const char *slash = path ? strrchr(path, '/') : NULL;
        ProgramStart s = { .pid = pid,
                .tid = tid,
                .call = call,
                .path = path,
                .argv = argument ? argv : NULL,
                .usec = RELEASED + 5,
                .is_program = true };

        memcpy(s.name, slash ? slash + 1 : "", slash ? MIN(strlen(slash + 1), sizeof(s.name) - 1) : 0);
        CHECK(tree_builder_start(b, &s) == 0);
}

static ProcessTree finish(TreeBuilder *b)
{
        ProcessTree tree;

        tree_builder_finish(b, RELEASED, &tree);
        tree_builder_free(b);
        return tree;
}

TEST(one_program)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        start(b, ROOT, ROOT, 1, "/usr/bin/true", "true");
        start(b, ROOT, ROOT, 1, "/usr/lib/ld.so", "true"); /* its loader */
        exec_named(b, ROOT, "true");
        CHECK_STR(tree_builder_program(b, ROOT), "/usr/bin/true");
        event(b, TRACE_STATUS, ROOT, 3);
        event(b, TRACE_EXIT, ROOT, 0);
        CHECK_STR(tree_builder_program(b, ROOT), "/usr/bin/true"); /* it was */
        CHECK(!tree_builder_program(b, ROOT + 1) && tree_builder_parent(b, ROOT) == 0);
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 1);
        CHECK_STR(tree.items[0].runs[0].path, "/usr/bin/true");
        CHECK_STR(tree.items[0].runs[0].argv[0], "true");
        CHECK_EQ(tree.items[0].runs[0].usec, 5);
        CHECK(tree.items[0].start_usec == 0 && tree.items[0].end_usec != UNKNOWN);
        CHECK(tree.items[0].exit_status == 3 && tree.items[0].exit_signal == 0 && tree.items[0].ppid == 0);
        CHECK(tree.total == 1 && tree.programs == 1 && tree.lost == 0 && !tree.truncated && tree.observed);
        process_tree_clear(&tree);
}

TEST(nothing_was_executed)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        event(b, TRACE_FAILED, ROOT, ENOENT);
        event(b, TRACE_STATUS, ROOT, 127);
        event(b, TRACE_EXIT, ROOT, 0);
        tree = finish(b);
        CHECK(tree.n == 0 && tree.total == 0 && !tree.items && tree.observed);
        process_tree_clear(&tree);
}

TEST(copies)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        start(b, ROOT, ROOT, 1, "/bin/sh", "sh");
        exec_named(b, ROOT, "sh");
        fork_one(b, 101, ROOT);
        fork_one(b, 102, 101);
        CHECK_STR(tree_builder_program(b, 102), "/bin/sh");
        CHECK_EQ(tree_builder_parent(b, 102), 101);
        start(b, 102, 102, 2, "/bin/ls", "ls");
        CHECK_STR(tree_builder_program(b, 102), "/bin/sh"); /* not yet */
        exec_named(b, 102, "ls");
        CHECK_STR(tree_builder_program(b, 102), "/bin/ls");
        event(b, TRACE_SIGNAL, 101, SIGTERM);
        event(b, TRACE_EXIT, 101, 0);
        tree = finish(b);
        REQUIRE(tree.n == 3);
        CHECK(tree.items[1].n_runs == 0 && tree.items[2].n_runs == 1 && tree.programs == 2);
        CHECK_STR(tree.items[1].origin, "/bin/sh");
        CHECK(tree.items[1].exit_signal == SIGTERM && tree.items[1].exit_status == -1);
        CHECK(tree.items[2].ppid == 101 && tree.items[2].end_usec == UNKNOWN);
        process_tree_clear(&tree);
}

TEST(failed_execs_were_no_programs)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        start(b, ROOT, ROOT, 1, "/w/text", "text");
        event(b, TRACE_FAILED, ROOT, ENOEXEC);
        exec_named(b, ROOT, "text"); /* a program in no file, called the same */
        start(b, ROOT, ROOT, 2, "/w/first", "first");
        start(b, ROOT, ROOT, 3, "/w/second", "second"); /* that the first failed was missed */
        exec_named(b, ROOT, "second");
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 2);
        CHECK(!tree.items[0].runs[0].path && !tree.items[0].runs[0].argv);
        CHECK_STR(tree.items[0].runs[1].path, "/w/second");
        process_tree_clear(&tree);
}

static bool find_hidden(void *userdata, pid_t pid, char **ret_path, char ***ret_argv)
{
        CHECK_EQ(pid, ROOT);
        *ret_path = strdup(userdata);
        return *ret_path && strv_extend(ret_argv, "own") == 0;
}

TEST(what_lies_in_no_file)
{
        TreeBuilder *b = builder_new(true);
        char *argv[] = { (char *) "given", NULL };
        ProgramStart loader = {
                .pid = ROOT, .tid = ROOT, .call = 7, .path = "/lib/ld.so", .argv = argv, .usec = 1
        };
        ProcessTree tree;

        CHECK(tree_builder_start(b, &loader) == 0);
        exec_named(b, ROOT, "3");
        tree_builder_set_finder(b, find_hidden, (void *) "/memfd:x (deleted)");
        CHECK(tree_builder_start(b, &loader) == 0);
        exec_named(b, ROOT, "3");
        exec_named(b, ROOT, "3");
        CHECK_STR(tree_builder_program(b, ROOT), "/memfd:x (deleted)");
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 3);
        CHECK(!tree.items[0].runs[0].path);
        CHECK_STR(tree.items[0].runs[0].argv[0], "given");
        CHECK_STR(tree.items[0].runs[1].path, "/memfd:x (deleted)");
        CHECK_STR(tree.items[0].runs[1].argv[0], "given");
        CHECK_STR(tree.items[0].runs[2].argv[0], "own");
        process_tree_clear(&tree);
}

TEST(numbers_are_reused)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        fork_one(b, 101, ROOT);
        event(b, TRACE_STATUS, 101, 1);
        event(b, TRACE_EXIT, 101, 0);
        fork_one(b, 101, ROOT);
        start(b, 101, 101, 1, "/bin/a", "a");
        fork_one(b, 101, ROOT); /* that it ended was missed */
        exec_named(b, 101, "b");
        tree = finish(b);
        REQUIRE(tree.n == 4 && tree.total == 4);
        CHECK(tree.items[1].exit_status == 1 && tree.items[2].exit_status == -1);
        CHECK(tree.items[2].end_usec == UNKNOWN && tree.items[2].n_runs == 0);
        REQUIRE(tree.items[3].n_runs == 1);
        CHECK(!tree.items[3].runs[0].path); /* not what its predecessor tried */
        process_tree_clear(&tree);
}

TEST(missed_forks)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        event(b, TRACE_EXIT, 200, 0);
        exec_named(b, 201, "x");
        event(b, TRACE_LISTEN, 202, 0); /* says nothing of processes */
        start(b, 203, 203, 1, "/bin/y", NULL);
        tree = finish(b);
        REQUIRE(tree.n == 4 && tree.total == 4);
        CHECK(tree.items[1].pid == 200 && tree.items[1].start_usec == UNKNOWN &&
                        tree.items[1].end_usec != UNKNOWN);
        CHECK(tree.items[2].pid == 201 && tree.items[2].n_runs == 1);
        CHECK(tree.items[3].pid == 203 && tree.items[3].n_runs == 0);
        process_tree_clear(&tree);
}

TEST(threads)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        /* The first thread goes, another ends the process. */
        fork_one(b, 101, ROOT);
        event(b, TRACE_THREAD, 101, 0);
        event(b, TRACE_LEFT, 101, 3);
        event(b, TRACE_EXIT, 101, 0);
        CHECK_EQ(tree_builder_parent(b, 101), ROOT);
        event(b, TRACE_STATUS, 101, 4);
        event(b, TRACE_EXIT, 101, 0);
        /* All go by themselves. */
        fork_one(b, 102, ROOT);
        event(b, TRACE_THREAD, 102, 0);
        event(b, TRACE_EXIT, 102, 0);
        event(b, TRACE_LEFT, 102, 5);
        event(b, TRACE_EXIT, 102, 0);
        /* The others meet a SIGKILL because of the first. */
        fork_one(b, 103, ROOT);
        event(b, TRACE_THREAD, 103, 0);
        event(b, TRACE_SIGNAL, 103, SIGSEGV);
        event(b, TRACE_SIGNAL, 103, SIGKILL);
        event(b, TRACE_EXIT, 103, 0);
        event(b, TRACE_EXIT, 103, 0);
        /* Not known by the first thread, but by the second. */
        fork_one(b, 104, ROOT);
        event(b, TRACE_THREAD, 104, 0);
        event(b, TRACE_SIGNAL, 104, 0);
        event(b, TRACE_SIGNAL, 104, SIGTERM);
        event(b, TRACE_EXIT, 104, 0);
        event(b, TRACE_EXIT, 104, 0);
        tree = finish(b);
        REQUIRE(tree.n == 5);
        CHECK_EQ(tree.items[1].exit_status, 4);
        CHECK_EQ(tree.items[2].exit_status, 5);
        CHECK_EQ(tree.items[3].exit_signal, SIGSEGV);
        CHECK_EQ(tree.items[4].exit_signal, SIGTERM);
        process_tree_clear(&tree);
}

TEST(threads_that_execute)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        event(b, TRACE_THREAD, ROOT, 0);
        event(b, TRACE_THREAD, ROOT, 0);
        start(b, ROOT, ROOT + 1, 1, "/bin/one", "one");
        start(b, ROOT, ROOT + 2, 2, "/bin/two", "two");
        event(b, TRACE_SIGNAL, ROOT, 0); /* the others make room */
        event(b, TRACE_EXIT, ROOT, 0);
        event(b, TRACE_EXIT, ROOT, 0);
        exec_named(b, ROOT, "one");
        CHECK_STR(tree_builder_program(b, ROOT), "/bin/one");
        event(b, TRACE_STATUS, ROOT, 0);
        event(b, TRACE_EXIT, ROOT, 0);
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 1);
        CHECK(tree.items[0].exit_status == 0 && tree.items[0].exit_signal == 0 && tree.programs == 1);
        process_tree_clear(&tree);
}

/* Two programs of one name: which thread is left tells. */
TEST(threads_that_execute_namesakes)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        event(b, TRACE_THREAD, ROOT, 0);
        start(b, ROOT, ROOT, 1, "/evil/tool", "evil");
        start(b, ROOT, ROOT + 1, 2, "/bin/tool", "good");
        trace(b, (TraceEvent){ .kind = TRACE_EXIT, .pid = ROOT, .tid = ROOT + 1 });
        exec_named(b, ROOT, "tool");
        CHECK_STR(tree_builder_program(b, ROOT), "/evil/tool");
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 1);
        CHECK_STR(tree.items[0].runs[0].path, "/evil/tool");
        process_tree_clear(&tree);
}

TEST(more_threads_than_are_told_apart)
{
        TreeBuilder *b = builder_new(true);
        ProcessTree tree;

        for (pid_t i = 0; i < 20; i++)
                start(b, ROOT, ROOT + i, (uint64_t) i + 1, i == 19 ? "/bin/last" : "/bin/other", "x");
        exec_named(b, ROOT, "last");
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 1);
        CHECK_STR(tree.items[0].runs[0].path, "/bin/last");
        process_tree_clear(&tree);
}

TEST(over_the_bounds)
{
        TreeBuilder *b = NULL;
        ProcessTree tree;

        REQUIRE(tree_builder_new(&small, true, ROOT, &b) == 0);
        for (uint64_t i = 1; i <= 3; i++) {
                start(b, ROOT, ROOT, i, "/bin/a", "0123456789");
                exec_named(b, ROOT, "a");
        }
        for (pid_t pid = 101; pid <= 105; pid++)
                fork_one(b, pid, ROOT);
        start(b, 103, 103, 9, "/bin/b", "b");
        exec_named(b, 103, "b");
        CHECK_STR(tree_builder_program(b, 103), "/bin/b"); /* known, though not listed */
        tree = finish(b);
        REQUIRE(tree.n == 3 && tree.items[0].n_runs == 2);
        CHECK(tree.truncated && tree.total == 6 && tree.programs == 4 && tree.lost == 2);
        CHECK(tree.items[0].runs[0].argv && tree.items[0].runs[1].argv);
        process_tree_clear(&tree);
}

TEST(arguments_over_the_bound)
{
        TreeBuilder *b = NULL;
        ProcessTree tree;

        REQUIRE(tree_builder_new(&small, true, ROOT, &b) == 0);
        start(b, ROOT, ROOT, 1, "/bin/a", "012345678901234567890123456789012345678901234567890123456789");
        exec_named(b, ROOT, "a");
        /* What was tried and failed takes no room for ever. */
        for (uint64_t i = 2; i <= 20; i++) {
                start(b, ROOT, ROOT, i, "/bin/c", "01234567890123456789");
                event(b, TRACE_FAILED, ROOT, ENOEXEC);
        }
        start(b, ROOT, ROOT, 21, "/bin/b", "0123456789");
        exec_named(b, ROOT, "b");
        tree = finish(b);
        REQUIRE(tree.n == 1 && tree.items[0].n_runs == 2);
        CHECK_STR(tree.items[0].runs[0].path, "/bin/a");
        CHECK(!tree.items[0].runs[0].argv && tree.items[0].runs[0].argv_cut && tree.truncated);
        CHECK(tree.items[0].runs[1].argv && !tree.items[0].runs[1].argv_cut);
        process_tree_clear(&tree);
}

TEST(without_a_trace)
{
        TreeBuilder *b = builder_new(false);
        char *argv[] = { (char *) "a", NULL };
        ProgramStart s = { .pid = 101,
                .tid = 101,
                .ppid = ROOT,
                .call = 1,
                .path = "/bin/a",
                .argv = argv,
                .usec = RELEASED + 9,
                .is_program = true };
        ProcessTree tree;

        start(b, ROOT, ROOT, 1, "/bin/sh", "sh");
        start(b, ROOT, ROOT, 1, "/lib/ld.so", "sh");
        CHECK(tree_builder_start(b, &s) == 0);
        s.path = "/lib/ld.so";
        CHECK(tree_builder_start(b, &s) == 0);
        s.call = 2;
        s.path = "/bin/b";
        CHECK(tree_builder_start(b, &s) == 0);
        CHECK_STR(tree_builder_program(b, 101), "/bin/b");
        tree = finish(b);
        REQUIRE(tree.n == 2 && tree.items[0].n_runs == 1 && tree.items[1].n_runs == 2);
        CHECK(!tree.observed && tree.programs == 3 && tree.items[1].ppid == ROOT);
        CHECK(tree.items[1].start_usec == UNKNOWN && tree.items[1].exit_status == -1);
        process_tree_clear(&tree);
}

TEST_MAIN
