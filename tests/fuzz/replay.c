/* SPDX-License-Identifier: Apache-2.0 */
/* main() for a fuzz target without libFuzzer: runs every file below the files and directories given, each
 * also cut short at some places. Fails when there was nothing to run. */

#include "fuzz.h"

#include <ftw.h>

#include "files.h"

#define CUTS         16u
#define OPEN_MAX_FTW 16

static unsigned n_inputs;

static void run(const char *text, size_t size)
{
        /* A copy of the exact size: AddressSanitizer then sees a read behind the end. */
        _cleanup_free_ uint8_t *copy = malloc(size > 0 ? size : 1);

        assert(copy);
        memcpy(copy, text, size);
        (void) LLVMFuzzerTestOneInput(copy, size);
        n_inputs++;
}

static int visit(const char *path, _unused_ const struct stat *status, int type, _unused_ struct FTW *ftw)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        if (type != FTW_F)
                return 0;
        text = read_test_file(path, &size);
        if (!text) {
                (void) fprintf(stderr, "%s: cannot be read\n", path);
                return 1;
        }
        run(text, size);
        for (unsigned i = 0; i < CUTS; i++)
                run(text, size * i / CUTS);
        return 0;
}

int main(int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                if (nftw(argv[i], visit, OPEN_MAX_FTW, FTW_PHYS) != 0) {
                        (void) fprintf(stderr, "%s: failed\n", argv[i]);
                        return 1;
                }
        (void) printf("%u inputs\n", n_inputs);
        return n_inputs > 0 ? 0 : 1;
}
