#!/usr/bin/env bash
# Creates or updates the ConfigMap (or Secret) kube-system/cloud-config, the configuration of cloud-controller-manager.
set -euo pipefail
set +x # tracing would print the secret

usage() {
  cat <<'TEXT'
Usage: cloud-config.sh [--region REGION] [--secret] [--paused] [--dry-run]

Creates or updates the ConfigMap kube-system/cloud-config with kubectl, in the cluster that KUBECONFIG names, and prints who can read it.

  --region REGION     region ID, for example cn-hangzhou; overrides the variable REGION
  --secret            create the Secret kube-system/cloud-config instead of the ConfigMap (chart: cloudConfig.secretName); recommended
  --paused            keep the manager from writing to the cloud, until the script runs without this flag
  --dry-run           print the manifest with the access key secret masked, and change nothing

Required environment variables; on a terminal, the script prompts for missing ones:
  ACCESS_KEY_ID       access key ID
  ACCESS_KEY_SECRET   access key secret

Optional environment variables; cloud-controller-manager determines missing values itself:
  VPC_ID              VPC of the cluster
  VSWITCH_ID          vSwitches for intranet load balancers: zone:vsw-...[,zone:vsw-...]
  ZONE_ID             zone of the cluster
  CLUSTER_ID          ID of the cluster in tags and names of cloud resources
  ROUTE_TABLE_IDS     route tables to manage, separated by commas
  RESOURCE_GROUP_ID   resource group of new cloud resources
TEXT
}

die() {
  printf 'cloud-config.sh: %s\n' "$1" >&2
  exit 1
}

# json_string prints its argument as a JSON string. It processes single characters, because versions of bash differ in how ${x//a/b}
# treats backslashes and ampersands.
json_string() {
  local text=$1 out='' char i
  for ((i = 0; i < ${#text}; i++)); do
    char=${text:i:1}
    case $char in
      '"' | \\) out+="\\$char" ;;
      $'\n') out+='\n' ;;
      *) out+=$char ;;
    esac
  done
  printf '"%s"' "$out"
}

# base64_of prints its argument in base64 on one line. printf is a builtin, so that the argument appears in no process list.
base64_of() { printf '%s' "$1" | base64 | tr -d '\n'; }

# require VARIABLE HINT fails if the variable is empty, or contains a character that no key and no ID has, such as a pasted line break.
require() {
  local value=${!1:-}
  [[ -n $value ]] || die "$1 is not set: $2"
  [[ $value != *[![:graph:]]* ]] || die "$1 contains a space, a line break or another invalid character"
}

field() { printf ',\n    "%s": %s' "$1" "$(json_string "$2")"; }

# optional VARIABLE FIELD prints the field if the variable is set.
optional() {
  local value=${!1:-}
  [[ -z $value ]] || field "$2" "$value"
}

# ask VARIABLE prompts for an empty variable without echo, if there is a terminal.
ask() {
  local value
  [[ -z ${!1:-} && -t 0 ]] || return 0
  read -rsp "$1: " value || die "$1 is not set: the input is empty"
  printf '\n' >&2
  printf -v "$1" %s "$value"
}

# check_input fails on missing or invalid input. It runs before anything is printed, because die inside $(...) ends only the subshell.
check_input() {
  local name
  ask ACCESS_KEY_ID
  ask ACCESS_KEY_SECRET
  require ACCESS_KEY_ID 'set it to the access key ID'
  require ACCESS_KEY_SECRET 'set it to the access key secret'
  require REGION 'set it to a region ID, for example cn-hangzhou, or use --region'
  [[ $REGION =~ ^[a-z]+(-[a-z0-9]+)+$ ]] || die "REGION is \"$REGION\", not a region ID such as cn-hangzhou"
  for name in VPC_ID VSWITCH_ID ZONE_ID CLUSTER_ID ROUTE_TABLE_IDS RESOURCE_GROUP_ID; do
    [[ -z ${!name:-} ]] || require "$name" ''
  done
}

# cloud_config SECRET prints the configuration in the format of --cloud-config, with SECRET as the access key secret.
cloud_config() {
  printf '{\n  "Global": {\n    "region": %s' "$(json_string "$REGION")"
  field accessKeyID "$(base64_of "$ACCESS_KEY_ID")"
  field accessKeySecret "$1"
  optional VPC_ID vpcid
  optional VSWITCH_ID vswitchid
  optional ZONE_ID zoneid
  optional CLUSTER_ID clusterID
  optional ROUTE_TABLE_IDS routeTableIDs
  optional RESOURCE_GROUP_ID resourceGroupID
  ! $paused || printf ',\n    "paused": true'
  printf '\n  }\n}\n'
}

# manifest KIND SECRET prints the object.
manifest() {
  local config
  config=$(cloud_config "$2")
  # The data of a Secret is base64. A masked manifest is for humans, so its data stays readable.
  [[ $1 == ConfigMap || $2 == "$mask" ]] || config=$(base64_of "$config")
  printf '{\n  "apiVersion": "v1",\n  "kind": "%s",\n' "$1"
  printf '  "metadata": {"name": "cloud-config", "namespace": "kube-system"},\n'
  printf '  "data": {"cloud-config.conf": %s}\n}\n' "$(json_string "$config")"
}

# subjects prints kind, namespace and name of everyone to whom a binding grants something in kube-system.
subjects() {
  kubectl get clusterrolebindings,rolebindings --namespace kube-system -o go-template='{{range .items}}{{range .subjects}}{{.kind}}{{"\t"}}{{if .namespace}}{{.namespace}}{{else}}-{{end}}{{"\t"}}{{.name}}{{"\n"}}{{end}}{{end}}' |
    sort -u
}

# review RESOURCE prints a SubjectAccessReview for each of the subjects that it reads: whether the subject may get the object.
review() {
  local kind namespace name who
  while IFS=$'\t' read -r kind namespace name; do
    case $kind:$name in
      ServiceAccount:*)
        who="\"user\": $(json_string "system:serviceaccount:$namespace:$name"), \"groups\": [\"system:authenticated\", \"system:serviceaccounts\", $(json_string "system:serviceaccounts:$namespace")]"
        ;;
      User:system:* | Group:system:masters | Group:system:nodes*) continue ;; # the control plane, which can read everything that it needs
      User:*) who="\"user\": $(json_string "$name"), \"groups\": [\"system:authenticated\"]" ;;
      Group:*) who="\"groups\": [$(json_string "$name")]" ;;
      *) continue ;;
    esac
    printf '{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {%s, "resourceAttributes": ' "$who"
    printf '{"namespace": "kube-system", "verb": "get", "resource": "%s", "name": "cloud-config"}}}\n' "$1"
  done
}

# readers RESOURCE prints who can read the object. kube-system itself belongs to the administrators.
readers() {
  local found
  found=$(subjects) || return 1
  found=$(review "$1" <<<"$found")
  [[ -n $found ]] || return 0
  found=$(kubectl create -o go-template='{{if .status.allowed}}{{if .spec.user}}{{.spec.user}}{{else}}{{index .spec.groups 0}} (group){{end}}{{"\n"}}{{end}}' -f - <<<"$found") || return 1
  grep -v '^system:serviceaccount:kube-system:' <<<"$found" || true
}

# report KIND prints who can read the key that was written. It reports, and never fails.
report() {
  local resource=configmaps found
  [[ $1 == ConfigMap ]] || resource=secrets
  if ! found=$(readers "$resource" 2>/dev/null); then
    printf 'cloud-config.sh: cannot determine who else can read the access key in the %s: you may not list bindings, or create SubjectAccessReviews\n' "$1"
  elif [[ -z $found ]]; then
    printf 'cloud-config.sh: besides the administrators and the components in kube-system, nobody can read the access key in the %s\n' "$1"
  else
    printf 'cloud-config.sh: besides the administrators and the components in kube-system, these can read the access key in the %s:\n' "$1"
    printf '%s\n' "$found" | sed 's/^/  /'
  fi
  [[ $1 == Secret ]] ||
    printf 'cloud-config.sh: in a cluster with more than one team, use --secret, and cloudConfig.secretName=cloud-config in the chart\n'
}

readonly mask='***'
paused=false

main() {
  local dry_run=false kind=ConfigMap secret document
  while (($#)); do
    case $1 in
      --region)
        [[ $# -ge 2 ]] || die '--region has no value: set it to a region ID, for example cn-hangzhou'
        REGION=$2
        shift
        ;;
      --region=*) REGION=${1#*=} ;;
      --secret) kind=Secret ;;
      --paused) paused=true ;;
      --dry-run) dry_run=true ;;
      -h | --help) usage && return ;;
      *) die "unknown argument \"$1\": use --region REGION, --secret, --paused, --dry-run or --help" ;;
    esac
    shift
  done

  check_input
  if $dry_run; then
    manifest "$kind" "$mask"
    return
  fi
  command -v kubectl >/dev/null || die 'kubectl is not in PATH: see https://kubernetes.io/docs/tasks/tools/'
  secret=$(base64_of "$ACCESS_KEY_SECRET")
  document=$(manifest "$kind" "$secret")
  unset ACCESS_KEY_SECRET # kubectl and its plugins do not need it
  # Server-side, because a client-side apply stores a second copy of the secret in an annotation.
  printf '%s' "$document" | kubectl apply --server-side --force-conflicts --field-manager=cloud-config.sh -f - ||
    die "kubectl could not apply the $kind kube-system/cloud-config: see its message above"
  report "$kind"
}

main "$@"
