import { inventoryDefaults } from '../../plugins/inventory/defaults.js'
import type { ConfiguredLimits } from '../../src/api/limits.js'
import { defaultLimits } from '../../src/server/limits.js'
import {
  choice,
  host,
  httpUrl,
  integer,
  type Kind,
  list,
  nearbyFile,
  onOff,
  path,
  port,
  rate,
  recipient,
  s3Place,
  text,
  time,
  url,
} from './kinds.js'
import { type Option, option } from './option.js'

/** Declares a bound that a running server can change. */
function limit<T extends {}>(kind: Kind<T>, details: LimitDetails & { readonly default: NoInfer<T> }): Option<T>
function limit<T extends {}>(kind: Kind<T>, details: LimitDetails): Option<T | undefined>
function limit<T extends {}>(kind: Kind<T>, details: LimitDetails & { readonly default?: T }): Option<T | undefined> {
  return option<T>('Limits', kind, { ...details, live: true })
}

type LimitDetails = Pick<Option, 'help' | 'unit'>

/** The options that are bounds of requests: each reaches the operations under its name. */
export const limitOptions: { readonly [Name in keyof ConfiguredLimits]: Option<number> } = {
  maxDocumentBytes: limit(integer(1024, 64 * 1024 * 1024), {
    default: defaultLimits.maxDocumentBytes,
    unit: 'bytes',
    help: 'Largest XML request body.',
  }),
  bodyIdleMs: limit(time('seconds', 1, 3600), {
    default: defaultLimits.bodyIdleMs,
    help: 'Idle timeout of request bodies.',
  }),
  minBodyRate: limit(integer(0, 1_000_000_000), {
    default: defaultLimits.minBodyRate,
    unit: 'bytes per second',
    help: 'Minimum rate of request bodies, averaged over twice --body-idle-seconds; slower ones are refused; 0 for no minimum.',
  }),
  maxBodies: limit(integer(1, 1_000_000), {
    default: defaultLimits.maxBodies,
    help: 'Maximum of request bodies that are read at the same time; further ones are answered with SlowDown. Unsigned clients get at most half of them.',
  }),
  maxBodiesPerClient: limit(integer(1, 1_000_000), {
    default: defaultLimits.maxBodiesPerClient,
    help: 'Maximum of these for one access key, or for one network address of unsigned clients.',
  }),
  maxSpoolBytes: limit(integer(1024, 2 ** 49), {
    default: defaultLimits.maxSpoolBytes,
    unit: 'bytes',
    help: 'Maximum total size of bodies of unknown length, which are spooled to disk; more is answered with SlowDown. Unsigned clients get at most half of it.',
  }),
  maxSpoolBytesPerClient: limit(integer(1024, 2 ** 49), {
    default: defaultLimits.maxSpoolBytesPerClient,
    unit: 'bytes',
    help: 'Maximum of these for one access key, or for one network address of unsigned clients.',
  }),
  maxStagedBytes: limit(integer(1024, 2 ** 53 - 1), {
    default: defaultLimits.maxStagedBytes,
    unit: 'bytes',
    help: 'Parts of multipart uploads that are kept on disk until the upload is completed or ended, together; more is answered with SlowDown.',
  }),
  maxStagedBytesPerClient: limit(integer(1024, 2 ** 53 - 1), {
    default: defaultLimits.maxStagedBytesPerClient,
    unit: 'bytes',
    help: 'Of these, those of uploads of one access key.',
  }),
  minFreeBytes: limit(integer(0, 2 ** 53 - 1), {
    default: defaultLimits.minFreeBytes,
    unit: 'bytes',
    help: 'Free bytes on the disk of the data folder below which /-/ready answers 503, so that a load balancer sends requests to other proxies; 0 for never.',
  }),
  keyWaitMs: limit(time('seconds', 1, 3600), {
    default: defaultLimits.keyWaitMs,
    help: 'A write waits this long for an earlier write to the same key or for its unknown outcome, and then fails with SlowDown.',
  }),
  pluginDeadlineMs: limit(time('seconds', 1, 3600), {
    default: defaultLimits.pluginDeadlineMs,
    help: 'Deadline of plugins for a request, excluding the time that its body takes; then the request fails with InternalError.',
  }),
}

export const connectionOptions = {
  maxConnections: limit(integer(1, 1_000_000), {
    default: 4096,
    help: 'Maximum of open connections to the S3 endpoint. At the maximum, a new one replaces the oldest one that has sent no complete request, or else the one that has been idle for the longest time.',
  }),
  maxConnectionsPerAddress: limit(integer(1, 1_000_000), {
    help: 'Maximum of these for one network address, by default three quarters. The addresses in --trusted-proxies have no such maximum.',
  }),
  shutdownDelayMs: limit(time('seconds', 0, 3600), {
    default: 0,
    help: 'Time after SIGTERM or SIGINT in which new connections are still served while /-/ready fails. Behind a load balancer, longer than it takes to notice that.',
  }),
  shutdownGraceMs: limit(time('seconds', 0, 3600), {
    default: 30_000,
    help: 'Time for running requests to end after that.',
  }),
  stopMs: limit(time('seconds', 1, 7200), {
    help: 'Longest time from SIGTERM or SIGINT to the end of the process, by default 20 s more than --shutdown-delay-seconds and --shutdown-grace-seconds together. What hangs then is abandoned, with exit code 1.',
  }),
} as const

export const observabilityOptions = {
  metricsPort: option('Metrics', port, {
    main: true,
    help: 'Port that serves the metrics for Prometheus, at `/-/metrics`, without a signature; 0 selects a free port. Without it, callers with all rights of the account of the server read them at the S3 endpoint.',
  }),
  metricsHost: option('Metrics', host, { default: '127.0.0.1', help: 'Address of that port.' }),
  metricsBuckets: option('Metrics', list(text('bucket', 'the name of a bucket', /^[a-z0-9.-]{3,63}$/)), {
    default: Object.freeze([]),
    help: 'Bucket whose requests and bytes are counted under its name. No other bucket is named in the metrics.',
  }),
} as const

export const logFileOptions = {
  accessLogFile: option('Logs', path, {
    help: 'File that the access log is appended to, instead of standard error. SIGUSR2 makes the server open its log files again, for programs that rotate them.',
  }),
  accessLogFormat: option('Logs', choice('json', 's3'), {
    default: 'json',
    help: 'Format of the access log: JSON, or that of the server access logs of S3, for which --access-log-file is needed.',
  }),
  auditLog: option('Logs', path, {
    help: 'File that one line of JSON is appended to for each change of access or settings and each job, with who made it; on the disk before the answer. Commands that change keys, accounts and wallets add theirs.',
  }),
} as const

const address = text('address', '0x and 40 hexadecimal digits', /^0x[0-9A-Fa-f]{40}$/)
const networkName = text('name', 'letters, digits, . and -', /^[A-Za-z0-9.-]{1,64}$/)
const words = text('words', 'three words, separated by commas', /^[a-z][a-z0-9]{0,30}(,[a-z][a-z0-9]{0,30}){2}$/)
const MAX_BLOCKS = 10 ** 12

export const paymentOptions = Object.freeze({
  paymentUrl: option('Payment', httpUrl(), {
    main: true,
    help: 'Storage payment API to use. Without it, the embedded one is started beside the embedded gateway.',
  }),
  paymentHost: option('Payment', host, { default: '127.0.0.1', help: 'Address of the embedded storage payment API.' }),
  paymentPort: option('Payment', port, {
    default: 9300,
    help: 'Port of the embedded storage payment API; 0 selects a free port.',
  }),
  paymentPublicUrl: option('Payment', httpUrl(), {
    help: 'Address by which clients and storage providers on other machines reach the embedded storage payment API: for `/ipfs/<cid>` of uploads, and for the CARs of their deals. Without it, their URLs contain the address that it listens on.',
  }),
  paymentIpfsUrl: option('Payment', httpUrl(), {
    help: 'Address of a gateway of IPFS that has the uploads, for their `ipfs_url`. Without it, that of the Kubo node of `--kubo-api`, else the embedded storage payment API.',
  }),
  paymentDenylist: option('Payment', path, {
    help: 'File with a line `/ipfs/<cid>` for each content that the embedded storage payment API neither sends nor takes; it is read again when it changes.',
  }),
  paymentVariant: option('Payment', choice('a', 'b'), {
    default: 'a',
    help: 'Variant of the embedded storage payment API: in `a` wallets sign in and see what is their own; in `b` there is no sign-in, and callers name any wallet.',
  }),
  paymentNetwork: option('Payment', networkName, {
    default: 'dealgate.testnet',
    help: 'Name of the network of the embedded storage payment API, such as that of a chain: sign-ins must name it, and orders to pay contain it. Of several services, give each its own.',
  }),
  paymentFreeGib: option('Payment', integer(0, 1_000_000), {
    default: 0,
    unit: 'GiB',
    help: 'Room that each wallet may upload to for nothing in a calendar month (UTC), in variant `a`; public deployments have 10.',
  }),
  paymentWords: option('Payment', words, {
    help: 'Words of public deployments for the storage coin, the stable coin and the wallet, such as `filecoin,usdc,metamask`: parameters and paths of the embedded storage payment API with such a word are there by these, too, so that clients of these deployments work unmodified.',
  }),
  paymentMintContract: option('Payment', address, {
    help: 'Address of the contract by which clients mint NFTs of their uploads. The embedded storage payment API only names it in its parameters.',
  }),
  paymentChainUrl: option('Payment', url('http', 'https'), {
    secret: true,
    help: 'JSON-RPC endpoint of a node of an EVM chain, which may contain a key. Payments are then made on this chain instead of the embedded ledger; needs the package viem.',
  }),
  paymentChainId: option('Payment', integer(1, 10 ** 14), {
    help: 'Number of that chain; the server does not start with a node of another one.',
  }),
  paymentChainContract: option('Payment', address, { help: 'Address of the contract that locks payments.' }),
  paymentChainToken: option('Payment', address, {
    help: 'Address of the stable coin, an ERC-20 token with at most 36 decimals.',
  }),
  paymentChainRecipient: option('Payment', address, {
    help: 'Address that gets what is unlocked; payments for another one do not count.',
  }),
  paymentChainAbi: option('Payment', path, {
    help: 'JSON file with the ABI of the contract, if its events are not the usual ones.',
  }),
  paymentChainConfirmations: option('Payment', integer(0, 10_000), {
    default: 12,
    unit: 'blocks',
    help: 'A payment counts when its block has so many blocks above it.',
  }),
  paymentChainStartBlock: option('Payment', integer(0, MAX_BLOCKS), {
    help: 'First block whose payments count. Without it, the one above the latest confirmed block at the first start.',
  }),
})

export const tlsOptions = {
  tlsCert: option('Endpoint', list(nearbyFile), {
    default: Object.freeze([]),
    main: true,
    live: true,
    help: 'Certificate in PEM with those that lead to its authority: the S3 endpoint then serves HTTPS (TLS 1.2 and later) instead of HTTP. Repeated for several host names, each with its --tls-key. Files that change are read again.',
  }),
  tlsKey: option('Endpoint', list(nearbyFile), {
    default: Object.freeze([]),
    main: true,
    live: true,
    help: 'Private key of the certificate, in PEM without a passphrase; repeated in the order of --tls-cert.',
  }),
  gatewayCa: option('Gateway', nearbyFile, {
    help: 'Certificates of the authorities, in PEM, that the gateway at an https:// address is trusted by, instead of those that Node knows.',
  }),
  gatewayCert: option('Gateway', nearbyFile, {
    help: 'Client certificate in PEM for a gateway at an https:// address.',
  }),
  gatewayKey: option('Gateway', nearbyFile, {
    help: 'Private key of the client certificate, in PEM without a passphrase.',
  }),
} as const

const perSecond = rate(1_000_000)
const bytes = rate(1_000_000_000_000)
const concurrency = integer(1, 1_000_000)

/** The options that bound what clients ask; see `options`. Without them there is no bound. */
export const trafficOptions = {
  requestRate: limit(perSecond, {
    unit: 'requests per second',
    help: 'Requests of all clients together; more are answered with SlowDown and Retry-After, before anything is done for them. The burst is what a client may send at once after a pause, by default the requests of one second.',
  }),
  requestRatePerAddress: limit(perSecond, {
    unit: 'requests per second',
    help: 'Those of one network address, signed or not.',
  }),
  requestRatePerKey: limit(perSecond, {
    unit: 'requests per second',
    help: 'Those of one access key; temporary keys count for their user.',
  }),
  byteRate: limit(bytes, {
    unit: 'bytes per second',
    help: 'Bodies of requests and responses of all clients together. A request that has begun is completed; further ones are answered with SlowDown until its bytes have been waited for.',
  }),
  byteRatePerAddress: limit(bytes, { unit: 'bytes per second', help: 'Those of one network address.' }),
  byteRatePerKey: limit(bytes, { unit: 'bytes per second', help: 'Those of one access key.' }),
  maxRequests: limit(concurrency, {
    help: 'Maximum of requests in progress; further ones are answered with SlowDown.',
  }),
  maxRequestsPerAddress: limit(concurrency, { help: 'Maximum of these for one network address.' }),
  maxRequestsPerKey: limit(concurrency, { help: 'Maximum of these for one access key.' }),
} as const

/** The options of encrypted objects; see `options`. */
export const encryptionOptions = {
  encryption: option('Encryption', choice('asked', 'all'), {
    default: 'asked',
    help: 'What is encrypted before it reaches the gateway: objects whose request or bucket asks for it (`x-amz-server-side-encryption`), or `all` new objects.',
  }),
  encryptionKeys: option('Encryption', nearbyFile, {
    help: 'File of keys for encrypted objects, which must exist; with public keys alone, the server encrypts and cannot read. Without it, the first use makes `encryption.keys` in the data folder. Servers that share a state need the same file. Without the keys, the objects are lost.',
  }),
  encryptionRecipient: option('Encryption', list(recipient), {
    default: Object.freeze([]),
    help: 'Public key of age, whose owner can open all that this server encrypts from now on with keys of its own.',
  }),
  encryptionCommand: option('Encryption', nearbyFile, {
    help: 'Program that prints the keys of age for the name of a key (`aws:kms`), its argument, which the file does not have: for a vault or a token. It has 10 seconds; its keys are kept for 5 minutes. No output: there is no such key.',
  }),
  customerKeysOverHttp: option('Encryption', onOff, {
    default: false,
    help: 'Accept keys of clients (SSE-C) without TLS from other machines, too. Anyone on the network path can read them.',
  }),
} as const

/** The engines under the embedded services. */
export const engineOptions = {
  bodies: option('Gateway', s3Place, {
    help: 'Bucket of an S3 store for the bytes of new objects of the embedded gateway, above 32 KiB: `s3://bucket/prefix?endpoint=https://host&region=us-east-1`. Credentials are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of the file of aws-cli. Without it, files in the data folder.',
  }),
  bodiesCredentialsFile: option('Gateway', path, {
    help: 'File of credentials for the bucket of `--bodies`, or of `dealgate state copy`, in the form of `~/.aws/credentials`. It goes before the variables.',
  }),
  database: option('Gateway', url('postgres', 'postgresql'), {
    main: true,
    secret: true,
    help: 'PostgreSQL database, of version 14 or later, for the tables of the embedded services: gateway, task platform, storage payment API and storage network. Without a password in the URL, that of PGPASSFILE or PGPASSWORD. Without it, SQLite in the data folder.',
  }),
}

export const inventoryOptions = {
  inventoryIntervalMs: option('Buckets', time('seconds', 0, 3600), {
    default: inventoryDefaults.intervalMs,
    help: 'Interval at which schedules of inventories, which are due at midnight UTC, are checked; 0 disables them.',
  }),
  inventoryFileRows: option('Buckets', integer(1000, 10_000_000), {
    default: inventoryDefaults.fileRows,
    help: 'Rows of a file of an inventory. After a crash, at most one file is written again.',
  }),
  inventoryRate: option('Buckets', integer(0, 10_000_000), {
    default: inventoryDefaults.rate,
    unit: 'objects per second',
    help: 'Rate at which inventories list buckets, all those of a process together; 0 for no bound.',
  }),
} as const
