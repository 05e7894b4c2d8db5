/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons a verdict can have, and what a person does next about each. Codes are stable: scripts match
 * them, so a row may be added and its sentence improved, but a code never changes its meaning. */
#include "core/reason.h"

#include <stdarg.h>

#include "base/text.h"

/* A sentence may quote a path or an argument of the job; beyond this it is cut. */
#define REASON_MESSAGE_MAX 1024

static const ReasonInfo reason_table[] = {
        /* rejected: the policy refused it, nothing was started */
        { "denied_argv0", "Have the job do its work without this program, or run it under a policy "
                          "that allows it." },
        { "over_ceiling", "Ask for no more than the ceiling, or use a policy with a higher one." },
        { "limit_floor", "Raise the limit: below this value not even an empty command could be "
                         "started." },
        { "network_refused", "Set network to \"none\" and bring what the job would download in files "
                             "or the workspace." },
        { "posture_refused", "Leave out posture (isolated is the default), or use a policy that "
                             "allows this one." },
        { "workspace_refused", "Put the work into a directory of its own that the policy allows, and "
                               "name that as cwd." },
        { "env_refused", "Remove the variable from the job; if the command needs it, the policy has "
                         "to allow it." },
        { "not_supported", "Remove this from the job: this version or this host cannot enforce it, so "
                           "it will not pretend to." },

        /* fail: it ran, and something is not as agreed */
        { "exit_code", "Read stderr in the receipt; if this status is what you want, write it in "
                       "expected_exit." },
        { "signal", "Read stderr; a crash (SIGSEGV, SIGABRT) is the program's own, SIGKILL may be a "
                    "limit: see limits.hits." },
        { "timed_out", "Read what it printed so far; if it waits for the network or for input, change "
                       "the job, not the timeout." },
        { "denied_exec",
                        "See processes.denied for what was tried and by whom; have the job do without it, or use a "
                        "policy that allows it." },
        { "exec_failed", "Nothing was executed. Change argv or cwd as the hint says; do not install "
                         "anything on the host." },
        { "killed_by_limit", "See limits.hits for the counter; raise this limit in the job if the "
                             "need is real." },
        { "limit_hit", "The command may have gone on with incomplete results; raise this limit in the "
                       "job if the need is real." },
        { "leftover_process", "Have the command wait for its children, or set expect.allow_leftovers "
                              "if they are harmless." },
        { "listening", "Have the command stop its servers before it ends; ports that it may listen on go into "
                       "expect.allow_listen." },
        { "egress", "Bring what it would download in files or the workspace; if it may try and fail, name the "
                    "destination in expect.allow_egress." },
        { "unexpected_change", "Look at fs.unexpected; add the paths to allow_changes only if the job "
                               "should write them." },
        { "scratch_write", "Have the command keep its files in the workspace, name the place in "
                           "allow_changes, or use a policy whose scratch_writes is \"report\"." },
        { "expect_stdout", "Compare stdout in the receipt with what expect.stdout asks." },
        { "expect_stderr", "Compare stderr in the receipt with what expect.stderr asks." },
        { "expect_file", "Look at the file under fs in the receipt and compare it with what "
                         "expect.files asks." },
        { "expect_duration", "Compare usage and timing in the receipt; a busy host slows a job down too." },

        /* aborted */
        { "aborted", "The job is dead and nothing of it was kept. Run it again when you like." },

        /* error: qscope or the host could not run it, or could not establish what was asked */
        { "evidence_lost", "Run it again; if it happens again, lower what the job writes or starts, "
                           "and see blind_spots." },
        { "not_root", "Run qscope as root: sudo qscope ..." },
        { "no_systemd", "Run qscope on a host that was booted with systemd; `qscope doctor` tells "
                        "what is there." },
        { "systemd_too_old", "Use systemd 252 or newer (Debian 12 and later)." },
        { "cgroup_v1", "Boot with unified cgroups: systemd.unified_cgroup_hierarchy=1 on the kernel's "
                       "command line." },
        { "controller_missing", "Enable the cgroup controller on this host, or drop the limit that "
                                "needs it." },
        { "bus_unavailable", "Check that /run/systemd/private or the system bus can be reached, and "
                             "`systemctl status`." },
        { "start_refused", "systemd did not accept the unit: read its message, and `qscope plan` for "
                           "what was asked." },
        { "start_failed", "See `journalctl -u` with the unit's name from the receipt for what systemd "
                          "could not set up." },
        { "start_timeout", "systemd did not answer in time: see `systemctl list-jobs`, then run the "
                           "job again." },
        { "sandbox_failed", "See `journalctl -u` with the unit's name for the sandbox setting that "
                            "could not be applied." },
        { "isolation_missing", "See isolation in the receipt for the fact that does not hold; `qscope "
                               "doctor` tells what this host can do." },
        { "stage_failed", "Check that qscope is installed whole (qscope-stage beside it), then run "
                          "the job again." },
        { "workspace_failed", "Check that cwd exists and lies on a local file system that an overlay "
                              "can be put over." },
        { "layer_failed", "Check free space and loop devices on the host, or ask for a smaller disk "
                          "limit." },
        { "observers_failed", "`qscope doctor` tells what this host can observe; what it cannot is a blind "
                              "spot, but what fails half way is an error." },
        { "files_failed", "Check the paths, sources and sizes in the job's files." },
        { "stdin_failed", "Check that the file given as stdin exists and can be read by the caller." },
        { "stopped_outside",
                        "Somebody stopped the unit, or the system was going down: see `journalctl -u` with "
                        "the unit's name, then run the job again." },
        { "killed_outside", "Somebody on the host killed the process: ask who, then run the job again." },
        { "oomd_killed", "systemd-oomd found the host short of memory: see `oomctl`, then run the job again "
                         "with less beside it." },
        { "host_oom", "The job was within its own limit: run fewer jobs at once, or raise MemoryMax= of "
                      "qscope.slice if that was it." },
        { "receipt_failed", "Check that the receipt's directory exists and has space, or pass "
                            "--receipt." },
        { "internal", "This is a fault of qscope: please report it with the receipt." },
};

/* What each says of the command, and what to look at before acting: the decision table, for explain. */
static const ReasonMeaning meaning_table[] = {
        { "denied_argv0",
                        "The policy does not let this program be the job's command, and nothing was started.",
                        "Does the job need it at all, or was it proposed out of habit?" },
        { "over_ceiling", "The job asked for more than its policy gives to anybody, and nothing was started.",
                        "Is the wish the job's own need, or a number that somebody made up?" },
        { "limit_floor", "With this limit no command could have been started.", NULL },
        { "network_refused", "The job asked for the host's network, which its policy does not give.",
                        "What would it have fetched?" },
        { "posture_refused", "The job asked to be held less tightly than its policy allows.", NULL },
        { "workspace_refused",
                        "The job asked to work in a directory that is the system's, or that the policy does not give.",
                        "Was the command meant for another directory?" },
        { "env_refused", "The job asked for a variable that its policy never passes, such as a secret.",
                        "What would the command do with it?" },
        { "not_supported", "The job asked for something that cannot be kept here, and nothing was started.",
                        NULL },
        { "exit_code", "The command ran to its end and reported a status that was not agreed.",
                        "Is cwd the directory that the command was written for? Status 2 is often a wrong option, or a file that is not there." },
        { "signal", "The command did not end by itself: a signal ended it.",
                        "Is there a limit that was hit, or is it the program's own crash?" },
        { "timed_out", "The command did not end in its time. Often it waits for a download or for input that never comes.",
                        "Does argv want the network? See egress." },
        { "exec_failed",
                        "The command was never executed: it is not there, or is not what it was said to be. 127 often means that a tool was assumed which this system does not have.",
                        "Would `command -v` find argv[0] in the job's PATH? Does a script begin with #!?" },
        { "killed_by_limit", "A limit ended the command, or a part of it.",
                        "Does it need that much, or does it grow without end?" },
        { "limit_hit", "The kernel refused the command something at a limit, and the command went on.",
                        "Did it notice? It may have lost a part of its work." },
        { "leftover_process",
                        "Something still ran when the command had ended. It is dead now, but outside of qscope it would have stayed.",
                        "Should the command have had permission to start anything in the first place?" },
        { "listening", "A server was there that nobody had agreed to. It is closed now, but outside of qscope others could have reached it.",
                        "Is it part of what the command is for, or a back door?" },
        { "egress", "The command wanted to reach somebody. Nothing left the machine.",
                        "Which name and port did it want (egress), and for which program?" },
        { "scratch_write",
                        "The command wrote outside its workspace, to /tmp, /dev/shm or its home. It is gone with the run.",
                        "Is it a cache, or something that should outlive the command?" },
        { "stopped_outside", "Not the command ended, but somebody stopped its unit.", NULL },
        { "killed_outside", "Not the command, nor one of its limits: a process outside of the job killed it.",
                        NULL },
        { "oomd_killed",
                        "The host was short of memory, and systemd-oomd chose this job. Its own limit was not reached.",
                        NULL },
        { "host_oom", "The host, or all jobs together, were out of memory. The job's own limit was not reached.",
                        NULL },
        { "unexpected_change", "The command added, changed or removed files that it was not allowed to.",
                        "Is it a by-product (a cache, a log), or was a file replaced that others rely on?" },
        { "expect_stdout", "What it printed is not what was agreed.", NULL },
        { "expect_stderr", "What it printed to standard error is not what was agreed.", NULL },
        { "expect_file", "A file is not as was agreed.", NULL },
        { "expect_duration", "It took longer than was agreed.", NULL },
        { "aborted", "Somebody stopped qscope in the middle of the run.", NULL },
        { "evidence_lost",
                        "A part of what happened was not seen, so nothing can be said for the command's innocence.",
                        "Did the job flood the observers, or was the host short of memory?" },
        { "not_root", "Only root can have such a unit made.", NULL },
        { "no_systemd", "This host was not booted with systemd, which makes and holds the sandbox.", NULL },
        { "systemd_too_old", "This host's systemd lacks something that the isolation rests on.", NULL },
        { "cgroup_v1", "This host's control groups are of the old kind, in which a job cannot be held as a whole.",
                        NULL },
        { "controller_missing",
                        "The kernel's control for one of the job's limits is not there, and a limit that is not kept is none.",
                        NULL },
        { "bus_unavailable", "systemd could not be asked.", NULL },
        { "start_refused", "systemd would not make the job's unit. The command was not started.", NULL },
        { "start_failed", "systemd could not start the job's unit. The command was not started.", NULL },
        { "start_timeout", "systemd was asked for the job's unit and did not come back with it.", NULL },
        { "sandbox_failed", "A step of the sandbox failed. The command was not started.", NULL },
        { "isolation_missing",
                        "Something that should hold the command was seen not to be there, so it was never let go.",
                        "Was the host changed (kernel, systemd, container) since it last worked?" },
        { "stage_failed",
                        "The program that holds the command until the sandbox is complete did not do its part.",
                        NULL },
        { "workspace_failed", "The job's view of its workspace could not be made.", NULL },
        { "layer_failed", "The space that takes the job's writes could not be made.", NULL },
        { "observers_failed", "What was to watch the job broke before it was let go.", NULL },
        { "files_failed", "The job's own files could not be put into the workspace.", NULL },
        { "stdin_failed", "The job's standard input could not be opened.", NULL },
        { "receipt_failed",
                        "The receipt could not be written, and what cannot be shown afterwards did not happen as agreed.",
                        NULL },
        { "internal", "qscope did something that it should not.", NULL },
};

const ReasonInfo *reason_find(const char *code)
{
        for (size_t i = 0; code && i < ELEMENTSOF(reason_table); i++)
                if (streq(reason_table[i].code, code))
                        return &reason_table[i];
        return NULL;
}

const ReasonMeaning *reason_meaning(const char *code)
{
        for (size_t i = 0; code && i < ELEMENTSOF(meaning_table); i++)
                if (streq(meaning_table[i].code, code))
                        return &meaning_table[i];
        return NULL;
}

int reason_add(ReasonList *list, const char *code, const char *format, ...)
{
        const ReasonInfo *info = reason_find(code);
        char message[REASON_MESSAGE_MAX];
        _cleanup_free_ char *text = NULL;
        Reason *larger;
        va_list ap;

        assert(info);
        va_start(ap, format);
        (void) vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);
        text = text_escape_alloc(message, strlen(message));
        if (!text)
                return -ENOMEM;
        larger = reallocarray(list->items, list->n + 1, sizeof(Reason));
        if (!larger)
                return -ENOMEM;
        list->items = larger;
        list->items[list->n++] = (Reason){ .code = info->code, .message = TAKE_PTR(text) };
        return 0;
}

bool reason_has(const ReasonList *list, const char *code)
{
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].code, code))
                        return true;
        return false;
}

void reason_list_clear(ReasonList *list)
{
        for (size_t i = 0; i < list->n; i++)
                free(list->items[i].message);
        free(list->items);
        *list = (ReasonList){ 0 };
}
