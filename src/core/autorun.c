/* SPDX-License-Identifier: Apache-2.0 */
#include "core/autorun.h"

#include <fnmatch.h>
#include <strings.h>

#define COMPONENT_MAX 256

typedef struct Row {
        const char *pattern; /* components by fnmatch(3), found at any depth; with a slash at the end:
                                everything below, too */
        const char *who;
} Row;

static const Row table[] = {
        /* git and its kin. "git~1" is what .git is called by the short names of FAT. */
        { ".git", "git" },
        { "*.git/hooks/", "git" },
        { "*.git/config", "git" },
        { "*.git/config.worktree", "git" },
        { "*.git/commondir", "git" },
        { "*.git/info/attributes", "git" },
        { "*.git/modules/*/hooks/", "git" },
        { "*.git/modules/*/config", "git" },
        { "*.git/modules/*/*/hooks/", "git" },
        { "*.git/modules/*/*/config", "git" },
        { "*.git/worktrees/*/config.worktree", "git" },
        { "*.git/worktrees/*/commondir", "git" },
        { "*.git/rebase-merge/", "git" },
        { "*.git/rebase-apply/", "git" },
        { "*.git/sequencer/", "git" },
        { "git~[0-9]/", "git" },
        { ".gitattributes", "git" },
        { ".gitconfig", "git" },
        { ".config/git/", "git" },
        { ".husky/", "git" },
        { ".githooks/", "git" },
        { ".pre-commit-config.yaml", "pre-commit" },
        { "lefthook.y*ml", "lefthook" },
        { ".lefthook.y*ml", "lefthook" },
        { ".hg/hgrc", "mercurial" },
        { ".hgrc", "mercurial" },
        { ".hg/hooks/", "mercurial" },
        { ".svn/hooks/", "subversion" },
        { ".jj/repo/config.toml", "jj" },
        /* on entering the directory */
        { ".envrc", "direnv" },
        { ".direnv/", "direnv" },
        { ".autoenv*", "autoenv" },
        { ".mise.toml", "mise" },
        { "mise.toml", "mise" },
        { ".mise/", "mise" },
        { ".config/mise/", "mise" },
        { ".rtx.toml", "mise" },
        /* editors and assistants */
        { ".vscode/", "the editor" },
        { "*.code-workspace", "the editor" },
        { ".devcontainer/", "the editor" },
        { ".devcontainer.json", "the editor" },
        { ".idea/", "the editor" },
        { ".fleet/", "the editor" },
        { ".zed/", "the editor" },
        { ".vs/", "the editor" },
        { ".exrc", "the editor" },
        { ".vimrc", "the editor" },
        { ".gvimrc", "the editor" },
        { ".nvimrc", "the editor" },
        { ".nvim.lua", "the editor" },
        { ".lvimrc", "the editor" },
        { ".vim/", "the editor" },
        { ".config/nvim/", "the editor" },
        { ".dir-locals*.el", "the editor" },
        { ".emacs", "the editor" },
        { ".emacs.d/", "the editor" },
        { ".mcp.json", "the assistant" },
        { ".cursor/", "the assistant" },
        { ".claude/", "the assistant" },
        { ".codex/", "the assistant" },
        { ".gemini/", "the assistant" },
        { ".continue/", "the assistant" },
        { ".windsurf/", "the assistant" },
        { ".aider*.yml", "the assistant" },
        /* package tools and compilers, which take programs and registries from these */
        { ".npmrc", "npm" },
        { ".yarnrc", "yarn" },
        { ".yarnrc.yml", "yarn" },
        { ".yarn/releases/", "yarn" },
        { ".yarn/plugins/", "yarn" },
        { ".pnpmfile.*js", "pnpm" },
        { ".pnp.*js", "yarn" },
        { "bunfig.toml", "bun" },
        { ".cargo/config", "cargo" },
        { ".cargo/config.toml", "cargo" },
        { ".mvn/", "maven" },
        { ".bundle/config", "bundler" },
        { "pip.conf", "pip" },
        { ".pip/", "pip" },
        { ".config/pip/", "pip" },
        { "sitecustomize.py", "python" },
        { "usercustomize.py", "python" },
        { "site-packages/*.pth", "python" },
        { "dist-packages/*.pth", "python" },
        { ".pythonrc", "python" },
        { ".pythonrc.py", "python" },
        { ".ipython/", "python" },
        { ".jupyter/", "jupyter" },
        { ".irbrc", "irb" },
        { ".pryrc", "pry" },
        { ".rprofile", "R" },
        { ".renviron", "R" },
        { ".gdbinit", "gdb" },
        { ".lldbinit", "lldb" },
        { ".sqliterc", "sqlite3" },
        { ".psqlrc", "psql" },
        /* shells, sessions */
        { ".profile", "the shell" },
        { ".bash_profile", "the shell" },
        { ".bash_login", "the shell" },
        { ".bash_logout", "the shell" },
        { ".bash_aliases", "the shell" },
        { ".bash_completion", "the shell" },
        { ".bashrc", "the shell" },
        { ".zshrc", "the shell" },
        { ".zshenv", "the shell" },
        { ".zprofile", "the shell" },
        { ".zlogin", "the shell" },
        { ".zlogout", "the shell" },
        { ".kshrc", "the shell" },
        { ".mkshrc", "the shell" },
        { ".cshrc", "the shell" },
        { ".tcshrc", "the shell" },
        { ".login", "the shell" },
        { ".logout", "the shell" },
        { ".inputrc", "the shell" },
        { ".config/fish/", "the shell" },
        { ".screenrc", "screen" },
        { ".tmux.conf", "tmux" },
        { ".config/tmux/", "tmux" },
        { ".xinitrc", "the session" },
        { ".xprofile", "the session" },
        { ".xsession", "the session" },
        { ".xsessionrc", "the session" },
        { ".pam_environment", "the session" },
        { ".config/autostart/", "the session" },
        { ".config/environment.d/", "the session" },
        { ".config/systemd/", "systemd" },
        { ".local/share/systemd/", "systemd" },
        { ".ssh/", "ssh" },
        { ".gnupg/", "gnupg" },
        /* what another machine runs as soon as it is pushed */
        { ".github/workflows/", "the CI" },
        { ".github/actions/", "the CI" },
        { ".gitea/workflows/", "the CI" },
        { ".forgejo/workflows/", "the CI" },
        { ".gitlab-ci.yml", "the CI" },
        { ".gitlab/ci/", "the CI" },
        { ".circleci/", "the CI" },
        { ".buildkite/", "the CI" },
        { ".woodpecker/", "the CI" },
        { ".woodpecker.y*ml", "the CI" },
        { ".travis.yml", "the CI" },
        { ".drone.yml", "the CI" },
        { ".cirrus.yml", "the CI" },
        { "appveyor.yml", "the CI" },
        { "azure-pipelines*.yml", "the CI" },
        { "bitbucket-pipelines.yml", "the CI" },
        { "jenkinsfile", "the CI" },
};

/* One component of each; moves both behind their slashes. */
static bool match_component(const char **pattern, const char **path)
{
        size_t wanted = strcspn(*pattern, "/"), length = strcspn(*path, "/");
        char a[COMPONENT_MAX], b[COMPONENT_MAX];

        if (wanted >= sizeof(a) || length >= sizeof(b))
                return false;
        (void) snprintf(a, sizeof(a), "%.*s", (int) wanted, *pattern);
        (void) snprintf(b, sizeof(b), "%.*s", (int) length, *path);
        *pattern += wanted + ((*pattern)[wanted] == '/');
        *path += length + ((*path)[length] == '/');
        return fnmatch(a, b, FNM_CASEFOLD) == 0;
}

/* path begins at a component. What is no directory may also end before the pattern does. */
static bool match_here(const char *pattern, const char *path, bool directory)
{
        bool below = pattern[strlen(pattern) - 1] == '/', leads = !directory && *pattern != '*';

        if (!*path || (*pattern != '*' && (*pattern | 0x20) != (*path | 0x20)))
                return false; /* most of the time */
        while (*pattern && *path)
                if (!match_component(&pattern, &path))
                        return false;
        if (*path)
                return below && !*pattern;
        return *pattern ? leads : below || !directory;
}

static const char *next_component(const char *path)
{
        const char *slash = strchr(path, '/');

        return slash ? slash + 1 : NULL;
}

static const char *last_component(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* What has HEAD, objects and refs is a repository to git, whatever its name, and its config is read by
 * whoever stands in it. */
static bool makes_repository(const char *path)
{
        return strcasecmp(last_component(path), "HEAD") == 0 && !strcasestr(path, ".git/");
}

const char *autorun_find(const char *path, FileType type)
{
        const char *at = path;

        do
                for (size_t i = 0; i < ELEMENTSOF(table); i++)
                        if (match_here(table[i].pattern, at, type == FILE_DIRECTORY))
                                return table[i].who;
        while ((at = next_component(at)));
        return makes_repository(path) ? "git" : NULL;
}

bool autorun_by_content(const char *path)
{
        return strcasecmp(last_component(path), ".gitattributes") == 0;
}

static bool is_space(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

/* gitattributes(5): "PATTERN ATTRIBUTE=VALUE…". A macro may name them too, so position does not matter. */
bool autorun_content(const char *data, size_t size)
{
        static const char *const words[] = { "filter", "diff", "merge", "textconv" };

        for (size_t i = 0; i < size; i++) {
                if (i > 0 && !is_space(data[i - 1]))
                        continue;
                for (size_t k = 0; k < ELEMENTSOF(words); k++) {
                        size_t length = strlen(words[k]);

                        if (size - i > length && strncasecmp(data + i, words[k], length) == 0 &&
                                        data[i + length] == '=')
                                return true;
                }
        }
        return false;
}
