import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { isInstalled } from '../support/programs/run.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { BUCKET, compareWithRecorded, requestMany } from './counts.js'

const WARM = 300
const COUNTED = 400

/** What a request asks of files and sockets. How often threads wake each other depends on the load of the machine. */
const CALLS = [
  'fcntl',
  'read',
  'readv',
  'pread64',
  'write',
  'writev',
  'pwrite64',
  'pwritev',
  'openat',
  'close',
  'recvmsg',
  'sendmsg',
  'sendto',
]
/** Syncs that several writes may share. */
const SYNCS = ['fsync', 'fdatasync']

t.test(
  'calls of the system that a request makes',
  { skip: !isInstalled('strace') && 'there is no strace' },
  async (t) => {
    const server = await startDealgate(t, { args: ['--access-log', 'off'] })
    t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
    const found: Record<string, number> = {}
    for (const method of ['PUT', 'GET', 'HEAD'] as const) {
      await requestMany(t, server, method, WARM)
      const calls = await traced(t, server, () => requestMany(t, server, method, COUNTED))
      t.comment(method, JSON.stringify(Object.fromEntries(calls)))
      const sum = (names: readonly string[]) => names.reduce((all, name) => all + (calls.get(name) ?? 0), 0) / COUNTED
      found[method] = sum(CALLS)
      // Nothing but a write syncs, unless for what is done beside requests once in a while.
      if (method !== 'PUT') continue
      found['PUT, syncs'] = sum(SYNCS)
      t.ok(found['PUT, syncs'] >= 1, 'each write is synced before its answer')
    }
    compareWithRecorded(t, 'calls of the system', found)
  },
)

/** Calls of all threads of a server during some work, by name. */
async function traced(t: Test, server: Dealgate, work: () => Promise<void>): Promise<Map<string, number>> {
  const file = join(temporaryFolder(t), 'calls')
  const strace = spawn('strace', ['-c', '-f', '-o', file, '-p', String(server.pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(strace, 'exit')
  t.teardown(() => strace.kill('SIGKILL'))
  // "strace: Process 1 attached with 12 threads", or "strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted"
  const [said] = (await once(strace.stderr, 'data')) as [Buffer]
  if (!String(said).includes('attached')) throw new Error(`strace may not attach to the server: ${said}`)
  await work()
  strace.kill('SIGINT')
  await ended
  const lines = readFileSync(file, 'utf8').matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm)
  return new Map([...lines].map(([, count, name = '']) => [name, Number(count)]))
}
