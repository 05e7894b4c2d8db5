/* SPDX-License-Identifier: Apache-2.0 */

/* qscope explain: what a receipt means and what to do next. The receipt may come from anybody. */

#include "cli/cli.h"

#include <getopt.h>

#include "core/explain.h"
#include "run/load.h"

static int help(void)
{
        (void) puts("Usage: qscope explain [OPTIONS] RECEIPT.json\n\n"
                    "Says what a receipt means: the verdict, each reason with what to check and what to do next,\n"
                    "what the command used, changed, started, opened, tried and left, and what was not seen.\n"
                    "RECEIPT.json may be - (standard input).\n\n"
                    "  --json   one JSON document (qscope.explanation/v1), for tools\n"
                    "  --help\n\n"
                    "Exit status: 0, whatever the verdict; 2: the file is not a receipt.");
        return 0;
}

static int print(const cJSON *receipt, bool json)
{
        _cleanup_(cJSON_Deletep) cJSON *explanation = explain(receipt);
        _cleanup_free_ char *text = NULL;

        if (explanation)
                text = json ? json_print(explanation, true)
                            : explanation_text(explanation, cli_wants_colour());
        return cli_put(text);
}

int cli_explain(int argc, char **argv)
{
        static const struct option options[] = {
                { "json", no_argument, NULL, 'j' },
                { "help", no_argument, NULL, 'h' },
                { NULL },
        };
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        Error e = ERROR_INIT;
        bool json = false;
        int option, r;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":h", options, NULL)) >= 0) {
                if (option == 'h')
                        return help();
                if (option != 'j')
                        return cli_usage("explain", "%s: there is no such option", argv[optind - 1]);
                json = true;
        }
        if (argc - optind != 1)
                return cli_usage("explain", argc == optind ? "which receipt?" : "one receipt at a time");
        r = load_receipt(argv[optind], &receipt, &e);
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        return print(receipt, json) < 0 ? cli_fail(EXIT_HOST, &e) : 0;
}
