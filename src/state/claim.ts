import { randomUUID } from 'node:crypto'
import type { Logger } from '../log.js'
import type { State } from './state.js'

/** The right to do something that goes on for long and that one process at a time should do. */
export interface Claim {
  /** False once it is lost: another process may be at it. */
  held(): boolean
  /** Lets others have it at once. Never rejects. */
  release(): Promise<void>
}

interface ClaimRecord {
  readonly holder: string
  /** Milliseconds since 1970. */
  readonly until: number
}

/** A claim of a process that died is free again after this long, ms; it is renewed three times as often. Clocks may differ by less. */
const CLAIM_MS = 30_000

/**
 * Takes a claim, or resolves undefined when another process has it: unlike a lock, nobody waits for it. A process alone with its state has every claim. Throws S3Error
 * ServiceUnavailable.
 */
export async function takeClaim(
  state: Pick<State, 'shared' | 'records' | 'locks'>,
  name: string,
  log: Logger,
): Promise<Claim | undefined> {
  if (!state.shared) return { held: () => true, release: async () => {} }
  const records = state.records<ClaimRecord>('claims')
  const holder = randomUUID()
  let until = 0

  /** Writes `lasting` ms for us, unless another holds it. */
  const write = (lasting: number) =>
    state.locks.withName(`claim/${name}`, async () => {
      const record = await records.get(name)
      const free = record === undefined || record.until <= Date.now()
      if (!free && record.holder !== holder) return false
      const next = Date.now() + lasting
      if (lasting > 0) await records.set(name, { holder, until: next })
      else if (record?.holder === holder) await records.delete(name)
      until = next
      return true
    })

  if (!(await write(CLAIM_MS))) return undefined
  const renewal = setInterval(() => {
    write(CLAIM_MS).then(
      (ours) => {
        if (ours) return
        until = 0
        log.warn({ claim: name }, 'another process has taken over: this one was cut off from the state for too long')
      },
      (err) => log.warn({ err, claim: name }, 'a claim could not be renewed yet'),
    )
  }, CLAIM_MS / 3)
  renewal.unref()
  return {
    held: () => Date.now() < until,
    async release() {
      clearInterval(renewal)
      until = 0
      await write(0).catch((err) => log.warn({ err, claim: name }, 'a claim could not be given back; it runs out'))
    },
  }
}
