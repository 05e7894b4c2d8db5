/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/root.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "core/egress.h"
#include "sys/file.h"

#define ETC_FILE_MAX MIB(4)

static const char *const skeleton[] = {
        "usr",
        "etc",
        "etc/default",
        "etc/ssl",
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "var/tmp",
        "var/lib",
        "home",
        "root",
};

/* Of a merged /usr these are links (file-hierarchy(7)); the root copies whatever the host has. */
static const char *const merged[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Files of the host that say nothing about its people: how to find libraries, names of protocols, the time
 * zone. */
static const char *const etc_files[] = {
        "ld.so.cache",
        "ld.so.conf",
        "localtime",
        "timezone",
        "debian_version",
        "os-release",
        "lsb-release",
        "protocols",
        "services",
        "rpc",
        "ethertypes",
        "mime.types",
        "locale.conf",
        "default/locale",
        "locale.alias",
        "magic",
        "magic.mime",
        "inputrc",
        "shells",
        "bash.bashrc",
        "ssl/openssl.cnf",
        "ca-certificates.conf",
        "gai.conf",
        "host.conf",
        "login.defs",
        "redhat-release",
        "papersize",
        "xattr.conf",
        "nanorc",
};

static int copy_link(int from_dir, int to_dir, const char *name)
{
        char target[4096];
        ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        return symlinkat(target, to_dir, name) < 0 && errno != EEXIST ? -errno : 0;
}

/* Missing ones are skipped: hosts differ. */
static int copy_etc_file(int from_dir, int to_dir, const char *name)
{
        _cleanup_free_ char *path = text_printf("/etc/%s", name), *data = NULL;
        struct stat st;
        size_t size;
        int r;

        if (!path)
                return -ENOMEM;
        if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        if (S_ISLNK(st.st_mode))
                return copy_link(from_dir, to_dir, name);
        if (!S_ISREG(st.st_mode))
                return 0;
        r = file_read(path, ETC_FILE_MAX, &data, &size, NULL);
        return r < 0 ? 0 : file_create_at(to_dir, name, data, size, 0644);
}

static int write_text(int dir, const char *name, char *text)
{
        int r = text ? file_create_at(dir, name, text, strlen(text), 0644) : -ENOMEM;

        free(text);
        return r;
}

/* The sink answers there. "search .": no name is asked for with the host's domain behind it. */
static int make_resolv(int etc, bool host_network)
{
        char *data = NULL;
        size_t size;

        if (host_network && file_read("/etc/resolv.conf", ETC_FILE_MAX, &data, &size, NULL) == 0)
                return write_text(etc, "resolv.conf", data);
        return write_text(etc, "resolv.conf",
                        text_printf("nameserver %s\nsearch .\noptions timeout:1 attempts:1\n",
                                        EGRESS_RESOLVER4));
}

static int copy_etc(int etc)
{
        _cleanup_close_ int host = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = host < 0 ? -errno : 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(etc_files); i++)
                r = copy_etc_file(host, etc, etc_files[i]);
        return r;
}

static int make_etc(int etc, const char *hostname, bool host_network)
{
        const char *name = hostname ? hostname : "localhost";
        int r = write_text(etc, "hostname", text_printf("%s\n", name));

        if (r == 0)
                r = write_text(etc, "hosts",
                                text_printf("127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
                                            "::1\tlocalhost ip6-localhost ip6-loopback\n",
                                                name));
        if (r == 0)
                r = write_text(etc, "nsswitch.conf",
                                strdup("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                                       "networks: files\nprotocols: files\nservices: files\nrpc: files\n"));
        if (r == 0)
                r = make_resolv(etc, host_network);
        /* Files in a workspace may belong to several people; git would refuse to look at them. */
        if (r == 0)
                r = write_text(etc, "gitconfig", strdup("[safe]\n\tdirectory = *\n"));
        if (r == 0 && symlinkat("/proc/self/mounts", etc, "mtab") < 0)
                r = -errno;
        return r;
}

static int make_merged_links(int root_fd, Error *e)
{
        _cleanup_close_ int host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (host < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(merged); i++) {
                struct stat st;
                int r;

                if (fstatat(host, merged[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (!S_ISLNK(st.st_mode))
                        return error_set(e, -EOPNOTSUPP,
                                        "/%s is not a link into /usr; a merged /usr is needed", merged[i]);
                r = copy_link(host, root_fd, merged[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int copy_system_links(int root_fd, int system_fd)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(merged); i++) {
                struct stat st;

                if (fstatat(system_fd, merged[i], &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISLNK(st.st_mode))
                        r = copy_link(system_fd, root_fd, merged[i]);
        }
        return r;
}

int root_make(int root_fd, int system_fd, char *const *directories, Error *e)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(skeleton); i++)
                r = mkdir_parents_at(root_fd, skeleton[i], 0755, 0, 0, NULL);
        for (size_t i = 0; r == 0 && directories && directories[i]; i++)
                r = mkdir_parents_at(root_fd, directories[i] + 1, 0755, 0, 0, NULL);
        if (r == 0)
                r = system_fd >= 0 ? copy_system_links(root_fd, system_fd) : make_merged_links(root_fd, e);
        if (r < 0 && e && e->text[0] == '\0')
                error_errno(e, r, "the job's root directory cannot be made");
        return r;
}

int root_fill(int root_fd, bool other_system, const char *hostname, bool host_network, Error *e)
{
        _cleanup_close_ int etc = openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = etc < 0 ? -errno : 0;

        if (r == 0 && !other_system)
                r = copy_etc(etc);
        if (r == 0)
                r = make_etc(etc, hostname, host_network);
        return r < 0 ? error_errno(e, r, "the job's /etc cannot be made") : 0;
}

int root_add_user(int root_fd, uid_t uid, gid_t gid, const char *home, Error *e)
{
        _cleanup_close_ int etc = openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = etc < 0 ? -errno : 0;

        if (r == 0)
                r = write_text(etc, "passwd",
                                text_printf("root:x:0:0:root:/root:/usr/sbin/nologin\n"
                                            "job:x:%u:%u:qscope job:%s:/bin/sh\n"
                                            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                                                uid, gid, home));
        if (r == 0)
                r = write_text(etc, "group",
                                text_printf("root:x:0:\ntty:x:5:\njob:x:%u:\nnogroup:x:65534:\n", gid));
        return r < 0 ? error_errno(e, r, "the job's /etc/passwd cannot be written") : 0;
}
