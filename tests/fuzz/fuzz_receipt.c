/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt is read or refused with a sentence; what was read can be explained and compared, and nothing of
 * it reaches a terminal unescaped. Its changes are a plan, all of it within the workspace, or refused with a
 * sentence. */

#include "fuzz.h"

#include "base/path.h"
#include "core/apply.h"
#include "core/compare.h"
#include "core/explain.h"

static void check_compared(const cJSON *receipt)
{
        static const char other_text[] =
                        "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],"
                        "\"fs\":{},\"egress\":[],\"sockets\":{}}";
        _cleanup_(cJSON_Deletep) cJSON *other = NULL, *same = receipt_compare(receipt, receipt),
                                       *result = NULL;
        _cleanup_free_ char *text = NULL;

        assert(same && view_true(same, "same"));
        assert(receipt_parse(other_text, strlen(other_text), "other", &other, NULL) == 0);
        result = receipt_compare(other, receipt);
        text = result ? comparison_text(result, false) : NULL;
        assert(text);
        for (const char *p = text; *p; p++)
                assert((unsigned char) *p >= 0x20 || *p == '\n' || *p == '\t');
}

static void check_planned(const cJSON *receipt)
{
        _cleanup_(apply_plan_freep) ApplyPlan *plan = NULL;
        Error e = ERROR_INIT;
        int r = apply_plan_read(receipt, &plan, &e);

        assert(r == 0 || r == -EINVAL || r == -E2BIG);
        assert((r == 0) == (e.text[0] == '\0'));
        if (r < 0)
                return;
        assert(apply_plan_select(plan, NULL, "/w", &e) == 0 && apply_plan_steps(plan) == 0);
        for (size_t i = 0; i < plan->n; i++) {
                _cleanup_free_ char *normal = NULL;

                assert(plan->items[i].path[0] != '/');
                assert(path_normalise(plan->items[i].path, &normal) == 0 &&
                                streq(normal, plan->items[i].path));
                assert(plan->items[i].state == APPLY_SELECTED || plan->items[i].why[0]);
        }
        for (size_t i = 0; i < plan->n_steps; i++)
                assert(plan->items[plan->steps[i].change].state == APPLY_SELECTED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL, *explanation = NULL;
        _cleanup_free_ char *text = NULL, *json = NULL;
        Error e = ERROR_INIT;
        int r = receipt_parse((const char *) data, size, "input", &receipt, &e);

        assert(r == 0 || r == -EINVAL);
        assert((r == 0) == (receipt != NULL) && (r == 0) == (e.text[0] == '\0'));
        if (!receipt)
                return 0;
        explanation = explain(receipt);
        text = explanation ? explanation_text(explanation, false) : NULL;
        json = explanation ? json_print(explanation, true) : NULL;
        assert(text && json);
        for (const char *p = text; *p; p++)
                assert((unsigned char) *p >= 0x20 || *p == '\n');
        check_compared(receipt);
        check_planned(receipt);
        return 0;
}
