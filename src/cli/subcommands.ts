import type { Command } from 'commander'
import type { BackupFlags } from './backup/backup.js'
import type { RestoreFlags } from './backup/restore.js'
import { addCommand, configOf } from './command.js'
import { type Config, type OptionName, optionNames } from './config/config.js'
import type { DoctorFlags } from './doctor/doctor.js'

export interface AccountActions {
  addAccount(config: Config, own: AccountFlags): Promise<void>
  listAccounts(config: Config): Promise<void>
  removeAccount(config: Config, accessKey: string): Promise<void>
  rotateAccount(config: Config, accessKey: string): Promise<void>
  accountQuota(config: Config, accessKey: string, own: QuotaFlags): Promise<void>
  changePassword(config: Config, email: string, own: PasswordFlags): Promise<void>
  userApiKeys(config: Config, email: string, own: ApiKeyFlags): Promise<void>
}

export interface PasswordFlags {
  readonly password?: string
}

export interface ApiKeyFlags {
  readonly revoke?: string
}

export interface AccountFlags extends PasswordFlags {
  readonly email?: string
  readonly name?: string
  readonly accountAccessKey?: string
  readonly accountSecretKey?: string
}

export interface QuotaFlags {
  readonly bytes?: string
  readonly objects?: string
  readonly uploads?: string
}

/**
 * Adds the commands about accounts of the embedded services.
 * @param names the options that they take
 */
export function addAccountCommands(program: Command, actions: AccountActions, names: readonly OptionName[]): void {
  const accounts = program
    .command('account')
    .description('add, list and remove accounts of the embedded services, and change their keys; requires no restart')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate account <command> --help')
  addCommand(accounts, 'add', 'add an account and print its keys; the secret is not shown again', names)
    .option('--name <text>', 'display name, at most 128 characters')
    .option(
      '--email <address>',
      'add a user of the task platform in its place, whose account is made at the first login',
    )
    .option('--password <password>', 'with --email: its password, or - for the next line of standard input')
    .option('--account-access-key <id>', 'use an existing pair, with --account-secret-key (default: generate one)')
    .option('--account-secret-key <secret>', 'its secret, or - for the next line of standard input')
    .action((flags, command) => actions.addAccount(configOf(flags, command), flags))
  addCommand(accounts, 'list', 'list the accounts and their buckets, without secrets', names).action((flags, command) =>
    actions.listAccounts(configOf(flags, command)),
  )
  addCommand(accounts, 'remove', 'remove an account; refused while it owns buckets', names)
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .action((id, flags, command) => actions.removeAccount(configOf(flags, command, 1), id))
  addCommand(
    accounts,
    'rotate',
    'make a new secret key for an account, print it and update the credentials file',
    names,
  )
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .action((id, flags, command) => actions.rotateAccount(configOf(flags, command, 1), id))
  addCommand(accounts, 'quota', 'show what an account stores and may store, and change the latter', names)
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .option('--bytes <number>', 'most bytes in all of its buckets, or none')
    .option('--objects <number>', 'most objects in all of its buckets, or none')
    .option('--uploads <number>', 'most multipart uploads under way, or none')
    .action((id, flags, command) => actions.accountQuota(configOf(flags, command, 1), id, flags))
  addCommand(
    accounts,
    'password',
    'give a user of the task platform a new password, and end its sign-ins; owner@localhost is the first user',
    names,
  )
    .argument('<e-mail>', 'address that the user signs in with')
    .option('--password <password>', 'the password, or - for the next line of standard input (default: generate one)')
    .action((email, flags, command) => actions.changePassword(configOf(flags, command, 1), email, flags))
  addCommand(accounts, 'api-keys', 'list the API keys of a user of the task platform, without secrets', names)
    .argument('<e-mail>', 'address that the user signs in with')
    .option('--revoke <api-key>', 'revoke this key, or `all`; tokens that were issued for it die with it')
    .action((email, flags, command) => actions.userApiKeys(configOf(flags, command, 1), email, flags))
}

export interface BackupActions {
  backup(config: Config, destination: string, own: BackupFlags): Promise<void>
  restore(config: Config, path: string, own: RestoreFlags): Promise<void>
}

const BACKUP: readonly OptionName[] = [
  'data',
  'state',
  'staging',
  'credentialsFile',
  'sealingKeyFile',
  'gatewayUrl',
  'gatewayAccessKey',
  'gatewaySecretKey',
  'platformUrl',
  'paymentUrl',
  'kuboApi',
  'print',
  'logLevel',
]

const RESTORE: readonly OptionName[] = ['data', 'print', 'logLevel']

export function addBackupCommands(program: Command, actions: BackupActions): void {
  addCommand(program, 'backup', 'copy the data folder to a new folder in <folder>, while a server uses it', BACKUP)
    .argument('<folder>', 'the folder of all backups; files that have not changed are linked to the backup before')
    .option('--keep <number>', 'remove the oldest backups beyond this number, 1 to 100000 (default: keep all)')
    .option('--verify', 'read the files of the backup before again, and copy damaged ones anew (default: link them)')
    .addHelpText('after', '\nUse the options of `serve`, so that the backup says what it does not contain.')
    .action((folder, flags, command) => actions.backup(configOf(flags, command, 1), folder, flags))
  addCommand(program, 'restore', 'fill an empty data folder from a backup, and check every file', RESTORE)
    .argument('<backup>', 'a backup, or the folder of all backups for the newest one')
    .option('--check', 'check the backup and write nothing')
    .action((path, flags, command) => actions.restore(configOf(flags, command, 1), path, flags))
}

export interface DoctorActions {
  doctor(config: Config, own: DoctorFlags): Promise<void>
}

export function addDoctorCommand(program: Command, actions: DoctorActions): void {
  addCommand(
    program,
    'doctor',
    'check options, data folder, gateway and clock, also of a running server, and say what to do',
    optionNames,
  )
    .option('--endpoint-url <url>', 'check a server elsewhere alone: whether it is ready, its clock, the key pair')
    .option('--report', 'print also versions and options, without secrets, to paste in a report of a problem')
    .action((flags, command) => actions.doctor(configOf(flags, command), flags))
}

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
