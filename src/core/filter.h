/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs a filter of system calls (seccomp(2), classic BPF) as the kernel would, to see what it says of a call.
 * Pure: sys/inside takes the filters from a held process. */

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/macro.h"

/* *ret: the filter's answer, SECCOMP_RET_*. 0, or -EINVAL for a program that the kernel would not take: an
 * unknown instruction, a jump or a load that leads outside, no return. */
int filter_run(const struct sock_filter *program, size_t n, const struct seccomp_data *data, uint32_t *ret);
