import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { GatewayWatch } from '../../gateway/watch.js'
import { TRACER } from './request-spans.js'

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
