/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* "expect" of a job file: assertions beyond the exit status. Only job.c needs it. */

#include "core/job.h"
#include "core/reader.h"

/* Reads into an Expect. */
int expect_read(const Reader *r, const JsonPath *at, const cJSON *value, void *target);
void expect_clear(Expect *expect);
