/* SPDX-License-Identifier: Apache-2.0 */
#include "run/moves.h"

#include "base/macro.h"

void moves_add(Moves *moves, int fd, const char *target, MountAction action)
{
        assert(moves->n < MOVES_MAX);
        moves->items[moves->n++] = (MountMove){ fd, target, action };
}

void moves_clear(Moves *moves)
{
        for (size_t i = 0; i < moves->n; i++)
                safe_close(moves->items[i].fd);
        moves->n = 0;
}

int moves_do(Moves *moves, int proc_fd, int r, Error *e)
{
        if (r == 0 && moves->n > 0)
                r = mount_move_into(proc_fd, moves->items, moves->n, e);
        moves_clear(moves);
        return r;
}
