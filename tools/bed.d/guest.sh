# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# What both beds lay over the OS tree: the runner with its units, the masks, and the
# request that tells the runner what to do.

guest_key() {
    cat "$BED_LIB"/guest/* "$BED_LIB/guest.sh" "$BED_LIB/config.sh" | short_hash
}

guest_path() {
    part_path guest "$(guest_key)"
}

need_guest() {
    make_part guest "$(guest_key)" make_guest
}

make_guest() { # TARGET
    local target=$1 units=$1/etc/systemd/system unit
    chmod 0755 "$target"
    install -Dm 0755 -t "$target/usr/lib/qscope-bed" "$BED_LIB/guest/runner" "$BED_LIB/guest/shell" &&
        install -Dm 0644 -t "$units" "$BED_LIB"/guest/qscope-bed.* || return
    ln -s qscope-bed.target "$units/default.target"
    for unit in "${BED_MASKED_UNITS[@]}"; do
        ln -s /dev/null "$units/$unit"
    done
    # Debian 13 has it, Debian 12 does not: the same in all beds.
    install -Dm 0644 -t "$units" "$BED_LIB/guest/tmp.mount" || return
    mkdir -p "$units/local-fs.target.wants"
    ln -s ../tmp.mount "$units/local-fs.target.wants/tmp.mount"
}

# What this run alone lays over the system: how the shell differs from a command.
make_run_layer() {
    local dir=$BED_RUN/layer size
    mkdir -m 0755 "$dir"
    [[ $OPT_SHELL == 1 ]] || return 0
    dir+=/etc/systemd/system/qscope-bed.service.d
    mkdir -p "$dir"
    read -ra size < <(stty size)
    {
        cat "$BED_LIB/guest/shell.conf"
        echo "Environment=BED_ROWS=${size[0]} BED_COLUMNS=${size[1]} TERM=${TERM:-linux}"
    } >"$dir/shell.conf"
}

# The files of --in, with the paths they shall have, below DIR.
copy_to() { # SOURCE DESTINATION
    local source=$1 target=$2
    [[ $target != */ ]] || target+=$(basename -- "$source")
    if [[ -d $source && ! -L $source ]]; then
        mkdir -p -- "$target" && cp -a -- "$source/." "$target"
    else
        mkdir -p -- "$(dirname -- "$target")" && cp -a -- "$source" "$target"
    fi
}

# NUL ends each item, so that every byte an argument can hold survives.
write_list() { # FILE ITEM...
    local file=$1
    shift
    if (($#)); then
        printf '%s\0' "$@" >"$file"
    else
        : >"$file"
    fi
}

# Uses OPT_*, as parsed from the command line.
make_request() { # RUN_DIR
    local dir=$1/request pair
    mkdir -p "$dir"/{bed,in}
    write_list "$dir/bed/argv" "${OPT_COMMAND[@]}"
    write_list "$dir/bed/env" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 "TERM=${TERM:-dumb}" "${OPT_ENV[@]}"
    write_list "$dir/bed/out" "${OPT_OUT[@]%%:*}"
    echo "$BED_VERBOSE" >"$dir/bed/verbose"
    echo "$OPT_TIMEOUT" >"$dir/bed/timeout"
    for pair in "${OPT_IN[@]}"; do
        copy_to "${pair%%:*}" "$dir/in${pair#*:}" || die "cannot pass ${pair%%:*} in"
    done
    tar -cf "$1/host/request.tar" -C "$dir" bed in || die "cannot pack the files for the bed"
    rm -rf "$dir"
}

unpack_result() { # RUN_DIR
    local pair from to dir=$1/result
    mkdir "$dir"
    if [[ -s $1/host/result.tar ]]; then
        tar -xf "$1/host/result.tar" -C "$dir" || warn "the files from the bed came incomplete"
    fi
    for pair in "${OPT_OUT[@]}"; do
        from=$dir${pair%%:*} to=${pair#*:}
        if [[ -e $from || -L $from ]]; then
            copy_to "$from" "$to" || warn "could not write $to"
        else
            warn "--out: ${pair%%:*} was not there in the bed"
        fi
    done
}
