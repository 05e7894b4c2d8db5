# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# What the beds are made of: releases, packages, masked units, limits.
# Nothing here runs anything. A change of the package lists makes a new OS tree.

# Raise it when a change of the scripts must make new trees and images.
BED_TREE_VERSION=1
BED_IMAGE_VERSION=1

BED_NAMES=(container vm container-13 vm-13)

# The system itself, without udev and logind's friends: nothing in a bed has hardware.
BED_PACKAGES_SYSTEM=(
    systemd systemd-sysv dbus kmod iproute2 procps util-linux util-linux-extra bsdutils
    bsdextrautils e2fsprogs ca-certificates locales tzdata busybox-static
)
# What ordinary jobs are made of; the tests run these inside qscope's sandbox.
BED_PACKAGES_JOBS=(
    python3 nodejs git gcc libc6-dev make mawk gawk less strace jq file xz-utils
    bubblewrap socat attr acl libcap2-bin
)
# What the project is built with, against this release's own libraries.
BED_PACKAGES_BUILD=(
    meson ninja-build pkg-config libsystemd-dev libcgroup-dev libcjson-dev libmnl-dev
    nettle-dev libpcre2-dev
)
# Where a part of a package of Debian 12 is a package of its own.
BED_PACKAGES_TRIXIE=(systemd-dev)

# The vm's kernel; unpacked, not installed (see tree-hook).
BED_KERNEL_PACKAGE=linux-image-cloud-amd64

# Units with nothing to do in a bed, that cost time at boot or at a random moment later.
BED_MASKED_UNITS=(
    getty@.service serial-getty@.service console-getty.service container-getty@.service
    getty-static.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
    e2scrub_all.timer e2scrub_reap.service fstrim.timer man-db.timer
    systemd-timesyncd.service systemd-firstboot.service systemd-networkd.service
    systemd-hwdb-update.service ldconfig.service systemd-journal-catalog-update.service
    systemd-update-utmp.service systemd-update-utmp-runlevel.service
    systemd-random-seed.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount
    modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service
    modprobe@efi_pstore.service sys-kernel-config.mount
    sys-fs-fuse-connections.mount dev-hugepages.mount
)

# Real directories of the cache's filesystem in the container, because a workspace on an
# overlay cannot be id-mapped. /opt stays on the overlay: tests use it as just that.
BED_REAL_DIRS=(/root /home /srv /var/tmp /var/lib/qscope)

# Generous: the machine may be busy with another bed.
BED_BOOT_SEC_CONTAINER=300
BED_BOOT_SEC_VM=420
BED_POWEROFF_SEC=30
BED_TIMEOUT_SEC=1200

bed_suite() { # BED
    case $1 in
    *-13) echo trixie ;;
    *) echo bookworm ;;
    esac
}

bed_kind() { # BED
    echo "${1%-13}"
}
