# shellcheck shell=bash
# Prepares a terminal for the tutorials. In the root of the checkout: source docs/tutorials/terminal.sh [DIR], where DIR is that of
# "sandbox up", cluster by default.

export KUBECONFIG=$PWD/${1:-cluster}/kubeconfig
cloud=$(cat "${1:-cluster}/emulator")

# Without kubectl, "make kubectl" builds one for the sandbox.
command -v kubectl >/dev/null || kubectl() { bin/sandbox kubectl "$@"; }

# address SERVICE waits for the address or the name of a load balancer, and prints it.
address() {
  kubectl wait "service/$1" --for=jsonpath='{.status.loadBalancer.ingress}' --timeout 2m >/dev/null
  kubectl get service "$1" --output jsonpath='{.status.loadBalancer.ingress[0].ip}{.status.loadBalancer.ingress[0].hostname}{"\n"}'
}

# state prints what is in the cloud, a line for each field.
state() {
  curl --silent --show-error --fail "$cloud/_emulator/state" | tr ',{[' '\n'
}

# eventually COMMAND... runs a command until it succeeds, for two minutes at most.
eventually() {
  local try
  for try in {1..240}; do
    "$@" && return
    sleep 0.5
  done
  echo "gave up after $((try / 2)) seconds: $*" >&2
  return 1
}

# uid SERVICE prints the UID of a Service.
uid() {
  kubectl get service "$1" --ignore-not-found --output jsonpath='{.metadata.uid}'
}

# event OBJECT REASON [UID] waits for an event of an object, and prints it. Events of an earlier Service of that name do not count; one that is
# deleted has no UID any more.
event() {
  local selector="involvedObject.name=$1,reason=$2" uid=${3:-$(uid "$1")}
  eventually print_events "$selector${uid:+,involvedObject.uid=$uid}"
}

print_events() {
  kubectl get events --field-selector "$1" --no-headers \
    --output custom-columns='TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message' 2>/dev/null | grep .
}

# has_servers SERVICE NUMBER tells whether a Service has so many backend servers.
has_servers() {
  [[ $(servers "$1" | wc -l) == "$2" ]]
}

# request ADDRESS:PORT sends an HTTP request from a machine in the VPC, and prints the answer. New backend servers take a moment.
request() {
  local try answer
  for try in {1..240}; do
    answer=$(curl --silent --show-error "$cloud/_sandbox/get?from=i-sandbox0001&to=$1" --write-out '\n%{http_code}') || answer=
    if [[ ${answer##*$'\n'} == 200 ]]; then
      echo "${answer%%$'\n'*}"
      return
    fi
    sleep 0.5
  done
  echo "after $try tries: $answer" >&2
  return 1
}

# endpoint SERVICE PORT prints where the listener of a Service on a CLB is on this computer. Descriptions name the Service.
endpoint() {
  state | awk -F '"' -v of="k8s/$2/$1/" '/"Description":/ { found = index($4, of) == 1 } found && /"LoopbackEndpoint":/ { print $4; exit }'
}

# servers SERVICE prints the backend servers of a Service with a CLB.
servers() {
  state | awk -F '"' -v of="/$1/" '/"ServerId":/ { id = $4 } /"Description":/ { if (id && index($4, of)) print id; id = "" }' | sort -u
}
