/* SPDX-License-Identifier: Apache-2.0 */
#include "core/property.h"

#include "base/text.h"
#include "json/json.h"
#include "test.h"

TEST(table)
{
        size_t n = 0;

        for (const PropertyInfo *info; (info = property_at(n)); n++) {
                CHECK(property_find(info->name) == info); /* no name twice */
                CHECK(info->type < _PROPERTY_TYPE_MAX);
        }
        CHECK(n >= 60);
        CHECK(!property_at(n));
        CHECK(!property_find("Delegate") && !property_find("User") && !property_find("IPAddressDeny"));
        CHECK_STR(property_find("CPUQuota")->bus_name, "CPUQuotaPerSecUSec");
}

/* A value as a policy writes it, and as systemd would. */
TEST(good_values)
{
        static const struct {
                const char *name, *json, *text;
        } cases[] = {
                { "PrivateUsers", "true", "yes" },
                { "PrivateUsers", "false", "no" },
                { "ProtectSystem", "\"strict\"", "strict" },
                { "ProtectSystem", "true", "yes" },
                { "ProtectHome", "\"tmpfs\"", "tmpfs" },
                { "KeyringMode", "\"private\"", "private" },
                { "Personality", "\"x86-64\"", "x86-64" },
                { "CPUWeight", "100", "100" },
                { "MemoryHigh", "\"512M\"", "536870912" },
                { "MemoryHigh", "\"infinity\"", "infinity" },
                { "MemoryLow", "4096", "4096" },
                { "LimitNPROC", "64", "64" },
                { "LimitSTACK", "\"8M\"", "8388608" },
                { "LimitAS", "\"infinity\"", "infinity" },
                { "Nice", "-5", "-5" },
                { "OOMScoreAdjust", "1000", "1000" },
                { "UMask", "\"0022\"", "0022" },
                { "UMask", "\"77\"", "0077" },
                { "SystemCallErrorNumber", "\"EPERM\"", "EPERM" },
                { "CapabilityBoundingSet", "[]", "" },
                { "CapabilityBoundingSet", "[\"CAP_CHOWN\", \"CAP_KILL\"]", "CAP_CHOWN CAP_KILL" },
                { "RestrictNamespaces", "true", "yes" },
                { "RestrictNamespaces", "false", "no" },
                { "RestrictNamespaces", "[\"user\", \"mnt\"]", "mnt user" },
                { "SystemCallFilter", "[\"@system-service\"]", "@system-service" },
                { "SystemCallFilter", "[\"~@keyring\", \"bpf\"]", "~@keyring bpf" },
                { "SystemCallFilter", "[\"~@keyring\", \"~bpf\"]", "~@keyring bpf" },
                { "SystemCallArchitectures", "[\"native\"]", "native" },
                { "InaccessiblePaths", "[\"/a b\", \"-/c\", \"+/d\", \"-+/e\"]", "\"+/a b\" -+/c +/d -+/e" },
                { "BindReadOnlyPaths", "[\"/a:/b\", \"-/c\"]", "/a:/b -/c" },
                { "TemporaryFileSystem", "[\"/x:size=1M\"]", "/x:size=1M" },
                { "DeviceAllow", "[\"/dev/null rw\"]", "\"/dev/null rw\"" },
                { "LogExtraFields", "[\"SITE_1=a b\"]", "\"SITE_1=a b\"" },
                { "TimeoutStopSec", "1.5", "1500ms" },
                { "TimeoutStopSec", "90", "90s" },
                { "TimeoutStopSec", "0.000001", "1us" },
                { "TimeoutStopSec", "\"infinity\"", "infinity" },
                { "Description", "\"100% of \\u00e4\"", "100%% of \xc3\xa4" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cJSON_Deletep) cJSON *json = NULL;
                _cleanup_free_ char *text = NULL;
                PropertyList list = { 0 };
                Error e = ERROR_INIT;

                REQUIRE(json_parse(cases[i].json, strlen(cases[i].json), JSON_STRICT, "j", &json, &e) == 0);
                CHECK_EQ(property_add_json(&list, cases[i].name, json, &e), 0);
                CHECK_STR(e.text, "");
                REQUIRE(list.n == 1);
                text = property_format(&list.items[0]);
                CHECK_STR(text, cases[i].text);
                property_list_clear(&list);
        }
}

TEST(bad_values)
{
        static const struct {
                const char *name, *json, *sentence;
        } cases[] = {
                { "PrivateUser", "true", "did you mean \"PrivateUsers\"?" },
                { "Delegate", "true", "not a property that a policy may set" },
                { "PrivateUsers", "\"yes\"", "must be true or false, is a string" },
                { "PrivateUsers", "1", "must be true or false" },
                { "ProtectSystem", "\"strickt\"", "must be one of: yes no full strict; is \"strickt\"" },
                { "ProtectSystem", "\"\"", "must be one of" },
                { "ProtectSystem", "\"no full\"", "must be one of" },
                { "ProtectProc", "true", "must be a string" },
                { "CPUWeight", "0", "must be from 1 to 10000" },
                { "CPUWeight", "1.5", "must be an integer" },
                { "CPUWeight", "-1", "0 or more" },
                { "CPUWeight", "\"5K\"", "0 or more" },
                { "MemoryHigh", "\"5X\"", "not a size" },
                { "MemoryHigh", "-1", "0 or more" },
                { "Nice", "20", "must be from -20 to 19" },
                { "Nice", "\"5\"", "must be an integer, is a string" },
                { "UMask", "22", "string in octal" },
                { "UMask", "\"0088\"", "octal" },
                { "UMask", "\"\"", "octal" },
                { "SystemCallErrorNumber", "\"EWHAT\"", "name of an errno" },
                { "SystemCallErrorNumber", "1", "name of an errno" },
                { "CapabilityBoundingSet", "[\"CAP_NOTHING\"]", "not a capability" },
                { "CapabilityBoundingSet", "\"CAP_CHOWN\"", "list of strings" },
                { "RestrictNamespaces", "[\"time\"]", "not a namespace" },
                { "RestrictNamespaces", "\"user\"", "true, false, or the list" },
                { "SystemCallFilter", "[]", "must not be an empty list" },
                { "SystemCallFilter", "[\"a\", \"~b\"]", "allows or denies as a whole" },
                { "SystemCallFilter", "[\"a b\"]", "not one name" },
                { "SystemCallFilter", "[\"~\"]", "not one name" },
                { "SystemCallFilter", "[[\"a\"], \"b\"]", "list of strings" },
                { "SystemCallFilter", "[\"\"]", "not empty" },
                { "SystemCallFilter", "[1]", "element 0 must be a string" },
                { "InaccessiblePaths", "[\"relative\"]", "is not \"/path\"" },
                { "NoExecPaths", "[\"+-/a\"]", "is not \"/path\"" },
                { "ReadOnlyPaths", "[\"/a/../b\"]", "is not \"/path\"" },
                { "BindReadOnlyPaths", "[\"relative\"]", "is not \"/source\"" },
                { "BindReadOnlyPaths", "[\"/a:b\"]", "is not \"/source\"" },
                { "BindReadOnlyPaths", "[\"/a/../b\"]", "is not \"/source\"" },
                { "BindReadOnlyPaths", "[\"/a/..\"]", "is not \"/source\"" },
                { "TemporaryFileSystem", "[\"x\"]", "is not \"/path\"" },
                { "DeviceAllow", "[\"/dev/null\"]", "is not \"/dev/node rw\"" },
                { "DeviceAllow", "[\"/dev/null x\"]", "is not \"/dev/node rw\"" },
                { "LogExtraFields", "[\"site=a\"]", "is not \"NAME=value\"" },
                { "LogExtraFields", "[\"_UID=0\"]", "is not \"NAME=value\"" },
                { "LogExtraFields", "[\"SITE\"]", "is not \"NAME=value\"" },
                { "LogExtraFields", "[\"SITE=a\\nb\"]", "is not \"NAME=value\"" },
                { "LogExtraFields", "[\"QSCOPE_VERDICT=pass\"]", "the audit trail's own" },
                { "TimeoutStopSec", "-1", "must be seconds" },
                { "TimeoutStopSec", "\"5s\"", "must be seconds" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cJSON_Deletep) cJSON *json = NULL;
                PropertyList list = { 0 };
                Error e = ERROR_INIT;

                REQUIRE(json_parse(cases[i].json, strlen(cases[i].json), JSON_STRICT, "j", &json, &e) == 0);
                CHECK_EQ(property_add_json(&list, cases[i].name, json, &e), -EINVAL);
                CHECK_HAS(e.text, cases[i].sentence);
                property_list_clear(&list);
        }
}

TEST(a_filter_may_be_given_in_several_lists)
{
        static const char text[] = "[[\"@system-service\"], [\"~@keyring\", \"bpf\"]]";
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        PropertyList list = { 0 }, copy = { 0 };

        REQUIRE(json_parse(text, strlen(text), JSON_STRICT, "j", &json, NULL) == 0);
        CHECK_EQ(property_add_json(&list, "SystemCallFilter", json, NULL), 0);
        REQUIRE(list.n == 2);
        CHECK(list.items[0].boolean && !list.items[1].boolean);
        CHECK_STR(list.items[1].list[0], "@keyring");
        CHECK_EQ(property_add_copies(&copy, &list), 0);
        property_list_clear(&list);
        REQUIRE(copy.n == 2);
        CHECK_STR(copy.items[1].list[1], "bpf");
        CHECK(property_list_find(&copy, "SystemCallFilter") == &copy.items[0]);
        CHECK(!property_list_find(&copy, "UMask"));
        property_list_clear(&copy);
}

TEST(cpu_quota_is_shown_in_per_cent)
{
        PropertyList list = { 0 };
        _cleanup_free_ char *whole = NULL, *part = NULL;

        CHECK_EQ(property_add_number(&list, "CPUQuota", 1500000), 0);
        CHECK_EQ(property_add_number(&list, "CPUQuota", 125100), 0);
        REQUIRE(list.n == 2);
        whole = property_format(&list.items[0]);
        part = property_format(&list.items[1]);
        CHECK_STR(whole, "150%");
        CHECK_STR(part, "12.51%");
        property_list_clear(&list);
}

TEST_MAIN
