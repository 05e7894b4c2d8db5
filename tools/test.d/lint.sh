# shellcheck shell=bash
#
# What can be said about the tree without running jobs. Each check_NAME is one test; it prints what is wrong and
# fails. A fact that stands in two places (options, keys, exit statuses) is compared here, so that neither ages.

# What the tree is formatted with; other versions format otherwise.
CLANG_FORMAT_VERSION=14

group_lint() {
        local name
        setup_sanitize >/dev/null
        for name in format tidy cppcheck shellcheck python layers json options exit_statuses job_keys policy_keys schema_keys man names \
                unfinished; do
                check "$name" "check_$name"
        done
}

# The files git would take; in a tree without git, all but the build's.
tree_files() { # PATTERN...
        if git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1; then
                git -C "$ROOT" ls-files -co --exclude-standard -- "$@" | while IFS= read -r file; do
                        [[ ! -f $ROOT/$file ]] || printf '%s\n' "$file"
                done
        else
                (cd "$ROOT" && find . -name build -prune -o -type f -print | sed 's|^\./||' | matching "$@")
        fi
}

matching() { # PATTERN... of names, "*" over all directories
        local file pattern
        while IFS= read -r file; do
                for pattern in "$@"; do
                        # shellcheck disable=SC2053 # it is a pattern
                        if [[ $file == $pattern ]]; then
                                printf '%s\n' "$file"
                                break
                        fi
                done
        done
}

# --- C ----------------------------------------------------------------------------------

check_format() {
        local tool=clang-format-$CLANG_FORMAT_VERSION
        command -v "$tool" >/dev/null || tool=clang-format
        if [[ $("$tool" --version) != *"version $CLANG_FORMAT_VERSION."* ]]; then
                echo "this machine lacks clang-format $CLANG_FORMAT_VERSION: not checked"
                return 77
        fi
        tree_files 'src/*.[ch]' 'tests/*.[ch]' | xargs "$tool" --dry-run -Werror
}

# The counts it prints are of system headers; its notes go on for pages, so only the findings are shown. The analyser
# takes ten times as long where it follows calls as deep as it can: QSCOPE_TIDY=deep, before a release.
check_tidy() {
        local text depth=()
        [[ ${QSCOPE_TIDY:-} == deep ]] ||
                depth=(--extra-arg={-Xclang,-analyzer-config,-Xclang,mode=shallow})
        text=$(tree_files 'src/*.c' | xargs -P "$(nproc)" -n 6 clang-tidy -p "$ROOT/build/sanitize" --quiet \
                "${depth[@]}" --warnings-as-errors='*' 2>&1) && return
        grep -E ': (error|warning): ' <<<"$text" || printf '%s\n' "$text"
        return 1
}

# memleak: does not know cleanup attributes. The test harness's macros are beyond it.
check_cppcheck() {
        cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 \
                --suppress=memleak --suppress=missingIncludeSystem --suppress=nullPointerRedundantCheck \
                -D_GNU_SOURCE -I "$ROOT/src" -j "$(nproc)" "$ROOT/src"
}

check_layers() {
        "$ROOT/tools/check-layers" "$ROOT"
}

# --- scripts and data -------------------------------------------------------------------

shell_scripts() {
        local file
        tree_files '*.sh'
        tree_files 'tools/*' 'tests/*' '.ci/*' | while IFS= read -r file; do
                [[ $file == *.* && $file != .ci/* ]] || ! head -n 1 "$file" | grep -qaE '^#!.*\b(ba)?sh\b' || echo "$file"
        done
}

check_shellcheck() {
        shell_scripts | sort -u | xargs shellcheck -x
}

check_python() {
        { tree_files 'tests/*.py' 'examples/*.py' && printf '%s\n' tests/bed/run tests/bench/run; } | xargs python3 -W error -c '
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        compile(file.read(), path, "exec")
'
}

# JSON for everybody, not only for our reader. Policies have comments; the corpora are bad on purpose.
check_json() {
        tree_files 'examples/*.json' 'src/schemas/*.json' 'tests/golden/*.json' | grep -v 'policy\.json$' | xargs python3 -c '
import json, sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        try:
            json.load(file)
        except ValueError as error:
            sys.exit(f"{path}: {error}")
'
}

# --- what is said in two places ---------------------------------------------------------

# The lines of the first file that are not in the second.
only_in_first() { # FIRST SECOND SENTENCE
        local missing
        missing=$(comm -23 <(sort -u <<<"$1") <(sort -u <<<"$2"))
        [[ -z $missing ]] && return
        printf '%s\n' "$missing" | sed "s|\$|: $3|"
        return 1
}

built_qscope() {
        CC=gcc setup gcc >/dev/null && ninja -C "$ROOT/build/gcc" --quiet src/qscope >/dev/null &&
                echo "$ROOT/build/gcc/src/qscope"
}

words() { # ERE FILE... -> the matches, one a line
        local pattern=$1
        shift
        grep -ohE -- "$pattern" "$@" | sort -u
}

verbs() { # QSCOPE
        "$1" --help | awk '/^  [a-z]+ +[a-z]/ && !/qscope/ { print $1 }'
}

# The options that a help text lists, or that are the head of a paragraph of a manual page.
listed_options() { # HELP
        sed -nE 's/^  (-.*)$/\1/p' <<<"$1" | sed 's/   *[^ ].*//' | grep -oE -- '-{1,2}[a-z][a-z-]*' | sort -u
}

headed_options() { # PAGE
        awk '/^\.T[PQ]$/ { getline; if (/^\.B[RI]? \\-/) print }' "$1" | sed 's/\\-/-/g' | words '-{1,2}[a-z][a-z-]*'
}

# The numbers of "Exit status:" in a help text, and of the section of that name in a page.
help_statuses() { # HELP
        sed -n '/^Exit status/,/^$/p' <<<"$1" | grep -oE '\b[0-9]+\b' | sort -u
}

page_statuses() { # PAGE
        sed -n '/^\.SH "EXIT STATUS"/,/^\.SH [^"]/p' "$1" | grep -E '^\.B [0-9]' | words '\b[0-9]+\b'
}

# Each verb has a page; the options and exit statuses in --help are in it, and the other way round. No page, nor the
# README, has an option that there is not.
check_options() {
        local qscope verb help page all status=0
        qscope=$(built_qscope) || return 1
        for verb in $(verbs "$qscope"); do
                page=$ROOT/man/qscope-$verb.1
                [[ -f $page ]] || { echo "$verb has no manual page" && status=1 && continue; }
                help=$("$qscope" "$verb" --help)
                all+=$(listed_options "$help")$'\n'
                only_in_first "$(listed_options "$help")" "$(headed_options "$page")" "in --help, not in ${page##*/}" || status=1
                only_in_first "$(headed_options "$page")" "$(listed_options "$help")" "in ${page##*/}, not in --help" || status=1
                only_in_first "$(help_statuses "$help")" "$(page_statuses "$page")" "exit status, not in ${page##*/}" || status=1
                only_in_first "$(page_statuses "$page")" "$(help_statuses "$help")" "in ${page##*/}, not in --help" || status=1
        done
        only_in_first "$(words '^\.BR qscope\\-[a-z]+' "$ROOT/man/qscope.1" | sed 's/.*-//')" "$(verbs "$qscope")" \
                "in qscope.1, not a verb" || status=1
        only_in_first "$(verbs "$qscope")" "$(words '^\.BR qscope\\-[a-z]+' "$ROOT/man/qscope.1" | sed 's/.*-//')" \
                "a verb, not in qscope.1" || status=1
        all+=$'--version\n'
        only_in_first "$(sed 's/\\-/-/g' "$ROOT"/man/*.[1-8] | words '--[a-z][a-z-]+')" "$all" "in a page, not in --help" || status=1
        # shellcheck disable=SC2016 # Markdown's, not the shell's
        only_in_first "$(grep -oE '^    .*\bqscope .*|`qscope [^`]*`' "$ROOT/README.md" | words '--[a-z][a-z-]+')" "$all" \
                "in README.md, not in --help" || status=1
        return "$status"
}

# What is said of all verbs, in README and qscope(1).
check_exit_statuses() {
        local code status=0
        for code in 0 1 2 3 4 130 143; do
                grep -qE "^\|.*\b$code (/.*)?\|" "$ROOT/README.md" || {
                        echo "README.md: exit status $code is not in its table"
                        status=1
                }
                [[ " $(page_statuses "$ROOT/man/qscope.1" | paste -sd' ') " == *" $code "* ]] || {
                        echo "man/qscope.1: exit status $code is missing"
                        status=1
                }
        done
        return "$status"
}

table_keys() { # FILE... -> the keys of their tables of readers and limits
        grep -ohE '\{ "[a-z_0-9]+", ([a-z_]*read|(NULL|"[A-Z][A-Za-z]+"), LIMIT)' "$@" |
                sed -E 's/[^"]*"([a-z_0-9]+)".*/\1/' | sort -u
}

# Every key that the readers know is in the manual page of job files.
check_job_keys() {
        local keys page
        keys=$(table_keys "$ROOT"/src/core/{job_parse,expect,limits}.c)
        page=$(words '^\.B [a-z_0-9]+' "$ROOT/man/qscope.job.5" | sed 's/^.B //')
        only_in_first "$keys" "$page" "a key of job files, not in man/qscope.job.5" &&
                only_in_first "$page" "$keys" "in man/qscope.job.5, not a key of job files"
}

# The same for policies, also the keys within "env".
check_policy_keys() {
        local keys page
        keys=$(sed -n '/ReadRow policy_rows/,/^};/p' "$ROOT/src/core/policy.c" |
                grep -oE '\{ "[a-z_0-9]+"' | grep -oE '[a-z_0-9]+' | sort -u)
        page=$(awk '/^\.SH "WHAT A JOB MAY ASK"/ { on = 1 } /^\.SH "WHAT NAMES/ { on = 0 } on && was == ".TP" && /^\.B [a-z_0-9]+$/ { print $2 }
                { was = $0 }' "$ROOT/man/qscope.policy.5")
        only_in_first "$keys" "$page" "a key of policies, not in man/qscope.policy.5" &&
                only_in_first "$page" "$keys" "in man/qscope.policy.5, not a key of policies"
}

# Every key of the schemas is in the manual page of its format, in bold or italics. A key in base64 is described with
# the one that it stands beside.
check_schema_keys() {
        local kind keys page status=0
        for kind in job policy receipt; do
                keys=$(python3 -c '
import json, sys

def keys(schema):
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name == "properties":
                yield from value
            for part in value.values() if name == "properties" else [value]:
                yield from keys(part)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys(value)

found = set(keys(json.load(open(sys.argv[1], encoding="utf-8"))))
print(*(key for key in found if key.removesuffix("_base64") not in found - {key}), sep="\n")
' "$ROOT/src/schemas/qscope.$kind.v1.json")
                page=$(grep -E '^\.(B|BR|I|IR|BI) ' "$ROOT/man/qscope.$kind.5" | grep -oE '[a-z][a-z0-9_]*')
                only_in_first "$keys" "$page" "a key of the schema, not in man/qscope.$kind.5" || status=1
        done
        return "$status"
}

# Pages that groff takes without a word, with the sections that a reader looks for, each installed, and naming no page
# that there is not.
check_man() {
        local page text other status=0
        for page in "$ROOT"/man/*.[1-8]; do
                text=$(groff -man -Tutf8 -ww -z "$page" 2>&1) || status=1
                [[ -z $text ]] || { echo "$text" && status=1; }
                sections "$page" || { echo "${page##*/}: a section is missing, or in another order" && status=1; }
                grep -qF "/man/${page##*/}\"" <(meson introspect --installed "$ROOT/build/gcc") || {
                        echo "${page##*/} is not installed"
                        status=1
                }
                for other in $(grep -oE 'qscope[a-z.\\-]* \([15]\)' "$page" | tr -d '\\ ' | sort -u); do
                        [[ -f $ROOT/man/$(tr '(' . <<<"${other%)}") ]] || { echo "${page##*/}: $other" && status=1; }
                done
        done
        return "$status"
}

sections() { # PAGE
        local wanted=(NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS" EXAMPLES FILES "SEE ALSO")
        [[ $1 == *.1 ]] || wanted=(NAME DESCRIPTION "SEE ALSO")
        diff <(printf '%s\n' "${wanted[@]}") <(sed -nE 's/^\.SH "?([^"]*)"?$/\1/p' "$1" | grep -xF "$(printf '%s\n' "${wanted[@]}")") >/dev/null
}

# Where this machine gets its packages from is nobody's business.
check_names() {
        local host status=0
        while read -r host; do
                if tree_files | xargs grep -lF -- "$host"; then
                        echo "the name of this machine's mirror is in the tree"
                        status=1
                fi
        done < <(package_hosts)
        return "$status"
}

package_hosts() {
        {
                grep -rhoE '(https?|ftp)://[^/ "]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true
                env | grep -iE '^(https?_proxy|pip_index_url|npm_config_registry)=' || true
        } | sed -E 's|.*://||; s|^[^@/]*@||; s|[/:].*||' | sort -u | grep -vE '^(|localhost|127\..*)$'
}

check_unfinished() {
        ! tree_files 'src/*' 'tools/*' 'units/*' 'policies/*' 'tests/*' | grep -v '^tools/test.d/lint.sh$' |
                xargs grep -nIE '\b(TODO|FIXME|XXX|HACK|not implemented)\b'
}
