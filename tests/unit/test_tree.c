/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the comparison that need no overlay: names in order, digests of files with holes, and where
 * links lead. The rest is tested in the beds. */
#include "sys/tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "sys/tree_content.h"
#include "sys/tree_names.h"
#include "test.h"

static int remove_one(
                const char *path, _unused_ const struct stat *st, _unused_ int type, _unused_ struct FTW *ftw)
{
        return remove(path);
}

static void directory_remove(char **path)
{
        CHECK_EQ(nftw(*path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        free(*path);
}

#define _cleanup_directory_ _unused_ _cleanup_(directory_remove)

static char *directory_make(int *ret_fd)
{
        char *path = strdup("/tmp/qscope-test-XXXXXX");

        assert(path && mkdtemp(path));
        *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert(*ret_fd >= 0);
        return path;
}

static void touch(int dir_fd, const char *name)
{
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert(fd >= 0);
        (void) close(fd);
}

/* Reads everything within bytes_max and checks the order. Returns the number of names. */
static size_t read_names(int fd_a, int fd_b, size_t bytes_max, size_t *ret_passes)
{
        _cleanup_(name_list_freep) NameList *list = name_list_new(bytes_max);
        char last[NAME_MAX + 1] = "";
        size_t n = 0;

        assert(list);
        *ret_passes = 0;
        do {
                CHECK_EQ(name_list_read(list, fd_a, fd_b), 0);
                for (size_t i = 0; i < list->n; i++, n++) {
                        CHECK(strcmp(last, name_list_get(list, i)) < 0);
                        (void) snprintf(last, sizeof(last), "%s", name_list_get(list, i));
                }
                CHECK(name_list_size(list) <= 4 * bytes_max + 2048);
                ++*ret_passes;
        } while (list->more);
        return n;
}

TEST(names_within_memory)
{
        _cleanup_close_ int a = -EBADF, b = -EBADF;
        _cleanup_directory_ char *path_a = directory_make(&a), *path_b = directory_make(&b);
        size_t passes;

        CHECK_EQ(read_names(a, b, 1024, &passes), 0);
        CHECK_EQ(passes, 1);
        for (unsigned i = 0; i < 600; i++) {
                char name[64];

                (void) snprintf(name, sizeof(name), "%u-\xff\n%u", i * 7919 % 600, i % 3);
                touch(i % 2 ? a : b, name);
                if (i % 5 == 0)
                        touch(i % 2 ? b : a, name);
        }
        CHECK_EQ(read_names(a, b, 1 << 20, &passes), 600);
        CHECK_EQ(passes, 1);
        CHECK_EQ(read_names(a, b, 2048, &passes), 600);
        CHECK(passes > 3);
        CHECK_EQ(read_names(a, b, 1, &passes), 600); /* one at a time, but never none */
        CHECK_EQ(read_names(a, -EBADF, 1 << 20, &passes) + read_names(b, -EBADF, 1 << 20, &passes), 720);
}

static int make_file(int dir_fd, const char *name, off_t size)
{
        int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        assert(fd >= 0 && ftruncate(fd, size) == 0);
        return fd;
}

static void put(int fd, const char *text, off_t at)
{
        assert(pwrite(fd, text, strlen(text), at) == (ssize_t) strlen(text));
}

TEST(content_with_holes)
{
        const off_t large = (off_t) 10 << 30;
        _cleanup_close_ int dir = -EBADF;
        _cleanup_directory_ char *path = directory_make(&dir);
        _cleanup_close_ int a = make_file(dir, "a", large), b = make_file(dir, "b", large),
                            small = make_file(dir, "small", 10000), full = make_file(dir, "full", 0);
        char one[HASH_HEX_MAX], two[HASH_HEX_MAX];
        struct stat st, other;
        uint64_t budget = MIB(1);
        bool equal;

        put(a, "x", large / 2);
        put(b, "x", large / 2);
        put(b, "", 0);
        CHECK(fstat(a, &st) == 0 && fstat(small, &other) == 0);
        CHECK_EQ(content_choose(&st, NULL, &budget), CONTENT_SPARSE); /* costs what it holds */
        CHECK(budget > MIB(1) - KIB(256));
        CHECK_EQ(content_hash_sparse(a, one), 0);
        CHECK_EQ(content_hash_sparse(b, two), 0);
        CHECK_STR(one, two);
        CHECK(content_equal(a, b, CONTENT_SPARSE, &equal) == 0 && equal);
        put(b, "y", large - 1);
        CHECK(content_equal(a, b, CONTENT_SPARSE, &equal) == 0 && !equal);
        /* A block of zeros is no content, whether it is a hole or not. */
        for (unsigned i = 0; i < 10000; i++)
                assert(write(full, "", 1) == 1);
        CHECK_EQ(content_hash_sparse(small, one), 0);
        CHECK_EQ(content_hash_sparse(full, two), 0);
        CHECK_STR(one, two);
        CHECK_EQ(content_hash(small, one), 0);
        CHECK_EQ(content_hash(full, two), 0);
        CHECK_STR(one, two);
        CHECK(content_equal(small, full, CONTENT_WHOLE, &equal) == 0 && equal);
        put(full, "x", 9999);
        CHECK(content_equal(small, full, CONTENT_WHOLE, &equal) == 0 && !equal);
        CHECK_EQ(content_choose(&other, NULL, &budget), CONTENT_WHOLE);
        budget = 10;
        CHECK_EQ(fstat(full, &other), 0);
        CHECK_EQ(content_choose(&other, NULL, &budget), CONTENT_UNREAD);
        CHECK_EQ(budget, 10);
}

TEST(digest_is_the_documented_one)
{
        _cleanup_close_ int dir = -EBADF;
        _cleanup_directory_ char *path = directory_make(&dir);
        _cleanup_close_ int fd = make_file(dir, "f", 3 * 4096 + 5);
        uint8_t data[8 + 4096 + 8 + 5 + 8] = {
                [1] = 0x10, [8 + 4096 + 1] = 0x30, [8 + 4096 + 8 + 5] = 5, [8 + 4096 + 8 + 5 + 1] = 0x30
        };
        char expected[HASH_HEX_MAX], seen[HASH_HEX_MAX];

        put(fd, "ab", 4096 + 7);
        put(fd, "c", 3 * 4096 + 4);
        memcpy(data + 8 + 7, "ab", 2);
        data[8 + 4096 + 8 + 4] = 'c';
        hash_data(data, sizeof(data), expected);
        CHECK_EQ(content_hash_sparse(fd, seen), 0);
        CHECK_STR(seen, expected);
}

TEST(where_links_lead)
{
        static const struct {
                const char *name, *target;
        } links[] = {
                { "out", "build" },
                { "abs", "/w/build/x" },
                { "tmp", "/tmp/y" },
                { "up", "../etc" },
                { "dir/back", "../build/" },
                { "loop", "loop" },
                { "chain", "out" },
                { "far", "nowhere/q" },
                { "alias", "/real/w/dir" },
                { "top", "/" },
        };
        static const struct {
                const char *path, *expected; /* NULL: itself */
        } cases[] = {
                { "/w/out", "/w/build" },
                { "/w/out/a/b", "/w/build/a/b" },
                { "/w/abs/z", "/w/build/x/z" },
                { "/w/tmp/z", "/tmp/y/z" },
                { "/w/up/passwd", "/etc/passwd" },
                { "/w/dir/back/q", "/w/build/q" },
                { "/w/loop/x", NULL },
                { "/w/chain", "/w/build" },
                { "/w/far/r", "/w/nowhere/q/r" },
                { "/w/alias/f", "/w/dir/f" },
                { "/real/w/out/f", "/w/build/f" },
                { "/w/top/w/out", "/w/build" },
                { "/w/build/x", NULL },
                { "/w/none/at/all", NULL },
                { "/w", NULL },
                { "/tmp/x", NULL },
                { "/", NULL },
        };
        _cleanup_close_ int dir = -EBADF;
        _cleanup_directory_ char *path = directory_make(&dir);

        assert(mkdirat(dir, "build", 0700) == 0 && mkdirat(dir, "dir", 0700) == 0);
        for (size_t i = 0; i < ELEMENTSOF(links); i++)
                assert(symlinkat(links[i].target, dir, links[i].name) == 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *place = NULL;

                CHECK_EQ(tree_resolve(dir, "/w", "/real/w", cases[i].path, &place), 0);
                if (!streq_ptr(place, cases[i].expected))
                        fprintf(stderr, "%s leads to %s\n", cases[i].path, place ? place : "itself");
                CHECK(streq_ptr(place, cases[i].expected));
        }
}

/* --- whole walks; two plain directories serve as what was and what is --- */

static void fill(int dir, const char *name, const char *text)
{
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        (void) close(fd);
}

static void assert_changes(const FileChanges *changes, const char *expected)
{
        static const char marks[_CHANGE_MAX] = { '+', '-', '~' };
        char text[1024] = "";
        size_t used = 0;

        for (size_t i = 0; i < changes->n; i++)
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%c%s", i ? " " : "",
                                marks[changes->items[i].kind], changes->items[i].path);
        CHECK_STR(text, expected);
}

static TreeWalk *walk_make(const ChangeRules *rules, uint64_t budget)
{
        const TreeOwner owner = { getuid(), 4711, getgid(), 4712 };
        TreeWalk *walk = NULL;

        assert(tree_walk_new(&owner, rules, 77, budget, &walk) == 0);
        return walk;
}

static void finish(TreeWalk *walk, FileChanges *changes, TreeResult *result)
{
        CHECK_EQ(tree_walk_finish(walk, changes, result), 0);
        free(result->file_at_limit);
        (void) tree_walk_free(walk);
}

TEST(walk_of_two_directories)
{
        _cleanup_close_ int was = -EBADF, is = -EBADF;
        _cleanup_directory_ char *path_was = directory_make(&was), *path_is = directory_make(&is);
        const ChangeRules rules = { .scratch = SCRATCH_REPORT };
        FileChanges changes;
        TreeResult result;
        TreeWalk *walk;

        fill(was, "same", "s"), fill(is, "same", "s");
        fill(was, "bytes", "aaaa"), fill(is, "bytes", "aaab");
        fill(was, "gone", "content of gone"), fill(is, "came", "content of gone");
        fill(is, "\xff\n", "");
        assert(mkdirat(was, "d", 0700) == 0 && mkdirat(is, "d", 0750) == 0 &&
                        symlinkat("x", is, "link") == 0);
        assert(mkdirat(was, "t", 0700) == 0 && mkfifoat(is, "t", 0700) == 0);
        fill(was, "t/below", "1");
        fill(is, "d/one", "11"), assert(linkat(is, "d/one", is, "d/two", 0) == 0);
        walk = walk_make(&rules, MIB(1));
        CHECK_EQ(tree_compare(walk, is, was, is, "/w"), 0);
        finish(walk, &changes, &result);
        CHECK(changes.complete && !changes.truncated && !result.lost && !result.unread);
        /* is serves as the upper layer too: what it does not have was not touched */
        assert_changes(&changes, "~/w/bytes +/w/came ~/w/d +/w/d/one +/w/d/two +/w/link ~/w/t -/w/t/below "
                                 "+/w/\xff\n");
        REQUIRE(changes.n == 9 && changes.n_hard_links == 1);
        CHECK_EQ(changes.items[0].what, CHANGED_CONTENT);
        CHECK_EQ(changes.items[2].what, CHANGED_MODE);
        CHECK_EQ(changes.items[6].what, CHANGED_TYPE);
        CHECK_EQ(changes.items[1].after.uid, 4711); /* the job's user is shown as the owner */
        CHECK_STR(changes.items[5].after.target, "x");
        CHECK_STR(changes.hard_links[0].paths[1], "/w/d/two");
        file_changes_clear(&changes);
        free(result.lost);
}

TEST(walk_within_a_budget)
{
        _cleanup_close_ int was = -EBADF, is = -EBADF;
        _cleanup_directory_ char *path_was = directory_make(&was), *path_is = directory_make(&is);
        const ChangeRules rules = { .scratch = SCRATCH_FAIL };
        FileChanges changes;
        TreeResult result;
        TreeWalk *walk = walk_make(&rules, 10);

        fill(is, "new", "more than ten bytes");
        CHECK_EQ(tree_scratch(walk, is, "/tmp", NULL), 0);
        finish(walk, &changes, &result);
        assert_changes(&changes, "+/tmp/new");
        CHECK(changes.complete && result.unread && changes.scratch == 1); /* listed, without a digest */
        file_changes_clear(&changes);
        fill(was, "new", "MORE than ten bytes");
        walk = walk_make(&rules, 10);
        CHECK_EQ(tree_compare(walk, is, was, is, "/w"), 0);
        finish(walk, &changes, &result);
        CHECK(!changes.complete && !*changes.sha256); /* could not be compared: never "no change" */
        CHECK_STR(result.lost, "/w/new: too large to be compared");
        file_changes_clear(&changes);
        free(result.lost);
}

TEST(walk_of_more_than_is_listed)
{
        char *allowed[] = { (char *) "/w/a", NULL };
        _cleanup_close_ int was = -EBADF, is = -EBADF;
        _cleanup_directory_ char *path_was = directory_make(&was), *path_is = directory_make(&is);
        const ChangeRules rules = { .allowed = allowed, .scratch = SCRATCH_REPORT };
        TreeWalk *walk = walk_make(&rules, MIB(1));
        FileChanges changes;
        TreeResult result;

        assert(mkdirat(is, "a", 0700) == 0 && mkdirat(is, "b", 0700) == 0);
        for (unsigned i = 0; i < TREE_CHANGES_MAX + TREE_UNEXPECTED_MAX; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "%c/%u", i < TREE_CHANGES_MAX ? 'a' : 'b', i);
                touch(is, name);
        }
        CHECK_EQ(tree_compare(walk, is, was, is, "/w"), 0);
        finish(walk, &changes, &result);
        CHECK(changes.complete && changes.truncated);
        CHECK_EQ(changes.n, TREE_CHANGES_MAX + TREE_UNEXPECTED_MAX);
        CHECK_EQ(changes.total[CHANGE_ADDED], TREE_CHANGES_MAX + TREE_UNEXPECTED_MAX + 2);
        CHECK_EQ(changes.unlisted_unexpected[false], 1); /* /w/b and a thousand below it, less one */
        file_changes_clear(&changes);
}

TEST_MAIN
