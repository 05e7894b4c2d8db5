# shellcheck shell=bash
#
# What this machine must bring for each group, and how it is installed where it is missing. The beds bring their
# own (tools/bed).

# shellcheck source=/dev/null
. "$ROOT/tools/bed.d/config.sh"

PACKAGES_BUILD=(gcc libc6-dev git python3-jsonschema "${BED_PACKAGES_BUILD[@]}")
PACKAGES_CLANG=(clang libclang-rt-dev)
PACKAGES_LINT=(clang clang-format clang-tidy cppcheck shellcheck groff-base python3)

group_packages() { # GROUP
        case $1 in
        unit | report) printf '%s\n' "${PACKAGES_BUILD[@]}" ;;
        sanitize) printf '%s\n' "${PACKAGES_BUILD[@]}" "${PACKAGES_CLANG[@]}" ;;
        lint) printf '%s\n' "${PACKAGES_BUILD[@]}" "${PACKAGES_CLANG[@]}" "${PACKAGES_LINT[@]}" ;;
        package) printf '%s\n' gcc libc6-dev binutils "${BED_PACKAGES_BUILD[@]}" ;;
        esac
}

is_installed() { # PACKAGE
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# The same for a name that another package provides, such as pkg-config by pkgconf.
is_provided() { # PACKAGE
        dpkg-query -W -f '${db:Status-Status} ${Provides}\n' | grep -qE "^installed .*(^|[ ,])$1([ ,]|\$)"
}

missing_packages() { # GROUP...
        local group package
        for group in "$@"; do
                group_packages "$group"
        done | sort -u | while read -r package; do
                is_installed "$package" || is_provided "$package" || echo "$package"
        done
}

need_packages() { # GROUP...
        local missing log=$ROOT/build/apt.log
        if ! command -v dpkg-query >/dev/null; then
                say "this is no Debian: what is missing has to be installed by hand"
                return 0
        fi
        mapfile -t missing < <(missing_packages "$@")
        ((${#missing[@]})) || return 0
        if ((EUID != 0)); then
                say "missing, and only root can install: ${missing[*]}"
                return 1
        fi
        say "installing: ${missing[*]}"
        # One failed download is no reason to give up.
        for _ in 1 2 3; do
                install_missing "${missing[@]}" >"$log" 2>&1 </dev/null && return
                sleep 10
        done
        tail -n 20 "$log"
        say "apt-get could not install them"
        return 1
}

# The package lists of a fresh machine may be empty or old: update only when the first try fails.
install_missing() { # PACKAGE...
        local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends)
        export DEBIAN_FRONTEND=noninteractive
        "${install[@]}" "$@" && return
        apt-get update || true
        "${install[@]}" "$@"
}
