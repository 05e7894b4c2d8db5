/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "test.h"

TEST(sha256)
{
        char hex[HASH_HEX_MAX];
        Hash h;

        /* FIPS 180-4, and the empty message. */
        hash_data("abc", 3, hex);
        CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        hash_data("", 0, hex);
        CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        hash_init(&h);
        hash_update(&h, "a", 1);
        hash_update(&h, "bc", 2);
        hash_finish(&h, hex);
        CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        hash_finish(&h, hex); /* starts anew */
        CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(base64)
{
        static const struct {
                const char *plain, *encoded;
        } cases[] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
                { "foobar", "Zm9vYmFy" } };
        static const char *const bad[] = { "Zg", "Zg=", "Zg===", "Zg==Zg==", "Z g=", "Zm9v\n",
                "====", "Zm9*" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *encoded = base64_encode(cases[i].plain, strlen(cases[i].plain));
                _cleanup_free_ uint8_t *decoded = NULL;
                size_t size = 99;

                CHECK_STR(encoded, cases[i].encoded);
                REQUIRE(base64_decode(cases[i].encoded, &decoded, &size) == 0);
                CHECK_EQ(size, strlen(cases[i].plain));
                CHECK_STR((char *) decoded, cases[i].plain);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ uint8_t *decoded = NULL;
                size_t size;

                if (!test_check(base64_decode(bad[i], &decoded, &size) == -EINVAL, __FILE__, __LINE__, "%s",
                                    bad[i]))
                        continue;
                CHECK(!decoded);
        }
}

TEST(hex)
{
        const uint8_t bytes[] = { 0x00, 0x9f, 0xff };
        char out[7];

        hex_encode(bytes, sizeof(bytes), out);
        CHECK_STR(out, "009fff");
}

TEST_MAIN
