/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process_tree.h"

#include "base/array.h"
#include "base/text.h"

/* Threads of one process that wait in execve(2) at the same time; of more, the last ones. */
#define STARTS_MAX 4u
#define NOT_LISTED SIZE_MAX

const TreeBounds tree_bounds_default = {
        .processes = 10000,
        .runs = 64,
        .text_bytes = MIB(8),
        .live = 65536,
};

/* An execve(2) that was tried and is not decided yet. */
typedef struct Start {
        pid_t tid;
        uint64_t call;
        char name[16];
        bool script; /* the last file of it */
        ProgramRun run;
        uint64_t size; /* of its texts */
} Start;

/* How a process ended, as far as it is known before its last thread is gone. */
typedef enum EndKind {
        END_UNKNOWN,
        END_LEFT, /* the first thread's own exit: counts unless all are ended together */
        END_STATUS,
        END_SIGNAL,
} EndKind;

typedef struct Live {
        struct Live *next; /* in its bucket */
        pid_t pid, ppid;
        size_t node; /* NOT_LISTED: over the bound */
        size_t threads;
        EndKind end;
        int value;
        char *program;
        uint64_t call; /* the last execve(2) that counted, where nothing tells of its success */
        bool script;   /* the last file of it */
        Start starts[STARTS_MAX];
        size_t n_starts;
} Live;

#define BUCKETS 1024u

struct TreeBuilder {
        TreeBounds bounds;
        bool traced;
        ProcessTree tree;
        size_t room;
        uint64_t text_bytes;
        Live *buckets[BUCKETS];
        size_t n_live;
        TreeFinder finder;
        void *finder_data;
};

static void run_clear(ProgramRun *run)
{
        free(run->path);
        strv_free(run->argv);
        *run = (ProgramRun){ 0 };
}

static Live *live_free(Live *live)
{
        if (!live)
                return NULL;
        for (size_t i = 0; i < live->n_starts; i++)
                run_clear(&live->starts[i].run);
        free(live->program);
        free(live);
        return NULL;
}
DEFINE_CLEANUP(Live *, live_free)

TreeBuilder *tree_builder_free(TreeBuilder *builder)
{
        if (!builder)
                return NULL;
        for (size_t i = 0; i < BUCKETS; i++) {
                while (builder->buckets[i]) {
                        Live *live = builder->buckets[i];

                        builder->buckets[i] = live->next;
                        live_free(live);
                }
        }
        process_tree_clear(&builder->tree);
        free(builder);
        return NULL;
}

void tree_builder_set_finder(TreeBuilder *builder, TreeFinder finder, void *userdata)
{
        builder->finder = finder;
        builder->finder_data = userdata;
}

/* --- the processes that live now --- */

static Live **find_place(const TreeBuilder *builder, pid_t pid)
{
        Live **place = (Live **) &builder->buckets[(uint32_t) pid % BUCKETS];

        while (*place && (*place)->pid != pid)
                place = &(*place)->next;
        return place;
}

static Live *find(const TreeBuilder *builder, pid_t pid)
{
        return *find_place(builder, pid);
}

static void drop_start(TreeBuilder *builder, Live *live, size_t i);

static void forget(TreeBuilder *builder, pid_t pid)
{
        Live **place = find_place(builder, pid), *live = *place;

        if (!live)
                return;
        *place = live->next;
        builder->n_live--;
        while (live->n_starts > 0)
                drop_start(builder, live, live->n_starts - 1);
        live_free(live);
}

static ProcessNode *node_of(TreeBuilder *builder, const Live *live)
{
        return live->node == NOT_LISTED ? NULL : &builder->tree.items[live->node];
}

static const char *last_program(const ProcessNode *node)
{
        return node->n_runs > 0 ? node->runs[node->n_runs - 1].path : node->origin;
}

const char *tree_builder_program(const TreeBuilder *builder, pid_t pid)
{
        const Live *live = find(builder, pid);

        if (live)
                return live->program;
        for (size_t i = builder->tree.n; i > 0; i--)
                if (builder->tree.items[i - 1].pid == pid)
                        return last_program(&builder->tree.items[i - 1]);
        return NULL;
}

pid_t tree_builder_parent(const TreeBuilder *builder, pid_t pid)
{
        const Live *live = find(builder, pid);

        return live ? live->ppid : 0;
}

/* Listed, if there is room. */
static int add_node(TreeBuilder *builder, Live *live, uint64_t usec)
{
        ProcessTree *tree = &builder->tree;
        ProcessNode node = { .pid = live->pid,
                .ppid = live->ppid,
                .start_usec = usec,
                .end_usec = UNKNOWN,
                .exit_status = -1 };
        ProcessNode *items;

        tree->total++;
        live->node = NOT_LISTED;
        if (tree->n >= builder->bounds.processes) {
                tree->truncated = true;
                return 0;
        }
        items = array_grow(tree->items, tree->n, &builder->room, sizeof(ProcessNode));
        if (!items)
                return -ENOMEM;
        tree->items = items;
        node.origin = live->program ? strdup(live->program) : NULL;
        if (live->program && !node.origin)
                return -ENOMEM;
        live->node = tree->n;
        tree->items[tree->n++] = node;
        return 0;
}

/* usec UNKNOWN: it was there before anything of it was seen. *ret NULL: more live than can be told apart. */
static int add_live(TreeBuilder *builder, pid_t pid, pid_t ppid, uint64_t usec, Live **ret)
{
        _cleanup_(live_freep) Live *live = calloc(1, sizeof(Live));
        const Live *parent = find(builder, ppid);
        const char *program = parent ? parent->program : NULL;
        Live **place;
        int r;

        *ret = NULL;
        if (!live)
                return -ENOMEM;
        if (builder->n_live >= builder->bounds.live) {
                builder->tree.total++;
                builder->tree.lost++;
                builder->tree.truncated = true;
                return 0;
        }
        *live = (Live){ .pid = pid, .ppid = ppid, .threads = 1 };
        live->program = program ? strdup(program) : NULL;
        if (program && !live->program)
                return -ENOMEM;
        r = add_node(builder, live, usec);
        if (r < 0)
                return r;
        place = find_place(builder, pid);
        live->next = *place;
        *place = live;
        builder->n_live++;
        *ret = TAKE_PTR(live);
        return 0;
}

/* Who does something is there, whether its fork was seen or not. */
static int need(TreeBuilder *builder, pid_t pid, pid_t ppid, Live **ret)
{
        *ret = find(builder, pid);
        return *ret ? 0 : add_live(builder, pid, ppid, UNKNOWN, ret);
}

int tree_builder_new(const TreeBounds *bounds, bool traced, pid_t root, TreeBuilder **ret)
{
        _cleanup_(tree_builder_freep) TreeBuilder *builder = calloc(1, sizeof(*builder));
        Live *live;
        int r;

        if (!builder)
                return -ENOMEM;
        builder->bounds = *bounds;
        builder->traced = traced;
        r = add_live(builder, root, 0, 0, &live);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(builder);
        return 0;
}

/* --- programs --- */

static uint64_t text_size(const ProgramStart *start)
{
        uint64_t size = start->path ? strlen(start->path) + 1 : 0;

        for (size_t i = 0; start->argv && start->argv[i]; i++)
                size += strlen(start->argv[i]) + 1;
        return size;
}

/* Over the bound the arguments are left out, and said to be. */
static int copy_start(TreeBuilder *builder, const ProgramStart *start, Start *ret)
{
        bool room = builder->text_bytes + text_size(start) <= builder->bounds.text_bytes;

        *ret = (Start){ .tid = start->tid,
                .call = start->call,
                .script = start->is_script,
                .run = { .argv_cut = start->argv_cut, .usec = start->usec } };
        memcpy(ret->name, start->name, sizeof(ret->name));
        /* What was opened is not what was named: a part of a program that lies in no file that is watched. */
        if (start->path && start->is_program)
                ret->run.path = strdup(start->path);
        if (start->argv && room) {
                ret->run.argv = strv_copy(start->argv);
                ret->size = text_size(start);
        }
        if ((start->path && start->is_program && !ret->run.path) || (start->argv && room && !ret->run.argv)) {
                run_clear(&ret->run);
                ret->size = 0;
                return -ENOMEM;
        }
        builder->text_bytes += ret->size;
        if (start->argv && !room)
                ret->run.argv_cut = builder->tree.truncated = true;
        return 0;
}

static void start_clear(TreeBuilder *builder, Start *start)
{
        builder->text_bytes -= start->size;
        run_clear(&start->run);
        *start = (Start){ 0 };
}

/* The process runs this program now. Takes over what start holds, if it is listed. */
static int add_run(TreeBuilder *builder, Live *live, Start *start)
{
        ProcessNode *node = node_of(builder, live);
        const char *name = start->run.path ? start->run.path : start->name;
        ProgramRun *larger;

        builder->tree.programs++;
        free(live->program);
        live->program = *name ? strdup(name) : NULL;
        if (*name && !live->program)
                return -ENOMEM;
        if (!node || node->n_runs >= builder->bounds.runs) {
                builder->tree.truncated = true;
                return 0;
        }
        larger = reallocarray(node->runs, node->n_runs + 1, sizeof(ProgramRun));
        if (!larger)
                return -ENOMEM;
        node->runs = larger;
        node->runs[node->n_runs++] = start->run;
        *start = (Start){ 0 }; /* its texts stay counted */
        return 0;
}

static void drop_start(TreeBuilder *builder, Live *live, size_t i)
{
        start_clear(builder, &live->starts[i]);
        live->n_starts--;
        memmove(live->starts + i, live->starts + i + 1, (live->n_starts - i) * sizeof(Start));
}

static int start_without_trace(TreeBuilder *builder, Live *live, const ProgramStart *start)
{
        Start copy;
        int r;

        live->script = start->is_script;
        if (live->call == start->call)
                return 0; /* the interpreter or the loader of the same */
        live->call = start->call;
        r = copy_start(builder, start, &copy);
        if (r == 0)
                r = add_run(builder, live, &copy);
        start_clear(builder, &copy);
        return r;
}

bool tree_builder_knows(const TreeBuilder *builder, const ProgramStart *start)
{
        const Live *live = find(builder, start->pid);

        if (live && !builder->traced)
                return live->call == start->call && !live->script;
        for (size_t i = 0; live && i < live->n_starts; i++)
                if (live->starts[i].tid == start->tid && live->starts[i].call == start->call)
                        return !live->starts[i].script;
        return false;
}

int tree_builder_start(TreeBuilder *builder, const ProgramStart *start)
{
        Live *live;
        int r = need(builder, start->pid, start->ppid, &live);

        if (r < 0 || !live)
                return r;
        if (!builder->traced)
                return start_without_trace(builder, live, start);
        for (size_t i = 0; i < live->n_starts; i++) {
                if (live->starts[i].tid != start->tid)
                        continue;
                if (live->starts[i].call == start->call) {
                        live->starts[i].script = start->is_script;
                        return 0; /* the interpreter or the loader of the same */
                }
                drop_start(builder, live, i);
                break;
        }
        if (live->n_starts == STARTS_MAX)
                drop_start(builder, live, 0);
        r = copy_start(builder, start, &live->starts[live->n_starts]);
        if (r == 0)
                live->n_starts++;
        return r;
}

/* Which of the threads that wait in execve(2) it was. The others have ended by then and are gone from here,
 * where that was seen; else by name, else the last. */
static size_t choose_start(const Live *live, const char *name)
{
        size_t chosen = live->n_starts - 1;

        for (size_t i = 0; i < live->n_starts; i++)
                if (strncmp(live->starts[i].name, name, sizeof(live->starts[i].name)) == 0)
                        chosen = i;
        return chosen;
}

/* What lies in no file that is watched (a memfd) was not seen, or only its loader. */
static int find_unseen(TreeBuilder *builder, const TraceEvent *event, Start *start)
{
        _cleanup_strv_ char **argv = NULL;
        _cleanup_free_ char *path = NULL;
        ProgramStart found = { .usec = event->usec, .is_program = true };
        int r = 0;

        memcpy(found.name, event->name, sizeof(found.name));
        if (builder->finder && builder->finder(builder->finder_data, event->pid, &path, &argv)) {
                found.path = path;
                found.argv = start->run.argv ? start->run.argv : argv;
                found.argv_cut = start->run.argv_cut;
        }
        if (path || start->run.usec == 0) {
                Start copy;

                r = copy_start(builder, &found, &copy);
                start_clear(builder, start);
                *start = copy;
        }
        return r;
}

/* All other threads are gone now, and with them what they waited for. */
static int on_exec(TreeBuilder *builder, Live *live, const TraceEvent *event)
{
        Start unseen = { 0 },
              *start = live->n_starts > 0 ? &live->starts[choose_start(live, event->name)] : &unseen;
        int r = 0;

        live->end = END_UNKNOWN;
        if (!start->run.path)
                r = find_unseen(builder, event, start);
        if (r == 0)
                r = add_run(builder, live, start);
        start_clear(builder, &unseen);
        while (live->n_starts > 0)
                drop_start(builder, live, live->n_starts - 1);
        return r;
}

/* Also of a thread that ended while it waited: another one executed, or all were killed. */
static void on_failed(TreeBuilder *builder, Live *live, const TraceEvent *event)
{
        for (size_t i = 0; i < live->n_starts; i++) {
                if (live->starts[i].tid == event->tid) {
                        drop_start(builder, live, i);
                        return;
                }
        }
}

/* --- forks and ends --- */

static void end_process(TreeBuilder *builder, Live *live, uint64_t usec)
{
        ProcessNode *node = node_of(builder, live);

        if (node) {
                node->end_usec = usec;
                if (live->end == END_STATUS || live->end == END_LEFT)
                        node->exit_status = live->value;
                else if (live->end == END_SIGNAL)
                        node->exit_signal = live->value;
        }
        forget(builder, live->pid);
}

static int on_fork(TreeBuilder *builder, const TraceEvent *event)
{
        Live *live = find(builder, event->pid);

        /* Its number is somebody else's now: that it ended was missed. */
        if (live)
                end_process(builder, live, UNKNOWN);
        return add_live(builder, event->pid, event->ppid, event->usec, &live);
}

/* What ends all threads counts from then on: that the others meet a SIGKILL is its consequence. */
static void decide(Live *live, EndKind kind, int value)
{
        bool better = live->end < END_STATUS ||
                      (live->end == END_SIGNAL && live->value == 0 && kind == END_SIGNAL);

        if (!better)
                return;
        live->end = kind;
        live->value = value;
}

int tree_builder_trace(TreeBuilder *builder, const TraceEvent *event)
{
        Live *live;
        int r;

        if (event->kind == TRACE_FORK)
                return on_fork(builder, event);
        if (event->kind == TRACE_LISTEN || event->kind == TRACE_SEND || event->kind == TRACE_REFUSED)
                return 0;
        r = need(builder, event->pid, 0, &live);
        if (r < 0 || !live)
                return r;
        switch (event->kind) {
        case TRACE_THREAD:
                live->threads++;
                break;
        case TRACE_EXEC:
                return on_exec(builder, live, event);
        case TRACE_FAILED:
                on_failed(builder, live, event);
                break;
        case TRACE_STATUS:
                decide(live, END_STATUS, event->value);
                break;
        case TRACE_LEFT:
                decide(live, END_LEFT, event->value);
                break;
        case TRACE_SIGNAL:
                decide(live, END_SIGNAL, event->value);
                break;
        case TRACE_EXIT:
                on_failed(builder, live, event);
                if (--live->threads == 0)
                        end_process(builder, live, event->usec);
                break;
        case TRACE_FORK:
        case TRACE_LISTEN:
        case TRACE_SEND:
        case TRACE_REFUSED:
        case _TRACE_KIND_MAX:
                break;
        }
        return 0;
}

static uint64_t count_from(uint64_t usec, uint64_t released_usec)
{
        return usec == UNKNOWN ? UNKNOWN : usec > released_usec ? usec - released_usec : 0;
}

void tree_builder_finish(TreeBuilder *builder, uint64_t released_usec, ProcessTree *ret)
{
        /* A command that could not be executed was no process of the job. */
        if (builder->tree.total == 1 && builder->tree.n == 1 && builder->tree.programs == 0)
                process_tree_clear(&builder->tree);
        *ret = builder->tree;
        builder->tree = (ProcessTree){ 0 };
        ret->observed = builder->traced;
        for (size_t i = 0; i < ret->n; i++) {
                ProcessNode *node = &ret->items[i];

                node->start_usec = count_from(node->start_usec, released_usec);
                node->end_usec = count_from(node->end_usec, released_usec);
                for (size_t j = 0; j < node->n_runs; j++)
                        node->runs[j].usec = count_from(node->runs[j].usec, released_usec);
        }
        /* Nothing that lives refers to the tree any more. */
        for (size_t i = 0; i < BUCKETS; i++)
                for (Live *live = builder->buckets[i]; live; live = live->next)
                        live->node = NOT_LISTED;
}
