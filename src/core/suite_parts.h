/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the suite share. */

#include "core/suite.h"

/* Whether a case may have this key of a job. */
bool suite_is_job_key(const char *key);
