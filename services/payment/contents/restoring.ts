import { CID } from 'multiformats/cid'
import { type Network, NetworkError } from '../../network/network.js'
import { PaymentError } from '../errors.js'
import type { ContentStore } from './content-store.js'
import type { Content } from './content-table.js'
import type { Retention, RetentionTable } from './retention.js'

/** Most contents that come back at the same time: anyone may ask for them. */
const MAX_CONCURRENCY = 2
const RETRY_SECONDS = 30

interface RestoringDeps {
  readonly table: Pick<RetentionTable, 'sourceOf'>
  readonly contents: Pick<ContentStore, 'receive' | 'keep'>
  readonly retention: Pick<Retention, 'giveUp'>
  readonly network: Pick<Network, 'epoch' | 'retrieve'>
}

/** Brings contents back from storage providers. Two processes may bring back the same one: the second finds it here. */
export class Restoring {
  readonly #deps: RestoringDeps
  readonly #running = new Map<string, Promise<void>>()
  readonly #stop = new AbortController()

  constructor(deps: RestoringDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when the content is here. Requests for one content share the work. Rejects with PaymentError: `busy` when
   * others are brought back or the provider does not answer, `full` without room.
   */
  restore(content: Content): Promise<void> {
    const running = this.#running.get(content.cid)
    if (running !== undefined) return running
    if (this.#running.size >= MAX_CONCURRENCY) return Promise.reject(later('other contents are brought back'))
    const run = this.#restore(content)
      .catch((error) => {
        throw error instanceof NetworkError ? later(error.message) : error
      })
      .finally(() => this.#running.delete(content.cid))
    this.#running.set(content.cid, run)
    return run
  }

  async stop(): Promise<void> {
    this.#stop.abort(new NetworkError('Unavailable', 'The service stops.'))
    await Promise.allSettled(this.#running.values())
  }

  async #restore({ id, cid, kind }: Content): Promise<void> {
    const { table, contents, retention, network } = this.#deps
    const source = await table.sourceOf(id, network.epoch())
    if (source === undefined) throw new PaymentError('absent', `the deals of ${cid} have ended`)
    await contents.receive(
      async (pack) => {
        const staged = await pack(network.retrieve(source.dealCid, source, this.#stop.signal), kind)
        if (!CID.parse(staged.cid).equals(CID.parse(cid))) {
          throw new NetworkError('NotRetrievable', 'The provider has other bytes.')
        }
        await contents.keep(staged, async () => {})
      },
      () => retention.giveUp(),
    )
  }
}

function later(detail: string): PaymentError {
  return new PaymentError('busy', detail, ['Retry-After', RETRY_SECONDS])
}
