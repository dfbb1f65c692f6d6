import { networkOf } from './cidr.js'

export interface QuotaBounds {
  /** Most that all clients may hold together. */
  readonly total: number
  /** Most that one client may hold. */
  readonly perClient: number
}

/** The name under which all clients without a signature are counted together. No client has it. */
const ANONYMOUS = ''

/**
 * Counts how much of a scarce resource clients hold. Clients without a signature (see `clientOf`) hold at most half of
 * the total together, so that they cannot exclude clients with one.
 */
export class Quota {
  readonly #bounds: QuotaBounds
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(bounds: QuotaBounds) {
    this.#bounds = bounds
  }

  /** Amount that all clients hold. */
  get held(): number {
    return this.#total
  }

  /** Takes an amount. Returns false and takes nothing when the client, or all clients together, would hold too much. */
  take(client: string, amount: number): boolean {
    const { total, perClient } = this.#bounds
    const anonymous = isAnonymous(client)
    if (this.#total + amount > total || this.#of(client) + amount > perClient) return false
    if (anonymous && this.#of(ANONYMOUS) + amount > Math.max(1, total / 2)) return false
    this.#add(client, amount)
    if (anonymous) this.#add(ANONYMOUS, amount)
    this.#total += amount
    return true
  }

  /** Counts an amount that is already held, whatever the bounds are. */
  count(client: string, amount: number): void {
    this.give(client, -amount)
  }

  /** Returns an amount. */
  give(client: string, amount: number): void {
    this.#add(client, -amount)
    if (isAnonymous(client)) this.#add(ANONYMOUS, -amount)
    this.#total -= amount
  }

  #of(name: string): number {
    return this.#held.get(name) ?? 0
  }

  #add(name: string, amount: number): void {
    const held = this.#of(name) + amount
    if (held > 0) this.#held.set(name, held)
    else this.#held.delete(name)
  }
}

const ADDRESS = 'address:'

/**
 * The name under which a quota counts a client: its access key id, or the network address of a client without a
 * signature.
 */
export function clientOf(accessKeyId: string, remoteAddress: string): string {
  return accessKeyId === '' ? clientInNetwork(networkOf(remoteAddress)) : `key:${accessKeyId}`
}

/** The name of a client without a signature. */
export function clientInNetwork(network: string): string {
  return `${ADDRESS}${network}`
}

function isAnonymous(client: string): boolean {
  return client.startsWith(ADDRESS)
}
