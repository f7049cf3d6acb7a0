{{- $entries := slice -}}
{{- range where site.Pages "Params.path" "!=" nil -}}
{{- if .Params.path -}}
{{- $headings := slice -}}
{{- range $id, $h := .Fragments.HeadingsMap -}}{{- $headings = $headings | append (dict "id" $id "title" $h.Title) -}}{{- end -}}
{{- $entries = $entries | append (dict "url" (strings.TrimPrefix "/" .RelPermalink) "title" .Title "headings" $headings "text" (.Plain | htmlUnescape)) -}}
{{- end -}}
{{- end -}}
window.searchIndex = {{ $entries | jsonify }};
