/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_text.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "core/plan_parts.h"

#define LINE_WIDTH 100

/* --- systemd-run --- */

/* What systemd-run has an option for, what only a stage at a gate needs, and what differs by hand. */
static const char *const not_by_hand[] = {
        "BindReadOnlyPaths",
        "CPUAccounting",
        "CollectMode",
        "Description",
        "ExitType",
        "IOAccounting",
        "IgnoreSIGPIPE",
        "KillMode",
        "KillSignal",
        "LogExtraFields",
        "MemoryAccounting",
        "MountAPIVFS",
        "OOMPolicy",
        "RemainAfterExit",
        "RootDirectory",
        "RuntimeMaxSec",
        "Slice",
        "StandardError",
        "StandardInput",
        "StandardOutput",
        "TasksAccounting",
        "TimeoutStartSec",
        "TimeoutStopSec",
        "Type",
};

static bool is_by_hand(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(not_by_hand); i++)
                if (streq(not_by_hand[i], name))
                        return false;
        return true;
}

static int add_property_words(const Plan *plan, char ***words)
{
        const PropertyList *list = &plan->service_properties;
        int r = 0;

        for (size_t i = 0; i < list->n && r == 0; i++) {
                const char *name = list->items[i].info->name;
                _cleanup_free_ char *value = NULL;

                if (!is_by_hand(name))
                        continue;
                value = property_format(&list->items[i]);
                r = value ? strv_extendf(words, "--property=%s=%s", name, value) : -ENOMEM;
        }
        return r;
}

static int add_path_words(const Plan *plan, char ***words)
{
        const Policy *policy = plan->policy;
        char **shown = policy->read_only_paths, **hidden = policy->hidden_paths;
        int r = 0;

        if (policy->root)
                r = strv_extendf(words, "--property=RootDirectory=%s", policy->root);
        if (r == 0)
                r = strv_extendf(words, "--property=%s=%s",
                                plan->workspace == WORKSPACE_OVERLAY ? "BindReadOnlyPaths"
                                                                     : "TemporaryFileSystem",
                                plan->cwd);
        for (size_t i = 0; shown && shown[i] && r == 0; i++)
                r = strv_extendf(words, "--property=BindReadOnlyPaths=-%s", shown[i]);
        for (size_t i = 0; hidden && hidden[i] && r == 0; i++)
                r = strv_extendf(words, "--property=InaccessiblePaths=-%s", hidden[i]);
        return r;
}

/* systemd expands $NAME in the command line of a service (systemd.service(5)); a job's arguments are taken as
 * they are, and so are those of a scope. */
static int add_argument(char ***words, const char *argument, bool scope)
{
        _cleanup_free_ char *doubled = malloc(2 * strlen(argument) + 1);
        size_t n = 0;

        if (!doubled)
                return -ENOMEM;
        for (; *argument; argument++) {
                if (*argument == '$' && !scope)
                        doubled[n++] = '$';
                doubled[n++] = *argument;
        }
        doubled[n] = '\0';
        return strv_extend(words, doubled);
}

static int add_options(const Plan *plan, char ***words)
{
        static const char *const service[] = { "systemd-run", "--wait", "--pipe", "--collect",
                "--service-type=exec", "--slice=qscope.slice", NULL };
        static const char *const scope[] = { "systemd-run", "--scope", "--collect", "--slice=qscope.slice",
                NULL };
        const char *const *options = plan->posture == POSTURE_BOUNDED ? scope : service;
        int r = 0;

        for (size_t i = 0; options[i] && r == 0; i++)
                r = strv_extend(words, options[i]);
        /* A scope's command is started where the caller stands. */
        return r < 0 || options == scope ? r : strv_extendf(words, "--working-directory=%s", plan->cwd);
}

int plan_systemd_run(const Plan *plan, char ***ret)
{
        _cleanup_strv_ char **words = NULL;
        int r = add_options(plan, &words);

        for (size_t i = 0; plan->env[i] && r == 0; i++)
                r = strv_extendf(&words, "--setenv=%.*s", (int) strcspn(plan->env[i], "="), plan->env[i]);
        if (r == 0)
                r = strv_extendf(&words, "--property=RuntimeMaxSec=%" PRIu64 "ms",
                                (plan->timeout_usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
        if (r == 0)
                r = add_property_words(plan, &words);
        if (r == 0 && plan->posture != POSTURE_BOUNDED)
                r = add_path_words(plan, &words);
        if (r == 0)
                r = strv_extend(&words, "--");
        for (size_t i = 0; plan->argv[i] && r == 0; i++)
                r = add_argument(&words, plan->argv[i], plan->posture == POSTURE_BOUNDED);
        if (r == 0)
                *ret = TAKE_PTR(words);
        return r;
}

/* --- text --- */

static bool is_plain(const char *word)
{
        static const char plain[] =
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";

        return *word && word[strspn(word, plain)] == '\0';
}

/* Printable text in single quotes; with anything else in it $'…' (POSIX.1-2024), so that it can be shown. */
static size_t put_shell_word(FILE *out, const char *word)
{
        _cleanup_free_ char *shown = text_escape_alloc(word, strlen(word));
        size_t n = 0;

        if (!shown || is_plain(word))
                return fputs(word, out) < 0 ? 0 : strlen(word);
        if (streq(shown, word)) {
                n += (size_t) fprintf(out, "'");
                for (; *word; word++)
                        n += (size_t) fprintf(out, *word == '\'' ? "'\\''" : "%c", *word);
                return n + (size_t) fprintf(out, "'");
        }
        n += (size_t) fprintf(out, "$'");
        for (const uint8_t *p = (const uint8_t *) word; *p; p++)
                n += (size_t) (*p < 0x20 || *p >= 0x7f || *p == '\'' || *p == '\\'
                                                ? fprintf(out, "\\%03o", *p)
                                                : fprintf(out, "%c", *p));
        return n + (size_t) fprintf(out, "'");
}

static void put_shell_line(FILE *out, char *const *words)
{
        size_t column = 0;
        bool options = true;

        for (size_t i = 0; words[i]; i++) {
                if (i > 0 && options && column + strlen(words[i]) > LINE_WIDTH) {
                        (void) fputs(" \\\n   ", out);
                        column = 4;
                }
                if (i > 0) {
                        (void) fputc(' ', out);
                        column++;
                }
                column += put_shell_word(out, words[i]);
                options = options && !streq(words[i], "--");
        }
        (void) fputc('\n', out);
}

char *plan_shell_line(char *const *words)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        if (out)
                put_shell_line(out, words);
        return text_stream_close(&stream, 0);
}

static int put_row(FILE *out, const char *label, const char *text)
{
        _cleanup_free_ char *shown = text_escape_alloc(text, strlen(text));

        if (!shown)
                return -ENOMEM;
        (void) fprintf(out, "%-11s %s\n", label, shown);
        return 0;
}

static int put_unit(FILE *out, const char *name, const PropertyList *list)
{
        (void) fprintf(out, "\n%s\n", name);
        for (size_t i = 0; i < list->n; i++) {
                _cleanup_free_ char *value = property_format(&list->items[i]), *shown = NULL;

                shown = value ? text_escape_alloc(value, strlen(value)) : NULL;
                if (!shown)
                        return -ENOMEM;
                (void) fprintf(out, "  %s=%s\n", list->items[i].info->name, shown);
        }
        return 0;
}

static int put_head(FILE *out, const Plan *plan)
{
        _cleanup_free_ char *command = plan_shell_line(plan->argv),
                            *policy = text_printf("%s (sha256 %s)", plan->policy->name, plan->policy->sha256),
                            *place = text_printf("%s (%s)", plan->cwd, workspace_to_string(plan->workspace));
        char text[FORMAT_MAX];
        int r;

        if (!command || !policy || !place)
                return -ENOMEM;
        command[strlen(command) - 1] = '\0';
        (void) snprintf(text, sizeof(text), "%g s", (double) plan->timeout_usec / (double) USEC_PER_SEC);
        r = put_row(out, "job", plan->job_id);
        if (r == 0)
                r = put_row(out, "policy", policy);
        if (r == 0)
                r = put_row(out, "command", command);
        if (r == 0)
                r = put_row(out, "workspace", place);
        if (r == 0)
                r = put_row(out, "timeout", text);
        if (r == 0)
                r = put_row(out, "network", network_to_string(plan->network));
        return r == 0 ? put_row(out, "posture", posture_to_string(plan->posture)) : r;
}

static void put_limits(FILE *out, const Limits *limits)
{
        (void) fputs("limits     ", out);
        for (size_t i = 0; i < _LIMIT_MAX; i++) {
                char value[FORMAT_MAX];

                if (limits->value[i] != LIMIT_UNLIMITED)
                        (void) fprintf(out, " %s=%s", limit_table[i].key,
                                        plan_format_limit((LimitKind) i, limits->value[i], value,
                                                        sizeof(value)));
        }
        (void) fputc('\n', out);
}

static void put_environment(FILE *out, const Plan *plan)
{
        (void) fputs("environment", out);
        for (size_t i = 0; plan->env[i]; i++)
                (void) fprintf(out, " %.*s (%s)", (int) strcspn(plan->env[i], "="), plan->env[i],
                                plan->env_source[i]);
        (void) fputc('\n', out);
}

static int put_mounts(FILE *out, const Plan *plan)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        const cJSON *mount;

        if (!object || plan_add_mounts(object, plan) < 0)
                return -ENOMEM;
        (void) fputs("\nmounts, attached while the command is held\n", out);
        cJSON_ArrayForEach(mount, json_get(object, "mounts"))
        {
                const char *path = json_get(mount, "path")->valuestring;
                const cJSON *source = json_get(mount, "source");
                _cleanup_free_ char *line = text_printf("%s  %s%s%s", path,
                                                    json_get(mount, "mode")->valuestring,
                                                    cJSON_IsString(source) ? " of " : "",
                                                    cJSON_IsString(source) ? source->valuestring : ""),
                                    *shown = line ? text_escape_alloc(line, strlen(line)) : NULL;

                if (!shown)
                        return -ENOMEM;
                (void) fprintf(out, "  %s\n", shown);
        }
        return 0;
}

static int put_refusals(FILE *out, const ReasonList *refusals)
{
        if (refusals->n > 0)
                (void) fputs("\nrefused: run would start nothing\n", out);
        for (size_t i = 0; i < refusals->n; i++)
                (void) fprintf(out, "  %s: %s\n    next: %s\n", refusals->items[i].code,
                                refusals->items[i].message, reason_find(refusals->items[i].code)->next);
        return 0;
}

static int put_plan(FILE *out, const Plan *plan)
{
        _cleanup_strv_ char **words = NULL;
        int r = put_head(out, plan);

        if (r < 0)
                return r;
        put_limits(out, &plan->limits);
        put_environment(out, plan);
        r = put_unit(out, plan->slice, &plan->slice_properties);
        if (r == 0)
                r = put_unit(out, plan->service, &plan->service_properties);
        if (r == 0)
                r = put_mounts(out, plan);
        if (r == 0)
                r = put_refusals(out, &plan->refusals);
        if (r == 0)
                r = plan_systemd_run(plan, &words);
        if (r < 0)
                return r;
        (void) fputs("\nthe nearest thing by hand (the workspace read-only, nothing observed, no receipt)\n",
                        out);
        put_shell_line(out, words);
        return 0;
}

char *plan_to_text(const Plan *plan)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        return text_stream_close(&stream, out ? put_plan(out, plan) : -ENOMEM);
}
