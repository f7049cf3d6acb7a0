{{- /* ccm.served is a CEL expression: whether the object .object is a Service that this project's manager has a load balancer for. The annotation
class keeps the manager only from Services that would have a CLB without a class. */ -}}
{{- define "ccm.served" -}}
{{ .object }}.spec.?type.orValue('') == 'LoadBalancer'
&& {{ .object }}.spec.?loadBalancerClass.orValue('alibabacloud.com/clb') in ['alibabacloud.com/clb', 'alibabacloud.com/nlb']
&& ({{ .object }}.metadata.?annotations['service.beta.kubernetes.io/class'].orValue('') == '' || {{ .object }}.spec.?loadBalancerClass.orValue('') == 'alibabacloud.com/nlb'
|| {{ .object }}.metadata.?annotations['service.beta.kubernetes.io/alibaba-cloud-loadbalancer-type']
.or({{ .object }}.metadata.?annotations['service.beta.kubernetes.io/alicloud-loadbalancer-type']).orValue('').trim() != '')
&& {{ .object }}.metadata.?annotations['service.beta.kubernetes.io/alibaba-cloud-loadbalancer-tunnel-type']
.or({{ .object }}.metadata.?annotations['service.beta.kubernetes.io/alicloud-loadbalancer-tunnel-type']).orValue('').trim() == ''
{{- end -}}

{{- /* ccm.finalizers are those of the manager, in CEL. */ -}}
{{- define "ccm.finalizers" -}}
['service.k8s.alibaba/resources', 'service.k8s.alibaba/nlb']
{{- end -}}

{{- /* ccm.held is a CEL expression: whether the object .object has a finalizer of the manager. */ -}}
{{- define "ccm.held" -}}
{{ .object }}.metadata.?finalizers.orValue([]).exists(f, f in {{ include "ccm.finalizers" . }})
{{- end -}}

{{- /* ccm.notTheManager leaves out the manager, which writes finalizers, a label and conditions by the subresource status. Everybody else can change annotations by that, too. */ -}}
{{- define "ccm.notTheManager" -}}
- name: not-the-manager
  expression: request.userInfo.username != 'system:serviceaccount:{{ .Release.Namespace }}:cloud-controller-manager'
{{- end -}}

{{- /* ccm.servedConditions selects these Services in the policies of keys. */ -}}
{{- define "ccm.servedConditions" -}}
{{ include "ccm.notTheManager" . }}
- name: served
  expression: >-
    {{- include "ccm.served" (dict "object" "object") | nindent 4 }}
# Its finalizers must go, whatever its annotations say.
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
{{- end -}}

{{- /* ccm.annotationOr is a CEL expression: the value of the annotation .name in the map .map as the manager reads it, or .default. */ -}}
{{- define "ccm.annotationOr" -}}
[{{ .map }}[?'service.beta.kubernetes.io/alibaba-cloud-{{ .name }}'].or({{ .map }}[?'service.beta.kubernetes.io/alicloud-{{ .name }}']).orValue('').trim().lowerAscii()]
      .map(t, t == '' ? '{{ .default }}' : t)[0]
{{- end -}}

{{- /* ccm.keysOf lists the keys of annotations, with either prefix. */ -}}
{{- define "ccm.keysOf" -}}
{{- $keys := list -}}
{{- $own := fromJsonArray (include "ccm.ownAnnotations" .) -}}
{{- range . -}}
{{- if has (print "service.alicloud-ccm.io/" .) $own -}}
{{- $keys = append $keys (print "service.alicloud-ccm.io/" .) -}}
{{- else -}}
{{- $keys = concat $keys (list (print "service.beta.kubernetes.io/alibaba-cloud-" .) (print "service.beta.kubernetes.io/alicloud-" .)) -}}
{{- end -}}
{{- end -}}
{{- toJson $keys -}}
{{- end -}}

{{- /* ccm.checkRestriction rejects a restriction that would have no effect. */ -}}
{{- define "ccm.checkRestriction" -}}
{{- if not (or .restriction.annotations .restriction.addressTypes) -}}
{{- fail (printf "admissionPolicy.restrictions: %q restricts nothing; set annotations, addressTypes or both" .restriction.name) -}}
{{- end -}}
{{- $known := concat (list "paused") (fromJsonArray (include "ccm.annotationsOfCLB" .)) (fromJsonArray (include "ccm.annotationsOfNLB" .)) -}}
{{- range .restriction.annotations -}}
{{- if not (or (has . $known) (has (print "service.alicloud-ccm.io/" .) (fromJsonArray (include "ccm.ownAnnotations" $)))) -}}
{{- fail (printf "admissionPolicy.restrictions: %q restricts the annotation %q, which does not exist; accepted: names without prefix, for example loadbalancer-id, move and paused" $.restriction.name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
