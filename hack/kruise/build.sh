#!/usr/bin/env bash
# Builds the real OpenKruise manager and puts beside it what it needs in a cluster, both from the Go module that go.mod names:
# nothing is downloaded but modules. For "sandbox up --open-kruise DIR".
# Usage: hack/kruise/build.sh DIR
set -euo pipefail
mkdir -p "${1:?usage: hack/kruise/build.sh DIR}"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

CGO_ENABLED=0 go build -ldflags '-s -w' -o "$out/kruise-manager" github.com/openkruise/kruise
module=$(go list -m -f '{{.Dir}}' github.com/openkruise/kruise)
# All of them: for each kind that is missing the manager looks for 16 seconds before it goes on without.
cat "$module"/config/crd/bases/*.yaml >"$out/crds.yaml"
cat "$module/config/webhook/manifests.yaml" >"$out/webhooks.yaml"
