import { CommanderError } from 'commander'
import { describeError, EXIT_BAD_OPTIONS, exitCodeOf } from './command.js'
import { createProgram } from './program.js'

// `dealgate --help | head` closes the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

createProgram()
  .parseAsync()
  .catch((error) => {
    process.exitCode = report(error)
  })

/** Prints the failure in one line. Returns the exit code: 1 for a failure, 2 for bad options. */
function report(error: unknown): number {
  // Commander has already printed its message, the help or the version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_BAD_OPTIONS
  process.stderr.write(`dealgate: ${describeError(error)}\n`)
  return exitCodeOf(error)
}
