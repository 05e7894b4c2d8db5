/* SPDX-License-Identifier: Apache-2.0 */
#include "core/changes.h"

#include "alloc.h"
#include "test.h"

static bool unexpected(const char *allowed, ChangeKind kind, FileType type, const char *path)
{
        char text[256], *list[16] = { NULL }, *rest = text, *word;
        ChangeRules rules;
        bool answer;

        (void) snprintf(text, sizeof(text), "%s", allowed);
        for (size_t i = 0; i + 1 < ELEMENTSOF(list) && (word = strtok_r(rest, " ", &rest)); i++)
                list[i] = word;
        CHECK_EQ(change_rules_make(list, NULL, SCRATCH_REPORT, &rules), 0);
        answer = change_is_unexpected(&rules, kind, type, path, false);
        change_rules_clear(&rules);
        return answer;
}

TEST(exact_or_below)
{
        static const struct {
                const char *allowed, *path;
                bool expected;
        } cases[] = {
                { "/w/a", "/w/a", true },
                { "/w/a", "/w/a/b/c", true },
                { "/w/a", "/w/ab", false },
                { "/w/a", "/w", false },
                { "/w/a /w/a-b /w/a/b", "/w/a-b", true },
                { "/w/a /w/a-b /w/a/b", "/w/a/c", true },
                { "/w/a/b /w/a /w/a/c", "/w/a/z", true },
                { "/w/a/b /w/a!", "/w/a", false },
                { "/w/z /w/b /w/m", "/w/m/x", true },
                { "/w/z /w/b /w/m", "/w/n", false },
                { "/w/z /w/b /w/m", "/w/a", false },
                { "/w/z /w/b /w/m", "/w/zz", false },
                { "/", "/w/x", true },
                { "", "/w/x", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                bool seen = !unexpected(cases[i].allowed, CHANGE_CHANGED, FILE_REGULAR, cases[i].path);

                if (seen != cases[i].expected)
                        fprintf(stderr, "[%s] %s\n", cases[i].allowed, cases[i].path);
                CHECK_EQ(seen, cases[i].expected);
        }
}

TEST(new_directories_above)
{
        CHECK(!unexpected("/w/a/b/c /w/q", CHANGE_ADDED, FILE_DIRECTORY, "/w/a"));
        CHECK(!unexpected("/w/a/b/c /w/q", CHANGE_ADDED, FILE_DIRECTORY, "/w/a/b"));
        CHECK(unexpected("/w/a/b/c /w/q", CHANGE_ADDED, FILE_DIRECTORY, "/w/a/c"));
        CHECK(unexpected("/w/a/b/c", CHANGE_ADDED, FILE_REGULAR, "/w/a"));
        CHECK(unexpected("/w/a/b/c", CHANGE_CHANGED, FILE_DIRECTORY, "/w/a"));
        CHECK(unexpected("/w/a/b/c", CHANGE_REMOVED, FILE_DIRECTORY, "/w/a"));
}

TEST(rules)
{
        char *none[] = { NULL }, *out[] = { (char *) "/w/out", NULL },
             *build[] = { (char *) "/w/build", NULL };
        ChangeRules rules;

        CHECK_EQ(change_rules_make(NULL, build, SCRATCH_FAIL, &rules), 0);
        CHECK(!rules.allowed); /* not given: the workspace is not judged, whatever links there are */
        CHECK(!change_is_unexpected(&rules, CHANGE_ADDED, FILE_REGULAR, "/w/x", false));
        CHECK(change_is_unexpected(&rules, CHANGE_ADDED, FILE_REGULAR, "/tmp/x", true));
        CHECK_EQ(change_rules_make(none, NULL, SCRATCH_ALLOW, &rules), 0);
        CHECK(change_is_unexpected(&rules, CHANGE_ADDED, FILE_REGULAR, "/w/x", false));
        CHECK(!change_is_unexpected(&rules, CHANGE_ADDED, FILE_REGULAR, "/tmp/x", true));
        change_rules_clear(&rules);
        CHECK_EQ(change_rules_make(out, build, SCRATCH_REPORT, &rules), 0);
        CHECK(!change_is_unexpected(&rules, CHANGE_ADDED, FILE_REGULAR, "/w/build/x", false));
        CHECK(!change_is_unexpected(&rules, CHANGE_REMOVED, FILE_SYMLINK, "/w/out", false));
        change_rules_clear(&rules);
}

/* --- renames --- */

static void add(FileChanges *changes, ChangeKind kind, const char *path, uint64_t inode, const char *sha256)
{
        FileNode node = { .type = FILE_REGULAR, .size = *sha256 ? 3 : 0, .inode = inode };
        FileChange *change;

        (void) snprintf(node.sha256, sizeof(node.sha256), "%s", sha256);
        changes->items = reallocarray(changes->items, changes->n + 1, sizeof(FileChange));
        assert(changes->items);
        change = &changes->items[changes->n++];
        *change = (FileChange){ .kind = kind, .path = strdup(path) };
        *(kind == CHANGE_ADDED ? &change->after : &change->before) = node;
}

static void add_directory_rename(FileChanges *changes, const char *from, const char *to)
{
        changes->renames = reallocarray(changes->renames, changes->n_renames + 1, sizeof(FileRename));
        assert(changes->renames);
        changes->renames[changes->n_renames++] =
                        (FileRename){ .from = strdup(from), .to = strdup(to), .how = RENAME_DIRECTORY };
}

/* "from>to how, …" */
static void assert_renames(FileChanges *changes, const char *expected)
{
        char text[512] = "";
        size_t used = 0;

        CHECK_EQ(changes_find_renames(changes), 0);
        for (size_t i = 0; i < changes->n_renames; i++)
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s>%s %s", i ? ", " : "",
                                changes->renames[i].from, changes->renames[i].to,
                                rename_how_names[changes->renames[i].how]);
        CHECK_STR(text, expected);
        file_changes_clear(changes);
}

TEST(renames_by_inode_before_content)
{
        FileChanges c = { 0 };

        add(&c, CHANGE_REMOVED, "/w/a", 7, "aa");
        add(&c, CHANGE_REMOVED, "/w/b", 8, "bb");
        add(&c, CHANGE_ADDED, "/w/x", 8, "aa"); /* b, with what was in a */
        add(&c, CHANGE_ADDED, "/w/y", 0, "aa");
        add(&c, CHANGE_ADDED, "/w/z", 0, "cc");
        assert_renames(&c, "/w/b>/w/x inode, /w/a>/w/y content");
}

TEST(renames_by_content_prefer_the_name)
{
        FileChanges c = { 0 };

        add(&c, CHANGE_REMOVED, "/w/d/one", 0, "aa");
        add(&c, CHANGE_REMOVED, "/w/d/two", 0, "aa");
        add(&c, CHANGE_ADDED, "/w/e/two", 0, "aa");
        add(&c, CHANGE_ADDED, "/w/e/three", 0, "aa");
        add(&c, CHANGE_ADDED, "/w/e/four", 0, "aa");
        CHECK_EQ(changes_find_renames(&c), 0);
        REQUIRE(c.n_renames == 2);
        CHECK_STR(c.renames[1].from, "/w/d/two");
        CHECK_STR(c.renames[1].to, "/w/e/two");
        CHECK_STR(c.renames[0].from, "/w/d/one");
        file_changes_clear(&c);
}

TEST(no_renames)
{
        FileChanges c = { 0 };

        add(&c, CHANGE_REMOVED, "/w/empty", 0, ""); /* empty files are all alike */
        add(&c, CHANGE_ADDED, "/w/new", 0, "");
        add(&c, CHANGE_REMOVED, "/w/dir", 0, "aa");
        c.items[2].before.type = FILE_DIRECTORY;
        add(&c, CHANGE_ADDED, "/w/other", 0, "aa");
        add(&c, CHANGE_CHANGED, "/w/changed", 5, "aa");
        assert_renames(&c, "");
}

TEST(what_came_with_its_directory)
{
        FileChanges c = { 0 };

        add_directory_rename(&c, "/w/d", "/w/e");
        add(&c, CHANGE_REMOVED, "/w/d/f", 1, "aa");
        add(&c, CHANGE_REMOVED, "/w/d/g", 2, "bb");
        add(&c, CHANGE_ADDED, "/w/e/f", 1, "aa");
        add(&c, CHANGE_ADDED, "/w/e/moved", 2, "bb");
        assert_renames(&c, "/w/d>/w/e directory, /w/d/g>/w/e/moved inode");
}

static int find_without_memory(void *context)
{
        FileChanges c = *(const FileChanges *) context; /* the items are shared */
        int r = changes_find_renames(&c);

        CHECK(r < 0 || c.n_renames == 2);
        c.items = NULL;
        c.n = 0;
        file_changes_clear(&c);
        return r;
}

static int make_rules(_unused_ void *context)
{
        char *allowed[] = { (char *) "/w/b", (char *) "/w/a", NULL },
             *resolved[] = { (char *) "/w/b/c", NULL };
        ChangeRules rules;
        int r = change_rules_make(allowed, resolved, SCRATCH_REPORT, &rules);

        CHECK_EQ(strv_length(rules.allowed), r < 0 ? 0 : 2);
        change_rules_clear(&rules);
        return r;
}

TEST(out_of_memory)
{
        FileChanges c = { 0 };

        add(&c, CHANGE_REMOVED, "/w/a", 7, "aa");
        add(&c, CHANGE_REMOVED, "/w/b", 0, "bb");
        add(&c, CHANGE_ADDED, "/w/x", 7, "aa");
        add(&c, CHANGE_ADDED, "/w/y", 0, "bb");
        CHECK(alloc_fail_each(find_without_memory, &c) > 0);
        CHECK(alloc_fail_each(make_rules, NULL) > 0);
        file_changes_clear(&c);
}

TEST(names)
{
        for (size_t i = 0; i < _FILE_TYPE_MAX; i++)
                CHECK(file_type_names[i]);
        for (size_t i = 0; i < _RENAME_MAX; i++)
                CHECK(rename_how_names[i]);
        for (size_t i = 0; i < _SCRATCH_WRITES_MAX; i++)
                CHECK(scratch_writes_names[i]);
}

TEST_MAIN
