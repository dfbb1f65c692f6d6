import { GiB, gatewayLimits } from '../../services/gateway/limits.js'
import { GATEWAY_TIMEOUT_MS } from '../../src/gateway/gateway-call.js'
import { addressing } from '../../src/http/addressing.js'
import { defaultPeriods } from '../../src/server/limits.js'
import { bucketOptions, domain } from './bucket-options.js'
import {
  accessKey,
  basePath,
  brandWord,
  checkedText,
  choice,
  decimal,
  host,
  httpUrl,
  integer,
  list,
  mailAddress,
  onOff,
  origin,
  path,
  pluginUses,
  port,
  portOrOff,
  quirks,
  regionName,
  secretKey,
  text,
  time,
  url,
  wordOrPath,
} from './kinds.js'
import { oidcOptions } from './oidc-options.js'
import { type Option, option } from './option.js'
import {
  connectionOptions,
  encryptionOptions,
  engineOptions,
  limitOptions,
  logFileOptions,
  observabilityOptions,
  paymentOptions,
  tlsOptions,
  trafficOptions,
} from './option-groups.js'

const proxyAddress = checkedText('address', 'an IP address, or a block such as 10.0.0.0/8', (value) =>
  addressing({ trustedProxies: [value] }),
)

/** Object ownership of a bucket; BucketOwnerEnforced disables ACLs. */
const ownership = choice('BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter')

/**
 * All options by name. The flag `--access-key`, the variable `DEALGATE_ACCESS_KEY` and the key `accessKey` of the
 * config file are one option; names are derived from the key here.
 */
export const options = Object.freeze({
  port: option('Endpoint', port, {
    main: true,
    default: 9000,
    help: 'Port of the S3 endpoint; 0 selects a free port.',
  }),
  portBase: option('Endpoint', integer(1, 65_235), {
    main: true,
    help: 'Moves the ports of the S3 endpoint, the console and the embedded services, as far as no option of their own names one: with 9500, the S3 endpoint has 9500 instead of 9000, the console 9501, the gateway 9600, the task platform 9700, the storage payment API 9800.',
  }),
  host: option('Endpoint', host, { main: true, default: '127.0.0.1', help: 'Address to listen on.' }),
  tlsCert: tlsOptions.tlsCert,
  tlsKey: tlsOptions.tlsKey,
  workers: option('Endpoint', integer(0, 1024), {
    main: true,
    default: 1,
    help: 'Processes that serve the S3 endpoint, and with --database the embedded services, for machines with several cores; 0 for one per core. Bounds of connections, requests, bodies and bytes are those of each process.',
  }),
  accessKey: option('Endpoint', accessKey, {
    main: true,
    live: true,
    help: 'Access key id of the S3 key pair. Without it, the first start generates a pair and keeps it in the data folder.',
  }),
  secretKey: option('Endpoint', secretKey, {
    main: true,
    live: true,
    secret: true,
    help: 'Secret of the S3 key pair.',
  }),
  credentialsFile: option('Endpoint', path, {
    live: true,
    help: 'JSON file of further S3 key pairs and their rights, reloaded when it changes; see `dealgate keys`. Without it, credentials.json in the data folder, if it exists.',
  }),
  sessionToken: option('Endpoint', choice('refuse', 'ignore'), {
    default: 'refuse',
    help: 'How to handle X-Amz-Security-Token with a permanent key pair: refuse the request, or ignore the token. Temporary credentials of this server always need theirs.',
  }),
  signatureV2: option('Endpoint', onOff, { default: true, help: 'Accept signature version 2, as in URLs of boto3.' }),
  objectOwnership: option('Endpoint', ownership, { default: 'BucketOwnerEnforced', help: 'Ownership in new buckets.' }),
  storageClassLabels: option('Endpoint', choice('keep', 'refuse'), {
    default: 'keep',
    help: 'Storage classes that only name a price (STANDARD_IA, ONEZONE_IA, REDUCED_REDUNDANCY, INTELLIGENT_TIERING): keep them as labels of objects, which are stored as those of STANDARD, or refuse them.',
  }),
  domain: option('Endpoint', list(domain), {
    main: true,
    live: true,
    default: Object.freeze([]),
    help: 'Host whose subdomains are buckets: with `s3.example.com`, `photos.s3.example.com` is the bucket `photos`.',
  }),
  trustForwardedHost: option('Endpoint', onOff, {
    live: true,
    default: false,
    help: "Use X-Forwarded-Host and X-Forwarded-Proto as the client's host and protocol. Safe only if every request passes a reverse proxy that sets both.",
  }),
  trustedProxies: option('Endpoint', list(proxyAddress), {
    live: true,
    default: Object.freeze([]),
    help: "Reverse proxy, or block of addresses of several, whose X-Forwarded-For and X-Forwarded-Proto name the client's address and protocol. --trust-forwarded-host then believes these alone.",
  }),
  region: option('Endpoint', regionName, {
    default: 'us-east-1',
    help: 'Region that requests are signed for.',
  }),
  signedBasePath: option('Endpoint', list(basePath), {
    default: Object.freeze([]),
    help: 'Path prefix that a reverse proxy strips from requests: signatures that cover it are accepted too. No bucket can have the name of its first segment.',
  }),

  shareUrl: option('Endpoint', origin(), {
    help: 'Address in share links. If it is an address of this server, requests of share links are forwarded to the gateway. Without it, links contain the address of the gateway.',
  }),

  consolePort: option('Console', portOrOff, {
    main: true,
    default: 9001,
    help: 'Port of the console, which is a page for browsers, on the address of the S3 endpoint; 0 selects a free port, off is none.',
  }),
  consoleUrl: option('Console', origin(), {
    help: 'Address of the console as browsers reach it, if a reverse proxy stands before it: the origin whose pages may call the S3 endpoint. Without it, that is the port of the console on any name of this host.',
  }),
  consoleEndpoint: option('Console', origin(), {
    help: 'Address of the S3 endpoint as browsers reach it, if a reverse proxy stands before it. Without it, the console calls the port of the endpoint on the host that serves the console.',
  }),
  ...oidcOptions,

  gatewayUrl: option('Gateway', httpUrl(), {
    main: true,
    help: 'Object gateway to use. Without it, the embedded gateway is started.',
  }),
  gatewayAccessKey: option('Gateway', accessKey, {
    main: true,
    help: 'Access key of the account on the gateway. Without it, the embedded one generates a key pair.',
  }),
  gatewaySecretKey: option('Gateway', secretKey, {
    main: true,
    secret: true,
    help: 'Secret key of the account on the gateway.',
  }),
  gatewayTimeoutMs: option('Gateway', time('seconds', 1, 3600), {
    default: GATEWAY_TIMEOUT_MS,
    help: 'Timeout for responses of the gateway. Listings of whole folders may take four times as long.',
  }),
  gatewayCa: tlsOptions.gatewayCa,
  gatewayCert: tlsOptions.gatewayCert,
  gatewayKey: tlsOptions.gatewayKey,
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
    help: "Also serve the gateway's own paths (`/gateway/...`) on the port of the S3 endpoint: JSON-RPC, not object data and web pages.",
  }),
  gatewayHost: option('Gateway', host, { default: '127.0.0.1', help: 'Address of the embedded gateway.' }),
  gatewayPort: option('Gateway', port, {
    default: 9100,
    help: 'Port of the embedded gateway; 0 selects a free port.',
  }),
  gatewayQuirks: option('Gateway', quirks, {
    default: 'none',
    help: 'Make the embedded gateway behave like public deployments: `legacy` enables all compatible quirks, or list single quirks.',
  }),
  gatewayPublicUrl: option('Gateway', httpUrl(), {
    help: 'Address by which storage providers on other machines reach the embedded gateway, to fetch the CARs of offline deals below `/gateway/car/`. Without it, their URLs contain the address that it listens on.',
  }),
  gatewayCarGib: option('Gateway', integer(1, 1_000_000), {
    default: gatewayLimits.maxCarBytesOfAccount / GiB,
    unit: 'GiB',
    help: 'Disk space that the CARs of offline deals of one account of the embedded gateway may take.',
  }),
  ...engineOptions,
  servicesMaxConnections: option('Gateway', integer(1, 1_000_000), {
    default: gatewayLimits.maxConnections,
    help: 'Maximum of open connections to each embedded service: gateway, task platform and storage payment API. One network address gets at most three quarters of them, except programs on the same machine.',
  }),

  platformUrl: option('Platform', httpUrl(), {
    main: true,
    help: 'Task platform to use. Without it, the embedded one is started beside the embedded gateway.',
  }),
  platformApiKey: option('Platform', text('key', 'an API key', /^[\x21-\x7e]{1,256}$/), {
    secret: true,
    help: 'API key at the platform of --platform-url, as whose user the first account of the embedded gateway acts there.',
  }),
  platformAccessToken: option('Platform', text('token', 'the secret of an API key', /^[\x21-\x7e]{1,1024}$/), {
    secret: true,
    help: 'Secret of that API key.',
  }),
  platformHost: option('Platform', host, { default: '127.0.0.1', help: 'Address of the embedded task platform.' }),
  platformPort: option('Platform', port, {
    default: 9200,
    help: 'Port of the embedded task platform; 0 selects a free port.',
  }),
  platformSmtp: option('Platform', url('smtp', 'smtps'), {
    secret: true,
    help: 'Mail server for the mails of the embedded task platform, which may contain user and password. Without it, mails are files in the folder `services/platform/outbox`.',
  }),
  platformMailFrom: option('Platform', mailAddress, {
    default: 'dealgate@localhost',
    help: 'Sender of the mails of the embedded task platform.',
  }),
  platformDaemon: option('Platform', choice('embedded', 'external'), {
    default: 'embedded',
    help: 'Who fetches the CARs of tasks for the storage providers of the network: the embedded platform, or a program of yours by its interface.',
  }),
  platformCarNetworks: option('Platform', list(proxyAddress), {
    default: [],
    help: 'Private addresses, and addresses of this machine, from which the embedded platform may fetch the CARs of tasks, such as 10.1.0.0/16 or 127.0.0.1. Every user that posts tasks can then cause requests to them. Public addresses, the embedded gateway and the embedded payment API need none.',
  }),

  ...paymentOptions,

  networkEpochSeconds: option('Network', decimal(0.001, 86_400), {
    default: 30,
    unit: 'seconds',
    help: 'Length of an epoch of the storage network, the unit of durations and states of deals; 30 as in the real network.',
  }),
  networkControl: option('Network', onOff, {
    default: false,
    help: 'Allow clients of the embedded gateway to advance the time of the embedded storage network and to make its providers fail, for tests and demonstrations.',
  }),
  kuboApi: option('Network', url('http', 'https'), {
    secret: true,
    help: 'RPC address of a Kubo node (`http://127.0.0.1:5001`) that imports and pins the CARs of deals, and the uploads of the embedded storage payment API. The URL may contain user and password. Without it, deals are made in the embedded storage network.',
  }),

  data: option('State', path, { main: true, default: './dealgate-data', help: 'Folder for all data.' }),
  state: option('State', url('redis', 'rediss', 'postgres', 'postgresql'), {
    main: true,
    secret: true,
    help: 'Database for data that the gateway cannot hold, shared by several proxies: PostgreSQL, or Redis, which may lose acknowledged records and locks in a failover. Without it, SQLite in the data folder.',
  }),
  staging: option('State', wordOrPath('local', 'gateway'), {
    default: 'local',
    help: 'Where parts of multipart uploads wait: `local`, in the data folder, so that all requests of one upload must reach one proxy; `gateway`, in a hidden bucket of the gateway; or a folder that all proxies share. Must be the same for all proxies.',
  }),
  stateTimeoutMs: option('State', time('seconds', 1, 60), {
    default: 3000,
    help: 'Timeout of the database. After a timeout, requests that need the database fail at once until it answers again.',
  }),
  lockLeaseMs: option('State', time('seconds', 1, 3600), {
    default: 30_000,
    help: 'Lease time of locks with several proxies: a proxy that has been stopped or disconnected from the database for this long loses its locks. Must be the same for all proxies.',
  }),
  sealingKey: option('State', text('key', '64 hexadecimal digits', /^[0-9a-fA-F]{64}$/), {
    secret: true,
    help: 'Key that encrypts the secrets that plugins keep, such as log-ins of the task platform. Without it and --sealing-key-file, the first use makes one in the data folder.',
  }),
  sealingKeyFile: option('State', path, {
    help: 'File that contains the sealing key. Servers that share a state need the same.',
  }),
  uploadExpiryMs: option('State', time('days', 0, 3650), {
    default: defaultPeriods.uploadExpiryMs,
    help: 'Incomplete multipart uploads are removed after this time; 0 keeps them.',
  }),
  jobExpiryMs: option('State', time('days', 0, 3650), {
    default: defaultPeriods.jobExpiryMs,
    help: 'Ended jobs and their client tokens are removed after this time; 0 keeps them.',
  }),

  ...encryptionOptions,

  ...bucketOptions,

  plugins: option('Plugins', pluginUses, {
    main: true,
    secret: true,
    help: 'Plugins to run instead of `deal`, `pay` and `task`: the name of a built-in plugin or an npm package, or a path; `none` for none, like `--no-plugins`. In the file, an entry may be `{"use": …, "options": {…}}`.',
  }),

  ...limitOptions,
  ...connectionOptions,
  ...trafficOptions,

  ...observabilityOptions,

  logLevel: option('Logs', choice('silent', 'error', 'warn', 'info', 'debug'), {
    main: true,
    live: true,
    default: 'info',
    help: 'Lowest level that is logged, on standard error.',
  }),
  logFormat: option('Logs', choice('auto', 'json', 'text'), {
    default: 'auto',
    help: 'Format of the log: lines of JSON, or text for people; `auto` is text on a terminal and JSON elsewhere.',
  }),
  accessLog: option('Logs', onOff, { live: true, default: true, help: 'One log line for each request.' }),
  ...logFileOptions,
  print: option('Logs', choice('text', 'json'), {
    default: 'text',
    help: 'Format of the start message on standard output: text, or one line of JSON with endpoint, keys and region.',
  }),
})

export type OptionName = keyof typeof options

/** The value of every option, checked. Undefined only where there is no default. */
export type Config = { readonly [Name in OptionName]: (typeof options)[Name] extends Option<infer T> ? T : never }

export const optionNames = Object.keys(options) as OptionName[]

/** The options that `--port-base` moves. */
export const movedPorts = ['port', 'consolePort', 'gatewayPort', 'platformPort', 'paymentPort'] as const

/** The port that an option has with a base; undefined for an option that the base does not move. */
export function portAt(name: OptionName, base: number = options.port.default): number | undefined {
  const moved = movedPorts.find((one) => one === name)
  return moved && base + Number(options[moved].default) - options.port.default
}

type Group<Word extends string> = {
  readonly [Name in OptionName as Name extends `${Word}${infer Rest}` ? Uncapitalize<Rest> : never]: Config[Name]
}

/** The options whose names begin with a word, by their names without it: `paymentHost` as `host` of `payment`. */
export function groupOf<Word extends string>(config: Config, word: Word): Group<Word> {
  const names = optionNames.filter((name) => name.startsWith(word))
  const short = (name: string): string => name.charAt(word.length).toLowerCase() + name.slice(word.length + 1)
  return Object.fromEntries(names.map((name) => [short(name), config[name]])) as Group<Word>
}

/** The value of an option as users state it. */
export function statedValue(name: OptionName, value: unknown): unknown {
  const { stated } = (options[name] as Option).kind
  return stated && value ? stated(value) : value
}
