/* SPDX-License-Identifier: Apache-2.0 */

/* qscope clean: removes what runs whose qscope is gone left behind. Every run does so first; this is for
 * hosts where no next run is to come. */

#include "cli/cli.h"
#include "run/rundir.h"

int cli_clean(int argc, char **argv)
{
        Error e = ERROR_INIT;
        int n;

        if (argc == 2 && (streq(argv[1], "--help") || streq(argv[1], "-h"))) {
                (void) puts("Usage: qscope clean\n\nRemoves what runs whose qscope was killed left behind: their "
                            "processes, units and directories.\nRuns that are still going on are not touched.");
                return 0;
        }
        if (argc > 1)
                return cli_usage("clean", "\"%s\": no argument is wanted", argv[1]);
        if (geteuid() != 0) {
                error_set(&e, -EPERM, "clean must be run as root (sudo qscope clean)");
                return cli_fail(EXIT_HOST, &e);
        }
        n = rundir_clean(NULL, &e);
        if (n < 0)
                return cli_fail(EXIT_HOST, &e);
        (void) printf("%d dead run%s removed\n", n, n == 1 ? "" : "s");
        return 0;
}
