/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/capture.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CHUNK         KIB(64)
#define CHUNKS_A_READ 16u /* then the event loop looks at everything else */
#define PIPE_SIZE     MIB(1)

struct Capture {
        int fd;
        Hash hash;
        uint64_t bytes, after_exit_bytes;
        uint8_t *head, *ring, *whole;
        size_t head_max, head_size, ring_max;
        uint64_t ring_bytes; /* all that ever went into the ring */
        bool keep_whole;
        bool utf8;
        uint8_t carry[4]; /* a sequence that the last chunk cut */
        size_t carry_size;
        uint8_t chunk[CHUNK];
};

Capture *capture_free(Capture *c)
{
        if (!c)
                return NULL;
        safe_close(c->fd);
        free(c->head);
        free(c->ring);
        free(c->whole);
        free(c);
        return NULL;
}

int capture_new(uint64_t keep_bytes, bool whole, Capture **ret, int *ret_write_fd)
{
        _cleanup_(capture_freep) Capture *c = calloc(1, sizeof(*c));
        int pair[2];

        if (!c)
                return -ENOMEM;
        c->fd = -EBADF;
        c->utf8 = true;
        c->keep_whole = whole;
        c->head_max = (size_t) (keep_bytes / 2);
        c->ring_max = (size_t) (keep_bytes - keep_bytes / 2);
        hash_init(&c->hash);
        c->head = malloc(MAX(c->head_max, (size_t) 1));
        c->ring = malloc(MAX(c->ring_max, (size_t) 1));
        if (!c->head || !c->ring)
                return -ENOMEM;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        c->fd = pair[0];
        /* Only our end must not block. A larger pipe means fewer wake-ups; the default does as well. */
        (void) fcntl(pair[0], F_SETFL, O_NONBLOCK);
        (void) fcntl(pair[0], F_SETPIPE_SZ, (int) PIPE_SIZE);
        *ret_write_fd = pair[1];
        *ret = TAKE_PTR(c);
        return 0;
}

int capture_fd(const Capture *c)
{
        return c->fd;
}

int capture_give(const Capture *c, uid_t uid, gid_t gid)
{
        return fchown(c->fd, uid, gid) < 0 ? -errno : 0;
}

/* Validity over chunk edges. Once false it stays so, and costs nothing more. */
static void check_utf8(Capture *c, const uint8_t *p, size_t size)
{
        size_t i = 0;

        while (c->utf8 && c->carry_size > 0 && i < size) {
                c->carry[c->carry_size++] = p[i++];
                if (utf8_sequence(c->carry, c->carry_size) > 0)
                        c->carry_size = 0;
                else if (c->carry_size == sizeof(c->carry))
                        c->utf8 = false;
        }
        while (c->utf8 && i < size) {
                size_t n;

                if (p[i] < 0x80) {
                        i++;
                        continue;
                }
                n = utf8_sequence(p + i, size - i);
                if (n > 0) {
                        i += n;
                } else if (size - i < sizeof(c->carry)) {
                        c->carry_size = size - i;
                        memcpy(c->carry, p + i, c->carry_size);
                        return;
                } else {
                        c->utf8 = false;
                }
        }
}

static void keep_ring(Capture *c, const uint8_t *p, size_t size)
{
        if (c->ring_max == 0)
                return;
        if (size > c->ring_max) {
                c->ring_bytes += size - c->ring_max;
                p += size - c->ring_max;
                size = c->ring_max;
        }
        while (size > 0) {
                size_t at = (size_t) (c->ring_bytes % c->ring_max), n = MIN(size, c->ring_max - at);

                memcpy(c->ring + at, p, n);
                c->ring_bytes += n;
                p += n;
                size -= n;
        }
}

static int keep_whole(Capture *c, const uint8_t *p, size_t size)
{
        uint8_t *larger;

        if (!c->keep_whole)
                return 0;
        if (c->bytes + size > CAPTURE_WHOLE_MAX) {
                c->keep_whole = false;
                free(TAKE_PTR(c->whole));
                return 0;
        }
        larger = realloc(c->whole, (size_t) c->bytes + size + 1);
        if (!larger)
                return -ENOMEM;
        c->whole = larger;
        memcpy(c->whole + c->bytes, p, size);
        return 0;
}

static int take(Capture *c, const uint8_t *p, size_t size)
{
        size_t head = MIN(size, c->head_max - c->head_size);
        int r = keep_whole(c, p, size);

        hash_update(&c->hash, p, size);
        check_utf8(c, p, size);
        memcpy(c->head + c->head_size, p, head);
        c->head_size += head;
        keep_ring(c, p + head, size - head);
        c->bytes += size;
        return r;
}

int capture_read(Capture *c, bool after_exit)
{
        for (unsigned i = 0; i < CHUNKS_A_READ; i++) {
                ssize_t n = read(c->fd, c->chunk, sizeof(c->chunk));
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                if (n == 0)
                        return -EPIPE;
                if (after_exit)
                        c->after_exit_bytes += (uint64_t) n;
                r = take(c, c->chunk, (size_t) n);
                if (r < 0)
                        return r;
        }
        return 1;
}

int capture_finish(Capture *c, StreamRecord *ret)
{
        size_t tail = (size_t) MIN(c->ring_bytes, (uint64_t) c->ring_max);
        size_t at = c->ring_max > 0 ? (size_t) (c->ring_bytes % c->ring_max) : 0;

        *ret = (StreamRecord){
                .bytes = c->bytes,
                .after_exit_bytes = c->after_exit_bytes,
                .utf8 = c->utf8 && c->carry_size == 0,
                .head_size = c->head_size,
                .tail_size = tail,
        };
        ret->tail = malloc(tail + 1);
        if (!ret->tail)
                return -ENOMEM;
        /* The oldest byte is where the next would be written, once the ring has been full. */
        if (tail == c->ring_max && tail > 0) {
                memcpy(ret->tail, c->ring + at, tail - at);
                memcpy(ret->tail + tail - at, c->ring, at);
        } else {
                memcpy(ret->tail, c->ring, tail);
        }
        hash_finish(&c->hash, ret->sha256);
        ret->head = TAKE_PTR(c->head);
        ret->whole = c->keep_whole ? TAKE_PTR(c->whole) : NULL;
        return 0;
}
