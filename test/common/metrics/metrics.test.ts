import t from 'tap'
import { Metrics } from '../../../src/common/metrics.js'
import { aggregate, render } from '../../../src/common/render-metrics.js'

t.test('a histogram counts each value in all buckets that it fits in', async (t) => {
  const metrics = new Metrics()
  const histogram = metrics.histogram({ name: 'wait_seconds', help: 'Wait.', labels: ['kind'], bounds: [0.1, 1] })
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.of('a').observe(value)
  const { body } = await render(await metrics.snapshot())
  t.equal(
    body,
    `# HELP wait_seconds Wait.
# TYPE wait_seconds histogram
wait_seconds_bucket{kind="a",le="0.1"} 2
wait_seconds_bucket{kind="a",le="1"} 3
wait_seconds_bucket{kind="a",le="+Inf"} 4
wait_seconds_sum{kind="a"} 7.65
wait_seconds_count{kind="a"} 4
`,
  )
})

t.test('labels are escaped, and their number is bounded', async (t) => {
  const metrics = new Metrics()
  const counter = metrics.counter({ name: 'things_total', help: 'Things.', labels: ['name'] })
  for (let n = 0; n < 5000; n++) counter.of(`"${n}\n`).value++
  const { body } = await render(await metrics.snapshot())
  t.equal(body.trimEnd().split('\n').length, 3003)
  t.match(body, /^things_total\{name="\\"7\\n"\} 1$/m)
  t.match(body, /^things_total\{name="other"\} 2000$/m)
})

t.test('a metric that cannot be read does not hide the others', async (t) => {
  const metrics = new Metrics()
  metrics.gauge({ name: 'broken', help: 'Broken.', read: () => Promise.reject(new Error('no')) })
  metrics.counter({ name: 'good_total', help: 'Good.' })
  const { body } = await render(await metrics.snapshot())
  t.match(body, /^good_total 0$/m)
  t.notMatch(body, /broken/)
  t.throws(() => metrics.counter({ name: 'good_total', help: 'Again.' }), /exists already/)
})

t.test('the metrics of several processes become one, and stay right in both formats', async (t) => {
  const snapshotOf = (count: number) => {
    const metrics = new Metrics()
    metrics.counter({ name: 'done_total', help: 'Done.', labels: ['kind'] }).of('a').value = count
    metrics.gauge({ name: 'held', help: 'Held.', aggregator: 'max', read: () => count })
    metrics
      .histogram({ name: 'size', help: 'Size.', bounds: [10] })
      .of()
      .observe(count)
    return metrics.snapshot()
  }
  const families = await aggregate([await snapshotOf(3), await snapshotOf(40)])
  const text = (await render(families)).body
  for (const line of ['done_total{kind="a"} 43', 'held 40', 'size_bucket{le="10"} 1', 'size_sum 43', 'size_count 2'])
    t.ok(text.split('\n').includes(line), line)
  const open = (await render(families, 'application/openmetrics-text;version=1.0.0')).body
  t.match(open, /^# TYPE done counter\ndone_total\{kind="a"\} 43$/m)
})
