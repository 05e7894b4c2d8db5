/* SPDX-License-Identifier: Apache-2.0 */
#include "core/explain.h"

#include "base/text.h"
#include "core/explain_facts.h"
#include "core/reason.h"
#include "core/sign.h"

#define EXPLANATION_SCHEMA "qscope.explanation/v1"
#define REASONS_MAX        64u
#define BLIND_SPOTS_MAX    64u
#define WORD_MAX           160u

static const struct {
        const char *verdict, *sign, *colour, *sentence;
} verdicts[] = {
        { "pass", "PASS", "\033[1;32m", "It did what was agreed, and nothing else that could be seen." },
        { "fail", "FAIL", "\033[1;31m", "It ran, and not everything is as agreed." },
        { "rejected", "REJECTED", "\033[1;33m", "The policy refused it. Nothing was started." },
        { "error", "ERROR", "\033[1;35m",
                        "qscope or the host failed, or a part was not seen. Of the command this says nothing, "
                        "neither good nor bad." },
        { "aborted", "ABORTED", "\033[1;33m", "It was stopped from outside before it had ended." },
};

/* What a blind spot is about, by the key of the receipt that it begins with. */
static const struct {
        const char *key, *plain;
} blind_kinds[] = {
        { "processes.tree", "Which programs it started in between is not known." },
        { "processes", "Not everything about its processes is known." },
        { "sockets", "Not every socket that it opened is known." },
        { "egress", "Not every attempt to reach somebody is known (none of them got out)." },
        { "fs", "Not everything about the files that it changed is known." },
        { "fds", "What was still open at the end is not known." },
        { "ipc", "What it shared with others through memory or queues is not known." },
        { "limits", "Not every limit that it ran into is known." },
        { "usage", "What it used is not known exactly." },
        { "isolation", "A part of the sandbox could not be looked at from outside." },
};

/* Any bytes, escaped and cut. */
static int add_excerpt(cJSON *object, const char *key, const char *text, size_t most)
{
        char out[EXPLAIN_TEXT_MAX];

        if (!text)
                return json_add_null(object, key);
        text_excerpt(text, strlen(text), out, MIN(most, sizeof(out)));
        return json_add_text(object, key, out);
}

/* The receipt is a file that anybody may have made: what to do next is said by our own table. The receipt's
 * words are shown as such where they differ, since they may know a remedy of that host, or a code newer than
 * this. */
static int add_reason(cJSON *list, const cJSON *reason)
{
        const char *code = view_text(reason, "code"), *next = view_text(reason, "next");
        const ReasonInfo *info = reason_find(code);
        const ReasonMeaning *meaning = reason_meaning(code);
        cJSON *item = json_add_object(list, NULL);

        if (info && streq_ptr(next, info->next))
                next = NULL;
        if (!item || add_excerpt(item, "code", code, WORD_MAX) < 0 ||
                        json_add_bool(item, "known", info != NULL) < 0 ||
                        add_excerpt(item, "message", view_text(reason, "message"), EXPLAIN_TEXT_MAX) < 0 ||
                        json_add_text(item, "meaning",
                                        meaning ? meaning->meaning
                                                : "This version does not know this reason: read its message.") <
                                        0 ||
                        json_add_text(item, "check", meaning ? meaning->check : NULL) < 0 ||
                        json_add_text(item, "next", info ? info->next : NULL) < 0)
                return -ENOMEM;
        return add_excerpt(item, "receipt_next", next, EXPLAIN_TEXT_MAX);
}

static int add_reasons(cJSON *explanation, const cJSON *receipt)
{
        cJSON *list = json_add_array(explanation, "reasons");
        const cJSON *reason;
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                if (n++ == REASONS_MAX)
                        break;
                if (add_reason(list, reason) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_signs(cJSON *explanation, const cJSON *receipt)
{
        cJSON *list = json_add_array(explanation, "signs");
        size_t n;
        const Sign *table = sign_table(&n);

        for (size_t i = 0; list && i < n; i++) {
                cJSON *item;

                if (!table[i].shows(receipt))
                        continue;
                item = json_add_object(list, NULL);
                if (!item || json_add_text(item, "name", table[i].name) < 0 ||
                                json_add_text(item, "what", table[i].what) < 0 ||
                                json_add_text(item, "check", table[i].check) < 0 ||
                                json_add_text(item, "next", table[i].next) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

/* "sockets.closed: …" is about sockets. */
static const char *blind_plain(const char *spot)
{
        for (size_t i = 0; i < ELEMENTSOF(blind_kinds); i++) {
                const char *rest = startswith(spot, blind_kinds[i].key);

                if (rest && strchr(":. [", *rest))
                        return blind_kinds[i].plain;
        }
        return NULL;
}

static int add_blind_spots(cJSON *explanation, const cJSON *receipt)
{
        cJSON *list = json_add_array(explanation, "blind_spots");
        const cJSON *spot;
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        cJSON_ArrayForEach(spot, view_get(receipt, "blind_spots"))
        {
                const char *text = cJSON_GetStringValue(spot);
                cJSON *item;

                if (!text)
                        continue;
                if (n++ == BLIND_SPOTS_MAX)
                        break;
                item = json_add_object(list, NULL);
                if (!item || json_add_text(item, "plain", blind_plain(text)) < 0 ||
                                add_excerpt(item, "spot", text, EXPLAIN_TEXT_MAX) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static const char *verdict_sentence(const char *verdict)
{
        for (size_t i = 0; i < ELEMENTSOF(verdicts); i++)
                if (streq_ptr(verdicts[i].verdict, verdict))
                        return verdicts[i].sentence;
        return NULL;
}

cJSON *explain(const cJSON *receipt)
{
        _cleanup_(cJSON_Deletep) cJSON *explanation = cJSON_CreateObject();
        const char *verdict = view_text(receipt, "verdict");
        cJSON *facts;

        if (!explanation || json_add_text(explanation, "schema", EXPLANATION_SCHEMA) < 0 ||
                        add_excerpt(explanation, "job_id", view_text(receipt, "job_id"), WORD_MAX) < 0 ||
                        add_excerpt(explanation, "run_id", view_text(receipt, "run_id"), WORD_MAX) < 0 ||
                        json_add_text(explanation, "verdict", verdict) < 0 ||
                        json_add_text(explanation, "sentence", verdict_sentence(verdict)) < 0 ||
                        add_reasons(explanation, receipt) < 0 || add_signs(explanation, receipt) < 0)
                return NULL;
        facts = json_add_array(explanation, "facts");
        if (!facts || explain_add_facts(facts, receipt) < 0 || add_blind_spots(explanation, receipt) < 0)
                return NULL;
        return TAKE_PTR(explanation);
}

/* --- for people --- */

typedef struct Page {
        FILE *f;
        const char *bold, *dim, *off;
} Page;

static void put_row(const Page *p, const char *indent, const char *name, const char *text)
{
        if (text)
                fprintf(p->f, "%s%s%-8s%s %s\n", indent, p->dim, name, p->off, text);
}

static void put_head(const Page *p, const cJSON *explanation, bool colour)
{
        const char *verdict = view_text(explanation, "verdict"), *job_id = view_text(explanation, "job_id");

        for (size_t i = 0; i < ELEMENTSOF(verdicts); i++)
                if (streq_ptr(verdicts[i].verdict, verdict))
                        fprintf(p->f, "%s%s%s  %s\n%s\n", colour ? verdicts[i].colour : "", verdicts[i].sign,
                                        p->off, job_id ? job_id : "(no job_id)", verdicts[i].sentence);
}

static void put_reasons(const Page *p, const cJSON *explanation)
{
        const cJSON *list = view_get(explanation, "reasons"), *item;

        if (view_length(list) > 0)
                fprintf(p->f, "\n%sWhy%s\n", p->bold, p->off);
        cJSON_ArrayForEach(item, list)
        {
                fprintf(p->f, "  %s%s%s: %s\n", p->bold, view_text(item, "code"), p->off,
                                view_text(item, "message") ? view_text(item, "message") : "(no message)");
                put_row(p, "    ", "means", view_text(item, "meaning"));
                put_row(p, "    ", "check", view_text(item, "check"));
                put_row(p, "    ", "next", view_text(item, "next"));
                put_row(p, "    ", "receipt", view_text(item, "receipt_next"));
        }
}

static void put_signs(const Page *p, const cJSON *explanation)
{
        const cJSON *list = view_get(explanation, "signs"), *item;

        if (view_length(list) > 0)
                fprintf(p->f, "\n%sLook at this as well%s\n", p->bold, p->off);
        cJSON_ArrayForEach(item, list)
        {
                fprintf(p->f, "  %s\n", view_text(item, "what"));
                put_row(p, "    ", "check", view_text(item, "check"));
                put_row(p, "    ", "next", view_text(item, "next"));
        }
}

static void put_facts(const Page *p, const cJSON *explanation)
{
        const cJSON *item;

        fprintf(p->f, "\n%sWhat happened%s\n", p->bold, p->off);
        cJSON_ArrayForEach(item, view_get(explanation, "facts"))
        {
                put_row(p, "  ", view_text(item, "name"), view_text(item, "text"));
        }
}

static void put_blind_spots(const Page *p, const cJSON *explanation)
{
        const cJSON *list = view_get(explanation, "blind_spots"), *item;

        if (view_length(list) > 0)
                fprintf(p->f, "\n%sNot seen%s (silence about it is not innocence)\n", p->bold, p->off);
        cJSON_ArrayForEach(item, list)
        {
                const char *plain = view_text(item, "plain"), *spot = view_text(item, "spot");

                fprintf(p->f, "  %s\n", plain ? plain : spot);
                if (plain)
                        fprintf(p->f, "    %s%s%s\n", p->dim, spot, p->off);
        }
}

char *explanation_text(const cJSON *explanation, bool colour)
{
        TextStream stream;
        Page p = { .f = text_stream_open(&stream),
                .bold = colour ? "\033[1m" : "",
                .dim = colour ? "\033[2m" : "",
                .off = colour ? "\033[0m" : "" };

        if (!p.f)
                return NULL;
        put_head(&p, explanation, colour);
        put_reasons(&p, explanation);
        put_signs(&p, explanation);
        put_facts(&p, explanation);
        put_blind_spots(&p, explanation);
        return text_stream_close(&stream, 0);
}
