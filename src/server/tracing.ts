import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Context as TraceContext,
  trace,
} from '@opentelemetry/api'
import type { GatewayWatch } from '../gateway/gateway-call.js'
import type { AccessEntry } from './access-log.js'

const TRACER = 'dealgate'

/**
 * A span for each request, by OpenTelemetry's API alone: without an SDK in the process nothing happens. Names and
 * attributes are those of https://opentelemetry.io/docs/specs/semconv/http/http-spans/. Queries are left out, because
 * they contain signatures and tokens.
 */
export class RequestSpans {
  readonly #tracer = trace.getTracer(TRACER)
  readonly #spans = new WeakMap<ServerResponse, Span>()

  /** Runs `serve` within the span of the request, which continues the trace of the client. */
  run(incoming: IncomingMessage, outgoing: ServerResponse, serve: () => void): void {
    const parent = propagation.extract(ROOT_CONTEXT, incoming.headers)
    const span = this.#tracer.startSpan(incoming.method ?? 'HTTP', { kind: SpanKind.SERVER }, parent)
    if (!span.isRecording()) {
      if (parent === ROOT_CONTEXT) serve()
      else context.with(within(parent, span), serve)
      return
    }
    span.setAttributes(attributesOf(incoming))
    this.#spans.set(outgoing, span)
    context.with(within(parent, span), serve)
  }

  ended(entry: AccessEntry, outgoing: ServerResponse): void {
    const span = this.#spans.get(outgoing)
    if (!span) return
    this.#spans.delete(outgoing)
    const route = routeOf(entry)
    if (route !== undefined) span.updateName(`${entry.method} ${route}`)
    span.setAttributes({
      ...(route !== undefined && { 'http.route': route }),
      'http.response.status_code': entry.status,
      'http.request.body.size': entry.bytesIn,
      'http.response.body.size': entry.bytesOut,
      'client.address': entry.remote,
      'aws.request_id': entry.requestId,
      'rpc.method': entry.operation,
      'dealgate.plugin': entry.plugin ?? 's3',
      ...(entry.bucket !== undefined && { 'aws.s3.bucket': entry.bucket }),
      ...(entry.key !== undefined && { 'aws.s3.key': entry.key }),
      ...(entry.error !== undefined && { 'error.type': entry.error }),
      ...(entry.error === undefined && entry.cut && { 'error.type': 'Cut' }),
    })
    if (entry.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }
}

function within(parent: TraceContext, span: Span): TraceContext {
  return trace.setSpan(parent, span)
}

function attributesOf({ method, url = '', headers, httpVersion, socket }: IncomingMessage) {
  const [path = ''] = url.split('?', 1)
  const [address = '', port] = (headers.host ?? '').split(/:(?=\d+$)/)
  return {
    'http.request.method': method ?? '',
    'url.path': path,
    'url.scheme': 'encrypted' in socket ? 'https' : 'http',
    'network.protocol.version': httpVersion,
    'server.address': address,
    ...(port !== undefined && { 'server.port': Number(port) }),
    ...(headers['user-agent'] !== undefined && { 'user_agent.original': headers['user-agent'] }),
  }
}

/** The form of the path, of which there are few. */
function routeOf({ bucket, key }: AccessEntry): string | undefined {
  if (bucket === undefined) return undefined
  return key === undefined ? '/{bucket}' : '/{bucket}/{key}'
}

/**
 * Adds a span for each request to the gateway, below that of the client's request, and sends the context of the trace
 * along (https://www.w3.org/TR/trace-context/). Addresses of the gateway contain tokens, and are left out.
 * @param url address of the gateway
 */
export function gatewaySpans(inner: GatewayWatch, url: string): GatewayWatch {
  const tracer = trace.getTracer(TRACER)
  const { hostname, port, protocol } = new URL(url)
  const server = {
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  }
  return {
    begin(name, method) {
      const call = inner.begin(name, method)
      const span = tracer.startSpan(`${method} ${name}`, { kind: SpanKind.CLIENT })
      if (!trace.isSpanContextValid(span.spanContext())) return call
      const headers: Record<string, string> = { ...call.headers }
      propagation.inject(trace.setSpan(context.active(), span), headers)
      span.setAttributes({ 'http.request.method': method, 'rpc.method': name, ...server })
      return {
        headers,
        end(outcome, status) {
          call.end(outcome, status)
          if (!span.isRecording()) return
          if (status !== undefined) span.setAttribute('http.response.status_code', status)
          if (outcome !== 'ok') span.setAttribute('error.type', outcome)
          if (outcome === 'failed') span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
  }
}
