# shellcheck shell=bash
#
# Groups that run the end-to-end tests (tests/bed) inside a bed. One start of a bed runs a whole group.

# Longer than any group should take; a bed that hangs ends with it.
BED_GROUP_SEC=2400

run_bed() { # BED ARGUMENT... of tests/bed/run; sets status and closing
        local bed=$1
        shift
        status=0
        "$ROOT/tools/bed" run "$bed" --timeout "$BED_GROUP_SEC" --in "$ROOT/tests/bed:/root/tests" \
                --in "$ROOT/tests/bench:/root/bench" --env "QSCOPE_NO_SKIP=${QSCOPE_NO_SKIP:-0}" -- /root/tests/run "$@" || status=$?
        closing=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$LOGS/$bed.log" | tail -n 1) || true
}

bed_tests() { # BED ARGUMENT... of tests/bed/run
        local bed=$1 status closing
        shift
        run_bed "$bed" "$@"
        # An emulated machine whose kernel stands still says nothing of the tests: once more, and loudly.
        if [[ -z $closing && $bed == vm* ]]; then
                echo "unsteady: $bed ended before its tests did (status $status); it is started once more"
                tail -n 5 "$LOGS/$bed.log"
                run_bed "$bed" "$@"
        fi
        if [[ -n $closing ]]; then
                count_closing "$closing"
        fi
        if ((status != 0 && FAILED == 0)); then
                echo "FAIL tools/bed run $bed: status $status"
                tail -n 20 "$LOGS/$bed.log"
                count 0 1 0
        fi
}

count_closing() { # "N passed, N failed[, N skipped]"
        local words
        read -ra words <<<"$1"
        count "${words[0]}" "${words[2]}" "${words[4]:-0}"
}

group_container() {
        bed_tests container
}

# The package, built on this machine: for beds of the same Debian.
group_package() {
        local package bed
        package=$("$ROOT/tools/package") || return 1
        for bed in container vm; do
                check "package in the $bed bed" "$ROOT/tools/bed" run "$bed" --bare --timeout 600 \
                        --in "$package:/root/qscope.deb" --in "$ROOT/tests/package:/root/" --in "$ROOT/README.md:/root/" \
                        -- /root/package /root/qscope.deb /root/README.md
        done
}

group_vm() {
        bed_tests vm --bed vm
}

group_container_13() {
        bed_tests container-13 --group smoke
}

group_vm_13() {
        bed_tests vm-13 --bed vm --group smoke
}
