import { fileURLToPath } from 'node:url'
import type { Test } from '@tapjs/test'
import { endShortCommands } from '../../support/server/short-commands.js'
import { cpuMs } from '../cpu-time.js'
import { fileTest, finish } from './file-test.js'
import type { RunMessage, WorkerMessage } from './messages.js'
import { setCurrent } from './tap.js'

// Runs one test file after another: the modules that they share are loaded and compiled once, which costs most of the
// time of a short file. Each file has a root test, an environment and a count of open handles of its own.

const environment = { ...process.env }
let current: Test | undefined
let open: ReadonlyMap<string, number>
/** TAP that the runner has not got yet: a message for each line costs more than most assertions. */
let unsent = ''

process.on('message', (message: RunMessage) => void run(message))
// The time limit of a file: its open tests fail, and the runner ends this process.
process.on('SIGALRM', () => {
  current?.timeout({ expired: current.name, signal: 'SIGALRM' } as never)
  current?.endAll()
})
process.on('exit', sendTap)
open = handles()

async function run({ url, limitMs, drainMs, env }: RunMessage): Promise<void> {
  const before = cpuMs()
  Object.assign(process.env, env)
  // tap names the folders of `t.testdir` by the script that runs: each file has folders of its own.
  process.argv[1] = fileURLToPath(url)
  const test = fileTest({
    limitMs,
    write,
    onLimit: (own) => send({ limitMs: own }),
  })
  current = test
  setCurrent(test)
  await import(url).catch((error) => test.threw(error))
  await finish(test)
  const left = await drained(drainMs)
  await endShortCommands()
  current = undefined
  restoreEnvironment()
  sendTap()
  send({ left, cpuMs: cpuMs() - before })
}

function write(tap: string): void {
  if (unsent === '') setImmediate(sendTap)
  unsent += tap
}

function sendTap(): void {
  if (unsent !== '') send({ tap: unsent })
  unsent = ''
}

function send(message: WorkerMessage): void {
  process.send?.(message)
}

/** Waits until nothing would keep this process alive; resolves to what is open after `drainMs` otherwise. */
function drained(drainMs: number): Promise<string[] | null> {
  return new Promise((resolve) => {
    const end = (left: string[] | null) => {
      clearTimeout(timer)
      process.off('beforeExit', nothingLeft)
      process.channel?.ref()
      resolve(left)
    }
    // Node emits it when only the channel to the runner is open, which does not count for now. A socket that nothing
    // reads is no reason to stay, although `getActiveResourcesInfo` lists it.
    const nothingLeft = () => end(null)
    const timer = setTimeout(() => end(newHandles()), drainMs).unref()
    process.once('beforeExit', nothingLeft)
    process.channel?.unref()
  })
}

function newHandles(): string[] {
  return [...handles()].filter(([type, count]) => count > (open.get(type) ?? 0)).map(([type]) => type)
}

/** What is open in this process, counted by type. */
function handles(): Map<string, number> {
  const found = new Map<string, number>()
  for (const type of process.getActiveResourcesInfo()) found.set(type, (found.get(type) ?? 0) + 1)
  return found
}

function restoreEnvironment(): void {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
}
