/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is read can be printed, and reads back as the same document. */

#include "fuzz.h"

#include "base/text.h"
#include "json/json.h"

static void check_round_trip(const cJSON *item)
{
        _cleanup_free_ char *text = json_print(item, true), *first = json_print_canonical(item),
                            *second = NULL;
        _cleanup_(cJSON_Deletep) cJSON *again = NULL;

        assert(text && first && utf8_is_valid(text, strlen(text)));
        assert(json_parse(text, strlen(text), JSON_STRICT, "again", &again, NULL) == 0);
        second = json_print_canonical(again);
        assert(second && streq(first, second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (int flags = JSON_STRICT; flags <= JSON_COMMENTS; flags++) {
                _cleanup_(cJSON_Deletep) cJSON *item = NULL;
                Error e = ERROR_INIT;
                int r = json_parse((const char *) data, size, (JsonFlags) flags, "input", &item, &e);

                assert(r == 0 || r == -EINVAL);
                assert((r == 0) == (item != NULL) && (r == 0) == (e.text[0] == '\0'));
                if (item)
                        check_round_trip(item);
        }
        (void) json_locate((const char *) data, size, "limits.memory");
        return 0;
}
