/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fields of a CSV file (RFC 4180) that people open in a spreadsheet. What a field holds may come from a
 * hostile job: nothing in it ends the field, moves a cursor, or is taken for a formula. Pure. */

#include <stdio.h>

#include "base/macro.h"

/* Writes one field: text in quotes, with what is not printable UTF-8 as \n, \t, \xNN, and with an apostrophe
 * before what a spreadsheet would calculate. NULL text is an empty field. 0 or -ENOMEM. */
int csv_text(FILE *out, const char *text);
/* UNKNOWN is an empty field. */
void csv_number(FILE *out, uint64_t number);
