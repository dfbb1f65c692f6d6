import { randomBytes } from 'node:crypto'
import { type Caller, type PluginHost, type Records, S3Error } from 'dealgate/plugin'
import type { Selection } from './selection.js'

/** How long a selection is kept, ms. */
const KEPT_MS = 60 * 60_000

/** Selections that are kept for a key pair; another one takes the place of the oldest. */
const MAX_KEPT = 4

interface KeptSelection {
  readonly id: string
  readonly bucket: string
  /** The session that has named it; '' for the key pair itself. */
  readonly session: string
  readonly expires: number
  readonly selection: Selection
}

type Keeper = Pick<Caller, 'identity'>

/**
 * Selections that are too long for an address. A link names one by its id, and is signed by the same key pair or
 * session: the id alone opens nothing.
 */
export class KeptSelections {
  readonly #records: Records<readonly KeptSelection[]>
  readonly #now: () => number

  constructor({ state, now }: Pick<PluginHost, 'state' | 'now'>) {
    this.#records = state.records('zip-selections')
    this.#now = now
  }

  /** @returns the id, and when it ends, ms since 1970 */
  async keep(caller: Keeper, bucket: string, selection: Selection): Promise<{ id: string; expires: number }> {
    const now = this.#now()
    const made = { id: randomBytes(16).toString('hex'), expires: now + KEPT_MS }
    const entry = { ...made, bucket, session: sessionOf(caller), selection }
    await this.#records.change(caller.identity.accessKeyId, (kept = []) => [
      ...kept.filter(({ expires }) => expires > now).slice(1 - MAX_KEPT),
      entry,
    ])
    return made
  }

  /** Throws NoSuchSelection for one that is not there, has ended or is another caller's. */
  async get(caller: Keeper, bucket: string, id: string): Promise<Selection> {
    const kept = (await this.#records.get(caller.identity.accessKeyId)) ?? []
    const found = kept.find((entry) => entry.id === id && entry.bucket === bucket)
    if (found && found.session === sessionOf(caller) && found.expires > this.#now()) return found.selection
    throw new S3Error('NoSuchSelection', {
      status: 404,
      message: 'This selection is not there, or has ended, or another key pair or session has made it: make a new one.',
    })
  }

  /** Removes what has ended. */
  async sweep(mayGoOn: () => boolean): Promise<void> {
    const now = this.#now()
    for await (const [key, kept] of this.#records.entries()) {
      if (!mayGoOn()) return
      if (kept.some(({ expires }) => expires > now)) continue
      await this.#records.change(key, (present) =>
        present?.some(({ expires }) => expires > now) ? present : undefined,
      )
    }
  }
}

function sessionOf({ identity: { session } }: Keeper): string {
  return session ? `${session.name}:${session.expires ?? ''}` : ''
}
