/* SPDX-License-Identifier: Apache-2.0 */

/* qscope apply: shows what a job changed, asks, and brings it to the workspace. */

#include "cli/cli.h"

#include "base/number.h"
#include "cli/arguments.h"
#include "core/verdict.h"
#include "run/apply.h"

typedef struct ApplyArguments {
        ApplyOptions options;
        char **select;
        bool dry_run, yes, json, help, colour;
} ApplyArguments;

static int help(void)
{
        (void) puts("Usage: qscope apply [OPTIONS] RECEIPT.json\n\n"
                    "Brings what a job changed in its copy of the workspace to the workspace: the changes that were\n"
                    "agreed, of a run that passed. Shows them first and asks, on a terminal. Everything or nothing:\n"
                    "where the workspace has moved on since, nothing is changed; an interrupted apply is finished, or\n"
                    "taken back, by the next one of the same receipt. What the host would execute by itself (git hooks,\n"
                    "start-up files, editor tasks, CI workflows) is held back unless --select names it exactly.\n\n"
                    "  -n, --dry-run     show the changes and do nothing\n"
                    "  -y, --yes         do not ask; needed where there is no terminal\n"
                    "  --select PATH     only this path, or what is under it; may be repeated\n"
                    "  --force           whatever the verdict\n"
                    "  --rollback        take an interrupted apply back\n"
                    "  --json            one line of JSON\n"
                    "  --state-dir DIR   where the layer was kept (default: /var/lib/qscope)\n"
                    "  --help\n\n"
                    "Exit status: 0 all of it is there now; 1 something was held back, the rest is there; 2 bad usage, or\n"
                    "no receipt; 3 refused, nothing was changed; 4 the host could not; 130, 143 interrupted.");
        return 0;
}

static const Argument table[] = {
        { "--dry-run", ARGUMENT_SWITCH, offsetof(ApplyArguments, dry_run) },
        { "-n", ARGUMENT_SWITCH, offsetof(ApplyArguments, dry_run) },
        { "--yes", ARGUMENT_SWITCH, offsetof(ApplyArguments, yes) },
        { "-y", ARGUMENT_SWITCH, offsetof(ApplyArguments, yes) },
        { "--select", ARGUMENT_LIST, offsetof(ApplyArguments, select) },
        { "--force", ARGUMENT_SWITCH, offsetof(ApplyArguments, options.force) },
        { "--rollback", ARGUMENT_SWITCH, offsetof(ApplyArguments, options.rollback) },
        { "--json", ARGUMENT_SWITCH, offsetof(ApplyArguments, json) },
        { "--state-dir", ARGUMENT_VALUE, offsetof(ApplyArguments, options.state_dir) },
        { "--help", ARGUMENT_SWITCH, offsetof(ApplyArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(ApplyArguments, help) },
};

static int parse(char **argv, ApplyArguments *a, Error *e)
{
        int n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);

        if (n < 0 || a->help)
                return n;
        if (n != 1)
                return error_set(e, -EINVAL, n == 0 ? "which receipt?" : "one receipt at a time");
        a->options.receipt_path = argv[0];
        a->options.select = a->select;
        if (a->options.rollback && (a->select || a->dry_run))
                return error_set(e, -EINVAL, "--rollback goes with neither --select nor --dry-run");
        return 0;
}

/* --- showing --- */

#define SHOWN_MAX 1024

static const char *shown(const char *text, char buffer[static SHOWN_MAX])
{
        (void) text_excerpt(text, strlen(text), buffer, SHOWN_MAX);
        return buffer;
}

static const char *const kind_words[_CHANGE_MAX] = {
        [CHANGE_ADDED] = "added",
        [CHANGE_REMOVED] = "removed",
        [CHANGE_CHANGED] = "changed",
};

static void print_facts(const ApplyChange *change)
{
        const ApplyNode *before = &change->before, *after = &change->after;
        char size[FORMAT_MAX], target[SHOWN_MAX];

        if (before->exists && after->exists && before->type != after->type)
                (void) printf("  %s -> %s", file_type_names[before->type], file_type_names[after->type]);
        else if (after->exists && after->type == FILE_DIRECTORY)
                (void) fputs("  directory", stdout);
        if (after->exists && after->type == FILE_SYMLINK)
                (void) printf("  -> %s", shown(after->target, target));
        if (after->exists && after->type == FILE_REGULAR && change->content)
                (void) printf("  %s", format_bytes(after->size, size));
        if (before->exists && after->exists && before->type == after->type &&
                        before->mode != apply_mode(change) && after->type != FILE_SYMLINK)
                (void) printf("  mode %04o -> %04o", before->mode, apply_mode(change));
        else if (!before->exists && after->type == FILE_REGULAR && (apply_mode(change) & 0111))
                (void) fputs("  executable", stdout);
}

/* Held back, and comes by its exact name. */
static bool needs_name(const Apply *apply, size_t index)
{
        return apply_is_held(apply, index) && apply_plan(apply)->items[index].state != APPLY_UNABLE;
}

static void print_change(const Apply *apply, size_t index)
{
        const ApplyPlan *plan = apply_plan(apply);
        const ApplyChange *change = &plan->items[index];
        const ApplyCheck *check = apply_check(apply, index);
        char path[SHOWN_MAX];

        if (change->state == APPLY_UNSELECTED && !check->looked)
                return;
        (void) printf("  %-10s  %s",
                        check->found == FOUND_DONE        ? "is there"
                        : change->state != APPLY_SELECTED ? "held back"
                        : check->found == FOUND_CONFLICT  ? "CONFLICT"
                                                          : kind_words[change->kind],
                        shown(change->path, path));
        print_facts(change);
        if (needs_name(apply, index))
                (void) printf("  (%s; --select %s brings it)", change->why, path);
        else if (*change->why)
                (void) printf("  (%s)", change->why);
        if (change->state == APPLY_SELECTED && check->found == FOUND_CONFLICT)
                (void) printf("  %s", check->why);
        (void) fputc('\n', stdout);
}

static int print_diff(const ApplyArguments *a, const Apply *apply, size_t index)
{
        const ApplyChange *change = &apply_plan(apply)->items[index];
        _cleanup_(apply_diff_clear) ApplyDiff diff = { 0 };
        char path[SHOWN_MAX];
        int r = apply_diff(apply, change, a->colour, &diff);

        if (r < 0)
                return r;
        (void) shown(change->path, path);
        if (needs_name(apply, index))
                (void) printf("\n%s: held back: %s", path, change->why);
        if (diff.text)
                (void) printf("\n--- %s%s\n+++ %s%s\n%s", change->before.exists ? "a/" : "",
                                change->before.exists ? path : "/dev/null", change->after.exists ? "b/" : "",
                                change->after.exists ? path : "/dev/null", diff.text);
        else
                (void) printf("\n%s: no diff: %s\n", path, diff.why);
        return 0;
}

/* What may be brought by its name is for reading before, not for the question whether to apply the rest. */
static bool wants_diff(const ApplyArguments *a, const Apply *apply, size_t index)
{
        const ApplyChange *change = &apply_plan(apply)->items[index];
        bool todo = change->state == APPLY_SELECTED && apply_check(apply, index)->found == FOUND_TODO;

        return (todo || (a->dry_run && needs_name(apply, index))) && apply_has_diff(change);
}

static int show(const ApplyArguments *a, const Apply *apply, bool diffs)
{
        const ApplyPlan *plan = apply_plan(apply);
        char path[SHOWN_MAX], job[SHOWN_MAX];
        int r = 0;

        (void) printf("%s  job %s, verdict %s%s\n", shown(apply_workspace(apply), path),
                        shown(plan->job_id, job), apply_info(apply)->verdict,
                        streq(apply_info(apply)->verdict, "pass") ? "" : " (FORCED)");
        for (size_t i = 0; i < plan->n; i++)
                print_change(apply, i);
        for (size_t i = 0; r == 0 && diffs && i < plan->n; i++)
                if (wants_diff(a, apply, i))
                        r = print_diff(a, apply, i);
        return r < 0 ? r : fflush(stdout) != 0 ? -errno : 0;
}

/* --- deciding --- */

static bool confirm(const char *question)
{
        char answer[8];

        (void) printf("%s [y/N] ", question);
        (void) fflush(stdout);
        return fgets(answer, sizeof(answer), stdin) && (streq(answer, "y\n") || streq(answer, "yes\n"));
}

/* 0: go on; else the exit status. */
static int ask(const ApplyArguments *a, const Apply *apply)
{
        char question[128];
        Error e = ERROR_INIT;

        if (a->yes)
                return 0;
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
                error_set(&e, -EPERM, "there is no terminal to ask on: --yes applies it, --dry-run shows it");
                return cli_fail(EXIT_USAGE, &e);
        }
        (void) snprintf(question, sizeof(question), "%s%zu change%s?",
                        apply_is_undone(apply)    ? "Take back "
                        : apply_is_resumed(apply) ? "Finish the interrupted apply of "
                                                  : "Apply ",
                        apply_count(apply, FOUND_TODO), apply_count(apply, FOUND_TODO) == 1 ? "" : "s");
        if (confirm(question))
                return 0;
        (void) puts("nothing was changed");
        return EXIT_REFUSED;
}

/* --- telling --- */

static int add_paths(cJSON *object, const char *key, const Apply *apply, bool conflicts)
{
        const ApplyPlan *plan = apply_plan(apply);
        cJSON *list = json_add_array(object, key);

        for (size_t i = 0; list && i < plan->n; i++) {
                const ApplyChange *change = &plan->items[i];
                bool held = apply_is_held(apply, i);
                bool conflict = change->state == APPLY_SELECTED &&
                                apply_check(apply, i)->found == FOUND_CONFLICT;
                cJSON *item;

                if (!(conflicts ? conflict : held))
                        continue;
                item = json_add_object(list, NULL);
                if (!item || json_add_text(item, "path", change->path) < 0 ||
                                json_add_text(item, "why",
                                                conflict ? apply_check(apply, i)->why : change->why) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

static int print_json(const Apply *apply, const char *state, size_t changed, size_t already, bool removed)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        _cleanup_free_ char *line = NULL;

        if (object && json_add_text(object, "run_id", apply_plan(apply)->run_id) == 0 &&
                        json_add_text(object, "job_id", apply_plan(apply)->job_id) == 0 &&
                        json_add_text(object, "verdict", apply_info(apply)->verdict) == 0 &&
                        json_add_text(object, "workspace", apply_workspace(apply)) == 0 &&
                        json_add_text(object, "state", state) == 0 &&
                        json_add_u64(object, "changes", changed) == 0 &&
                        json_add_u64(object, "already", already) == 0 &&
                        add_paths(object, "held", apply, false) == 0 &&
                        add_paths(object, "conflicts", apply, true) == 0 &&
                        json_add_bool(object, "layer_removed", removed) == 0 &&
                        (apply_recorded(apply) > 0 ? json_add_null(object, "recorded")
                                                   : json_add_bool(object, "recorded",
                                                                     apply_recorded(apply) == 0)) == 0)
                line = json_print(object, false);
        return cli_put(line);
}

/* As a run is none the less for it. */
static void tell_unrecorded(const Apply *apply)
{
        if (apply_recorded(apply) < 0)
                (void) fprintf(stderr, "qscope: this is not recorded in the journal: %s\n",
                                strerror(-apply_recorded(apply)));
}

static int fail_by(int r, const Error *e)
{
        return cli_fail(r == -EINTR                                       ? 130
                        : r == -ESTALE || r == -EALREADY || r == -EBADMSG ? EXIT_REFUSED
                                                                          : EXIT_HOST,
                        e);
}

static int roll_back(const ApplyArguments *a, Apply *apply)
{
        Error e = ERROR_INIT;
        int r = apply_rollback(apply, &e);

        tell_unrecorded(apply);
        if (r < 0)
                return fail_by(r, &e);
        if (a->json)
                return print_json(apply, "rolled_back", 0, 0, false) < 0 ? EXIT_HOST : 0;
        (void) puts("taken back: the workspace is as it was before the interrupted apply");
        return 0;
}

static int refuse(const ApplyArguments *a, const Apply *apply)
{
        size_t n = apply_count(apply, FOUND_CONFLICT);
        Error e = ERROR_INIT;

        if (a->json)
                (void) print_json(apply, "refused", 0, apply_count(apply, FOUND_DONE), false);
        error_set(&e, -ESTALE,
                        "the workspace has moved on since the run: %zu conflict%s, nothing was changed%s; put back "
                        "what it had then, or bring the others by --select",
                        n, n == 1 ? "" : "s",
                        apply_is_resumed(apply)
                                        ? " now (an apply was interrupted here: --rollback takes back what can be)"
                                        : "");
        return cli_fail(EXIT_REFUSED, &e);
}

static int commit(const ApplyArguments *a, Apply *apply)
{
        size_t todo = apply_count(apply, FOUND_TODO), already = apply_count(apply, FOUND_DONE),
               held = apply_count_held(apply);
        bool undone = apply_is_undone(apply), removed = false;
        Error e = ERROR_INIT;
        int r = 0;

        if (todo > 0 || apply_is_resumed(apply))
                r = apply_commit(apply, &e);
        tell_unrecorded(apply);
        if (r < 0)
                return fail_by(r, &e);
        if (undone) {
                if (a->json)
                        (void) print_json(apply, "rolled_back", 0, 0, false);
                error_set(&e, -EALREADY,
                                "an interrupted apply was taken back first, and the workspace is as it was: "
                                "apply it again");
                return cli_fail(EXIT_REFUSED, &e);
        }
        r = apply_finish(apply, &removed, &e);
        if (r < 0)
                (void) cli_fail(EXIT_HOST, &e);
        if (a->json) {
                if (print_json(apply, "applied", todo, already, removed) < 0)
                        return EXIT_HOST;
        } else {
                (void) printf("%zu applied", todo);
                if (already > 0)
                        (void) printf(", %zu there already", already);
                if (held > 0)
                        (void) printf(", %zu held back", held);
                (void) puts(removed ? "" : "; the rest is still kept");
        }
        return held > 0 ? 1 : 0;
}

static int run(const ApplyArguments *a, Apply *apply)
{
        bool diffs = a->dry_run || (isatty(STDOUT_FILENO) && !a->yes);
        int r;

        if (a->options.rollback)
                return roll_back(a, apply);
        if (!streq(apply_info(apply)->verdict, verdict_names[VERDICT_PASS]))
                (void) fprintf(stderr, "qscope: FORCED: the verdict of this run is \"%s\", not \"pass\"\n",
                                apply_info(apply)->verdict);
        r = a->json ? 0 : show(a, apply, diffs);
        if (r < 0)
                return EXIT_HOST; /* what was not shown is not applied */
        if (apply_count(apply, FOUND_CONFLICT) > 0 && !apply_is_undone(apply))
                return refuse(a, apply);
        if (a->dry_run) {
                if (a->json)
                        r = print_json(apply, "dry_run", apply_count(apply, FOUND_TODO),
                                        apply_count(apply, FOUND_DONE), false);
                return r < 0 ? EXIT_HOST : 0;
        }
        r = apply_count(apply, FOUND_TODO) > 0 || apply_is_resumed(apply) ? ask(a, apply) : 0;
        return r != 0 ? r : commit(a, apply);
}

int cli_apply(_unused_ int argc, char **argv)
{
        ApplyArguments arguments = { .colour = cli_wants_colour() };
        _cleanup_(apply_freep) Apply *apply = NULL;
        Error e = ERROR_INIT;
        int r, status;

        if (parse(argv, &arguments, &e) < 0) {
                r = cli_usage("apply", "%s", e.text);
        } else if (arguments.help) {
                r = help();
        } else if (geteuid() != 0) {
                error_set(&e, -EPERM,
                                "apply must be run as root (sudo qscope apply …): what is kept of a run is root's");
                r = cli_fail(EXIT_HOST, &e);
        } else {
                r = apply_open(&arguments.options, &apply, &status, &e);
                r = r < 0 ? cli_fail(status, &e) : run(&arguments, apply);
        }
        strv_free(arguments.select);
        return r < 0 ? EXIT_HOST : r;
}
