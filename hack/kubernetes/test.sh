#!/usr/bin/env bash
# Runs the end-to-end tests of programs and chart against the control planes of several Kubernetes releases, and writes the results to
# docs/reference/kubernetes-versions.md. Exit code 1 if a test failed; the page then says so.
# Usage: hack/kubernetes/test.sh BIN [MINOR...], the directory of the built programs and the releases (all), for example v1.36
set -euo pipefail
bin=$(cd "${1:?usage: hack/kubernetes/test.sh BIN [MINOR...]}" && pwd)
shift
cd "$(dirname "$0")/../.."
page=docs/reference/kubernetes-versions.md
logs=$bin/kubernetes
mkdir -p "$logs"

# That of the sandbox's own module needs no build.
own=$(cd sandbox && go list -m -f '{{.Version}}' k8s.io/kubernetes)
minors=("${own%.*}")
for directory in hack/kubernetes/v*; do
  minors+=("$(basename "$directory")")
done

# run NAME DIRECTORY ARGUMENT... runs one suite and prints "N passed", and what failed or was skipped.
run() {
  local log="$logs/$1.log" directory=$2
  shift 2
  (cd "$directory" && CGO_ENABLED=0 SANDBOX_BIN_DIR=$bin go test -vet=off -count=1 -timeout 30m -v "$@") >"$log" 2>&1 || printf 'kubernetes: see %s\n' "$log" >&2
  awk '/^--- PASS/ { passed++ } /^--- FAIL/ { failed++ } /^--- SKIP/ { skipped++ } /^panic:/ { failed++ }
    END { if (!passed && !failed) failed = 1; printf "%d passed", passed; if (skipped) printf ", %d skipped", skipped; if (failed) printf ", **%d failed**", failed }' "$log"
}

# row MINOR prints the line of a release.
row() {
  local version=$own
  if [[ $1 != "${own%.*}" ]]; then
    hack/kubernetes/build.sh "$1" "$bin/kubernetes/$1"
    version=$(cd "hack/kubernetes/$1" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
    export SANDBOX_KUBERNETES="$bin/kubernetes/$1"
  fi
  printf '| %s | %s | %s | %s |\n' "${1#v}" "${version#v}" "$(run "$1-programs" sandbox ./e2e)" \
    "$(run "$1-chart" hack/chart -run '^(TestAdmissionPolicy|TestRestrictions|TestInstall|TestInitializerJobs|TestKeyReaders)$' .)"
}

readarray -t minors < <(printf '%s\n' "${minors[@]}" | sort --version-sort --reverse)
rows=''
for minor in "${minors[@]}"; do
  if (($# == 0)) || [[ " $* " == *" $minor "* ]]; then
    line=$(row "$minor")
  else
    line=$(grep "^| ${minor#v} |" "$page") || { printf 'kubernetes: %s has no line of %s yet\n' "$page" "$minor" >&2 && exit 1; }
  fi
  rows+=$line$'\n'
done

{
  sed '/^| release/,$d' "$page"
  printf '| release | version | programs | chart and admission policies |\n| --- | --- | --- | --- |\n%s' "$rows"
} >"$page.new"
mv "$page.new" "$page"
! grep -q 'failed' <<<"$rows"
