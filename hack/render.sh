#!/usr/bin/env bash
# Renders deploy/*.yaml from the chart. With --check it changes nothing, and fails if a file is stale.
# HELM is the helm command; the default is that of hack/chart, built on first use.
set -euo pipefail
cd "$(dirname "$0")/.."

helm=${HELM:-$(cd hack/chart && CGO_ENABLED=0 go tool -n helm.sh/helm/v4/cmd/helm)}
chart=charts/cloud-controller-manager

# render FIRST-LINE ARGUMENT... prints a manifest without blank lines, and without comments and labels of a Helm release, because
# kubectl creates none.
render() {
  local about=$1
  shift
  printf '# %s\n# Rendered from %s: change the chart and run make generate.\n' "$about" "$chart"
  "$helm" template cloud-controller-manager "$chart" --namespace kube-system "$@" |
    grep -v -e '^$' -e '^# Source: ' -e 'app.kubernetes.io/managed-by: Helm$'
}

ccm() {
  render 'cloud-controller-manager. Set --cluster-cidr to the pod network of your cluster.' \
    --set clusterCIDR=10.244.0.0/16 --show-only templates/rbac.yaml --show-only templates/workload.yaml \
    --show-only templates/poddisruptionbudget.yaml
}

initor() {
  render 'provider-initor on every node. Requires OpenKruise. Before Kubernetes 1.30, delete the policy and its binding at the end.' \
    --kube-version 1.30.0 --set initializer.enabled=true --set routes.enabled=false \
    --show-only templates/initializer.yaml --show-only templates/initializer-policy.yaml
}

policy() {
  render 'Policies for the annotations of Services. Require Kubernetes 1.30 or later.' \
    --kube-version 1.30.0 --set routes.enabled=false --show-only templates/admission-policy.yaml --show-only templates/admission-unknown-keys.yaml
}

restrictions() {
  render 'Allows public, existing and preserved load balancers only in namespaces with the label alicloud-ccm/internet=allowed. Requires Kubernetes 1.30 or later.' \
    --kube-version 1.30.0 --set routes.enabled=false --values hack/restrictions.yaml --show-only templates/admission-restrictions.yaml
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ccm >"$scratch/ccm.yaml"
initor >"$scratch/provider-initor.yaml"
policy >"$scratch/admission-policy.yaml"
restrictions >"$scratch/admission-restrictions.yaml"

for file in "$scratch"/*.yaml; do
  target=deploy/$(basename "$file")
  if [[ ${1:-} != --check ]]; then
    cp "$file" "$target"
  elif ! diff -u "$target" "$file"; then
    printf '%s is stale: run make generate\n' "$target" >&2
    exit 1
  fi
done
