/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host and of other jobs, rights on one's own, and what the diff reads. */
#include "escape.h"

#include <fcntl.h>
#include <limits.h>
#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static int read_path(const char *path)
{
        return read_token(path);
}

/* "/root/bed-escape", by a way up that ends at a root. */
static int read_dotdot(const char *path)
{
        char text[256] = "";

        for (int i = 0; i < 40; i++)
                (void) strcat(text, "../");
        (void) strncat(text, path + 1, sizeof(text) - strlen(text) - 1);
        return read_token(text);
}

static int read_target(const char *key)
{
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/" VICTIM_FILE, target(key));
        return read_token(path);
}

static int open_for_read(const char *path)
{
        char byte;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        return read(fd, &byte, 1) == 1 ? 0 : refused("read");
}

static int open_for_write(const char *path)
{
        return open(path, O_WRONLY | O_APPEND | O_CLOEXEC) < 0 ? refused("open") : 0;
}

static int write_target(const char *key)
{
        return open_for_write(target(key));
}

static int create_in(const char *directory)
{
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/bed-made", directory);
        if (open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0)
                return refused("open");
        return unlink(path) < 0 ? refused("unlink") : 0;
}

static int list_directory(const char *path)
{
        DIR *directory = opendir(path);
        struct dirent *entry;

        if (!directory)
                return refused("opendir");
        while ((entry = readdir(directory)))
                if (entry->d_name[0] != '.')
                        return 0;
        return without_effect("readdir");
}

/* It lies here or there. */
static int list_journal(const char *argument)
{
        (void) argument;
        return list_directory("/var/log/journal") == 0 ? 0 : list_directory("/run/log/journal");
}

/* Whether it lands on the host's disk only the test can say: it looks for the files. */
static int plant(const char *argument)
{
        int planted = 0;

        (void) argument;
        for (const char *const *place = victim_places; *place; place++) {
                char path[PATH_MAX];
                int fd;

                (void) snprintf(path, sizeof(path), "%s/bed-planted", *place);
                fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
                planted += fd >= 0 && write(fd, "x", 1) == 1;
        }
        return planted > 0 ? 0 : refused("open");
}

/* The same for a file that lies in the workspace: the job has it, the host must keep its own. */
static int overwrite(const char *path)
{
        int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        return write(fd, "forged\n", 7) == 7 ? 0 : refused("write");
}

static int open_by_handle(const char *path)
{
        struct {
                struct file_handle head;
                unsigned char bytes[MAX_HANDLE_SZ];
        } handle = { .head.handle_bytes = MAX_HANDLE_SZ };
        int mount_id, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        if (name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH) < 0)
                return refused("name_to_handle_at");
        return open_by_handle_at(fd, &handle.head, O_RDONLY | O_CLOEXEC) < 0 ? refused("open_by_handle_at")
                                                                             : 0;
}

/* --- rights --- */

static int make_file(const char *name, mode_t mode)
{
        (void) unlink(name);
        return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int has_mode(int fd, mode_t bit)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return refused("fstat");
        return st.st_mode & bit ? 0 : without_effect("fstat");
}

static int setuid_by_chmod(const char *argument)
{
        int fd = make_file("bed-setuid", 0755);

        (void) argument;
        if (fd < 0 || fchmod(fd, 04755) < 0)
                return refused("fchmod");
        return has_mode(fd, S_ISUID);
}

static int setgid_by_open(const char *argument)
{
        int fd = make_file("bed-setgid", 02755);

        (void) argument;
        return fd < 0 ? refused("open") : has_mode(fd, S_ISGID);
}

static int set_capability(const char *argument)
{
        struct vfs_cap_data data = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                .data[0].permitted = 1u << CAP_SYS_PTRACE };
        int fd = make_file("bed-capable", 0755);

        (void) argument;
        if (fd < 0 || fsetxattr(fd, "security.capability", &data, sizeof(data), 0) < 0)
                return refused("fsetxattr");
        return 0;
}

static int set_trusted(const char *argument)
{
        int fd = make_file("bed-trusted", 0644);

        (void) argument;
        return fd < 0 || fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) < 0 ? refused("fsetxattr") : 0;
}

/* To another user; to itself would be nothing. */
static int give_away(const char *argument)
{
        int fd = make_file("bed-given", 0644);

        (void) argument;
        return fd < 0 || fchown(fd, geteuid() == 0 ? 1 : 0, (gid_t) -1) < 0 ? refused("fchown") : 0;
}

/* Runs a program whose file gives rights, as an ordinary user. */
static int run_privileged(const char *key)
{
        char *const argv[] = { (char *) "powers", (char *) "powers", NULL }, *const env[] = { NULL };
        const char *path = target(key);

        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                return refused("setuid");
        /* The parent reads exit status 1 as a fault of the test: so a child, and wait. */
        pid_t pid = vfork();
        if (pid == 0) {
                (void) execve(path, argv, env);
                _exit(127);
        }
        siginfo_t info = { 0 };
        if (pid < 0 || waitid(P_PID, (id_t) pid, &info, WEXITED) < 0)
                return refused("vfork");
        return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : without_effect("execve");
}

/* --- what the diff reads: links into the host --- */

static int plant_link(const char *path)
{
        (void) unlink("bed-link");
        if (symlink(path, "bed-link") < 0)
                return refused("symlink");
        return read_token("bed-link");
}

static int plant_directory_link(const char *directory)
{
        (void) unlink("bed-directory");
        if (symlink(directory, "bed-directory") < 0)
                return refused("symlink");
        return read_token("bed-directory/" VICTIM_FILE);
}

/* A regular file and a link change places as long as the job lives, and longer. */
static int swap_link(const char *path)
{
        int fd = make_file("bed-swap", 0644);
        pid_t pid;

        (void) unlink("bed-swapped");
        if (fd < 0 || symlink(path, "bed-swapped") < 0)
                return refused("symlink");
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, 0);
                (void) alarm(5);
                for (;;)
                        (void) renameat2(AT_FDCWD, "bed-swap", AT_FDCWD, "bed-swapped", RENAME_EXCHANGE);
        }
        for (int i = 0; pid > 0 && i < 20000; i++)
                if (read_token("bed-swap") == 0)
                        return 0;
        return without_effect("read");
}

static int hard_link(const char *path)
{
        (void) unlink("bed-hard");
        if (link(path, "bed-hard") < 0)
                return refused("link");
        return read_token("bed-hard");
}

const Attempt file_attempts[] = {
        { "read-root", "reads a file in root's home", read_path, "/root/" VICTIM_FILE },
        { "read-home", "reads a file in a home", read_path, "/home/" VICTIM_FILE },
        { "read-srv", "reads a file of a service", read_path, "/srv/" VICTIM_FILE },
        { "read-var", "reads a file of the host's state", read_path, "/var/lib/" VICTIM_FILE },
        { "read-run", "reads a file in /run", read_path, "/run/" VICTIM_FILE },
        { "read-etc", "reads a file in /etc", read_path, "/etc/" VICTIM_FILE },
        { "read-opt", "reads a file in /opt", read_path, "/opt/" VICTIM_FILE },
        { "read-tmp", "reads a file in /tmp", read_path, "/tmp/" VICTIM_FILE },
        { "read-var-tmp", "reads a file in /var/tmp", read_path, "/var/tmp/" VICTIM_FILE },
        { "read-dotdot", "reads a file over ../../..", read_dotdot, "/root/" VICTIM_FILE },
        { "read-workspace", "reads in another workspace", read_target, "workspace" },
        { "read-shadow", "reads the passwords", open_for_read, "/etc/shadow" },
        { "list-journal", "lists the journal", list_journal, NULL },
        { "list-jobs", "lists what qscope keeps of jobs", list_directory, "/run/qscope" },
        { "open-by-handle", "opens a file by its number", open_by_handle, "/dev/shm" },
        { "write-usr", "makes a file in /usr/bin", create_in, "/usr/bin" },
        { "write-etc", "makes a file in /etc", create_in, "/etc" },
        { "write-var", "makes a file in /var/lib", create_in, "/var/lib" },
        { "write-passwd", "opens the list of users to write", open_for_write, "/etc/passwd" },
        { "write-program", "opens a program to write", open_for_write, "/usr/bin/env" },
        { "write-receipt", "opens another job's receipt to write", write_target, "receipt" },
        { "plant", "makes files that stay on the host", plant, NULL },
        { "overwrite", "overwrites a file of the real workspace", overwrite, "bed-original" },
        { "forge-receipt", "overwrites its own receipt, which lies in the workspace", overwrite,
                        "receipt.json" },
        { "setuid-chmod", "makes a program set-user-id", setuid_by_chmod, NULL },
        { "setgid-open", "creates a program that is set-group-id", setgid_by_open, NULL },
        { "set-capability", "gives a program a capability", set_capability, NULL },
        { "set-trusted", "sets an attribute of the overlay", set_trusted, NULL },
        { "give-away", "gives a file to another user", give_away, NULL },
        { "run-setuid", "runs a program that is set-user-id root", run_privileged, "setuid" },
        { "run-capable", "runs a program that has a capability", run_privileged, "capable" },
        { "diff-link", "leaves a link into the host to the diff", plant_link, "/root/" VICTIM_FILE },
        { "diff-directory", "leaves a link to a directory of the host", plant_directory_link, "/root" },
        { "diff-swap", "swaps a file and a link under the diff", swap_link, "/root/" VICTIM_FILE },
        { "diff-hard", "gives a file of the host a name in the workspace", hard_link, "/srv/" VICTIM_FILE },
        { NULL },
};
