/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The finished receipts of a directory, for a batch that goes on after an interruption. What was run is known
 * by what the receipts themselves say: there is no other record that could be lost. */

#include "base/error.h"

typedef struct Finished Finished;

/* Reads the receipts of the directory, one at a time. Those of runs that were aborted, or that the host could
 * not make, are not finished; what is no receipt is passed over. */
int finished_read(const char *directory, Finished **ret, Error *e);
Finished *finished_free(Finished *finished);
DEFINE_CLEANUP(Finished *, finished_free)

/* The path of a receipt of this very job under the policy of this name as it is in force now, each only once;
 * NULL: there is none (more). Borrowed. */
const char *finished_take(Finished *finished, const char *job_sha256, const char *policy);
