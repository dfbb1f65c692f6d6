import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { withinDeadline } from '../../common/time.js'
import type { FolderIdentity, FolderRecord } from './folder-record.js'
import type { GatewayWitness, StoreIdentity } from './guard.js'
import type { Table } from './records/table.js'

interface StoreCheckOptions {
  /** One table in each place that can be lost by itself, such as a table of a database. */
  readonly places: readonly Table<StoreIdentity>[]
  readonly folder: FolderRecord
  /** Queried while the folder knows no store id. Notified of the one that the folder adopts. */
  readonly gateway?: GatewayWitness | undefined
  readonly log: Logger
}

/** The only key of a place. */
const KEY = 'epoch'
/**
 * Attempts, and the pause between them, ms: while another proxy creates the id of a new store, only some places
 * have it.
 */
const MAX_ATTEMPTS = 5
const PAUSE_MS = 200

/** How long a raise of the mark waits for a gateway that has answered before, ms. */
const GATEWAY_MS = 2000

const ADVICE =
  'What was kept in it may be gone: client tokens, jobs, public access blocks, lifecycle rules, tags, CORS and ETags. Restore it from a backup, or accept the loss with `dealgate state accept` and the options of `serve`.'

/**
 * Detects that a store of records came back empty or was replaced. Store and data folder must have the same id, or
 * the store must have one that an operator has put over that of the folder. A folder without an id relies on the
 * gateway. A store restored from an older backup of itself has the same id and a lower mark.
 */
export class StoreCheck {
  readonly #options: StoreCheckOptions
  #problem: string | undefined
  #raising: Promise<void> | undefined
  #accepted: string | undefined

  constructor(options: StoreCheckOptions) {
    this.#options = options
  }

  /** The problem of the store in words, as of the last look; undefined when there is none. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * Looks at the store, and gives a new one an id. Logs the result. Throws S3Error ServiceUnavailable when the
   * store, or the gateway if it has to be asked, does not answer.
   */
  async look(): Promise<void> {
    const problem = await this.#compare()
    if (problem === this.#problem) return
    const { log } = this.#options
    if (problem)
      log.error(`${problem} Until then deals, other jobs and policies that open buckets are refused. ${ADVICE}`)
    else log.warn('the state store is whole again, or its loss was accepted: everything is allowed again')
    this.#problem = problem
  }

  /** Looks at the store now. Throws S3Error ServiceUnavailable unless it still has all its records. */
  async require(): Promise<void> {
    await this.look()
    const { kept } = this.#options.folder
    // A folder that was restored together with the store knows nothing of the time since; the gateway may.
    if (this.#problem === undefined && kept.epoch && this.#options.gateway?.hasAnsweredFor(kept.epoch) === false) {
      await this.#askGateway().catch(() => {})
      await this.look()
    }
    this.#refuseProblem()
  }

  /** The store id, if an operator has accepted it over another one. Throws as `require` does. */
  async acceptedLoss(): Promise<string | undefined> {
    await this.require()
    return this.#accepted
  }

  #refuseProblem(): void {
    if (this.#problem === undefined) return
    throw new S3Error('ServiceUnavailable', {
      message: `${this.#problem} The operator of this server has to restore it or to accept the loss; until then nothing is done that spends money or opens a bucket.`,
    })
  }

  async #compare(): Promise<string | undefined> {
    const { places, folder, gateway } = this.#options
    for (let look = 1; ; look++) {
      // Read before the store: other calls raise the mark of both meanwhile.
      const { kept } = folder
      const known = kept.epoch
      const found = await judge(places, kept, gateway)
      if ('adopt' in found) {
        await this.#adopt(found.adopt)
        // The gateway has seen a higher mark, which the store may have by now.
        if (known === undefined && (folder.kept.mark ?? 0) > (found.adopt.mark ?? 0)) continue
      } else if ('isNew' in found) await this.#make()
      // Another look has adopted the store meanwhile: this one has judged by what was there before.
      else if (known === undefined && folder.kept.epoch !== undefined) continue
      else if (look >= MAX_ATTEMPTS || known !== undefined || this.#problem !== undefined) return found.problem
      else {
        await sleep(PAUSE_MS)
        continue
      }
      return undefined
    }
  }

  /** When several proxies do this at the same time, the first decides. */
  async #make(): Promise<void> {
    const { places } = this.#options
    let made: StoreIdentity = { epoch: randomUUID() }
    for (const place of places) made = (await place.change(KEY, (known) => known ?? made)) ?? made
    await this.#adopt(made)
  }

  /** A folder that knows a store does not ask the gateway any more, so the gateway has to know it first. */
  async #adopt(identity: StoreIdentity): Promise<void> {
    const { folder, gateway } = this.#options
    const isNew = folder.kept.epoch === undefined
    this.#accepted = identity.over && identity.epoch
    const mark = isNew && gateway?.judgesNew ? await gateway.report(identity) : 0
    await folder.setStore(identity)
    await this.#learn(identity.epoch, mark)
    if (!isNew && gateway?.judgesNew) gateway.reportLater(identity, (mark) => this.#learn(identity.epoch, mark))
  }

  /** The folder remembers the mark that was reported to the gateway: the next look compares it with the store. */
  async #learn(storeId: string, mark: number): Promise<void> {
    const { folder } = this.#options
    if (folder.kept.epoch === storeId) await folder.setStore({ epoch: storeId, mark })
  }

  /** Tells the gateway the mark of the folder, and learns a higher one. Throws S3Error ServiceUnavailable. */
  async #askGateway(): Promise<void> {
    const { folder, gateway } = this.#options
    const { epoch: storeId, mark } = folder.kept
    if (gateway && storeId !== undefined)
      await this.#learn(storeId, await gateway.report({ epoch: storeId, ...(mark && { mark }) }))
  }

  /**
   * Raises the mark of the store; calls at the same time share one. Throws S3Error ServiceUnavailable, also for a store
   * that the gateway has known with a higher mark.
   */
  raise(): Promise<void> {
    this.#raising ??= this.#raise().finally(() => {
      this.#raising = undefined
    })
    return this.#raising
  }

  /** Folder and gateway learn the new mark after the store has it, so that they never know a higher one. */
  async #raise(): Promise<void> {
    const { places, folder, gateway } = this.#options
    const { epoch: storeId } = folder.kept
    // While this process runs, the folder has followed the store.
    if (storeId !== undefined && gateway?.hasAnsweredFor(storeId))
      await withinDeadline(this.#askGateway(), GATEWAY_MS).catch(() => {})
    else await this.#askGateway()
    await this.look()
    this.#refuseProblem()
    const raised = await places.at(-1)?.change(KEY, (found) => {
      if (!found) throw new S3Error('ServiceUnavailable', { message: 'The state store was emptied just now.' })
      return { ...found, mark: (found.mark ?? 0) + 1 }
    })
    if (!raised || raised.epoch !== folder.kept.epoch) return
    await folder.setStore(raised)
    if (gateway) await withinDeadline(gateway.report(raised), GATEWAY_MS).catch(() => {})
  }
}

/** `identity` is undefined unless all places have the same one; `isEmpty` is true when none has any. */
async function readIdentity(
  places: readonly Table<StoreIdentity>[],
): Promise<{ identity: StoreIdentity | undefined; isEmpty: boolean }> {
  const found = await Promise.all(places.map((place) => place.get(KEY)))
  const [first] = found
  const same = found.every((one) => one?.epoch === first?.epoch)
  return { identity: same ? found.at(-1) : undefined, isEmpty: found.every((one) => one === undefined) }
}

type Judgement = { readonly adopt: StoreIdentity } | { readonly problem: string } | { readonly isNew: true }

async function judge(
  places: readonly Table<StoreIdentity>[],
  { epoch: known, mark = 0 }: Partial<FolderIdentity>,
  gateway: GatewayWitness | undefined,
): Promise<Judgement> {
  const { identity, isEmpty } = await readIdentity(places)
  if (!identity && !isEmpty) return { problem: 'The state store has lost a part of its records.' }
  if (known === undefined) return judgeUnknown(identity, gateway)
  if (!identity) return { problem: 'The state store has come back empty.' }
  if (identity.epoch === known && (identity.mark ?? 0) < mark)
    return {
      problem: 'The state store is older than it was: it was restored from a backup, or a failover lost records.',
    }
  if (identity.epoch === known || identity.over?.includes(known)) return { adopt: identity }
  return { problem: 'The state store is not the one that this data folder worked with before.' }
}

/**
 * Judges a store that the data folder does not know.
 * @param identity undefined when the store is empty
 */
async function judgeUnknown(
  identity: StoreIdentity | undefined,
  gateway: GatewayWitness | undefined,
): Promise<Judgement> {
  const isAccepted = identity?.over !== undefined
  if (!isAccepted && (await gateway?.contradicts(identity?.epoch)))
    return {
      problem: identity
        ? 'The state store is not one that was used with this gateway before.'
        : 'The state store has come back empty: this gateway was used with one that had records. The store of a further server has to be accepted once.',
    }
  return identity ? { adopt: identity } : { isNew: true }
}

/**
 * The problem of the store and its remedy in words; undefined when there is none.
 * @param folder the record of the data folder
 */
export async function problemOf(
  places: readonly Table<StoreIdentity>[],
  folder: FolderIdentity | undefined,
  gateway?: GatewayWitness,
): Promise<string | undefined> {
  const found = await judge(places, folder ?? {}, gateway)
  return 'problem' in found ? `${found.problem} ${ADVICE}` : undefined
}

/**
 * Accepts the store as it is, for every proxy that worked with its predecessor.
 * @param folder the record of the data folder, undefined when there is none; a record without a store id belongs to a
 * server that has not adopted the store
 * @returns false when there is nothing to accept
 */
export async function acceptStore(
  places: readonly Table<StoreIdentity>[],
  folder: FolderIdentity | undefined,
): Promise<boolean> {
  const known = folder?.epoch
  const judged = await judge(places, folder ?? {}, undefined)
  // The gateway alone may object to such a store: its servers detect this and tell it the new id.
  const isUndecided = folder !== undefined && known === undefined && !('adopt' in judged && judged.adopt.over)
  if (!('problem' in judged) && !isUndecided) return false
  const found = (await Promise.all(places.map((place) => place.get(KEY)))).filter((one) => one !== undefined)
  const over = new Set([
    ...(known === undefined ? [] : [known]),
    ...found.flatMap((one) => [one.epoch, ...(one.over ?? [])]),
  ])
  const accepted: StoreIdentity = { epoch: randomUUID(), over: [...over] }
  for (const place of places) await place.set(KEY, accepted)
  return true
}
