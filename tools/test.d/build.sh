# shellcheck shell=bash
#
# Groups that compile on this machine. Each has a build directory of its own, kept for the next time.

# Configures once; a directory that another source tree or compiler left broken is made anew.
setup() { # DIRECTORY OPTION...
        local dir=$ROOT/build/$1
        shift
        [[ -f $dir/build.ninja ]] && return
        rm -rf "$dir"
        meson setup "$dir" "$ROOT" -Dwerror=true "$@"
}

# Builds, then runs meson's tests and counts them one by one from its log.
build_and_test() { # DIRECTORY
        local dir=$ROOT/build/$1 status=0
        check "build" ninja -C "$dir" --quiet
        ((FAILED == 0)) || return 1
        rm -f "$dir/meson-logs/testlog.json"
        meson test -C "$dir" --no-rebuild --print-errorlogs || status=$?
        count_meson "$dir/meson-logs/testlog.json" "$status"
}

count_meson() { # TESTLOG STATUS
        local all good skipped
        all=$(grep -c '"result":' "$1") || true
        good=$(grep -cE '"result": "(OK|EXPECTEDFAIL)"' "$1") || true
        skipped=$(grep -c '"result": "SKIP"' "$1") || true
        count "$good" $((all - good - skipped)) "$skipped"
        # A status that no counted test explains.
        if (($2 != 0 && FAILED == 0)); then
                echo "FAIL meson test: status $2"
                count 0 1 0
        fi
}

group_unit() {
        CC=gcc setup gcc && build_and_test gcc
}

setup_sanitize() {
        CC=clang setup sanitize -Dfuzzing=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
}

# clang's warnings, the sanitizers and the fuzzers in one build: compiling is what takes the time.
group_sanitize() {
        local name corpus=$ROOT/tests/corpus
        setup_sanitize && build_and_test sanitize || return 1
        for name in "$ROOT"/tests/fuzz/fuzz_*.c; do
                name=${name##*/fuzz_}
                name=${name%.c}
                check "fuzz-$name" fuzz "$name" "$corpus/$name"/*/
        done
}

# New inputs stay in the build directory; what found a fault is kept beside them, to be taken into the corpus.
fuzz() { # NAME CORPUS...
        local name=$1 dir=$ROOT/build/sanitize new=$ROOT/build/sanitize/new-$1
        shift
        mkdir -p "$new"
        # Its own status for a fault is 77, which is a skip here.
        "$dir/tests/fuzz-$name" -error_exitcode=1 -max_total_time="${QSCOPE_FUZZ_SEC:-10}" -timeout=10 \
                -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 -artifact_prefix="$new-fault-" "$new" "$@"
}

# --- the page of qscope report ----------------------------------------------------------

# The browser is large: it is fetched here, beside the other lanes, and not before all of them.
group_report() {
        CC=gcc setup gcc && ninja -C "$ROOT/build/gcc" --quiet src/qscope
        command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null ||
                install_missing chromium-headless-shell || echo "no Chromium could be installed"
        check report "$ROOT/tests/report.py" "$ROOT/build/gcc/src/qscope"
}
