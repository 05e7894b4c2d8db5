/* SPDX-License-Identifier: Apache-2.0 */
/* The plan for tools:
 *
 *   qscope.plan/v1 = { schema, job_id, run_id, policy {name, sha256}, posture, network,
 *     argv, cwd, workspace, home, env [{name, source}], timeout_sec, grace_ms, limits {key: number or null},
 *     units { slice {name, properties ["Name=value"…]}, service {…} (bounded: scope {…}) }, run_dir,
 *     root_dir, layer {type, bytes, inodes}, mounts [{path, source, mode}], files [{path, mode, bytes or
 *     source}], stdin, expected_exit, allow_changes (null: not judged), scratch_writes, expect [what is
 *     asked…], systemd_run [the nearest thing by hand, word by word], refusals [{code, message}] }
 *
 * A mount without a source hides what is there. Values of the environment and contents of files never appear.
 */

#include "core/plan_parts.h"

#include "core/plan_text.h"

static int add_seconds(cJSON *object, const char *key, uint64_t usec)
{
        return json_add(object, key, cJSON_CreateNumber((double) usec / (double) USEC_PER_SEC));
}

static int add_limits(cJSON *object, const Limits *limits)
{
        cJSON *to = json_add_object(object, "limits");
        int r = to ? 0 : -ENOMEM;

        for (size_t i = 0; i < _LIMIT_MAX && r >= 0; i++) {
                uint64_t value = limits->value[i];
                char text[64];

                if (value == LIMIT_UNLIMITED)
                        r = json_add_null(to, limit_table[i].key);
                else if (limit_table[i].unit == LIMIT_UNIT_CPU_RATE)
                        r = json_add_text(to, limit_table[i].key,
                                        plan_format_limit((LimitKind) i, value, text, sizeof(text)));
                else if (limit_table[i].unit == LIMIT_UNIT_SECONDS)
                        r = add_seconds(to, limit_table[i].key, value);
                else
                        r = json_add_u64(to, limit_table[i].key, value);
        }
        return r;
}

static int add_unit(cJSON *units, const char *key, const char *name, const PropertyList *list)
{
        cJSON *unit = json_add_object(units, key), *properties;
        int r = json_add_text(unit, "name", name);

        properties = json_add_array(unit, "properties");
        for (size_t i = 0; i < list->n && r >= 0; i++) {
                _cleanup_free_ char *value = property_format(&list->items[i]), *line = NULL;

                line = value ? text_printf("%s=%s", list->items[i].info->name, value) : NULL;
                r = line ? json_add_text(properties, NULL, line) : -ENOMEM;
        }
        return properties ? r : -ENOMEM;
}

static int add_units(cJSON *object, const Plan *plan)
{
        cJSON *units = json_add_object(object, "units");
        int r = add_unit(units, "slice", plan->slice, &plan->slice_properties);

        return r < 0 ? r
                     : add_unit(units, plan->posture == POSTURE_BOUNDED ? "scope" : "service", plan->service,
                                       &plan->service_properties);
}

static int add_env(cJSON *object, const Plan *plan)
{
        cJSON *list = json_add_array(object, "env");
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; plan->env[i] && r >= 0; i++) {
                cJSON *one = json_add_object(list, NULL);

                r = json_add_bytes(one, "name", plan->env[i], strcspn(plan->env[i], "="));
                if (r >= 0)
                        r = json_add_text(one, "source", plan->env_source[i]);
        }
        return r;
}

static int add_mount(cJSON *list, const char *path, const char *source, const char *mode)
{
        cJSON *one = json_add_object(list, NULL);
        int r = json_add_text(one, "path", path);

        if (r >= 0)
                r = json_add_text(one, "source", source);
        return r < 0 ? r : json_add_text(one, "mode", mode);
}

static int add_paths(cJSON *list, char *const *paths, const char *mode, bool sourced)
{
        int r = 0;

        for (size_t i = 0; paths && paths[i] && r >= 0; i++)
                r = add_mount(list, paths[i], sourced ? paths[i] : NULL, mode);
        return r;
}

/* The service's own binds are among its properties. */
int plan_add_mounts(cJSON *object, const Plan *plan)
{
        static const char *const scratch[] = { "/tmp", "/var/tmp", "/dev/shm" };
        cJSON *list = json_add_array(object, "mounts");
        bool overlay = plan->workspace == WORKSPACE_OVERLAY;
        int r = list ? 0 : -ENOMEM;

        if (plan->posture == POSTURE_BOUNDED)
                return r;
        if (r >= 0 && plan->policy->root)
                r = add_mount(list, "/", plan->policy->root, "read-only");
        if (r >= 0)
                r = add_paths(list, plan->shown, "read-only", true);
        for (size_t i = 0; i < ELEMENTSOF(scratch) && r >= 0; i++)
                if (!streq(plan->cwd, scratch[i]))
                        r = add_mount(list, scratch[i], "layer", "scratch");
        if (r >= 0 && plan->home)
                r = add_mount(list, plan->home, "layer", "scratch");
        if (r >= 0)
                r = add_mount(list, plan->cwd, overlay ? plan->cwd : "layer",
                                workspace_to_string(plan->workspace));
        if (r >= 0)
                r = add_paths(list, plan->policy->read_only_paths, "read-only", true);
        return r < 0 ? r : add_paths(list, plan->policy->hidden_paths, "hidden", false);
}

static int add_layer(cJSON *object, const Plan *plan)
{
        uint64_t bytes = plan->limits.value[LIMIT_DISK], inodes = plan->limits.value[LIMIT_INODES];
        cJSON *layer;
        int r;

        if (plan->posture == POSTURE_BOUNDED)
                return json_add_null(object, "layer");
        layer = json_add_object(object, "layer");
        r = json_add_text(layer, "type", layer_to_string(plan->layer));
        if (r >= 0)
                r = json_add_u64(layer, "bytes", bytes == LIMIT_UNLIMITED ? UNKNOWN : bytes);
        return r < 0 ? r : json_add_u64(layer, "inodes", inodes == LIMIT_UNLIMITED ? UNKNOWN : inodes);
}

static int add_input(cJSON *object, const JobInput *input)
{
        return input->path ? json_add_text(object, "source", input->path)
                           : json_add_u64(object, "bytes", input->size);
}

static int add_files(cJSON *object, const Job *job)
{
        cJSON *list = json_add_array(object, "files");
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; i < job->n_files && r >= 0; i++) {
                cJSON *one = json_add_object(list, NULL);
                char mode[16];

                (void) snprintf(mode, sizeof(mode), "%04o", job->files[i].mode);
                r = json_add_text(one, "path", job->files[i].path);
                if (r >= 0)
                        r = json_add_text(one, "mode", mode);
                if (r >= 0)
                        r = add_input(one, &job->files[i].input);
        }
        return r;
}

static int add_stdin(cJSON *object, const Job *job)
{
        cJSON *one;

        if (!job->has_stdin)
                return json_add_text(object, "stdin", "/dev/null");
        one = json_add_object(object, "stdin");
        return one ? add_input(one, &job->stdin_input) : -ENOMEM;
}

/* --- expectations: what is asked, by name --- */

static int add_stream_asks(cJSON *list, const char *name, const ExpectStream *stream)
{
        const struct {
                const char *what;
                bool asked;
        } asks[] = {
                { "equals", stream->equals != NULL },
                { "contains", stream->contains != NULL },
                { "matches", stream->matches != NULL },
                { "json", stream->json != NULL },
                { "sha256", stream->sha256 != NULL },
        };
        char text[64];

        for (size_t i = 0; i < ELEMENTSOF(asks); i++) {
                (void) snprintf(text, sizeof(text), "%s %s", name, asks[i].what);
                if (asks[i].asked && json_add_text(list, NULL, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_file_ask(cJSON *list, const ExpectFile *file)
{
        _cleanup_free_ char *text = text_printf("file %s%s%s%s", file->path,
                        file->exists == 0  ? " is absent"
                        : file->exists > 0 ? " exists"
                                           : "",
                        file->equals ? " equals" : "", file->sha256 ? " sha256" : "");

        return text ? json_add_text(list, NULL, text) : -ENOMEM;
}

static int add_expect(cJSON *object, const Expect *expect)
{
        cJSON *list = json_add_array(object, "expect");
        char text[64];
        int r = list ? add_stream_asks(list, "stdout", &expect->out) : -ENOMEM;

        if (r >= 0)
                r = add_stream_asks(list, "stderr", &expect->err);
        for (size_t i = 0; i < expect->n_files && r >= 0; i++)
                r = add_file_ask(list, &expect->files[i]);
        if (r >= 0 && expect->max_duration_usec != UNKNOWN) {
                (void) snprintf(text, sizeof(text), "duration at most %llu ms",
                                (unsigned long long) (expect->max_duration_usec / USEC_PER_MSEC));
                r = json_add_text(list, NULL, text);
        }
        if (r >= 0 && expect->allow_leftovers)
                r = json_add_text(list, NULL, "leftovers are allowed");
        for (size_t i = 0; i < expect->n_allow_listen && r >= 0; i++) {
                (void) snprintf(text, sizeof(text), "may listen on %u", expect->allow_listen[i]);
                r = json_add_text(list, NULL, text);
        }
        for (size_t i = 0; expect->allow_egress && expect->allow_egress[i] && r >= 0; i++) {
                _cleanup_free_ char *line = text_printf("may connect to %s", expect->allow_egress[i]);

                r = line ? json_add_text(list, NULL, line) : -ENOMEM;
        }
        return r;
}

static int add_judged(cJSON *object, const Plan *plan)
{
        const Job *job = plan->job;
        int r;

        r = json_add(object, "expected_exit",
                        job->expected_exit ? cJSON_Duplicate(job->expected_exit, true)
                                           : cJSON_CreateNumber(0));
        if (r >= 0)
                r = plan->allow_changes ? json_add_strv(object, "allow_changes", plan->allow_changes)
                                        : json_add_null(object, "allow_changes");
        if (r >= 0)
                r = json_add_text(
                                object, "scratch_writes", scratch_writes_names[plan->policy->scratch_writes]);
        return r < 0 ? r : add_expect(object, &job->expect);
}

static int add_refusals(cJSON *object, const ReasonList *refusals)
{
        cJSON *list = json_add_array(object, "refusals");
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; i < refusals->n && r >= 0; i++) {
                cJSON *one = json_add_object(list, NULL);

                r = json_add_text(one, "code", refusals->items[i].code);
                if (r >= 0)
                        r = json_add_text(one, "message", refusals->items[i].message);
        }
        return r;
}

static int add_policy(cJSON *object, const Policy *policy)
{
        cJSON *one = json_add_object(object, "policy");
        int r = json_add_text(one, "name", policy->name);

        return r < 0 ? r : json_add_text(one, "sha256", policy->sha256);
}

static int add_systemd_run(cJSON *object, const Plan *plan)
{
        _cleanup_strv_ char **words = NULL;
        int r = plan_systemd_run(plan, &words);

        return r < 0 ? r : json_add_strv(object, "systemd_run", words);
}

static int add_texts(cJSON *object, const Plan *plan)
{
        const struct {
                const char *key, *value;
        } texts[] = {
                { "posture", posture_to_string(plan->posture) },
                { "network", network_to_string(plan->network) },
                { "cwd", plan->cwd },
                { "workspace", workspace_to_string(plan->workspace) },
                { "home", plan->home },
                { "run_dir", plan->run_dir },
                { "root_dir", plan->root_dir },
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(texts) && r >= 0; i++)
                r = json_add_text(object, texts[i].key, texts[i].value);
        return r;
}

static int add_all(cJSON *object, const Plan *plan)
{
        if (json_add_text(object, "schema", "qscope.plan/v1") < 0 ||
                        json_add_text(object, "job_id", plan->job_id) < 0 ||
                        json_add_text(object, "run_id", plan->run_id) < 0 ||
                        add_policy(object, plan->policy) < 0 ||
                        json_add_strv(object, "argv", plan->argv) < 0 || add_texts(object, plan) < 0 ||
                        add_env(object, plan) < 0 ||
                        add_seconds(object, "timeout_sec", plan->timeout_usec) < 0 ||
                        json_add_u64(object, "grace_ms", plan->grace_usec / USEC_PER_MSEC) < 0 ||
                        add_limits(object, &plan->limits) < 0)
                return -ENOMEM;
        if (add_layer(object, plan) < 0 || plan_add_mounts(object, plan) < 0 ||
                        add_files(object, plan->job) < 0 || add_stdin(object, plan->job) < 0 ||
                        add_judged(object, plan) < 0 || add_units(object, plan) < 0 ||
                        add_systemd_run(object, plan) < 0 || add_refusals(object, &plan->refusals) < 0)
                return -ENOMEM;
        return 0;
}

cJSON *plan_to_json(const Plan *plan)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();

        if (!object || add_all(object, plan) < 0)
                return NULL;
        return TAKE_PTR(object);
}
