/* SPDX-License-Identifier: Apache-2.0 */
/* The job's whole environment. Names in order of precedence: what the policy sets, what the job sets, what is
 * passed from the caller. Nothing else. */

#include "core/plan_parts.h"

#include <fnmatch.h>

/* The smaller wins. */
typedef enum Source { SOURCE_POLICY, SOURCE_JOB, SOURCE_DEFAULT, SOURCE_CALLER } Source;

static const char *const source_names[] = { "policy", "job", "policy", "caller" };

typedef struct Variable {
        const char *text; /* "NAME=value", borrowed */
        size_t name_length;
        Source source;
} Variable;

/* An agent's socket is never passed, whatever a policy says (the rule of the seed's receipt printer). Names
 * have case, and secrets lie in both: github_token, npm_config_authToken. */
static bool is_denied(const Policy *policy, const char *name)
{
        if (streq(name, "SSH_AUTH_SOCK"))
                return true;
        for (size_t i = 0; policy->env_deny && policy->env_deny[i]; i++)
                if (fnmatch(policy->env_deny[i], name, FNM_CASEFOLD) == 0)
                        return true;
        return false;
}

/* "NAME=value" of the caller where it is not empty, else NULL. */
static const char *find_caller(const PlanContext *context, const char *name)
{
        size_t length = strlen(name);

        for (size_t i = 0; context->env && context->env[i]; i++) {
                const char *text = context->env[i];

                if (strncmp(text, name, length) == 0 && text[length] == '=')
                        return text[length + 1] ? text : NULL;
        }
        return NULL;
}

static void add(Variable *variables, size_t *n, const char *text, Source source)
{
        const char *equals = strchr(text, '=');

        assert(equals);
        variables[(*n)++] =
                        (Variable){ .text = text, .name_length = (size_t) (equals - text), .source = source };
}

static int compare_names(const Variable *x, const Variable *y)
{
        int r = memcmp(x->text, y->text, MIN(x->name_length, y->name_length));

        if (r != 0)
                return r;
        return x->name_length == y->name_length ? 0 : x->name_length < y->name_length ? -1 : 1;
}

static int compare_variables(const void *a, const void *b)
{
        const Variable *x = a, *y = b;
        int r = compare_names(x, y);

        return r != 0 ? r : (int) x->source - (int) y->source;
}

static int take(Plan *plan, const Variable *variables, size_t n)
{
        size_t used = 0;

        plan->env = strv_new(n);
        plan->env_source = strv_new(n);
        if (!plan->env || !plan->env_source)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && compare_names(&variables[i - 1], &variables[i]) == 0)
                        continue; /* the same name from a weaker source, or listed twice */
                plan->env[used] = strdup(variables[i].text);
                plan->env_source[used] = strdup(source_names[variables[i].source]);
                if (!plan->env[used] || !plan->env_source[used])
                        return -ENOMEM;
                used++;
        }
        return 0;
}

/* What the policy sets is fixed. The value is not named: it may be a secret. */
static int check_fixed(Plan *plan)
{
        char **own = plan->job->env, **set = plan->policy->env_set;

        if (strv_contains(plan->job->defaulted, "env"))
                return 0;
        for (size_t i = 0; own && own[i]; i++)
                for (size_t j = 0; set && set[j]; j++) {
                        size_t length = strcspn(own[i], "=") + 1;

                        if (strncmp(own[i], set[j], length) != 0 || streq(own[i], set[j]))
                                continue;
                        if (reason_add(&plan->refusals, "env_refused",
                                            "job.env.%.*s: the policy %s sets this variable itself",
                                            (int) length - 1, own[i], plan->policy->name) < 0)
                                return -ENOMEM;
                }
        return 0;
}

int plan_env(Plan *plan, const PlanContext *context)
{
        const Job *job = plan->job;
        const Policy *policy = plan->policy;
        char **names = job->env_allowlist ? job->env_allowlist : policy->env_allow;
        _cleanup_free_ Variable *variables = NULL;
        size_t n = 0;

        variables = calloc(strv_length(names) + strv_length(policy->env_set) + strv_length(job->env) + 1,
                        sizeof(Variable));
        if (!variables)
                return -ENOMEM;
        for (size_t i = 0; names && names[i]; i++) {
                const char *text = is_denied(policy, names[i]) ? NULL : find_caller(context, names[i]);

                if (text)
                        add(variables, &n, text, SOURCE_CALLER);
        }
        for (size_t i = 0; policy->env_set && policy->env_set[i]; i++)
                add(variables, &n, policy->env_set[i], SOURCE_POLICY);
        for (size_t i = 0; job->env && job->env[i]; i++)
                add(variables, &n, job->env[i],
                                strv_contains(job->defaulted, "env") ? SOURCE_DEFAULT : SOURCE_JOB);
        if (check_fixed(plan) < 0)
                return -ENOMEM;
        qsort(variables, n, sizeof(Variable), compare_variables);
        return take(plan, variables, n);
}
