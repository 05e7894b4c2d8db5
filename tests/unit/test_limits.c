/* SPDX-License-Identifier: Apache-2.0 */
#include "core/limits.h"

#include "core/property.h"
#include "test.h"

TEST(every_row_is_whole)
{
        for (size_t i = 0; i < _LIMIT_MAX; i++) {
                REQUIRE(limit_table[i].key);
                CHECK_EQ(limit_from_key(limit_table[i].key), i);
                if (limit_table[i].property)
                        CHECK(property_find(limit_table[i].property) != NULL);
        }
        CHECK_EQ(limit_from_key("nothing"), _LIMIT_INVALID);
        CHECK_EQ(limit_from_key("Memory"), _LIMIT_INVALID);
}

TEST(unset_is_above_unlimited_is_above_all)
{
        Limits limits = LIMITS_UNSET;

        for (size_t i = 0; i < _LIMIT_MAX; i++)
                CHECK(limits.value[i] == LIMIT_UNSET);
        CHECK(LIMIT_UNSET > LIMIT_UNLIMITED && LIMIT_UNLIMITED > INT64_MAX);
}

TEST(floors)
{
        CHECK_EQ(limit_table[LIMIT_MEMORY].floor, 16 << 20);
        CHECK_EQ(limit_table[LIMIT_SWAP].floor, 0);
        CHECK_EQ(limit_table[LIMIT_OUTPUT].floor, 0);
        CHECK_EQ(limit_table[LIMIT_DISK].floor, 64 << 10);
        CHECK(limit_table[LIMIT_TASKS].floor >= 2);
}

TEST(of_a_process)
{
        CHECK_EQ(limit_of_process(LIMIT_CPU_TIME, 100000), 2);
        CHECK_EQ(limit_of_process(LIMIT_CPU_TIME, 3 * 1000000), 4);
        CHECK_EQ(limit_of_process(LIMIT_OPEN_FILES, 64), 64);
}

TEST_MAIN
