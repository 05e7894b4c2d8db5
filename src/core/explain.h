/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a receipt means and what to do next, qscope.explanation/v1: for tools as a document, for people as
 * text. Made from the receipt alone. All strings that came from a job are escaped and cut in it. Pure. */

#include "core/receipt_view.h"

/* receipt has been through receipt_parse(). NULL when out of memory. */
cJSON *explain(const cJSON *receipt);

/* The explanation as lines for people. colour: ANSI colours. NULL when out of memory. */
char *explanation_text(const cJSON *explanation, bool colour);
