/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SHA-256 (FIPS 180-4) by nettle. */

#include <nettle/sha2.h>

#include "base/macro.h"

#define HASH_HEX_MAX (SHA256_DIGEST_SIZE * 2 + 1)

typedef struct sha256_ctx Hash;

static inline void hash_init(Hash *h)
{
        sha256_init(h);
}

static inline void hash_update(Hash *h, const void *data, size_t size)
{
        sha256_update(h, size, data);
}

/* Writes 64 lower-case hex digits and a NUL; the context starts anew. */
void hash_finish(Hash *h, char hex[static HASH_HEX_MAX]);

void hash_data(const void *data, size_t size, char hex[static HASH_HEX_MAX]);

/* Bytes as lower-case hex; out has 2 * size + 1 bytes. */
void hex_encode(const uint8_t *data, size_t size, char *out);

/* Standard base64 with padding (RFC 4648 §4); NULL when out of memory. */
char *base64_encode(const void *data, size_t size);

/* Decodes strictly (padding required, nothing after it). 0, -EINVAL or -ENOMEM; *ret has a NUL behind it. */
int base64_decode(const char *text, uint8_t **ret, size_t *ret_size);
