/* SPDX-License-Identifier: Apache-2.0 */

/* qscope-probe: does one thing that a job should not do, or that is harmless, and says by its exit status
 * whether it could: 0 it was done, 9 it was refused. `qscope doctor --selftest` puts it into jobs to see
 * whether their receipts show it. It holds no secret and gives no right: whatever it does, any program in a
 * job could do. */

#include "probe/probe.h"

int deed_refused(const char *step)
{
        (void) printf("refused: %s: %s\n", step, strerror(errno));
        (void) fflush(stdout);
        return DEED_REFUSED;
}

static const Deed *const tables[] = { net_deeds, process_deeds, host_deeds };
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

static const Deed *find(const char *name)
{
        for (size_t i = 0; i < N_TABLES; i++)
                for (const Deed *deed = tables[i]; deed->name; deed++)
                        if (strcmp(deed->name, name) == 0)
                                return deed;
        return NULL;
}

int deed_run(char **words)
{
        const Deed *deed = words[0] ? find(words[0]) : NULL;
        int n = 0;

        while (words[0] && words[1 + n])
                n++;
        if (!deed || (deed->n_arguments >= 0 ? n != deed->n_arguments : n < 1)) {
                (void) fprintf(stderr, "qscope-probe: not a deed: %s\n", words[0] ? words[0] : "(nothing)");
                return DEED_USAGE;
        }
        return deed->call(words + 1);
}

static void help(void)
{
        (void) puts("Usage: qscope-probe DEED [ARGUMENT...]\n\n"
                    "Does one thing that a job should not do. For qscope doctor --selftest.\n");
        for (size_t i = 0; i < N_TABLES; i++)
                for (const Deed *deed = tables[i]; deed->name; deed++)
                        (void) printf("  %s %s\n", deed->name, deed->arguments);
}

int main(int argc, char **argv)
{
        if (argc < 2 || strcmp(argv[1], "--help") == 0) {
                help();
                return argc < 2 ? DEED_USAGE : DEED_DONE;
        }
        return deed_run(argv + 1);
}
