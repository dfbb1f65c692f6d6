import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parser } from '@prometheus-io/lezer-promql'
import t from 'tap'
import { parse } from 'yaml'
import { processMetrics } from '../../cli/process/process-metrics.js'
import { upkeepMetrics } from '../../cli/serve/upkeep.js'
import { Metrics } from '../../common/metrics.js'
import { render } from '../../common/render-metrics.js'
import deal from '../../plugins/deal/index.js'
import pay from '../../plugins/pay/index.js'
import task from '../../plugins/task/index.js'
import { StoreMetrics } from '../../services/store/store-metrics.js'
import { startInProcess } from '../support/server/in-process.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { CHECKS, withoutChecks } from './checks.js'

// The dashboard and the alert rules ask for metrics that the server has.

interface Query {
  readonly where: string
  readonly expr: string
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

const RULES = 'deploy/prometheus/alerts.yml'
const rules = parse(readFileSync(RULES, 'utf8')) as Rules
const alerts = rules.groups.flatMap((group) => group.rules)
const dashboard = JSON.parse(readFileSync('deploy/grafana/dealgate.json', 'utf8')) as Dashboard
const panels = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }): Query => ({ where: title, expr: expr.replaceAll('$__rate_interval', '5m') })),
)

interface Asked {
  readonly errors: number
  readonly metrics: string[]
  /** Labels that select or group. */
  readonly labels: string[]
}

function read(expr: string): Asked {
  const asked: Asked = { errors: 0, metrics: [], labels: [] }
  let errors = 0
  parser.parse(expr).iterate({
    enter(node) {
      const text = expr.slice(node.from, node.to)
      if (node.type.isError) errors++
      if (node.name === 'VectorSelector') asked.metrics.push(/^[a-zA-Z_:][\w:]*/.exec(text)?.[0] ?? text)
      if (node.name === 'LabelName') asked.labels.push(text)
    },
  })
  return { ...asked, errors }
}

/** The labels of each metric of a scrape. */
function scraped(text: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const [, type] = /^# TYPE (\S+) /.exec(line) ?? []
    if (type !== undefined) found.set(type, found.get(type) ?? new Set())
    const [, name = '', labels = ''] = /^([a-z]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === '') continue
    const known = found.get(name) ?? new Set()
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label)
    found.set(name, known)
  }
  return found
}

const UPKEEP: readonly (readonly [name: string, labels: readonly string[]])[] = [
  ['dealgate_last_backup_timestamp_seconds', []],
  ['dealgate_certificate_expiry_timestamp_seconds', ['option', 'number']],
  ['dealgate_notifications_oldest_age_seconds', ['webhook']],
]

const metrics = new Metrics()
upkeepMetrics(metrics, { lastBackup: () => undefined, certificates: () => [] })
t.teardown(processMetrics(metrics))
// As a server has them whose services are embedded.
new StoreMetrics(metrics)
const { endpoint } = await startInProcess(t, 'full', { metrics, plugins: [deal(), pay({}), task({})] })
const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }

t.test('each query of the dashboard and the alerts finds its metrics in a scrape', async (t) => {
  t.equal((await send(owner, { method: 'PUT', target: '/asked' })).status, 200)
  t.equal((await send(owner, { method: 'GET', target: '/asked?list-type=2' })).status, 200)
  const found = scraped((await render(await metrics.snapshot())).body)
  // Prometheus itself adds it.
  found.set('up', new Set(['job', 'instance']))
  // Nothing has happened yet that would have made these series.
  found.set('dealgate_jobs', new Set(['kind', 'status']))
  found.set('dealgate_jobs_oldest_age_seconds', new Set(['kind']))
  for (const name of ['dealgate_deal_deals', 'dealgate_task_tasks', 'dealgate_pay_uploads']) {
    t.ok(found.has(name), `${name} is there`)
    found.set(name, new Set(['state']))
  }
  // The server has no TLS, backup or webhook: test/cli/upkeep.test.ts has a server with all of them.
  for (const [name, labels] of UPKEEP) {
    t.ok(found.has(name), `${name} is there`)
    found.set(name, new Set(labels))
  }
  found.set('nodejs_gc_duration_seconds_sum', new Set(['kind']))
  const all = [...panels, ...alerts.map(({ alert, expr }) => ({ where: alert, expr }))]
  t.ok(all.length > 30, `${all.length} queries`)
  for (const { where, expr } of all) {
    const { errors, metrics: names, labels } = read(expr)
    t.equal(errors, 0, `${where} is PromQL`)
    t.ok(names.length > 0, `${where} asks for ${names}`)
    t.same(
      names.filter((name) => !found.has(name)),
      [],
      `${where}: the metrics exist`,
    )
    t.same(
      labels.filter((label) => !names.some((name) => found.get(name)?.has(label))),
      [],
      `${where}: the labels exist`,
    )
  }
})
// The engine of Prometheus runs the queries of the dashboard over scrapes of a server, and the alerts over bad values.

const skip = withoutChecks()
/** Seconds between two scrapes. */
const STEP = 60

interface Result {
  readonly error?: string
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: string }[]
}

/** Runs queries over scrapes that follow each other, at the time of the last one. */
function ask(scrapes: readonly string[], queries: readonly string[], rules = '') {
  const input = JSON.stringify({
    rules,
    queries,
    scrapes: scrapes.map((text, i) => ({ at: 1_800_000_000 + i * STEP, text })),
    at: 1_800_000_000 + (scrapes.length - 1) * STEP,
  })
  const { stdout, stderr, status } = spawnSync(CHECKS, ['promql'], { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as { readonly problems: readonly string[]; readonly results: readonly Result[] }
}

/** Metrics without a value on a server that has no jobs, deals, tasks, uploads or sign-ins. */
const EMPTY = /\b(?:dealgate_jobs\w*|dealgate_deal_deals|dealgate_task_tasks|dealgate_pay_uploads|CreateJwt)\b/

t.test('the dashboard, over scrapes of a server', { skip }, async (t) => {
  const scrape = async () => `${(await render(await metrics.snapshot())).body}up{job="dealgate"} 1\n`
  const work = async () => {
    await send(owner, { method: 'PUT', target: '/asked' })
    await send(owner, { method: 'PUT', target: '/asked/key', body: Buffer.from('body') })
    await send(owner, { method: 'GET', target: '/asked/key' })
    await send(owner, { method: 'GET', target: '/asked/none' })
    await send(owner, { method: 'GET', target: '/asked?list-type=2' })
    await send(owner, { method: 'GET', target: '/asked?torrent=' })
  }
  await work()
  // Nothing else makes sure that this process collects garbage before the first scrape.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await until('a collection is measured', async () => {
    collect()
    return (await scrape()).includes('nodejs_gc_duration_seconds_count')
  })
  const first = await scrape()
  const plain = (await render(await metrics.snapshot())).body
  const lint = spawnSync(CHECKS, ['promlint'], { input: plain, encoding: 'utf8' })
  t.same([lint.status, lint.stdout], [0, ''], 'promlint has no complaint')
  await work()
  const scrapes = [first, await scrape()]
  const { results } = ask(
    scrapes,
    panels.map(({ expr }) => expr),
  )
  t.equal(results.length, panels.length)
  for (const [i, { where: title, expr }] of panels.entries()) {
    const { error, samples } = results[i] as Result
    t.equal(error, undefined, `${title}: ${expr}`)
    if (!EMPTY.test(expr)) t.ok(samples.length > 0, `${title} has values`)
  }
  const byTitle = (title: string) => results[panels.findIndex(({ where }) => where === title)]?.samples
  const puts = byTitle('Requests per second')?.find(({ labels }) => labels.operation === 'PutObject')
  t.ok(Number(puts?.value) > 0)

  const healthy = ask(
    scrapes.map(calm),
    alerts.map(({ expr }) => expr),
  ).results
  for (const [i, { alert }] of alerts.entries()) t.same(healthy[i], { samples: [] }, `${alert} is silent`)
})

/** A scrape with what depends on this machine replaced: delays of the event loop, durations, and free space. */
function calm(scrape: string): string {
  return scrape
    .replaceAll(/^(nodejs_eventloop_lag\w*(?:\{.*\})?) .*$/gm, '$1 0.01')
    .replaceAll(/^(dealgate_disk_free_bytes(?:\{.*\})?) .*$/gm, '$1 1e12')
    .replaceAll(/^dealgate_\w+_duration_seconds_bucket.*\n/gm, '')
}

/** Two scrapes for which an alert speaks: `before`, then `after`. */
const BAD: Readonly<Record<string, readonly [before: string, after: string]>> = {
  DealgateDown: ['', 'up{job="dealgate",instance="a"} 0'],
  DealgateErrors: counted('dealgate_requests_total', 'status="500",code="InternalError"', 'status="200",code="OK"'),
  DealgateSlow: slow('dealgate_request_duration_seconds', 'operation="HeadObject",'),
  DealgateGatewayFails: counted('dealgate_gateway_calls_total', 'outcome="failed"', 'outcome="ok"'),
  DealgateLogInRefused: counted(
    'dealgate_gateway_calls_total',
    'method="web.Login",outcome="refused"',
    'method="x",outcome="ok"',
  ),
  DealgateGatewayQueue: ['', 'dealgate_gateway_connections{use="shared",state="waiting"} 51'],
  DealgateStateSlow: slow('dealgate_state_call_duration_seconds'),
  DealgateJobStuck: ['', 'dealgate_jobs_oldest_age_seconds{kind="a"} 300000'],
  DealgateJobsUnknown: ['', 'dealgate_jobs{kind="a",status="Unknown"} 1'],
  DealgateLockNotRenewed: ['', 'dealgate_deal_lock_renewals{state="Failed"} 1'],
  DealgateSpendNearCap: ['', 'dealgate_deal_spent_today_fil 9\ndealgate_deal_spend_cap_fil 10'],
  DealgateDiskFull: ['', 'dealgate_disk_free_bytes 1e9'],
  DealgateBodyDamaged: [
    'dealgate_damaged_bodies_total{damage="lost"} 0',
    'dealgate_damaged_bodies_total{damage="lost"} 1',
  ],
  DealgateBackupOld: ['', 'dealgate_last_backup_timestamp_seconds 1.7998e9'],
  DealgateCertificateExpires: [
    '',
    'dealgate_certificate_expiry_timestamp_seconds{option="tls-cert",number="1"} 1.801e9',
  ],
  DealgateNotificationsLate: ['', 'dealgate_notifications_oldest_age_seconds{webhook="a"} 3700'],
  DealgateInventoryFailed: ['', 'dealgate_inventory_configurations{outcome="Failed"} 1'],
  DealgateEventLoopBlocked: ['', 'nodejs_eventloop_lag_seconds{percentile="99"} 0.6'],
}

/** A tenth of the counted ones is bad. */
function counted(name: string, bad: string, good: string): readonly [string, string] {
  const at = (n: number) => `${name}{${bad}} ${n}\n${name}{${good}} ${n * 9}`
  return [at(10), at(20)]
}

/** All take between 2.5 and 5 seconds. */
function slow(name: string, labels = ''): readonly [string, string] {
  const at = (n: number) =>
    [
      ['2.5', 0],
      ['5', n],
      ['+Inf', n],
    ]
      .map(([le, count]) => `${name}_bucket{${labels}le="${le}"} ${count}`)
      .join('\n')
  return [at(100), at(200)]
}

t.test('each alert speaks when it should', { skip }, async (t) => {
  t.same(ask([], [], readFileSync(RULES, 'utf8')).problems, [], 'Prometheus accepts the file')
  t.not(ask([], [], readFileSync(RULES, 'utf8').replace('for: 2m', 'for: soon')).problems.length, 0)
  t.same(Object.keys(BAD).sort(), alerts.map(({ alert }) => alert).sort(), 'a case for each')
  for (const { alert, expr } of alerts) {
    const scrapes = BAD[alert]?.map((text) => `${text}\n`) ?? []
    const { results } = ask(scrapes, [expr])
    t.match(results, [{ error: undefined, samples: [{}] }], alert)
  }
})
