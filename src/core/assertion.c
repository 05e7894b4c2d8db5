/* SPDX-License-Identifier: Apache-2.0 */
/* An assertion of the job (expect) holds, or there is a reason that says what was there instead. What cannot
 * be decided, because the output was larger than what is kept or a file was not read, does not hold. */
#include "core/assertion.h"

#include <inttypes.h>

#include "base/pattern.h"

#define EXCERPT_MAX 64

/* One stream with what it is called, and its bytes in one piece where they are all kept. */
typedef struct Stream {
        const char *name; /* "stdout" */
        const char *code; /* "expect_stdout" */
        const StreamRecord *record;
        const uint8_t *data; /* NULL: not all of it is kept */
        size_t size;
        uint8_t *joined; /* owned, when data had to be put together */
} Stream;

static void stream_done(Stream *stream)
{
        free(stream->joined);
}

/* 0 or -ENOMEM. */
static int stream_open(Stream *stream, const char *name, const char *code, const StreamRecord *record)
{
        *stream = (Stream){ .name = name, .code = code, .record = record, .size = (size_t) record->bytes };
        if (record->whole)
                stream->data = record->whole;
        else if (record->bytes == 0)
                stream->data = (const uint8_t *) "";
        else if (record->head_size == record->bytes)
                stream->data = record->head;
        else if ((uint64_t) record->head_size + record->tail_size == record->bytes) {
                stream->joined = malloc(stream->size + 1);
                if (!stream->joined)
                        return -ENOMEM;
                memcpy(stream->joined, record->head, record->head_size);
                memcpy(stream->joined + record->head_size, record->tail, record->tail_size);
                stream->joined[stream->size] = '\0';
                stream->data = stream->joined;
        }
        return 0;
}

static int not_kept(const Stream *stream, const char *what, ReasonList *reasons)
{
        return reason_add(reasons, stream->code,
                        "%s.%s could not be decided: the output was %" PRIu64
                        " bytes, larger than what is kept",
                        stream->name, what, stream->record->bytes);
}

/* The line of each text in which they first differ, as excerpts. */
static int first_difference(const Stream *stream, const char *expected, ReasonList *reasons)
{
        size_t size = strlen(expected), common = MIN(size, stream->size), at = 0, start = 0, line = 1;
        char want[EXCERPT_MAX], have[EXCERPT_MAX];
        const char *data = (const char *) stream->data;

        for (; at < common && data[at] == expected[at]; at++)
                if (data[at] == '\n') {
                        start = at + 1;
                        line++;
                }
        /* Far into a long line, the start of it shows nothing: begin near the difference. */
        if (at - start > EXCERPT_MAX / 2)
                start = at - EXCERPT_MAX / 4;
        text_excerpt(expected + start, size - start, want, sizeof(want));
        text_excerpt(data + start, stream->size - start, have, sizeof(have));
        return reason_add(reasons, stream->code,
                        "%s is not as expected from line %zu on: \"%s\" instead of \"%s\"", stream->name,
                        line, have, want);
}

/* Decided by length and digest, so that also output beyond what is kept can be compared. */
static int judge_equals(const Stream *stream, const char *expected, ReasonList *reasons)
{
        size_t size = strlen(expected);
        char hex[HASH_HEX_MAX];

        if (stream->data) {
                if (stream->size == size && memcmp(stream->data, expected, size) == 0)
                        return 0;
                return first_difference(stream, expected, reasons);
        }
        hash_data(expected, size, hex);
        if (stream->record->bytes == size && streq(hex, stream->record->sha256))
                return 0;
        return reason_add(reasons, stream->code, "%s is not as expected: %" PRIu64 " bytes instead of %zu",
                        stream->name, stream->record->bytes, size);
}

static int judge_contains(const Stream *stream, const char *expected, ReasonList *reasons)
{
        char excerpt[EXCERPT_MAX];

        if (!stream->data)
                return not_kept(stream, "contains", reasons);
        if (memmem(stream->data, stream->size, expected, strlen(expected)))
                return 0;
        text_excerpt(expected, strlen(expected), excerpt, sizeof(excerpt));
        return reason_add(reasons, stream->code, "%s does not contain \"%s\"", stream->name, excerpt);
}

static int judge_matches(const Stream *stream, const char *pattern, ReasonList *reasons)
{
        char excerpt[EXCERPT_MAX];
        int r;

        if (!stream->data)
                return not_kept(stream, "matches", reasons);
        r = pattern_match(pattern, stream->data, stream->size);
        if (r > 0 || r == -ENOMEM)
                return r > 0 ? 0 : r;
        text_excerpt(pattern, strlen(pattern), excerpt, sizeof(excerpt));
        if (r == 0)
                return reason_add(reasons, stream->code, "%s does not match /%s/", stream->name, excerpt);
        return reason_add(reasons, stream->code,
                        "whether %s matches /%s/ takes more work to find out than is allowed: write a simpler "
                        "pattern",
                        stream->name, excerpt);
}

/* Where two values first differ, in the order of the expected one; NULL: on that side there is none. */
typedef struct Difference {
        char path[JSON_PATH_MAX];
        const cJSON *have, *want;
} Difference;

/* As cJSON_Compare() judges. No deeper than the reader lets a value be. */
static bool find_difference(const JsonPath *at, const cJSON *have, const cJSON *want, Difference *ret)
{
        if (have && want && cJSON_IsArray(have) && cJSON_IsArray(want)) {
                JsonPath below = { .up = at };

                have = have->child;
                want = want->child;
                for (; have && want; have = have->next, want = want->next, below.index++)
                        if (find_difference(&below, have, want, ret))
                                return true;
                return (have || want) && find_difference(&below, have, want, ret);
        }
        if (have && want && cJSON_IsObject(have) && cJSON_IsObject(want)) {
                for (const cJSON *member = want->child; member; member = member->next) {
                        JsonPath below = { .up = at, .key = member->string };

                        if (find_difference(&below, json_get(have, member->string), member, ret))
                                return true;
                }
                for (const cJSON *member = have->child; member; member = member->next) {
                        JsonPath below = { .up = at, .key = member->string };

                        if (!json_get(want, member->string))
                                return find_difference(&below, member, NULL, ret);
                }
                return false;
        }
        if (have && want && cJSON_Compare(have, want, true))
                return false;
        (void) json_path_format(at, ret->path);
        ret->have = have;
        ret->want = want;
        return true;
}

/* 0 or -ENOMEM. */
static int value_excerpt(const cJSON *value, char out[static EXCERPT_MAX])
{
        _cleanup_free_ char *text = value ? json_print_canonical(value) : strdup("nothing");

        if (text)
                text_excerpt(text, strlen(text), out, EXCERPT_MAX);
        return text ? 0 : -ENOMEM;
}

static int another_value(const Stream *stream, const cJSON *value, const cJSON *expected, ReasonList *reasons)
{
        const JsonPath document = { .up = NULL };
        Difference difference = { .have = value, .want = expected };
        char want[EXCERPT_MAX], have[EXCERPT_MAX], place[EXCERPT_MAX];

        (void) find_difference(&document, value, expected, &difference);
        text_excerpt(difference.path, strlen(difference.path), place, sizeof(place));
        if (value_excerpt(difference.have, have) < 0 || value_excerpt(difference.want, want) < 0)
                return -ENOMEM;
        return reason_add(reasons, stream->code,
                        "%s is JSON, but another value than expected%s%s: %s instead of %s", stream->name,
                        place[0] ? ", at " : "", place, have, want);
}

static int judge_json(const Stream *stream, const cJSON *expected, ReasonList *reasons)
{
        _cleanup_(cJSON_Deletep) cJSON *value = NULL;
        Error e = ERROR_INIT;
        int r;

        if (!stream->data)
                return not_kept(stream, "json", reasons);
        r = json_parse((const char *) stream->data, stream->size, JSON_STRICT, stream->name, &value, &e);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return reason_add(reasons, stream->code, "%s is not JSON: %s", stream->name, e.text);
        if (cJSON_Compare(value, expected, true))
                return 0;
        return another_value(stream, value, expected, reasons);
}

static int judge_sha256(const Stream *stream, const char *expected, ReasonList *reasons)
{
        char empty[HASH_HEX_MAX];
        const char *have = stream->record->sha256;

        if (!*have && stream->record->bytes == 0) { /* nothing ever came, so nothing was hashed */
                hash_data("", 0, empty);
                have = empty;
        }
        if (strcasecmp(have, expected) == 0)
                return 0;
        return reason_add(
                        reasons, stream->code, "%s has SHA-256 %s, not the one expected", stream->name, have);
}

static int judge_stream(const ExpectStream *expect, const Stream *stream, ReasonList *reasons)
{
        int r = 0;

        if (expect->equals)
                r = judge_equals(stream, expect->equals, reasons);
        if (r >= 0 && expect->contains)
                r = judge_contains(stream, expect->contains, reasons);
        if (r >= 0 && expect->matches)
                r = judge_matches(stream, expect->matches, reasons);
        if (r >= 0 && expect->json)
                r = judge_json(stream, expect->json, reasons);
        if (r >= 0 && expect->sha256)
                r = judge_sha256(stream, expect->sha256, reasons);
        return r;
}

static int judge_named_stream(const ExpectStream *expect, const char *name, const char *code,
                const StreamRecord *record, ReasonList *reasons)
{
        _cleanup_(stream_done) Stream stream = { 0 };
        int r;

        r = stream_open(&stream, name, code, record);
        return r < 0 ? r : judge_stream(expect, &stream, reasons);
}

static int judge_file(const ExpectFile *expect, const struct ExpectedFile *file, ReasonList *reasons)
{
        bool content = expect->equals || expect->sha256;
        char path[EXCERPT_MAX * 2];

        text_excerpt(expect->path, strlen(expect->path), path, sizeof(path));
        if (!file)
                return reason_add(reasons, "expect_file", "%s was not looked at", path);
        if (expect->exists == 0)
                return file->exists ? reason_add(reasons, "expect_file", "%s exists and should not", path)
                                    : 0;
        if (!file->exists)
                return expect->exists == 1 || content
                                       ? reason_add(reasons, "expect_file", "%s does not exist", path)
                                       : 0;
        if (expect->equals && file->equals != 1) {
                int r = reason_add(reasons, "expect_file", "the content of %s %s", path,
                                file->equals == 0 ? "is not as expected" : "could not be compared");

                if (r < 0)
                        return r;
        }
        if (expect->sha256 && strcasecmp(expect->sha256, file->sha256) != 0)
                return reason_add(reasons, "expect_file", "%s has SHA-256 %s, not the one expected", path,
                                *file->sha256 ? file->sha256 : "(not computed)");
        return 0;
}

static int judge_duration(uint64_t max_usec, uint64_t duration_usec, ReasonList *reasons)
{
        double most = (double) max_usec / (double) USEC_PER_MSEC,
               have = (double) duration_usec / (double) USEC_PER_MSEC;

        if (max_usec == UNKNOWN || (duration_usec != UNKNOWN && duration_usec <= max_usec))
                return 0;
        if (duration_usec == UNKNOWN)
                return reason_add(reasons, "expect_duration",
                                "the duration is not known, at most %.15g ms expected", most);
        return reason_add(reasons, "expect_duration", "it took %.15g ms, at most %.15g ms expected", have,
                        most);
}

int assertions_judge(const Expect *expect, const Outcome *o, ReasonList *reasons)
{
        int r;

        r = judge_named_stream(&expect->out, "stdout", "expect_stdout", &o->out, reasons);
        if (r < 0)
                return r;
        r = judge_named_stream(&expect->err, "stderr", "expect_stderr", &o->err, reasons);
        if (r < 0)
                return r;
        for (size_t i = 0; i < expect->n_files; i++) {
                r = judge_file(&expect->files[i], i < o->n_expected_files ? &o->expected_files[i] : NULL,
                                reasons);
                if (r < 0)
                        return r;
        }
        return judge_duration(expect->max_duration_usec, o->duration_usec, reasons);
}
