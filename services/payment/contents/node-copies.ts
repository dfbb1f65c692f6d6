import { PeriodicTask } from '../../../common/time.js'
import type { ServicesLog } from '../../log.js'
import type { KuboNode } from '../../network/kubo/kubo-node.js'
import { type Pins, pinSchema } from '../../network/kubo/pins.js'
import { NetworkError } from '../../network/network.js'
import { type Database, tableOf } from '../../store/database.js'
import type { ContentStore, StagedContent } from './content-store.js'
import { CONTENT_COLUMNS } from './content-table.js'

/** Between two looks at what the node lacks, and has without need, ms. */
const SWEEP_MS = 60_000

const MAX_REPORTED = 10

interface NodeCopiesDeps {
  readonly node: KuboNode
  /** Pins of contents, by the CIDs of their roots. */
  readonly pins: Pins
  readonly db: Database<{ readonly copies: CopyTable }>
  readonly contents: Pick<ContentStore, 'fileOf'>
  readonly log: ServicesLog
}

/**
 * Copies of all contents on a Kubo node, which pins them: those that arrive before they count, those of before in the
 * background. What goes away here is unpinned there, if it was pinned for this service.
 */
export class NodeCopies {
  readonly #deps: NodeCopiesDeps
  readonly #sweep: PeriodicTask
  readonly #stop = new AbortController()

  constructor(deps: NodeCopiesDeps) {
    this.#deps = deps
    this.#sweep = new PeriodicTask(
      () => this.#pass(),
      (err) => {
        if (!this.#stop.signal.aborted) deps.log.warn({ err }, 'The Kubo node could not take or drop all contents.')
      },
    )
  }

  start(): void {
    this.#sweep.start(SWEEP_MS)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#sweep.stop()
  }

  /**
   * Has the node import and pin a content, then runs `keep`. Rejects as the node does, before it is kept.
   * @param keep makes the content count
   */
  async add<T>({ cid, file, carSize }: StagedContent, keep: () => Promise<T>): Promise<T> {
    const { node, pins, db } = this.#deps
    const { signal } = this.#stop
    const { peerId } = await node.identity(signal)
    return pins.make(
      cid,
      async () => {
        await this.#import(cid, file, carSize)
        const result = await keep()
        await db.transaction(({ copies }) => copies.mark(cid, peerId))
        return result
      },
      signal,
    )
  }

  async #import(cid: string, file: string, size: number): Promise<void> {
    const { node } = this.#deps
    if (await node.isPinned(cid, this.#stop.signal)) return
    await node.import({ file, size, dataCid: cid }, () => {}, this.#stop.signal)
  }

  async #pass(): Promise<void> {
    const { node, pins, db, contents } = this.#deps
    const { copies } = db.read
    const { signal } = this.#stop
    const { peerId } = await node.identity(signal)
    const refused: unknown[] = []
    let next = await copies.missing(peerId, 0)
    for (; next !== undefined; next = await copies.missing(peerId, next.id)) {
      const { cid, carSize, file } = next
      try {
        await pins.make(cid, () => this.#import(cid, contents.fileOf({ file }), carSize), signal)
        await db.transaction(({ copies }) => copies.mark(cid, peerId))
      } catch (error) {
        signal.throwIfAborted()
        // A node that does not answer takes no other content either; what it refuses must not hold up the others.
        if (error instanceof NetworkError && error.code === 'Unavailable') throw error
        if (refused.length < MAX_REPORTED) refused.push(error)
      }
    }
    await pins.sweep(signal)
    if (refused.length > 0) throw new AggregateError(refused, 'The node does not take all contents.')
  }
}

interface MissingContent {
  readonly id: number
  readonly cid: string
  readonly carSize: number
  readonly file: string
}

/** SQL: true for a pin whose content is gone. A content that only a storage provider has stays on the node. */
export const UNNEEDED = "NOT EXISTS (SELECT 1 FROM contents WHERE cid = root AND place <> 'gone')"

/** The contents that a Kubo node has. Call writing methods inside a transaction. */
export class CopyTable extends tableOf({
  mark: 'UPDATE contents SET node = ? WHERE cid = ?',
  missing: `SELECT ${CONTENT_COLUMNS} FROM contents
    WHERE id > ? AND place = 'here' AND node IS DISTINCT FROM ? ORDER BY id LIMIT 1`,
}) {
  /** The node has the content from now on. */
  async mark(cid: string, peerId: string): Promise<void> {
    await this.sql.mark.run(peerId, cid)
  }

  /** The next content behind `after` that is here, and not on the node. */
  missing(peerId: string, after: number): Promise<MissingContent | undefined> {
    return this.sql.missing.get<MissingContent>(after, peerId)
  }
}

/** `node` is the peer ID of the Kubo node that has a content, if one has it. `pins` are those that are made there. */
export const kuboSchema = `
  ALTER TABLE contents ADD COLUMN node TEXT;
  ${pinSchema}
`
