#!/usr/bin/env bash
# Prints the linker flags that tell the control plane its version. Without them it reports v0.0.0 with an unset commit, which
# clients that parse the version refuse. Usage: go build -ldflags "$(./version-flags.sh)" ./cmd/sandbox, or with the directory of another
# module that requires Kubernetes as the argument.
set -euo pipefail
cd "${1:-$(dirname "$0")}"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
flags=(-s -w)
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=(-X "$package.gitVersion=$version" -X "$package.gitMajor=$major" -X "$package.gitMinor=$minor" -X "$package.gitTreeState=clean")
done
echo "${flags[*]}"
