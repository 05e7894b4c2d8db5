/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree_content.h"

#include <endian.h>

#define BLOCK       4096u
#define BUFFER_SIZE (16 * BLOCK)

static uint64_t allocated(const struct stat *st)
{
        return MIN((uint64_t) st->st_blocks * 512, (uint64_t) st->st_size);
}

static bool has_large_holes(const struct stat *st)
{
        return (uint64_t) st->st_size - allocated(st) > CONTENT_HOLES_MAX;
}

static bool spend(uint64_t *budget, uint64_t bytes)
{
        if (bytes > *budget)
                return false;
        *budget -= bytes;
        return true;
}

/* Holes that are read count like data, or many files of middling holes would take for ever. */
ContentWay content_choose(const struct stat *st, const struct stat *after, uint64_t *budget)
{
        uint64_t whole = (uint64_t) st->st_size, data = allocated(st);

        if (after) {
                whole += (uint64_t) after->st_size;
                data += allocated(after);
        }
        if (!has_large_holes(st) && (!after || !has_large_holes(after)) && spend(budget, whole))
                return CONTENT_WHOLE;
        /* A file without holes has nothing to be gained from. */
        if (data < whole && spend(budget, data))
                return CONTENT_SPARSE;
        return CONTENT_UNREAD;
}

/* Reads until the buffer is full or the file ends. */
static ssize_t read_at(int fd, uint8_t *buffer, size_t size, off_t at)
{
        size_t done = 0;

        while (done < size) {
                ssize_t n = pread(fd, buffer + done, size - done, at + (off_t) done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

int content_hash(int fd, char sha256[static HASH_HEX_MAX])
{
        uint8_t buffer[BUFFER_SIZE];
        off_t at = 0;
        Hash h;

        hash_init(&h);
        for (;;) {
                ssize_t n = read_at(fd, buffer, sizeof(buffer), at);

                if (n < 0)
                        return (int) n;
                hash_update(&h, buffer, (size_t) n);
                if ((size_t) n < sizeof(buffer))
                        break;
                at += n;
        }
        hash_finish(&h, sha256);
        return 0;
}

static bool is_zero(const uint8_t *data, size_t size)
{
        return data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

static void hash_blocks(Hash *h, const uint8_t *data, size_t size, uint64_t offset)
{
        for (size_t i = 0; i < size; i += BLOCK) {
                size_t length = MIN((size_t) BLOCK, size - i);
                uint64_t place = htole64(offset + i);

                if (is_zero(data + i, length))
                        continue;
                hash_update(h, &place, sizeof(place));
                hash_update(h, data + i, length);
        }
}

/* The next stretch of data from at on, widened to whole blocks. 0: there is none. */
static int find_data(int fd, off_t at, off_t *ret_begin, off_t *ret_end)
{
        off_t begin = lseek(fd, at, SEEK_DATA), end;

        if (begin < 0)
                return errno == ENXIO ? 0 : -errno;
        end = lseek(fd, begin, SEEK_HOLE);
        if (end < 0)
                return errno == ENXIO ? 0 : -errno; /* it became shorter */
        *ret_begin = MAX(at, begin - begin % BLOCK);
        *ret_end = end + (BLOCK - end % BLOCK) % BLOCK;
        return 1;
}

int content_hash_sparse(int fd, char sparse_sha256[static HASH_HEX_MAX])
{
        uint8_t buffer[BUFFER_SIZE];
        struct stat st;
        off_t at = 0, end = 0;
        uint64_t size;
        Hash h;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        hash_init(&h);
        while (at < st.st_size && (r = find_data(fd, at, &at, &end)) != 0) {
                if (r < 0)
                        return r;
                while (at < end) {
                        ssize_t n = read_at(fd, buffer, MIN(sizeof(buffer), (size_t) (end - at)), at);

                        if (n < 0)
                                return (int) n;
                        if (n > 0)
                                hash_blocks(&h, buffer, (size_t) n, (uint64_t) at);
                        at = n > 0 ? at + n : end;
                }
                at = end;
        }
        size = htole64((uint64_t) st.st_size);
        hash_update(&h, &size, sizeof(size));
        hash_finish(&h, sparse_sha256);
        return 0;
}

int content_equal(int before_fd, int after_fd, ContentWay way, bool *ret_equal)
{
        char before[HASH_HEX_MAX], after[HASH_HEX_MAX];
        uint8_t a[BUFFER_SIZE], b[BUFFER_SIZE];
        int r;

        if (way == CONTENT_SPARSE) {
                r = content_hash_sparse(before_fd, before);
                if (r == 0)
                        r = content_hash_sparse(after_fd, after);
                *ret_equal = r == 0 && streq(before, after);
                return r;
        }
        for (off_t at = 0;;) {
                ssize_t n = read_at(before_fd, a, sizeof(a), at), m = read_at(after_fd, b, sizeof(b), at);

                if (n < 0 || m < 0)
                        return (int) (n < 0 ? n : m);
                *ret_equal = n == m && memcmp(a, b, (size_t) n) == 0;
                if (!*ret_equal || (size_t) n < sizeof(a))
                        return 0;
                at += n;
        }
}
