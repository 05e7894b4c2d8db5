/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kept.h"

#include "base/number.h"
#include "test.h"

static KeptItem item(const char *name, uint64_t usec, uint64_t bytes, bool in_use)
{
        return (KeptItem){ .name = name, .usec = usec, .bytes = bytes, .in_use = in_use };
}

/* The names of what stays. */
static void check_choice(const char *wanted, uint64_t count, uint64_t total, uint64_t age)
{
        KeptItem items[] = {
                item("c", 300, 10, false),
                item("a", 100, 10, false),
                item("d", 5000, UNKNOWN - 5, false), /* of tomorrow, as large as a number can be */
                item("b", 200, 10, true),
        };
        char kept[8] = "";
        size_t n = 0;

        keep_choose(items, ELEMENTSOF(items), 1000, count, total, age);
        for (size_t i = 0; i < ELEMENTSOF(items); i++)
                if (!items[i].remove)
                        kept[n++] = *items[i].name;
        CHECK_STR(kept, wanted);
}

TEST(choice)
{
        check_choice("abcd", UNKNOWN, UNKNOWN, UNKNOWN);
        check_choice("bcd", 2, UNKNOWN, UNKNOWN);
        check_choice("bd", 1, UNKNOWN, UNKNOWN);
        check_choice("b", 0, UNKNOWN, UNKNOWN);
        check_choice("bcd", UNKNOWN, UNKNOWN, 800);
        check_choice("bd", UNKNOWN, UNKNOWN, 0);
        check_choice("b", UNKNOWN, 100, UNKNOWN);
        keep_choose(NULL, 0, 0, 0, 0, 0);
}

TEST(total)
{
        KeptItem items[] = { item("b", 2, 60, false), item("a", 1, 50, false), item("c", 3, 40, false) };

        keep_choose(items, 3, 10, UNKNOWN, 100, UNKNOWN);
        CHECK(items[0].remove && !items[1].remove && !items[2].remove);
}

TEST(info)
{
        KeptInfo info = {
                .run_id = (char *) "0123456789abcdef0123456789abcdef",
                .job_id = (char *) "job",
                .verdict = (char *) "pass",
                .workspace = (char *) "/srv/a\xff",
                .receipt_sha256 = (char *) "0000000000000000000000000000000000000000000000000000000000000000",
                .files = 2,
                .bytes = 3,
                .kept_usec = 1700000000000000,
        };
        _cleanup_free_ char *text = kept_info_print(&info);
        _cleanup_(kept_info_clear) KeptInfo read = { 0 }, none = { 0 };
        Error e = ERROR_INIT;

        REQUIRE(text);
        CHECK_EQ(kept_info_parse(text, strlen(text), "layer.json", &read, &e), 0);
        CHECK_STR(e.text, "");
        CHECK_STR(read.workspace, info.workspace);
        CHECK_STR(read.receipt_sha256, info.receipt_sha256);
        CHECK_EQ(read.kept_usec, info.kept_usec);
        CHECK_EQ(kept_info_parse("{}", 2, "layer.json", &none, &e), -EINVAL);
        CHECK_EQ(kept_info_parse("[", 1, "layer.json", &none, &e), -EINVAL);
}

static int parse_rules(const char *text, KeepRules *rules, Error *e)
{
        *rules = keep_rules_default;
        return keep_rules_parse(text, strlen(text), "keep.json", rules, e);
}

TEST(rules)
{
        KeepRules rules;
        Error e = ERROR_INIT;

        CHECK_EQ(parse_rules("{}", &rules, &e), 0);
        CHECK(rules.layers && rules.age == 7 * 24 * 3600 * USEC_PER_SEC && rules.receipt_age == UNKNOWN);
        CHECK_EQ(parse_rules("// ours\n{\"layers\": {\"keep\": false, \"age\": \"12h\", \"total\": \"1G\", \"count\": "
                             "null}, \"receipts\": {\"age\": \"90d\", \"total\": 1000}}",
                                 &rules, &e),
                        0);
        CHECK(!rules.layers && rules.count == UNKNOWN);
        CHECK_EQ(rules.age, 12 * 3600 * USEC_PER_SEC);
        CHECK_EQ(rules.total, MIB(1024));
        CHECK_EQ(rules.receipt_total, 1000);
        CHECK_EQ(parse_rules("{\"layers\": {\"agee\": \"1d\"}}", &rules, &e), -EINVAL);
        CHECK_HAS(e.text, "keep.json: line 1: keep.layers.agee: unknown key (did you mean \"age\"?)");
        CHECK_EQ(parse_rules("{\"layer\": {}}", &rules, &e), -EINVAL);
        CHECK_HAS(e.text, "keep.layer: unknown key (did you mean \"layers\"?)");
        CHECK_EQ(parse_rules("{\"layers\": {\"age\": 7}}", &rules, &e), -EINVAL);
        CHECK_EQ(parse_rules("{\"layers\": {\"age\": \"1y\"}}", &rules, &e), -EINVAL);
        CHECK_EQ(parse_rules("{\"layers\": {\"count\": -1}}", &rules, &e), -EINVAL);
        CHECK_EQ(parse_rules("{\"receipts\": []}", &rules, &e), -EINVAL);
        CHECK_EQ(rules.age, keep_rules_default.age);
}

TEST(ages)
{
        uint64_t usec;

        CHECK_EQ(parse_age("90s", &usec), 0);
        CHECK_EQ(usec, 90 * USEC_PER_SEC);
        CHECK_EQ(parse_age("2w", &usec), 0);
        CHECK_EQ(usec, 14 * 24 * 3600 * USEC_PER_SEC);
        CHECK_EQ(parse_age("0d", &usec), 0);
        CHECK_EQ(parse_age("7", &usec), -EINVAL);
        CHECK_EQ(parse_age("-1d", &usec), -EINVAL);
        CHECK_EQ(parse_age("", &usec), -EINVAL);
        CHECK_EQ(parse_age("1 d", &usec), -EINVAL);
        CHECK_EQ(parse_age("99999999999w", &usec), -ERANGE);
        CHECK_EQ(parse_age("999999999999999999999d", &usec), -ERANGE);
}

TEST(why_there_is_none)
{
        for (KeptState state = 0; state < _KEPT_STATE_MAX; state++)
                CHECK(kept_state_sentence(kept_state_names[state]) != kept_state_sentence(NULL));
        CHECK_HAS(kept_state_sentence("off"), "--keep");
        CHECK(kept_state_sentence("odd") == kept_state_sentence(NULL));
}

TEST_MAIN
