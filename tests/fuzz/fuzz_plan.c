/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a random job never gives more than a random policy does. The bytes are choices, not texts, so
 * that every input is a policy and a job that read. */

#include "fuzz.h"

#include "within.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        assert(!check_random_plan(data, size, NULL));
        return 0;
}
