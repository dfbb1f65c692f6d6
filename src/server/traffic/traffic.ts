import { slowDown } from '../../common/errors/slow-down.js'
import { ToldAlready } from '../../common/errors/told-already.js'
import { clientOf } from '../../common/quota.js'
import { Gate, type Wait } from './gate.js'
import { isBound, type TrafficBounds } from './traffic-bounds.js'

/** A request that was let in. */
export interface Visit {
  /**
   * Counts the request for its caller, and its body for caller and address.
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

/** The only client of the gate for all. */
const ALL = ''

/**
 * Bounds what clients ask of a server: requests and bytes per second, and requests in progress. A request is refused
 * before anything is done for it. A client that goes over its bytes within a request gets it done, and owes the bytes:
 * its next requests are refused until it has waited for them.
 */
export class Traffic {
  readonly #all: Gate
  readonly #addresses: Gate
  readonly #keys: Gate
  #isBound: boolean

  /** @param clock monotonic, ms */
  constructor(bounds: TrafficBounds, clock: () => number = () => performance.now()) {
    const { total, perAddress, perKey } = bounds
    this.#isBound = isBound(bounds)
    this.#all = new Gate(total ?? {}, clock)
    this.#addresses = new Gate(perAddress ?? {}, clock)
    this.#keys = new Gate(perKey ?? {}, clock)
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
   * @throws S3Error SlowDown if its address, or all requests together, are over a bound
   */
  arrive(remoteAddress: string): Visit {
    const address = clientOf('', remoteAddress)
    // A client that is over its own bound takes nothing from the others.
    refuse(this.#addresses.waitOf(address), 'from your network address')
    refuse(this.#all.waitOf(ALL), 'from all clients')
    this.#addresses.begin(address)
    this.#all.begin(ALL)
    let key: string | undefined
    let declared = 0
    return {
      identify: (accessKeyId, bytes) => {
        const client = clientOf(accessKeyId, remoteAddress)
        refuse(this.#keys.waitOf(client), 'with your access key')
        key = client
        // Not for all clients: one of them could declare much and send nothing.
        declared = bytes
        this.#keys.begin(client)
        this.#keys.charge(client, bytes)
        this.#addresses.charge(address, bytes)
      },
      leave: (bytes) => {
        this.#all.charge(ALL, bytes)
        this.#all.end(ALL)
        this.#addresses.charge(address, bytes - declared)
        this.#addresses.end(address)
        if (key === undefined) return
        this.#keys.charge(key, bytes - declared)
        this.#keys.end(key)
      },
    }
  }
}

function refuse(wait: Wait | undefined, whose: string): void {
  if (wait === undefined) return
  const seconds = Math.max(1, Math.ceil(wait.seconds))
  const message = `There are too many ${wait.exceeded} ${whose}: try again in ${seconds} s.`
  // Each refusal is in the access log; an error of its own would only fill the log.
  throw slowDown(message, { seconds, cause: new ToldAlready(message) })
}
