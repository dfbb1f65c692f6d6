import { randomUUID } from 'node:crypto'
import type { Logger } from '../../../common/log.js'
import type { Lease } from '../../api/locks.js'
import type { State } from '../../api/state.js'

interface LeaseRecord {
  readonly holder: string
  /** Milliseconds since 1970. */
  readonly until: number
}

/**
 * Length of the lease, ms. After the death of its holder others get it once it expires; it is renewed three times as
 * often. The clocks of the processes may differ by less than this.
 */
const LEASE_MS = 30_000

/**
 * Acquires a lease, or resolves undefined when another process holds it: unlike a lock, it does not wait. A process
 * that does not share its state gets every lease. Throws S3Error ServiceUnavailable.
 */
export async function acquireTaskLease(
  state: Pick<State, 'shared' | 'records' | 'locks'>,
  name: string,
  log: Logger,
): Promise<Lease | undefined> {
  if (!state.shared) return { held: () => true, release: async () => {} }
  const records = state.records<LeaseRecord>('claims')
  const holder = randomUUID()
  let until = 0

  /** Extends the lease by `lasting` ms, unless another process holds it; 0 releases it. */
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

  if (!(await write(LEASE_MS))) return undefined
  const renewal = setInterval(() => {
    write(LEASE_MS).then(
      (ours) => {
        if (ours) return
        until = 0
        log.warn({ lease: name }, 'lost a lease to another process: this one was cut off from the state for too long')
      },
      (err) => log.warn({ err, lease: name }, 'could not renew a lease yet'),
    )
  }, LEASE_MS / 3)
  renewal.unref()
  return {
    held: () => Date.now() < until,
    async release() {
      clearInterval(renewal)
      until = 0
      await write(0).catch((err) => log.warn({ err, lease: name }, 'could not release a lease; it will expire'))
    },
  }
}
