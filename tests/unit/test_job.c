/* SPDX-License-Identifier: Apache-2.0 */
#include "core/job.h"

#include "alloc.h"
#include "corpus.h"
#include "files.h"
#include "test.h"

static int read_job(const char *text, size_t size, const char *name, Error *e)
{
        _cleanup_(job_freep) Job *job = NULL;
        int r = job_parse(text, size, name, &job, e);

        assert((r == 0) == (job != NULL));
        return r;
}

static Job *parse(const char *text)
{
        Job *job = NULL;
        Error e = ERROR_INIT;

        if (job_parse(text, strlen(text), "job.json", &job, &e) < 0)
                (void) printf("  %s\n", e.text);
        return job;
}

static Job *parse_file(const char *name)
{
        size_t size = 0;
        _cleanup_free_ char *text = read_test_file(test_path(name), &size);

        return text ? parse(text) : NULL;
}

TEST(every_rule_has_its_sentence)
{
        unsigned failures;

        CHECK(corpus_replay_bad("corpus/job/bad", read_job, &failures) >= 140);
        CHECK_EQ(failures, 0);
}

TEST(good_jobs)
{
        unsigned failures;

        CHECK(corpus_replay_good("corpus/job/good", read_job, &failures) >= 10);
        CHECK_EQ(failures, 0);
}

TEST(smallest)
{
        _cleanup_(job_freep) Job *job = parse_file("corpus/job/good/smallest.json");

        REQUIRE(job);
        CHECK_STR(job->argv[0], "true");
        CHECK(!job->argv[1]);
        CHECK(!job->job_id && !job->cwd && !job->env_allowlist && !job->env && !job->allow_changes &&
                        !job->policy && !job->expected_exit && !job->extra && !job->meta && !job->has_stdin);
        CHECK(job->workspace == _WORKSPACE_INVALID && job->network == _NETWORK_INVALID &&
                        job->posture == _POSTURE_INVALID);
        CHECK(job->timeout_usec == UNKNOWN && job->expect.max_duration_usec == UNKNOWN);
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                CHECK(job->limits.value[i] == LIMIT_UNSET);
}

TEST(seed)
{
        _cleanup_(job_freep) Job *job = parse_file("corpus/job/good/seed.json");

        REQUIRE(job);
        CHECK_STR(job->job_id, "2026-09-03-lint-1");
        CHECK_EQ(strv_length(job->argv), 5);
        CHECK_STR(job->cwd, "/home/ubuntu/work");
        CHECK_EQ(job->timeout_usec, 30 * USEC_PER_SEC);
        CHECK(exit_set_contains(&job->exits, 0) && !exit_set_contains(&job->exits, 1));
        CHECK_EQ(strv_length(job->env_allowlist), 3);
}

TEST(argv_arrives_as_it_is)
{
        static const char *const expected[] = { "printf", "$HOME", "$$", "${X}", "%n", "%%", "*", ";", "\\",
                " ", "a\nb", "--", "\xc3\xa4" };
        _cleanup_(job_freep) Job *job = parse_file("corpus/job/good/verbatim-argv.json");

        REQUIRE(job);
        CHECK_EQ(strv_length(job->argv), ELEMENTSOF(expected));
        for (size_t i = 0; i < ELEMENTSOF(expected) && job->argv[i]; i++)
                CHECK_STR(job->argv[i], expected[i]);
}

static void check_everything_files(const Job *job)
{
        REQUIRE(job->n_files == 4);
        CHECK_STR(job->files[0].path, "main.py");
        CHECK_EQ(job->files[0].mode, 0755);
        CHECK_STR((char *) job->files[0].input.data, "print(1)\n");
        CHECK_STR(job->files[1].path, "data/in.bin");
        CHECK_EQ(job->files[1].mode, 0644);
        CHECK_EQ(job->files[1].input.size, 3);
        CHECK(memcmp(job->files[1].input.data, "\0\1\2", 4) == 0);
        CHECK_STR(job->files[2].path, "lib/x.py");
        CHECK_STR(job->files[2].input.path, "x.py");
        CHECK(!job->files[2].input.data);
        CHECK(job->files[3].input.data && job->files[3].input.size == 0);
        CHECK(job->has_stdin && !job->stdin_input.data);
        CHECK_STR(job->stdin_input.path, "in.txt");
}

static void check_everything_limits(const Limits *limits)
{
        static const uint64_t expected[_LIMIT_MAX] = {
                [LIMIT_MEMORY] = MIB(512),
                [LIMIT_SWAP] = 0,
                [LIMIT_CPU] = 125000,
                [LIMIT_TASKS] = 64,
                [LIMIT_CPU_TIME] = 1500000,
                [LIMIT_FILE_SIZE] = LIMIT_UNLIMITED,
                [LIMIT_OPEN_FILES] = 64,
                [LIMIT_DISK] = MIB(1024),
                [LIMIT_INODES] = 1000,
                [LIMIT_OUTPUT] = 0,
        };

        for (size_t i = 0; i < _LIMIT_MAX; i++)
                CHECK(limits->value[i] == expected[i]);
}

static void check_everything_expect(const Expect *expect)
{
        CHECK_STR(expect->out.equals, "a");
        CHECK_STR(expect->out.matches, "^a$");
        CHECK(expect->out.json && cJSON_IsNull(expect->out.json));
        CHECK_STR(expect->out.sha256, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
        CHECK(!expect->err.json && !expect->err.contains);
        CHECK_STR(expect->err.equals, "");
        REQUIRE(expect->n_files == 2);
        CHECK_STR(expect->files[0].path, "out/a.txt");
        CHECK_EQ(expect->files[0].exists, 1);
        CHECK_STR(expect->files[1].path, "/tmp/b");
        CHECK_EQ(expect->files[1].exists, 0);
        CHECK_EQ(expect->max_duration_usec, 500000);
        CHECK(expect->allow_leftovers);
        REQUIRE(expect->n_allow_listen == 2);
        CHECK_EQ(expect->allow_listen[1], 65535);
        CHECK_EQ(strv_length(expect->allow_egress), 5);
}

TEST(everything)
{
        _cleanup_(job_freep) Job *job = parse_file("corpus/job/good/everything.json");

        REQUIRE(job);
        CHECK_STR(job->job_id, "A.b_c-1");
        CHECK_STR(job->cwd, "/srv/work/");
        CHECK(job->workspace == WORKSPACE_OVERLAY && job->network == NETWORK_NONE &&
                        job->posture == POSTURE_ISOLATED);
        CHECK_EQ(job->timeout_usec, 250000);
        for (int i = -1; i < 300; i++)
                CHECK_EQ(exit_set_contains(&job->exits, i), i == 0 || i == 3 || i == 255);
        CHECK(cJSON_IsArray(job->expected_exit));
        CHECK(job->env_allowlist && !job->env_allowlist[0]);
        REQUIRE(strv_length(job->env) == 2);
        CHECK_STR(job->env[0], "A=");
        CHECK_STR(job->env[1], "_b1=x=y z");
        REQUIRE(strv_length(job->allow_changes) == 3);
        CHECK_STR(job->allow_changes[1], "/tmp/log");
        CHECK_STR(job->allow_changes[2], ".");
        CHECK_STR(job->policy, "default");
        CHECK_STR(job->rationale, "why");
        CHECK(json_get(job->meta, "a") != NULL);
        CHECK_STR(json_get(job->extra, "x_ticket")->valuestring, "T-1");
        CHECK(json_get(job->extra, "x_") != NULL);
        check_everything_files(job);
        check_everything_limits(&job->limits);
        check_everything_expect(&job->expect);
}

TEST(any_exit)
{
        _cleanup_(job_freep) Job *job = parse_file("corpus/job/good/any-exit.json");

        REQUIRE(job);
        CHECK(exit_set_contains(&job->exits, 0) && exit_set_contains(&job->exits, 255));
        CHECK(!exit_set_contains(&job->exits, 256) && !exit_set_contains(&job->exits, -1));
        CHECK_STR((char *) job->stdin_input.data, "text");
        CHECK(job->workspace == WORKSPACE_FRESH);
}

TEST(too_large)
{
        _cleanup_free_ char *text = malloc(JOB_FILE_MAX + 1);
        Job *job = NULL;
        Error e = ERROR_INIT;

        REQUIRE(text);
        memset(text, ' ', JOB_FILE_MAX + 1);
        memcpy(text, "{\"argv\":[\"x\"]}", 14);
        CHECK_EQ(job_parse(text, JOB_FILE_MAX + 1, "big.json", &job, &e), -E2BIG);
        CHECK_HAS(e.text, "big.json: is larger than 1048576 bytes");
        CHECK_EQ(job_parse(text, JOB_FILE_MAX, "big.json", &job, &e), 0);
        job_free(job);
}

/* A list of n copies of element after the head of a job. */
static char *make_list(const char *head, const char *element, unsigned n, const char *tail)
{
        size_t length = strlen(element), used = strlen(head);
        char *text = malloc(used + (length + 1) * n + strlen(tail) + 1);

        if (!text)
                return NULL;
        memcpy(text, head, used);
        for (unsigned i = 0; i < n; i++) {
                if (i > 0)
                        text[used++] = ',';
                memcpy(text + used, element, length);
                used += length;
        }
        memcpy(text + used, tail, strlen(tail) + 1);
        return text;
}

TEST(too_many)
{
        _cleanup_free_ char *most = make_list("{\"argv\":[", "\"a\"", JOB_ARGV_MAX, "]}"),
                            *more = make_list("{\"argv\":[", "\"a\"", JOB_ARGV_MAX + 1, "]}"),
                            *files = make_list("{\"argv\":[\"a\"],\"files\":[",
                                            "{\"path\":\"f\",\"content\":\"\"}", JOB_FILES_MAX + 1, "]}");
        Error e = ERROR_INIT;

        REQUIRE(most && more && files);
        CHECK_EQ(read_job(most, strlen(most), "f", &e), 0);
        CHECK_EQ(read_job(more, strlen(more), "f", &e), -EINVAL);
        CHECK_HAS(e.text, "f: line 1: job.argv: has 65537 elements, at most 65536 are allowed");
        CHECK_EQ(read_job(files, strlen(files), "f", &e), -EINVAL);
        CHECK_HAS(e.text, "f: line 1: job.files: has 4097 elements, at most 4096 are allowed");
}

TEST(hostile_text_in_a_sentence)
{
        static const char text[] = "{\"argv\":[\"a\"],\"network\":\"\\u001b[31m\\u202e\"}";
        Error e = ERROR_INIT;

        CHECK_EQ(read_job(text, strlen(text), "\033.json", &e), -EINVAL);
        CHECK_HAS(e.text, "\\x1b.json: line 1: job.network: must be");
        CHECK(!strchr(e.text, '\033'));
        CHECK(!strstr(e.text, "\xe2\x80\xae"));
}

TEST(names)
{
        CHECK_STR(workspace_to_string(WORKSPACE_FRESH), "fresh");
        CHECK_STR(network_to_string(NETWORK_HOST), "host");
        CHECK_STR(posture_to_string(POSTURE_BOUNDED), "bounded");
        CHECK(!workspace_to_string(_WORKSPACE_INVALID) && !network_to_string(_NETWORK_MAX));
        CHECK(job_id_is_valid("a") && job_id_is_valid("0.b_C-") && !job_id_is_valid("") &&
                        !job_id_is_valid(".a") && !job_id_is_valid("a b"));
}

static int attempt(void *context)
{
        const char *text = context;
        Error e = ERROR_INIT;
        int r = read_job(text, strlen(text), "f", &e);

        if (r == -ENOMEM)
                assert(strstr(e.text, "out of memory"));
        return r;
}

TEST(out_of_memory)
{
        size_t size = 0;
        _cleanup_free_ char *text = read_test_file(test_path("corpus/job/good/everything.json"), &size);

        REQUIRE(text);
        CHECK(alloc_fail_each(attempt, text) > 0);
}

TEST_MAIN
