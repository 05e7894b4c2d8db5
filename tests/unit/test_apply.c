/* SPDX-License-Identifier: Apache-2.0 */
#include "core/apply.h"

#include "alloc.h"
#include "test.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SIDE(mode, sha)                                                                                      \
        "\"type\":\"file\",\"mode\":\"" mode "\",\"uid\":1,\"gid\":1,\"size\":3,\"sha256\":\"" sha "\""
#define FILE_(path)     "{\"path\":\"" path "\"," SIDE("0644", SHA_A) "}"
#define DIR_(path)      "{\"path\":\"" path "\",\"type\":\"directory\",\"mode\":\"0755\",\"uid\":1,\"gid\":1}"
#define LINK_(path, to) "{\"path\":\"" path "\",\"type\":\"symlink\",\"mode\":\"0777\",\"target\":\"" to "\"}"
#define EDIT_(path)                                                                                          \
        "{\"path\":\"" path "\",\"what\":[\"content\"],\"before\":{" SIDE(                                   \
                        "0644", SHA_A) "},\"after\":{" SIDE("0644", SHA_B) "}}"

static char *receipt_text(const char *added, const char *removed, const char *changed, const char *more)
{
        char *text = NULL;

        if (asprintf(&text,
                            "{\"schema\":\"qscope.receipt/v1\",\"run_id\":\"r\",\"job_id\":\"j\",\"verdict\":\"pass\","
                            "\"reasons\":[],\"cwd\":\"/w\",\"fs\":{\"added\":[%s],\"removed\":[%s],\"changed\":[%s],"
                            "\"truncated\":false,\"complete\":true%s}}",
                            added, removed, changed, more) < 0)
                return NULL;
        return text;
}

static int read_text_plan(const char *text, ApplyPlan **ret, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        int r = receipt_parse(text, strlen(text), "r.json", &receipt, e);

        *ret = NULL;
        return r < 0 ? r : apply_plan_read(receipt, ret, e);
}

static ApplyPlan *read_plan(const char *added, const char *removed, const char *changed, const char *more)
{
        _cleanup_free_ char *text = receipt_text(added, removed, changed, more);
        ApplyPlan *plan = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(text ? read_text_plan(text, &plan, &e) : -ENOMEM, 0);
        CHECK_STR(e.text, "");
        return plan;
}

static void check_refused(const char *added, const char *removed, const char *changed, const char *more,
                const char *part)
{
        _cleanup_free_ char *text = receipt_text(added, removed, changed, more);
        ApplyPlan *plan = NULL;
        Error e = ERROR_INIT;

        REQUIRE(text);
        CHECK_EQ(read_text_plan(text, &plan, &e), -EINVAL);
        CHECK_HAS(e.text, part);
        apply_plan_free(plan);
}

/* "kind path" for each step. */
static char *steps_text(ApplyPlan *plan)
{
        static const char *const names[] = {
                [STEP_OPEN] = "open",
                [STEP_REMOVE] = "remove",
                [STEP_RMDIR] = "rmdir",
                [STEP_MKDIR] = "mkdir",
                [STEP_PUT] = "put",
                [STEP_MODE] = "mode",
                [STEP_EXCHANGE] = "exchange",
        };
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        CHECK_EQ(apply_plan_steps(plan), 0);
        for (size_t i = 0; f && i < plan->n_steps; i++)
                (void) fprintf(f, "%s%s %s", i > 0 ? ", " : "", names[plan->steps[i].kind],
                                plan->items[plan->steps[i].change].path);
        if (f)
                (void) fclose(f);
        return text;
}

static void check_steps(ApplyPlan *plan, char *const *select, const char *wanted)
{
        _cleanup_free_ char *text = NULL;
        Error e = ERROR_INIT;

        REQUIRE(plan);
        CHECK_EQ(apply_plan_select(plan, select, "/w", &e), 0);
        CHECK_STR(e.text, "");
        text = steps_text(plan);
        CHECK_STR(text, wanted);
}

TEST(order)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan = read_plan(FILE_("n/d/f") "," DIR_("n") "," DIR_("n/d"),
                        DIR_("o") "," FILE_("o/a") "," DIR_("o/d") "," FILE_("o/d/b"), EDIT_("e"), "");

        check_steps(plan, NULL,
                        "remove o/d/b, rmdir o/d, remove o/a, rmdir o, exchange e, mkdir n, mkdir n/d, put n/d/f, mode n/d, "
                        "mode n");
}

TEST(types)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan = read_plan(FILE_("to-dir/in"), FILE_("to-file/x"),
                        "{\"path\":\"to-dir\",\"what\":[\"type\"],\"before\":{" SIDE("0644",
                                        SHA_A) "},\"after\":{\"type\":\"directory\",\"mode\":\"0755\"}},"
                                               "{\"path\":\"to-file\",\"what\":[\"type\"],\"before\":{\"type\":\"directory\",\"mode\":\"0755\"},"
                                               "\"after\":{" SIDE("0644",
                                                               SHA_A) "}},"
                                                                      "{\"path\":\"to-link\",\"what\":[\"type\"],\"before\":{" SIDE(
                                                                                      "0644",
                                                                                      SHA_A) "},\"after\":{\"type\":\"symlink\",\"mode\":\"0777\",\"target\":\"x\"}},"
                                                                                             "{\"path\":\"mode\",\"what\":[\"mode\"],\"before\":{" SIDE(
                                                                                                             "0644",
                                                                                                             SHA_A) "},\"after\":{" SIDE("0755",
                                                                                                             SHA_A) "}},"
                                                                                                                    "{\"path\":\"closed\",\"what\":[\"mode\"],\"before\":{\"type\":\"directory\",\"mode\":\"0555\"},"
                                                                                                                    "\"after\":{\"type\":\"directory\",\"mode\":\"0755\"}}",
                        "");

        check_steps(plan, NULL,
                        "open closed, remove to-file/x, rmdir to-file, remove to-dir, mode mode, mkdir to-dir, "
                        "put to-dir/in, put to-file, exchange to-link, mode to-dir, mode closed");
}

TEST(selection)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan =
                        read_plan(DIR_("n") "," FILE_("n/f") "," FILE_("n/g") "," FILE_(
                                                  ".git/hooks/x") "," FILE_(".envrc"),
                                        DIR_("o") "," FILE_("o/a") "," FILE_("o/b"), EDIT_("e"), "");
        Error e = ERROR_INIT;

        REQUIRE(plan);
        check_steps(plan, NULL,
                        "remove o/b, remove o/a, rmdir o, exchange e, mkdir n, put n/f, put n/g, mode n");
        CHECK_EQ(apply_find(plan, ".envrc")->state, APPLY_HELD);
        CHECK_HAS(apply_find(plan, ".envrc")->why, "direnv");
        check_steps(plan, (char *[]){ (char *) "n/f", NULL }, "mkdir n, put n/f, mode n");
        check_steps(plan, (char *[]){ (char *) "/w/o/a", (char *) "e", NULL }, "remove o/a, exchange e");
        check_steps(plan, (char *[]){ (char *) "o/", NULL }, "remove o/b, remove o/a, rmdir o");
        check_steps(plan, (char *[]){ (char *) ".git", NULL }, "");
        check_steps(plan, (char *[]){ (char *) ".git/hooks/x", NULL }, "put .git/hooks/x");
        CHECK_EQ(apply_plan_select(plan, (char *[]){ (char *) "z", NULL }, "/w", &e), -EINVAL);
        CHECK_HAS(e.text, "nothing of that name changed");
        CHECK_EQ(apply_plan_select(plan, (char *[]){ (char *) "../w/e", NULL }, "/w", &e), -EINVAL);
        CHECK_EQ(apply_plan_select(plan, (char *[]){ (char *) "/x/e", NULL }, "/w", &e), -EINVAL);
}

TEST(held_and_left_out)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan = read_plan(
                        LINK_("a", "b") "," LINK_("b", "/etc/passwd") "," LINK_(
                                        "c", "/usr/bin/python3") "," LINK_("d/e", "../../x") "," LINK_("d/f",
                                        "../x") "," LINK_("g",
                                        "/usr/../etc") ","
                                                       "{\"path\":\"s\"," SIDE("4755",
                                                                       SHA_A) "},{\"path\":\"fifo\",\"type\":\"fifo\",\"mode\":\"0644\"},"
                                                                              "{\"path\":\"whiteout\",\"type\":\"char\",\"mode\":\"0000\",\"device\":\"0:0\"},"
                                                                              "{\"path\":\"sparse\",\"type\":\"file\",\"mode\":\"0644\",\"size\":3,\"sha256\":null}," FILE_(
                                                                                              ".qscope-apply-x") "," FILE_("/tmp/scratch"),
                        "",
                        "{\"path\":\".\",\"what\":[\"mode\"],\"before\":{\"type\":\"directory\",\"mode\":\"0755\"},"
                        "\"after\":{\"type\":\"directory\",\"mode\":\"0700\"}}",
                        "");
        static const struct {
                const char *path;
                ApplyState state;
        } wanted[] = {
                { "a", APPLY_SELECTED },
                { "b", APPLY_HELD },
                { "c", APPLY_SELECTED },
                { "d/e", APPLY_HELD },
                { "d/f", APPLY_SELECTED },
                { "g", APPLY_HELD },
                { "s", APPLY_HELD },
                { "fifo", APPLY_UNABLE },
                { "whiteout", APPLY_UNABLE },
                { "sparse", APPLY_UNABLE },
                { ".", APPLY_UNABLE },
                { ".qscope-apply-x", APPLY_UNABLE },
        };
        Error e = ERROR_INIT;

        REQUIRE(plan);
        CHECK_EQ(plan->n, ELEMENTSOF(wanted));
        CHECK_EQ(apply_plan_select(plan, NULL, "/w", &e), 0);
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
                const ApplyChange *change = apply_find(plan, wanted[i].path);

                REQUIRE(change);
                CHECK_EQ(change->state, wanted[i].state);
                CHECK(change->state == APPLY_SELECTED || *change->why);
        }
        CHECK_EQ(apply_mode(apply_find(plan, "s")), 0755);
        CHECK_EQ(apply_plan_select(plan, (char *[]){ (char *) "s", NULL }, "/w", &e), 0);
        CHECK_EQ(apply_find(plan, "s")->state, APPLY_SELECTED);
        CHECK_EQ(apply_mode(apply_find(plan, "s")), 04755);
        CHECK(apply_find(plan, "s")->forced && !apply_find(plan, "a")->forced);
        CHECK_EQ(apply_plan_select(plan, (char *[]){ (char *) "a", NULL }, "/w", &e), 0);
        CHECK(!apply_find(plan, "a")->forced);
}

TEST(unexpected)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan =
                        read_plan(FILE_("a") "," FILE_("b"), "", "", ",\"unexpected\":[\"b\",\"/tmp/x\"]");

        check_steps(plan, NULL, "put a");
        CHECK_EQ(apply_find(plan, "b")->state, APPLY_UNEXPECTED);
        check_steps(plan, (char *[]){ (char *) "b", NULL }, "put b");
        CHECK(apply_find(plan, "b")->forced);
}

TEST(raw_paths)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan =
                        read_plan("{\"path\":\"x\",\"path_base64\":\"Yf8=\"," SIDE("0644", SHA_A) "}", "", "",
                                        ",\"unexpected\":[\"a\"],\"unexpected_base64\":[\"Yf8=\"]");
        Error e = ERROR_INIT;

        REQUIRE(plan);
        CHECK_STR(plan->items[0].path, "a\xff");
        CHECK_EQ(apply_plan_select(plan, NULL, "/w", &e), 0);
        CHECK_EQ(plan->items[0].state, APPLY_UNEXPECTED);
}

TEST(hard_links)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan = read_plan(FILE_("a") "," FILE_("b") "," FILE_("c"), "",
                        "", ",\"hard_links\":[{\"links\":2,\"paths\":[\"c\",\"a\",\"../x\"]}]");
        Error e = ERROR_INIT;

        REQUIRE(plan);
        CHECK_EQ(apply_plan_select(plan, NULL, "/w", &e), 0);
        CHECK(!apply_first_link(plan, apply_find(plan, "a")));
        CHECK(!apply_first_link(plan, apply_find(plan, "b")));
        CHECK(apply_first_link(plan, apply_find(plan, "c")) == apply_find(plan, "a"));
}

TEST(hostile)
{
        static const char *const paths[] = { "../a", "a/../../b", "a//b", "./a", "a/", "", "a/..", ".." };
        char text[512];

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                (void) snprintf(text, sizeof(text), "{\"path\":\"%s\"," SIDE("0644", SHA_A) "}", paths[i]);
                check_refused(text, "", "", "", "is no change of a file");
        }
        check_refused("7", "", "", "", "receipt.fs.added[0]");
        check_refused("{}", "", "", "", "receipt.fs.added[0]");
        check_refused("{\"path\":7}", "", "", "", "receipt.fs.added[0]");
        check_refused("{\"path\":\"a\"}", "", "", "", "receipt.fs.added[0]");
        check_refused("{\"path\":\"a\",\"path_base64\":\"YQBi\"," SIDE("0644", SHA_A) "}", "", "", "",
                        "added[0]");
        check_refused("{\"path\":\"a\",\"path_base64\":\"Li4v\"," SIDE("0644", SHA_A) "}", "", "", "",
                        "added[0]");
        check_refused("{\"path\":\"a\",\"type\":\"door\",\"mode\":\"0644\"}", "", "", "", "added[0]");
        check_refused("{\"path\":\"a\"," SIDE("64x4", SHA_A) "}", "", "", "", "added[0]");
        check_refused("{\"path\":\"a\"," SIDE("777777", SHA_A) "}", "", "", "", "added[0]");
        check_refused("{\"path\":\"a\"," SIDE("0644", "../../../etc/passwd") "}", "", "", "", "added[0]");
        check_refused("{\"path\":\"a\",\"type\":\"file\",\"mode\":\"0644\",\"size\":-1,\"sha256\":null}", "",
                        "", "", "added[0]");
        check_refused("{\"path\":\"a\",\"type\":\"symlink\",\"mode\":\"0777\"}", "", "", "", "added[0]");
        check_refused(LINK_("a", ""), "", "", "", "added[0]");
        check_refused("", "", FILE_("a"), "", "receipt.fs.changed[0]");
        check_refused(FILE_("a"), FILE_("a"), "", "", "stands there twice");
        check_refused(FILE_("a") "," FILE_("a/b"), "", "", "", "is no directory");
        check_refused(FILE_("a/b"), DIR_("a"), "", "", "is no directory");
        check_refused(LINK_("a", "/etc") "," FILE_("a/passwd"), "", "", "", "is no directory");
        check_refused("", "", "", ",\"hard_links\":[{\"paths\":[7]}]", "hard_links");
        check_refused("", "", "", ",\"unexpected\":[7]", "unexpected");
}

TEST(no_list_no_apply)
{
        ApplyPlan *plan = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(read_text_plan("{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],\"fs\":{"
                                "\"truncated\":true,\"complete\":true}}",
                                 &plan, &e),
                        -EINVAL);
        CHECK_HAS(e.text, "does not list every change");
        CHECK_EQ(read_text_plan("{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],\"fs\":null}",
                                 &plan, &e),
                        0);
        CHECK_EQ(plan->n, 0);
        apply_plan_free(plan);
}

static int plan_once(_unused_ void *context)
{
        static const char text[] =
                        "{\"schema\":\"qscope.receipt/v1\",\"run_id\":\"r\",\"job_id\":\"j\",\"verdict\":"
                        "\"pass\",\"reasons\":[],\"fs\":{\"added\":[" DIR_("n") "," FILE_("n/f") "," LINK_(
                                        "l",
                                        "n") "],\"removed\":[" FILE_("o") "],\"changed\":[" EDIT_("e") "],\"complete\":true,\"hard_links\":[{\"paths\":[\"e\",\"o\"]}],\"unexpected\":[\"o\"]}}";
        ApplyPlan *plan = NULL;
        Error e = ERROR_INIT;
        int r = read_text_plan(text, &plan, &e);

        if (r == 0)
                r = apply_plan_select(plan, (char *[]){ (char *) "n", (char *) "e", NULL }, "/w", &e);
        if (r == 0)
                r = apply_plan_steps(plan);
        if (r == 0)
                CHECK_EQ(plan->n_steps, 4);
        apply_plan_free(plan);
        return r;
}

TEST(out_of_memory)
{
        CHECK(alloc_fail_each(plan_once, NULL) > 0);
}

TEST_MAIN
