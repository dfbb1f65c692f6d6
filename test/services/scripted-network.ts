import { createHash } from 'node:crypto'
import {
  type DealFile,
  type DealRequest,
  type DealState,
  type DealStatus,
  type DealTotals,
  type MadeDeal,
  type Network,
  NetworkError,
  type PackedCar,
  type PackedFile,
  type Provider,
} from '../../services/network/network.js'

interface Kept {
  readonly made: MadeDeal
  /** By CID. */
  readonly bodies: ReadonlyMap<string, Buffer>
}

/** A network in memory that does what a test tells it to; it outlives the gateways that use it. */
export class ScriptedNetwork implements Network {
  readonly kind: Network['kind'] = 'embedded'
  readonly wallet = 't1wallet'
  readonly epochSeconds = 30
  readonly epochMs = 30_000
  readonly deals = new Map<string, Kept>()
  /** By deal: those that are asked of the network now, and all that ever were. */
  readonly retrievals: string[] = []
  state: DealState = 'StorageDealActive'
  /** Of each deal that is made from now on, and now. */
  endEpoch = 2000
  now = 1000
  /** What `status` says besides, once it is awaited. */
  beforeStatus: () => Promise<Partial<DealStatus>> = async () => ({})
  /** Awaited before the content of each file is read. */
  beforeFile: (file: DealFile) => Promise<void> = async () => {}
  /** Awaited once everything is packed. */
  beforeDone: (request: DealRequest) => Promise<void> = async () => {}
  /** Awaited once the deal is made, before anybody is told. */
  afterDone: (request: DealRequest) => Promise<void> = async () => {}
  /** Gives the chunks of a retrieval, or throws. */
  deliver: (body: Buffer, dealCid: string) => AsyncIterable<Uint8Array> = inHalves
  /** Thrown instead of any answer. */
  failure: Error | undefined

  epoch(): number {
    return this.now
  }

  async providers(): Promise<readonly Provider[]> {
    if (this.failure !== undefined) throw this.failure
    return []
  }

  async dealTotals(): Promise<DealTotals[]> {
    return []
  }

  async pack(): Promise<PackedCar> {
    throw new NetworkError('Unavailable', 'This network packs nothing.')
  }

  async deal(request: DealRequest): Promise<MadeDeal> {
    // Those that are set when the deal begins.
    const { beforeFile, beforeDone, afterDone } = this
    const bodies = new Map<string, Buffer>()
    const tell = (phase: 'Packing' | 'Done'): void =>
      request.onProgress?.({ phase, bytesDone: 0, bytesTotal: request.bytesTotal, filesDone: bodies.size })
    tell('Packing')
    for await (const file of request.files()) {
      await unless(request.signal, beforeFile(file))
      const body = await whole(file.content())
      if (body.length !== file.size) throw new Error(`${file.path} has ${body.length} bytes and not ${file.size}.`)
      const cid = createHash('sha256').update(body).digest('hex')
      bodies.set(cid, body)
      await request.onFile({ path: file.path, size: file.size, cid })
      tell('Packing')
    }
    await unless(request.signal, beforeDone(request))
    const dealCid = `deal-${this.deals.size}`
    const made: MadeDeal = {
      reference: request.reference,
      terms: request.terms,
      walletAddress: this.wallet,
      dataCid: 'data',
      pieceCid: 'piece',
      pieceSize: 128,
      carSize: 100,
      dealCid,
      startEpoch: 1000,
      endEpoch: this.endEpoch,
      timeStamp: 1,
    }
    this.deals.set(request.reference, { made, bodies })
    await afterDone(request)
    return made
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    if (this.failure !== undefined) throw this.failure
    return this.deals.get(reference)?.made
  }

  settle(reference: string): Promise<MadeDeal | undefined> {
    return this.find(reference)
  }

  async status(dealCid: string): Promise<DealStatus> {
    if (this.failure !== undefined) throw this.failure
    const { made } = this.#find(dealCid)
    const status = { ...made, state: this.state, message: 'So it is.', epoch: this.epoch() }
    return { ...status, ...(await this.beforeStatus()) }
  }

  async *retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    this.retrievals.push(dealCid)
    const body = this.#find(dealCid).bodies.get(file.cid)
    if (body === undefined) throw new NetworkError('NotRetrievable', 'There is no such file.')
    for await (const chunk of this.deliver(body, dealCid)) {
      signal?.throwIfAborted()
      yield chunk
    }
  }

  async stop(): Promise<void> {}

  #find(dealCid: string): Kept {
    const kept = [...this.deals.values()].find(({ made }) => made.dealCid === dealCid)
    if (kept === undefined) throw new NetworkError('NoSuchDeal', 'There is no such deal.')
    return kept
  }
}

export async function* inHalves(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body.subarray(0, body.length >> 1)
  yield body.subarray(body.length >> 1)
}

/** A point that is passed when the test says so. */
export class Gate {
  readonly #open: Promise<void>
  readonly #reached: Promise<void>
  #reach!: () => void
  /** Lets everybody through, from now on. */
  open!: () => void

  constructor() {
    this.#open = new Promise((resolve) => (this.open = resolve))
    this.#reached = new Promise((resolve) => (this.#reach = resolve))
  }

  /** Waits until it is open. */
  pass = (): Promise<void> => {
    this.#reach()
    return this.#open
  }

  /** Resolves when a request waits, or has waited. */
  reached(): Promise<void> {
    return this.#reached
  }
}

async function whole(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Rejects with the signal's reason when that comes first. */
function unless<T>(signal: AbortSignal | undefined, waited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    waited.then(resolve, reject)
  })
}
