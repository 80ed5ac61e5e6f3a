{{- define "onceover.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "onceover.selector" -}}
app.kubernetes.io/name: onceover
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "onceover.labels" -}}
{{ include "onceover.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* What the chart decides goes over what is given; the schema refuses a config that names these. */ -}}
{{- define "onceover.config" -}}
{{- $own := dict "instance.id" "${env:INSTANCE_ID}" "http" (dict "listen" "0.0.0.0:8080") "log" (dict "format" "json") "shutdown.timeout.ms" (mul 1000 .Values.shutdownTimeoutSeconds) -}}
{{- merge dict .Values.config $own | toYaml }}
{{- end }}
