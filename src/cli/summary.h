/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A receipt for people: some twenty lines, made from the receipt alone, so that an old one reads the same. */

#include "json/json.h"

/* Writes the summary. Missing keys and wrong types are passed over; every string of the receipt is escaped.
 * receipt_path may be NULL. colour: ANSI colours. 0, -ENOMEM, or the errno with which f failed. */
int summary_print(FILE *f, const cJSON *receipt, const char *receipt_path, bool colour);
