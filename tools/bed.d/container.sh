# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# The container bed: systemd-nspawn on layers, in namespaces and a cgroup of its own.

# What nspawn's own filter refuses beyond the capabilities' sets, and the bed's jobs and
# tests need; and what would change the host: its modules, swap, clock and kernel.
readonly BED_SYSCALLS="@privileged @debug @mount @keyring fanotify_init fanotify_mark bpf \
perf_event_open open_by_handle_at name_to_handle_at add_key keyctl request_key userfaultfd \
io_uring_setup io_uring_enter io_uring_register \
~@module ~@swap ~clock_settime ~settimeofday ~kexec_load ~kexec_file_load"

# Becomes container-inner, so that everything in it dies with this process: each process of
# the chain is killed when its parent is gone, and the last is first of a PID namespace.
exec_container() { # LOWER_LAYERS
    local scope=()
    # The directory alone is what a package's script or a fake may have left.
    if [[ -d /run/systemd/system && $(</proc/1/comm) == systemd ]]; then
        scope=(systemd-run --scope --quiet --collect --unit="${BED_RUN##*/}" -p Delegate=yes --)
    fi
    export BED_RUN BED_LAYERS=$1 BED_SYSCALLS BED_DIRS="${BED_REAL_DIRS[*]}" BED_SHELL=$OPT_SHELL
    exec setpriv --pdeathsig KILL "${scope[@]}" /bin/bash "$BED_LIB/container-outer" \
        unshare --mount --pid --fork --kill-child --mount-proc --propagation private -- \
        /bin/bash "$BED_LIB/container-inner"
}

make_real_dirs() { # TREE
    local dir
    mkdir -p "$BED_RUN"/{upper,work,root,real}
    for dir in "${BED_REAL_DIRS[@]}"; do
        mkdir -p "$BED_RUN/real$(dirname "$dir")"
        cp -a "$1$dir" "$BED_RUN/real$dir"
    done
}

# A cgroup below the host's root one; on a systemd host the scope goes by itself.
drop_cgroup() { # NAME
    local mount tries=50
    while read -r mount; do
        while ((tries-- > 0)) && [[ -d $mount/$1 ]]; do
            echo 1 2>/dev/null >"$mount/$1/cgroup.kill" || true
            find "$mount/$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
        done
    done < <(findmnt -rnt cgroup2 -o TARGET)
}

container_layers() {
    echo "$BED_RUN/layer:$(guest_path):$BED_PROJECT:$(tree_path "$BED_SUITE")"
}

run_container() {
    note "starting $BED"
    make_real_dirs "$(tree_path "$BED_SUITE")"
    exec_container "$(container_layers)" </dev/null >"$BED_RUN/console" 2>&1 9>&- &
    BED_PID=$!
    follow_bed "$BED_BOOT_SEC_CONTAINER" "$OPT_TIMEOUT"
}

shell_container() {
    make_real_dirs "$(tree_path "$BED_SUITE")"
    (exec_container "$(container_layers)")
}
