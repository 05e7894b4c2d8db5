/* SPDX-License-Identifier: Apache-2.0 */
/* The job as a value: its words, its names, its making and freeing. How it is read is in job_parse.c. */

#include "core/job.h"

#include "core/expect.h"

#define JOB_ID_MAX      128u
#define POLICY_NAME_MAX 64u

const char *const workspace_names[_WORKSPACE_MAX] = { "overlay", "fresh" };
const char *const network_names[_NETWORK_MAX] = { "none", "host" };
const char *const posture_names[_POSTURE_MAX] = { "isolated", "bounded" };

const char *workspace_to_string(Workspace w)
{
        return w >= 0 && w < _WORKSPACE_MAX ? workspace_names[w] : NULL;
}

const char *network_to_string(Network n)
{
        return n >= 0 && n < _NETWORK_MAX ? network_names[n] : NULL;
}

const char *posture_to_string(Posture p)
{
        return p >= 0 && p < _POSTURE_MAX ? posture_names[p] : NULL;
}

bool exit_set_contains(const ExitSet *set, int status)
{
        if (status < 0 || status > UINT8_MAX)
                return false;
        return set->any || (set->bits[status / 8] >> (status % 8)) & 1;
}

/* Begins with a letter or digit; then also the marks. */
static bool is_name(const char *text, size_t max, const char *marks)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

        if (*text == '\0' || strlen(text) > max || !strchr(plain, *text))
                return false;
        for (const char *p = text; *p; p++)
                if (!strchr(plain, *p) && !strchr(marks, *p))
                        return false;
        return true;
}

bool job_id_is_valid(const char *id)
{
        return is_name(id, JOB_ID_MAX, "._-");
}

bool policy_name_is_valid(const char *name)
{
        return is_name(name, POLICY_NAME_MAX, "_-");
}

Job *job_new(void)
{
        Job *job = calloc(1, sizeof(Job));

        if (!job)
                return NULL;
        job->workspace = _WORKSPACE_INVALID;
        job->network = _NETWORK_INVALID;
        job->posture = _POSTURE_INVALID;
        job->timeout_usec = UNKNOWN;
        job->limits = LIMITS_UNSET;
        job->expect.max_duration_usec = UNKNOWN;
        return job;
}

static void clear_input(JobInput *input)
{
        free(input->data);
        free(input->path);
}

Job *job_free(Job *job)
{
        if (!job)
                return NULL;
        free(job->job_id);
        strv_free(job->argv);
        free(job->cwd);
        for (size_t i = 0; i < job->n_files; i++) {
                free(job->files[i].path);
                clear_input(&job->files[i].input);
        }
        free(job->files);
        clear_input(&job->stdin_input);
        cJSON_Delete(job->expected_exit);
        strv_free(job->env_allowlist);
        strv_free(job->env);
        strv_free(job->allow_changes);
        expect_clear(&job->expect);
        free(job->policy);
        free(job->rationale);
        cJSON_Delete(job->meta);
        cJSON_Delete(job->extra);
        strv_free(job->given);
        strv_free(job->defaulted);
        free(job);
        return NULL;
}
