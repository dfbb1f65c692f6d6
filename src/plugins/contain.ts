import { validateHeaderName, validateHeaderValue } from 'node:http'
import { withinDeadline } from '../../common/time.js'
import type { AdmittedWrite, RestoreOutcome } from '../api/archive.js'
import type { Context, StorageClass } from '../api/context.js'
import type { InventoryFields, InventoryValues } from '../api/inventory.js'
import type { Limits } from '../api/limits.js'
import type { AnyOperation, CallFacts, Operation } from '../api/operation.js'
import type { Plugin } from '../api/plugin.js'
import type {
  ByteSink,
  LateBody,
  LateDocument,
  LentSink,
  RelayBody,
  Reply,
  ReplyHeaders,
  RequestBody,
  S3Request,
} from '../api/request.js'
import { PausableDeadline, toPluginError } from './deadlines.js'

/** How long a handler may run without answering, and a hook. They are read at each call: a reload can change them. */
type Deadlines = Pick<Limits, 'pluginDeadlineMs' | 'hookDeadlineMs'>

/**
 * Contains the handlers of a plugin: one that throws, never ends or returns an invalid reply causes an InternalError
 * for that request, and the log names plugin and operation. A result after the deadline is discarded.
 */
export function containPlugin(plugin: Plugin, deadlines: Deadlines): Plugin {
  return {
    ...plugin,
    operations: plugin.operations.map((operation) => containOperation(plugin.name, operation, deadlines)),
    storageClasses: plugin.storageClasses?.map((offered) => containStorageClass(plugin.name, offered, deadlines)),
    ...(plugin.demandsEncryption && { demandsEncryption: (bucket) => containDemand(plugin, bucket, deadlines) }),
    ...(plugin.inventory && { inventory: containInventory(plugin.name, plugin.inventory, deadlines) }),
  }
}

/** Without its answer, nothing is stored: the bucket may have to have encrypted objects alone. */
async function containDemand(plugin: Plugin, bucket: string, deadlines: Deadlines): Promise<boolean> {
  try {
    const answer: unknown = await withinDeadline(
      started(async () => plugin.demandsEncryption?.(bucket)),
      deadlines.hookDeadlineMs,
    )
    if (typeof answer !== 'boolean') throw new TypeError(`it answered with ${kindOf(answer)}, which is no boolean`)
    return answer
  } catch (thrown) {
    throw toPluginError(thrown, plugin.name, 'demandsEncryption')
  }
}

/** A page of an inventory without the values of a plugin would say that there are none. */
function containInventory(plugin: string, inventory: InventoryFields, deadlines: Deadlines): InventoryFields {
  return {
    fields: inventory.fields,
    ...(inventory.action !== undefined && { action: inventory.action }),
    async read(objects) {
      try {
        const values: unknown = await withinDeadline(
          started(() => inventory.read(objects)),
          deadlines.pluginDeadlineMs,
        )
        if (!Array.isArray(values) || values.length !== objects.length || !values.every((one) => isObject(one)))
          throw new TypeError('it did not return the values of each object')
        return values as readonly InventoryValues[]
      } catch (thrown) {
        throw toPluginError(thrown, plugin, 'read() of its fields of inventories')
      }
    },
  }
}

function containOperation(plugin: string, operation: AnyOperation, deadlines: Deadlines): AnyOperation {
  // An operation receives only requests of its own kind; the union of types cannot express that.
  const inner = operation as Operation
  const run: Operation['run'] = async (request, context) => {
    const ms = operation.deadlineMs ?? deadlines.pluginDeadlineMs
    const deadline = new PausableDeadline(ms)
    const work = started(() => inner.run(guardRequest(request, deadline), context))
    try {
      const reply = await deadline.race(work)
      checkReply(reply)
      return guardReply(reply, ms)
    } catch (thrown) {
      work.then(discard).catch(() => {})
      throw toPluginError(thrown, plugin, operation.name)
    } finally {
      deadline.clear()
    }
  }
  const call = operation.call && containMembers(plugin, operation.call, deadlines)
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
    get declaredMd5() {
      return body.declaredMd5
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

type Member = Readonly<Record<string, string>>

/**
 * Contains `members` of a call, which listings of the virtual bucket use: each name must be text and come within the
 * deadline.
 */
function containMembers(plugin: string, call: CallFacts, deadlines: Deadlines): CallFacts {
  if (!call.members) return call
  return { ...call, members: (context) => guarded(plugin, call, context, deadlines.pluginDeadlineMs) }
}

async function* guarded(plugin: string, call: CallFacts, context: Context, ms: number): AsyncGenerator<Member> {
  let names: AsyncIterator<Member> | undefined
  try {
    names = call.members?.(context)[Symbol.asyncIterator]()
    for (;;) {
      const next = await withinDeadline(names?.next() as Promise<IteratorResult<Member>>, ms)
      if (next.done) break
      if (Object.values(next.value).some((name) => typeof name !== 'string'))
        throw new TypeError('it yielded a name that is not a string')
      yield next.value
    }
  } catch (thrown) {
    throw toPluginError(thrown, plugin, `members() of ${call.name}`)
  } finally {
    // Do not wait for an iterator that hangs.
    names?.return?.().catch(() => {})
  }
}

/** Headers about the connection, which only the server sets. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Throws TypeError, naming the problem, for a reply that cannot be sent. Plugins are not always compiled against our
 * types.
 */
function checkReply(reply: unknown): asserts reply is Reply {
  if (typeof reply !== 'object' || reply === null)
    throw new TypeError(`it answered with ${kindOf(reply)}, which is not a Reply`)
  const { status, headers, body } = reply as Record<keyof Reply, unknown>
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599)
    throw new TypeError(`it answered with the status ${String(status)}, which is not between 200 and 599`)
  const length = checkBody(body)
  checkHeaders(headers, bodiless(Number(status)) ? undefined : length)
}

function bodiless(status: number): boolean {
  return status === 204 || status === 304
}

function checkBody(body: unknown): number | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body instanceof Uint8Array) return body.length
  if (isObject(body) && isObject(body.download)) {
    const { lend, discard } = body.download as Partial<RelayBody['download']>
    if (typeof lend === 'function' && typeof discard === 'function') return undefined
  }
  if (isObject(body) && isObject(body.late) && typeof body.late.then === 'function') return undefined
  throw new TypeError(`it answered with a body that is ${kindOf(body)}, not text, bytes, a download or a late document`)
}

/** @param length of the body, bytes, if known */
function checkHeaders(headers: unknown, length: number | undefined): asserts headers is ReplyHeaders {
  if (!isObject(headers)) throw new TypeError(`it answered with headers that are ${kindOf(headers)}`)
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    validateHeaderName(name)
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new TypeError(`it answered with the header ${name}, whose value is ${kindOf(value)}`)
    validateHeaderValue(name, String(value))
    const lower = name.toLowerCase()
    if (HOP_BY_HOP.has(lower)) throw new TypeError(`it answered with the header ${name}, which only the server sets`)
    if (lower === 'content-length' && length !== undefined && Number(value) !== length)
      throw new TypeError(`it answered with the content-length ${value} but a body of ${length} bytes`)
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}

/**
 * Contains the callbacks of a plugin's storage class: an error other than an S3Error, a timeout or an invalid result
 * becomes an InternalError that names the callback.
 */
function containStorageClass(plugin: string, offered: StorageClass, deadlines: Deadlines): StorageClass {
  /** `check` throws for an invalid result; `givenUp` receives a result that comes too late. */
  async function guard<T>(
    callback: string,
    call: () => Promise<T>,
    { check, givenUp }: { check?: (result: T) => void; givenUp?: (late: T) => unknown } = {},
  ): Promise<T> {
    const work = (async () => call())()
    try {
      const result = await withinDeadline(work, deadlines.pluginDeadlineMs)
      check?.(result)
      return result
    } catch (thrown) {
      work.then(givenUp).catch(() => {})
      throw toPluginError(thrown, plugin, `${callback} of the storage class ${offered.name}`)
    }
  }

  const guardWrite = (write: AdmittedWrite): AdmittedWrite => ({
    archive: write.archive,
    ...(write.headers && { headers: write.headers }),
    ...(write.repeats && { repeats: write.repeats }),
    stored: (object) =>
      guard('stored', () => write.stored(object), { check: (reported) => checkHeaders(reported, undefined) }),
    dropped: () => guard('dropped', () => write.dropped()),
  })

  const { admit, restore, missed } = offered
  return {
    name: offered.name,
    action: offered.action,
    ...(offered.currentOnly && { currentOnly: true }),
    transition: (object) => guard('transition', () => offered.transition(object)),
    ...(admit && {
      admit: async (write, context) => {
        const givenUp = (late: AdmittedWrite) => guardWrite(late).dropped()
        return guardWrite(
          await guard('admit', () => admit.call(offered, write, context), { check: checkAdmitted, givenUp }),
        )
      },
    }),
    ...(restore && {
      restore: (object, order, context) =>
        guard('restore', () => restore.call(offered, object, order, context), { check: checkRestored }),
    }),
    ...(missed && { missed: (object, context) => guard('missed', () => missed.call(offered, object, context)) }),
  }
}

function checkAdmitted(admitted: AdmittedWrite): void {
  const { archive, headers = {}, stored, dropped } = admitted ?? {}
  if (typeof archive !== 'object' || typeof stored !== 'function' || typeof dropped !== 'function')
    throw new TypeError('it admitted with a value that is not an AdmittedWrite')
  checkHeaders(headers, undefined)
}

function checkRestored(outcome: RestoreOutcome): void {
  const { status, headers = {} } = outcome ?? {}
  if (status !== 200 && status !== 202) throw new TypeError(`it answered with the status ${status}, not 200 or 202`)
  checkHeaders(headers, undefined)
}
