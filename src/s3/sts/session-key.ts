import { randomBytes } from 'node:crypto'
import type { State } from '../../state/state.js'

/**
 * The key that seals sessions, 32 bytes: the first proxy that needs it makes it, and all proxies on the state share it.
 */
export type SessionKey = () => Promise<Buffer>

/** Reads the key once. The function throws S3Error ServiceUnavailable while the store of records does not answer. */
export function sessionKey(state: Pick<State, 'records'>): SessionKey {
  const records = state.records<{ readonly key: string }>('sts-key')
  let known: Promise<Buffer> | undefined
  async function read(): Promise<Buffer> {
    const record = await records.change('sessions', (kept) => kept ?? { key: randomBytes(32).toString('base64') })
    return Buffer.from(record?.key ?? '', 'base64')
  }
  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}
