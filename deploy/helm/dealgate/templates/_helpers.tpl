{{- define "dealgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "dealgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dealgate.labels" -}}
{{ include "dealgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "dealgate.check" -}}
{{- if gt (int .Values.replicas) 1 }}
{{- if not .Values.config.gatewayUrl }}{{ fail "replicas > 1 needs config.gatewayUrl: the embedded gateway has its objects in one pod" }}{{ end }}
{{- if not .Values.secretName }}{{ fail "replicas > 1 needs secretName: a Secret with DEALGATE_STATE, that all pods share" }}{{ end }}
{{- if eq (.Values.config.staging | default "local") "local" }}{{ fail "replicas > 1 needs config.staging, such as gateway: parts of an upload reach any pod" }}{{ end }}
{{- end }}
{{- if and .Values.persistence.existingClaim (gt (int .Values.replicas) 1) }}{{ fail "persistence.existingClaim is the data folder of one pod: it needs replicas: 1" }}{{ end }}
{{- if and .Values.console.host (not .Values.console.port) }}{{ fail "console.host needs console.port" }}{{ end }}
{{- if and .Values.console.host (not (and .Values.ingress.enabled .Values.ingress.hosts)) }}{{ fail "console.host needs ingress.enabled and ingress.hosts" }}{{ end }}
{{- range list "data" "port" "host" "consolePort" "tlsCert" "tlsKey" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s is set by the chart" .) }}{{ end }}
{{- end }}
{{- end }}
