/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt is read or refused with a sentence; what was read can be explained, and nothing of it reaches a
 * terminal unescaped. */

#include "fuzz.h"

#include "core/explain.h"

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
        return 0;
}
