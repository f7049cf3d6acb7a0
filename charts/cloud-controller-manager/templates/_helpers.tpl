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
