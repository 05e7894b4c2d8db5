/* SPDX-License-Identifier: Apache-2.0 */
/* Where the workspace and the home are, lexically. Whether they exist is found out when the run is prepared.
 */

#include "core/plan_parts.h"

#include "base/path.h"

/* Here the host's own files would be the lower layer, or the job's root has something of its own. */
static const char *const system_trees[] = {
        "/proc",
        "/sys",
        "/dev",
        "/etc",
        "/run",
        "/boot",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
        "/usr/lib32",
        "/usr/lib64",
        "/usr/libx32",
        "/usr/libexec",
        STATE_DIR,
};
/* These only as such; below them may be a workspace. */
static const char *const system_directories[] = {
        "/",
        "/usr",
        "/var",
        "/home",
        "/var/lib",
        "/var/log",
        "/var/backups",
        "/var/spool",
        "/var/cache",
        "/var/mail",
};
/* Read-only or private in every job. */
static const char *const scratch_directories[] = { "/tmp", "/var/tmp" };

static const char *find_tree(const char *path, const PlanContext *context)
{
        for (size_t i = 0; i < ELEMENTSOF(system_trees); i++)
                if (path_is_within(path, system_trees[i]))
                        return system_trees[i];
        return path_is_within(path, context->runtime_dir) ? context->runtime_dir : NULL;
}

static bool is_listed(const char *path, const char *const *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (streq(path, list[i]))
                        return true;
        return false;
}

/* --- the workspace --- */

static int check_roots(Plan *plan)
{
        char **roots = plan->policy->workspace_roots;

        if (!roots)
                return 0;
        for (size_t i = 0; roots[i]; i++)
                if (path_is_within(plan->cwd, roots[i]))
                        return 0;
        return reason_add(&plan->refusals, "workspace_refused",
                        "job.cwd: %s does not lie below any of the policy's workspace_roots (the first is "
                        "%s)",
                        plan->cwd, roots[0] ? roots[0] : "none");
}

/* Root's home is shown to a job by whoever stands in it, not by a file that a model wrote. */
static bool is_others_home(const Plan *plan, const PlanContext *context)
{
        return plan->job->cwd && streq(plan->cwd, "/root") && !path_is_within(context->cwd, "/root");
}

static const char *find_hidden(const Policy *policy, const char *path)
{
        for (size_t i = 0; policy->hidden_paths && policy->hidden_paths[i]; i++)
                if (path_is_within(path, policy->hidden_paths[i]))
                        return policy->hidden_paths[i];
        return NULL;
}

static int check_cwd(Plan *plan, const PlanContext *context)
{
        const char *tree = find_tree(plan->cwd, context);

        if (is_others_home(plan, context))
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: /root itself holds keys and histories: choose a directory below it, or run "
                                "qscope from there");
        if (tree)
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: %s belongs to the system (%s): choose a directory of your own, or "
                                "workspace "
                                "\"fresh\"",
                                plan->cwd, tree);
        if (is_listed(plan->cwd, system_directories, ELEMENTSOF(system_directories)))
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: %s itself cannot be a workspace: choose a directory below it, or "
                                "workspace "
                                "\"fresh\"",
                                plan->cwd);
        if (plan->workspace == WORKSPACE_FRESH && path_is_within(plan->cwd, "/usr"))
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: %s lies below /usr, which is read-only in the job: choose another "
                                "place for a fresh "
                                "workspace, such as " PLAN_FRESH_CWD,
                                plan->cwd);
        if (plan->policy->root && path_is_within(plan->cwd, "/usr"))
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: %s lies below /usr, which is that of the policy's root: choose another "
                                "place",
                                plan->cwd);
        if (find_hidden(plan->policy, plan->cwd))
                return reason_add(&plan->refusals, "workspace_refused",
                                "job.cwd: %s lies in %s, which the policy %s hides", plan->cwd,
                                find_hidden(plan->policy, plan->cwd), plan->policy->name);
        /* A fresh workspace shows nothing of the host, wherever it seems to be. */
        return plan->workspace == WORKSPACE_FRESH ? 0 : check_roots(plan);
}

int workspace_path_check(const Policy *policy, const char *path, Error *e)
{
        bool inside = !policy->workspace_roots;

        for (size_t i = 0; i < ELEMENTSOF(system_trees); i++)
                if (path_is_within(path, system_trees[i]))
                        return error_set(e, -EPERM, "job.cwd leads to %s, which belongs to the system", path);
        if (is_listed(path, system_directories, ELEMENTSOF(system_directories)))
                return error_set(e, -EPERM, "job.cwd leads to %s, which cannot be a workspace", path);
        if (find_hidden(policy, path))
                return error_set(e, -EPERM, "job.cwd leads to %s, which the policy hides", path);
        for (size_t i = 0; !inside && policy->workspace_roots[i]; i++)
                inside = path_is_within(path, policy->workspace_roots[i]);
        return inside ? 0
                      : error_set(e, -EPERM, "job.cwd leads to %s, outside the policy's workspace_roots",
                                        path);
}

static int refuse_cwd_text(Plan *plan, const char *cwd, int error)
{
        plan->cwd = strdup(PLAN_FRESH_CWD); /* so that the plan can still be shown */
        if (!plan->cwd)
                return -ENOMEM;
        return reason_add(&plan->refusals, "workspace_refused", "job.cwd: %.200s %s", cwd,
                        error == -ENAMETOOLONG ? "is longer than a path or a file name can be"
                                               : "contains \"..\": write the path without it");
}

/* The allowed changes as absolute paths; they may lie outside the workspace (/tmp/…). */
static int plan_allow_changes(Plan *plan)
{
        char **from = plan->job->allow_changes ? plan->job->allow_changes
                                               : plan->policy->default_allow_changes;
        size_t n = strv_length(from);

        if (!from)
                return 0;
        plan->allow_changes = strv_new(n);
        if (!plan->allow_changes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *joined = path_join(plan->cwd, from[i]);
                int r = joined ? path_normalise(joined, &plan->allow_changes[i]) : -ENOMEM;

                if (r == -ENOMEM)
                        return r;
                if (r < 0) /* only from a job that was not read from a file, or too long when joined */
                        plan->allow_changes[i] = TAKE_PTR(joined);
        }
        return 0;
}

/* What the posture bounded cannot do, since the job works in the caller's own files: each would have to be
 * judged by a layer that is not there. */
static int refuse_layer_keys(Plan *plan)
{
        const struct {
                const char *key;
                bool given;
        } keys[] = {
                { "job.workspace: \"fresh\"", plan->workspace == WORKSPACE_FRESH },
                { "job.files", plan->job->n_files > 0 },
                { "allow_changes", plan->allow_changes != NULL },
                { "the policy's scratch_writes: \"fail\"", plan->policy->scratch_writes == SCRATCH_FAIL },
                { "policy.root", plan->policy->root != NULL },
                { "policy.hidden_paths", strv_length(plan->policy->hidden_paths) > 0 },
                { "policy.read_only_paths", strv_length(plan->policy->read_only_paths) > 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (keys[i].given &&
                                reason_add(&plan->refusals, "not_supported",
                                                "%s is not possible in the posture bounded, where a job works in "
                                                "the caller's own files: leave it out, or use isolated",
                                                keys[i].key) < 0)
                        return -ENOMEM;
        return check_roots(plan);
}

int plan_workspace(Plan *plan, const PlanContext *context)
{
        const Job *job = plan->job;
        const char *cwd;
        int r;

        plan->workspace = job->workspace >= 0             ? job->workspace
                          : !job->cwd && job->n_files > 0 ? WORKSPACE_FRESH
                                                          : WORKSPACE_OVERLAY;
        cwd = job->cwd ? job->cwd : plan->workspace == WORKSPACE_FRESH ? PLAN_FRESH_CWD : context->cwd;
        r = path_normalise(cwd, &plan->cwd);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                r = refuse_cwd_text(plan, cwd, r);
        else if (plan->posture != POSTURE_BOUNDED)
                r = check_cwd(plan, context);
        if (r >= 0)
                r = plan_allow_changes(plan);
        return r < 0 || plan->posture != POSTURE_BOUNDED ? r : refuse_layer_keys(plan);
}

/* --- the home --- */

/* The value of HOME in the job's environment where a home can be, normalised, else NULL in *ret. */
static int usable_home(const Plan *plan, const PlanContext *context, char **ret)
{
        _cleanup_free_ char *home = NULL;
        const char *value = NULL;
        int r;

        for (size_t i = 0; plan->env && plan->env[i] && !value; i++)
                value = startswith(plan->env[i], "HOME=");
        if (!value || value[0] != '/')
                return 0;
        r = path_normalise(value, &home);
        if (r == -ENOMEM)
                return r;
        /* It becomes a field of the job's /etc/passwd. */
        for (const char *p = home; r == 0 && *p; p++)
                if (*p == ':' || (unsigned char) *p < ' ' || *p == 0x7f)
                        return 0;
        if (r < 0 || find_tree(home, context) || path_is_within(home, "/usr") ||
                        is_listed(home, system_directories, ELEMENTSOF(system_directories)))
                return 0;
        *ret = TAKE_PTR(home);
        return 0;
}

int plan_home(Plan *plan, const PlanContext *context)
{
        int r;

        if (plan->posture == POSTURE_BOUNDED)
                return 0;
        r = usable_home(plan, context, &plan->passwd_home);
        if (r < 0)
                return r;
        if (!plan->passwd_home)
                plan->passwd_home = strdup(PLAN_SCRATCH_HOME);
        if (!plan->passwd_home)
                return -ENOMEM;
        /* In the workspace, or a scratch directory by itself: there is nothing to mount. */
        if (path_is_within(plan->passwd_home, plan->cwd) ||
                        is_listed(plan->passwd_home, scratch_directories, ELEMENTSOF(scratch_directories)))
                return 0;
        plan->home = strdup(plan->passwd_home);
        return plan->home ? 0 : -ENOMEM;
}
