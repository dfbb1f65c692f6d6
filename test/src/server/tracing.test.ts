import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import t, { type Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import { createLogger } from '../../../common/log.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { startGateway } from '../../support/gateway/embedded.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

async function start(t: Test) {
  const between = await Between.start(t, await startGateway(t, 'full'))
  const proxy = await createProxy({
    gateway: { url: between.url, account: between },
    identities: [{ accessKeyId: 'test-key', secretAccessKey: 'test-secret' }],
    data: temporaryFolder(t),
    log: createLogger({ level: 'silent' }),
  })
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await serving.close(0)
    await proxy.close()
  })
  const owner = { endpoint: serving.url, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  return { between, owner }
}

t.test('without an SDK, nothing is sent along', async (t) => {
  const { between, owner } = await start(t)
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01` }
  t.equal((await send(owner, { method: 'PUT', target: '/untraced', headers })).status, 200)
  t.ok(between.requests.length > 0)
  t.notOk(between.requests.some((request) => 'traceparent' in request.headers))
})

t.test('each request is a span, and each call to the gateway a child of it', async (t) => {
  const exporter = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  t.teardown(() => {
    trace.disable()
    context.disable()
    propagation.disable()
  })
  const { between, owner } = await start(t)
  t.equal((await send(owner, { method: 'PUT', target: '/traced' })).status, 200)
  await until('the first request has ended', () =>
    exporter.getFinishedSpans().some(({ name }) => name === 'PUT /{bucket}'),
  )
  exporter.reset()
  between.requests.length = 0
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01` }
  const body = Buffer.from('abc')
  const put = await send(owner, { method: 'PUT', target: '/traced/key?x-job=secret-mark', headers, body })
  t.equal(put.status, 200)
  await until('the request has ended', () => exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.SERVER))

  const spans = exporter.getFinishedSpans()
  const [server, ...others] = spans.filter(({ kind }) => kind === SpanKind.SERVER)
  t.same(others, [])
  t.equal(server?.name, 'PUT /{bucket}/{key}')
  t.equal(server?.spanContext().traceId, TRACE, 'it continues the trace of the client')
  t.equal(server?.parentSpanContext?.spanId, PARENT)
  t.match(server?.attributes, {
    'http.request.method': 'PUT',
    'http.route': '/{bucket}/{key}',
    'http.request.body.size': 3,
    'http.response.status_code': 200,
    'url.path': '/traced/key',
    'url.scheme': 'http',
    'server.address': '127.0.0.1',
    'rpc.method': 'PutObject',
    'aws.s3.bucket': 'traced',
    'aws.s3.key': 'key',
    'aws.request_id': String(put.headers['x-amz-request-id']),
  })
  const upload = spans.find(({ name }) => name === 'PUT upload')
  t.equal(upload?.kind, SpanKind.CLIENT)
  t.equal(upload?.parentSpanContext?.spanId, server?.spanContext().spanId)
  t.match(upload?.attributes, { 'http.request.method': 'PUT', 'http.response.status_code': 200 })
  const sent = between.requests.find(({ method }) => method === 'PUT')
  t.equal(sent?.headers.traceparent, `00-${TRACE}-${upload?.spanContext().spanId}-01`, 'the gateway gets the context')
  t.notMatch(JSON.stringify(spans.map(({ name, attributes }) => [name, attributes])), /secret|signature|test-key/i)

  exporter.reset()
  between.fate = () => 'cut-before'
  t.equal((await send(owner, { method: 'GET', target: '/traced/key' })).status, 503)
  await until('the request has ended', () => exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.SERVER))
  const failed = exporter.getFinishedSpans().find(({ kind }) => kind === SpanKind.SERVER)
  t.equal(failed?.status.code, SpanStatusCode.ERROR)
  t.match(failed?.attributes, { 'error.type': 'ServiceUnavailable', 'http.response.status_code': 503 })
})
