/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus.h"

#include <limits.h>

#include "base/text.h"
#include "files.h"

/* Whether the sentence holds what NAME.expect says, begins with the file's name and is one line. */
static bool sentence_is_right(const char *directory, const char *name, const char *sentence)
{
        char path[PATH_MAX];
        _cleanup_free_ char *expected = NULL;
        size_t size;

        (void) snprintf(path, sizeof(path), "%s/%.*s.expect", directory,
                        (int) (strlen(name) - STRLEN(".json")), name);
        expected = read_test_file(path, &size);
        if (!expected || size < 2) {
                (void) printf("  %s: cannot be read, or is empty\n", path);
                return false;
        }
        expected[strcspn(expected, "\n")] = '\0';
        if (startswith(sentence, name) && strstr(sentence, expected))
                return true;
        (void) printf("  %s: \"%s\" is not in \"%s\"\n", name, expected, sentence);
        return false;
}

static unsigned replay(const char *relative, CorpusReader read, bool good, unsigned *ret_failures)
{
        _cleanup_free_ char *directory = strdup(test_path(relative));
        _cleanup_strv_ char **names = list_test_files(directory, ".json");
        unsigned n = 0;

        *ret_failures = 0;
        for (; names[n]; n++) {
                _cleanup_free_ char *path = text_printf("%s/%s", directory, names[n]), *text = NULL;
                Error e = ERROR_INIT;
                size_t size = 0;
                bool right;
                int r;

                text = read_test_file(path, &size);
                r = text ? read(text, size, names[n], &e) : -EIO;
                right = good ? r == 0 && streq(e.text, "")
                             : r == -EINVAL && sentence_is_right(directory, names[n], e.text);
                if (right)
                        continue;
                (void) printf("  %s: returned %d, \"%s\"\n", path, r, e.text);
                (*ret_failures)++;
        }
        return n;
}

unsigned corpus_replay_bad(const char *directory, CorpusReader read, unsigned *ret_failures)
{
        return replay(directory, read, false, ret_failures);
}

unsigned corpus_replay_good(const char *directory, CorpusReader read, unsigned *ret_failures)
{
        return replay(directory, read, true, ret_failures);
}
