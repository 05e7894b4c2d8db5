/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <nettle/base64.h>

void hex_encode(const uint8_t *data, size_t size, char *out)
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < size; i++) {
                out[2 * i] = digits[data[i] >> 4];
                out[2 * i + 1] = digits[data[i] & 15];
        }
        out[2 * size] = '\0';
}

void hash_finish(Hash *h, char hex[static HASH_HEX_MAX])
{
        uint8_t digest[SHA256_DIGEST_SIZE];

        sha256_digest(h, sizeof(digest), digest);
        hex_encode(digest, sizeof(digest), hex);
}

void hash_data(const void *data, size_t size, char hex[static HASH_HEX_MAX])
{
        Hash h;

        hash_init(&h);
        hash_update(&h, data, size);
        hash_finish(&h, hex);
}

char *base64_encode(const void *data, size_t size)
{
        char *out;

        if (size > SIZE_MAX / 2)
                return NULL;
        out = malloc(BASE64_ENCODE_RAW_LENGTH(size) + 1);
        if (!out)
                return NULL;
        base64_encode_raw(out, size, data);
        out[BASE64_ENCODE_RAW_LENGTH(size)] = '\0';
        return out;
}

int base64_decode(const char *text, uint8_t **ret, size_t *ret_size)
{
        struct base64_decode_ctx ctx;
        size_t length = strlen(text), size;
        _cleanup_free_ uint8_t *out = NULL;

        /* nettle skips white space and accepts it anywhere; a strict reader does not. */
        if (length % 4 != 0 || strpbrk(text, " \t\r\n\v\f"))
                return -EINVAL;
        size = BASE64_DECODE_LENGTH(length);
        out = malloc(size + 1);
        if (!out)
                return -ENOMEM;
        base64_decode_init(&ctx);
        if (!base64_decode_update(&ctx, &size, out, length, text) || !base64_decode_final(&ctx))
                return -EINVAL;
        out[size] = 0;
        *ret = TAKE_PTR(out);
        *ret_size = size;
        return 0;
}
