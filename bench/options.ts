import type { ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

/**
 * The options of the command line. Ends the process after it has printed their names, for `--help`, or what is wrong
 * with them.
 * @param command as it is typed
 * @param numbers options that are numbers where they are given
 */
export function readOptions<T extends Readonly<Record<string, unknown>>>(
  command: string,
  options: Options,
  numbers: readonly (keyof T & string)[],
  parse: () => { readonly values: T },
): T {
  if (process.argv.some((given) => given === '--help' || given === '-h')) {
    console.log(usage(command, options))
    process.exit(0)
  }
  try {
    const { values } = parse()
    for (const name of numbers) {
      const given = values[name]
      if (given !== undefined && !(Number(given) >= 0)) throw new Error(`--${name} is not a number: ${given}`)
    }
    return values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage(command, options)}`)
    return process.exit(2)
  }
}

function usage(command: string, options: Options): string {
  const names = Object.entries(options).map(([name, { type }]) => `--${name}${type === 'string' ? ' VALUE' : ''}`)
  return `Usage: ${command} -- [options]\n\n  ${names.join('\n  ')}\n\nbench/README.md says what they do.`
}
