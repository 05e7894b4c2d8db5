/* SPDX-License-Identifier: Apache-2.0 */
#include "run/may_run.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "run/watch_processes.h"
#include "sys/host.h"

/* What would take longer to read than a job can be made to wait is refused where its digest is asked for. */
#define HASHED_MAX MIB(256)
#define CHUNK      KIB(256)

bool may_run_is_asked(const Run *run)
{
        return !exec_rules_are_empty(&run->plan->policy->exec);
}

/* The dynamic loader as a part of the start of a program, which has been judged already. It lies where no job
 * can write; one that is started itself (ld.so PROGRAM) is a program like others, however it was named: a
 * descriptor (/proc/self/fd/3) has no name to compare. */
static bool is_loader(const ProgramStart *start, bool part, int fd)
{
        const char *slash = start->path ? strrchr(start->path, '/') : NULL;
        struct statvfs fs;

        return part && !start->is_program && slash && fnmatch("ld*.so*", slash + 1, 0) == 0 &&
               fstatvfs(fd, &fs) >= 0 && (fs.f_flag & ST_RDONLY);
}

/* Nobody else has a turn meanwhile, the deadline neither. */
static bool is_over(const Run *run)
{
        return now_monotonic() >= run->released_usec + run->plan->timeout_usec;
}

static bool hash_file(const Run *run, int fd, char hex[static HASH_HEX_MAX])
{
        _cleanup_free_ uint8_t *buffer = malloc(CHUNK);
        struct stat st;
        uint64_t offset = 0;
        ssize_t n = 1;
        Hash hash;

        if (!buffer || fstat(fd, &st) < 0 || (uint64_t) st.st_size > HASHED_MAX)
                return false;
        hash_init(&hash);
        while (n > 0 && offset <= HASHED_MAX && !is_over(run)) {
                n = pread(fd, buffer, CHUNK, (off_t) offset);
                if (n > 0)
                        hash_update(&hash, buffer, (size_t) n);
                offset += n > 0 ? (uint64_t) n : 0;
        }
        hash_finish(&hash, hex);
        return n == 0;
}

static void record(Run *run, const ProgramStart *start, const char *rule)
{
        const char *by = processes_program(run, start->pid);
        DeniedProgram denied = {
                .pid = start->pid,
                .by = (char *) by,
                .path = (char *) start->path,
                .argv = (char **) start->argv,
                .rule = (char *) rule,
                .usec = start->usec > run->released_usec ? start->usec - run->released_usec : 0,
        };

        if (denied_list_add(&run->outcome->denied, &denied) < 0)
                run_lose_evidence(run, "a refused program could not be recorded: out of memory");
}

bool may_run(Run *run, const ProgramStart *start, bool part, int fd)
{
        const ExecRules *rules = &run->plan->policy->exec;
        ExecAsked asked = { .path = start->path, .called = start->called };
        char sha256[HASH_HEX_MAX];
        const char *rule = NULL;
        ExecAnswer answer;

        if (!may_run_is_asked(run) || is_loader(start, part, fd))
                return true;
        answer = exec_rules_match(rules, &asked, &rule);
        if (answer == EXEC_NEEDS_HASH) {
                asked.sha256 = hash_file(run, fd, sha256) ? sha256 : NULL;
                /* It is killed now, and no rule was the reason. */
                if (!asked.sha256 && is_over(run))
                        return false;
                answer = exec_rules_match(rules, &asked, &rule);
        }
        if (answer == EXEC_ALLOWED)
                return true;
        record(run, start, rule);
        return false;
}
