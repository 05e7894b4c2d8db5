/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the n-th allocation fail, for every n, in the style of SQLite's tests. The program that links alloc.c
 * has these functions as its malloc; with AddressSanitizer, which has its own, only the first pass is made
 * and its leak checker does the rest. */

#include "base/macro.h"

/* Calls attempt(context) with the first allocation failing, then the second, until it succeeds without any
 * failure. attempt frees what it got and returns -ENOMEM, or 0 after it has checked that its result is whole:
 * libc can do without some allocations (vasprintf(3) shrinks its buffer, or leaves it). Each attempt must
 * leave as many allocations as it found. Returns how many attempts said -ENOMEM. */
unsigned alloc_fail_each(int (*attempt)(void *context), void *context);
