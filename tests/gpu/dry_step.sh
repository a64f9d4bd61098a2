#!/usr/bin/env bash
# One step of `run.sh --dry-run`: executes a command as far as that goes without a CUDA device.
#
#   dry_step.sh BUILD COMMAND...
#
# BUILD is a folder with a finished build. Its stand-ins take the place of CUDA's driver and of NCCL; CUDA's runtime
# has none. Benchmarks get less to do. Ends with 0 if the command ran, with 78 if it was only checked, or with
# another status if it is wrong. The last line of its output then says why.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
shift
cuda_stand_in=$build/tests/cuda/cuda_stand_in
nccl_stand_in=$build/lib/libnccl_stand_in.so
one_rank_nccl=$build/lib/libone_rank_nccl.so # all that there is for nccl:direct
configured=$build/gpu-dry-run                # what the step that configures makes

wrong() {
  echo "wrong: $*"
  exit 1
}

only_checked() {
  echo "only checked: $*"
  exit 78
}

# The programs that the target gpu_tests builds; none without CUDA.
gpu_programs() {
  [[ -f $build/build.ninja ]] || wrong "$build has no build.ninja; give --build DIR"
  ninja -C "$build" -t commands gpu_tests | sed -n 's,.* -o bin/\([^ ]*\) .*,\1,p'
}

# check_program PATH: it is built by gpu_tests, and there.
check_program() {
  local name=${1##*/} programs
  programs=$(gpu_programs)
  if grep -qx -- "$name" <<<"$programs"; then
    [[ -x $1 ]] || wrong "$1 is not built; cmake --build $build --target gpu_tests"
  elif [[ -n $programs || ! -x $1 ]]; then
    # A program that is left out of a build without CUDA or NCCL.
    grep -qE "(NAME|add_executable\(|program) ?$name\b" "$root/tests/gpu/CMakeLists.txt" ||
      wrong "the target gpu_tests does not build $name"
    only_checked "this build has no CUDA or no NCCL, and so no $name"
  fi
}

check_python() {
  [[ -f $1 ]] || wrong "there is no $1"
  python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$1"
}

# with_stand_ins COMMAND...: one device, and NCCL where this build has it.
with_stand_ins() {
  env LD_LIBRARY_PATH="$cuda_stand_in:$libraries" CUDA_STAND_IN_DEVICES=1 ELASTIC_NCCL_LIBRARY="$nccl" "$@"
}

# configure ARGUMENTS...: beside the build, as if for the device.
configure() {
  local words=() word
  for word in "$@"; do
    [[ $word != "$build" ]] || word=$configured
    words+=("$word")
  done
  command -v nvcc >/dev/null || only_checked "there is no nvcc, without which -DELASTIC_CUDA=ON is an error"
  rm -rf "$configured"
  cmake "${words[@]}" | tail -n 3
}

# build_target ARGUMENTS...: cmake --build's. The target is there, and CMake takes the options.
build_target() {
  local target="" commands
  [[ $* =~ --target\ ([^ ]+) ]] && target=${BASH_REMATCH[1]}
  [[ -f $configured/build.ninja ]] || only_checked "nothing was configured with Ninja"
  cmake --build "$configured" "${@:4}" -- -n >/dev/null
  commands=$(ninja -C "$configured" -t commands "$target" | wc -l)
  only_checked "$target takes $commands commands"
}

# tests_of PROGRAM OPTIONS...: the names of those that it would run, a line each.
tests_of() {
  "$@" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }'
}

# check_filter PROGRAM OPTIONS...: each pattern matches a test, also those that leave tests out.
check_filter() {
  local word pattern patterns=()
  for word in "$@"; do
    [[ $word != --gtest_filter=* ]] || IFS=:- read -ra patterns <<<"${word#*=}"
  done
  for pattern in "${patterns[@]}"; do
    [[ -z $pattern || -n $(tests_of "$1" "--gtest_filter=$pattern") ]] || wrong "no test of $1 matches $pattern"
  done
}

# google_test PROGRAM OPTIONS...: there are tests, the first of which runs if the driver is all it needs.
google_test() {
  local program=$1 first
  check_filter "$@"
  first=$(tests_of "$@")
  [[ -n $first ]] || wrong "no test is left of $program: ${*:2}"
  echo "$(wc -l <<<"$first") tests match"
  first=${first%%$'\n'*}
  case ${program##*/} in
    device_allreduce_test | nccl_allreduce_test)
      echo "of which on the stand-ins: $first"
      with_stand_ins "$program" --gtest_brief=1 --gtest_filter="$first"
      ;;
    *)
      env CUDA_VISIBLE_DEVICES= "$@" >"$libraries/output" 2>&1 || { cat "$libraries/output" && return 1; }
      only_checked "its tests compute by CUDA's runtime, and skip themselves without a device"
      ;;
  esac
}

# bench COMMAND...: elastic-bench, under elasticrun or not, with a tenth of a second of work.
bench() {
  local words=() word less=() replaced=no
  for word in "$@"; do
    case $word in
      64M) word=1M ;;
      fusion) less=(-w 0 --turns 1) ;;
      recovery) less=(--bytes 64K) ;;
      nccl | ELASTIC_BACKEND=nccl) [[ -f $nccl ]] || only_checked "this build has no backend nccl" ;;
      native,nccl:direct | nccl,nccl:direct | nccl:direct)
        if [[ $word == native,* && $* == *"--np 1 "* && -f $one_rank_nccl ]]; then
          nccl=$one_rank_nccl
        else
          echo "$word: without nccl:direct, of which there is a stand-in for one rank alone beside native"
          word=${word%nccl:direct}
          word=${word%,}
          [[ -n $word ]] || { word=native && replaced=yes; }
        fi
        ;;
    esac
    words+=("$word")
  done
  with_stand_ins "${words[@]}" "${less[@]}"
  [[ $replaced == no ]] || only_checked "it ran with the backend native"
}

# The trainer computes by CUDA's runtime. All before that runs.
demo() {
  local said
  said=$(env CUDA_VISIBLE_DEVICES= "$@" 2>&1) && wrong "it trained without a device"
  echo "$said"
  [[ $said == *"train_digits: "*CUDA* ]] || wrong "train_digits did not get to looking for a device"
  only_checked "train_digits found no device, as it should"
}

# The launcher starts Python, which compiles the file and ends.
torch_script() {
  local words=("$@") said
  words[-1]=-c
  said=$(with_stand_ins "${words[@]}" 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' \
    "${!#}" 2>&1) || true
  [[ $said == *"the program never called elastic::init"* ]] || { echo "$said" && wrong "that is not how it ends"; }
  only_checked "the launcher started Python, which compiled the file"
}

pack_bench() {
  local status=0
  env CUDA_VISIBLE_DEVICES= "$@" || status=$?
  ((status == 77)) || return $((status == 0 ? 1 : status))
  only_checked "it took its options, and found no device, as it should"
}

# execute COMMAND...
execute() {
  local word
  for word in "$@"; do
    [[ $word != "$build"/bin/* ]] || check_program "$word"
    [[ $word != "$root"/*.py && $word != "$root"/tools/* ]] || check_python "$word"
  done
  if [[ $1 == compute-sanitizer ]]; then shift 5; fi # its options, of which the last is the exit code
  case $* in
    "cmake --build "*) build_target "$@" ;;
    "cmake "*) configure "${@:2}" ;;
    *torch_tensors.py) torch_script "$@" ;;
    *elastic-bench\ *) bench "$@" ;;
    python3\ */tools/demo\ *) demo "$@" ;;
    "$build"/bin/pack_bench\ *) pack_bench "$@" ;;
    "$build"/bin/*_test*) google_test "$@" ;;
    *) wrong "the dry run knows no such command" ;;
  esac
}

libraries=$(mktemp -d) # where programs find the stand-in for NCCL by its name
trap 'rm -rf "$libraries"' EXIT
nccl=$nccl_stand_in
[[ ! -f $nccl ]] || ln -s "$nccl" "$libraries/libnccl.so.2"
[[ -f $cuda_stand_in/libcuda.so.1 ]] || wrong "$build has no stand-in for CUDA's driver; build all first"
printf '$'
printf ' %q' "$@"
printf '\n'
execute "$@"
