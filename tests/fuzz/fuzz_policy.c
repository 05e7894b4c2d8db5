/* SPDX-License-Identifier: Apache-2.0 */
/* A policy is read or refused with a sentence, also when it is merged with itself; merging changes nothing
 * then. */

#include "fuzz.h"

#include "core/policy.h"

static void check_properties(const PropertyList *list)
{
        for (size_t i = 0; i < list->n; i++) {
                _cleanup_free_ char *text = property_format(&list->items[i]);

                assert(text);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const PolicyText one = { .name = "input", .text = (const char *) data, .size = size },
                         texts[] = { one, one };
        _cleanup_(policy_freep) Policy *policy = NULL, *twice = NULL;
        Error e = ERROR_INIT;
        int r = policy_parse(texts, 1, &policy, &e);

        assert(r == 0 || r == -EINVAL);
        assert((r == 0) == (policy != NULL) && (r == 0) == (e.text[0] == '\0'));
        if (!policy)
                return 0;
        check_properties(&policy->properties);
        assert(policy_parse(texts, 2, &twice, &e) == 0);
        assert(streq(policy->sha256, twice->sha256));
        return 0;
}
