import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { makeFolders } from '../common/files/private-file.js'
import { checksummed, parseAddress, signText } from '../services/payment/addresses.js'
import { formatAmount, parseAmount } from '../services/payment/embedded-payments.js'
import { hasWallets, openWalletRegistry, type WalletRegistry } from '../services/payment/store.js'
import { DatabaseUnavailableError } from '../services/store/database.js'
import { Failure, print, withRegistry } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { callEndpoint, type Endpoint } from './endpoint-call.js'
import { SecretReader } from './keys/key-commands.js'
import { createKeystore, openKeystore, readKeystore, type WalletKey } from './keystore.js'
import { ask } from './login.js'
import { isNonce, PaymentApi } from './payment-api.js'
import { type Changed, endpointOf, type Signer, serviceOf, signerOf } from './running.js'
import { servicesFolder } from './serve/gateway.js'

interface WalletFlags {
  readonly walletFile?: string
  readonly password?: string
  readonly address?: string
  readonly reference?: string
  readonly amount?: string
  readonly maxAmount?: string
  readonly yes?: boolean
  readonly endpointUrl?: string
  readonly profile?: string
}

const MIN_PASSWORD = 8

export async function createWallet(config: Config, own: WalletFlags): Promise<Changed> {
  const file = fileOf(config, own)
  const password = await readPassword(own)
  makeFolders(dirname(file))
  const { address } = await createKeystore(file, password)
  print(config, { address: checksummed(address), file }, `address  ${checksummed(address)}\nfile     ${file}\n`)
  return { resource: checksummed(address) }
}

export async function fundWallet(config: Config, amount: string, own: WalletFlags): Promise<Changed> {
  const address = await addressOf(config, own)
  const millionths = readAmount(amount)
  const { reference = randomUUID() } = own
  if (!/^[\x21-\x7e]{1,64}$/.test(reference))
    throw new ConfigError(['--reference must be a word of at most 64 letters'])
  const balance = await within(config, async (registry) => {
    try {
      await registry.fund(address, millionths, reference)
      return await registry.balance(address)
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError)) throw error
      throw new Failure(
        `${error.message}. The wallet may have the coins, or not: repeat the command with --reference ${reference}, which gives them once.`,
        { cause: error },
      )
    }
  })
  printBalance(config, address, balance)
  return { resource: checksummed(address), amount: formatAmount(millionths) }
}

export async function walletBalance(config: Config, own: WalletFlags): Promise<void> {
  const address = await addressOf(config, own)
  const balance = await within(config, async (registry) => registry.balance(address))
  printBalance(config, address, balance)
}

/** `dealgate wallet link`: signs in at an S3 endpoint, whose plugin `pay` then acts as the wallet for the key pair. */
export async function linkToEndpoint(config: Config, own: WalletFlags): Promise<Changed> {
  const signer = await signerOf(config, own.profile)
  const url = endpointOf(config, own.endpointUrl ?? signer.endpoint)
  const wallet = await openKeystore(fileOf(config, own), await readPassword(own))
  const until = await linkWallet(url, signer, wallet)
  const linked = { address: checksummed(wallet.address), accessKey: signer.accessKeyId, until }
  const lasts = until === undefined ? '' : `until    ${until}\n`
  print(config, linked, `address  ${linked.address}\nlinked   ${linked.accessKey}\n${lasts}`)
  return { resource: linked.address }
}

export async function payUpload(config: Config, upload: string, own: WalletFlags): Promise<Changed> {
  if (!/^[1-9]\d{0,14}$/.test(upload)) throw new ConfigError(['the upload is named by its number, such as 1'])
  const given = own.amount === undefined ? undefined : readAmount(own.amount)
  const most = own.maxAmount === undefined ? undefined : readAmount(own.maxAmount)
  // Without a wallet, how much it may pay does not matter.
  await readKeystore(fileOf(config, own))
  const silent = given !== undefined || most !== undefined || own.yes === true
  if (!silent && !process.stdin.isTTY) throw new ConfigError([UNASKED])
  const wallet = await openKeystore(fileOf(config, own), await readPassword(own))
  const api = new PaymentApi(serviceOf(config, 'payment'), config.paymentNetwork, wallet)
  await api.requireLedger()
  await api.signIn()
  const { wCid, price } = await api.upload(upload)
  const amount = given ?? price
  if (most !== undefined && amount > most) {
    throw new Failure(`The payment is ${formatAmount(amount)}, above --max-amount ${formatAmount(most)}.`)
  }
  if (!silent && !(await agrees(formatAmount(amount), wCid))) throw new Failure('Nothing was paid.')
  const hash = await api.pay(wCid, amount)
  print(
    config,
    { wCid, amount: formatAmount(amount), hash },
    `paid  ${formatAmount(amount)} for ${wCid}\nhash  ${hash}\n`,
  )
  return { resource: wCid, amount: formatAmount(amount) }
}

const UNASKED =
  'the service names the price, and there is no terminal to ask at: give --amount, --max-amount, or --yes for any price'

async function agrees(amount: string, wCid: string): Promise<boolean> {
  const answer = await ask(`Pay ${amount} coins for ${wCid}? [y/N] `, '--max-amount or --yes')
  return /^y(es)?$/i.test(answer.trim())
}

function fileOf({ data }: Config, { walletFile }: WalletFlags): string {
  return walletFile ?? join(data, 'wallet.json')
}

/** The address that was given, or that of the keystore file, which needs no password for it. */
async function addressOf(config: Config, own: WalletFlags): Promise<string> {
  if (own.address !== undefined) {
    const address = parseAddress(own.address)
    if (address === undefined) throw new ConfigError(['--address must be 0x and 40 hexadecimal digits'])
    return address
  }
  const file = fileOf(config, own)
  const text = await readKeystore(file)
  const address = parseAddress(`0x${/"address"\s*:\s*"(?:0x)?([0-9a-fA-F]{40})"/.exec(text)?.[1]}`)
  if (address === undefined) throw new Failure(`${file} has no address of a wallet: name one by --address.`)
  return address
}

async function readPassword({ password: given }: WalletFlags): Promise<string> {
  if (given === undefined) throw new ConfigError(['--password is required: use - for the next line of standard input'])
  const secrets = new SecretReader()
  const password = await secrets.read(given)
  secrets.close()
  if (password.length < MIN_PASSWORD) {
    throw new ConfigError([`--password must have at least ${MIN_PASSWORD} characters`])
  }
  return password
}

function readAmount(text: string): bigint {
  const amount = parseAmount(text)
  if (amount === undefined || amount === 0n) {
    throw new ConfigError(['the amount must be a number of coins above 0, such as 12.5, with at most six decimals'])
  }
  return amount
}

async function within<T>(config: Config, use: (registry: WalletRegistry) => Promise<T>): Promise<T> {
  if (config.paymentUrl !== undefined) {
    throw new Failure(`The wallets of ${config.paymentUrl} are not in the data folder.`)
  }
  const folder = servicesFolder(config)
  if (config.database === undefined && !hasWallets(folder)) {
    throw new Failure(`The data folder ${config.data} has no storage payment service yet: start it once.`)
  }
  return withRegistry(await openWalletRegistry(folder, config.database), use)
}

function printBalance(config: Config, address: string, balance: bigint): void {
  const shown = { address: checksummed(address), balance: formatAmount(balance) }
  print(config, shown, `address  ${shown.address}\nbalance  ${shown.balance}\n`)
}

/**
 * Signs the wallet in through the endpoint, which links it to the key pair. The key of the wallet stays here: only a
 * nonce is signed with it. Throws Failure.
 * @param url of an S3 endpoint with the plugin `pay`, without a path
 * @returns when the link ends, ISO 8601, if the service says so
 */
async function linkWallet(url: URL, signer: Signer, wallet: WalletKey): Promise<string | undefined> {
  const endpoint = { url, signer }
  const { address, secretKey } = wallet
  const { ChainName: network } = await call(endpoint, 'GET', 'system-config')
  const { Nonce: nonce } = await call(endpoint, 'POST', 'wallet/nonce', { PublicKeyAddress: address })
  if (typeof nonce !== 'string' || !isNonce(nonce)) {
    throw new Failure(`${endpoint.url.origin} wants a text signed that is no nonce: nothing was signed.`)
  }
  const session = { Nonce: nonce, Signature: signText(nonce, secretKey), PublicKeyAddress: address, Network: network }
  const { ExpiresAt: ends } = await call(endpoint, 'POST', 'wallet/session', { ...session, Store: true })
  return typeof ends === 'string' ? ends : undefined
}

/** @param name behind `/-/pay/v1/` */
function call(endpoint: Endpoint, method: 'GET' | 'POST', name: string, body?: object) {
  return callEndpoint(endpoint, { method, path: `/-/pay/v1/${name}`, ...(body && { body }) })
}
