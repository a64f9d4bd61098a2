#!/usr/bin/env bash
# Builds and runs everything that needs a CUDA device. See --help.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  cat <<'USAGE'
usage: tests/gpu/run.sh [--part tests|benchmarks] [--with DIR | --built] [--build DIR]
                        [--minutes N] [--rounds N] [--log FILE]
       tests/gpu/run.sh --dry-run [--part tests|benchmarks] [--build DIR] [--log FILE]
       tests/gpu/run.sh --collect DIR

Builds and runs the tests that need a CUDA device, the riskiest first, then the benchmarks of what
runs on it, without any network. What they say goes to a file in Markdown, too. What there is no
time for is skipped, and said. Needs a CUDA toolkit, CMake and g++. NCCL is taken from the Python
package nvidia-nccl-cu13 or nvidia-nccl-cu12 where there is one.

  --part PART    only the tests, or only the benchmarks (default: both)
  --with DIR     with the libraries that --collect left in DIR, on a machine that has none of them
  --built        nothing is built: what is in the build folder already is run
  --build DIR    build there (default: build-gpu)
  --minutes N    end within so many (default: 9)
  --rounds N     of each benchmark (default: 7)
  --log FILE     (default: gpu-results.md in the folder that is built in)
  --dry-run      without a device: each step is executed on the stand-ins for CUDA's driver and NCCL, or
                 its command is checked, with the release build in build/ (or --build DIR) and one
                 round. Its results go to gpu-dry-run.md there
  --collect DIR  on a machine with Debian's or Ubuntu's packages (./run setup): put what elastic is
                 built with into DIR, for a machine with the same processor and an equally old or
                 newer C library
USAGE
}

die() {
  echo "run.sh: $*" >&2
  exit 2
}

# --- what elastic is built with -------------------------------------------------------------------

most_bytes=$((64 << 20))

# Packages as they are named everywhere, and those whose names have versions.
carried_packages() {
  echo nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev libssl-dev libxxhash-dev libhwy-dev \
    zlib1g-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
  dpkg-query -S /usr/include/boost/version.hpp /usr/include/boost/asio.hpp | cut -d: -f1
  dpkg-query -S "$(readlink -f "$(command -v pkg-config)")" | cut -d: -f1
}

# The shared libraries that those are links to, and those that pkg-config needs.
carried_libraries() {
  local folder=$1 name
  for name in hwy xxhash ssl crypto spdlog fmt z benchmark; do
    echo "$folder/lib$name.so"
  done
  ldd "$(command -v pkg-config)" | sed -n 's/.*=> \(.*libpkgconf[^ ]*\).*/\1/p'
}

# With what links lead to, one after the other.
with_targets() {
  local file
  while IFS= read -r file; do
    while [[ -L $file ]]; do
      echo "$file"
      file=$(cd "$(dirname "$file")" && realpath -s "$(readlink "$file")")
    done
    [[ -d $file ]] || echo "$file"
  done
}

# Compilers are told of one folder with headers.
flatten_headers() {
  local headers=$1/usr/include folder=$2
  [[ ! -d $headers/$folder ]] || { cp -r "$headers/$folder/." "$headers" && rm -r "${headers:?}/$folder"; }
}

# The files of a package that a build reads.
files_of() {
  local files
  files=$(dpkg-query -L "$1" |
    grep -E '^/usr/(include|bin/pkgconf|lib/[^/]*/(cmake|pkgconfig|lib)|lib/cmake|share/(cmake|pkgconfig))' |
    grep -vE '/(libcrypto|libssl|libz)\.a$') || die "package $1 is not installed; see ./run setup"
  echo "$files"
}

collect() {
  local into=$1 folder package packages archive
  command -v dpkg-query >/dev/null || die "--collect takes Debian's packages; there is no dpkg here"
  folder=$(gcc -print-multiarch)
  [[ -n $folder ]] || die "--collect needs to know where libraries lie: gcc -print-multiarch"
  stage=$(mktemp -d) # not local: the trap needs it
  trap 'rm -rf "$stage"' EXIT
  packages=$(carried_packages | tr ' ' '\n' | sort -u)
  for package in $packages; do files_of "$package"; done >"$stage.packages"
  carried_libraries "/usr/lib/$folder" >>"$stage.packages"
  with_targets <"$stage.packages" | sort -u >"$stage.files"
  tar -C / -cf - -T <(sed 's,^/,,' "$stage.files") | tar -C "$stage" -xf -
  # Of libraries that lie in /lib as well.
  if [[ -d $stage/lib ]]; then cp -a "$stage/lib/." "$stage/usr/lib/" && rm -r "${stage:?}/lib"; fi
  flatten_headers "$stage" "$folder"
  # Some links of libraries are absolute; all lie next to each other here.
  find "$stage/usr/lib" -type l -lname '/*' -printf '%l %p\n' |
    while read -r target link; do ln -sf "$(basename "$target")" "$link"; done
  # By the names under which programs load them.
  PATH=$PATH:/sbin:/usr/sbin ldconfig -n "$stage/usr/lib/$folder"
  mkdir -p "$into"
  archive=$into/libraries.tar.gz
  tar -C "$stage" --sort=name --owner=0 --group=0 -cf - . | gzip >"$archive"
  echo "$archive: $(($(stat -c %s "$archive") / 1024)) KiB, of $(wc -l <"$stage.files") files"
  rm "$stage.packages" "$stage.files"
  (($(stat -c %s "$archive") <= most_bytes)) || die "that is more than $((most_bytes >> 20)) MiB"
}

# --- build and run --------------------------------------------------------------------------------

# A line for people and for the log.
tell() {
  echo "== $*"
  echo "== $*" >>"$log"
}

# step NAME LIMIT COMMAND...: ends it after so many seconds. A step that all the time that is left
# was too little for is cut, and no failure. In a dry run `by` executes the commands.
failures=()
cut=()
by=()
executor=$root/tests/gpu/dry_step.sh
is_dry_run() {
  ((${#by[@]} > 0))
}

skipped=no
recording=no
step() {
  local name=$1 limit=$2 start=$SECONDS status=0 left=$((deadline - SECONDS)) short=no
  shift 2
  ((left > limit)) || { limit=$left && short=yes; }
  if ((limit <= 0)); then
    tell "$name: NOT RUN, no time was left" && cut+=("$name")
    return 124
  fi
  echo "== $name"
  if [[ $recording == yes ]]; then
    timeout --kill-after=5 "$limit" "${by[@]}" "$@" 2>&1 | tee -a "$log" || status=$?
  else
    timeout --kill-after=5 "$limit" "${by[@]}" "$@" || status=$?
  fi
  ((status != 137)) || status=124
  case $status in
    0) tell "$name: done ($((SECONDS - start)) s)" ;;
    77) tell "$name: SKIPPED" && skipped=yes ;;
    78) tell "$name: checked, not run ($((SECONDS - start)) s)" && status=0 ;; # of a dry run
    124)
      if [[ $short == yes ]]; then
        tell "$name: CUT after $((SECONDS - start)) s, no time was left" && cut+=("$name")
      else
        tell "$name: FAILED, out of time after $((SECONDS - start)) s" && failures+=("$name")
      fi
      ;;
    *) tell "$name: FAILED with $status ($((SECONDS - start)) s)" && failures+=("$name") ;;
  esac
  return "$status"
}

# Runs a step with its output in the log, under a heading. Goes on if it fails.
recorded() {
  printf '\n## %s\n\n```\n' "$1" >>"$log"
  recording=yes
  step "$@" || true
  recording=no
  echo '```' >>"$log"
}

# Runs a recorded step, but only if there is a device.
measured() {
  if [[ $skipped == yes ]]; then
    tell "$1: SKIPPED, there is no device"
  else
    recorded "$@"
  fi
}

# For a carried pkg-config, which knows only the carried packages.
write_pkg_config() {
  local libraries=$1 folder=$2
  cat >"$libraries/pkg-config" <<SCRIPT
#!/bin/sh
export PKG_CONFIG_SYSROOT_DIR='$libraries' PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export PKG_CONFIG_LIBDIR='$libraries/usr/lib/$folder/pkgconfig:$libraries/usr/share/pkgconfig'
export LD_LIBRARY_PATH='$libraries/usr/lib/$folder'
exec '$libraries/usr/bin/pkgconf' "\$@"
SCRIPT
  chmod +x "$libraries/pkg-config"
}

# use_carried DIR BUILD: appends to `options`.
use_carried() {
  local archive=$1/libraries.tar.gz libraries=$2/libraries folder
  [[ -f $archive ]] || die "there is no $archive; tests/gpu/run.sh --collect $1 makes it"
  if [[ ! $libraries/unpacked -nt $archive ]]; then
    rm -rf "$libraries"
    mkdir -p "$libraries"
    tar -C "$libraries" -xzf "$archive"
    touch "$libraries/unpacked"
  fi
  folder=$(gcc -print-multiarch)
  # Not all compilers say.
  [[ -n $folder ]] || folder=$(uname -m)-linux-gnu
  write_pkg_config "$libraries" "$folder"
  options+=("-DCMAKE_PREFIX_PATH=$libraries/usr" "-DCMAKE_LIBRARY_ARCHITECTURE=$folder"
    "-DOPENSSL_ROOT_DIR=$libraries/usr" "-DPKG_CONFIG_EXECUTABLE=$libraries/pkg-config")
}

# The folder of NCCL's Python package, with include/ and lib/.
nccl_folder() {
  python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null || true
}

use_nccl() {
  local nccl
  nccl=$(nccl_folder)
  [[ -n $nccl ]] || { echo "NCCL: no Python package" && return; }
  echo "NCCL: $nccl"
  options+=("-DNCCL_ROOT=$nccl")
  export LD_LIBRARY_PATH=$nccl/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# Code for the device that is here, and no other: half a minute less.
use_device() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 || true)
  [[ ! $capability =~ ^[0-9]+\.[0-9]$ ]] ||
    options+=("-DELASTIC_CUDA_ARCHITECTURES=${capability/./}")
}

# What is slow under it does not find more either.
# sanitize TOOL PROGRAM FILTER: the program under compute-sanitizer, without the tests that take long.
sanitize() {
  local tool=$1 program=$2 filter=$3
  measured "compute-sanitizer, $tool, $(basename "$program")" 110 compute-sanitizer --tool "$tool" --error-exitcode 9 \
    "$program" --gtest_brief=1 --gtest_filter="$filter"
}

# Several ranks on one device: to NCCL each says that it is another host, and all goes by sockets.
by_sockets=(NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo
  NCCL_MNNVL_ENABLE=0 NCCL_RAS_ENABLE=0 NCCL_MAX_CTAS=2)

# bench_shared NAME LIMIT ARGUMENTS...: elastic-bench of two ranks on the device.
# shellcheck disable=SC2016 # The shell of each rank is to see its number.
bench_shared() {
  measured "$1, two ranks on the device" "$2" env "${by_sockets[@]}" \
    "$build/bin/elasticrun" -np 2 --min-np 2 --max-restarts 0 --no-prefix \
    bash -c 'NCCL_HOSTID=rank$RANK exec "$@"' - "$build/bin/elastic-bench" "${@:3}" --device cuda
}

# Whether jobs can use the backend nccl; says why not where this version of elastic has none yet.
nccl_serves() {
  local said status=0
  said=$("${by[@]}" "$build/bin/elastic-bench" allreduce --np 1 --device cuda --backend nccl -b 8 -e 8 2>&1) || status=$?
  ((status != 0)) || return 0
  ((status != 78)) || { tell "backend nccl: SKIPPED, ${said##*$'\n'}" && return 1; }
  [[ $said != *"but no collectives with them yet"* ]] || { echo "== backend nccl: not there yet" && return 1; }
  echo "$said"
  failures+=("backend nccl")
  return 1
}

# bench NAME LIMIT ARGUMENTS...: elastic-bench, with tensors on the device.
bench() {
  measured "elastic-bench ${*:2}" "$1" "$build/bin/elastic-bench" "${@:2}" --device cuda
}
# Of ranks that share the device, after a death: with the call that it interrupts going through the
# host while NCCL is made again, and waiting for NCCL.
bench_recovery() {
  bench 60 recovery --np 3 --runs "$1"
  [[ $2 == *nccl* ]] || return 0
  for meanwhile in host wait; do
    measured "elastic-bench recovery by NCCL, meanwhile: $meanwhile" 60 \
      env ELASTIC_BACKEND=nccl ELASTIC_NCCL_MEANWHILE=$meanwhile "${by_sockets[@]}" \
      "$build/bin/elastic-bench" recovery --np 3 --runs "$1" --device cuda
  done
  # The death finds the survivors outside of NCCL, which shrinks its communicator, or makes it anew.
  for shrink in auto off; do
    measured "elastic-bench recovery between calls by NCCL, shrink: $shrink" 60 \
      env ELASTIC_BACKEND=nccl ELASTIC_NCCL_MEANWHILE=wait ELASTIC_NCCL_SHRINK=$shrink "${by_sockets[@]}" \
      "$build/bin/elastic-bench" recovery --np 3 --runs "$1" --moment between --device cuda
  done
}

benchmarks() {
  local rounds=$1 backends=native sizes=(-b 1K -e 64M -f 16)
  measured pack_bench 120 "$build/bin/pack_bench" --rounds "$rounds"
  [[ $skipped == yes ]] || ! nccl_serves || backends="native nccl"
  for backend in $backends; do
    bench 60 allreduce --np 1 "${sizes[@]}" -n "$rounds" --backend "$backend,nccl:direct"
    bench_shared "elastic-bench allreduce by $backend" 60 \
      allreduce "${sizes[@]}" -n "$rounds" --backend "$backend,nccl:direct"
    bench 60 fusion --np 1 -n "$rounds" --backend "$backend"
    bench_shared "elastic-bench fusion by $backend" 60 fusion -n "$rounds" --backend "$backend"
  done
  bench_recovery "$rounds" "$backends"
}

describe_machine() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null ||
    echo "nvidia-smi: no device"
  nvcc --version 2>/dev/null | tail -n 2 || echo "nvcc: not found"
  cmake --version | head -n 1
  g++ --version | head -n 1
}

begin_log() {
  local kind="" called="tests/gpu/run.sh"
  ! is_dry_run || { kind=", a dry run: nothing ran on one" && called+=" --dry-run"; }
  cat >"$log" <<HEADING
# elastic on a GPU$kind

Written by \`$called\` on $(date -u +%F), of commit
$(git -C "$root" describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown).

Where two ranks or more share the device, NCCL is made to believe in as many hosts, and goes by
sockets; and all ranks share the machine's processors. That shows what works; times are told for
completeness, and say nothing of ranks with a device each.

\`\`\`
$(describe_machine)
\`\`\`
HEADING
  describe_machine
}

# PyTorch's tensors through the Python package, in a job of which a worker dies and another joins.
torch_tensors() {
  local backend
  is_dry_run || python3 -c 'import elastic, torch' 2>/dev/null ||
    { tell "PyTorch's tensors: SKIPPED, Python has not both elastic and torch" && return; }
  for backend in native nccl; do
    # shellcheck disable=SC2016 # The shell of each rank is to see its number.
    measured "PyTorch's tensors, by $backend" 90 env "${by_sockets[@]}" \
      ELASTIC_BACKEND="$backend" ELASTIC_BACKEND_PATH="$build/lib" \
      "$build/bin/elasticrun" -np 3 --max-restarts 1 \
      bash -c 'NCCL_HOSTID=process$$ exec python3 "$@"' - "$root/tests/gpu/torch_tensors.py"
  done
}

# The programs of the tests, those first from which least is known.
tests() {
  measured "device_kernels_test" 60 "$build/bin/device_kernels_test" --gtest_brief=1
  measured "device_codec_test" 60 "$build/bin/device_codec_test" --gtest_brief=1
  NCCL_DEBUG=INFO bench_shared "NCCL called directly" 40 \
    allreduce -b 1K -e 1M -f 1024 -n 2 --backend nccl:direct
  for program in nccl_allreduce_test device_allreduce_test digits_model_test digits_device_job_test; do
    ! is_dry_run && [[ ! -x $build/bin/$program ]] && continue
    measured "$program" 180 "$build/bin/$program"
  done
  torch_tensors
  measured "the demo, --device cuda" 90 python3 "$root/tools/demo" --bin "$build/bin" --device cuda
  if is_dry_run || command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      sanitize "$tool" "$build/bin/device_kernels_test" '-*FourGibibytes*:*OfAnyLength*'
      sanitize "$tool" "$build/bin/device_codec_test" '-*LargeTensors*'
    done
  else
    tell "compute-sanitizer: SKIPPED, it was not found"
  fi
}

build_all() {
  local carried=$1
  options+=(-DCMAKE_BUILD_TYPE=Release -DELASTIC_CUDA=ON -DELASTIC_FAULT_TESTS=OFF
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DCMAKE_DISABLE_FIND_PACKAGE_Gloo=ON
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5)
  [[ -z $carried ]] || use_carried "$(cd "$carried" && pwd)" "$build"
  use_device
  command -v ninja >/dev/null && options+=(-G Ninja)
  step configure 120 cmake -S "$root" -B "$build" "${options[@]}" || return 1
  step build 300 cmake --build "$build" --target gpu_tests --parallel "$(nproc)" || return 1
}

run_all() {
  local part=$1 carried=$2 built=$3 rounds=$4
  options=()
  export PATH=$PATH:/usr/local/cuda/bin
  begin_log
  use_nccl
  [[ $built == yes ]] || build_all "$carried" || is_dry_run || return 1 # a dry run goes through all steps
  is_dry_run || nvidia-smi >/dev/null 2>&1 || skipped=yes
  [[ $part == benchmarks ]] || tests
  [[ $part == tests ]] || benchmarks "$rounds"
}

main() {
  local carried="" rounds="" minutes=9 part=all built=no dry=no results=gpu-results.md
  build=""
  log=""
  while (($#)); do
    case $1 in
      -h | --help) usage && return ;;
      --built) built=yes && shift ;;
      --dry-run) dry=yes && shift ;;
      --collect | --with | --build | --rounds | --log | --minutes | --part)
        (($# > 1)) || die "$1 needs a value; see --help"
        case $1 in
          --collect) collect "$2"; exit ;;
          --with) carried=$2 ;;
          --build) build=$2 ;;
          --rounds) rounds=$2 ;;
          --log) log=$2 ;;
          --minutes) minutes=$2 ;;
          --part) part=$2 ;;
        esac
        shift 2
        ;;
      *) die "unknown argument '$1'; see --help" ;;
    esac
  done
  if [[ $dry == yes ]]; then
    [[ -z $carried && $built == no ]] || die "--dry-run takes neither --with nor --built"
    : "${build:=$root/build}" "${rounds:=1}"
    [[ -d $build/bin ]] || die "--dry-run: $build has no programs; ./run build makes them"
    by=("$executor" "$(cd "$build" && pwd)")
    results=gpu-dry-run.md
  fi
  : "${build:=$root/build-gpu}" "${rounds:=7}"
  [[ -z $carried || -d $carried ]] || die "there is no folder $carried; --collect makes one"
  [[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds $rounds: give a number, at least 1"
  [[ $minutes =~ ^[1-9][0-9]*$ ]] || die "--minutes $minutes: give a number, at least 1"
  [[ $part =~ ^(all|tests|benchmarks)$ ]] || die "--part $part: tests or benchmarks"
  [[ $built == no || -x $build/bin/device_kernels_test ]] || die "--built: $build has no programs"
  deadline=$((SECONDS + minutes * 60 - 10))
  mkdir -p "$build"
  build=$(cd "$build" && pwd)
  [[ -n $log ]] || log=$build/$results
  : >"$log" || die "--log: $log cannot be written"
  run_all "$part" "$carried" "$built" "$rounds" || true
  sed -i "s,$root/,,g; s,$root,.,g" "$log"
  echo "run.sh: what was said is in $log"
  ((${#cut[@]} == 0)) || echo "run.sh: no time was left for: ${cut[*]}"
  ((${#failures[@]} == 0)) || { echo "run.sh: failed: ${failures[*]}" && return 1; }
  if is_dry_run; then
    ((${#cut[@]} == 0)) || return 1
    echo "run.sh: all steps executed or checked, none on a device, in $SECONDS s"
    return
  fi
  [[ $skipped == no ]] || { echo "run.sh: built, and NOTHING RAN: there is no device" && return 77; }
  echo "run.sh: all done in $SECONDS s"
}

# The test of the dry run takes the functions alone.
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
