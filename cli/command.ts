import { type Command, CommanderError, Option as Flag } from 'commander'
import { nameFailure } from '../common/address-failure.js'
import { S3Error } from '../common/errors/s3-error.js'
import { systemFailure } from '../common/errors/system-errors.js'
import {
  type Config,
  ConfigError,
  flagOf,
  type Option,
  type OptionName,
  options,
  readConfig,
  statedValue,
  variableOf,
} from './config/config.js'
import { didYouMean } from './config/option.js'
import { redactMessage } from './redact-value.js'

export function addCommand(
  program: Command,
  name: string,
  help: string,
  names: readonly OptionName[],
  settings = {},
): Command {
  const command = program
    .command(name, settings)
    .description(help)
    .helpOption('-h, --help', 'print this help')
    // configOf reports unknown options together with all other problems.
    .allowUnknownOption()
    .allowExcessArguments()
    .addOption(
      new Flag('--config <file>', `JSON file of options, named as here in camelCase [${variableOf('config')}]`),
    )
  for (const option of names) command.addOption(flag(option))
  if (names.includes('plugins'))
    command.addOption(
      new Flag(
        '--no-plugins',
        'Run no plugins: the server answers S3 alone, without batch jobs, inventories, quotas and counts of buckets.',
      ).helpGroup('Plugins:'),
    )
  return names.length > MAX_LISTED_OPTIONS ? helpInParts(command, names) : command
}

/** More options than these are not printed at once. */
const MAX_LISTED_OPTIONS = 50

/** `--help` prints the main options, `--help all` every option, `--help limits` those of a group. */
function helpInParts(command: Command, names: readonly OptionName[]): Command {
  const groups = [...new Set(names.map((name) => options[name].group.toLowerCase()))]
  let wanted: string | null = null
  const isShown = ({ long, helpGroupHeading }: Flag) => {
    const group = helpGroupHeading?.replace(/:$/, '').toLowerCase()
    if (wanted === 'all' || group === undefined || group === wanted) return true
    return wanted === null && names.some((name) => (options[name] as Option).main && flagOf(name) === long)
  }
  return command
    .helpOption(false)
    .addOption(
      new Flag('-h, --help [part]', `print the main options; all options: --help all; or a group: --help limits`),
    )
    .addHelpText('after', `\nAll options: --help all. Options of a group: --help ${groups.join(', ')}.`)
    .configureHelp({ visibleOptions: ({ options }) => options.filter((flag) => !flag.hidden && isShown(flag)) })
    .on('option:help', (part: string | null) => {
      wanted = part?.toLowerCase() ?? null
      if (wanted !== null && wanted !== 'all' && !groups.includes(wanted))
        command.error(`error: --help takes all, or one of the groups ${groups.join(', ')}`)
      command.outputHelp()
      throw new CommanderError(0, 'commander.helpDisplayed', 'help')
    })
}

function flag(name: OptionName): Flag {
  const option: Option = options[name]
  const { placeholder, alone } = option.kind
  const value = alone === undefined ? `<${placeholder}>` : `[${placeholder}]`
  const made = new Flag(`${flagOf(name)} ${value}`, `${option.help} ${facts(name)}`).helpGroup(`${option.group}:`)
  if (alone !== undefined) made.preset(alone)
  if (option.kind.repeatable) made.argParser(collected)
  return made
}

/** Collects the values of a repeatable flag. */
export function collected(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value]
}

/** `[0 to 65535; default 9000; DEALGATE_PORT]` */
function facts(name: OptionName): string {
  const option: Option = options[name]
  const unit = option.unit ? ` ${option.unit}` : ''
  return `[${[option.kind.accepts + unit, defaultText(name) && `default ${defaultText(name)}`, variableOf(name)].filter(Boolean).join('; ')}]`
}

/** `--no-plugins` means `--plugin none`. Commander sets `plugins: false` for it, and `true` if it is absent. */
function withoutPlugins({ plugins, ...flags }: Record<string, unknown>, problems: string[]): Record<string, unknown> {
  if (plugins !== false) return flags
  if (flags.plugin !== undefined) problems.push('--no-plugins and --plugin contradict each other')
  return { ...flags, plugin: ['none'] }
}

/** `--port=1` -> `--port` */
function flagAlone(argument: string): string {
  return argument.split('=')[0] ?? argument
}

function flagsOf(command: Command): string[] {
  return command.options.flatMap(({ long }) => long ?? [])
}

/** The commands beside this one: `dealgate kyes` is `dealgate serve kyes`. */
function commandsOf(command: Command): string[] {
  return command.parent?.commands.map((other) => other.name()) ?? []
}

/**
 * The configuration of a command. Throws a ConfigError that lists all problems.
 * @param operands number of positional arguments of the command
 */
export function configOf(flags: Record<string, unknown>, command: Command, operands = 0): Config {
  const name = command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name()
  const unknown = command.args.filter((argument) => argument.startsWith('-') && argument !== '-')
  // An argument after an unknown flag may be its value, so it is not reported.
  const excess = unknown.length > 0 ? [] : command.args.slice(operands)
  const problems = [
    ...unknown.map(
      (argument) => `${argument} is no option of dealgate ${name}${didYouMean(flagAlone(argument), flagsOf(command))}`,
    ),
    ...excess.map(
      (argument) =>
        `${argument} is no command, and dealgate ${name} takes no such argument${didYouMean(argument, commandsOf(command))}`,
    ),
  ]
  return readConfig({ flags: withoutPlugins(flags, problems), problems })
}

export const EXIT_FAILURE = 1

export const EXIT_BAD_OPTIONS = 2

/** A failure that the user can resolve. Its message is shown without a stack. */
export class Failure extends Error {
  override readonly name = 'Failure'
}

/** Runs a command on what it has opened, and closes that. Throws Failure for a value that it refuses. */
export async function withRegistry<B extends { close(): void | Promise<void> }, T>(
  registry: B,
  use: (registry: B) => T | Promise<T>,
): Promise<T> {
  try {
    return await use(registry)
  } catch (error) {
    throw error instanceof RangeError ? new Failure(error.message) : error
  } finally {
    await registry.close()
  }
}

/** Prints the text of a command, or with --print json the document, as a line. */
export function print({ print: format }: Pick<Config, 'print'>, document: unknown, text: string): void {
  process.stdout.write(format === 'json' ? `${JSON.stringify(document)}\n` : text)
}

export function exitCodeOf(error: unknown): number {
  return error instanceof ConfigError ? EXIT_BAD_OPTIONS : EXIT_FAILURE
}

/** The message of an error, without secrets of the addresses in it. */
export function describeError(error: unknown): string {
  return redactMessage(messageOf(error))
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Its message is for clients of a server, and refers them to the server's log. A command has none.
  if (error instanceof S3Error && error.code === 'InternalError' && error.cause instanceof Error)
    return messageOf(error.cause)
  // An error of ours says more, and has that of the system as its cause.
  const isRaw = error.message === 'fetch failed' || error.cause === undefined
  const unresolved = isRaw ? nameFailure(error) : undefined
  if (unresolved !== undefined) return unresolved
  // connect() to a name with several addresses fails with an AggregateError without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  const failure = 'syscall' in error ? systemFailure(error) : undefined
  return failure === undefined ? error.message : `${error.message} (${failure.remedy})`
}

/** Explains why an address cannot be listened on; `flags` names the options that change it. */
export function listenFailure(
  error: unknown,
  address: { host: string; port: number },
  flags: { host: string; port: string },
): unknown {
  const at = `${address.host}:${address.port}`
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new Failure(
        `${at} is in use by another process. Choose another port with ${flags.port}, or 0 for a free one.`,
        { cause: error },
      )
    case 'EACCES':
      return new Failure(`Not permitted to listen on ${at}. Choose a port above 1023 with ${flags.port}.`, {
        cause: error,
      })
    case 'EAI_AGAIN':
      return new Failure(`Cannot listen on ${at}: ${nameFailure(error)} with ${flags.host}.`, { cause: error })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Failure(`${address.host} is not an address of this machine. Choose another with ${flags.host}.`, {
        cause: error,
      })
    default:
      return error
  }
}

/** The default as the user would write it; '' without a default. */
export function defaultText(name: OptionName): string {
  const value = statedValue(name, options[name].default)
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return value === undefined ? '' : String(value)
}
