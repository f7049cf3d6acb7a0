{{- define "ccm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "ccm.selector" -}}
k8s-app: cloud-controller-manager
{{- end -}}

{{- define "initor.labels" -}}
app.kubernetes.io/name: provider-initor
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- /* ccm.nodes is controlPlaneNodes with its default: a DaemonSet that only preferred nodes would run on all of them. */ -}}
{{- define "ccm.nodes" -}}
{{- .Values.controlPlaneNodes | default (eq .Values.kind "DaemonSet" | ternary "require" "prefer") -}}
{{- end -}}

{{- /* ccm.check refuses values that fit the schema one by one and not together. */ -}}
{{- define "ccm.check" -}}
{{- $v := .Values -}}
{{- if and $v.routes.enabled (not $v.clusterCIDR) -}}
{{- fail "clusterCIDR is empty: set it to the cluster's pod network (for example 10.244.0.0/16), or set routes.enabled to false" -}}
{{- end -}}
{{- range keys $v.cloudConfig.global -}}
{{- if has (lower .) (list "accesskeyid" "accesskeysecret") -}}
{{- fail (printf "cloudConfig.global.%s is set: an access key is given, in plain, by credentials.accessKeyID and credentials.accessKeySecret, or by credentials.secretName" .) -}}
{{- end -}}
{{- end -}}
{{- with $v.credentials -}}
{{- if ne (empty .accessKeyID) (empty .accessKeySecret) -}}
{{- fail "credentials.accessKeyID and credentials.accessKeySecret: only one is set; accepted: both or neither" -}}
{{- end -}}
{{- if and .accessKeyID (not $v.cloudConfig.global) -}}
{{- fail "credentials.accessKeyID is set and cloudConfig.global is empty: the chart writes the key into the configuration that it makes from cloudConfig.global, for example cloudConfig.global.region=cn-hangzhou" -}}
{{- end -}}
{{- if gt (len (compact (list .secretName .accessKeyID (.rrsa.enabled | ternary "rrsa" "")))) 1 -}}
{{- fail "credentials: more than one of secretName, accessKeyID and rrsa.enabled is set; accepted: one of them, or none for the configuration file's key or the RAM role of the instance" -}}
{{- end -}}
{{- if and .rrsa.enabled (or (not .rrsa.roleARN) (not .rrsa.oidcProviderARN)) -}}
{{- fail "credentials.rrsa.enabled is true: credentials.rrsa.roleARN and credentials.rrsa.oidcProviderARN must be set, for example acs:ram::123456789012:role/ccm and acs:ram::123456789012:oidc-provider/my-cluster" -}}
{{- end -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.hostNetwork -}}
{{- fail "networkPolicy.enabled is true and hostNetwork is true: a NetworkPolicy does not bind pods of the node's network; set one of them to false" -}}
{{- end -}}
{{- include "ccm.checkNamespace" . -}}
{{- end -}}

{{- /* ccm.checkNamespace looks, where there is a cluster to look at, whether the namespace admits pods of the node's network. Otherwise
the release would be installed, and only an event of the ReplicaSet would say why it has no pods. */ -}}
{{- define "ccm.checkNamespace" -}}
{{- $level := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" (lookup "v1" "Namespace" "" .Release.Namespace) -}}
{{- if has $level (list "baseline" "restricted") -}}
{{- $way := printf "kubectl label namespace %s --overwrite pod-security.kubernetes.io/enforce=privileged, or another namespace such as kube-system" .Release.Namespace -}}
{{- if .Values.hostNetwork -}}
{{- fail (printf "hostNetwork is true, and the namespace %s admits no pods of the node's network (it enforces the Pod Security Standard %s): %s, or hostNetwork=false where pods reach each other without routes of this program" .Release.Namespace $level $way) -}}
{{- end -}}
{{- if .Values.initializer.enabled -}}
{{- fail (printf "initializer.enabled is true, its pods are of the node's network, and the namespace %s admits none (it enforces the Pod Security Standard %s): %s" .Release.Namespace $level $way) -}}
{{- end -}}
{{- end -}}
{{- end -}}
