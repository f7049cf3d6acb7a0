#!/usr/bin/env bash
# Builds the control plane of another Kubernetes release from the Go modules that v*/go.mod name: nothing is downloaded but modules.
# For "sandbox up --kubernetes DIR".
# Usage: hack/kubernetes/build.sh MINOR DIR, for example hack/kubernetes/build.sh v1.36 bin/kubernetes/v1.36
set -euo pipefail
usage='usage: hack/kubernetes/build.sh MINOR DIR'
minor=${1:?$usage}
mkdir -p "${2:?$usage}"
out=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root/hack/kubernetes/$minor"

CGO_ENABLED=0 go build -ldflags "$("$root/sandbox/version-flags.sh" .)" -o "$out/" \
  k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler
