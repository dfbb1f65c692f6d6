#!/usr/bin/env node
import { CommanderError } from 'commander'
import { doctor } from './cli/doctor.js'
import { describeError, EXIT_BAD_OPTIONS, exitCodeOf } from './cli/failure.js'
import { addKey, listKeys, removeKey } from './cli/key-commands.js'
import { checkPluginAt } from './cli/plugin-check.js'
import { listPlugins } from './cli/plugin-list.js'
import { newPlugin } from './cli/plugin-new.js'
import { presign } from './cli/presign.js'
import { createProgram } from './cli/program.js'
import { serveUntilSignal } from './cli/serve.js'
import { servicesUntilSignal } from './cli/services.js'
import type { Config } from './config.js'
import { createLogger } from './log.js'

const program = createProgram({
  serve: traced(serveUntilSignal),
  services: traced(servicesUntilSignal),
  doctor: traced(doctor),
  presign: traced(presign),
  addKey: traced(addKey),
  listKeys: traced(listKeys),
  removeKey: traced(removeKey),
  listPlugins: traced(listPlugins),
  newPlugin: traced(newPlugin),
  checkPlugin: traced(checkPluginAt),
})

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** With `--log-level debug` a failure is logged with its causes and stack before it becomes one line. */
function traced<Rest extends unknown[]>(action: (config: Config, ...rest: Rest) => Promise<void>): typeof action {
  return async (config, ...rest) => {
    try {
      await action(config, ...rest)
    } catch (error) {
      createLogger({ level: config.logLevel }).debug({ err: error }, 'failed')
      throw error
    }
  }
}

/** Tells what went wrong in one line and gives the exit code: 1 for a failure, 2 for bad options. */
function report(error: unknown): number {
  // Commander has printed its own message, or the help or version that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_BAD_OPTIONS
  process.stderr.write(`dealgate: ${describeError(error)}\n`)
  return exitCodeOf(error)
}
