/* SPDX-License-Identifier: Apache-2.0 */
/* A job is read or refused with a sentence; what was read becomes a plan that can be shown. */

#include "fuzz.h"

#include "core/plan.h"

static const char policy_text[] =
                "{\"name\": \"fuzz\", \"deny_argv0\": [\"su*\"], \"network\": [\"none\", \"host\"], "
                "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}, "
                "\"max\": {\"limits\": {\"memory\": \"1G\"}}}";

static void check_plan(const Job *job)
{
        const PolicyText text = { .name = "policy", .text = policy_text, .size = sizeof(policy_text) - 1 };
        char *env[] = { (char *) "HOME=/root", (char *) "PATH=/bin", NULL };
        const PlanContext context = { .run_id = "00112233445566778899aabbccddeeff",
                .cwd = "/srv/x",
                .env = env,
                .runtime_dir = "/run/qscope",
                .stage_path = "/usr/lib/qscope/qscope-stage" };
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        _cleanup_free_ char *printed = NULL;
        Error e = ERROR_INIT;

        assert(policy_parse(&text, 1, &policy, &e) == 0);
        assert(plan_make(job, policy, &context, &plan, &e) ==
                        0); /* a job that was read can always be planned */
        json = plan_to_json(plan);
        printed = json ? json_print(json, true) : NULL;
        assert(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(job_freep) Job *job = NULL;
        Error e = ERROR_INIT;
        int r = job_parse((const char *) data, size, "input", &job, &e);

        assert(r == 0 || r == -EINVAL || r == -E2BIG);
        assert((r == 0) == (job != NULL) && (r == 0) == (e.text[0] == '\0'));
        if (job)
                check_plan(job);
        return 0;
}
