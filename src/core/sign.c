/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sign.h"

#include "base/text.h"

static bool passed(const cJSON *receipt)
{
        return streq_ptr(view_text(receipt, "verdict"), "pass");
}

static uint64_t count_changes(const cJSON *receipt)
{
        static const char *const kinds[] = { "added", "removed", "changed" };
        const cJSON *fs = view_get(receipt, "fs");
        uint64_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                n += view_length(view_get(fs, kinds[i]));
        return n;
}

/* Whether one of the texts stands in what was printed. */
static bool printed(const cJSON *receipt, const char *const *texts)
{
        const char *streams[] = { view_text(receipt, "stderr"), view_text(receipt, "stdout") };

        for (size_t i = 0; i < ELEMENTSOF(streams); i++)
                for (size_t j = 0; streams[i] && texts[j]; j++)
                        if (strstr(streams[i], texts[j]))
                                return true;
        return false;
}

static const char *argument(const cJSON *receipt, int i)
{
        return cJSON_GetStringValue(cJSON_GetArrayItem(view_get(receipt, "argv"), i));
}

static bool not_found(const cJSON *receipt)
{
        return view_number(receipt, "exit_code") == 127;
}

static bool python_usage(const cJSON *receipt)
{
        const char *program = argument(receipt, 0), *slash = program ? strrchr(program, '/') : NULL;

        return view_number(receipt, "exit_code") == 2 && program &&
               startswith(slash ? slash + 1 : program, "python");
}

static bool names_network(const char *word)
{
        static const char *const words[] = { "install", "clone", "fetch", "pull", "download", "update" };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (streq(word, words[i]))
                        return true;
        return strstr(word, "http://") || strstr(word, "https://");
}

static bool wanted_network(const cJSON *receipt)
{
        const cJSON *word;

        if (view_length(view_get(receipt, "egress")) > 0)
                return true;
        cJSON_ArrayForEach(word, view_get(receipt, "argv"))
        {
                const char *text = cJSON_GetStringValue(word);

                if (text && names_network(text))
                        return true;
        }
        return false;
}

static bool timed_out_on_network(const cJSON *receipt)
{
        return view_true(receipt, "timed_out") && wanted_network(receipt);
}

static bool was_refused(const cJSON *receipt)
{
        static const char *const texts[] = { "Permission denied", "Operation not permitted",
                "Read-only file system", NULL };

        return printed(receipt, texts);
}

static bool wrong_place(const cJSON *receipt)
{
        static const char *const texts[] = { "No such file or directory", "ModuleNotFoundError",
                "Cannot find module", NULL };

        return !passed(receipt) && printed(receipt, texts);
}

static bool said_nothing(const cJSON *receipt)
{
        return passed(receipt) && view_number(view_get(receipt, "stdout_info"), "bytes") == 0 &&
               view_number(view_get(receipt, "stderr_info"), "bytes") == 0 && count_changes(receipt) == 0;
}

static bool changed_unjudged(const cJSON *receipt)
{
        return passed(receipt) && count_changes(receipt) > 0 &&
               !view_get(view_get(receipt, "fs"), "unexpected");
}

static bool passed_with_changes(const cJSON *receipt)
{
        return passed(receipt) && count_changes(receipt) > 0 &&
               view_get(view_get(receipt, "fs"), "unexpected");
}

static bool passed_unseen(const cJSON *receipt)
{
        return passed(receipt) && view_length(view_get(receipt, "blind_spots")) > 0;
}

static bool output_cut(const cJSON *receipt)
{
        return view_true(view_get(receipt, "stdout_info"), "truncated") ||
               view_true(view_get(receipt, "stderr_info"), "truncated");
}

static const Sign table[] = {
        { "not_found", not_found, "127: the command, or one that it called, is not there.",
                        "Is the name right, and does `command -v` find it on this host?",
                        "Install nothing; change the job." },
        { "timed_out_on_network", timed_out_on_network, "It ran out of time and wanted the network.",
                        "Which host did it want (egress), and what for?",
                        "Reject the job, or give it what it would have fetched." },
        { "python_usage", python_usage, "Python ended with 2: a wrong option, or a file that is not there.",
                        "Does cwd hold the script or the module?",
                        "Put cwd right; do not word the job anew." },
        { "was_refused", was_refused, "Something was refused to it: it says so itself.",
                        "Did it want to write to /usr, /etc or somebody's home?",
                        "Drop the job if it did; nothing is wrong with the sandbox." },
        { "wrong_place", wrong_place, "It looked for a file or module that is not there.",
                        "Is cwd the directory that the command was written for?",
                        "Put cwd right, or hand the file in with files." },
        { "said_nothing", said_nothing, "It passed, printed nothing and changed nothing.",
                        "Is there a reason for the silence, or did it have nothing to do?",
                        "Have it say something that can be checked (expect)." },
        { "changed_unjudged", changed_unjudged, "It changed files, and nobody had said which it may change.",
                        "Are the paths under fs the ones that you wanted?",
                        "Name them in allow_changes, so that the next run is judged by it." },
        { "passed_with_changes", passed_with_changes, "It changed only what it was allowed to.",
                        "Is their content what you wanted?", "Only now copy them back." },
        { "passed_unseen", passed_unseen, "It passed as far as could be seen; some things could not.",
                        "Does what was not seen matter for this job?",
                        "See `qscope doctor` for what this host lacks." },
        { "output_cut", output_cut, "It printed more than is kept.",
                        "Is what you look for in the middle, which is left out?",
                        "Raise limits.output; bytes and sha256 are those of all of it." },
};

const Sign *sign_table(size_t *ret_n)
{
        *ret_n = ELEMENTSOF(table);
        return table;
}
