/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/text.h"
#include "core/plan.h"
#include "sys/copy.h"
#include "sys/file.h"

#define INFO_NAME  "layer.json"
#define UNFINISHED ".new" /* ".RUN_ID.new": not there yet; ".RUN_ID.old": about to go */
#define GOING      ".old"
#define HIDDEN_MAX (RUN_ID_MAX + 8)
#define LOCK_TRIES 8

struct KeptWriter {
        int all_fd, fd;
        char run_id[RUN_ID_MAX];
        bool committed;
};

static bool is_run_id(const char *name)
{
        return strlen(name) == RUN_ID_MAX - 1 && strspn(name, "0123456789abcdef") == RUN_ID_MAX - 1;
}

static void hidden_name(const char *run_id, const char *suffix, char name[static HIDDEN_MAX])
{
        (void) snprintf(name, HIDDEN_MAX, ".%s%s", run_id, suffix);
}

static int open_directory(int dir_fd, const char *name)
{
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int kept_open_all(const char *state_dir, int *ret_fd)
{
        _cleanup_free_ char *path = text_printf("%s/" KEPT_DIR, state_dir);
        int fd = path ? open_directory(AT_FDCWD, path) : -ENOMEM;

        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}

/* --- writing --- */

KeptWriter *kept_writer_free(KeptWriter *writer)
{
        char hidden[HIDDEN_MAX];

        if (!writer)
                return NULL;
        if (writer->fd >= 0 && !writer->committed) {
                hidden_name(writer->run_id, UNFINISHED, hidden);
                (void) remove_tree_at(writer->all_fd, hidden);
        }
        safe_close(writer->fd);
        safe_close(writer->all_fd);
        free(writer);
        return NULL;
}

/* Somebody who tidies up may take it for a dead one until it is locked. */
static int make_locked(KeptWriter *writer)
{
        char hidden[HIDDEN_MAX];

        hidden_name(writer->run_id, UNFINISHED, hidden);
        for (unsigned i = 0; i < LOCK_TRIES; i++) {
                if (mkdirat(writer->all_fd, hidden, 0700) < 0)
                        return -errno;
                safe_close(writer->fd);
                writer->fd = open_directory(writer->all_fd, hidden);
                if (writer->fd < 0 && writer->fd != -ENOENT)
                        return writer->fd;
                if (writer->fd >= 0 && flock(writer->fd, LOCK_EX | LOCK_NB) >= 0 &&
                                faccessat(writer->all_fd, hidden, F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                        return 0;
        }
        return -EBUSY;
}

int kept_writer_new(const char *state_dir, const char *run_id, KeptWriter **ret)
{
        _cleanup_(kept_writer_freep) KeptWriter *writer = calloc(1, sizeof(*writer));
        _cleanup_free_ char *path = text_printf("%s/" KEPT_DIR, state_dir);
        int r;

        if (!writer || !path)
                return -ENOMEM;
        writer->all_fd = writer->fd = -EBADF;
        memcpy(writer->run_id, run_id, RUN_ID_MAX);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        r = kept_open_all(state_dir, &writer->all_fd);
        if (r == 0)
                r = make_locked(writer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(writer);
        return 0;
}

int kept_writer_add(KeptWriter *writer, int fd, const char *sha256, bool *ret_new)
{
        _cleanup_close_ int to = openat(
                        writer->fd, sha256, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        *ret_new = to >= 0;
        if (to < 0)
                return errno == EEXIST ? 0 : -errno;
        return copy_data(fd, to);
}

int kept_writer_commit(KeptWriter *writer, const char *info)
{
        char hidden[HIDDEN_MAX];
        int r = file_create_at(writer->fd, INFO_NAME, info, strlen(info), 0600);

        if (r < 0)
                return r;
        hidden_name(writer->run_id, UNFINISHED, hidden);
        if (renameat2(writer->all_fd, hidden, writer->all_fd, writer->run_id, RENAME_NOREPLACE) < 0)
                return -errno;
        writer->committed = true;
        return 0;
}

/* --- reading --- */

int kept_peek(int all_fd, const char *run_id, int *ret_fd)
{
        int fd = is_run_id(run_id) ? open_directory(all_fd, run_id) : -ENOENT;

        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}

int kept_open(int all_fd, const char *run_id, int *ret_fd)
{
        _cleanup_close_ int fd = -EBADF;
        int r = kept_peek(all_fd, run_id, &fd);

        if (r < 0)
                return r;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        /* Whoever had it until now may have removed it. */
        if (faccessat(all_fd, run_id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int kept_read_info(int layer_fd, const char *run_id, KeptInfo *ret, Error *e)
{
        _cleanup_free_ char *text = malloc(KEPT_FILE_MAX);
        int r;

        if (!text)
                return -ENOMEM;
        r = file_read_at(layer_fd, INFO_NAME, text, KEPT_FILE_MAX);
        if (r < 0)
                return error_errno(e, r, "the layer of run %s: " INFO_NAME, run_id);
        r = kept_info_parse(text, strlen(text), INFO_NAME, ret, e);
        if (r == 0 && !streq(ret->run_id, run_id)) {
                kept_info_clear(ret);
                r = error_set(e, -EINVAL, INFO_NAME ": is of another run");
        }
        return r < 0 ? error_prefix(e, r, "the layer of run %s", run_id) : 0;
}

int kept_open_content(int layer_fd, const char *sha256, int *ret_fd)
{
        _cleanup_close_ int fd = openat(layer_fd, sha256, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* First out of sight: half a layer must not be found under its name. */
int kept_remove(int all_fd, const char *run_id)
{
        char hidden[HIDDEN_MAX];

        hidden_name(run_id, GOING, hidden);
        if (renameat(all_fd, run_id, all_fd, hidden) < 0 && errno != ENOENT)
                return -errno;
        return remove_tree_at(all_fd, hidden);
}

/* What has a hidden name and no owner any more. */
static void remove_stale(int all_fd, const char *name)
{
        _cleanup_close_ int fd = -EBADF;
        size_t length = strlen(name);

        if (*name != '.' || length != RUN_ID_MAX + STRLEN(UNFINISHED))
                return;
        if (!streq(name + length - STRLEN(UNFINISHED), UNFINISHED) &&
                        !streq(name + length - STRLEN(GOING), GOING))
                return;
        fd = open_directory(all_fd, name);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) >= 0)
                (void) remove_tree_at(all_fd, name);
}

int kept_list(int all_fd, char ***ret)
{
        _cleanup_strv_ char **names = strv_new(0);
        int copy = open_directory(all_fd, "."), r = 0;
        struct dirent *entry;
        DIR *dir;

        if (copy < 0 || !names)
                return copy < 0 ? copy : -ENOMEM;
        dir = fdopendir(copy);
        if (!dir)
                return -errno;
        while (r == 0 && (entry = readdir(dir))) {
                if (is_run_id(entry->d_name))
                        r = strv_extend(&names, entry->d_name);
                else
                        remove_stale(all_fd, entry->d_name);
        }
        (void) closedir(dir);
        if (r == 0)
                *ret = TAKE_PTR(names);
        return r;
}
