#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/packages asks apt for what is missing and for nothing else, through sudo when it must, and
# gets by without apt. apt, dpkg, sudo and id are played by scripts that write down their arguments.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
export log

fake() { # fake NAME 'script body'
  printf '#!/bin/bash\n%s\n' "$2" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

fresh() { # an empty system with the build tools only
  rm -rf "$folder/bin" "$log"
  mkdir "$folder/bin"
  touch "$log"
  local tool
  for tool in bash env; do ln -s "$(command -v "$tool")" "$folder/bin/$tool"; done
  for tool in cmake ninja pkg-config python3; do fake "$tool" true; done
}

run() { # run [PACKAGE]: exit code in $code, messages in $output
  code=0
  output=$(PATH=$folder/bin tools/packages "$@" 2>&1 </dev/null) || code=$?
}

fail() {
  echo "$1; exit code $code, said: $output; calls:"
  cat "$log"
  exit 1
}

with_apt() { # with_apt USER_ID: a Debian on which every package but ninja-build is installed
  fresh
  fake id "echo $1"
  fake apt-get 'echo "apt-get $*" >>"$log"'
  fake dpkg-query '[[ ${!#} != ninja-build ]] && echo -n installed'
}

with_apt 0
run
[[ $code -eq 0 ]] || fail "fails as root"
grep -q 'apt-get update' "$log" || fail "no update before the installation"
grep -q 'apt-get install .* ninja-build$' "$log" || fail "does not install just the missing package"

fake dpkg-query 'echo -n installed'
: >"$log"
run
[[ $code -eq 0 && ! -s $log ]] || fail "calls apt though nothing is missing"

fake dpkg-query '[[ ${!#} != a-browser ]] && echo -n installed'
run a-browser
grep -q 'apt-get install .* a-browser$' "$log" || fail "does not install a package named as argument"

fake dpkg-query 'echo -n config-files'
run
grep -q 'install .*libsimgrid-dev' "$log" || fail "takes a removed package for an installed one"

with_apt 1000
fake sudo 'echo sudo >>"$log"; exec "$@"'
run
[[ $code -eq 0 ]] || fail "fails through sudo"
[[ $(grep -c sudo "$log") -eq 2 ]] || fail "update and installation do not go through sudo"

with_apt 1000
run
[[ $code -eq 1 && $output == *"run as root: apt-get install ninja-build"* ]] ||
  fail "does not say what to do without root and sudo"
[[ ! -s $log ]] || fail "calls apt without being root"

with_apt 0
fake apt-get 'exit 100'
run
[[ $code -ne 0 ]] || fail "goes on when apt fails"

fresh
run
[[ $code -eq 0 && $output == *libsimgrid-dev* ]] || fail "does not name the packages without apt"
rm "$folder/bin/ninja"
run
[[ $code -eq 1 && $output == *"ninja is not found"* ]] || fail "goes on without ninja"

echo "packages: all claims hold"
