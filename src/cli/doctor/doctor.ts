import type { Config } from '../config/config.js'
import { describeError, EXIT_FAILURE } from '../failure.js'
import { checks } from './doctor-checks.js'

/**
 * `dealgate doctor`: runs every check and prints problems with their remedies. Failures set the exit code, warnings do
 * not. The caller has validated the options.
 */
export async function doctor(config: Config): Promise<void> {
  process.stdout.write('ok     options\n')
  for (const { name, run } of checks) {
    try {
      const finding = await run(config)
      const { text, warnings = [] } = typeof finding === 'object' ? finding : { text: finding }
      if (text !== undefined) process.stdout.write(`ok     ${name}: ${text}\n`)
      for (const warning of warnings) process.stdout.write(`warn   ${name}: ${warning}\n`)
    } catch (error) {
      process.exitCode = EXIT_FAILURE
      process.stdout.write(`WRONG  ${name}: ${describeError(error)}\n`)
    }
  }
}
