# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# The vm bed: qemu with the OS tree as an ext4 image, thrown away after each run.
# Disks: vda the system, vdb the layers that go over it, vdc the request.

# What the kernel needs before it has a root, and what has no udev to load it later.
readonly BED_VM_MODULES="virtio_pci virtio_blk virtio_console ext4 overlay"

vm_key() { # SUITE
    {
        echo "$BED_IMAGE_VERSION $BED_VM_MODULES"
        tree_key "$1"
        cat "$BED_LIB/initrd-init"
    } | short_hash
}

need_vm_parts() { # SUITE
    make_part "vm-$1" "$(vm_key "$1")" make_vm_parts "$1"
    BED_VM=$(part_path "vm-$1" "$(vm_key "$1")")
}

make_vm_parts() { # SUITE TARGET
    local suite=$1 target=$2 log=$BED_CACHE/log/vm-$1.log tree
    tree=$(tree_path "$suite")
    need_space 3072
    step "making the vm's disk and kernel for Debian $suite" \
        build_vm "$tree" "$target" >"$log" 2>&1 || {
        tail_of "$log" "the image builder's last words:"
        die "could not make the vm's image for Debian $suite"
    }
}

build_vm() { # TREE TARGET
    cp "$1"/boot/vmlinuz-* "$2/vmlinuz" &&
        build_initrd "$1" "$2" &&
        mke2fs -q -t ext4 -d "$1" -L qscope-bed -m 0 \
            -E lazy_itable_init=1,lazy_journal_init=1 "$2/disk" 8G
}

build_initrd() { # TREE TARGET
    local root=$2/initrd.d module number=100
    mkdir -p "$root"/{bin,modules,proc,sys,dev,sysroot} || return
    cp "$1/bin/busybox" "$root/bin/busybox" && install -m 0755 "$BED_LIB/initrd-init" "$root/init" ||
        return
    while read -r module; do
        unpack_module "$1$module" "$root/modules/$number.ko" || return
        number=$((number + 1))
    done < <(list_modules "$1")
    (cd "$root" && find . | bin/busybox cpio -o -H newc) >"$2/initrd" && rm -rf "$root"
}

# The modules' files in the order in which they must be loaded.
list_modules() { # TREE
    local name version
    version=$(ls "$1/usr/lib/modules")
    for name in $BED_VM_MODULES; do
        chroot "$1" modprobe --set-version "$version" --show-depends "$name"
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

unpack_module() { # FROM TO
    case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -qdc "$1" ;;
    *) cat "$1" ;;
    esac >"$2"
}

# One tar of all that lies over the image, for the initrd to unpack.
pack_layers() {
    tar -cf "$BED_RUN/layers.tar" -C "$BED_PROJECT" . -C "$(guest_path)" . -C "$BED_RUN/layer" . ||
        die "cannot pack the project for the vm"
}

# For qemu a pipe is a pair of FIFOs.
make_pipes() {
    local name
    for name in stdout stderr; do
        mkfifo "$BED_RUN/host/$name.in"
        mv "$BED_RUN/host/$name" "$BED_RUN/host/$name.out"
        ln -s "$name.out" "$BED_RUN/host/$name"
    done
}

# Without KVM both CPUs run in one thread. With a thread each, an emulator may execute the breakpoint of a text patch
# after the kernel has forgotten it ("int3: 0000", or both CPUs stuck); the kernel patches its text each time a
# tracepoint is opened or closed, which every job does. One thread emulates one CPU after the other, and cannot.
vm_accelerator() {
    if [[ -w /dev/kvm ]]; then
        echo "-accel kvm -cpu host"
    else
        echo "-accel tcg,thread=single -cpu max"
    fi
}

exec_vm() { # CONSOLE_CHARDEV
    local accelerator port arguments
    read -ra accelerator < <(vm_accelerator)
    arguments=(
        -nodefaults -no-reboot -display none -smp 2 -m "${QSCOPE_VM_MEMORY:-2048}"
        -kernel "$BED_VM/vmlinuz" -initrd "$BED_VM/initrd"
        -append "console=ttyS0 quiet panic=-1 softlockup_panic=1 mitigations=off systemd.show_status=auto"
        -drive "file=$BED_VM/disk,if=virtio,format=raw,snapshot=on"
        -drive "file=$BED_RUN/layers.tar,if=virtio,format=raw,readonly=on"
        -drive "file=$BED_RUN/host/request.tar,if=virtio,format=raw,readonly=on"
        -chardev "$1,id=console" -serial chardev:console
        -device virtio-serial-pci
        -chardev "pipe,id=stdout,path=$BED_RUN/host/stdout"
        -chardev "pipe,id=stderr,path=$BED_RUN/host/stderr"
        -chardev "file,id=status,path=$BED_RUN/host/status"
        -chardev "file,id=result,path=$BED_RUN/host/result.tar"
    )
    for port in stdout stderr status result; do
        arguments+=(-device "virtserialport,chardev=$port,name=$port")
    done
    # The disk's changes go to a nameless file there.
    export TMPDIR=$BED_RUN
    exec setpriv --pdeathsig KILL qemu-system-x86_64 "${accelerator[@]}" "${arguments[@]}"
}

run_vm() {
    note "starting $BED"
    pack_layers
    make_pipes
    exec_vm "file,path=$BED_RUN/console" </dev/null >"$BED_RUN/qemu" 2>&1 9>&- &
    BED_PID=$!
    follow_bed "$BED_BOOT_SEC_VM" "$OPT_TIMEOUT"
}

shell_vm() {
    pack_layers
    make_pipes
    (exec_vm stdio,signal=off)
}
