import type { LentSink } from '../../gateway/gateway.js'
import type { ByteSink, RequestBody } from '../../request/body/body.js'
import type { S3Request } from '../../request/s3-request.js'
import type { LateBody, LateDocument, RelayBody, Reply } from '../../response/reply.js'
import type { Operation } from '../forms/operation.js'
import type { AnyOperation, Plugin } from '../forms/plugin.js'
import { blame } from './blame.js'
import { checkHeaders, checkReply } from './check-reply.js'
import { containMembers } from './contain-members.js'
import { containStorageClass } from './contain-storage-class.js'
import { PausableDeadline } from './pausable-deadline.js'

export interface ContainOptions {
  /** How long a handler may run without answering, ms. Waiting for the client does not count. */
  readonly deadlineMs: number
}

/**
 * Contains the handlers of a plugin: one that throws, never ends or returns an invalid reply causes an InternalError
 * for that request, and the log names plugin and operation. A result after the deadline is discarded.
 */
export function containPlugin(plugin: Plugin, { deadlineMs }: ContainOptions): Plugin {
  return {
    ...plugin,
    operations: plugin.operations.map((operation) => containOperation(plugin.name, operation, deadlineMs)),
    storageClasses: plugin.storageClasses?.map((offered) => containStorageClass(plugin.name, offered, deadlineMs)),
  }
}

function containOperation(plugin: string, operation: AnyOperation, deadlineMs: number): AnyOperation {
  const ms = operation.deadlineMs ?? deadlineMs
  // An operation receives only requests of its own kind; the union of types cannot express that.
  const inner = operation as Operation
  const run: Operation['run'] = async (request, context) => {
    const deadline = new PausableDeadline(ms)
    const work = started(() => inner.run(guardRequest(request, deadline), context))
    try {
      const reply = await deadline.race(work)
      checkReply(reply)
      return guardReply(reply, ms)
    } catch (thrown) {
      work.then(discard).catch(() => {})
      throw blame(thrown, plugin, operation.name)
    } finally {
      deadline.clear()
    }
  }
  const call = operation.call && containMembers(plugin, operation.call, deadlineMs)
  return { ...operation, ...(call && { call }), run } as AnyOperation
}

/** A handler in plain JavaScript may throw before it returns a promise. */
async function started<T>(work: () => Promise<T>): Promise<T> {
  return work()
}

/**
 * Returns the request with a signal that also fires at the deadline, and with a body whose arrival pauses the deadline.
 */
function guardRequest(request: S3Request, deadline: PausableDeadline): S3Request {
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
  /** Pauses the deadline while the body arrives. `Limits.bodyIdleMs` bounds that time. */
  async function arriving<T>(read: () => Promise<T>): Promise<T> {
    deadline.signal.throwIfAborted()
    deadline.pause()
    try {
      return await deadline.race(read())
    } finally {
      deadline.resume()
    }
  }
  /** Resumes the deadline while the plugin consumes a chunk. */
  const guardSink =
    (sink: ByteSink): ByteSink =>
    (chunk) => {
      deadline.signal.throwIfAborted()
      const taking = sink(chunk)
      if (!taking) return
      deadline.resume()
      return deadline.race(taking).finally(() => deadline.pause())
    }
  return {
    get length() {
      return body.length
    },
    get declaredChecksum() {
      return body.declaredChecksum
    },
    get empty() {
      return body.empty
    },
    get received() {
      return body.received
    },
    stream: (sink, options) => arriving(() => body.stream(guardSink(sink), options)),
    collect: (maxBytes, options) => arriving(() => body.collect(maxBytes, options)),
  }
}

/** Applies the deadline to a body that comes after the reply, too. */
function guardReply(reply: Reply, ms: number): Reply {
  const { body } = reply
  if (typeof body !== 'object' || body instanceof Uint8Array) return reply
  return { ...reply, body: 'late' in body ? guardLate(body, ms) : guardRelay(body, ms) }
}

function guardLate(body: LateBody, ms: number): LateBody {
  const deadline = new PausableDeadline(ms)
  const late = deadline.race(body.late).then((made: unknown) => {
    const { document, headers = {} } = (Object(made) === made ? made : { document: made }) as Partial<LateDocument>
    if (typeof document !== 'string')
      throw new TypeError(`it sent a late document that is a ${typeof document}, not a string`)
    checkHeaders(headers, undefined)
    return { document, headers }
  })
  late.finally(() => deadline.clear()).catch(() => {})
  return { late }
}

function guardRelay({ download }: RelayBody, ms: number): RelayBody {
  return {
    download: {
      async lend(sink) {
        const deadline = new PausableDeadline(ms)
        try {
          await deadline.race(download.lend(guardLent(sink, deadline)))
        } catch (thrown) {
          download.discard()
          throw thrown
        } finally {
          deadline.clear()
        }
      },
      discard: () => download.discard(),
    },
  }
}

/** Pauses the deadline while a chunk is written to the client. */
function guardLent(sink: LentSink, deadline: PausableDeadline): LentSink {
  return (chunk, done) => {
    if (deadline.signal.aborted) return done(deadline.signal.reason)
    deadline.pause()
    sink(chunk, (error) => {
      deadline.resume()
      done(error)
    })
  }
}

/** Releases the body of a reply that is not sent. */
function discard({ body }: Reply): void {
  if (typeof body === 'object' && 'download' in body) body.download.discard()
  else if (typeof body === 'object' && 'late' in body) body.late.catch(() => {})
}
