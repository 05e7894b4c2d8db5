/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/caller.h"

#include <fcntl.h>
#include <pwd.h>

#include "base/number.h"
#include "sys/file.h"

#define PASSWD_LINE_MAX KIB(4)

void caller_clear(AuditCaller *caller)
{
        free(caller->login);
        free(caller->sudo_user);
        *caller = (AuditCaller){ 0 };
}

/* A uid in decimal; UNKNOWN for anything else, and for (uid_t) -1, which means none. */
static uint64_t parse_uid(const char *text)
{
        uint64_t value;

        if (!text || parse_u64(text, &value) < 0 || value >= UINT32_MAX)
                return UNKNOWN;
        return value;
}

/* From /etc/passwd itself: getpwuid(3) may ask the network, and a run must not wait for that. */
static int find_name(uint64_t uid, char **ret)
{
        FILE *file = fopen("/etc/passwd", "re");
        struct passwd row, *found;
        char buffer[PASSWD_LINE_MAX];
        int r = 0;

        while (file && !*ret && r == 0 && fgetpwent_r(file, &row, buffer, sizeof(buffer), &found) == 0)
                if (found->pw_uid == uid) {
                        *ret = strdup(found->pw_name);
                        r = *ret ? 0 : -ENOMEM;
                }
        if (file)
                (void) fclose(file);
        return r;
}

int caller_read(AuditCaller *ret)
{
        const char *sudo_user = getenv("SUDO_USER");
        char login[32] = "";
        int r;

        *ret = (AuditCaller){
                .uid = getuid(), .login_uid = UNKNOWN, .sudo_uid = parse_uid(getenv("SUDO_UID"))
        };
        if (file_read_at(AT_FDCWD, "/proc/self/loginuid", login, sizeof(login)) == 0)
                ret->login_uid = parse_uid(login);
        r = find_name(ret->login_uid != UNKNOWN ? ret->login_uid : ret->uid, &ret->login);
        if (r == 0 && sudo_user && ret->sudo_uid != UNKNOWN) {
                ret->sudo_user = strdup(sudo_user);
                r = ret->sudo_user ? 0 : -ENOMEM;
        }
        return r;
}
