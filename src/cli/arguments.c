/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/arguments.h"

#include "base/text.h"
#include "core/reader.h"

#define NAMES_MAX 32u

static int put(const Argument *a, const char *value, void *target)
{
        void *member = (char *) target + a->offset;

        if (a->kind == ARGUMENT_LIST)
                return strv_extend(member, value);
        if (a->kind == ARGUMENT_VALUE)
                *(const char **) member = value;
        else
                *(bool *) member = true;
        return 0;
}

/* The value of argv[*i] when it is this option; "": a switch; NULL: it is not. */
static const char *match(const Argument *a, char **argv, int *i)
{
        const char *rest = startswith(argv[*i], a->name);

        if (!rest)
                return NULL;
        if (a->kind == ARGUMENT_SWITCH)
                return *rest == '\0' ? rest : NULL;
        if (*rest == '\0')
                return argv[*i + 1] ? argv[++*i] : NULL;
        if (a->name[1] == '-' && *rest != '=')
                return NULL;
        return rest + (*rest == '=');
}

static int fail(const char *argument, const Argument *table, size_t n, Error *e)
{
        const char *names[NAMES_MAX], *nearest;

        assert(n <= NAMES_MAX);
        for (size_t k = 0; k < n; k++) {
                names[k] = table[k].name;
                if (streq(argument, names[k]))
                        return error_set(e, -EINVAL, "%s lacks its value", argument);
        }
        nearest = read_nearest(argument, names, n);
        if (nearest)
                return error_set(e, -EINVAL, "%s is not an option (did you mean %s?)", argument, nearest);
        return error_set(e, -EINVAL, "%s is not an option", argument);
}

static int take(char **argv, int *i, const Argument *table, size_t n, void *target, Error *e)
{
        for (size_t k = 0; k < n; k++) {
                const char *value = match(&table[k], argv, i);

                if (value)
                        return put(&table[k], value, target);
        }
        return fail(argv[*i], table, n, e);
}

int arguments_parse(char **argv, const Argument *table, size_t n, void *target, Error *e)
{
        bool options = true;
        int left = 0, r;

        for (int i = 1; argv[i]; i++) {
                if (options && streq(argv[i], "--")) {
                        options = false;
                } else if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
                        argv[left++] = argv[i];
                } else {
                        r = take(argv, &i, table, n, target, e);
                        if (r < 0)
                                return r;
                }
        }
        argv[left] = NULL;
        return left;
}
