import type { Test } from '@tapjs/test'
import { fileTest, finish } from './file-test.js'
import type { RunMessage, WorkerMessage } from './messages.js'
import { setCurrent } from './tap.js'

// Runs one test file after another: the modules that they share are loaded and compiled once, which costs most of the
// time of a short file. Each file has a root test, an environment and a count of open handles of its own.

const environment = { ...process.env }
let current: Test | undefined
let open: ReadonlyMap<string, number>

process.on('message', (message: RunMessage) => void run(message))
// The time limit of a file: its open tests fail, and the runner ends this process.
process.on('SIGALRM', () => {
  current?.timeout({ expired: current.name, signal: 'SIGALRM' } as never)
  current?.endAll()
})
open = handles()

async function run({ file, url, limitMs, drainMs, env }: RunMessage): Promise<void> {
  Object.assign(process.env, env)
  const test = fileTest({
    file,
    limitMs,
    write: (tap) => send({ tap }),
    onLimit: (own) => send({ limitMs: own }),
  })
  current = test
  setCurrent(test)
  await import(url).catch((error) => test.threw(error))
  await finish(test)
  const left = await drained(drainMs)
  current = undefined
  restoreEnvironment()
  send({ left })
}

function send(message: WorkerMessage): void {
  process.send?.(message)
}

/** Waits until nothing is open that was not before the file; resolves to the rest. */
async function drained(drainMs: number): Promise<string[]> {
  const end = performance.now() + drainMs
  for (let pause = 0; ; pause = Math.min(pause + 1, 50)) {
    const left = [...handles()].filter(([type, count]) => count > (open.get(type) ?? 0)).map(([type]) => type)
    if (left.length === 0 || performance.now() > end) return left
    await new Promise((resolve) => setTimeout(resolve, pause).unref())
  }
}

/** What keeps this process alive, counted by type. */
function handles(): Map<string, number> {
  const found = new Map<string, number>()
  for (const type of process.getActiveResourcesInfo()) found.set(type, (found.get(type) ?? 0) + 1)
  return found
}

function restoreEnvironment(): void {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
}
