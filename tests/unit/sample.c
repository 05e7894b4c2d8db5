/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char *copy(const char *text)
{
        char *result = strdup(text);

        assert(result);
        return result;
}

void sample_list(char ***list, const char *const *items)
{
        strv_free(*list);
        *list = calloc(1, sizeof(char *));
        assert(*list);
        for (size_t i = 0; items[i]; i++)
                assert(strv_extend(list, items[i]) == 0);
}

static void init_plan(Sample *s)
{
        static const uint64_t limits[_LIMIT_MAX] = {
                [LIMIT_MEMORY] = MIB(512),
                [LIMIT_SWAP] = 0,
                [LIMIT_CPU] = 1500000,
                [LIMIT_TASKS] = 64,
                [LIMIT_CPU_TIME] = 10000000,
                [LIMIT_FILE_SIZE] = MIB(16),
                [LIMIT_OPEN_FILES] = 1024,
                [LIMIT_DISK] = MIB(64),
                [LIMIT_INODES] = LIMIT_UNLIMITED,
                [LIMIT_OUTPUT] = KIB(8),
        };
        Plan *plan = &s->plan;

        *plan = (Plan){
                .job = &s->job,
                .policy = &s->policy,
                .run_id = "0123456789abcdef0123456789abcdef",
                .job_id = copy("sample-1"),
                .service = copy("qscope-0123456789abcdef0123456789abcdef.service"),
                .slice = copy("qscope-0123456789abcdef0123456789abcdef.slice"),
                .cwd = copy("/srv/work"),
                .timeout_usec = 30 * USEC_PER_SEC,
        };
        memcpy(plan->limits.value, limits, sizeof(limits));
        sample_argv(s, "true");
        sample_list(&plan->env, (const char *const[]){ "HOME=/srv/work", "PATH=/usr/bin:/bin",
                                                "TOKEN=hunter2", NULL });
        sample_list(&plan->env_source, (const char *const[]){ "policy", "caller", "job", NULL });
}

static void init_outcome(Outcome *o)
{
        o->started_realtime_usec = UINT64_C(1756886400000003);
        o->finished_realtime_usec = UINT64_C(1756886401250000);
        o->duration_usec = 1234567;
        o->phase_usec[PHASE_START] = 36500;
        o->phase_usec[PHASE_RUN] = 1234567;
        for (size_t i = 0; i < _CHANGE_MAX; i++)
                o->changes.total[i] = 0;
        o->changes.scratch = 0;
        o->changes.complete = true;
        o->released = true;
        o->exec.error = 0;
        o->exec.resolved = copy("/usr/bin/true");
        o->exited = true;
        o->exit_status = 0;
        o->usage.cpu_usec = 1100000;
        o->usage.memory_peak_bytes = MIB(12) + KIB(512);
        series_add(&o->samples, 20 * USEC_PER_MSEC, MIB(4), 30 * USEC_PER_MSEC);
        series_add(&o->samples, 130 * USEC_PER_MSEC, MIB(12), UNKNOWN);
        o->usage.pids_peak = 3;
        o->host.kernel = copy("6.1.0");
        o->host.machine = copy("x86_64");
        sample_text(&o->out, "");
        sample_text(&o->err, "");
}

void sample_init(Sample *s)
{
        *s = (Sample){
                .job = { .expect.max_duration_usec = UNKNOWN },
                .policy = { .name = copy("default"), .sha256 = "00ff" },
                .outcome = outcome_new(),
        };
        assert(s->outcome);
        init_plan(s);
        init_outcome(s->outcome);
}

void sample_done(Sample *s)
{
        Plan *plan = &s->plan;

        free(plan->job_id);
        free(plan->service);
        free(plan->slice);
        free(plan->cwd);
        strv_free(plan->argv);
        strv_free(plan->env);
        strv_free(plan->env_source);
        strv_free(plan->allow_changes);
        reason_list_clear(&plan->refusals);
        free(s->policy.name);
        cJSON_Delete(s->job.expected_exit);
        cJSON_Delete(s->job.meta);
        cJSON_Delete(s->job.extra);
        cJSON_Delete(s->job.expect.out.json);
        outcome_free(s->outcome);
}

void sample_exit(Sample *s, int status)
{
        s->outcome->exit_status = status;
        s->outcome->exit_signal = 0;
}

void sample_signal(Sample *s, int signal)
{
        s->outcome->exit_status = -1;
        s->outcome->exit_signal = signal;
}

void sample_timeout(Sample *s)
{
        s->outcome->timed_out = true;
        s->outcome->duration_usec = s->plan.timeout_usec;
        sample_signal(s, SIGKILL);
}

void sample_exec_error(
                Sample *s, int error, const char *step, const char *resolved, unsigned mode, const char *head)
{
        ExecRecord *exec = &s->outcome->exec;

        free(exec->resolved);
        free(exec->step);
        *exec = (ExecRecord){ .error = error, .file_mode = mode, .step = copy(step) };
        exec->resolved = resolved ? copy(resolved) : NULL;
        exec->head_size = head ? MIN(strlen(head), sizeof(exec->head)) : 0;
        memcpy(exec->head, head ? head : "", exec->head_size);
        s->outcome->exited = false;
        s->outcome->exit_status = -1;
        s->outcome->duration_usec = UNKNOWN;
}

void sample_expect_exit(Sample *s, int status)
{
        cJSON_Delete(s->job.expected_exit);
        s->job.expected_exit = cJSON_CreateNumber(status);
        s->job.exits = (ExitSet){ 0 };
        s->job.exits.bits[status / 8] = (uint8_t) (1u << status % 8);
}

void sample_stream(StreamRecord *stream, const void *data, size_t size, size_t head_max, size_t tail_max)
{
        size_t head = MIN(size, head_max), tail = MIN(size - head, tail_max);

        free(stream->head);
        free(stream->tail);
        *stream = (StreamRecord){
                .bytes = size, .utf8 = utf8_is_valid(data, size), .head_size = head, .tail_size = tail
        };
        hash_data(data, size, stream->sha256);
        stream->head = malloc(head + 1);
        stream->tail = malloc(tail + 1);
        assert(stream->head && stream->tail);
        memcpy(stream->head, data, head);
        memcpy(stream->tail, (const char *) data + size - tail, tail);
}

FileChange *sample_change(Sample *s, ChangeKind kind, const char *path, FileType type)
{
        FileChanges *changes = &s->outcome->changes;
        FileNode node = { .type = type, .mode = 0644, .uid = 1000, .gid = 1000, .size = UNKNOWN };
        FileChange *change;

        changes->items = reallocarray(changes->items, changes->n + 1, sizeof(FileChange));
        assert(changes->items);
        change = &changes->items[changes->n++];
        *change = (FileChange){ .kind = kind, .path = copy(path) };
        if (type == FILE_REGULAR)
                node.size = 5;
        if (kind != CHANGE_ADDED)
                change->before = node;
        if (kind != CHANGE_REMOVED)
                change->after = node;
        if (kind == CHANGE_CHANGED) {
                change->what = CHANGED_CONTENT;
                change->after.size = 7;
        }
        changes->total[kind]++;
        return change;
}

void sample_leftover(Sample *s, pid_t pid, const char *comm)
{
        ProcessList *list = &s->outcome->leftovers;

        list->items = reallocarray(list->items, list->n + 1, sizeof(ProcessRecord));
        assert(list->items);
        list->items[list->n++] = (ProcessRecord){
                .pid = pid, .ppid = 1, .comm = copy(comm), .start_usec = UNKNOWN, .state = 'S'
        };
        list->total++;
}

SocketRecord *sample_listening(Sample *s, uint16_t port, pid_t pid, bool left)
{
        SocketList *list = &s->outcome->sockets.listening;
        SocketRecord record = {
                .family = AF_INET,
                .type = SOCK_STREAM,
                .protocol = IPPROTO_TCP,
                .local = { .family = AF_INET, .port = port },
                .state = 10,
                .inode = 4711,
                .pid = pid,
                .left = left,
                .program = copy("/usr/bin/python3.11"),
        };

        s->outcome->sockets.observed = true;
        assert(socket_list_add(list, &record) == 0);
        return &list->items[list->n - 1];
}

ProcessNode *sample_process(Sample *s, pid_t pid, pid_t ppid)
{
        ProcessTree *tree = &s->outcome->processes;

        tree->items = reallocarray(tree->items, tree->n + 1, sizeof(ProcessNode));
        assert(tree->items);
        tree->items[tree->n] = (ProcessNode){
                .pid = pid, .ppid = ppid, .start_usec = 1500 * tree->n, .end_usec = UNKNOWN, .exit_status = -1
        };
        tree->total++;
        tree->observed = tree->complete = true;
        return &tree->items[tree->n++];
}

void sample_program(Sample *s, ProcessNode *node, const char *path, const char *argument)
{
        ProgramRun *run;

        node->runs = reallocarray(node->runs, node->n_runs + 1, sizeof(ProgramRun));
        assert(node->runs);
        run = &node->runs[node->n_runs++];
        *run = (ProgramRun){ .path = path ? copy(path) : NULL, .usec = node->start_usec + 250 };
        if (argument)
                assert(strv_extend(&run->argv, argument) == 0);
        s->outcome->processes.programs++;
}

EgressRecord *sample_egress(Sample *s, EgressProtocol protocol, const char *address, uint16_t port,
                const char *name, pid_t pid, const char *program)
{
        EgressEvidence *egress = &s->outcome->egress;
        EgressRecord *record;

        egress->items = reallocarray(egress->items, egress->n + 1, sizeof(EgressRecord));
        assert(egress->items);
        record = &egress->items[egress->n++];
        *record = (EgressRecord){ .protocol = protocol,
                .remote = { .family = strchr(address, ':') ? AF_INET6 : AF_INET, .port = port },
                .name = name ? copy(name) : NULL,
                .pid = pid,
                .program = program ? copy(program) : NULL,
                .count = 1,
                .first_usec = 1500 };
        assert(inet_pton(record->remote.family, address, record->remote.address) == 1);
        egress->observed = true;
        egress->total++;
        return record;
}

Judgement *sample_judge(const Sample *s)
{
        Judgement *judgement = NULL;

        assert(judge(&s->plan, s->outcome, &judgement) == 0);
        assert(judgement);
        return judgement;
}
