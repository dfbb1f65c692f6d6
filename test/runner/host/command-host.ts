import { fstatSync, ftruncateSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { CommandResult, ShortCommand } from '../../support/server/short-commands.js'

// Runs short commands of dealgate one after another: the modules of the program are loaded and compiled once, which
// costs most of the time of a short command. The entry of the program, the argument, is evaluated anew for each one.

const [, , program = ''] = process.argv
const emitters = [process, process.stdout, process.stderr]
let last = 0

process.on('message', (command: ShortCommand) => void run(command))
process.on('disconnect', () => process.exit())

async function run({ args, env, cwd }: ShortCommand): Promise<void> {
  for (const fd of [1, 2]) if (fstatSync(fd).size > 0) ftruncateSync(fd)
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv.splice(1, Infinity, program, ...args)
  process.exitCode = undefined
  const before = emitters.map(listenersOf)
  void import(`${pathToFileURL(program)}?command=${++last}`)
  await end()
  const code = Number(process.exitCode ?? 0)
  for (const [index, emitter] of emitters.entries()) removeOthers(emitter, before[index])
  process.send?.({ code } satisfies CommandResult)
}

/** Resolves when a process of its own would end: nothing is open but the channel to the test, which does not count. */
function end(): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      process.off('beforeExit', finish)
      process.channel?.ref()
      resolve()
    }
    process.on('beforeExit', finish)
    process.channel?.unref()
  })
}

type Listeners = ReadonlyMap<string | symbol, readonly unknown[]>

function listenersOf(emitter: NodeJS.EventEmitter): Listeners {
  return new Map(emitter.eventNames().map((name) => [name, emitter.rawListeners(name)]))
}

/** Removes what a command listens to until its process ends. */
function removeOthers(emitter: NodeJS.EventEmitter, before: Listeners = new Map()): void {
  for (const name of emitter.eventNames()) {
    for (const listener of emitter.rawListeners(name)) {
      if (!before.get(name)?.includes(listener)) emitter.off(name, listener as () => void)
    }
  }
}
