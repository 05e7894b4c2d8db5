/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/proc_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/number.h"
#include "sys/file.h"
#include "sys/proc.h"

#define FDINFO_MAX KIB(16)
#define TARGET_MAX (PATH_MAX + 64)

static bool is_memfd(const char *target)
{
        return startswith(target, "/memfd:") != NULL;
}

static const char *kind_of(const char *target, unsigned mode)
{
        if (startswith(target, "anon_inode:"))
                return "anon";
        if (S_ISREG(mode))
                return is_memfd(target) ? "memfd" : "file";
        if (S_ISDIR(mode))
                return "directory";
        if (S_ISFIFO(mode))
                return "pipe";
        if (S_ISSOCK(mode))
                return startswith(target, "socket:[") ? "socket" : "other";
        return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "other";
}

/* "socket:[4711]" */
static uint64_t socket_inode(const char *target)
{
        const char *digits = startswith(target, "socket:[");
        char text[32];
        uint64_t inode;

        if (!digits)
                return 0;
        (void) snprintf(text, sizeof(text), "%.*s", (int) MIN(strcspn(digits, "]"), sizeof(text) - 1),
                        digits);
        return parse_u64(text, &inode) < 0 ? 0 : inode;
}

/* A line "lock:" for each lock that is held through this descriptor. */
static bool holds_lock(int proc_fd, const char *name)
{
        char path[64], text[FDINFO_MAX];
        int r;

        (void) snprintf(path, sizeof(path), "fdinfo/%s", name);
        r = file_read_at(proc_fd, path, text, sizeof(text));
        /* Of a file, nothing but locks makes it long. */
        return r == -EMSGSIZE || (r == 0 && strstr(text, "\nlock:"));
}

static int look(int fds_fd, const char *name, ProcFd *ret)
{
        char target[TARGET_MAX];
        struct statx followed = { 0 };
        struct stat link;
        ssize_t n = readlinkat(fds_fd, name, target, sizeof(target) - 1);

        if (n < 0 || fstatat(fds_fd, name, &link, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        target[n] = '\0';
        /* Of what the kernel has in memory: a file system that hangs must not hang qscope. */
        (void) statx(fds_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_NLINK, &followed);
        ret->record.kind = kind_of(target, followed.stx_mode);
        ret->record.target = strdup(target);
        if (!ret->record.target)
                return -ENOMEM;
        ret->record.deleted = (S_ISREG(followed.stx_mode) || S_ISDIR(followed.stx_mode)) &&
                              (followed.stx_mask & STATX_NLINK) && followed.stx_nlink == 0 &&
                              !is_memfd(target);
        ret->record.writable = link.st_mode & S_IWUSR;
        ret->inode = socket_inode(target);
        return 0;
}

int proc_fds(pid_t pid, ProcFdBudget *budget, ProcFdHandler handler, void *userdata)
{
        _cleanup_close_ int proc_fd = -EBADF;
        struct dirent *entry;
        int fd, r = proc_open_dir(pid, &proc_fd);
        DIR *dir;

        if (r < 0)
                return r;
        fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                r = -errno;
                safe_close(fd);
                return r;
        }
        while (r >= 0 && (entry = readdir(dir))) {
                ProcFd found = { .record = { .pid = pid } };
                uint64_t number;

                if (parse_u64(entry->d_name, &number) < 0)
                        continue;
                if (budget->fds == 0) {
                        budget->exceeded = true;
                        break;
                }
                budget->fds--;
                found.record.fd = (int) number;
                r = look(dirfd(dir), entry->d_name, &found);
                if (r == -ENOMEM)
                        break;
                if (r < 0) { /* not there any more */
                        r = 0;
                        continue;
                }
                if (streq_ptr(found.record.kind, "file") && budget->locks > 0) {
                        budget->locks--;
                        found.locked = holds_lock(proc_fd, entry->d_name);
                }
                r = handler(userdata, &found);
                free(found.record.target);
        }
        (void) closedir(dir);
        return r < 0 ? r : 0;
}
