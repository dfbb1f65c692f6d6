import t from 'tap'
import { Metrics } from '../../../src/common/metrics.js'
import { render } from '../../../src/common/render-metrics.js'
import { RequestMetrics } from '../../../src/server/metrics/request-metrics.js'

t.test('codes of plugins become labels up to a bound', async (t) => {
  const metrics = new Metrics()
  const requests = new RequestMetrics(metrics, new Set(['Order']))
  const facts = { requestId: '1', operation: 'Order', plugin: 'shop', method: 'POST', ms: 1, remote: '', cut: false }
  const fail = (error: string) => requests.ended({ ...facts, status: 400, error, bytesIn: 0, bytesOut: 0 }, true)
  for (let n = 0; n < 500; n++) fail(`Code${n}`)
  fail('a text\nof a service')
  fail('NoSuchBucket')
  fail('Code7')
  const { body } = await render(await metrics.snapshot())
  const count = (code: string) =>
    new RegExp(`^dealgate_requests_total\\{.*,code="${code}"\\} (\\d+)$`, 'm').exec(body)?.[1]
  t.same(['Code7', 'Code99', 'Code100', 'NoSuchBucket', 'Other'].map(count), ['2', '1', undefined, '1', '401'])
  t.equal(body.match(/^dealgate_requests_total/gm)?.length, 102)
})
