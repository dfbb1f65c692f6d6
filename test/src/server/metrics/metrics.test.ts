import t from 'tap'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'
import { bodyOf } from '../../../support/programs/sdk.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { send } from '../../../support/sign/send.js'

const keys = { accessKey: 'test-key', secretKey: 'test-secret', region: 'us-east-1' }

t.test('requests and the calls that they cause at the gateway are counted', async (t) => {
  const { s3, endpoint } = await startInProcess(t, 'full')
  const owner = { endpoint, ...keys }
  const scrape = async (headers: Record<string, string> = {}) =>
    send(owner, { method: 'GET', target: '/-/metrics', headers })
  t.equal((await send(owner, { method: 'PUT', target: '/counted' })).status, 200)
  await s3.putObject({ Bucket: 'counted', Key: 'secret-name', Body: 'x'.repeat(1000) })
  await bodyOf(s3, { Bucket: 'counted', Key: 'secret-name' })
  await t.rejects(s3.headObject({ Bucket: 'counted', Key: 'absent' }))
  for (const n of [1, 2, 3]) await fetch(`${endpoint}/counted?x-hostile-${n}=`, { method: `PUT` })

  const { status, headers, body: bytes } = await scrape()
  const body = String(bytes)
  t.equal(status, 200)
  t.match(headers['content-type'], /^text\/plain; version=0\.0\.4/)
  const lines = body.split('\n')
  const has = (line: string) => t.ok(lines.includes(line), line)
  has('dealgate_requests_total{operation="PutObject",plugin="s3",status="200",code="OK"} 1')
  has('dealgate_requests_total{operation="GetObject",plugin="s3",status="200",code="OK"} 1')
  has('dealgate_requests_total{operation="HeadObject",plugin="s3",status="404",code="NoSuchKey"} 1')
  has('dealgate_request_bytes_total{operation="PutObject",plugin="s3"} 1000')
  has('dealgate_response_bytes_total{operation="GetObject",plugin="s3"} 1000')
  has('dealgate_request_duration_seconds_count{operation="PutObject",plugin="s3"} 1')
  has('dealgate_request_duration_seconds_bucket{operation="PutObject",plugin="s3",le="300"} 1')
  has('dealgate_requests_in_flight 1')
  has('dealgate_gateway_calls_total{method="web.Login",outcome="ok"} 1')
  has('dealgate_gateway_calls_total{method="upload",outcome="ok"} 1')
  t.match(body, /dealgate_gateway_calls_total\{method="download",outcome="ok"\} \d/)
  t.match(body, /dealgate_gateway_call_duration_seconds_sum\{method="web\.MakeBucket"\} 0\.\d/)
  t.match(body, /^dealgate_cache_total\{cache="signing-keys",result="miss"\} 1$/m)
  t.match(body, /^dealgate_cache_total\{cache="signing-keys",result="hit"\} [1-9]/m)
  t.match(body, /^dealgate_cache_total\{cache="settings",result="hit"\} [1-9]/m)
  t.notMatch(body, /secret-name|counted"|hostile|test-key/, 'labels contain nothing of the client')

  const open = await scrape({ accept: 'application/openmetrics-text; version=1.0.0' })
  t.match(open.headers['content-type'], /^application\/openmetrics-text; version=1\.0\.0/)
  t.match(String(open.body), /^# TYPE dealgate_requests counter$/m)
  t.match(String(open.body), /^dealgate_requests_total\{operation="PutObject",plugin="s3",status="200",code="OK"\} 1$/m)
  t.match(String(open.body), /\n# EOF\n$/)
})

t.test('only callers with all rights of the account read the metrics', async (t) => {
  const other = { accessKey: 'other-account', secretKey: 'other-secret' }
  const rights = [{ bucket: '*', access: 'readwrite' as const }]
  const { endpoint } = await startInProcess(t, 'full', {
    identities: [
      { accessKeyId: 'test-key', secretAccessKey: 'test-key-secret' },
      { accessKeyId: 'limited', secretAccessKey: 'limited-secret', rights },
      { accessKeyId: 'monitor', secretAccessKey: 'monitor-secret', rights, actions: ['metrics:GetMetrics'] },
      { accessKeyId: 'tenant', secretAccessKey: 'tenant-secret', account: other },
    ],
  })
  for (const [accessKey, expected] of [
    ['test-key', 200],
    ['monitor', 200],
    ['limited', 403],
    ['tenant', 403],
  ] as const) {
    const caller = { ...keys, endpoint, accessKey, secretKey: `${accessKey}-secret` }
    t.equal((await send(caller, { method: 'GET', target: '/-/metrics' })).status, expected, accessKey)
  }
  t.equal((await fetch(`${endpoint}/-/metrics`)).status, 403)
})

t.test('a server whose metrics are apart does not serve them', async (t) => {
  const { endpoint, proxy } = await startInProcess(t, 'full', { metricsApart: true })
  t.not((await send({ endpoint, ...keys }, { method: 'GET', target: '/-/metrics' })).status, 200)
  t.notOk(proxy.operations.some(({ operation }) => operation.name === 'GetMetrics'))
})
t.test('what the server holds, its state store, and named buckets', async (t) => {
  const { s3, endpoint } = await startInProcess(t, 'full', { metricsBuckets: ['named', 'absent'], plugins: [gauged()] })
  const owner = { endpoint, ...keys }
  for (const bucket of ['named', 'unnamed'])
    t.equal((await send(owner, { method: 'PUT', target: `/${bucket}` })).status, 200)
  await s3.putObject({ Bucket: 'named', Key: 'a', Body: 'abc' })
  await s3.putObject({ Bucket: 'unnamed', Key: 'a', Body: 'abc' })
  await s3.getObject({ Bucket: 'named', Key: 'a' })
  const { UploadId } = await s3.createMultipartUpload({ Bucket: 'named', Key: 'b' })
  await s3.uploadPart({ Bucket: 'named', Key: 'b', UploadId, PartNumber: 1, Body: 'x'.repeat(700) })
  const quota = { method: 'POST', target: '/named?x-quota=', body: Buffer.from('{"Bytes":99}') }
  t.equal((await send(owner, quota)).status, 200)
  const text = String((await send(owner, { method: 'GET', target: '/-/metrics' })).body)
  for (const line of [
    'dealgate_bucket_stored_bytes{bucket="named"} 3',
    'dealgate_bucket_stored_objects{bucket="named"} 1',
    'dealgate_bucket_quota_bytes{bucket="named"} 99',
    'dealgate_bucket_requests_total{bucket="named",operation="PutObject",status="200"} 1',
    'dealgate_bucket_request_bytes_total{bucket="named"} 715',
    'dealgate_bodies_in_flight 0',
    'dealgate_staging_bytes 700',
    'dealgate_spool_bytes 0',
    'dealgate_gauged_things{state="Red"} 2',
  ])
    t.ok(text.split('\n').includes(line), line)
  t.notMatch(text, /unnamed|"absent"|broken|quota_objects\{/)
  t.match(text, /^dealgate_state_call_duration_seconds_count [1-9]/m)
  t.match(text, /^dealgate_gateway_connections\{use="shared",state="free"\} 0/m)
  t.match(text, /^dealgate_disk_free_bytes [1-9]/m)
  t.match(text, /^dealgate_listing_cache_total\{result="hit"\} 0$/m)
})

const gauged = definePlugin({
  name: 'gauged',
  create: () => ({
    operations: [],
    gauges: [
      { name: 'things', help: 'Things.', read: async () => [{ labels: { state: 'Red' }, value: 2 }] },
      { name: 'broken', help: 'Broken.', read: () => Promise.reject(new Error('no')) },
    ],
  }),
})
