/* SPDX-License-Identifier: Apache-2.0 */
#include "run/load.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "files.h"
#include "sys/file.h"
#include "test.h"

/* Three directories of policies, as in a system, below one that goes away again. */
typedef struct Place {
        char top[64];
        char *paths[3];
        const char *directories[4];
} Place;

static void place_make(Place *p)
{
        *p = (Place){ .top = "/tmp/qscope-test-load-XXXXXX" };
        assert(mkdtemp(p->top));
        for (size_t i = 0; i < 3; i++) {
                p->paths[i] = text_printf("%s/%zu", p->top, i);
                assert(p->paths[i] && mkdir(p->paths[i], 0755) == 0);
                p->directories[i] = p->paths[i];
        }
}

static void place_remove(Place *p)
{
        (void) remove_tree_at(AT_FDCWD, p->top);
        for (size_t i = 0; i < 3; i++)
                free(p->paths[i]);
}

#define _cleanup_place_ _cleanup_(place_remove)

/* name: "0/a.json"; text NULL: a link to /dev/null. */
static void put(const Place *p, const char *name, const char *text)
{
        _cleanup_free_ char *path = text_printf("%s/%s", p->top, name), *directory = strdup(path);

        *strrchr(directory, '/') = '\0';
        assert(mkdir(directory, 0755) == 0 || errno == EEXIST);
        assert(text ? write_test_file(path, text) == 0 : symlink("/dev/null", path) == 0);
        assert(!text || chmod(path, 0644) == 0);
}

static Policy *load(const Place *p, const char *name, Error *e)
{
        Policy *policy = NULL;
        int r;

        *e = ERROR_INIT;
        r = load_policy_from(p->directories, name, &policy, e);
        CHECK((r == 0) == (policy != NULL) && (r == 0) == (e->text[0] == '\0'));
        return policy;
}

TEST(an_earlier_directory_masks_a_later)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *a = NULL, *b = NULL, *c = NULL, *d = NULL;
        Error e;

        place_make(&p);
        put(&p, "2/a.json", "{\"description\": \"vendor\"}");
        a = load(&p, "a", &e);
        put(&p, "1/a.json", "{\"description\": \"local\"}");
        b = load(&p, "a", &e);
        put(&p, "0/a.json", "{\"description\": \"admin\"}");
        c = load(&p, "a", &e);
        REQUIRE(a && b && c);
        CHECK_STR(a->name, "a");
        CHECK_STR(a->description, "vendor");
        CHECK_STR(b->description, "local");
        CHECK_STR(c->description, "admin");
        put(&p, "0/b.json", NULL);
        put(&p, "2/b.json", "{}");
        put(&p, "1/c.json", "");
        put(&p, "2/c.json", "{}");
        d = load(&p, "b", &e);
        CHECK_HAS(e.text, "the policy \"b\" is masked: ");
        d = load(&p, "c", &e);
        CHECK_HAS(e.text, "1/c.json is empty");
        d = load(&p, "x", &e);
        CHECK_HAS(e.text, "there is no policy \"x\"");
        d = load(&p, "../2/a", &e);
        CHECK_HAS(e.text, "is not a policy's name");
}

TEST(drop_ins)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e;

        place_make(&p);
        put(&p, "2/a.json", "{\"deny_argv0\": [\"0\"]}");
        put(&p, "2/a.json.d/50-x.json", "{\"deny_argv0\": [\"vendor\"]}");
        put(&p, "2/a.json.d/20-off.json", "{\"deny_argv0\": [\"off\"]}");
        put(&p, "1/a.json.d/70-y.json", "{\"deny_argv0\": [\"70\"]}");
        put(&p, "0/a.json.d/50-x.json", "{\"deny_argv0\": [\"50\"]}");
        put(&p, "0/a.json.d/10-z.json", "{\"deny_argv0\": [\"10\"]}");
        put(&p, "0/a.json.d/20-off.json", NULL);
        put(&p, "0/a.json.d/notes.txt", "no policy");
        policy = load(&p, "a", &e);
        REQUIRE(policy);
        REQUIRE(strv_length(policy->deny_argv0) == 4);
        CHECK_STR(policy->deny_argv0[0], "0");
        CHECK_STR(policy->deny_argv0[1], "10");
        CHECK_STR(policy->deny_argv0[2], "50");
        CHECK_STR(policy->deny_argv0[3], "70");
}

TEST(extends)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e;

        place_make(&p);
        put(&p, "2/base.json",
                        "{\"description\": \"b\", \"deny_argv0\": [\"b\"], \"max\": {\"timeout_sec\": 1}}");
        put(&p, "0/base.json.d/x.json", "{\"deny_argv0\": [\"bx\"]}");
        put(&p, "2/mid.json", "{\"extends\": \"base\", \"deny_argv0\": [\"m\"], \"throttling\": \"fail\"}");
        put(&p, "1/top.json", "{\"name\": \"top\", \"extends\": \"mid\", \"deny_argv0\": [\"t\"]}");
        put(&p, "0/top.json.d/x.json", "{\"max\": {\"timeout_sec\": 2}}");
        policy = load(&p, "top", &e);
        REQUIRE(policy);
        CHECK_STR(policy->name, "top");
        CHECK_STR(policy->description, "b");
        CHECK_EQ(policy->max_timeout_usec, 2 * USEC_PER_SEC);
        CHECK(policy->throttling_fails);
        REQUIRE(strv_length(policy->deny_argv0) == 4);
        CHECK_STR(policy->deny_argv0[1], "bx");
        CHECK_STR(policy->deny_argv0[3], "t");
}

TEST(chains_that_are_refused)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e;

        place_make(&p);
        put(&p, "0/a.json", "{\"extends\": \"b\"}");
        put(&p, "1/b.json", "{\"extends\": \"c\"}");
        put(&p, "2/c.json", "{\"extends\": \"a\"}");
        put(&p, "0/self.json", "{\"extends\": \"self\"}");
        put(&p, "0/lost.json", "{\"extends\": \"nowhere\"}");
        put(&p, "0/wrong.json", "{\n\"extends\": 1}");
        put(&p, "0/base-wrong.json", "{\"extends\": \"wrong\"}");
        for (size_t i = 0; i < 10; i++) {
                _cleanup_free_ char *name = text_printf("0/n%zu.json", i),
                                    *text = text_printf("{\"extends\": \"n%zu\"}", i + 1);

                put(&p, name, text);
        }
        policy = load(&p, "a", &e);
        CHECK_STR(e.text, "policies extend each other: a -> b -> c -> a");
        policy = load(&p, "self", &e);
        CHECK_STR(e.text, "policies extend each other: self -> self");
        policy = load(&p, "lost", &e);
        CHECK_HAS(e.text, "the policy lost extends nowhere: there is no policy \"nowhere\"");
        policy = load(&p, "base-wrong", &e);
        CHECK_HAS(e.text, "0/wrong.json: line 2: policy.extends: must be a string");
        policy = load(&p, "n0", &e);
        CHECK_HAS(e.text, "more than 8 policies extend each other: n0 -> n1 -> ");
}

TEST(who_may_write_it)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_free_ char *path = NULL;
        Error e;

        place_make(&p);
        put(&p, "0/a.json", "{}");
        path = text_printf("%s/0/a.json", p.top);
        REQUIRE(path && chmod(path, 0666) == 0);
        policy = load(&p, "a", &e);
        CHECK_HAS(e.text, "a.json: others may write it, so it is not believed");
}

TEST(a_wrong_name_in_the_file)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e;

        place_make(&p);
        put(&p, "0/a.json", "{\"name\": \"b\"}");
        policy = load(&p, "a", &e);
        CHECK_HAS(e.text, "policy.name: \"b\" is not the name that the file has");
}

TEST(lists)
{
        _cleanup_strv_ char **names = NULL, **paths = NULL;
        _cleanup_place_ Place p;

        place_make(&p);
        put(&p, "2/b.json", "{}");
        put(&p, "2/a.json", "{}");
        put(&p, "0/a.json", "{}");
        put(&p, "0/gone.json", NULL);
        put(&p, "1/gone.json", "{}");
        put(&p, "1/no name.json", "{}");
        CHECK_EQ(list_policies(p.directories, &names, &paths), 0);
        REQUIRE(strv_length(names) == 2 && strv_length(paths) == 2);
        CHECK_STR(names[0], "a");
        CHECK_STR(names[1], "b");
        CHECK_HAS(paths[0], "/0/a.json");
}

TEST(single_files)
{
        _cleanup_place_ Place p;
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_free_ char *main_file = NULL, *drop_in = NULL, *other = NULL;
        Error e = ERROR_INIT;

        place_make(&p);
        put(&p, "2/base.json", "{\"description\": \"b\"}");
        put(&p, "new/a.json", "{\"extends\": \"base\"}");
        put(&p, "0/a.json.d/x.json", "{\"throttling\": 1}");
        put(&p, "new/a.txt", "{}");
        main_file = text_printf("%s/new/a.json", p.top);
        drop_in = text_printf("%s/0/a.json.d/x.json", p.top);
        other = text_printf("%s/new/a.txt", p.top);
        CHECK_EQ(load_policy_file(p.directories, main_file, &policy, &e), 0);
        REQUIRE(policy);
        CHECK_STR(policy->description, "b");
        policy = policy_free(policy);
        CHECK_EQ(load_policy_file(p.directories, drop_in, &policy, &e), -EINVAL);
        CHECK_HAS(e.text, "x.json: line 1: policy.throttling");
        CHECK_EQ(load_policy_file(p.directories, other, &policy, &e), -EINVAL);
        CHECK_HAS(e.text, "a policy's file is called NAME.json");
        CHECK(!policy);
}

TEST_MAIN
