import t from 'tap'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

// `dealgate serve --metrics-port`: the metrics on a port of their own, also those of several processes.

function ask(server: Dealgate, method: string, path: string) {
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  return signedRequest(server.endpoint, keys, { method, path, headers: { connection: 'close' } })
}

/** Value of the one series that begins like this. */
function seriesValue(text: string, series: string): number {
  const line = text.split('\n').find((line) => line.startsWith(series))
  return Number(line?.slice(line.lastIndexOf(' ') + 1))
}

t.test('the metrics have a port of their own, and leave that of the endpoint', async (t) => {
  const server = await startDealgate(t, { args: ['--metrics-port', '0', '--workers', '2'] })
  const read = async () => (await fetch(server.metrics)).text()
  t.equal((await ask(server, 'PUT', '/one')).status, 200)
  t.equal(seriesValue(await read(), 'dealgate_requests_total{operation="CreateBucket"'), 1)
  t.ok(seriesValue(await read(), 'process_cpu_seconds_total') > 0)
  t.not((await ask(server, 'GET', '/-/metrics')).status, 200)
  const other = new URL('/other', server.metrics)
  t.equal((await fetch(other)).status, 404)
  t.equal((await fetch(server.metrics, { method: 'POST' })).status, 405)
  t.match((await fetch(server.metrics, { method: 'HEAD' })).headers.get('content-type'), /^text\/plain/)

  const taken = new URL(server.metrics).port
  const { code, stderr } = await runCli(['serve', '--port', '0', '--gateway-port', '0', '--metrics-port', taken])
  t.equal(code, 1)
  t.match(stderr, /in use by another process\. Choose another port with --metrics-port/)
})

t.test('each worker answers with the sum of all, also of those that have died', async (t) => {
  const server = await startDealgate(t, { args: ['--workers', '2'] })
  const heads = async () =>
    seriesValue(
      String((await ask(server, 'GET', '/-/metrics')).body),
      'dealgate_requests_total{operation="HeadBucket",plugin="s3",status="200"',
    )
  t.equal((await ask(server, 'PUT', '/many')).status, 200)
  for (let n = 0; n < 12; n++) t.equal((await ask(server, 'HEAD', '/many')).status, 200)
  t.equal(await heads(), 12)
  const ready = () => server.log.split('\n').filter((line) => line.includes('a worker is ready'))
  t.equal(ready().length, 2)
  process.kill(JSON.parse(ready()[0] ?? '').pid, 'SIGKILL')
  await until('another worker has started', () => ready().length === 3)
  t.equal(await heads(), 12, 'no count is lost')
  for (let n = 0; n < 4; n++) t.equal((await ask(server, 'HEAD', '/many')).status, 200)
  t.equal(await heads(), 16)
})
