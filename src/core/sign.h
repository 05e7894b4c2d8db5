/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decision table: what a receipt shows besides its reasons, what to check first, and what to do then. A
 * sign judges nothing; the verdict stands in the receipt. Pure. */

#include "core/receipt_view.h"

typedef struct Sign {
        const char *name; /* stable */
        bool (*shows)(const cJSON *receipt);
        const char *what, *check, *next; /* a sentence each */
} Sign;

/* All of them, in the order in which a person should read them. */
const Sign *sign_table(size_t *ret_n);
