import { readFileSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import t from 'tap'
import { parse } from 'yaml'
import deal from '../../plugins/deal/index.js'
import pay from '../../plugins/pay/index.js'
import task from '../../plugins/task/index.js'
import { Metrics } from '../../src/common/metrics.js'
import { render } from '../../src/common/render-metrics.js'
import { processMetrics } from '../../src/server/metrics/process-metrics.js'
import { startInProcess } from '../support/server/in-process.js'
import { send } from '../support/sign/send.js'

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

function queries(): Query[] {
  const dashboard = JSON.parse(readFileSync('deploy/grafana/dealgate.json', 'utf8')) as Dashboard
  const rules = parse(readFileSync('deploy/prometheus/alerts.yml', 'utf8')) as Rules
  return [
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: title, expr }))),
    ...rules.groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ where: alert, expr }))),
  ].map(({ where, expr }) => ({ where, expr: expr.replaceAll('$__rate_interval', '5m') }))
}

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

t.test('each query of the dashboard and the alerts finds its metrics in a scrape', async (t) => {
  const metrics = new Metrics()
  t.teardown(processMetrics(metrics))
  const { endpoint } = await startInProcess(t, 'full', { metrics, plugins: [deal(), pay({}), task({})] })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
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
  found.set('nodejs_gc_duration_seconds_sum', new Set(['kind']))
  const all = queries()
  t.ok(all.length > 30, `${all.length} queries`)
  for (const { where, expr } of all) {
    const { errors, metrics, labels } = read(expr)
    t.equal(errors, 0, `${where} is PromQL`)
    t.ok(metrics.length > 0, `${where} asks for ${metrics}`)
    t.same(
      metrics.filter((name) => !found.has(name)),
      [],
      `${where}: the metrics exist`,
    )
    t.same(
      labels.filter((label) => !metrics.some((name) => found.get(name)?.has(label))),
      [],
      `${where}: the labels exist`,
    )
  }
})

t.test('a wrong query is noticed', (t) => {
  t.not(read('sum(rate(x[5m])').errors, 0)
  t.same(read('sum by (le) (rate(things_total{kind="a"}[5m]))'), {
    errors: 0,
    metrics: ['things_total'],
    labels: ['le', 'kind'],
  })
  t.end()
})
