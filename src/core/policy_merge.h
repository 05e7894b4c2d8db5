/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the files of a policy become one document. One rule for each kind of key:
 *
 *   object                                         merged key by key
 *   deny_argv0 deny_exec env.deny hidden_paths     lists that take something from a job: a later file adds to
 *     require                                      them; an empty list drops what came before it
 *   properties.NAME: null                          the property is dropped, as if it had never been set
 *   everything else, other lists too               the later file's value replaces
 *
 * Only for policy*.c. */

#include "core/policy.h"

/* Merges one checked document. sources has the shape of into, with the file's name in place of each value (a
 * list of names for a list that is added to). 0 or -ENOMEM. */
int policy_merge(cJSON *into, cJSON *sources, const cJSON *from, const char *file);
