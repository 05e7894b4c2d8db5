/* SPDX-License-Identifier: Apache-2.0 */
#include "run/expected.h"

#include "sys/tree.h"

int expected_observe(const Expect *expect, ExpectedOpen open_directory, void *userdata, Outcome *o, Error *e)
{
        if (expect->n_files == 0)
                return 0;
        o->expected_files = calloc(expect->n_files, sizeof(*o->expected_files));
        if (!o->expected_files)
                return -ENOMEM;
        o->n_expected_files = expect->n_files;
        for (size_t i = 0; i < expect->n_files; i++) {
                const ExpectFile *wanted = &expect->files[i];
                struct ExpectedFile *seen = &o->expected_files[i];
                char sha256[HASH_HEX_MAX];
                const char *below;
                _cleanup_close_ int fd = open_directory(userdata, wanted->path, &below);
                int r;

                seen->equals = wanted->equals ? 0 : -1;
                if (fd < 0)
                        return error_set(e, -EXDEV, "expect.files: %s is no place that a job can write to",
                                        wanted->path);
                r = tree_file(fd, below, &seen->exists, seen->sha256);
                if (r < 0)
                        return error_errno(e, r, "expect.files: %s", wanted->path);
                if (wanted->equals) {
                        hash_data(wanted->equals, strlen(wanted->equals), sha256);
                        seen->equals = streq(sha256, seen->sha256);
                }
        }
        return 0;
}
