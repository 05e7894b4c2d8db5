/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Replays a directory of bad inputs. Beside each NAME.json stands NAME.expect with a part of the sentence
 * that a person must get. */

#include "base/error.h"

typedef int (*CorpusReader)(const char *text, size_t size, const char *name, Error *e);

/* Calls read for each file, which must refuse it. Returns how many were read; what went wrong is printed and
 * counted in *ret_failures. */
unsigned corpus_replay_bad(const char *directory, CorpusReader read, unsigned *ret_failures);

/* The same for good ones, which read must take without a word. */
unsigned corpus_replay_good(const char *directory, CorpusReader read, unsigned *ret_failures);
