/* SPDX-License-Identifier: Apache-2.0 */
#include "core/shared.h"

int fd_list_add(FdList *list, FdRecord *record)
{
        FdRecord *larger = NULL;

        list->total++;
        if (list->n < FDS_LISTED_MAX)
                larger = reallocarray(list->items, list->n + 1, sizeof(*larger));
        if (!larger) {
                free(record->target);
                *record = (FdRecord){ 0 };
                return list->n < FDS_LISTED_MAX ? -ENOMEM : 0;
        }
        list->items = larger;
        list->items[list->n++] = *record;
        *record = (FdRecord){ 0 };
        return 0;
}

int ipc_list_add(IpcList *list, IpcRecord *record)
{
        IpcRecord *larger = NULL;

        list->total++;
        if (list->n < IPC_LISTED_MAX)
                larger = reallocarray(list->items, list->n + 1, sizeof(*larger));
        if (!larger) {
                free(record->name);
                *record = (IpcRecord){ 0 };
                return list->n < IPC_LISTED_MAX ? -ENOMEM : 0;
        }
        list->items = larger;
        list->items[list->n++] = *record;
        *record = (IpcRecord){ 0 };
        return 0;
}
