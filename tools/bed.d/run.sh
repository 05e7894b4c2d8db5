# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# One run of a bed of either kind: its directory, its output, its end. The kind's own
# file brings start_container or start_vm, which leaves the bed's process in BED_PID.

BED_RUN=
BED_PID=

# Directory and cgroup have the run's name; the lock tells the next bed command whether
# the run still lives.
begin_run() {
    local id
    sweep_runs
    id=qscope-bed-$$-$RANDOM
    lock "run-$id" BED_RUN_FD -x
    BED_RUN=$BED_CACHE/run/$id
    trap end_run EXIT
    trap 'stop_on INT 130' INT
    trap 'stop_on TERM 143' TERM
    trap 'stop_on HUP 129' HUP
    mkdir -p "$BED_RUN/host"
    mkfifo "$BED_RUN"/host/{stdout,stderr} "$BED_RUN/tick"
    make_run_layer
}

stop_on() { # SIGNAL STATUS
    trap - EXIT INT TERM HUP
    end_run
    exit "$2"
}

end_run() {
    kill_bed
    drop_run "$BED_RUN"
}

kill_bed() {
    [[ -n $BED_PID ]] || return 0
    kill -KILL "$BED_PID" 2>/dev/null || true
    wait "$BED_PID" 2>/dev/null || true
    BED_PID=
}

# What killed bed commands left behind.
sweep_runs() {
    local dir fd
    for dir in "$BED_CACHE"/run/*; do
        [[ -d $dir ]] || continue
        lock "run-${dir##*/}" fd -x -n || continue
        note "cleaning up after a killed run (${dir##*/})"
        drop_run "$dir"
        unlock fd
    done
}

drop_run() { # RUN_DIR
    drop_cgroup "${1##*/}"
    rm -rf --one-file-system "$1"
    rm -f "$BED_CACHE/locks/run-${1##*/}"
}

# Streams the bed's output until the bed is gone, and sets BED_RESULT.
# The descriptors held open here let the readers start before the bed writes.
follow_bed() { # BOOT_SEC TIMEOUT_SEC
    local readers hold_out hold_err
    pass_on "$BED_RUN/host/stdout" 9>&- &
    readers=($!)
    pass_on "$BED_RUN/host/stderr" >&2 9>&- &
    readers+=($!)
    exec {hold_out}>"$BED_RUN/host/stdout" {hold_err}>"$BED_RUN/host/stderr"
    watch_bed "$1" "$2"
    kill_bed
    exec {hold_out}>&- {hold_err}>&-
    wait "${readers[@]}" || true
}

# When nobody reads our output any more, the command in the bed must not hang.
pass_on() { # FIFO
    exec <"$1"
    cat || cat >/dev/null
}

# Sets STATUS_LINE to the first line that begins so. It is asked ten times a second: no process is started.
status_line() { # BEGINNING...
    local beginning
    [[ -e $BED_RUN/host/status ]] || return
    while read -r STATUS_LINE || [[ -n $STATUS_LINE ]]; do
        for beginning; do
            [[ $STATUS_LINE != "$beginning"* ]] || return 0
        done
    done <"$BED_RUN/host/status"
    return 1
}

# Waits for the bed's end, but for no phase longer than it may take.
watch_bed() { # BOOT_SEC TIMEOUT_SEC
    local begin=$SECONDS deadline tick phase=boot
    deadline=$((begin + $1))
    exec {tick}<>"$BED_RUN/tick"
    while kill -0 "$BED_PID" 2>/dev/null; do
        read -rt 0.1 -u "$tick" || true
        if [[ $phase == boot ]] && status_line started; then
            phase=work
            note "the bed is up after $((SECONDS - begin)) s"
            # The runner minds the time itself; this is for a bed that hangs.
            deadline=$((SECONDS + $2 + BED_POWEROFF_SEC))
        elif [[ $phase == work ]] && status_line 'exit ' timeout; then
            phase=poweroff
            deadline=$((SECONDS + BED_POWEROFF_SEC))
        fi
        ((SECONDS < deadline)) || break
    done
    exec {tick}>&-
    [[ $phase != work || $SECONDS -lt $deadline ]] || BED_TIMED_OUT=1
}

# The command's status, or why there is none.
finish_run() { # TIMEOUT_SEC
    if status_line 'exit '; then
        unpack_result "$BED_RUN"
        exit "${STATUS_LINE#exit }"
    fi
    if [[ ${BED_TIMED_OUT:-0} == 1 ]] || status_line timeout; then
        unpack_result "$BED_RUN"
        warn "the command did not end within $1 s: the bed was stopped (--timeout)"
        exit "$BED_EXIT_TIMEOUT"
    fi
    tail_of "$BED_RUN/qemu" "qemu says:"
    tail_of "$BED_RUN/console" "the bed's last console lines:"
    if status_line started; then
        die "the bed died while the command ran"
    fi
    die "the bed did not boot"
}
