/** Loaded with `--import`: an SDK of OpenTelemetry that makes a span of each request, and drops it. */
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(
  new BasicTracerProvider({
    spanProcessors: [
      new BatchSpanProcessor({
        export: (_, done) => done({ code: 0 }),
        shutdown: () => Promise.resolve(),
      }),
    ],
  }),
)
