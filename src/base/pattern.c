/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions over libpcre2, with budgets. */

#include "base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define PATTERN_NESTING_MAX 64u
#define HEAP_MAX_KIB        (20u * 1024)
/* pcre2's own match limit counts anew at each position of the subject, so a quadratic pattern on a long text
 * could take hours below it. A callout before each item counts over the whole search: one for the item, and
 * one for each byte it moved over. About a second of work. */
#define WORK_MAX UINT64_C(50000000)

typedef struct Budget {
        uint64_t left;
        size_t position; /* where the last callout was */
} Budget;

static void *allocate(size_t size, _unused_ void *data)
{
        return malloc(size);
}

static void release(void *pointer, _unused_ void *data)
{
        free(pointer);
}

DEFINE_CLEANUP(pcre2_general_context *, pcre2_general_context_free)
DEFINE_CLEANUP(pcre2_compile_context *, pcre2_compile_context_free)
DEFINE_CLEANUP(pcre2_match_context *, pcre2_match_context_free)
DEFINE_CLEANUP(pcre2_match_data *, pcre2_match_data_free)
DEFINE_CLEANUP(pcre2_code *, pcre2_code_free)

static int compile(pcre2_general_context *general, const char *pattern, pcre2_code **ret, Error *e)
{
        const uint32_t options =
                        PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C;
        _cleanup_(pcre2_compile_context_freep) pcre2_compile_context *context =
                        pcre2_compile_context_create(general);
        PCRE2_UCHAR reason[256] = { 0 };
        PCRE2_SIZE offset = 0;
        int error = 0;

        if (!context)
                return -ENOMEM;
        if (strlen(pattern) > PATTERN_MAX)
                return error_set(e, -E2BIG, "the pattern is %zu bytes long, at most %u are allowed",
                                strlen(pattern), (unsigned) PATTERN_MAX);
        (void) pcre2_set_parens_nest_limit(context, PATTERN_NESTING_MAX);
        *ret = pcre2_compile((PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED, options, &error, &offset, context);
        if (*ret)
                return 0;
        if (error == PCRE2_ERROR_HEAP_FAILED)
                return -ENOMEM;
        (void) pcre2_get_error_message(error, reason, sizeof(reason));
        return error_set(e, -EINVAL, "is not a regular expression: %s at byte %zu", (char *) reason, offset);
}

static int spend(pcre2_callout_block *block, void *data)
{
        Budget *budget = data;
        size_t at = block->current_position;
        uint64_t cost = 1 + (at > budget->position ? at - budget->position : budget->position - at);

        budget->position = at;
        if (cost > budget->left)
                return PCRE2_ERROR_MATCHLIMIT;
        budget->left -= cost;
        return 0;
}

int pattern_check(const char *pattern, Error *e)
{
        _cleanup_(pcre2_general_context_freep) pcre2_general_context *general =
                        pcre2_general_context_create(allocate, release, NULL);
        _cleanup_(pcre2_code_freep) pcre2_code *code = NULL;

        return general ? compile(general, pattern, &code, e) : -ENOMEM;
}

int pattern_match(const char *pattern, const void *data, size_t size)
{
        _cleanup_(pcre2_general_context_freep) pcre2_general_context *general =
                        pcre2_general_context_create(allocate, release, NULL);
        _cleanup_(pcre2_match_context_freep) pcre2_match_context *context = NULL;
        _cleanup_(pcre2_match_data_freep) pcre2_match_data *match = NULL;
        _cleanup_(pcre2_code_freep) pcre2_code *code = NULL;
        Budget budget = { .left = WORK_MAX };
        int r;

        if (!general)
                return -ENOMEM;
        r = compile(general, pattern, &code, NULL);
        if (r < 0)
                return r;
        context = pcre2_match_context_create(general);
        match = pcre2_match_data_create(1, general);
        if (!context || !match)
                return -ENOMEM;
        (void) pcre2_set_heap_limit(context, HEAP_MAX_KIB);
        (void) pcre2_set_callout(context, spend, &budget);
        r = pcre2_match(code, data ? data : "", size, 0, 0, match, context);
        if (r >= 0)
                return 1;
        if (r == PCRE2_ERROR_NOMATCH)
                return 0;
        return r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -E2BIG;
}
