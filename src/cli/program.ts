import { Command } from 'commander'
import { version } from '../common/files/package-folder.js'
import { addCommand, collected, configOf } from './command.js'
import { addCompletionCommand } from './completion/completion.js'
import { type Config, type OptionName, optionNames } from './config/config.js'
import type { NewFlags } from './plugins/plugin-new.js'
import type { CheckFlags } from './plugins/plugins.js'
import {
  type AccountActions,
  addAccountCommands,
  addBackupCommands,
  addDoctorCommand,
  addWalletCommands,
  type BackupActions,
  type DoctorActions,
  type WalletActions,
} from './subcommands.js'
import type { JobsFlags } from './watch/jobs.js'
import type { WatchFlags } from './watch/watch.js'

export interface Actions extends AccountActions, WalletActions, BackupActions, DoctorActions {
  serve(config: Config): Promise<void>
  services(config: Config): Promise<void>
  presign(config: Config, url: string, own: PresignFlags): Promise<void>
  showDeals(config: Config, bucket: string | undefined, own: WatchFlags): Promise<void>
  showJobs(config: Config, own: JobsFlags): Promise<void>
  login(config: Config, own: LoginFlags): Promise<void>
  addKey(config: Config, own: KeyFlags): Promise<void>
  listKeys(config: Config): Promise<void>
  printEnvironment(config: Config): Promise<void>
  listPlugins(config: Config, own: { readonly explain?: boolean }): Promise<void>
  newPlugin(config: Config, name: string, own: NewFlags): Promise<void>
  checkPlugin(config: Config, use: string, own: CheckFlags): Promise<void>
  removeKey(config: Config, accessKeyId: string): Promise<void>
  acceptState(config: Config): Promise<void>
}

export interface LoginFlags {
  readonly email?: string
  readonly passwordStdin?: boolean
  readonly profile?: string
  readonly endpointUrl?: string
  readonly gateway?: string
  /** False for `--no-aws`. */
  readonly aws?: boolean
  readonly force?: boolean
}

export interface PresignFlags {
  readonly expires: string
  readonly method: string
  readonly endpointUrl?: string
  readonly profile?: string
}

export interface KeyFlags {
  readonly accessKeyId?: string
  readonly secretAccessKey?: string
  readonly accountAccessKey?: string
  readonly accountSecretKey?: string
  readonly right?: readonly string[]
  readonly allow?: readonly string[]
}

const SERVICES: readonly OptionName[] = [
  'data',
  'region',
  'gatewayHost',
  'gatewayPort',
  'gatewayQuirks',
  'gatewayPublicUrl',
  'gatewayCarGib',
  'servicesMaxConnections',
  'platformUrl',
  'platformApiKey',
  'platformAccessToken',
  'platformHost',
  'platformPort',
  'platformSmtp',
  'platformMailFrom',
  'platformDaemon',
  'platformCarNetworks',
  'paymentHost',
  'paymentPort',
  'paymentPublicUrl',
  'paymentIpfsUrl',
  'paymentNetwork',
  'paymentDenylist',
  'paymentFreeGib',
  'paymentWords',
  'paymentMintContract',
  'paymentVariant',
  'paymentChainUrl',
  'paymentChainId',
  'paymentChainContract',
  'paymentChainToken',
  'paymentChainRecipient',
  'paymentChainAbi',
  'paymentChainConfirmations',
  'paymentChainStartBlock',
  'brandPath',
  'brandHeader',
  'networkEpochSeconds',
  'networkControl',
  'kuboApi',
  'logLevel',
  'logFormat',
  'print',
]
const PRESIGN: readonly OptionName[] = ['host', 'port', 'accessKey', 'secretKey', 'region', 'data']
const WATCH: readonly OptionName[] = [...PRESIGN, 'print', 'logLevel']
const LOGIN: readonly OptionName[] = [
  'data',
  'platformUrl',
  'platformHost',
  'platformPort',
  'gatewayHost',
  'gatewayPort',
  'host',
  'port',
  'region',
  'brandPath',
  'brandHeader',
  'print',
  'logLevel',
]
const PLUGINS: readonly OptionName[] = ['plugins', 'logLevel']
const STATE: readonly OptionName[] = ['data', 'state', 'stateTimeoutMs', 'auditLog', 'logLevel']
const KEYS: readonly OptionName[] = ['credentialsFile', 'data', 'auditLog', 'print', 'logLevel']

/** Defines and parses the command line. Throws CommanderError for errors such as a flag without its value. */
export function createProgram(actions: Actions): Command {
  const program = new Command('dealgate')
    .description('An S3 endpoint over an object gateway that speaks web.* JSON-RPC.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\n`dealgate` alone is `dealgate serve`. Options of a command: dealgate <command> --help')
    .exitOverride()
    // A secret key may begin with -V: only what stands before the command is an option of the program.
    .enablePositionalOptions()
  addCommand(
    program,
    'serve',
    'start the S3 endpoint, with the embedded services unless --gateway-url names another gateway',
    optionNames,
    { isDefault: true },
  ).action((flags, command) => actions.serve(configOf(flags, command)))
  addCommand(
    program,
    'services',
    'start the embedded services alone: the gateway, the task platform and the storage payment API',
    SERVICES,
  ).action((flags, command) => actions.services(configOf(flags, command)))
  addCommand(program, 'presign', 'print a presigned URL', PRESIGN)
    .argument('<url>', 's3://bucket/key')
    .option('--expires <seconds>', 'how long the URL is valid, 1 to 604800 (7 days)', '3600')
    .option('--method <method>', 'GET, HEAD, PUT or DELETE', 'GET')
    .option(
      '--endpoint-url <url>',
      'where clients reach the S3 endpoint (default: AWS_ENDPOINT_URL, or the server that runs with --data)',
    )
    .option(
      '--profile <name>',
      'sign with this profile of aws-cli, which also names endpoint and region (default: AWS_*, or the key pair of --data)',
    )
    .action((url, flags, command) => actions.presign(configOf(flags, command, 1), url, flags))
  addWatchCommands(program, actions)
  addCommand(program, 'login', 'sign in at the task platform, and write a profile for aws-cli', LOGIN)
    .option('--email <address>', 'address to sign in with (default: ask for it)')
    .option('--password-stdin', 'read the password from the first line of standard input (default: ask for it)')
    .option('--profile <name>', 'profile of aws-cli to write (default: dealgate)')
    .option(
      '--endpoint-url <url>',
      'where the S3 endpoint is (default: AWS_ENDPOINT_URL, or the server that runs with --data)',
    )
    .option('--gateway <url>', 'where the gateway is (default: that of the server that runs with --data)')
    .option('--no-aws', 'leave the files of aws-cli alone')
    .option('--force', 'replace other credentials in the profile')
    .addHelpText(
      'after',
      '\nThe profile has temporary credentials for 12 hours. Sign in again when they have expired.\nExample: the first user of a server on this machine:\n  dealgate login --email owner@localhost\n  aws --profile dealgate s3 ls',
    )
    .action((flags, command) => actions.login(configOf(flags, command), flags))
  addDoctorCommand(program, actions)
  addBackupCommands(program, actions)
  addKeyCommands(program, actions)
  addAccountCommands(program, actions, KEYS)
  addPluginCommands(program, actions)
  addStateCommands(program, actions)
  addWalletCommands(program, actions)
  addCompletionCommand(program)
  return program
}

function addWatchCommands(program: Command, actions: Actions): void {
  const watching = (command: Command, what: string) =>
    command
      .option('--watch', `repeat until no ${what} is pending; exit code 1 if one has failed meanwhile`)
      .option('--interval <seconds>', 'pause between two looks of --watch, 1 to 3600', '2')
      .option('--limit <number>', `the newest ${what}s, 1 to 1000`, '100')
      .option(
        '--endpoint-url <url>',
        'where the S3 endpoint is (default: AWS_ENDPOINT_URL, or the server that runs with --data)',
      )
      .option('--profile <name>', 'sign with this profile of aws-cli (default: AWS_*, or the key pair of --data)')
  watching(
    addCommand(program, 'deals', 'list deals that were made through a running server, with their progress', WATCH),
    'deal',
  )
    .argument('[bucket]', 'the deals of this bucket and its objects alone')
    .addHelpText('after', '\nWith --print json: a line of JSON for each table, with the documents of deals and jobs.')
    .action((bucket, flags, command) => actions.showDeals(configOf(flags, command, 1), bucket, flags))
  watching(addCommand(program, 'jobs', 'list jobs of a running server, with their progress', WATCH), 'job')
    .option('--of-plugin <name>', 'the jobs of this plugin alone')
    .addHelpText('after', '\nWith --print json: a line of JSON for each table, with the documents of the jobs.')
    .action((flags, command) => actions.showJobs(configOf(flags, command), flags))
}

function addPluginCommands(program: Command, actions: Actions): void {
  const plugins = program
    .command('plugin')
    .description('list plugins, create one, and check a plugin against the contract')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate plugin <command> --help')
  addCommand(plugins, 'list', 'list the plugins that run with these options, and the other built-in ones', PLUGINS)
    .option('--explain', 'also show their options and operations')
    .action((flags, command) => actions.listPlugins(configOf(flags, command), flags))
  addCommand(plugins, 'new', 'create a working plugin with its test in the new folder dealgate-plugin-<name>', [
    'logLevel',
  ])
    .argument('<name>', 'lower-case letters, digits and -; part of the paths that the plugin serves')
    .option(
      '--dealgate <version>',
      'version range of dealgate in its package.json, or file: and a folder (default: this one)',
    )
    .action((name, flags, command) => actions.newPlugin(configOf(flags, command, 1), name, flags))
  addCommand(plugins, 'check', 'start a server with a plugin in a temporary folder, and check it', PLUGINS)
    .argument('<plugin>', 'the name of a package or a built-in plugin, or a path that starts with . or /')
    .option('--options <json>', 'its options (default: those in the config file)')
    .action((use, flags, command) => actions.checkPlugin(configOf(flags, command, 1), use, flags))
}

function addStateCommands(program: Command, actions: Actions): void {
  const state = program
    .command('state')
    .description('decide how to continue with a state store that has lost its records')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate state <command> --help')
  addCommand(
    state,
    'accept',
    'accept a state store that is empty or has been replaced: its former records are lost',
    STATE,
  ).action((flags, command) => actions.acceptState(configOf(flags, command)))
}

function addKeyCommands(program: Command, actions: Actions): void {
  const keys = program
    .command('keys')
    .description('add, list and remove S3 key pairs with individual rights, and print variables with one')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate keys <command> --help')
  addCommand(keys, 'add', 'add a key pair and print it; the secret is not shown again', KEYS)
    .option(
      '--right <access:bucket[/prefix]>',
      'grant read, write or readwrite for a bucket (a final `*` matches any suffix) or a prefix in it; may be repeated; default: all rights of the account',
      collected,
    )
    .option(
      '--allow <plugin:call>',
      'with --right: allow a plugin call, such as deal:CreateObjectDeal (a final `*` matches any suffix), in addition to calls that only read; may be repeated',
      collected,
    )
    .option('--access-key-id <id>', 'use an existing pair, with --secret-access-key (default: generate one)')
    .option('--secret-access-key <secret>', 'its secret, or - for the next line of standard input')
    .option('--account-access-key <id>', 'the gateway account it acts as (default: that of dealgate)')
    .option('--account-secret-key <secret>', 'the secret of that account, or - for the next line of standard input')
    .addHelpText(
      'after',
      '\nExample: read the photos of 2024 and upload new ones:\n  dealgate keys add --right read:photos/2024/ --right write:photos/inbox/',
    )
    .action((flags, command) => actions.addKey(configOf(flags, command), flags))
  addCommand(keys, 'list', 'list the key pairs and their rights, without secrets', KEYS).action((flags, command) =>
    actions.listKeys(configOf(flags, command)),
  )
  addCommand(keys, 'env', 'print variables for aws-cli, SDKs and curl: eval "$(dealgate keys env)"', PRESIGN).action(
    (flags, command) => actions.printEnvironment(configOf(flags, command)),
  )
  addCommand(keys, 'remove', 'remove a key pair: it is refused from then on, in presigned URLs too', KEYS)
    .argument('<access-key-id>', 'as `dealgate keys list` shows it')
    .action((id, flags, command) => actions.removeKey(configOf(flags, command, 1), id))
}
