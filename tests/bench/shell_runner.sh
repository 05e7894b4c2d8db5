#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A rival: a bounded runner in shell. No variables but three, namespaces for network, processes and mounts, limits of
# resources, a timeout, a scratch home that goes afterwards. Usage: shell_runner.sh DIRECTORY COMMAND [ARG]...
set -eu

cd "$1"
shift
home=$(mktemp -d /tmp/bench-shell.XXXXXX)
trap 'rm -rf "$home"' EXIT
env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME="$home" \
        unshare --user --map-root-user --net --pid --fork --mount-proc \
        prlimit --nproc=256 --nofile=1024 --fsize=268435456 --as=1073741824 --cpu=30 \
        timeout --signal=KILL 30 "$@"
