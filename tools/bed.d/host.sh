# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# What this machine must bring: programs, and where Debian's packages come from.

BED_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# PROGRAM:PACKAGE pairs
need_programs() {
    local pair missing=() programs=()
    for pair in "$@"; do
        if ! command -v "${pair%%:*}" >/dev/null; then
            programs+=("${pair%%:*}")
            missing+=("${pair#*:}")
        fi
    done
    ((${#missing[@]})) || return 0
    install_packages "${missing[@]}"
    for pair in "${programs[@]}"; do
        command -v "$pair" >/dev/null || die "$pair is missing even after the installation"
    done
}

# Under a lock: two beds that start side by side on a fresh machine would find apt's own taken.
install_packages() {
    local log=$BED_CACHE/log/apt.log apt_fd
    command -v apt-get >/dev/null ||
        die "this machine lacks $* and has no apt-get to bring it: install it by hand"
    lock apt apt_fd -x
    step "installing on this machine: $*" retry apt_install "$@" >"$log" 2>&1 </dev/null || {
        tail_of "$log" "apt-get says:"
        die "could not install $*"
    }
    unlock apt_fd
}

# The package lists of a fresh machine may be empty: update only when the first try fails.
apt_install() { # PACKAGE...
    local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends)
    export DEBIAN_FRONTEND=noninteractive
    "${install[@]}" "$@" && return
    apt-get update || true
    "${install[@]}" "$@"
}

need_tree_programs() {
    need_programs mmdebstrap:mmdebstrap tar:tar unshare:util-linux git:git
    [[ -r $BED_KEYRING ]] || install_packages debian-archive-keyring
}

need_container_programs() {
    need_programs systemd-nspawn:systemd-container setpriv:util-linux
}

need_vm_programs() {
    [[ $(uname -m) == x86_64 ]] ||
        die "the vm beds are for x86_64; this machine is $(uname -m). The container beds run here"
    need_programs qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs xz:xz-utils zstd:zstd \
        setpriv:util-linux
}

# One apt line per source of SUITE. The mirror is the one this machine's apt uses, with
# the release exchanged, so that no host is ever written down in the project.
mirror_lines() { # SUITE
    if [[ -n ${QSCOPE_BED_MIRROR:-} ]]; then
        echo "deb $QSCOPE_BED_MIRROR $1 main"
        return
    fi
    local host_suite uri suite component
    # shellcheck source=/dev/null
    host_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # $(NAME) is apt's own format syntax.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        while read -r uri suite component; do
            case $suite in
            "$host_suite" | "$host_suite-updates" | "$host_suite-security")
                [[ $component != main ]] || echo "deb $uri ${suite/#$host_suite/$1} main"
                ;;
            esac
        done | sort -u
}

# How this machine's apt fetches (proxy, checks), for the bootstrap to do the same.
mirror_options() {
    apt-config dump | grep -E \
        '^Acquire::(Check-Date|Check-Valid-Until|Retries|ForceIPv[46]|https?::)' || true
}
