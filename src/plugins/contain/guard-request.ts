import type { ByteSink, RequestBody, S3Request } from '../../api/request.js'
import type { PausableDeadline } from '../deadlines.js'

/**
 * Returns the request with a signal that also fires at the deadline, and with a body whose arrival pauses the deadline.
 */
export function guardRequest(request: S3Request, deadline: PausableDeadline): S3Request {
  let signal: AbortSignal | undefined
  return Object.defineProperties({} as S3Request, {
    ...Object.getOwnPropertyDescriptors(request),
    body: { value: guardBody(request.body, deadline), enumerable: true },
    signal: {
      get: () => {
        signal ??= AbortSignal.any([request.signal, deadline.signal])
        return signal
      },
      enumerable: true,
    },
  })
}

function guardBody(body: RequestBody, deadline: PausableDeadline): RequestBody {
  return {
    get length() {
      return body.length
    },
    get declaredChecksum() {
      return body.declaredChecksum
    },
    get declaredMd5() {
      return body.declaredMd5
    },
    get empty() {
      return body.empty
    },
    get received() {
      return body.received
    },
    stream: (sink, options) => arriving(deadline, () => body.stream(guardSink(sink, deadline), options)),
    collect: (maxBytes, options) => arriving(deadline, () => body.collect(maxBytes, options)),
  }
}

/** Pauses the deadline while the body arrives. `Limits.bodyIdleMs` bounds that time. */
async function arriving<T>(deadline: PausableDeadline, read: () => Promise<T>): Promise<T> {
  deadline.signal.throwIfAborted()
  deadline.pause()
  try {
    return await deadline.race(read())
  } finally {
    deadline.resume()
  }
}

/** Resumes the deadline while the plugin consumes a chunk. */
function guardSink(sink: ByteSink, deadline: PausableDeadline): ByteSink {
  return (chunk) => {
    deadline.signal.throwIfAborted()
    const taking = sink(chunk)
    if (!taking) return
    deadline.resume()
    return deadline.race(taking).finally(() => deadline.pause())
  }
}
