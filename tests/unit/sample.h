/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A job, its plan and what was observed of it, for tests of what comes after a run: a command that passed, to
 * which each test adds what it is about. */

#include "core/receipt.h"
#include "core/sockets.h"

typedef struct Sample {
        Job job;
        Policy policy;
        Plan plan;
        Outcome *outcome;
} Sample;

/* "true" in /srv/work under the default policy: exit 0, nothing printed, nothing changed. */
void sample_init(Sample *sample);
void sample_done(Sample *sample);

/* These replace what the sample has. Lists end with NULL. */
#define sample_argv(sample, ...) sample_list(&(sample)->plan.argv, (const char *const[]){ __VA_ARGS__, NULL })
#define sample_allow(sample, ...)                                                                            \
        sample_list(&(sample)->plan.allow_changes, (const char *const[]){ __VA_ARGS__, NULL })
void sample_list(char ***list, const char *const *items);

void sample_exit(Sample *sample, int status);
void sample_signal(Sample *sample, int signal);
void sample_timeout(Sample *sample);
/* The command could not be executed; head may be NULL, mode 0: there is no such file. */
void sample_exec_error(Sample *sample, int error, const char *step, const char *resolved, unsigned mode,
                const char *head);
void sample_expect_exit(Sample *sample, int status);

/* Keeps at most head_max bytes of the start and tail_max of the end, as a capture does. */
void sample_stream(StreamRecord *stream, const void *data, size_t size, size_t head_max, size_t tail_max);
#define sample_text(stream, text) sample_stream(stream, text, strlen(text), 65536, 65536)

/* For CHANGE_CHANGED both sides are alike but for the content. */
FileChange *sample_change(Sample *sample, ChangeKind kind, const char *path, FileType type);
/* A process of the tree; valid until the next one. */
ProcessNode *sample_process(Sample *s, pid_t pid, pid_t ppid);
/* path, argument: NULL: unknown. */
void sample_program(Sample *s, ProcessNode *node, const char *path, const char *argument);
void sample_leftover(Sample *sample, pid_t pid, const char *comm);
/* A TCP socket of pid that listened at 0.0.0.0:port; left: it still did at the end. */
SocketRecord *sample_listening(Sample *sample, uint16_t port, pid_t pid, bool left);

/* address: IPv4 or IPv6; name and program may be NULL, pid 0: unknown. */
EgressRecord *sample_egress(Sample *sample, EgressProtocol protocol, const char *address, uint16_t port,
                const char *name, pid_t pid, const char *program);

/* Never NULL. */
Judgement *sample_judge(const Sample *sample);

#define _sample_ __attribute__((cleanup(sample_done)))
