import type { Command } from 'commander'
import { addCommand, configOf } from '../command.js'
import type { Config, OptionName } from '../config/config.js'

/** The actions of `dealgate wallet`. `own` holds the unparsed flags of the command itself. */
export interface WalletActions {
  createWallet(config: Config, own: WalletFlags): Promise<void>
  fundWallet(config: Config, amount: string, own: WalletFlags): Promise<void>
  walletBalance(config: Config, own: WalletFlags): Promise<void>
  linkWallet(config: Config, own: WalletFlags): Promise<void>
  payUpload(config: Config, upload: string, own: WalletFlags): Promise<void>
}

export interface WalletFlags {
  readonly walletFile?: string
  readonly password?: string
  readonly address?: string
  readonly amount?: string
  readonly maxAmount?: string
  readonly yes?: boolean
  readonly endpointUrl?: string
  readonly profile?: string
}

const WALLET: readonly OptionName[] = [
  'data',
  'paymentUrl',
  'paymentHost',
  'paymentPort',
  'auditLog',
  'paymentNetwork',
  'print',
  'logLevel',
]
const ENDPOINT: readonly OptionName[] = ['host', 'port', 'region', 'accessKey', 'secretKey']
const WALLET_FILE = [
  '--wallet-file <file>',
  'keystore file of the wallet (default: wallet.json in the data folder)',
] as const
const WALLET_PASSWORD = ['--password <text>', 'opens the file, or - for the next line of standard input'] as const
const WALLET_ADDRESS = ['--address <address>', 'address of a wallet (default: that of the keystore file)'] as const

export function addWalletCommands(program: Command, actions: WalletActions): void {
  const wallet = program
    .command('wallet')
    .description('make a wallet for the embedded storage payment API, fund it, and pay for uploads')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate wallet <command> --help')
  addCommand(wallet, 'create', 'make a wallet in a new keystore file, which the password seals', WALLET)
    .option(...WALLET_FILE)
    .option(...WALLET_PASSWORD)
    .action((flags, command) => actions.createWallet(configOf(flags, command), flags))
  addCommand(wallet, 'fund', 'give a wallet coins of the embedded ledger, which have no value', WALLET)
    .argument('<amount>', 'in stable coins, such as 12.5')
    .option(...WALLET_FILE)
    .option(...WALLET_ADDRESS)
    .action((amount, flags, command) => actions.fundWallet(configOf(flags, command, 1), amount, flags))
  addCommand(wallet, 'balance', 'show the coins of a wallet in the embedded ledger', WALLET)
    .option(...WALLET_FILE)
    .option(...WALLET_ADDRESS)
    .action((flags, command) => actions.walletBalance(configOf(flags, command), flags))
  addCommand(wallet, 'link', 'sign the wallet in at an S3 endpoint, for its key pair', [...WALLET, ...ENDPOINT])
    .option(...WALLET_FILE)
    .option(...WALLET_PASSWORD)
    .option('--endpoint-url <url>', 'the S3 endpoint (default: AWS_ENDPOINT_URL, or the server that runs with --data)')
    .option('--profile <name>', 'link to the key pair of this profile of aws-cli (default: AWS_*, or that of --data)')
    .action((flags, command) => actions.linkWallet(configOf(flags, command), flags))
  addCommand(wallet, 'pay', 'lock the payment for an upload of the wallet', WALLET)
    .argument('<upload>', 'its number, source_file_upload_id')
    .option(...WALLET_FILE)
    .option(...WALLET_PASSWORD)
    .option('--amount <amount>', 'in stable coins (default: the least amount, which the service names)')
    .option('--max-amount <amount>', 'pays the least amount up to this one without a question')
    .option('--yes', 'pays any least amount without a question')
    .action((upload, flags, command) => actions.payUpload(configOf(flags, command, 1), upload, flags))
}
