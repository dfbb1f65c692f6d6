import { defaultLimits } from '../limits.js'
import { parseWebhook, parseWebhookSecret } from '../notifications/webhooks.js'
import { addressing } from '../request/addressing.js'
import { parseQuirks } from '../services/gateway/quirks.js'
import { checkedText, choice, decimal, httpUrl, integer, type Kind, list, onOff, origin, text, url } from './kinds.js'
import { pluginUses } from './plugin-uses.js'

/** One option, everything about it: it feeds the flags, the environment, the config file, the checks, `--help` and the README. */
export interface Option<T = unknown> {
  readonly group: Group
  readonly kind: Kind<T & {}>
  /** Undefined: nothing is set unless somebody sets it. */
  readonly default: T
  /** Unit of the number. */
  readonly unit?: string
  readonly help: string
  /** Never printed. */
  readonly secret?: true
}

type Group = 'Endpoint' | 'Gateway' | 'Network' | 'State' | 'Buckets' | 'Plugins' | 'Limits' | 'Logs'

interface Details {
  readonly help: string
  readonly unit?: string
  readonly secret?: true
}

function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default: NoInfer<T> },
): Option<T>
function option<T extends {}>(group: Group, kind: Kind<T>, details: Details): Option<T | undefined>
function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default?: T },
): Option<T | undefined> {
  return Object.freeze({ group, kind, default: undefined, ...details })
}

const port = integer(0, 65_535)
const host = text('host', 'a host name or address', /^[A-Za-z0-9._:%-]+$/)
const path = text('path', 'a path', /^[^\0]+$/)
const regionName = text('name', 'letters, digits and - only', /^[A-Za-z0-9-]{1,64}$/)
const brandWord = text('word', 'lower-case letters and digits, a letter first', /^[a-z][a-z0-9]{0,30}$/)
// `/` and `,` and `=` separate the parts of an Authorization header: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
const accessKey = text('id', '3 to 128 characters of ASCII without space , / =', /^(?:(?![,/=])[\x21-\x7e]){3,128}$/)
const secretKey = text('secret', '8 to 128 characters of ASCII without space', /^[\x21-\x7e]{8,128}$/)
const quirks = checkedText('names', 'none, legacy, or names of quirks joined by commas', parseQuirks)
const domain = checkedText('host', 'a host name without port, and no IP address', (value) => addressing([value], false))
const webhook = checkedText('name=url', 'a name, = and an http or https URL', parseWebhook)
const webhookSecret = checkedText('name=secret', 'the name of a webhook, = and a secret', parseWebhookSecret)
const basePath = text('path', 'a path that starts with / and does not end in one', /^(?:\/[^/?#\s,]+)+$/)

/**
 * All options by name. The flag `--access-key`, the variable `DEALGATE_ACCESS_KEY` and the key `accessKey` of the config file are one option;
 * names are derived from the key here.
 */
export const options = Object.freeze({
  port: option('Endpoint', port, { default: 9000, help: 'Port of the S3 endpoint; 0 takes a free one.' }),
  host: option('Endpoint', host, { default: '127.0.0.1', help: 'Address to listen on.' }),
  accessKey: option('Endpoint', accessKey, {
    help: 'Access key id of the S3 key pair. Without it a pair is made at the first start and kept in the data folder.',
  }),
  secretKey: option('Endpoint', secretKey, { secret: true, help: 'Secret of the S3 key pair.' }),
  credentialsFile: option('Endpoint', path, {
    help: 'JSON file of further S3 key pairs and their rights, followed while running; see `dealgate keys`. Without it credentials.json in the data folder, if it is there.',
  }),
  sessionToken: option('Endpoint', choice('refuse', 'ignore'), {
    default: 'refuse',
    help: 'What to do with X-Amz-Security-Token, which belongs to temporary credentials: refuse the request, or let the token count for nothing.',
  }),
  domain: option('Endpoint', list(domain), {
    default: Object.freeze([]),
    help: 'Host whose subdomains are buckets: with `s3.example.com`, `photos.s3.example.com` is the bucket `photos`.',
  }),
  trustForwardedHost: option('Endpoint', onOff, {
    default: false,
    help: 'Take X-Forwarded-Host and X-Forwarded-Proto for what the client asked for. Only where a reverse proxy sets both and nobody else reaches this port.',
  }),
  region: option('Endpoint', regionName, {
    default: 'us-east-1',
    help: 'Region that requests are signed for.',
  }),
  signedBasePath: option('Endpoint', list(basePath), {
    default: Object.freeze([]),
    help: 'Path that a reverse proxy strips from requests: signatures that cover it are accepted too.',
  }),

  shareUrl: option('Endpoint', origin(), {
    help: 'Address that share links are made for. If it leads to this server, links are passed on to the gateway. Without it they lead to the gateway itself.',
  }),

  gatewayUrl: option('Gateway', httpUrl(), {
    help: 'Object gateway to work with. Without it the embedded one is started.',
  }),
  gatewayAccessKey: option('Gateway', accessKey, {
    help: 'Access key of the account on the gateway; the embedded one makes its own without it.',
  }),
  gatewaySecretKey: option('Gateway', secretKey, { secret: true, help: 'Secret key of the account on the gateway.' }),
  gatewayTimeoutSeconds: option('Gateway', integer(1, 3600), {
    default: 30,
    unit: 'seconds',
    help: 'A gateway that sends nothing for this long is given up.',
  }),
  brandPath: option('Gateway', brandWord, {
    default: 'gateway',
    help: 'First path segment of the gateway (`/gateway/webrpc`).',
  }),
  brandHeader: option('Gateway', brandWord, {
    default: 'cloud',
    help: 'Brand word in header and query names (`X-Cloud-Date`).',
  }),
  passthrough: option('Gateway', onOff, {
    default: false,
    help: "Serve the gateway's own paths (`/gateway/...`) on the port of the S3 endpoint too: its JSON-RPC and web pages, not its object data.",
  }),
  gatewayHost: option('Gateway', host, { default: '127.0.0.1', help: 'Address of the embedded gateway.' }),
  gatewayPort: option('Gateway', port, { default: 9100, help: 'Port of the embedded gateway; 0 takes a free one.' }),
  gatewayQuirks: option('Gateway', quirks, {
    default: 'none',
    help: 'Makes the embedded gateway behave as public deployments do: `legacy` is all of it, else single quirks by name.',
  }),

  networkEpochSeconds: option('Network', decimal(0.001, 86_400), {
    default: 30,
    unit: 'seconds',
    help: 'Length of an epoch of the storage network, in which the durations and states of deals are counted; 30 as in the real one.',
  }),
  networkControl: option('Network', onOff, {
    default: false,
    help: 'Let clients of the embedded gateway have time pass in the embedded storage network and break its providers: for tests and demonstrations.',
  }),
  kuboApi: option('Network', url('http', 'https'), {
    secret: true,
    help: 'RPC of a Kubo node (`http://127.0.0.1:5001`) that the embedded gateway makes deals with: it takes their CARs and pins them. Name and password in the URL are for a node that asks for them. Without it deals are made in the embedded storage network.',
  }),

  data: option('State', path, { default: './dealgate-data', help: 'Folder of everything that is kept.' }),
  state: option('State', url('redis', 'rediss', 'postgres', 'postgresql'), {
    secret: true,
    help: 'Database for what the gateway cannot hold, shared by several proxies. Without it SQLite in the data folder.',
  }),
  uploadExpiryDays: option('State', integer(0, 3650), {
    default: 7,
    unit: 'days',
    help: 'Multipart uploads that were not completed are removed after this time; 0 keeps them.',
  }),
  jobExpiryDays: option('State', integer(0, 3650), {
    default: 7,
    unit: 'days',
    help: 'Jobs that have ended, and the client tokens they were asked for with, are forgotten after this time; 0 keeps them.',
  }),

  lifecycleIntervalMinutes: option('Buckets', integer(0, 1440), {
    default: 60,
    unit: 'minutes',
    help: 'How often to look whether lifecycle rules, which are due at midnight UTC, have something to do; 0 carries out none.',
  }),
  webhook: option('Buckets', list(webhook), {
    default: Object.freeze([]),
    secret: true,
    help: 'Where notifications of buckets can be sent, as `arn:dealgate:webhook:::name`.',
  }),
  webhookSecret: option('Buckets', list(webhookSecret), {
    default: Object.freeze([]),
    secret: true,
    help: 'Key that notifications to the webhook of that name are signed with.',
  }),
  notificationMaxAgeHours: option('Buckets', integer(1, 336), {
    default: 24,
    unit: 'hours',
    help: 'A notification that its webhook has not taken by then is given up.',
  }),

  plugins: option('Plugins', pluginUses, {
    secret: true,
    help: 'Plugins to run instead of those that come along: the name of one of those, of an npm package, or a path; `none` for none, as `--no-plugins`. In the file an entry may be `{"use": …, "options": {…}}`.',
  }),

  maxDocumentBytes: option('Limits', integer(1024, 64 * 1024 * 1024), {
    default: defaultLimits.maxDocumentBytes,
    unit: 'bytes',
    help: 'Largest XML request body.',
  }),
  bodyIdleSeconds: option('Limits', integer(1, 3600), {
    default: defaultLimits.bodyIdleMs / 1000,
    unit: 'seconds',
    help: 'A request body on which nothing arrives for this long is given up.',
  }),
  pluginDeadlineSeconds: option('Limits', integer(1, 3600), {
    default: defaultLimits.pluginDeadlineMs / 1000,
    unit: 'seconds',
    help: 'A plugin that has not answered a request by then, not counting the time its body takes, fails with InternalError.',
  }),
  shutdownGraceSeconds: option('Limits', integer(0, 3600), {
    default: 30,
    unit: 'seconds',
    help: 'How long running requests may go on after SIGTERM or SIGINT.',
  }),

  logLevel: option('Logs', choice('silent', 'error', 'warn', 'info', 'debug'), {
    default: 'info',
    help: 'Least level that is logged, as JSON lines on standard error.',
  }),
  accessLog: option('Logs', onOff, { default: true, help: 'One log line for each request.' }),
  print: option('Logs', choice('text', 'json'), {
    default: 'text',
    help: 'What standard output tells at the start: a text, or one line of JSON with endpoint, keys and region.',
  }),
})

export type OptionName = keyof typeof options

/** The value of every option, checked. Undefined only where there is no default. */
export type Config = { readonly [Name in OptionName]: (typeof options)[Name] extends Option<infer T> ? T : never }

export const optionNames = Object.keys(options) as OptionName[]

/** Flags that are repeated name one thing where the option names them all. */
const SINGULAR: Readonly<Record<string, string>> = { plugins: 'plugin' }

/** The name of its flag in camelCase. */
export function flagName(name: string): string {
  return SINGULAR[name] ?? name
}

/** accessKey -> --access-key */
export function flagOf(name: string): string {
  return `--${kebab(flagName(name))}`
}

/** accessKey -> DEALGATE_ACCESS_KEY */
export function variableOf(name: string): string {
  return `DEALGATE_${kebab(name).replaceAll('-', '_').toUpperCase()}`
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
