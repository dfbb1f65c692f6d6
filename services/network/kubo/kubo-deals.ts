import { Clock } from '../../clock.js'
import type { ServicesLog } from '../../log.js'
import type { Database } from '../../store/database.js'
import { untilKnown } from '../../store/until-known.js'
import { checkTerms, type DealRecord } from '../deal-record.js'
import type { DealTable } from '../deal-table.js'
import type { EpochClock } from '../epoch-clock.js'
import { type DealRequest, NetworkError, type Provider } from '../network.js'
import type { DealPacker, PackedDeal } from '../packing.js'
import { draftDeal } from '../proposal.js'
import type { Wallets } from '../wallet.js'
import { asUnavailable } from './kubo-errors.js'
import type { KuboNode } from './kubo-node.js'
import type { KuboProvider } from './kubo-provider.js'
import type { Pins, PinTable } from './pins.js'

/** Time that a failed deal waits for the node to unpin its content, ms. */
const TAKE_BACK_MS = 10_000

interface KuboDealTables {
  readonly deals: DealTable
  readonly pins: PinTable
}

interface KuboDealsDeps {
  readonly packer: DealPacker
  readonly provider: KuboProvider
  readonly node: KuboNode
  readonly pins: Pins
  readonly db: Database<KuboDealTables>
  readonly epochs: EpochClock
  readonly wallets: Wallets
  readonly log: ServicesLog
}

/**
 * Makes deals: packs them, has the node import and pin the CAR, signs proposals and records the deals. Nothing counts
 * without a record, and its pin is removed.
 */
export class KuboDeals {
  readonly #deps: KuboDealsDeps
  readonly #clock = new Clock()

  constructor(deps: KuboDealsDeps) {
    this.#deps = deps
  }

  /** Throws NetworkError NoSuchProvider, ProviderOffline, TermsRefused or Unavailable, and the reason of `signal`. */
  async make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    const price = checkTerms(request.terms)
    const { minerId } = request.terms
    checkRoom(await this.#deps.provider.willing(minerId, signal), request.bytesTotal)
    return this.#deps.packer.run(request, (packed) => this.#send(request, price, packed, signal), signal)
  }

  /** @param price price in the terms, attoFIL */
  async #send(
    { reference, terms, wallet }: DealRequest,
    price: bigint,
    { car, piece, report }: PackedDeal,
    signal: AbortSignal,
  ): Promise<DealRecord> {
    const { provider, pins, node, db, epochs, wallets } = this.#deps
    // Packing may have taken hours.
    checkRoom(await provider.willing(terms.minerId, signal), piece.pieceSize)
    const { dataCid, size: carSize } = car
    try {
      return await pins.make(
        dataCid,
        async () => {
          await node.import(car, (sent) => report.next('Sending', sent, carSize), signal)
          const now = epochs.epoch()
          const schedule = {
            proposedEpoch: now,
            acceptEpoch: now,
            sealEpoch: now,
            startEpoch: now,
            activeEpoch: now,
            endEpoch: now + terms.duration,
          }
          const timeStamp = Number(this.#clock.now() / 1000n)
          const made = { reference, terms, price, dataCid, carSize, piece, schedule, timeStamp }
          const record = draftDeal(
            { ...made, rejection: undefined, waiting: false, custody: dataCid },
            await wallets.of(wallet),
          )
          signal.throwIfAborted()
          const keep = async (tables: KuboDealTables): Promise<DealRecord> => {
            await tables.pins.renew(dataCid, Date.now())
            return tables.deals.addOnce(record)
          }
          return untilKnown(() => db.transaction(keep), { signal })
        },
        signal,
      )
    } catch (error) {
      await this.#takeBack()
      throw asUnavailable(error)
    }
  }

  /** The next sweep does it if the node cannot be reached now. */
  async #takeBack(): Promise<void> {
    await this.#deps.pins
      .sweep(AbortSignal.timeout(TAKE_BACK_MS))
      .catch((err) =>
        this.#deps.log.warn(
          { err },
          'Could not unpin the content of an interrupted deal at the Kubo node; trying again later.',
        ),
      )
  }
}

function checkRoom({ minerId, maxPieceSize }: Provider, bytes: number): void {
  if (bytes <= maxPieceSize) return
  throw new NetworkError(
    'TermsRefused',
    `The Kubo node ${minerId} has room for pieces of ${maxPieceSize} bytes, not for one of ${bytes}. Raise its limit, or make a smaller deal.`,
  )
}
