import { readFileSync } from 'node:fs'
import t from 'tap'
import { processMetrics } from '../../../cli/process/process-metrics.js'
import { Metrics } from '../../../common/metrics.js'
import { render } from '../../../common/render-metrics.js'

t.test('the metrics have the versions that run', async (t) => {
  const metrics = new Metrics()
  t.teardown(processMetrics(metrics))
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const line = `dealgate_build_info{version="${version}",node="${process.versions.node}"} 1\n`
  t.ok(String((await render(await metrics.snapshot(), undefined)).body).includes(line))
})
