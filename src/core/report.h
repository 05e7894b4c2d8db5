/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The page that shows receipts (qscope report): one file of HTML that loads nothing. It is put together here
 * in pieces, so that one receipt at a time is held in memory; what it looks like and does is in report/.
 *
 * Whatever came from a job is JSON in the page, in script elements that nothing executes, and without any
 * character that HTML could take for its own; the page's script makes text of it, never markup. The page's
 * policy (Content-Security-Policy) lets run and be loaded nothing but its own style and script, by their
 * digests. Pure. */

#include "core/receipt_view.h"

/* One receipt takes at most about this much of the page: long texts and lists are cut, and what is not shown
 * is left out. */
#define REPORT_ENTRY_MAX KIB(96)

/* In this order: begin, an entry for each receipt, between, what has gathered in details, end. So a browser
 * has the whole list, and can work with it, before it comes to the bulk of the receipts. All return 0,
 * -ENOMEM, or what writing has left in errno. */
int report_begin(FILE *f, const char *title);
/* receipt has been through receipt_parse(); file: where it was. diffs (NULL: not wanted): of the files that
 * changed, { note } or { files [{path, text or why, cut}…], left_out }, bounded by whoever made it. */
int report_add(FILE *rows, FILE *details, const cJSON *receipt, const cJSON *diffs, const char *file);
/* For a file that is no receipt: sentence says why. */
int report_add_broken(FILE *rows, FILE *details, const char *file, const char *sentence);
int report_between(FILE *f);
int report_end(FILE *f);
