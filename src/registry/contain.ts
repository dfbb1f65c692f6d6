import type { LentSink } from '../gateway/gateway.js'
import type { ByteSink, RequestBody } from '../request/body.js'
import type { S3Request } from '../request/s3-request.js'
import type { LateBody, LateDocument, RelayBody, Reply } from '../response/reply.js'
import { blame } from './blame.js'
import { checkHeaders, checkReply } from './check-reply.js'
import { containMembers } from './contain-members.js'
import { containStorageClass } from './contain-storage-class.js'
import type { Operation } from './operation.js'
import type { AnyOperation, Plugin } from './plugin.js'
import { Turn } from './turn.js'

export interface ContainOptions {
  /** How long a handler may have the word without answering, ms. */
  readonly deadlineMs: number
}

/**
 * The plugin with its handlers fenced in: one that throws, never ends or answers with what is no reply is an InternalError of that request, and the log names plugin
 * and operation. What a handler does after its deadline reaches nobody.
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
  // Requests reach an operation only if they are of its own kind, which the union of types cannot say.
  const inner = operation as Operation
  const run: Operation['run'] = async (request, context) => {
    const turn = new Turn(ms)
    const work = started(() => inner.run(guardRequest(request, turn), context))
    try {
      const reply = await turn.race(work)
      checkReply(reply)
      return guardReply(reply, ms)
    } catch (thrown) {
      work.then(discard).catch(() => {})
      throw blame(thrown, plugin, operation.name)
    } finally {
      turn.end()
    }
  }
  const call = operation.call && containMembers(plugin, operation.call, deadlineMs)
  return { ...operation, ...(call && { call }), run } as AnyOperation
}

/** A handler in plain JavaScript may throw before it returns a promise. */
async function started<T>(work: () => Promise<T>): Promise<T> {
  return work()
}

/** With a signal that fires at the deadline too, and a body during whose arrival the deadline does not count. */
function guardRequest(request: S3Request, turn: Turn): S3Request {
  let signal: AbortSignal | undefined
  return Object.defineProperties({} as S3Request, {
    ...Object.getOwnPropertyDescriptors(request),
    body: { value: guardBody(request.body, turn), enumerable: true },
    signal: {
      get: () => {
        signal ??= AbortSignal.any([request.signal, turn.signal])
        return signal
      },
      enumerable: true,
    },
  })
}

function guardBody(body: RequestBody, turn: Turn): RequestBody {
  /** Waiting for the client is bounded by `Limits.bodyIdleMs`. */
  async function arriving<T>(read: () => Promise<T>): Promise<T> {
    turn.signal.throwIfAborted()
    turn.away()
    try {
      return await turn.race(read())
    } finally {
      turn.back()
    }
  }
  /** While the plugin takes a piece in, it is its turn. */
  const guardSink =
    (sink: ByteSink): ByteSink =>
    (chunk) => {
      turn.signal.throwIfAborted()
      const taking = sink(chunk)
      if (!taking) return
      turn.back()
      return turn.race(taking).finally(() => turn.away())
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
    stream: (sink, options) => arriving(() => body.stream(guardSink(sink), options)),
    collect: (maxBytes, options) => arriving(() => body.collect(maxBytes, options)),
  }
}

/** A body that comes later must come, too. */
function guardReply(reply: Reply, ms: number): Reply {
  const { body } = reply
  if (typeof body !== 'object' || body instanceof Uint8Array) return reply
  return { ...reply, body: 'late' in body ? guardLate(body, ms) : guardRelay(body, ms) }
}

function guardLate(body: LateBody, ms: number): LateBody {
  const turn = new Turn(ms)
  const late = turn.race(body.late).then((made: unknown) => {
    const { document, headers = {} } = (Object(made) === made ? made : { document: made }) as Partial<LateDocument>
    if (typeof document !== 'string') throw new TypeError(`a late document that is a ${typeof document}, not text`)
    checkHeaders(headers, undefined)
    return { document, headers }
  })
  late.finally(() => turn.end()).catch(() => {})
  return { late }
}

function guardRelay({ download }: RelayBody, ms: number): RelayBody {
  return {
    download: {
      async lend(sink) {
        const turn = new Turn(ms)
        try {
          await turn.race(download.lend(guardLent(sink, turn)))
        } catch (thrown) {
          download.discard()
          throw thrown
        } finally {
          turn.end()
        }
      },
      discard: () => download.discard(),
    },
  }
}

/** While a piece is with the client, the client is waited for. */
function guardLent(sink: LentSink, turn: Turn): LentSink {
  return (chunk, done) => {
    if (turn.signal.aborted) return done(turn.signal.reason)
    turn.away()
    sink(chunk, (error) => {
      turn.back()
      done(error)
    })
  }
}

/** Lets go of what nobody will send. */
function discard({ body }: Reply): void {
  if (typeof body === 'object' && 'download' in body) body.download.discard()
  else if (typeof body === 'object' && 'late' in body) body.late.catch(() => {})
}
