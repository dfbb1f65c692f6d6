import type { Config } from '../config.js'
import { checks } from './doctor-checks.js'
import { describeError, EXIT_FAILURE } from './failure.js'

/** `dealgate doctor`: runs every check, tells what is wrong and what to do, and sets the exit code. The options have been checked by whoever read them. */
export async function doctor(config: Config): Promise<void> {
  process.stdout.write('ok     options\n')
  for (const { name, run } of checks) {
    try {
      const finding = await run(config)
      if (finding !== undefined) process.stdout.write(`ok     ${name}: ${finding}\n`)
    } catch (error) {
      process.exitCode = EXIT_FAILURE
      process.stdout.write(`WRONG  ${name}: ${describeError(error)}\n`)
    }
  }
}
