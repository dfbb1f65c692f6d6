import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { temporaryFolder } from '../support/content/folders.js'

const CHART = 'deploy/helm/dealgate'
const THREE = ['-f', 'deploy/helm/three.yaml']
const EVERYTHING = ['-f', 'deploy/helm/everything.yaml']
const NEAR = 'affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]'
/** What is off by default. */
const ALL = [
  ...['ingress.enabled=true', 'ingress.hosts={s3.example.com}', 'ingress.className=nginx', 'metricsPort=9400'],
  'console.host=console.example.com',
  ...['serviceMonitor.enabled=true', 'serviceMonitor.labels.release=prometheus', 'persistence.existingClaim=store'],
  `${NEAR}.labelSelector.matchLabels.app=gateway`,
  `${NEAR}.topologyKey=kubernetes.io/hostname`,
].flatMap((value) => ['--set', value])

const run = (program: string, ...args: string[]) => spawnSync(program, args, { encoding: 'utf8' })
/** `.ci/run` does not build it, because that takes minutes: `go install helm.sh/helm/v3/cmd/helm@v3.16.4`. */
const skip = run('helm', 'version').status !== 0 && 'helm is not installed'

interface Resource {
  readonly kind: string
  readonly spec?: {
    readonly maxUnavailable?: number
    readonly template?: { readonly spec: { readonly containers: readonly Record<string, unknown>[] } }
  }
}

t.test('the chart renders what Kubernetes takes', { skip }, async (t) => {
  const rendered = (...values: string[]) => {
    const { status, stdout, stderr } = run('helm', 'template', 'x', CHART, ...values)
    t.equal(status, 0, stderr)
    return stdout
  }
  for (const values of [[], THREE, EVERYTHING, ALL]) {
    const linted = run('helm', 'lint', '--strict', CHART, ...values)
    t.equal(linted.status, 0, linted.stdout)
    const file = join(temporaryFolder(t), 'rendered.yaml')
    writeFileSync(file, rendered(...values))
    const checked = run('.ci/venv/bin/kubernetes-validate', '--strict', '-k', '1.31', file)
    if (checked.error === undefined) t.equal(checked.status, 0, checked.stdout)
  }
  const kinds = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Resource)
  const alone = kinds(rendered())
  t.same(alone.map(({ kind }) => kind).sort(), ['ConfigMap', 'Service', 'Service', 'ServiceAccount', 'StatefulSet'])
  const three = kinds(rendered(...THREE))
  t.equal(three.find(({ kind }) => kind === 'PodDisruptionBudget')?.spec?.maxUnavailable, 1)
  const everything = kinds(rendered(...EVERYTHING))
  const services = everything.find(({ kind }) => kind === 'Deployment')
  t.match(services?.spec, { replicas: 3, selector: { matchLabels: { 'app.kubernetes.io/name': 'dealgate-services' } } })
  t.match(services?.spec?.template?.spec.containers[0], {
    args: ['services'],
    ports: [{ name: 'gateway', containerPort: 9100 }, {}, {}],
    envFrom: [{ secretRef: { name: 'dealgate-services' } }],
  })
  t.match(JSON.stringify(everything), '{"name":"DEALGATE_GATEWAY_URL","value":"http://x-dealgate-services:9100"}')
  t.match(everything.find(({ kind }) => kind === 'PersistentVolumeClaim')?.spec, { accessModes: ['ReadWriteMany'] })
  t.equal(everything.filter(({ kind }) => kind === 'PodDisruptionBudget').length, 2)
  const all = kinds(rendered(...ALL))
  t.same(all.map(({ kind }) => kind).sort(), [
    'ConfigMap',
    'Ingress',
    'Service',
    'Service',
    'ServiceAccount',
    'ServiceMonitor',
    'StatefulSet',
  ])
  t.match(all.find(({ kind }) => kind === 'StatefulSet')?.spec, {
    volumeClaimTemplates: undefined,
    template: {
      spec: {
        volumes: [{}, {}, { persistentVolumeClaim: { claimName: 'store' } }],
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }] },
        },
      },
    },
  })
  t.match(all.find(({ kind }) => kind === 'ServiceMonitor')?.spec, {
    selector: { matchLabels: { 'app.kubernetes.io/component': 'pods' } },
    endpoints: [{ port: 'metrics', path: '/-/metrics' }],
  })
  const pod = three.find(({ kind }) => kind === 'StatefulSet')?.spec?.template?.spec
  const ingress = all.find(({ kind }) => kind === 'Ingress')
  const service = (host: string, name: string) => ({
    host,
    http: { paths: [{ backend: { service: { port: { name } } } }] },
  })
  t.match(ingress?.spec, { rules: [service('s3.example.com', 's3'), service('console.example.com', 'console')] })
  const variables = all.find(({ kind }) => kind === 'StatefulSet')?.spec?.template?.spec.containers[0]?.env
  const variable = (name: string, value: string) => ({ name: `DEALGATE_CONSOLE_${name}`, value })
  t.match(
    (variables as { name: string }[]).filter(({ name }) => name.startsWith('DEALGATE_CONSOLE_')),
    [
      variable('PORT', '9001'),
      variable('URL', 'https://console.example.com'),
      variable('ENDPOINT', 'https://s3.example.com'),
    ],
  )
  t.match(alone.find(({ kind }) => kind === 'Service')?.spec, {
    ports: [{ name: 's3' }, { name: 'console', port: 9001 }],
  })
  const none = kinds(rendered('--set', 'console.port=0'))
  t.match(JSON.stringify(none), '{"name":"DEALGATE_CONSOLE_PORT","value":"off"}')
  t.notMatch(JSON.stringify(none), '"name":"console"')
  t.notMatch(JSON.stringify(none), '"name":"websites"')
  const websites = JSON.stringify(kinds(rendered('--set', 'config.websitePort=9080')))
  t.match(websites, '{"name":"websites","containerPort":9080}')
  t.match(websites, '{"name":"websites","port":9080,"targetPort":"websites"}')
  t.match(pod?.containers[0], {
    livenessProbe: { httpGet: { path: '/-/live' } },
    readinessProbe: { httpGet: { path: '/-/ready' } },
    securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
  })
  for (const [values, said] of [
    [['--set', 'replicas=2'], /needs config\.gatewayUrl/],
    [['--set', 'services.replicas=1'], /needs services\.secretName/],
    [[...EVERYTHING, '--set', 'config.gatewayUrl=http://g'], /leave that out/],
    [[...EVERYTHING, '--set', 'services.config.gatewayPort=1'], /services\.config\.gatewayPort is set by the chart/],
    [['--set', 'replicas=2,config.gatewayUrl=http://g'], /needs secretName/],
    [['--set', 'replicas=2,config.gatewayUrl=http://g,secretName=s'], /needs config\.staging/],
    [['--set', 'ingress.enabled=true'], /needs ingress\.hosts/],
    [['--set', 'serviceMonitor.enabled=true'], /needs metricsPort/],
    [[...THREE, '--set', 'persistence.existingClaim=x'], /needs replicas: 1/],
    [['--set', 'console.host=c.example'], /needs ingress\.enabled/],
    [['--set', 'config.port=1'], /config\.port is set by the chart/],
  ] as const)
    t.match(run('helm', 'template', 'x', CHART, ...values).stderr, said)
})
