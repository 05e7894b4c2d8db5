# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Whether this machine itself can run qscope, and how it gets there; for tools/demo and tools/bench. Wants $ROOT, say.

is_systemd_host() {
        local controllers=/sys/fs/cgroup/cgroup.controllers
        [[ -d /run/systemd/system && -r $controllers ]] &&
                grep -qw memory "$controllers" && grep -qw pids "$controllers" && grep -qw cpu "$controllers"
}

# Policies are looked up in fixed places, so a private directory would not do.
install_here() { # BUILD
        local log=$ROOT/$1.log
        # shellcheck source=/dev/null
        . "$ROOT/tools/test.d/packages.sh"
        need_packages unit
        say "Building qscope, and installing it below /usr/local (remove: ninja -C $1 uninstall)..."
        {
                [[ -f $1/build.ninja ]] || meson setup "$1" --prefix=/usr/local -Dtests=false
                ninja -C "$1"
                meson install -C "$1" --no-rebuild
                systemctl daemon-reload
        } >"$log" 2>&1 || {
                tail -n 20 "$log"
                say "qscope could not be built; the whole log: $1.log"
                return 1
        }
        PATH=/usr/local/bin:$PATH
}
