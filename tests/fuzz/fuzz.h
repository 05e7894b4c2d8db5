/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html), and what replay.c calls in every test run. */

#include "base/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
