#!/usr/bin/env bash
# Builds Kubernetes' end-to-end specs of networks and the programs of the images that they run, from the Go modules that go.mod names, and
# the program that runs them (run --help).
# Usage: hack/k8s-e2e/build.sh DIR
set -euo pipefail
mkdir -p "${1:?usage: hack/k8s-e2e/build.sh DIR}"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

# As the sandbox is built: with other flags Go would compile Kubernetes once more.
export CGO_ENABLED=0
go build -ldflags "$(../../sandbox/version-flags.sh)" -o "$out/suite" ./suite
go build -ldflags '-s -w' -o "$out/agnhost" k8s.io/kubernetes/test/images/agnhost
go build -ldflags '-s -w' -o "$out/coredns" ./coredns
go build -o "$out/run" .
