/* SPDX-License-Identifier: Apache-2.0 */
/* Job × policy × caller → plan. All refusals are collected, so that a person sees them at once. */

#include "core/plan.h"

#include <fnmatch.h>

#include "core/plan_parts.h"

#define GRACE_USEC    (500 * USEC_PER_MSEC)
#define JOB_ID_DIGITS 12 /* of the run id, in a generated job id */

const char *layer_to_string(Layer layer)
{
        static const char *const names[_LAYER_MAX] = { "tmpfs", "image" };

        return layer < _LAYER_MAX ? names[layer] : NULL;
}

/* What cannot become a plan at all: faults of the caller, or of a job that was put together by hand. */
static int check_input(const Job *job, const PlanContext *context, Error *e)
{
        if (strlen(context->run_id) != RUN_ID_MAX - 1 ||
                        strspn(context->run_id, "0123456789abcdef") != RUN_ID_MAX - 1)
                return error_set(e, -EINVAL, "the run id must be 32 lower-case hexadecimal digits");
        if (!context->cwd || context->cwd[0] != '/' || !context->runtime_dir ||
                        context->runtime_dir[0] != '/' || !context->stage_path ||
                        context->stage_path[0] != '/')
                return error_set(e, -EINVAL,
                                "the caller's directory, the runtime directory and the stage need absolute "
                                "paths");
        if (!job->argv || !job->argv[0])
                return error_set(e, -EINVAL, "job.argv is missing: name the command to run");
        for (size_t i = 0; job->argv[i]; i++)
                if (!*job->argv[i])
                        return error_set(e, -EINVAL, "job.argv[%zu]: must not be an empty string", i);
        if (job->job_id && !job_id_is_valid(job->job_id))
                return error_set(e, -EINVAL,
                                "job.job_id: \"%.140s\" is not a job id (1 to 128 letters, digits, '.', "
                                "'_' or '-', the first a letter or digit)",
                                job->job_id);
        if (job->cwd && job->cwd[0] != '/')
                return error_set(e, -EINVAL, "job.cwd: must be an absolute path, is \"%.200s\"", job->cwd);
        return 0;
}

static int plan_names(Plan *plan, const PlanContext *context)
{
        const Job *job = plan->job;

        memcpy(plan->run_id, context->run_id, RUN_ID_MAX);
        plan->job_id = job->job_id ? strdup(job->job_id)
                                   : text_printf("job-%.*s", JOB_ID_DIGITS, plan->run_id);
        plan->service = text_printf(
                        "qscope-%s.%s", plan->run_id, plan->posture == POSTURE_BOUNDED ? "scope" : "service");
        plan->slice = text_printf("qscope-%s.slice", plan->run_id);
        plan->run_dir = text_printf("%s/%s", context->runtime_dir, plan->run_id);
        plan->root_dir = text_printf("%s/%s/root", context->runtime_dir, plan->run_id);
        plan->argv = strv_copy(job->argv);
        return plan->job_id && plan->service && plan->slice && plan->run_dir && plan->root_dir && plan->argv
                               ? 0
                               : -ENOMEM;
}

/* Only the name that was written: what is really executed is a matter of deny_exec. */
static int check_argv0(Plan *plan)
{
        const char *slash = strrchr(plan->argv[0], '/'), *base = slash ? slash + 1 : plan->argv[0];
        char **deny = plan->policy->deny_argv0;

        for (size_t i = 0; deny && deny[i]; i++)
                if (fnmatch(deny[i], base, FNM_CASEFOLD) == 0)
                        return reason_add(&plan->refusals, "denied_argv0",
                                        "job.argv[0]: \"%.80s\" is denied by the policy "
                                        "%s (\"%s\")",
                                        base, plan->policy->name, deny[i]);
        return 0;
}

static int check_exec_rules(Plan *plan)
{
        if (exec_rules_are_empty(&plan->policy->exec) || plan->posture != POSTURE_BOUNDED)
                return 0;
        return reason_add(&plan->refusals, "not_supported",
                        "policy.%s cannot be kept in the posture bounded, where a job works in the caller's own "
                        "files: use isolated",
                        plan->policy->exec.allow ? "allow_exec" : "deny_exec");
}

static int plan_network(Plan *plan)
{
        bool bounded = plan->posture == POSTURE_BOUNDED;

        plan->network = plan->job->network >= 0 ? plan->job->network : bounded ? NETWORK_HOST : NETWORK_NONE;
        if (bounded && plan->network != NETWORK_HOST)
                return reason_add(&plan->refusals, "not_supported",
                                "job.network: in the posture bounded a job shares the caller's network: leave "
                                "this out, or use the posture isolated");
        if (plan->policy->networks & (1u << plan->network))
                return 0;
        return reason_add(&plan->refusals, "network_refused",
                        "job.network: \"%s\" is not allowed by the policy %s",
                        network_to_string(plan->network), plan->policy->name);
}

static int plan_posture(Plan *plan)
{
        Posture asked = plan->job->posture >= 0 ? plan->job->posture : POSTURE_ISOLATED;

        plan->posture = asked;
        if (plan->policy->postures & (1u << asked))
                return 0;
        plan->posture = POSTURE_ISOLATED; /* so that no more is refused than what was asked too much */
        return reason_add(&plan->refusals, "posture_refused",
                        "job.posture: \"%s\" is not allowed by the policy %s", posture_to_string(asked),
                        plan->policy->name);
}

static int fill(Plan *plan, const PlanContext *context)
{
        int r = plan_posture(plan);

        if (r >= 0)
                r = plan_names(plan, context);
        if (r >= 0)
                r = check_argv0(plan);
        if (r >= 0)
                r = check_exec_rules(plan);
        if (r >= 0)
                r = plan_network(plan);
        if (r >= 0)
                r = plan_limits(plan);
        if (r >= 0)
                r = plan_workspace(plan, context);
        if (r >= 0)
                r = plan_env(plan, context);
        if (r >= 0)
                r = plan_home(plan, context);
        if (r >= 0)
                r = plan_properties(plan, context);
        return r;
}

int plan_make(const Job *job, const Policy *policy, const PlanContext *context, Plan **ret, Error *e)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        int r = check_input(job, context, e);

        if (r < 0)
                return r;
        plan = calloc(1, sizeof(Plan));
        if (!plan)
                return error_set(e, -ENOMEM, "out of memory");
        plan->job = job;
        plan->policy = policy;
        plan->grace_usec = GRACE_USEC;
        r = fill(plan, context);
        if (r == -ENOMEM)
                return error_set(e, r, "out of memory");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}

Plan *plan_free(Plan *plan)
{
        if (!plan)
                return NULL;
        free(plan->job_id);
        free(plan->service);
        free(plan->slice);
        free(plan->run_dir);
        free(plan->root_dir);
        strv_free(plan->argv);
        strv_free(plan->env);
        strv_free(plan->env_source);
        free(plan->cwd);
        free(plan->home);
        free(plan->passwd_home);
        strv_free(plan->shown);
        strv_free(plan->allow_changes);
        property_list_clear(&plan->service_properties);
        property_list_clear(&plan->slice_properties);
        reason_list_clear(&plan->refusals);
        free(plan);
        return NULL;
}
