import { realpathSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import type { SignIn } from '../../services/platform/users.js'
import { type Config, variable } from '../config/config.js'
import { keysFile, type ObtainedKeys } from '../keys/keys.js'
import { exportLine, shellWord } from '../running.js'
import type { PlatformInUse } from './gateway.js'

interface Started {
  readonly endpoint: string
  readonly region: string
  readonly keys: ObtainedKeys
  /** URL of the gateway, embedded or not. */
  readonly gateway: string
  readonly embedded: boolean
  readonly platform: ShownPlatform | undefined
  /** URL of the storage payment API. */
  readonly payment: string | undefined
  /** URL of the console, if there is one. */
  readonly console?: string | undefined
  /** Address of the websites of buckets, if there is one. */
  readonly websites?: string | undefined
  /** URL of the metrics, if they have a port of their own. */
  readonly metrics?: string | undefined
  /** Why requests are refused now, as a sentence: the gateway cannot be used yet. */
  readonly problem?: string | undefined
}

type BannerConfig = Pick<Config, 'print' | 'data' | 'secretKey' | 'host' | 'tlsCert' | 'consoleUrl'>

/**
 * Formats the start message of `serve`. With `--print json` it is one line, a stable interface; the text is for people.
 * It contains the secret key only at the start that generated it: supervisors store standard output, which must not
 * contain a secret from the environment or an earlier start.
 */
export function banner(started: Started, config: BannerConfig): string {
  const { endpoint, region, keys, gateway, embedded, payment, console, websites, metrics, problem } = started
  const { accessKey } = keys
  const shown = keys.made ? { secretKey: keys.secretKey } : {}
  if (config.print === 'json')
    return `${JSON.stringify({ endpoint, region, accessKey, ...shown, gateway, ...platformMembers(started.platform), payment, console, websites, metrics, problem })}\n`
  const secret = shownSecret(keys.made ? keys.secretKey : undefined, config.secretKey, keysFile(config.data))
  const variables = { AWS_ACCESS_KEY_ID: keys.accessKey, AWS_DEFAULT_REGION: region, AWS_ENDPOINT_URL: endpoint }
  const paste =
    config.secretKey === undefined
      ? `eval "$(${ownProgram()} keys env --data ${shellWord(resolve(config.data))})"`
      : `${exportLine(variables).trimEnd()} AWS_SECRET_ACCESS_KEY='<secret key>'`
  const headline =
    problem === undefined
      ? 'dealgate is ready.'
      : `dealgate runs, but its gateway cannot be used yet: ${problem}\nRequests are refused with 503 until it can; \`dealgate doctor\` with these options looks for the reason.`
  return `${headline}

  endpoint    ${endpoint}
${elsewhere(endpoint, config.host)}${consoleLine(console, config)}${websites === undefined ? '' : `  websites    ${websites}\n`}  access key  ${keys.accessKey}
  secret key  ${secret}
  region      ${region}
  gateway     ${gateway}${embedded ? ' (embedded)' : ''}
${platformLines(started.platform)}${paymentLine(payment)}${metricsLine(metrics)}  data        ${config.data}

aws-cli:
  ${paste}
  aws --endpoint-url ${endpoint} s3 mb s3://my-bucket
  aws --endpoint-url ${endpoint} s3 ls

rclone:
  rclone config create dealgate s3 provider=Other endpoint=${endpoint} region=${region} access_key_id=${shellWord(keys.accessKey)} secret_access_key="$AWS_SECRET_ACCESS_KEY"
  rclone lsd dealgate:

Stop with Ctrl-C.
`
}

/** The addresses at which other machines reach a server that listens on all of its machine; each as a line. */
function elsewhere(endpoint: string, host: string): string {
  if (host !== '0.0.0.0' && host !== '::') return ''
  const { protocol, port } = new URL(endpoint)
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    // An address of a link alone needs the name of the interface, which URLs cannot have.
    .filter(
      ({ internal, family, address }) => !internal && (family === 'IPv4' || (host === '::' && !/^fe80/i.test(address))),
    )
    .map(
      ({ family, address }) =>
        `${protocol}//${family === 'IPv6' ? `[${address}]` : address}:${port || defaultPort(protocol)}`,
    )
  return addresses.map((address) => `              ${address}\n`).join('')
}

/** `URL` leaves out the port that a scheme has by default. */
function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80
}

/** Browsers sign only on https and on the machine itself. */
function consoleLine(console: string | undefined, { host, tlsCert, consoleUrl }: BannerConfig): string {
  if (console === undefined) return ''
  const isHere = /^(?:localhost|127\..*|::1)$/.test(host)
  const note =
    isHere || tlsCert.length > 0 || consoleUrl !== undefined ? '' : ' (other machines need https: --tls-cert)'
  return `  console     ${console}${note}\n`
}

/**
 * Returns the secret, or a text that says where it is kept.
 * @param made the secret if this start generated it
 * @param configured the secret in the options
 */
function shownSecret(made: string | undefined, configured: string | undefined, file: string): string {
  return made ?? (configured === undefined ? `(kept in ${file})` : '(as configured)')
}

/** The words that start this program in another shell: its name if `PATH` leads to it. */
function ownProgram(): string {
  const real = (path: string) => {
    try {
      return realpathSync(path)
    } catch {
      return undefined
    }
  }
  const own = real(process.argv[1] ?? '')
  const named = (variable('PATH') ?? '').split(delimiter).some((folder) => real(join(folder, 'dealgate')) === own)
  return named || own === undefined ? 'dealgate' : `node ${shellWord(own)}`
}

/** The task platform in a start message. */
export interface ShownPlatform {
  readonly url: string
  /** The first user, if this start made it. */
  readonly madeUser: SignIn | undefined
}

/** Makes the first user if there is none. Call it last: what it returns must be printed. */
export async function shownPlatform(platform: PlatformInUse | undefined): Promise<ShownPlatform | undefined> {
  return platform && { url: platform.url, madeUser: await platform.makeFirstUser?.() }
}

/** The members of a start line in JSON that tell the task platform. */
export function platformMembers(platform: ShownPlatform | undefined): Record<string, string> {
  if (platform === undefined) return {}
  const { url, madeUser } = platform
  if (madeUser === undefined) return { platform: url }
  return { platform: url, platformEmail: madeUser.email, platformPassword: madeUser.password }
}

/** The line of a start message for people that tells the storage payment API, with its end. */
export function paymentLine(url: string | undefined): string {
  return url === undefined ? '' : `  payment     ${url}\n`
}

/** The line of a start message for people that tells the metrics, with its end. */
export function metricsLine(url: string | undefined): string {
  return url === undefined ? '' : `  metrics     ${url}\n`
}

/** The lines of a start message for people, each with its end. */
export function platformLines(platform: ShownPlatform | undefined): string {
  if (platform === undefined) return ''
  const { url, madeUser } = platform
  const address = `  platform    ${url}\n`
  if (madeUser === undefined) return address
  return `${address}  e-mail      ${madeUser.email}\n  password    ${madeUser.password} (shown this once)\n`
}
