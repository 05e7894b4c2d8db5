/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who started qscope: as the kernel says (getuid(2), /proc/self/loginuid), and as sudo(8) says. */

#include "core/audit.h"

/* 0 or -ENOMEM; what cannot be found out stays unknown. */
int caller_read(AuditCaller *ret);
void caller_clear(AuditCaller *caller);
