import { isDeepStrictEqual } from 'node:util'
import { type Locks, type PluginState, type Records, renamedMember } from 'dealgate/plugin'
import { type Version, versionKey } from '../records/deal-records.js'

/** What is planned for the gateway's copy of a version; at most one plan for each. Plain JSON. */
export interface LocalCopy extends Version {
  readonly restoring?: string
  /** When the copy may be evicted, ms since 1970. */
  readonly due?: number
  /** Failed evictions in a row. */
  readonly failures?: number
}

/** The copies on the gateway that are being restored or may be evicted. All methods throw ServiceUnavailable. */
export class LocalCopies {
  readonly #records: Records<LocalCopy>
  readonly #locks: Locks

  constructor(state: Pick<PluginState, 'records' | 'locks'>) {
    this.#records = renamedMember(state.records('deal-local-copies'), 'revision', 'stamp')
    this.#locks = state.locks
  }

  /** Durable when it resolves. Replaces the earlier plan for that version. */
  set(copy: LocalCopy): Promise<void> {
    return this.#alone(copy, (name) => this.#records.set(name, copy))
  }

  /** As `set`, for a version without a plan. */
  plan(copy: LocalCopy): Promise<void> {
    return this.#alone(copy, async (name) => {
      if (!(await this.#records.get(name))) await this.#records.set(name, copy)
    })
  }

  /** Replaces the plan that was read as `copy` by `next`, or removes it. Does nothing if the plan has changed since. */
  replace(copy: LocalCopy, next?: LocalCopy): Promise<void> {
    return this.#alone(copy, async (name) => {
      if (!isDeepStrictEqual(await this.#records.get(name), copy)) return
      if (next) await this.#records.set(name, next)
      else await this.#records.delete(name)
    })
  }

  get(version: Version): Promise<LocalCopy | undefined> {
    return this.#records.get(versionKey(version))
  }

  /** Removes the plan for a version, if there is one. */
  async forget(version: Version): Promise<void> {
    if (await this.get(version)) await this.#alone(version, (name) => this.#records.delete(name))
  }

  async *all(): AsyncGenerator<LocalCopy, void> {
    for await (const [name, copy] of this.#records.entries()) {
      if (name !== versionKey(copy)) await this.#rename(name, copy)
      yield copy
    }
  }

  /** Earlier releases had one plan for each key, under a name without the revision. */
  #rename(before: string, copy: LocalCopy): Promise<void> {
    return this.#alone(copy, async (name) => {
      if (!(await this.#records.get(name))) await this.#records.set(name, copy)
      await this.#records.delete(before)
    })
  }

  #alone(version: Version, run: (name: string) => Promise<void>): Promise<void> {
    const name = versionKey(version)
    return this.#locks.withName(`deal-local-copy/${name}`, () => run(name))
  }
}
