/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text diffs of what a run changed, for a page: out of the layer that was kept of it and of the
 * workspace, as far as both still have what the receipt recorded. Bounded for each file, each receipt and the
 * whole page. */

#include "json/json.h"

#define DIFF_BYTES_MAX   KIB(16) /* shown of one file */
#define DIFFS_BYTES_MAX  KIB(64) /* of one receipt */
#define DIFFS_COUNT_MAX  100u
#define DIFFS_PAGE_BYTES MIB(2)  /* of all receipts of a page */
#define DIFFS_PAGE_READ  MIB(64) /* that may be read for it */

/* What there is room for yet. */
typedef struct DiffRoom {
        size_t shown, read;
} DiffRoom;

#define DIFF_ROOM_INIT ((DiffRoom){ DIFFS_PAGE_BYTES, DIFFS_PAGE_READ })

/* receipt is parsed from text. *ret is what core/report.h wants, or NULL: nothing changed that could have a
 * diff. 0 or -ENOMEM. */
int diffs_make(const cJSON *receipt, const char *text, size_t size, const char *state_dir, DiffRoom *room,
                cJSON **ret);
