import type { IncomingMessage } from 'node:http'
import { isLoopback } from '../../../common/cidr.js'
import { ReportedAlready, slowDown } from '../../../common/errors/s3-error.js'
import { clientOf } from '../../../common/quota.js'
import { Running } from '../../../common/running.js'
import type { Caller } from '../../api/identity.js'
import type { RequestHead } from '../../api/request.js'
import type { Signals } from '../../api/state.js'
import { noSignals } from '../../state/signals.js'
import { type ClientBounds, Gate, isBound, type OtherProcesses, type TrafficBounds, type Wait } from './gate.js'
import { SharedCounts } from './shared-counts.js'
import { SharedRunning } from './shared-running.js'

/** A request that was let in. */
export interface Admission {
  /**
   * Counts the request for its caller, and its body: a caller that declares much and sends nothing waits alone.
   * @param bytes that the request declares to send; 0 for none
   * @throws S3Error SlowDown if the caller is over a bound
   */
  identify(accessKeyId: string, bytes: number): void
  /**
   * Ends the request.
   * @param bytes that were received and sent
   */
  leave(bytes: number): void
}

type Kind = 'all' | 'address' | 'key'

/** The only client of the gate for all. */
const ALL = ''
/** Bytes of requests in progress are counted again after this time, ms: each counting looks at all of them. */
const COUNTED_MS = 50
/** Time after which the other processes learn of them, ms. */
const SHARED_MS = 1000

/** A request in progress. */
interface CountedRequest {
  readonly address: string
  /** Bytes that have been received so far. */
  readonly received: () => number
  /** Bytes that are counted. */
  counted: number
}

/**
 * Bounds what clients ask of a server: requests and bytes per second, and requests in progress. A request is refused
 * before anything is done for it. A client that goes over its bytes within a request gets it done, and owes the bytes:
 * its next requests are refused until it has waited for them.
 */
export class Traffic {
  readonly #all: Gate
  readonly #addresses: Gate
  readonly #keys: Gate
  readonly #shared: SharedCounts
  readonly #sharedRunning: SharedRunning | undefined
  readonly #clock: () => number
  readonly #running = new Running<CountedRequest>()
  readonly #timer: NodeJS.Timeout | undefined
  #lastCounted = Number.NEGATIVE_INFINITY
  #isBound: boolean

  /**
   * @param clock monotonic, ms
   * @param signals to the other processes that count together with this one
   */
  constructor(bounds: TrafficBounds, clock: () => number = () => performance.now(), signals: Signals = noSignals) {
    const { total, perAddress, perKey } = bounds
    this.#isBound = isBound(bounds)
    this.#clock = clock
    const alone = signals === noSignals
    const others = (kind: Kind): OtherProcesses => ({
      taken: (client, ...taken) => this.#shared.add(`${kind} ${client}`, ...taken),
      changed: (client, ...running) => this.#sharedRunning?.changed(`${kind} ${client}`, ...running),
      running: (client) => this.#sharedRunning?.elsewhere(`${kind} ${client}`) ?? 0,
    })
    const gate = (kind: Kind, of: ClientBounds = {}) => new Gate(of, clock, alone ? undefined : others(kind))
    this.#all = gate('all', total)
    this.#addresses = gate('address', perAddress)
    this.#keys = gate('key', perKey)
    const gates = { all: this.#all, address: this.#addresses, key: this.#keys }
    this.#shared = new SharedCounts(
      signals,
      (named, counted) => {
        const [kind = '', ...client] = named.split(' ')
        if (Object.hasOwn(gates, kind)) gates[kind as Kind].count(client.join(' '), counted)
      },
      clock,
    )
    if (alone) return
    this.#sharedRunning = new SharedRunning(signals, clock)
    this.#timer = setInterval(() => this.#countRunning(), SHARED_MS).unref()
  }

  /** Tells the other processes nothing more, and hears nothing from them. */
  close(): void {
    clearInterval(this.#timer)
    this.#shared.close()
    this.#sharedRunning?.close()
  }

  /** False if every request is let in. */
  get isBound(): boolean {
    return this.#isBound
  }

  /** Replaces the bounds. Requests in progress stay counted. */
  set bounds(bounds: TrafficBounds) {
    const { total, perAddress, perKey } = bounds
    this.#isBound = isBound(bounds)
    this.#all.bounds = total ?? {}
    this.#addresses.bounds = perAddress ?? {}
    this.#keys.bounds = perKey ?? {}
  }

  /**
   * Counts a request, whose signature is not checked yet.
   * @param received gives the bytes that the request has sent so far
   * @throws S3Error SlowDown if its address, or all requests together, are over a bound
   */
  admit(remoteAddress: string, received: () => number = () => 0): Admission {
    const address = clientOf('', remoteAddress)
    if (this.#clock() - this.#lastCounted >= COUNTED_MS) this.#countRunning()
    // A client that is over its own bound takes nothing from the others.
    refuse(this.#addresses.waitOf(address), 'from your network address')
    refuse(this.#all.waitOf(ALL), 'from all clients')
    this.#addresses.begin(address)
    this.#all.begin(ALL)
    const running: CountedRequest = { address, received, counted: 0 }
    const id = this.#running.add(running)
    let key: string | undefined
    let declared = 0
    return {
      identify: (accessKeyId, bytes) => {
        const client = clientOf(accessKeyId, remoteAddress)
        refuse(this.#keys.waitOf(client), 'with your access key')
        key = client
        // The bytes are not reserved for others at its address, nor for all clients: the client may send slowly, or
        // nothing.
        declared = bytes
        this.#keys.begin(client)
        this.#keys.charge(client, bytes)
      },
      leave: (bytes) => {
        this.#running.remove(id)
        this.#count(running, bytes)
        this.#all.end(ALL)
        this.#addresses.end(address)
        if (key === undefined) return
        this.#keys.charge(key, bytes - declared)
        this.#keys.end(key)
      },
    }
  }

  /** Counts what requests in progress have sent since the last time. */
  #countRunning(): void {
    this.#lastCounted = this.#clock()
    for (const running of this.#running.all()) this.#count(running, running.received())
  }

  /** @param bytes of the request so far */
  #count(running: CountedRequest, bytes: number): void {
    const more = bytes - running.counted
    running.counted = bytes
    this.#all.charge(ALL, more)
    this.#addresses.charge(running.address, more)
  }
}

function refuse(wait: Wait | undefined, whose: string): void {
  if (wait === undefined) return
  const seconds = Math.max(1, Math.ceil(wait.seconds))
  const message = `There are too many ${wait.exceeded} ${whose}: try again in ${seconds} s.`
  // Each refusal is in the access log; an error of its own would only fill the log.
  throw slowDown(message, { seconds, cause: new ReportedAlready(message) })
}

/** A request that the bounds of the server's traffic have let in. */
export interface CallerAdmission {
  /** Counts the request for its caller. Throws S3Error SlowDown. */
  identify(caller: Caller | undefined): void
  /** @param sent bytes of the response body */
  leave(sent: number): void
}

/** Calls by which a supervisor on this machine finds out whether the server is alive. */
const PROBES = new Set(['/-/live', '/-/ready', '/-/health'])

/**
 * Counts a request. Undefined for one that needs no permission: there are no bounds, or it is a probe of this machine.
 * Throws S3Error SlowDown.
 */
export type AdmitClient = (head: RequestHead, incoming: IncomingMessage) => CallerAdmission | undefined

export function clientAdmission(traffic: Traffic): AdmitClient {
  return (head, incoming) => admitClient(traffic, head, incoming)
}

function admitClient(
  traffic: Traffic,
  { path, remoteAddress }: RequestHead,
  incoming: IncomingMessage,
): CallerAdmission | undefined {
  if (!traffic.isBound || (PROBES.has(path) && isLoopback(remoteAddress))) return undefined
  const { headers } = incoming
  const received = countReceived(incoming)
  const admission = traffic.admit(remoteAddress, received)
  return {
    identify(caller) {
      if (caller) admission.identify(caller.identity.accessKeyId, Number(headers['content-length'] ?? 0) || 0)
    },
    leave: (sent) => admission.leave(received() + sent),
  }
}

/**
 * Counts the bytes that a request sends, from now on. Not what it declares: a client may declare much and send nothing.
 * A small body has arrived together with the head, before anything could count it.
 */
export function countReceived(incoming: IncomingMessage): () => number {
  const { socket, headers } = incoming
  const before = socket.bytesRead
  return () => {
    const declared = incoming.complete ? Number(headers['content-length'] ?? 0) || 0 : 0
    return Math.max(socket.bytesRead - before, declared)
  }
}
