import type { Test } from 'tap'
import type { Dealgate } from '../support/server/dealgate.js'

/** True when the server started; it is stopped then. Otherwise checks how it ended. */
export async function starts(t: Test, server: Dealgate, path: string, reason: RegExp): Promise<boolean> {
  const before = server.log.length
  try {
    await server.start()
  } catch {
    t.equal((await server.stop()).code, 1, 'the exit code is 1')
    const said = server.log.slice(before)
    const plain = said.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(plain.length, 1, `one line: ${said}`)
    t.match(plain[0], /^dealgate: /)
    t.ok(plain[0]?.includes(path), `names ${path}: ${plain[0]}`)
    t.match(plain[0], reason)
    t.notMatch(said, /\bat \S+ \(|"stack"/, 'without a stack')
    return false
  }
  t.equal((await server.stop()).code, 0)
  return true
}
