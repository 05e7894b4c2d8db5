/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Words that stand for bits and numbers in property values. Only for property*.c. */

#include "base/macro.h"

typedef struct PropertyWord {
        const char *name;
        uint64_t value;
} PropertyWord;

extern const char *const capability_names[]; /* by number, capability.h; ends with NULL */
extern const PropertyWord namespace_words[]; /* CLONE_NEW* bits; ends with { NULL } */

#define NAMESPACES_ALL UINT64_C(0x7e020000) /* all that systemd 250 knows: everything but time */
