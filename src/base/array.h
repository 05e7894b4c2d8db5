/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

#define ARRAY_ROOM_FIRST 16u

/* Room for one more item behind the n of an array with room for *room: the array itself, or one twice as
 * large that takes its place. NULL: out of memory, and the old one stays as it is. */
static inline void *array_grow(void *items, size_t n, size_t *room, size_t size)
{
        size_t wanted = *room > 0 ? *room * 2 : ARRAY_ROOM_FIRST;
        void *larger;

        if (n < *room)
                return items;
        larger = reallocarray(items, wanted, size);
        if (larger)
                *room = wanted;
        return larger;
}
