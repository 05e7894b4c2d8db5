/* SPDX-License-Identifier: Apache-2.0 */
#include "run/planning.h"

#include "run/load.h"
#include "run/rundir.h"
#include "sys/host.h"

void planning_clear(Planning *planning)
{
        plan_free(planning->plan);
        policy_free(planning->policy);
        free(planning->cwd);
        *planning = (Planning){ 0 };
}

/* The plan judged the workspace's path as it is written; links may lead elsewhere. (Once more when it is
 * opened.) */
static int judge_resolved_cwd(Planning *p)
{
        _cleanup_free_ char *real = NULL;
        Error e = ERROR_INIT;

        if (p->plan->refusals.n > 0 || p->plan->workspace != WORKSPACE_OVERLAY)
                return 0;
        real = realpath(p->plan->cwd, NULL);
        if (!real || workspace_path_check(p->policy, real, &e) == 0)
                return 0;
        return reason_add(&p->plan->refusals, "workspace_refused", "%s", e.text);
}

/* A job that is not confined is the caller's decision. A pipe, or a file that somebody else could write, may
 * come from a model, and would name any policy it likes. */
static int judge_policy_of_job(Planning *p, const Job *job, const char *policy)
{
        if (policy || !job->policy || job->own || p->plan->posture != POSTURE_BOUNDED)
                return 0;
        return reason_add(&p->plan->refusals, "posture_refused",
                        "job.policy: the policy %s gives the posture bounded, without a sandbox: only a job file that "
                        "is the caller's and that nobody else can write may ask for it; or name it yourself: "
                        "--policy %s",
                        p->policy->name, p->policy->name);
}

static int make(Job *job, const char *policy, uint64_t wait_usec, Planning *p, Error *e)
{
        PlanContext context = { .run_id = p->run_id,
                .env = environ,
                .runtime_dir = RUNTIME_DIR,
                .stage_path = QSCOPE_STAGE_PATH,
                .wait_usec = wait_usec };
        int r = load_policy(policy ? policy : job->policy ? job->policy : "default", &p->policy, e);

        if (r == 0)
                r = job_take_defaults(job, p->policy->job_defaults);
        if (r < 0)
                return r;
        r = host_random_id(p->run_id);
        if (r < 0)
                return error_errno(e, r, "random bytes");
        p->cwd = getcwd(NULL, 0);
        /* A directory that is gone is no workspace; "/" is refused as one, with a sentence. */
        context.cwd = p->cwd ? p->cwd : "/";
        r = plan_make(job, p->policy, &context, &p->plan, e);
        if (r == 0)
                r = judge_policy_of_job(p, job, policy);
        return r < 0 ? r : judge_resolved_cwd(p);
}

int planning_make(Job *job, const char *policy, uint64_t wait_usec, Planning *ret, Error *e)
{
        int r;

        *ret = (Planning){ 0 };
        r = make(job, policy, wait_usec, ret, e);
        if (r < 0)
                planning_clear(ret);
        if (r == -ENOMEM && e->text[0] == '\0')
                error_set(e, r, "out of memory");
        return MIN(r, 0);
}

char *planning_job_directory(const char *job_path)
{
        char *path, *slash;

        if (!job_path || streq(job_path, "-"))
                return NULL;
        path = realpath(job_path, NULL);
        slash = path ? strrchr(path, '/') : NULL;
        if (slash)
                *(slash == path ? slash + 1 : slash) = '\0';
        return path;
}
