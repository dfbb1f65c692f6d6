import { homedir, release } from 'node:os'
import { version } from '../../common/files/package-folder.js'
import { describeError, EXIT_FAILURE } from '../command.js'
import {
  type Config,
  ConfigError,
  flagOf,
  type Option,
  type OptionName,
  optionNames,
  options,
  statedValue,
} from '../config/config.js'
import { ProgressLine } from '../progress.js'
import { checks } from './doctor-checks.js'

interface DoctorFlags {
  readonly endpointUrl?: string
  readonly report?: boolean
  readonly verify?: boolean
}

/**
 * `dealgate doctor`: runs every check and prints problems with their remedies. Failures set the exit code, warnings do
 * not. The caller has validated the options. A report has versions and options, too, and no secrets.
 */
export async function doctor(
  config: Config,
  { endpointUrl, report = false, verify = false }: DoctorFlags,
): Promise<void> {
  if (endpointUrl !== undefined && !isUrl(endpointUrl))
    throw new ConfigError(['--endpoint-url must be an http:// or https:// address'])
  const print = (line: string) => void process.stdout.write(`${report ? withoutSecrets(line, config) : line}\n`)
  if (report) {
    print('```text')
    print(versions())
    for (const line of optionLines(config)) print(line)
  }
  print('ok     options')
  const progress = new ProgressLine()
  for (const { name, elsewhere, verifies, run } of checks) {
    if ((endpointUrl !== undefined && !elsewhere) || (verifies && !verify)) continue
    progress.show(() => `checking: ${name}`)
    try {
      const finding = await run(config, endpointUrl).finally(() => progress.clear())
      const { text, warnings = [] } = typeof finding === 'object' ? finding : { text: finding }
      if (text !== undefined) print(`ok     ${name}: ${text}`)
      for (const warning of warnings) print(`warn   ${name}: ${warning}`)
    } catch (error) {
      process.exitCode = EXIT_FAILURE
      print(`WRONG  ${name}: ${describeError(error)}`)
    }
  }
  if (report) print('```')
}

function isUrl(text: string): boolean {
  return /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')
}

const HIDDEN = '(secret)'

function versions(): string {
  const { node, openssl, uv } = process.versions
  return `dealgate ${version()}, Node ${node}, OpenSSL ${openssl}, libuv ${uv}, ${process.platform} ${process.arch} ${release()}`
}

/** The options that differ from their defaults, one in a line. Secrets are replaced. */
function optionLines(config: Config): string[] {
  return optionNames.filter((name) => differs(name, config)).map((name) => `${flagOf(name)} ${shown(name, config)}`)
}

/** Removes all values of secret options, passwords in addresses, and the name of the home folder from a text. */
export function withoutSecrets(text: string, config: Config): string {
  // A password that is not encoded may have an @ in it: all up to the last one is hidden.
  let safe = text.replace(/(\w+:\/\/)\S+@/g, `$1${HIDDEN}@`)
  for (const secret of secretsOf(config)) safe = safe.replaceAll(secret, HIDDEN)
  return safe.replaceAll(homedir(), '~')
}

function differs(name: OptionName, config: Config): boolean {
  return config[name] !== undefined && JSON.stringify(config[name]) !== JSON.stringify(options[name].default)
}

function shown(name: OptionName, config: Config): string {
  const option: Option = options[name]
  if (option.secret) return HIDDEN
  const value = statedValue(name, config[name])
  return withoutSecrets(typeof value === 'string' ? value : JSON.stringify(value), config)
}

/** Shorter texts would hide unrelated words. */
const MIN_SECRET_LENGTH = 6

function secretsOf(config: Config): string[] {
  const secret = optionNames.filter((name) => (options[name] as Option).secret).map((name): unknown => config[name])
  const passwords = textsIn(config).flatMap(passwordsIn)
  return [...secret.flatMap(textsIn), ...passwords].filter((text) => text.length >= MIN_SECRET_LENGTH)
}

/** The password of an address, as it stands there and as programs that connect to it use it. */
function passwordsIn(text: string): string[] {
  const [, raw] = /^\w+:\/\/[^/:\s]*:(.+)@/.exec(text) ?? []
  if (raw === undefined) return []
  try {
    return [raw, decodeURIComponent(raw)]
  } catch {
    return [raw]
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}
