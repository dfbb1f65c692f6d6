import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { redactMessage, redactValue } from '../redact-value.js'
import { didYouMean, type Option } from './option.js'
import { flagName, flagOf, nameOf, variableOf } from './option-names.js'
import { type Config, movedPorts, type OptionName, optionNames, options, portAt, statedValue } from './options.js'
import { rules } from './rules.js'

export {
  type Config,
  flagOf,
  nameOf,
  type Option,
  type OptionName,
  optionNames,
  options,
  portAt,
  statedValue,
  variableOf,
}

/** Lists every problem of the configuration with the name of its option. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const shown = problems.map(redactMessage)
    super(
      shown.length === 1 ? shown[0] : `${shown.length} options are wrong:\n${shown.map((p) => `  ${p}`).join('\n')}`,
    )
    this.problems = shown
  }
}

interface ConfigSources {
  /** Unparsed values of flags by camelCase name; `config` is the path of the config file. */
  readonly flags?: Readonly<Record<string, unknown>>
  /** Default: the environment of the process. An empty variable counts as absent. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Problems found earlier, which are reported together with new ones. */
  readonly problems?: readonly string[]
}

/** A variable of another program that a command honours. An empty one counts as absent. */
export function variable(name: string): string | undefined {
  return process.env[name] || undefined
}

/**
 * A warning for each `DEALGATE_` variable that no option has. Kubernetes sets some for a service of that name, such as
 * DEALGATE_PORT_9000_TCP and DEALGATE_SERVICE_HOST.
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>> = process.env): string[] {
  const known = [variableOf('config'), ...optionNames.map(variableOf)]
  return Object.keys(env)
    .filter((name) => name.startsWith('DEALGATE_') && !known.includes(name))
    .filter((name) => !/^DEALGATE_(?:\w+_)?(?:SERVICE_(?:HOST|PORT)|PORT_\d+_)/.test(name))
    .map((name) => `The variable ${name} belongs to no option and has no effect${didYouMean(name, known)}`)
}

/** Where `readConfig` keeps how to read a configuration again. */
const AGAIN: unique symbol = Symbol('again')

/**
 * Reads a configuration from its sources again: its config file may have changed. Throws as `readConfig`.
 * @param config from `readConfig`
 */
export function readAgain(config: Config): Config {
  return (config as Config & { [AGAIN](): Config })[AGAIN]()
}

/** Where `readConfig` keeps the names of the options that have no default value. */
const GIVEN: unique symbol = Symbol('given')

/** True if a flag, a variable or the config file names the option, also with its default value, or moves it. */
export function isGiven(config: Config, name: OptionName): boolean {
  return (config as Config & { [GIVEN]?: ReadonlySet<string> })[GIVEN]?.has(name) ?? false
}

interface GivenValue {
  readonly value: unknown
  /** Source, as shown to the user: `--port`, `DEALGATE_PORT`, `port in /etc/dealgate.json`. */
  readonly from: string
  /** Base of relative paths: the folder of the config file, or the working directory. */
  readonly folder: string
}

/**
 * Reads the configuration. Flags take precedence over variables, those over the config file, that over defaults.
 * The result is frozen. Throws a ConfigError that lists all problems.
 */
export function readConfig(sources: ConfigSources = {}): Config {
  const problems = [...(sources.problems ?? [])]
  const env = sources.env ?? { ...process.env }
  const given = collect({ ...sources, env }, problems)
  const config = new Map<string, unknown>()
  for (const name of optionNames) config.set(name, check(name, given.get(name), problems))
  const base = given.get('portBase') && (config.get('portBase') as number | undefined)
  const moved = base === undefined ? [] : movedPorts.filter((name) => !given.has(name))
  for (const name of moved) config.set(name, portAt(name, base))
  for (const rule of rules)
    problems.push(
      ...rule(
        (name) => given.has(name),
        (name) => config.get(name) as Config[typeof name],
      ),
    )
  if (problems.length > 0) throw new ConfigError(problems)
  const read = Object.fromEntries(config)
  // A copy has nothing of the sources, which it may differ from.
  Object.defineProperty(read, GIVEN, { value: new Set([...given.keys(), ...moved]) })
  Object.defineProperty(read, AGAIN, { value: () => readConfig({ ...sources, env }) })
  return Object.freeze(read) as Config
}

function check(name: OptionName, given: GivenValue | undefined, problems: string[]): unknown {
  const option: Option = options[name]
  if (given === undefined) return option.default
  const result = option.kind.schema().safeParse(given.value)
  if (result.success) return Object.freeze(option.kind.locate?.(result.data, given.folder) ?? result.data)
  const message = result.error.issues[0]?.message ?? 'is not valid'
  const value = JSON.stringify(given.value)
  const shown = option.secret || message.includes(value) ? '' : `, not ${redactValue(value)}`
  problems.push(`${given.from} ${withoutSecrets(message, given.value)}${shown}`)
  return option.default
}

/** A message may quote the value, or one of a list. */
function withoutSecrets(message: string, value: unknown): string {
  const texts = [value].flat().flatMap((each) => (typeof each === 'string' ? [each, ...each.split(',')] : []))
  return texts.reduce((safe, text) => (text === '' ? safe : safe.replaceAll(text, () => redactValue(text))), message)
}

function collect(sources: ConfigSources, problems: string[]): Map<string, GivenValue> {
  const { flags = {}, env = process.env } = sources
  const file = flags.config ?? (env[variableOf('config')] || undefined)
  const given = file === undefined ? new Map<string, GivenValue>() : readFile(String(file), problems)
  const folder = process.cwd()
  for (const name of optionNames) {
    const variable = variableOf(name)
    const flag = flags[flagName(name)]
    if (env[variable]) given.set(name, { value: env[variable], from: variable, folder })
    if (flag !== undefined) given.set(name, { value: flag, from: flagOf(name), folder })
  }
  return given
}

function readFile(file: string, problems: string[]): Map<string, GivenValue> {
  const given = new Map<string, GivenValue>()
  let content: unknown
  try {
    content = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    problems.push(`--config: cannot read ${file}: ${(error as Error).message}`)
    return given
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    problems.push(`--config: ${file} must hold one JSON object`)
    return given
  }
  const folder = dirname(resolve(file))
  const names = new Map<string, OptionName>(optionNames.map((name) => [nameOf(name), name]))
  for (const [written, value] of Object.entries(content)) {
    const name = names.get(written)
    if (name) given.set(name, { value, from: `${written} in ${file}`, folder })
    else problems.push(`${written} in ${file} is no option${didYouMean(written, names.keys())}`)
  }
  return given
}
