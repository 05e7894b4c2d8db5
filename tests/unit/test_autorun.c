/* SPDX-License-Identifier: Apache-2.0 */
#include "core/autorun.h"

#include "test.h"

TEST(executed_by_the_host)
{
        static const char *const paths[] = {
                ".git/hooks/pre-commit",
                "sub/repo/.git/hooks/x/y",
                ".git/hooks",
                ".GIT/Hooks/post-merge",
                ".git/config",
                "bare.git/hooks/update",
                ".git/modules/a/hooks/post-checkout",
                ".git/modules/a/b/config",
                "git~1/config",
                ".gitattributes",
                "deep/.GitAttributes",
                "anything/HEAD",
                ".envrc",
                "a/b/.envrc",
                ".vscode/tasks.json",
                ".VSCODE/x/y",
                "x.code-workspace",
                ".mcp.json",
                ".npmrc",
                "packages/a/.npmrc",
                ".cargo/config.toml",
                ".bashrc",
                "home/.profile",
                ".config/fish/conf.d/x.fish",
                ".config/autostart/x.desktop",
                ".github/workflows/ci.yml",
                ".pre-commit-config.yaml",
                "lefthook.yml",
                "venv/lib/python3.11/site-packages/x.pth",
                "sitecustomize.py",
                "Jenkinsfile",
        };

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (!autorun_find(paths[i], FILE_REGULAR))
                        CHECK_STR(paths[i], "found");
        CHECK_STR(autorun_find(".git/hooks/x", FILE_REGULAR), "git");
        CHECK_STR(autorun_find(".envrc", FILE_REGULAR), "direnv");
}

TEST(only_by_name)
{
        static const char *const paths[] = {
                "Makefile",
                "src/main.c",
                "package.json",
                "test.sh",
                "conftest.py",
                ".gitignore",
                ".git/index",
                ".git/HEAD",
                ".git/logs/HEAD",
                ".git/objects/aa/bb",
                ".git/refs/heads/main",
                ".github/ISSUE_TEMPLATE.md",
                "githooks/x",
                "hooks/x",
                "config",
                "a.git",
                "xnpmrc",
                ".npmrc.bak",
                ".envrc.example",
                ".editorconfig",
                "",
        };

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                CHECK_STR(autorun_find(paths[i], FILE_REGULAR), NULL);
}

/* A link that stands where such a directory would be can lead to one that was made elsewhere. */
TEST(links_in_the_way)
{
        CHECK(autorun_find(".git", FILE_SYMLINK));
        CHECK(autorun_find("a/.git", FILE_REGULAR)); /* a gitfile */
        CHECK(autorun_find(".config", FILE_SYMLINK));
        CHECK(autorun_find(".github", FILE_SYMLINK));
        CHECK(!autorun_find(".git", FILE_DIRECTORY));
        CHECK(!autorun_find(".github", FILE_DIRECTORY));
        CHECK(!autorun_find(".bashrc", FILE_DIRECTORY));
        CHECK(autorun_find(".git/hooks", FILE_DIRECTORY)); /* the caller looks at what is in it */
        CHECK(!autorun_find("hooks", FILE_SYMLINK));
}

TEST(long_names)
{
        char path[4000];

        memset(path, 'a', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        CHECK(!autorun_find(path, FILE_REGULAR));
        for (size_t i = 1; i < sizeof(path) - 1; i += 2)
                path[i] = '/';
        CHECK(!autorun_find(path, FILE_REGULAR));
}

TEST(attributes)
{
        static const struct {
                const char *text;
                bool harmful;
        } cases[] = {
                { "", false },
                { "*.c text eol=lf\n", false },
                { "*.png binary\n", false },
                { "* filter=x", true },
                { "*.x\tFILTER=lfs", true },
                { "[attr]y diff=word\n", true },
                { "a\nb merge=ours\n", true },
                { "a -filter\n", false },
                { "a filter", false },
                { "xfilter=a", false },
        };

        CHECK(autorun_by_content("a/.gitattributes"));
        CHECK(!autorun_by_content("a/.gitattributes/x"));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                CHECK_EQ(autorun_content(cases[i].text, strlen(cases[i].text)), cases[i].harmful);
}

TEST_MAIN
